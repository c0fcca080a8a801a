//! Why a message could not be sent.

use core::fmt;

/// A message or function that could not be sent, with the reason.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum SendError<T> {
    /// Too many messages wait for the next frame. See
    /// [`DuePlugin::inbox_capacity`](crate::DuePlugin::inbox_capacity) and
    /// [`inbox_bytes`](crate::DuePlugin::inbox_bytes) for messages from other threads, and
    /// [`mailbox_capacity`](crate::DuePlugin::mailbox_capacity) for messages of the world itself.
    Full(T),
    /// The world is gone, or its inbox is closed.
    Closed(T),
}

impl<T> SendError<T> {
    /// Returns the message or function that was not sent.
    pub fn into_inner(self) -> T {
        match self {
            Self::Full(refused) | Self::Closed(refused) => refused,
        }
    }

    /// Turns what was not sent into something else.
    pub(crate) fn map<U>(self, refused: impl FnOnce(T) -> U) -> SendError<U> {
        match self {
            Self::Full(value) => SendError::Full(refused(value)),
            Self::Closed(value) => SendError::Closed(refused(value)),
        }
    }
}

impl<T> fmt::Debug for SendError<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Full(_) => "Full(..)",
            Self::Closed(_) => "Closed(..)",
        })
    }
}

impl<T> fmt::Display for SendError<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Full(_) => {
                "too many messages wait: retry in the next frame, or raise \
                 `DuePlugin::inbox_capacity` and `inbox_bytes` for messages from other threads, \
                 `DuePlugin::mailbox_capacity` for others"
            }
            Self::Closed(_) => "the world has ended or closed its inbox",
        })
    }
}

impl<T> core::error::Error for SendError<T> {}
