//! Setting keyed timers.

use bevy_ecs::prelude::*;

use super::{IntoKey, Keyed, Timer, change::change_timer, key_id::KeyId, key_table::KeyTable};
use crate::owner::OwnedBy;

/// A [`Timer`], or a tuple of a `Timer` and other bundles.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a timer",
    label = "expected a `Timer`, or a tuple that starts with a `Timer`"
)]
pub trait TimerBundle: Bundle {}

impl TimerBundle for Timer {}

macro_rules! impl_timer_bundle {
    ($($bundle:ident)*) => {
        impl<$($bundle: Bundle),*> TimerBundle for (Timer, $($bundle,)*) {}
    };
}

impl_timer_bundle!(A);
impl_timer_bundle!(A B);
impl_timer_bundle!(A B C);
impl_timer_bundle!(A B C D);
impl_timer_bundle!(A B C D E);
impl_timer_bundle!(A B C D E F);

/// Spawns a timer that belongs to `owner`, under a key. The earlier timer with this key, if any, is
/// cancelled.
pub(crate) fn set_keyed(
    world: &mut World,
    owner: Entity,
    key: impl IntoKey,
    timer: impl TimerBundle,
) {
    let keyed = Keyed::new(key.name());
    world.spawn((key.into_component(), OwnedBy(owner), keyed, timer));
    world.flush();
}

/// Refreshes the timer of `owner` with this key, or sets it if it is not armed.
pub(crate) fn refresh_keyed(
    world: &mut World,
    owner: Entity,
    key: impl IntoKey,
    timer: impl TimerBundle,
) {
    let table = world.get_resource::<KeyTable>();
    let id = KeyId::find(&key.name());
    let armed = id.and_then(|id| table?.get(owner, id));
    let refreshed = armed.map(|armed| change_timer(world, armed, |timer| timer.refresh()));
    if !matches!(refreshed, Some(Ok(()))) {
        set_keyed(world, owner, key, timer);
    }
}
