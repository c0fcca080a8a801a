//! The mark of the timers that the crate arms for its features.

use bevy_ecs::prelude::*;
#[cfg(feature = "bevy_reflect")]
use bevy_ecs::reflect::ReflectComponent;
#[cfg(feature = "bevy_reflect")]
use bevy_reflect::prelude::*;

use super::{Keyed, insert_for};

/// A timer that the crate itself arms for a feature. Its owner is not told of its events.
#[derive(Component, Clone, Debug, PartialEq, Eq)]
#[component(immutable, on_insert = insert_for::on_insert, on_remove = insert_for::on_remove)]
#[cfg_attr(
    feature = "bevy_reflect",
    derive(Reflect),
    type_path = "bevy_due",
    reflect(Component, Clone, Debug, PartialEq)
)]
#[cfg_attr(feature = "serialize", derive(serde::Serialize, serde::Deserialize))]
pub(crate) enum CrateTimer {
    /// Commands that run later.
    Commands,
    /// The time of a component on the owner. The key is the type name of the component, and also the
    /// key of the timer.
    InsertFor(Keyed),
    /// The time of a component that was removed early.
    Over,
}
