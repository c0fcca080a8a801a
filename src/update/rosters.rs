//! The update components of a world, kept in the order of their calls.

use alloc::{collections::BTreeMap, vec::Vec};
use core::iter;

use bevy_ecs::{component::ComponentId, lifecycle::HookContext, prelude::*, world::DeferredWorld};
use bevy_platform::sync::Arc;

use super::{Callback, UpdateComponent};
use crate::{
    call::warn_of_resource,
    clock::{Age, Cadence, ClockError, ClockKey, ClockTable, find_clock, warn},
    missing_plugin::warn_without_plugin,
    owner::{OwnedBy, owned_by, owner_of},
    pause::{Paused, PausedBy, Pauses, RunsWhilePaused},
    roster::Roster,
};

/// The update components of a world, in the order of their calls.
#[derive(Resource)]
pub(crate) struct UpdateRosters {
    /// By cadence, then by priority.
    rosters: [BTreeMap<i32, Roster<Member>>; 2],
    /// The number of the next new member.
    next: u64,
    /// By cadence: the members with smaller numbers take part. A run begins by moving this mark, so a
    /// component that a handler inserts during a run takes part in the next one.
    pub(super) joined: [u64; 2],
    /// Callbacks of this priority or a higher one are not called.
    paused_from: Option<i32>,
    pub(super) marks: Marks,
}

/// The components that change what a call does.
#[derive(Clone, Copy)]
pub(super) struct Marks {
    pub(super) owned: ComponentId,
    pub(super) paused: ComponentId,
    pub(super) paused_by: ComponentId,
    pub(super) runs_while_paused: [ComponentId; 2],
}

#[derive(Clone)]
pub(super) struct Member {
    /// The entity with the component.
    pub(super) entity: Entity,
    pub(super) callback: Arc<Callback>,
    pub(super) clock: ClockKey,
    pub(super) age: Age,
}

/// A position in the order of calls: the priority, then the number.
pub(super) type Position = (i32, u64);

pub(super) const FIRST: Position = (i32::MIN, 0);

impl UpdateRosters {
    pub(crate) fn new(world: &mut World) -> Self {
        Self {
            rosters: Default::default(),
            next: 0,
            joined: [0; 2],
            paused_from: None,
            marks: Marks {
                owned: world.register_component::<OwnedBy>(),
                paused: world.register_component::<Paused>(),
                paused_by: world.register_component::<PausedBy>(),
                runs_while_paused: [
                    world.register_component::<RunsWhilePaused>(),
                    world.register_component::<Pauses>(),
                ],
            },
        }
    }

    /// Lets all new callbacks take part in a run.
    pub(crate) fn begin(&mut self, cadence: Cadence) {
        self.joined[cadence as usize] = self.next;
    }

    pub(super) fn is_empty(&self, cadence: Cadence) -> bool {
        let mut rosters = self.rosters[cadence as usize].values();
        rosters.all(Roster::is_empty)
    }

    /// Returns the members with numbers below `end`, from a position on, up to the first paused priority.
    pub(super) fn from(
        &self,
        cadence: Cadence,
        (first, number): Position,
        end: u64,
    ) -> impl Iterator<Item = (Position, &Member)> {
        let rosters = self.rosters[cadence as usize].range(first..);
        let is_running =
            move |&(priority, _): &(&i32, _)| self.paused_from.is_none_or(|from| *priority < from);
        rosters
            .take_while(is_running)
            .flat_map(move |(&priority, roster)| {
                let from = if priority == first { number } else { 0 };
                let members = roster.members(from..end);
                members.map(move |(number, member)| ((priority, number), member))
            })
    }

    /// Adds a member with a number above all others.
    fn add(&mut self, cadence: Cadence, priority: i32, number: u64, member: Member) {
        let rosters = &mut self.rosters[cadence as usize];
        if !rosters.contains_key(&priority) {
            let vacant = rosters.values().filter(|roster| roster.is_empty()).count();
            if 2 * vacant > rosters.len() {
                rosters.retain(|_, roster| !roster.is_empty());
            }
        }
        rosters.entry(priority).or_default().add(number, member);
    }

    /// Removes the members whose clock has changed its cadence. Returns them in the order of their
    /// calls, each with its new cadence and its priority.
    fn take_moved(&mut self, table: &ClockTable) -> Vec<(Cadence, i32, Member)> {
        let mut taken = Vec::new();
        for from in [Cadence::Frame, Cadence::FixedStep] {
            for (&priority, roster) in &mut self.rosters[from as usize] {
                let members = roster.members(0..u64::MAX).filter_map(|(number, member)| {
                    let to = table.cadence(member.clock, member.age)?;
                    (to != from).then(|| (number, to, member.clone()))
                });
                for (number, to, member) in members.collect::<Vec<_>>() {
                    roster.leave(number);
                    taken.push((to, priority, member));
                }
            }
        }
        taken
    }
}

pub(super) fn on_insert(world: DeferredWorld, HookContext { entity, .. }: HookContext) {
    enroll(world, entity);
}

/// Adds the `UpdateComponent` of `entity` for the next run. Does nothing without the plugin.
pub(crate) fn enroll(mut world: DeferredWorld, entity: Entity) {
    let Some(update) = world.get::<UpdateComponent>(entity) else {
        return;
    };
    let owner = owner_of(world.entity(entity));
    let (clock, priority, callback) = (update.clock, update.priority, update.callback.clone());
    let clock = match find_clock(&mut world, entity, owner, clock) {
        None => return warn_without_plugin(&mut world, "an `UpdateComponent`"),
        Some(Ok(clock)) => clock,
        Some(Err(unknown)) => return refuse(&mut world, entity, unknown),
    };
    let member = Member {
        entity,
        callback,
        clock: clock.key,
        age: clock.age,
    };
    join(&mut world, clock.cadence, priority, member);
    warn_of_resource::<UpdateComponent>(&mut world, "UpdateComponent", &[entity, owner]);
}

/// Moves the callbacks on an entity, and those that it owns, to the clocks that they are on by default.
pub(crate) fn follow_default_clocks(world: &mut DeferredWorld, entity: Entity) {
    let owned = owned_by(world, entity).into_iter();
    for entity in iter::once(entity).chain(owned) {
        follow_default(world, entity);
    }
}

/// Moves the callbacks on clocks that did not exist at a snapshot to the clocks that they are on by default.
pub(crate) fn leave_later_clocks(world: &mut World, first_later: Age) {
    let Some(rosters) = world.get_resource::<UpdateRosters>() else {
        return;
    };
    let members = rosters.rosters.iter().flat_map(BTreeMap::values);
    let members = members.flat_map(|roster| roster.members(0..u64::MAX));
    let later = members.filter(|(_, member)| member.age >= first_later);
    for entity in later.map(|(_, member)| member.entity).collect::<Vec<_>>() {
        follow_default(&mut world.into(), entity);
    }
}

/// Moves a callback to the clock that it is on by default, unless it chose one.
fn follow_default(world: &mut DeferredWorld, entity: Entity) -> Option<()> {
    let update = world.get::<UpdateComponent>(entity)?;
    let (cadence, number) = update.seat.get().filter(|_| update.clock.is_none())?;
    let priority = update.priority;
    let owner = owner_of(world.entity(entity));
    let found = find_clock(world, entity, owner, None)?.ok()?;
    if found.cadence as u32 != cadence {
        world.get_resource_mut::<ClockTable>()?.note_moved();
    }
    let mut rosters = world.get_resource_mut::<UpdateRosters>()?;
    let roster = rosters.rosters[cadence as usize].get_mut(&priority)?;
    let member = roster.get_mut(number)?;
    (member.clock, member.age) = (found.key, found.age);
    Some(())
}

/// Adds a member behind all others of its priority. It takes part from the next run on.
fn join(world: &mut DeferredWorld, cadence: Cadence, priority: i32, member: Member) {
    let Some(mut rosters) = world.get_resource_mut::<UpdateRosters>() else {
        return;
    };
    let (entity, number) = (member.entity, rosters.next);
    rosters.next += 1;
    rosters.add(cadence, priority, number, member);
    if let Some(update) = world.get::<UpdateComponent>(entity) {
        update.seat.set(cadence as u32, number);
    }
}

/// Removes an `UpdateComponent` whose clock does not exist, unless it has been replaced by then.
fn refuse(world: &mut DeferredWorld, entity: Entity, unknown: ClockError) {
    warn(world, unknown);
    let mut commands = world.commands();
    commands.queue(move |world: &mut World| {
        let update = world.get::<UpdateComponent>(entity);
        if update.is_some_and(|update| update.seat.get().is_none()) {
            world.entity_mut(entity).remove::<UpdateComponent>();
        }
    });
}

/// Moves the callbacks on clocks that have changed their cadence to the other schedule. They join in
/// its next run, as if they had just been inserted.
pub(crate) fn follow_clocks(world: &mut World) {
    let moved = world.resource_scope(|world, mut rosters: Mut<UpdateRosters>| {
        rosters.take_moved(world.resource::<ClockTable>())
    });
    for (cadence, priority, member) in moved {
        join(&mut world.into(), cadence, priority, member);
    }
}

pub(super) fn on_discard(mut world: DeferredWorld, HookContext { entity, .. }: HookContext) {
    let Some(update) = world.get::<UpdateComponent>(entity) else {
        return;
    };
    let (seat, priority) = (update.seat.take(), update.priority);
    if let Some((cadence, number)) = seat
        && let Some(mut rosters) = world.get_resource_mut::<UpdateRosters>()
        && let Some(roster) = rosters.rosters[cadence as usize].get_mut(&priority)
    {
        roster.leave(number);
    }
}

/// Pauses all callbacks of this priority or higher. `None` ends the pause. Does nothing without the
/// plugin.
pub(crate) fn pause_updates_from(world: &mut World, priority: Option<i32>) {
    if let Some(mut rosters) = world.get_resource_mut::<UpdateRosters>() {
        rosters.paused_from = priority;
    }
}
