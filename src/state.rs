//! The state of the crate, to save it, to move it to another world, and to go back to it.

#[cfg_attr(
    not(feature = "serialize"),
    allow(dead_code, reason = "only a component that is serialized is saved")
)]
mod component;
#[cfg(feature = "serialize")]
mod letter;
#[cfg(feature = "serialize")]
pub mod moving;
mod part;
pub mod rollback;
#[cfg(feature = "serialize")]
pub mod save;

use bevy_ecs::prelude::*;

use crate::owner::OwnedBy;

/// Returns `true` if an entity belongs to nobody, and other worlds do not know it.
fn is_free(world: &World, entity: Entity) -> bool {
    let Ok(entity) = world.get_entity(entity) else {
        return false;
    };
    #[cfg(feature = "worlds")]
    if entity.contains::<crate::worlds::StableKey>() {
        return false;
    }
    !entity.contains::<OwnedBy>()
}

/// Serialized data, which begins with its version. A version that this release does not know is an error.
#[cfg(feature = "serialize")]
#[derive(Clone, Debug, serde::Serialize, serde::Deserialize)]
enum Versioned<T> {
    /// The form of releases that this one does not read. No such data exists.
    V1(NoData),
    V2(T),
}

#[cfg(feature = "serialize")]
#[derive(Clone, Debug, serde::Serialize, serde::Deserialize)]
enum NoData {}

#[cfg(feature = "serialize")]
impl<T> core::ops::Deref for Versioned<T> {
    type Target = T;

    fn deref(&self) -> &T {
        match self {
            Self::V1(never) => match *never {},
            Self::V2(data) => data,
        }
    }
}

#[cfg(feature = "serialize")]
impl<T> core::ops::DerefMut for Versioned<T> {
    fn deref_mut(&mut self) -> &mut T {
        match self {
            Self::V1(never) => match *never {},
            Self::V2(data) => data,
        }
    }
}

#[cfg(feature = "serialize")]
impl<T> Versioned<T> {
    fn into_inner(self) -> T {
        match self {
            Self::V1(never) => match never {},
            Self::V2(data) => data,
        }
    }
}
