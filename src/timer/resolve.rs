//! The swap: new timers get their clock, their owner and their pause, and enter their queues.

use alloc::vec::Vec;

use bevy_ecs::{archetype::Archetype, prelude::*};

use super::{
    Arms, DespawnAfter, Kind, Timer, TimerLines, TimerState,
    arm::push_pending,
    armed::ArmedTimer,
    end::lose_clock,
    lines::{Extras, Halt},
    modifiers::Modified,
    pending::{Pending, PendingTimers, Since},
    place::Place,
    saving::saved_order,
    setting::Setting,
    settings::random,
};
use crate::{
    clock::{ClockId, ClockTable, FoundClock, GameTime, NoSuchClock, Reading, Scope, warn},
    owner::owner_of,
};

/// Arms the timers that were inserted since the last swap, in the order of insertion.
///
/// A timer on a clock of `scope` can fire in the run that begins. A timer whose clock does not exist
/// is cancelled.
pub(crate) fn resolve(world: &mut World, scope: Option<Scope>) {
    if world.resource::<TimerLines>().pending.len() == 0 {
        return;
    }
    let mut lost = Vec::new();
    world.resource_scope(|world, mut lines: Mut<TimerLines>| {
        let swapped = lines.pending.swap(|pending| saved_order(world, pending));
        let mut resolver = Resolver::new(world, scope, &swapped);
        for pending in swapped.iter() {
            let armed = match pending.kind {
                Kind::Timer => resolver.arm(&mut lines, pending, timer),
                Kind::Lifetime => resolver.arm(&mut lines, pending, lifetime),
            };
            if let Err(error) = armed {
                lost.push((*pending, error));
            }
        }
        lines.pending.reuse(swapped);
    });
    for (pending, error) in lost {
        // It stays pending until its command runs, because the commands before may cancel it.
        match pending.kind {
            Kind::Timer => push_pending::<Timer>(&mut world.into(), pending.entity, 0),
            Kind::Lifetime => push_pending::<DespawnAfter>(&mut world.into(), pending.entity, 0),
        }
        warn(&mut world.into(), error);
        // One command per timer: if one panics, the others still run.
        let mut commands = world.commands();
        commands.queue(move |world: &mut World| match pending.kind {
            Kind::Timer => lose_clock::<Timer>(world, pending.entity),
            Kind::Lifetime => lose_clock::<DespawnAfter>(world, pending.entity),
        });
    }
    world.flush();
}

/// Arms new timers.
struct Resolver<'w> {
    world: &'w World,
    table: &'w ClockTable,
    scope: Option<Scope>,
    pending: &'w PendingTimers,
    is_game_clock_in_run: bool,
    /// The clock of the previous timer, and whether it is in the run.
    clock: Option<(ClockId, FoundClock, bool)>,
}

impl<'w> Resolver<'w> {
    fn new(world: &'w World, scope: Option<Scope>, pending: &'w PendingTimers) -> Self {
        let table = world.resource::<ClockTable>();
        let (game_clock, _) = GameTime::CLOCK;
        Self {
            world,
            table,
            scope,
            pending,
            is_game_clock_in_run: scope.is_some_and(|scope| table.is_in(game_clock, scope)),
            clock: None,
        }
    }

    /// Arms a pending timer, unless its clock does not exist.
    fn arm<C: Arms>(
        &mut self,
        lines: &mut TimerLines,
        pending: &Pending,
        armed: impl FnOnce(Entity, &Setting, &C) -> ArmedTimer,
    ) -> Result<(), NoSuchClock> {
        let Ok(entity) = self.world.get_entity(pending.entity) else {
            return Ok(());
        };
        let Some(component) = entity.get::<C>() else {
            return Ok(());
        };
        let modified = note_modifiers(lines, entity.archetype());
        if let (Modified::Nothing, Since::GameTime(now)) = (modified, pending.since) {
            // Most timers are like that: nothing but a delay on the game clock.
            debug_assert!(component.is_plain(), "{} has settings", pending.entity);
            let (clock, _) = GameTime::CLOCK;
            let deadline = now.saturating_add(component.first_wait());
            let timer = armed(entity.id(), &Setting::plain(entity.id()), component);
            let key = lines.insert_plain(clock, deadline, timer, self.is_game_clock_in_run);
            component.seat().move_to(Place::Armed(clock, key));
            return Ok(());
        }
        if modified != Modified::Nothing
            && let Ok(owner) = self.world.get_entity(owner_of(entity))
        {
            note_modifiers(lines, owner.archetype());
        }
        self.arm_set(lines, pending, entity, component, armed)
    }

    /// Arms a timer with settings.
    #[inline(never)]
    fn arm_set<C: Arms>(
        &mut self,
        lines: &mut TimerLines,
        pending: &Pending,
        entity: EntityRef,
        component: &C,
        armed: impl FnOnce(Entity, &Setting, &C) -> ArmedTimer,
    ) -> Result<(), NoSuchClock> {
        let setting = Setting::new(self.world, lines, entity, component.chosen_clock());
        let unknown = NoSuchClock(setting.clock);
        let (found, is_in_run) = self.find(setting.clock)?;
        let FoundClock {
            key: clock, age, ..
        } = found;
        let start = self.pending.start(pending, component.first_wait());
        let start = start.filter(|start| start.age == age);
        let (deadline, now) = match start {
            Some(start) => (start.deadline, start.now),
            None => {
                let reading = self.table.read_now(self.world, clock).ok_or(unknown)?;
                let deadline = self.late_start(lines, component, reading, setting.is_paused);
                (deadline, reading.now)
            }
        };
        let timer = armed(entity.id(), &setting, component);
        let halt = Halt {
            paused_at: setting.is_paused.then_some(now),
            is_in_transit: setting.is_in_transit,
        };
        let progress = component.loaded().and_then(TimerState::progress);
        let window = component.window(progress.and_then(|progress| progress.shift));
        let reading = window.and_then(|_| self.table.current(clock));
        let extras = Extras {
            random: match progress {
                Some(progress) => progress.random.map(|random| random.intervals),
                None => component.intervals(|| random(self.world, lines.next_draw())),
            },
            window,
            priority: component.priority(),
            offset: reading.map_or(0, |reading| reading.offset),
        };
        let key = lines.insert(clock, deadline, timer, halt, extras, is_in_run);
        if let (Some(progress), Some(line)) = (progress, lines.get_mut(clock)) {
            line.resume_from(key, progress, component.first_wait());
        }
        component.use_loaded();
        component.seat().move_to(Place::Armed(clock, key));
        Ok(())
    }

    /// Starts the delay of a timer whose clock was unknown at insertion, and returns the deadline.
    fn late_start<C: Arms>(
        &self,
        lines: &mut TimerLines,
        component: &C,
        reading: Reading,
        is_paused: bool,
    ) -> u64 {
        match component.loaded().and_then(TimerState::wait) {
            // The wait stood still from the start.
            Some(wait) if is_paused => wait.deadline(reading),
            Some(wait) => wait.deadline_on_loaded(reading),
            None if component.has_jitter() => {
                component.start(reading, random(self.world, lines.next_draw()))
            }
            None => component.start(reading, 0),
        }
    }

    /// Finds a clock, and returns whether it is in the run.
    fn find(&mut self, clock: ClockId) -> Result<(FoundClock, bool), NoSuchClock> {
        if let Some((last, found, is_in_run)) = self.clock
            && last == clock
        {
            return Ok((found, is_in_run));
        }
        let found = self.table.find(clock)?;
        let is_in = |scope| self.table.is_in(found.key, scope);
        let is_in_run = self.scope.is_some_and(is_in);
        self.clock = Some((clock, found, is_in_run));
        Ok((found, is_in_run))
    }
}

/// Returns the modifiers in an archetype, and looks them up only once.
#[inline]
fn note_modifiers(lines: &mut TimerLines, archetype: &Archetype) -> Modified {
    lines.modifiers.noted(archetype.id()).unwrap_or_else(|| {
        let modified = lines.modifiers.of(archetype);
        lines.modifiers.note(archetype.id(), modified);
        modified
    })
}

fn timer(entity: Entity, setting: &Setting, timer: &Timer) -> ArmedTimer {
    ArmedTimer::new(entity, setting.owner, timer, setting.acts)
}

fn lifetime(entity: Entity, setting: &Setting, _: &DespawnAfter) -> ArmedTimer {
    ArmedTimer::lifetime(entity, setting.owner)
}
