//! Random games with timers, in which handlers replace, pause, move and despawn timers, owners and
//! clocks, run the schedule again, and panic.
//!
//! Every timer is armed while it is there, ends once, and is reported once.

use crate::{
    support::*,
    timer_ledger::{FiringRecorder, Ledger, advance_and_read, check_invariants},
    timer_script::*,
    *,
};
use bevy_app::FixedPreUpdate;
use bevy_due::{DueEntityWorldMutExt, OnClock, TimerAction, TimerFired};
use bevy_ecs::{
    entity_disabling::Disabled,
    lifecycle::{Insert, Remove},
};
use proptest::prelude::*;
use std::{collections::VecDeque, panic::resume_unwind};

const FIXED_STEP_MILLIS: u64 = 13;

proptest! {
    #![proptest_config(game_config())]

    #[test]
    fn every_timer_ends_once_whatever_handlers_do(frames in any_frames()) {
        play(frames, false);
    }

    #[test]
    fn every_timer_ends_once_even_if_handlers_panic(frames in any_frames()) {
        play(frames, true);
    }
}

/// The entities that the indices of a script refer to. Some of them may be gone.
#[derive(Resource)]
struct Cast {
    timers: Vec<Entity>,
    owners: Vec<Entity>,
    clocks: Vec<Entity>,
    built_in_clocks: Vec<Entity>,
}

/// The reactions of this frame that are left.
#[derive(Resource, Default)]
struct Reactions {
    on_firings: VecDeque<Reaction>,
    on_cancellations: VecDeque<Reaction>,
    on_changes: VecDeque<Option<Op>>,
    /// Panics are caught in a frame only, and must not happen before it.
    may_panic: bool,
}

impl Reactions {
    fn next_firing(&mut self) -> Reaction {
        let reaction = self.on_firings.pop_front().unwrap_or_default();
        self.without_forbidden_panic(reaction)
    }

    fn next_cancellation(&mut self) -> Reaction {
        let reaction = self.on_cancellations.pop_front().unwrap_or_default();
        self.without_forbidden_panic(reaction)
    }

    fn next_change(&mut self) -> Option<Op> {
        self.on_changes.pop_front().flatten()
    }

    fn without_forbidden_panic(&self, reaction: Reaction) -> Reaction {
        Reaction {
            panic: reaction.panic.filter(|_| self.may_panic),
            ..reaction
        }
    }
}

impl Reaction {
    /// Plays the reaction in an observer.
    fn observe(self, commands: &mut Commands) {
        let panic = self.panic;
        for op in self.ops {
            commands.queue(|world: &mut World| op.play(world));
        }
        commands.queue(move |_: &mut World| panic_if(panic == Some(PanicIn::Command)));
        panic_if(panic == Some(PanicIn::Handler));
    }

    /// Plays the reaction in an action, which has the whole world.
    fn act(self, world: &mut World) {
        panic_if(self.panic == Some(PanicIn::Handler));
        for op in self.ops {
            op.play(world);
        }
        panic_if(self.panic == Some(PanicIn::Command));
    }
}

/// Panics without a message, so that the output stays clean.
fn panic_if(condition: bool) {
    if condition {
        resume_unwind(Box::new("the script says so"));
    }
}

fn action() -> TimerAction {
    TimerAction::call(|world: &mut World, _| {
        let reaction = world.resource_mut::<Reactions>().next_firing();
        reaction.act(world);
    })
}

fn change(world: &mut World, entity: Entity, change: impl FnOnce(&mut EntityWorldMut)) {
    if let Ok(mut entity) = world.get_entity_mut(entity) {
        change(&mut entity);
    }
}

impl Spec {
    fn timer(self, world: &World) -> Timer {
        let clocks = &world.resource::<Cast>().clocks;
        match self.clock {
            Some(clock) => self.timer.on(clocks[clock]),
            None => self.timer,
        }
    }
}

impl Op {
    /// Plays the operation as a command of its own, so that it is flushed like those of a game.
    fn play(self, world: &mut World) {
        world.commands().queue(|world: &mut World| {
            self.apply(world);
            world.flush();
        });
        world.flush();
    }

    fn apply(self, world: &mut World) {
        match self {
            Self::Timer(timer, op) => op.apply(world, timer),
            Self::Owner(owner, op) => op.apply(world, owner),
            Self::Clock(clock, op) => op.apply(world, clock),
            Self::BuiltInClock(clock, op) => op.apply(world, clock),
            Self::FastForward(by) => _ = world.fast_forward(ClockId::Virtual, by),
            Self::RunFixedStep => _ = world.try_run_schedule(FixedPreUpdate),
        }
    }
}

impl TimerOp {
    fn apply(self, world: &mut World, timer: usize) {
        let cast = world.resource::<Cast>();
        let entity = cast.timers[timer];
        match self {
            Self::Arm(spec) => {
                let timer = spec.timer(world);
                change(world, entity, |e| _ = e.insert(timer));
            }
            Self::ArmWithAction(spec) => {
                let timer = spec.timer(world);
                change(world, entity, |e| _ = e.insert((timer, action())));
            }
            Self::AddAction => change(world, entity, |e| _ = e.insert(action())),
            Self::Remove => change(world, entity, |e| _ = e.remove::<Timer>()),
            Self::Despawn => _ = world.try_despawn(entity),
            Self::Pause => change(world, entity, |e| _ = e.insert(Paused)),
            Self::Resume => change(world, entity, |e| _ = e.remove::<Paused>()),
            Self::Disable => change(world, entity, |e| _ = e.insert(Disabled)),
            Self::Enable => change(world, entity, |e| _ = e.remove::<Disabled>()),
            Self::JoinOwner(owner) => {
                let owner = OwnedBy(cast.owners[owner]);
                change(world, entity, |e| _ = e.insert(owner));
            }
            Self::LeaveOwner => change(world, entity, |e| _ = e.remove::<OwnedBy>()),
            Self::MoveToClock(clock) => {
                let clock = OnClock::new(cast.clocks[clock]);
                change(world, entity, |e| _ = e.insert(clock));
            }
            Self::Reschedule(after) => change(world, entity, |e| _ = e.reschedule(after)),
            Self::DelayBy(by) => change(world, entity, |e| _ = e.delay_by(by)),
        }
    }
}

impl OwnerOp {
    fn apply(self, world: &mut World, owner: usize) {
        let entity = world.resource::<Cast>().owners[owner];
        match self {
            Self::Despawn => _ = world.try_despawn(entity),
            Self::Respawn => respawn_owner(world, owner),
            Self::Pause => change(world, entity, |e| _ = e.insert(Paused)),
            Self::Disable => change(world, entity, |e| _ = e.insert(Disabled)),
            Self::ResumeAndEnable => resume_and_enable(world, entity),
            Self::CancelTimers => change(world, entity, |e| _ = e.cancel_timers()),
            Self::SetTimer(timer, spec) => {
                let new = spec.timer(world);
                change(world, entity, |e| {
                    let id = e.set_timer("key", new);
                    e.resource_mut::<Cast>().timers[timer] = id;
                });
            }
            Self::SpawnTimer(timer, spec) => {
                let new = (OwnedBy(entity), spec.timer(world));
                let id = world.spawn(new).id();
                world.flush();
                world.resource_mut::<Cast>().timers[timer] = id;
            }
        }
    }
}

impl ClockOp {
    fn apply(self, world: &mut World, clock: usize) {
        let cast = world.resource::<Cast>();
        let entity = cast.clocks[clock];
        let with_clock = |world: &mut World, change: fn(&mut Clock)| {
            if let Some(mut clock) = world.get_mut::<Clock>(entity) {
                change(&mut clock);
            }
        };
        match self {
            Self::Despawn => _ = world.try_despawn(entity),
            Self::Spawn => spawn_clock(world, clock, Clock::new()),
            Self::Insert(parent) => {
                let clock = match parent {
                    Parent::Default => Clock::new(),
                    Parent::BuiltIn(clock) => Clock::of(cast.built_in_clocks[clock]),
                    Parent::Owner(owner) => Clock::of(cast.owners[owner]),
                };
                change(world, entity, |e| _ = e.insert(clock));
            }
            Self::Pause => with_clock(world, |clock| clock.pause()),
            Self::Resume => with_clock(world, |clock| clock.unpause()),
            Self::Stop => with_clock(world, |clock| clock.set_speed(0.0)),
            Self::Double => with_clock(world, |clock| clock.set_speed(2.0)),
            Self::FastForward(by) => _ = world.fast_forward(entity, by),
        }
    }
}

impl BuiltInClockOp {
    fn apply(self, world: &mut World, clock: usize) {
        let entity = world.resource::<Cast>().built_in_clocks[clock];
        match self {
            Self::Remove => change(world, entity, |e| _ = e.remove::<Clock>()),
            Self::Insert => change(world, entity, |e| _ = e.insert(Clock::new())),
            Self::Pause | Self::Resume => {
                if let Some(mut clock) = world.get_mut::<Clock>(entity) {
                    match self {
                        Self::Pause => clock.pause(),
                        _ => clock.unpause(),
                    }
                }
            }
        }
    }
}

fn resume_and_enable(world: &mut World, entity: Entity) {
    change(world, entity, |e| _ = e.remove::<(Paused, Disabled)>());
}

fn respawn_owner(world: &mut World, owner: usize) {
    if world
        .get_entity(world.resource::<Cast>().owners[owner])
        .is_err()
    {
        let new = world.spawn_empty().id();
        world.resource_mut::<Cast>().owners[owner] = new;
    }
}

fn spawn_clock(world: &mut World, index: usize, clock: Clock) {
    let new = world.spawn(clock).id();
    world.resource_mut::<Cast>().clocks[index] = new;
}

impl Repair {
    fn play(self, world: &mut World, index: usize) {
        if index < OWNERS {
            self.repair_owner(world, index);
        }
        if index < CLOCKS {
            repair_clock(world, index);
        }
        if index < BUILT_IN_CLOCKS.len() {
            self.repair_built_in_clock(world, index);
        }
        self.repair_timer(world, index);
    }

    fn repair_owner(&self, world: &mut World, owner: usize) {
        respawn_owner(world, owner);
        if self.enable_owner {
            resume_and_enable(world, world.resource::<Cast>().owners[owner]);
        }
    }

    fn repair_built_in_clock(&self, world: &mut World, clock: usize) {
        let entity = world.resource::<Cast>().built_in_clocks[clock];
        if self.insert_built_in_clock && world.get::<Clock>(entity).is_none() {
            world.entity_mut(entity).insert(Clock::new());
        }
        if let Some(mut clock) = world.get_mut::<Clock>(entity) {
            clock.unpause();
        }
    }

    fn repair_timer(self, world: &mut World, timer: usize) {
        if world
            .get_entity(world.resource::<Cast>().timers[timer])
            .is_err()
        {
            let new = world.spawn_empty().id();
            world.resource_mut::<Cast>().timers[timer] = new;
        }
        let cast = world.resource::<Cast>();
        let entity = cast.timers[timer];
        let owner = self.owner.map(|owner| OwnedBy(cast.owners[owner]));
        if self.enable_timer {
            resume_and_enable(world, entity);
        }
        if world.get::<Timer>(entity).is_none() {
            let timer = self.spec.timer(world);
            match owner {
                Some(owner) => change(world, entity, |e| _ = e.insert((timer, owner))),
                None => change(world, entity, |e| _ = e.insert(timer)),
            }
        }
    }
}

fn repair_clock(world: &mut World, clock: usize) {
    let entity = world.resource::<Cast>().clocks[clock];
    if world.get::<Clock>(entity).is_none() {
        let parent = match clock {
            0 => ClockId::Fixed,
            _ => ClockId::Virtual,
        };
        spawn_clock(world, clock, Clock::of(parent));
    }
}

fn new_game() -> App {
    let mut app = unobserved_app_with(burst_limit(7));
    ignore_errors(&mut app);
    set_fixed_step(&mut app, FIXED_STEP_MILLIS);
    let cast = Cast {
        timers: (0..TIMERS)
            .map(|_| app.world_mut().spawn_empty().id())
            .collect(),
        owners: (0..OWNERS)
            .map(|_| app.world_mut().spawn_empty().id())
            .collect(),
        clocks: (0..CLOCKS)
            .map(|_| app.world_mut().spawn(Clock::new()).id())
            .collect(),
        built_in_clocks: BUILT_IN_CLOCKS
            .map(|clock| clock_entity(&mut app, clock))
            .to_vec(),
    };
    app.insert_resource(cast)
        .init_resource::<Ledger>()
        .init_resource::<Reactions>();
    app.add_observer(react_to_firing)
        .add_observer(react_to_cancellation)
        .add_observer(react_to_insertion)
        .add_observer(react_to_removal);
    app
}

// Each observer writes the event down and reacts to it, because a panic can skip other observers.

fn react_to_firing(
    fired: On<TimerFired>,
    mut recorder: FiringRecorder,
    mut reactions: ResMut<Reactions>,
    mut commands: Commands,
) {
    // An observed owner receives the same event again.
    if fired.event_target() == fired.entity() {
        recorder.record(&fired);
        reactions.next_firing().observe(&mut commands);
    }
}

fn react_to_cancellation(
    cancelled: On<TimerCancelled>,
    mut ledger: ResMut<Ledger>,
    mut reactions: ResMut<Reactions>,
    mut commands: Commands,
) {
    ledger.record_cancellation(&cancelled);
    reactions.next_cancellation().observe(&mut commands);
}

fn react_to_insertion(
    inserted: On<Insert<Timer>>,
    mut ledger: ResMut<Ledger>,
    reactions: ResMut<Reactions>,
    commands: Commands,
) {
    ledger.record_insertion(inserted.entity);
    react_to_change(reactions, commands);
}

fn react_to_removal(_: On<Remove<Timer>>, reactions: ResMut<Reactions>, commands: Commands) {
    react_to_change(reactions, commands);
}

fn react_to_change(mut reactions: ResMut<Reactions>, mut commands: Commands) {
    if let Some(op) = reactions.next_change() {
        commands.queue(|world: &mut World| op.play(world));
    }
}

fn play(frames: Vec<Frame>, with_panics: bool) {
    let mut app = new_game();
    for frame in frames {
        play_frame(&mut app, frame, with_panics);
        play_quiet_frames(&mut app);
        check_invariants(app.world_mut());
    }
}

fn play_frame(app: &mut App, frame: Frame, with_panics: bool) {
    app.insert_resource(Reactions {
        on_firings: frame.on_firings.into(),
        on_cancellations: frame.on_cancellations.into(),
        on_changes: frame.on_changes.into(),
        may_panic: false,
    });
    for (index, repair) in frame.repairs.into_iter().enumerate() {
        if let Some(repair) = repair {
            repair.play(app.world_mut(), index);
        }
    }
    app.world_mut().flush();
    for op in frame.ops {
        op.play(app.world_mut());
    }
    app.world_mut().resource_mut::<Reactions>().may_panic = with_panics;
    advance_and_read(app, frame.millis);
}

/// Runs frames without reactions, in which the timers of the last frame can end.
fn play_quiet_frames(app: &mut App) {
    app.insert_resource(Reactions::default());
    app.world_mut().flush();
    advance_and_read(app, FIXED_STEP_MILLIS + 1);
    advance_and_read(app, 0);
}
