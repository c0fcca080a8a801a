//! A member of a group behind a link.

use alloc::{boxed::Box, collections::VecDeque};

use super::{
    address::Address,
    link::Link,
    parcel::{Parcel, Refused},
};
use crate::sync::{Mutex, MutexGuard, PoisonError};

/// The other end of a link.
pub(super) struct Remote {
    link: Box<dyn Link>,
    notices: Mutex<Notices>,
}

/// Keys that a link has yet to learn of.
struct Notices {
    /// In the order of the changes.
    waiting: VecDeque<Notice>,
    /// Whether a thread is telling the link.
    is_telling: bool,
}

/// A change of the keys on this side.
#[derive(Clone)]
pub(super) enum Notice {
    Bind(Address),
    Unbind(Address),
}

impl Remote {
    /// Wraps a link, with the notices that it gets first.
    pub(super) fn new(link: impl Link, waiting: VecDeque<Notice>) -> Self {
        let notices = Notices {
            waiting,
            is_telling: false,
        };
        Self {
            link: Box::new(link),
            notices: Mutex::new(notices),
        }
    }

    pub(super) fn send(&self, parcel: Parcel) -> Result<(), Refused> {
        self.link.send(parcel)
    }

    /// Puts a notice behind the others. [`tell`](Self::tell) passes it on.
    pub(super) fn push(&self, notice: Notice) {
        self.lock().waiting.push_back(notice);
    }

    /// Passes the notices to the link, in order and without a lock. Returns at once if another
    /// thread is doing this: it also passes on the notices that are pushed meanwhile.
    pub(super) fn tell(&self) {
        while let Some((notice, _telling)) = self.next() {
            match notice {
                Notice::Bind(address) => self.link.bind(&address),
                Notice::Unbind(address) => self.link.unbind(&address),
            }
        }
    }

    fn next(&self) -> Option<(Notice, Telling<'_>)> {
        let mut notices = self.lock();
        if notices.is_telling {
            return None;
        }
        let notice = notices.waiting.pop_front()?;
        notices.is_telling = true;
        Some((notice, Telling(self)))
    }

    fn lock(&self) -> MutexGuard<'_, Notices> {
        self.notices.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Lets other threads tell the link when it is dropped, also if the link panics.
struct Telling<'a>(&'a Remote);

impl Drop for Telling<'_> {
    fn drop(&mut self) {
        self.0.lock().is_telling = false;
    }
}
