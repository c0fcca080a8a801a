//! Warnings about what is probably a mistake: a timer that is re-armed in every frame, an owner whose
//! timers keep growing in number, and messages that pile up while the game is paused.
//!
//! Each kind is reported once per world. The watches take constant memory, and nothing runs in a frame
//! without cancellations.

mod growth;
mod rearmed;

use alloc::{format, string::String, vec::Vec};
use core::any::type_name;

use bevy_ecs::{
    change_detection::MaybeLocation, message::Message, prelude::*,
    relationship::RelationshipTarget, world::DeferredWorld,
};

use super::{Arms, Keyed, Timer, TimerLines, key_table::KeyTable, setting::Setting};
use crate::{
    call::report,
    clock::ClockTable,
    owner::{Owned, owner_of},
};
use growth::GrowthWatch;
pub(super) use rearmed::{RearmWatch, Rearmed};

/// The owners that grow, and the warnings that were given.
#[derive(Resource, Debug, Default)]
pub(crate) struct Suspects {
    growth: GrowthWatch,
    warned: Vec<Kind>,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Kind {
    Rearmed,
    Growth,
    Backlog,
}

/// Warns of a timer that was re-armed in many frames in a row, if it would have fired by now.
pub(super) fn check_rearmed(world: &mut World, table: &ClockTable, frame: u64, suspect: Rearmed) {
    if let Some(timer) = find(world, suspect)
        && is_overdue(world, table, frame, timer) == Some(true)
        && warn_once(world, Kind::Rearmed)
    {
        let timer = describe(world, timer);
        let frames = rearmed::FRAMES;
        let warning = format!(
            "{timer} never fires: for more than {frames} frames, a new `Timer` has replaced it in \
             every frame. Arm it once. To postpone it in every frame, use `change_timer` or \
             `change_own_timer`"
        );
        report::<Timer>(world, BevyError::warning(warning));
    }
}

/// Returns the entity that has a timer now.
fn find(world: &World, timer: Rearmed) -> Option<Entity> {
    match timer {
        Rearmed::Entity(entity) => Some(entity),
        Rearmed::Key(owner, key) => world.get_resource::<KeyTable>()?.get(owner, key),
    }
}

fn is_overdue(world: &mut World, table: &ClockTable, frame: u64, timer: Entity) -> Option<bool> {
    let (clock, key) = world.get::<Timer>(timer)?.seat().armed()?;
    let now = table.run_time(clock)?;
    let mut lines = world.resource_mut::<TimerLines>();
    let deadline = lines.get(clock)?.deadline(key, now)?;
    // A timer that is due fires in this run.
    Some(deadline > now && lines.cancelled.rearmed.is_overdue(frame, now, deadline))
}

/// Warns of an owner that keeps growing. Its newest timer is on `entity`.
pub(crate) fn check_growth(world: &mut DeferredWorld, entity: Entity) {
    let Ok(owner) = world.get_entity(entity).map(owner_of) else {
        return;
    };
    let len = world.get::<Owned>(owner).map_or(0, Owned::len);
    let frame = world.get_resource::<ClockTable>().map(ClockTable::frame);
    if let (Some(frame), Some(mut suspects)) = (frame, world.get_resource_mut::<Suspects>())
        && suspects.growth.note(owner, len, frame)
    {
        world.commands().queue(move |world: &mut World| {
            if warn_once(world, Kind::Growth) {
                warn_growth(world, (owner, len), entity);
            }
        });
    }
}

fn warn_growth(world: &World, (owner, len): (Entity, usize), newest: Entity) {
    let name = name(world, owner);
    let newest = describe(world, newest);
    let warning = format!(
        "{name} owns {len} timers and callbacks, and gets more and more: set a timer under a key, \
         so that it replaces the one before, or despawn those that are no longer needed. The \
         newest is {newest}"
    );
    report::<Owned>(world, BevyError::warning(warning));
}

/// Warns of messages that pile up while the game is paused. The last one is about `timer`.
pub(super) fn warn_backlog<M: Message>(world: &mut World, len: usize, timer: Option<Entity>) {
    if warn_once(world, Kind::Backlog) {
        let last = timer.map_or_else(String::new, |timer| {
            format!(". The last one is of {}", describe(world, timer))
        });
        let name = type_name::<M>().rsplit("::").next();
        let name = name.unwrap_or_default();
        let warning = format!(
            "{len} messages `{name}` have piled up while the game is paused, and the older ones are \
             dropped: systems in the fixed schedule miss them. Pause the timers as well, or use an \
             observer{last}"
        );
        report::<M>(world, BevyError::warning(warning));
    }
}

/// Returns `true` at the first warning of a kind.
fn warn_once(world: &mut World, kind: Kind) -> bool {
    let suspects = world.get_resource_mut::<Suspects>();
    suspects.is_some_and(|mut suspects| {
        let is_first = !suspects.warned.contains(&kind);
        if is_first {
            suspects.warned.push(kind);
        }
        is_first
    })
}

/// Describes the timer on an entity: its name, its key, its owner, its clock, and the place in the
/// code that armed it if Bevy's feature `track_location` is on.
fn describe(world: &World, entity: Entity) -> String {
    let mut text = name(world, entity);
    let Ok(entity_ref) = world.get_entity(entity) else {
        return text;
    };
    if let Some(key) = entity_ref.get::<Keyed>() {
        text += &format!(" with the key {:?}", key.name());
    }
    let owner = owner_of(entity_ref);
    if owner != entity {
        text += &format!(" of {}", name(world, owner));
    }
    let Some(timer) = entity_ref.get_ref::<Timer>() else {
        return text + &armed_at("spawned", entity_ref.spawned_by());
    };
    if let Some(setting) = Setting::of::<Timer>(world, entity) {
        text += &format!(" on the clock {}", setting.clock);
    }
    text + &armed_at("armed", timer.changed_by())
}

fn armed_at(verb: &str, location: MaybeLocation) -> String {
    let location = location.into_option();
    location.map_or_else(String::new, |at| format!(", {verb} at {at}"))
}

/// Returns the name of an entity, if it has one, and the entity.
fn name(world: &World, entity: Entity) -> String {
    match world.get::<Name>(entity) {
        Some(name) => format!("{name:?} ({entity})"),
        None => format!("{entity}"),
    }
}
