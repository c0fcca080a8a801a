//! The [`MessageComponent`]: per-entity callbacks that run once per message.
//!
//! A message waits as a [`letter`] in the [`mailbag`] until the next run [delivers](deliver) it to
//! the [`followers`] of its [`topic`].

mod ask;
mod batch;
mod broadcast;
mod calls;
#[cfg(feature = "serialize")]
mod codec;
mod component;
mod context;
mod courier;
#[cfg(feature = "serialize")]
mod data;
mod deliver;
mod directory;
mod followers;
mod held_letters;
mod holds;
mod inbox;
mod letter;
mod mailbag;
mod outbox;
mod packet;
mod payload;
#[cfg(feature = "worlds")]
mod refusal;
mod reply;
mod request;
mod room;
mod send_error;
mod sender;
mod stats;
#[cfg(feature = "serialize")]
mod timed_out;
mod topic;
#[cfg(feature = "serialize")]
mod transit;
mod waiting;
mod written;

pub(crate) use ask::OpenRequest;
pub(crate) use ask::{add_time_out_handler, ask};
#[cfg(feature = "serialize")]
pub(crate) use codec::add_message_codec;
pub use component::MessageComponent;
pub(crate) use component::follow;
pub use context::MessageContext;
#[cfg(feature = "serialize")]
pub use data::{UnmovableMail, UnmovableReason};
pub(crate) use deliver::{close_inbox, deliver_messages};
pub(crate) use directory::{Directory, MovedRequest};
#[cfg(feature = "serialize")]
pub(crate) use directory::{name_of_request, request_with_name};
pub(crate) use followers::{Followers, on_enable_follower};
pub(crate) use holds::is_held;
#[cfg(feature = "serialize")]
pub(crate) use holds::release_lost;
pub(crate) use inbox::Inbox;
pub(crate) use letter::Letter;
pub use letter::{Delivery, Undelivered};
pub(crate) use mailbag::{Mailbag, resend, send, try_send};
pub use outbox::Outbox;
pub use packet::Packet;
pub use payload::Payload;
#[cfg(feature = "worlds")]
pub use refusal::RefusalReason;
pub(crate) use reply::reply;
pub use request::{NoAnswer, ReplyError, ReplyTo, Request};
pub use send_error::SendError;
pub use sender::MessageSender;
pub use stats::MessageStats;
pub(crate) use written::Written;
#[cfg(feature = "worlds")]
pub(crate) use {
    ask::{asker_of, give_up, open},
    deliver::{hand_back, has_mail},
    directory::KeyListener,
    letter::{Recipient, Role},
    mailbag::{is_urgent, send_urgent},
    request::RemoteAsker,
    topic::Topic,
};
#[cfg(feature = "serialize")]
pub(crate) use {
    data::{LetterData, LetterError, letter_to_data},
    held_letters::{End, HeldLetters, Taken},
    request::PostReply,
    timed_out::{time_out_again, timed_out},
    transit::{entities_with_mail, take_letters, visit_letters},
};
