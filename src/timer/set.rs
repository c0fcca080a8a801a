//! Setting keyed timers.

use bevy_ecs::prelude::*;

use super::{
    Arms, IntoKey, Keyed, Timer, TimerLines, change::change_timer, key_id::KeyId,
    key_table::KeyTable, place::Place,
};
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
    let earlier = id.and_then(|id| table?.get(owner, id));
    if !earlier.is_some_and(|earlier| refresh(world, earlier)) {
        set_keyed(world, owner, key, timer);
    }
}

/// Gives a timer all its firings again, and returns `true` if it is armed.
fn refresh(world: &mut World, entity: Entity) -> bool {
    let Some(timer) = world.get::<Timer>(entity) else {
        return false;
    };
    timer.seat().unwrite();
    let times = timer.max_firings();
    let Place::Armed(clock, key) = timer.seat().place() else {
        return change_timer(world, entity, |timer| timer.refresh()).is_ok();
    };
    // The deadline stays, so pending timers need not be armed first to keep their order.
    let lines = world.get_resource_mut::<TimerLines>();
    let armed = lines.and_then(|lines| lines.into_inner().timer_mut(clock, key));
    armed.map(|armed| armed.set_left(times)).is_some()
}
