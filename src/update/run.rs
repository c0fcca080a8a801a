//! The run: one callback at a time, in order.

use bevy_ecs::{
    archetype::{Archetype, ArchetypeId},
    prelude::*,
};
use bevy_time::{Time, Virtual};

use super::{
    UpdateContext,
    rosters::{FIRST, Marks, Member, UpdateRosters},
};
use crate::{
    call::{EntityCaller, PumpState, pump},
    clock::{Age, Cadence, ClockKey, ClockTable, Scope, Tick, is_game_stopped},
    owner::{OwnedBy, with_owners},
    pause::{PauseMark, stops},
};
#[cfg(feature = "worlds")]
use {crate::clock::ClockId, bevy_ecs::system::SystemState};

/// The parameters of a run.
pub(crate) type UpdateState = PumpState<(
    Res<'static, UpdateRosters>,
    Res<'static, ClockTable>,
    Option<Res<'static, Time<Virtual>>>,
)>;

/// Calls the callbacks on the clocks of a cadence.
pub(crate) fn run_updates(world: &mut World, cadence: Cadence, state: &mut UpdateState) -> Result {
    if world.resource::<UpdateRosters>().is_empty(cadence) {
        return Ok(());
    }
    let mut next = FIRST;
    pump(world, state, |caller, (rosters, table, game)| {
        let mut ticks = Ticks::new(&table, game.as_deref());
        let joined = rosters.joined[cadence as usize];
        for ((priority, number), member) in rosters.from(cadence, next, joined) {
            next = (priority, number + 1);
            rosters.call(member, caller, &mut ticks);
            if caller.has_commands() {
                return;
            }
        }
    })
}

/// Returns `true` if the next run would call a callback. Callbacks inserted since the last run count.
///
/// Callbacks on the descendants of the game clock and the fixed clock do not count if the game `is_paused`.
#[cfg(feature = "worlds")]
pub(crate) fn has_callbacks(world: &mut World, state: &mut UpdateState, is_paused: bool) -> bool {
    let state = state.get_or_insert_with(|| SystemState::new(world));
    let Ok((caller, (rosters, table, _))) = state.get_mut(world) else {
        return false;
    };
    let is_running = |member: &Member| match table.running_root(member.clock, member.age) {
        Some(ClockId::Virtual | ClockId::Fixed) => !is_paused,
        root => root.is_some(),
    };
    let members = [Cadence::Frame, Cadence::FixedStep]
        .into_iter()
        .flat_map(|cadence| rosters.from(cadence, FIRST, u64::MAX));
    let mut enabled = members.filter(|(_, member)| rosters.target(member, &caller).is_some());
    enabled.any(|(_, member)| is_running(member))
}

impl UpdateRosters {
    /// Calls the callback of a member, unless it is paused or its clock stands still.
    fn call(&self, member: &Member, caller: &mut EntityCaller, ticks: &mut Ticks) {
        let Some(tick) = ticks.of(member) else {
            return;
        };
        let Some((mut entity, mut commands)) = caller.get_mut(member.entity) else {
            return;
        };
        if !ticks.is_unmarked(entity.archetype(), &self.marks) {
            let Some(target) = self.target(member, caller) else {
                return;
            };
            let Some(called) = caller.get_mut(target) else {
                return;
            };
            (entity, commands) = called;
        }
        let target = entity.id();
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
    #[inline(never)]
    fn target(&self, member: &Member, caller: &EntityCaller) -> Option<Entity> {
        let entity = caller.get(member.entity)?;
        let marks = &self.marks;
        // By identifiers that are known, which is faster than by type.
        let contains = |it: EntityRef, id| it.archetype().contains(id);
        // The caller leaves out disabled entities.
        let has = |it: Option<EntityRef>, mark| match mark {
            PauseMark::Paused => it.is_some_and(|it| contains(it, marks.paused)),
            PauseMark::PausedBy => it.is_some_and(|it| contains(it, marks.paused_by)),
            PauseMark::Disabled => it.is_none(),
            PauseMark::RunsWhilePaused => it.is_some_and(|it| {
                let mut ids = marks.runs_while_paused.iter();
                ids.any(|&id| contains(it, id))
            }),
        };
        let owner =
            |it: EntityRef| contains(it, marks.owned).then(|| it.get().map(|by: &OwnedBy| by.0))?;
        let with_owners = with_owners(Some(entity), |it| Some(caller.get(owner(it?)?)));
        (!stops(with_owners, has)).then_some(owner(entity).unwrap_or(entity.id()))
    }
}

/// The time on the clocks. Most callbacks are on the same clock as the previous one.
struct Ticks<'a> {
    table: &'a ClockTable,
    is_game_stopped: bool,
    last: Option<((ClockKey, Age), Option<Tick>)>,
    /// The archetype of an entity without marks. The next entity is often like it.
    unmarked: ArchetypeId,
}

impl<'a> Ticks<'a> {
    fn new(table: &'a ClockTable, game: Option<&Time<Virtual>>) -> Self {
        Self {
            table,
            is_game_stopped: game.is_some_and(is_game_stopped),
            last: None,
            unmarked: ArchetypeId::EMPTY,
        }
    }

    /// Returns `true` if no component of an entity changes what a call does, as is most often the case.
    #[inline]
    fn is_unmarked(&mut self, archetype: &Archetype, marks: &Marks) -> bool {
        if archetype.id() == self.unmarked {
            return true;
        }
        let marks = [marks.owned, marks.paused, marks.paused_by];
        let is_unmarked = !marks.iter().any(|&id| archetype.contains(id));
        if is_unmarked {
            self.unmarked = archetype.id();
        }
        is_unmarked
    }

    /// Returns the time on the clock of a member, or `None` if the clock is stopped.
    #[inline]
    fn of(&mut self, member: &Member) -> Option<Tick> {
        let clock = (member.clock, member.age);
        if let Some((last, tick)) = self.last
            && last == clock
        {
            return tick;
        }
        let tick = self.read(clock);
        self.last = Some((clock, tick));
        tick
    }

    #[inline(never)]
    fn read(&self, clock: (ClockKey, Age)) -> Option<Tick> {
        let scope = Scope::Of(Cadence::Frame);
        self.table
            .read_running(clock, scope, self.is_game_stopped)?;
        self.table.tick(clock.0)
    }
}
