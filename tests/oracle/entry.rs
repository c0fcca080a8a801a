//! The observations on both sides. Entities are numbers, in the order of spawning. Times are in
//! nanoseconds.

use bevy_due::CancelReason;

use crate::op::Topic;

/// The number of an entity, in the order of spawning.
pub(crate) type Id = usize;

/// An entity that does not exist.
pub(crate) const NOWHERE: Id = Id::MAX;

/// A clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Named {
    Real,
    Virtual,
    Frames,
    Fixed,
    Own(Id),
}

/// An event.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Entry {
    /// An observer, or a reader of messages, got a `TimerFired`.
    Fired(Firing),
    /// An observer got an `OwnedTimerFired`: the timer and the owner.
    Owned(Id, Id),
    /// A named handler was called: the timer and its count.
    Acted(Id, u64),
    /// An observer, or a reader of messages, got a `TimerCancelled`.
    Cancelled(Cancel),
    /// A call found no such timer.
    Refused,
    Called(Call),
    Heard(Hearing),
    /// The result of a fast-forward: the numbers of firings, missed deadlines and cancellations, or
    /// `None` for an error or a panic.
    Forwarded(Option<[u64; 3]>),
    /// The distance of a fast-forward to the next deadline, or `None` for an error or a panic.
    ForwardedBy(Option<Option<u64>>),
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Firing {
    pub(crate) entity: Id,
    pub(crate) owner: Id,
    pub(crate) key: Option<&'static str>,
    pub(crate) clock: Named,
    pub(crate) deadline: u64,
    pub(crate) lateness: u64,
    pub(crate) count: u64,
    pub(crate) missed: u64,
    pub(crate) is_last: bool,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Cancel {
    pub(crate) entity: Id,
    pub(crate) owner: Id,
    pub(crate) key: Option<&'static str>,
    pub(crate) clock: Named,
    pub(crate) count: u64,
    pub(crate) left: Option<u32>,
    pub(crate) remaining: u64,
    pub(crate) reason: CancelReason,
}

/// A call of an update callback.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Call {
    pub(crate) entity: Id,
    pub(crate) target: Id,
    pub(crate) clock: Named,
    pub(crate) delta: u64,
    pub(crate) elapsed: u64,
}

/// A call of a message callback.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Hearing {
    pub(crate) entity: Id,
    pub(crate) topic: Topic,
    /// The number of the message, in the order of sending. Zero for `NoAnswer`.
    pub(crate) serial: u64,
    pub(crate) request: Option<Id>,
    pub(crate) asks: bool,
    pub(crate) elapsed: u64,
}

/// The status of a timer.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Status {
    pub(crate) entity: Id,
    pub(crate) owner: Id,
    pub(crate) clock: Named,
    pub(crate) deadline: u64,
    pub(crate) remaining: u64,
    pub(crate) elapsed: u64,
    pub(crate) wait: u64,
    pub(crate) interval: Option<u64>,
    pub(crate) count: u64,
    pub(crate) left: Option<u32>,
    pub(crate) paused: bool,
}

/// The time within which a timer is due soon, in units.
pub(crate) const SOON: u64 = 20;

/// Everything that can be seen between two frames.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct View {
    /// The events since the previous view.
    pub(crate) log: Vec<Entry>,
    /// The firings and cancellations that were written as messages since the previous view.
    pub(crate) fired: Vec<Entry>,
    pub(crate) cancelled: Vec<Entry>,
    pub(crate) alive: Vec<Id>,
    pub(crate) timers: Vec<Status>,
    /// The entities of all timers.
    pub(crate) armed: Vec<Id>,
    /// Each clock with its next deadline, and with the timers that are due soon, in order.
    pub(crate) plans: Vec<(Named, Option<u64>, Vec<Id>)>,
    /// The timers of each owner that can be found by a key: owner, key, timer.
    pub(crate) keyed: Vec<(Id, &'static str, Id)>,
    /// The entities of each owner, in order.
    pub(crate) owned: Vec<(Id, Vec<Id>)>,
    /// The entities with a parent in Bevy's hierarchy.
    pub(crate) children: Vec<(Id, Id)>,
    pub(crate) lifetimes: Vec<(Id, u64)>,
    /// Each clock with its time at this moment, and the time that its component shows.
    pub(crate) clocks: Vec<(Named, u64)>,
    /// The numbers of firings, missed deadlines and cancellations in the last run per frame, and in
    /// the last run per fixed step.
    pub(crate) runs: [[u64; 3]; 2],
    /// The numbers of delivered, undeliverable and late messages.
    pub(crate) messages: [u64; 3],
}

impl View {
    /// Sorts the cancellations that follow each other. The order in which the timers of a clock are
    /// cancelled is no promise.
    pub(crate) fn sort(&mut self) {
        for log in [&mut self.log, &mut self.cancelled] {
            let is_cancel = |entry: &Entry| matches!(entry, Entry::Cancelled(_));
            for block in log.chunk_by_mut(|a, b| is_cancel(a) && is_cancel(b)) {
                block.sort_by_key(|entry| format!("{entry:?}"));
            }
        }
    }
}
