//! How a world of a group ended.

use alloc::{borrow::Cow, string::String, vec::Vec};

use bevy_app::AppExit;

use crate::message::Undelivered;

/// The end of a world of [`WorldGroups`](crate::WorldGroups).
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
    /// The messages that were sent to or in the world, but not delivered.
    ///
    /// Messages without followers are not included. Neither are requests that the world received
    /// but did not reply to: they time out in the asking world.
    pub undelivered: Vec<Undelivered>,
}
