//! The run: one callback after the other, in order.

use alloc::collections::BTreeMap;

use bevy_ecs::{
    component::ComponentId,
    entity::Entity,
    error::BevyError,
    resource::Resource,
    system::Res,
    world::{EntityRef, World},
};
use bevy_platform::sync::Arc;

use super::{Callback, UpdateComponent, UpdateContext, UpdateOf, UpdatesPaused};
use crate::{
    call::{EntityCaller, PumpState, pump},
    clock::Clock,
    roster::{Intake, Roster},
    timer::{Age, ClockKey, Scope, Tick, Timelines, is_going_on},
};

/// The update components of a world, in the order of their calls.
#[derive(Resource)]
pub(crate) struct UpdateRosters {
    /// Of the frame, and of the fixed schedule.
    rows: [Row; 2],
    /// Callbacks of this priority or a higher one are not called.
    pub(super) paused_from: Option<i32>,
    marks: Marks,
}

/// The update components that run in one schedule.
#[derive(Default)]
struct Row {
    by_priority: BTreeMap<i32, Roster<Member>>,
    intake: Intake,
}

/// The components that change what a call does.
#[derive(Clone, Copy)]
struct Marks {
    owned: ComponentId,
    paused: ComponentId,
    clock: ComponentId,
}

pub(super) struct Member {
    /// The entity with the component.
    pub(super) entity: Entity,
    pub(super) callback: Arc<Callback>,
    pub(super) line: ClockKey,
    pub(super) age: Age,
}

/// The parameters of a run.
pub(crate) type UpdateState = PumpState<(Res<'static, UpdateRosters>, Res<'static, Timelines>)>;

/// Calls the callbacks on the clocks of the frame.
pub(crate) fn run_updates(world: &mut World, state: &mut UpdateState) -> Result<(), BevyError> {
    run(world, Scope::Frame, state)
}

/// Calls the callbacks on the clocks of the fixed schedule.
pub(crate) fn run_fixed_updates(
    world: &mut World,
    state: &mut UpdateState,
) -> Result<(), BevyError> {
    run(world, Scope::Fixed, state)
}

fn run(world: &mut World, scope: Scope, state: &mut UpdateState) -> Result<(), BevyError> {
    let row = row(scope);
    world.resource_mut::<UpdateRosters>().rows[row]
        .intake
        .swap();
    let mut next = Place::FIRST;
    pump(world, state, |caller, (rosters, timelines)| {
        let mut ticks = Ticks::new(&timelines);
        for (place, member) in rosters.from(row, next) {
            next = place.next();
            rosters.call(member, caller, &mut ticks);
            if caller.has_commands() {
                return;
            }
        }
    })
}

/// A place in the order of calls: by priority, then by number.
#[derive(Clone, Copy)]
struct Place {
    priority: i32,
    number: u64,
}

impl Place {
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
            rows: Default::default(),
            paused_from: None,
            marks: Marks {
                owned: world.register_component::<UpdateOf>(),
                paused: world.register_component::<UpdatesPaused>(),
                clock: world.register_component::<Clock>(),
            },
        }
    }

    /// Adds a member for the next run, and returns its row and number.
    pub(super) fn add(&mut self, scope: Scope, priority: i32, member: Member) -> (u32, u64) {
        let row = row(scope);
        let Row {
            by_priority,
            intake,
        } = &mut self.rows[row];
        let number = intake.next_number();
        let roster = by_priority.entry(priority).or_default();
        roster.add(number, member);
        (row as u32, number)
    }

    /// Removes a member.
    pub(super) fn leave(&mut self, row: u32, priority: i32, number: u64) {
        let by_priority = &mut self.rows[row as usize].by_priority;
        if let Some(roster) = by_priority.get_mut(&priority) {
            roster.leave(number);
            if roster.is_empty() {
                by_priority.remove(&priority);
            }
        }
    }

    /// Iterates over the members of a row from a place on, up to the first paused priority.
    fn from(&self, row: usize, from: Place) -> impl Iterator<Item = (Place, &Member)> {
        let Row {
            by_priority,
            intake,
        } = &self.rows[row];
        let rosters = by_priority.range(from.priority..);
        let is_running =
            move |&(priority, _): &(&i32, _)| self.paused_from.is_none_or(|from| *priority < from);
        rosters
            .take_while(is_running)
            .flat_map(move |(&priority, roster)| {
                let is_begun = priority == from.priority;
                let first = if is_begun { from.number } else { 0 };
                let members = roster.members(first..intake.joined());
                members.map(move |(number, member)| (Place { priority, number }, member))
            })
    }

    /// Calls the callback of a member, unless it is paused or its clock stands still.
    fn call(&self, member: &Member, caller: &mut EntityCaller, ticks: &mut Ticks) {
        let Some(target) = self.target(member, caller) else {
            return;
        };
        let Some(tick) = ticks.of(member, caller) else {
            return;
        };
        let Some((entity, commands)) = caller.entity(target) else {
            return;
        };
        if entity.archetype().contains(self.marks.clock) {
            // The callback may stop the clock of its own entity.
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
        caller.check::<UpdateComponent>(target, result);
    }

    /// Returns the entity that the callback of a member belongs to, unless it is paused.
    fn target(&self, member: &Member, caller: &EntityCaller) -> Option<Entity> {
        let is_paused = |entity: EntityRef| entity.archetype().contains(self.marks.paused);
        let entity = caller.look(member.entity)?;
        if is_paused(entity) {
            return None;
        }
        if !entity.archetype().contains(self.marks.owned) {
            return Some(member.entity);
        }
        let &UpdateOf(owner) = entity.get()?;
        (!is_paused(caller.look(owner)?)).then_some(owner)
    }
}

/// What time it is on the clocks. Most callbacks are on the same clock as the one before.
struct Ticks<'a> {
    timelines: &'a Timelines,
    last: Option<((ClockKey, Age), Option<Tick>)>,
}

impl<'a> Ticks<'a> {
    fn new(timelines: &'a Timelines) -> Self {
        Self {
            timelines,
            last: None,
        }
    }

    /// Returns what time it is on the clock of a member, unless the clock stands still.
    fn of(&mut self, member: &Member, caller: &EntityCaller) -> Option<Tick> {
        let line = (member.line, member.age);
        if let Some((last, tick)) = self.last
            && last == line
        {
            return tick;
        }
        let is_running = |clock| caller.look(clock).is_some_and(is_going_on);
        let tick = self.timelines.tick_of(member.line, member.age, is_running);
        self.last = Some((line, tick));
        tick
    }
}

fn row(scope: Scope) -> usize {
    usize::from(scope == Scope::Fixed)
}
