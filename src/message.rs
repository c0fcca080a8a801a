//! Messages: the [`MessageComponent`] calls a per-entity callback once per message.
//!
//! [`MessageCommandsExt`], [`MessageEntityCommandsExt`] and [`MessageWorldExt`] send. The
//! [guide](crate::guide::messages) shows all of it.

mod component;
mod copy;
mod deliver;
mod followers;
mod mail;
mod mailbag;
mod queue;
mod send;
mod sender;
mod written;

mod request;

#[cfg(feature = "serialize")]
mod codec;
mod directory;
#[cfg(feature = "serialize")]
mod waiting;

#[cfg(feature = "worlds")]
pub use request::RefusalReason;
pub use {
    component::{MessageComponent, MessageContext},
    deliver::MessageStats,
    mail::{Delivery, Packet, Payload},
    queue::Letter,
    request::{NoAnswer, ReplyError, ReplyTo, Request},
    send::{MessageCommandsExt, MessageEntityCommandsExt, MessageWorldExt, Outbox, SendError},
    sender::MessageSender,
};

#[cfg(feature = "serialize")]
pub(crate) use {
    codec::{Encoder, MessageCodecs},
    component::turn_of,
    directory::{name_of_request, request_with_name},
    mail::{MailRef, name_of_recipients},
    request::Route,
    waiting::{deliver_soon, take_letters, visit_letters},
};
pub(crate) use {
    component::follow, copy::MailCopy, deliver::deliver_messages, directory::MovedRequest,
    mailbag::Mailbag, request::report_time_out, sender::Inbox,
};
#[cfg(feature = "worlds")]
pub(crate) use {
    deliver::{DeliveryState, WaitingMail, close_inbox, deliver_arrivals, hand_back, has_mail},
    directory::KeyListener,
    mail::Topic,
    request::{asker_of, open, refuse},
    send::send_urgently,
};
#[cfg(any(feature = "worlds", feature = "serialize"))]
pub(crate) use {
    mail::{Recipient, Role},
    request::RemoteAsker,
};
