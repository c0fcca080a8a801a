//! Applies the operations and repairs of a script to the world of a timer game.

use super::{timer_game::action, timer_script::*, *};
use bevy_app::FixedPreUpdate;
use bevy_due::OnClock;
use bevy_ecs::entity_disabling::Disabled;

/// The entities that the indices of a script refer to. Some may have been despawned.
#[derive(Resource)]
pub(crate) struct Cast {
    timers: Vec<Entity>,
    owners: Vec<Entity>,
    clocks: Vec<Entity>,
}

impl Cast {
    pub(crate) fn spawn(app: &mut App) -> Self {
        Self {
            timers: (0..TIMERS)
                .map(|_| app.world_mut().spawn_empty().id())
                .collect(),
            owners: (0..OWNERS)
                .map(|_| app.world_mut().spawn_empty().id())
                .collect(),
            clocks: (0..CLOCKS)
                .map(|_| app.world_mut().spawn(Clock::new()).id())
                .collect(),
        }
    }
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
    /// Plays the operation as a separate command, so that it is flushed like any other command.
    pub(crate) fn play(self, world: &mut World) {
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
                    e.set_timer("key", new);
                    if let Some(id) = e.get::<Owned>().and_then(|owned| owned.iter().last()) {
                        e.resource_mut::<Cast>().timers[timer] = id;
                    }
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
        match self {
            Self::Despawn => _ = world.try_despawn(entity),
            Self::Spawn => spawn_clock(world, clock, Clock::new()),
            Self::Remove => change(world, entity, |e| _ = e.remove::<Clock>()),
            Self::Insert(parent) => {
                let clock = Clock::of(parent.id(cast));
                change(world, entity, |e| _ = e.insert(clock));
            }
            Self::InsertManual => change(world, entity, |e| _ = e.insert(Clock::manual())),
            Self::SetParent(parent) => {
                let parent = parent.id(cast);
                // The parent may not exist, or make a cycle.
                change_clock(world, entity, |clock| _ = clock.set_parent(parent));
            }
            Self::Swap(other) => {
                let entities = [entity, cast.clocks[other]];
                let [a, b] = entities.map(|clock| world.get::<Clock>(clock).cloned());
                for (entity, other) in entities.into_iter().zip([b, a]) {
                    change(world, entity, |e| {
                        _ = other.map(|clock| e.insert(clock).id());
                    });
                }
            }
            Self::Pause => change_clock(world, entity, |clock| clock.pause()),
            Self::Resume => change_clock(world, entity, |clock| clock.unpause()),
            Self::Stop => change_clock(world, entity, |clock| clock.set_speed(0.0)),
            Self::Double => change_clock(world, entity, |clock| clock.set_speed(2.0)),
            Self::AdvanceBy(by) => change_clock(world, entity, |clock| clock.advance_by(by)),
            Self::SkipBy(by) => change_clock(world, entity, |clock| clock.skip_by(by)),
            Self::FastForward(by) => _ = world.fast_forward(entity, by),
        }
    }
}

impl Parent {
    fn id(self, cast: &Cast) -> ClockId {
        match self {
            Self::Default => ClockId::Virtual,
            Self::BuiltIn(clock) => BUILT_IN_CLOCKS[clock],
            Self::Owner(owner) => cast.owners[owner].into(),
            Self::Clock(clock) => cast.clocks[clock].into(),
        }
    }
}

impl BuiltInClockOp {
    fn apply(self, world: &mut World, clock: usize) {
        change_clock(world, BUILT_IN_CLOCKS[clock], |clock| match self {
            Self::Pause => clock.pause(),
            Self::Resume => clock.unpause(),
            Self::SetNow => clock.set_now(ms(1000)),
        });
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
    pub(crate) fn play(self, world: &mut World, index: usize) {
        if index < OWNERS {
            self.repair_owner(world, index);
        }
        if index < CLOCKS {
            repair_clock(world, index);
        }
        if index < BUILT_IN_CLOCKS.len() {
            change_clock(world, BUILT_IN_CLOCKS[index], |clock| clock.unpause());
        }
        self.repair_timer(world, index);
    }

    fn repair_owner(&self, world: &mut World, owner: usize) {
        respawn_owner(world, owner);
        if self.enable_owner {
            resume_and_enable(world, world.resource::<Cast>().owners[owner]);
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
