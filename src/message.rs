//! The [`MessageComponent`]: per-entity callbacks that run once per message.
//!
//! A message goes down this list of modules, from its topic to its delivery.

mod packet;
mod topic;

mod request;

mod letter;

mod batch;
mod broadcast;
mod stats;

mod mailbag;

mod inbox;
mod outbox;

mod context;
mod directory;

mod followers;

mod written;

mod component;

mod ask;

mod deliver;

pub(crate) use ask::ask;
pub use component::MessageComponent;
pub(crate) use component::follow;
pub use context::MessageContext;
pub(crate) use deliver::{close_inbox, deliver_messages};
pub(crate) use directory::Directory;
pub(crate) use followers::Followers;
pub(crate) use inbox::Inbox;
pub use inbox::{MessageSender, SendError};
pub(crate) use letter::Letter;
pub use letter::{Delivery, Undelivered};
pub(crate) use mailbag::{Mailbag, reply, send};
pub use outbox::Outbox;
pub use packet::Packet;
#[cfg(feature = "worlds")]
pub use request::RefusalReason;
pub use request::{NoAnswer, ReplyError, ReplyTo, Request};
pub use stats::MessageStats;
pub use topic::Payload;
pub(crate) use written::Written;
#[cfg(feature = "worlds")]
pub(crate) use {
    ask::{asker_of, give_up, open},
    deliver::hand_back,
    directory::KeyListener,
    letter::Recipient,
    request::{PostReply, Role},
    topic::Topic,
};
