//! Setting keyed timers.

use bevy_ecs::{
    bundle::InsertMode, change_detection::MaybeLocation, prelude::*, system::entity_command,
};

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

/// Returns the components of a timer that belongs to `owner`, under a key.
pub(crate) fn keyed(owner: Entity, key: impl IntoKey, timer: impl TimerBundle) -> impl Bundle {
    let keyed = Keyed::new(key.name());
    (key.into_component(), OwnedBy(owner), keyed, timer)
}

/// Returns the command that makes an entity a timer of `owner` under a key. Bevy notes the caller as
/// the place that inserts the timer.
#[track_caller]
pub(crate) fn arm_keyed(
    owner: Entity,
    key: impl IntoKey,
    timer: impl TimerBundle,
) -> impl EntityCommand {
    entity_command::insert(keyed(owner, key, timer), InsertMode::Replace)
}

/// Spawns a timer that belongs to an entity, under a key. The earlier timer with this key, if any, is
/// cancelled.
#[track_caller]
pub(crate) fn set_keyed(owner: &mut EntityWorldMut, key: impl IntoKey, timer: impl TimerBundle) {
    if size_of::<MaybeLocation>() > 0 {
        // The closure would hide the caller.
        let arm = arm_keyed(owner.id(), key, timer);
        return owner.world_scope(|world| spawn(world, arm));
    }
    let timer = keyed(owner.id(), key, timer);
    owner.world_scope(|world| {
        world.spawn(timer);
        world.flush();
    });
}

fn spawn(world: &mut World, arm: impl EntityCommand) {
    arm.apply(world.spawn_empty());
    world.flush();
}

/// Refreshes the timer of `owner` with this key, or sets it if it is not armed.
pub(crate) fn refresh_keyed(world: &mut World, owner: Entity, key: &str, arm: impl EntityCommand) {
    let table = world.get_resource::<KeyTable>();
    let id = KeyId::find(key);
    let earlier = id.and_then(|id| table?.get(owner, id));
    if !earlier.is_some_and(|earlier| refresh(world, earlier)) {
        spawn(world, arm);
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
