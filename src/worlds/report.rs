//! How a world of a group ended.

use alloc::{borrow::Cow, string::String, vec::Vec};

use bevy_app::AppExit;

use crate::message::Letter;

/// The end of a world of [`WorldGroups`](crate::worlds::WorldGroups).
#[derive(Debug)]
#[non_exhaustive]
pub struct WorldReport {
    /// The group of the world.
    pub group: Cow<'static, str>,
    /// The index of the world in its group, counted from zero. Indices are not reused.
    pub nth: usize,
    /// The exit status, if the world ended by itself.
    pub exit: Option<AppExit>,
    /// The panic message, if the world panicked.
    pub panic: Option<String>,
    /// Whether the world still runs: it did not return within the limit of
    /// [`stop_within`](crate::worlds::WorldGroups::stop_within), and was left behind.
    ///
    /// It has left its group, but keeps its thread and memory. It ends when it returns, and takes its
    /// undelivered messages with it.
    pub is_left_behind: bool,
    /// The messages that were sent to or in the world, but not delivered.
    ///
    /// Messages without followers are not included. Neither are requests that the world received
    /// but did not reply to: they time out in the asking world.
    pub undelivered: Vec<Letter>,
}

impl WorldReport {
    pub(super) fn new(group: Cow<'static, str>, nth: usize) -> Self {
        Self {
            group,
            nth,
            exit: None,
            panic: None,
            is_left_behind: false,
            undelivered: Vec::new(),
        }
    }
}
