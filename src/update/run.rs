//! The run: one callback at a time, in order.

use alloc::{collections::BTreeMap, vec::Vec};

use bevy_ecs::{component::ComponentId, prelude::*};
use bevy_platform::sync::Arc;

use super::{Callback, UpdateContext};
#[cfg(feature = "worlds")]
use crate::clock::ClockId;
use crate::{
    call::{EntityCaller, PumpState, pump},
    clock::{Age, Cadence, Clock, ClockKey, ClockTable, Tick},
    owner::OwnedBy,
    pause::{Paused, PausedBy},
    roster::{Intake, Roster},
};

/// The update components of a world, in the order of their calls.
#[derive(Resource)]
pub(crate) struct UpdateRosters {
    /// By cadence, then by priority.
    rosters: [BTreeMap<i32, Roster<Member>>; 2],
    /// Callbacks of this priority or a higher one are not called.
    pub(super) paused_from: Option<i32>,
    marks: Marks,
}

/// The components that change what a call does.
#[derive(Clone, Copy)]
struct Marks {
    owned: ComponentId,
    paused: [ComponentId; 2],
    clock: ComponentId,
}

#[derive(Clone)]
pub(super) struct Member {
    /// The entity with the component.
    pub(super) entity: Entity,
    pub(super) callback: Arc<Callback>,
    pub(super) clock: ClockKey,
    pub(super) age: Age,
}

/// The parameters of a run. The cursor is the position after the last call of a run that has not
/// come to its end.
pub(crate) type UpdateState = PumpState<(
    Res<'static, UpdateRosters>,
    Res<'static, Intake>,
    Res<'static, ClockTable>,
    Local<'static, Option<Cursor>>,
)>;

/// Calls the callbacks on the clocks of a cadence.
pub(crate) fn run_updates(world: &mut World, cadence: Cadence, state: &mut UpdateState) -> Result {
    // Commands left behind by a caught panic.
    state.apply(world);
    if world.resource::<UpdateRosters>().is_empty(cadence) {
        return Ok(());
    }
    // After a panic, the run starts behind the callback that panicked, and ends with it. Otherwise a
    // callback that panics in every run would keep those behind it from their calls.
    let (_, (.., reached)) = state.get_mut(world)?;
    let start = reached.unwrap_or(Cursor::FIRST);
    run_span(world, cadence, state, start, None)?;
    run_span(world, cadence, state, Cursor::FIRST, Some(start))?;
    let (_, (.., mut reached)) = state.get_mut(world)?;
    *reached = None;
    Ok(())
}

/// Calls the callbacks from a position on, in order, up to another position if there is one.
fn run_span(
    world: &mut World,
    cadence: Cadence,
    state: &mut UpdateState,
    mut next: Cursor,
    end: Option<Cursor>,
) -> Result {
    let is_over = |cursor| end.is_some_and(|end| cursor >= end);
    if is_over(next) {
        return Ok(());
    }
    pump(
        world,
        state,
        |caller, (rosters, intake, table, mut reached)| {
            let mut ticks = Ticks::new(&table);
            let joined = intake.joined(cadence.into());
            for (cursor, member) in rosters.from(cadence, next, joined) {
                if is_over(cursor) {
                    return;
                }
                next = cursor.next();
                *reached = Some(next);
                rosters.call(member, caller, &mut ticks);
                if caller.has_commands() {
                    return;
                }
            }
        },
    )
}

/// Returns `true` if the next run would call a callback. Callbacks inserted since the last run count.
///
/// Callbacks on the descendants of the game clock and the fixed clock do not count if the game `is_paused`.
#[cfg(feature = "worlds")]
pub(crate) fn has_callbacks(world: &mut World, state: &mut UpdateState, is_paused: bool) -> bool {
    const CADENCES: [Cadence; 2] = [Cadence::Frame, Cadence::FixedStep];

    let rosters = world.get_resource::<UpdateRosters>();
    if rosters.is_none_or(|rosters| CADENCES.iter().all(|&cadence| rosters.is_empty(cadence))) {
        return false;
    }
    let Ok((caller, (rosters, _, table, _))) = state.get_mut(world) else {
        return false;
    };
    let is_running = |member: &Member| match table.running_root(member.clock, member.age) {
        Some(ClockId::Virtual | ClockId::Fixed) => !is_paused,
        root => root.is_some(),
    };
    let members = CADENCES.iter().flat_map(|&cadence| {
        let members = rosters.from(cadence, Cursor::FIRST, u64::MAX);
        members.map(|(_, member)| member)
    });
    let mut enabled = members.filter(|member| rosters.target(member, &caller).is_some());
    enabled.any(is_running)
}

/// A position in the order of calls: by priority, then by number.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Cursor {
    priority: i32,
    number: u64,
}

impl Cursor {
    const FIRST: Self = Self {
        priority: i32::MIN,
        number: 0,
    };

    fn next(self) -> Self {
        Self {
            number: self.number + 1,
            ..self
        }
    }
}

impl UpdateRosters {
    pub(crate) fn new(world: &mut World) -> Self {
        Self {
            rosters: Default::default(),
            paused_from: None,
            marks: Marks {
                owned: world.register_component::<OwnedBy>(),
                paused: [
                    world.register_component::<Paused>(),
                    world.register_component::<PausedBy>(),
                ],
                clock: world.register_component::<Clock>(),
            },
        }
    }

    fn is_empty(&self, cadence: Cadence) -> bool {
        let mut rosters = self.rosters[cadence as usize].values();
        rosters.all(Roster::is_empty)
    }

    /// Adds a member with a number above all others.
    pub(super) fn add(&mut self, cadence: Cadence, priority: i32, number: u64, member: Member) {
        let rosters = &mut self.rosters[cadence as usize];
        if !rosters.contains_key(&priority) {
            let vacant = rosters.values().filter(|roster| roster.is_empty()).count();
            if 2 * vacant > rosters.len() {
                rosters.retain(|_, roster| !roster.is_empty());
            }
        }
        rosters.entry(priority).or_default().add(number, member);
    }

    /// Removes a member.
    pub(super) fn leave(&mut self, cadence: Cadence, priority: i32, number: u64) {
        let rosters = &mut self.rosters[cadence as usize];
        if let Some(roster) = rosters.get_mut(&priority) {
            roster.leave(number);
        }
    }

    /// Removes the members whose clock has changed its cadence. Returns them in the order of their
    /// calls, each with its new cadence and its priority.
    pub(super) fn take_moved(&mut self, table: &ClockTable) -> Vec<(Cadence, i32, Member)> {
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

    /// Returns the members that have joined, from a cursor on, up to the first paused priority.
    fn from(
        &self,
        cadence: Cadence,
        from: Cursor,
        joined: u64,
    ) -> impl Iterator<Item = (Cursor, &Member)> {
        let rosters = self.rosters[cadence as usize].range(from.priority..);
        let is_running =
            move |&(priority, _): &(&i32, _)| self.paused_from.is_none_or(|from| *priority < from);
        rosters
            .take_while(is_running)
            .flat_map(move |(&priority, roster)| {
                let is_begun = priority == from.priority;
                let first = if is_begun { from.number } else { 0 };
                let members = roster.members(first..joined);
                members.map(move |(number, member)| (Cursor { priority, number }, member))
            })
    }

    /// Calls the callback of a member, unless it is paused or its clock stands still.
    fn call(&self, member: &Member, caller: &mut EntityCaller, ticks: &mut Ticks) {
        let Some(target) = self.target(member, caller) else {
            return;
        };
        let Some(tick) = ticks.of(member) else {
            return;
        };
        let Some((entity, commands)) = caller.get_mut(target) else {
            return;
        };
        if entity.archetype().contains(self.marks.clock) {
            // The callback may stop the clock on its entity.
            ticks.last = None;
        }
        let result = (member.callback)(UpdateContext {
            entity,
            commands,
            update_entity: member.entity,
            delta: tick.delta,
            elapsed: tick.elapsed,
            clock: tick.clock,
        });
        caller.report("UpdateComponent", target, result);
    }

    /// Returns the entity that the callback of a member belongs to, unless it is paused.
    fn target(&self, member: &Member, caller: &EntityCaller) -> Option<Entity> {
        let is_paused = |entity: EntityRef| {
            let mut paused = self.marks.paused.iter();
            paused.any(|&paused| entity.archetype().contains(paused))
        };
        let entity = caller.get(member.entity)?;
        if is_paused(entity) {
            return None;
        }
        if !entity.archetype().contains(self.marks.owned) {
            return Some(member.entity);
        }
        let &OwnedBy(owner) = entity.get()?;
        (!is_paused(caller.get(owner)?)).then_some(owner)
    }
}

/// The time on the clocks. Most callbacks are on the same clock as the previous one.
struct Ticks<'a> {
    table: &'a ClockTable,
    last: Option<((ClockKey, Age), Option<Tick>)>,
}

impl<'a> Ticks<'a> {
    fn new(table: &'a ClockTable) -> Self {
        Self { table, last: None }
    }

    /// Returns the time on the clock of a member, or `None` if the clock is stopped.
    fn of(&mut self, member: &Member) -> Option<Tick> {
        let clock = (member.clock, member.age);
        if let Some((last, tick)) = self.last
            && last == clock
        {
            return tick;
        }
        let tick = self.table.tick(member.clock, member.age);
        self.last = Some((clock, tick));
        tick
    }
}
