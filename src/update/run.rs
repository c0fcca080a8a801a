//! Calling the functions, in order.

use alloc::collections::BTreeMap;

use bevy_ecs::{
    component::ComponentId,
    entity::Entity,
    error::BevyError,
    resource::Resource,
    system::{Res, ResMut, SystemState},
    world::World,
};
use bevy_platform::sync::Arc;

use super::{
    Call, System, UpdateComponent, UpdateContext, UpdateInput, UpdateOf, UpdatesPaused,
    UpdatesPausedFrom,
};
use crate::{
    call::{EntityCaller, call_with_world},
    clock::Clock,
    roster::{Nth, Roster},
    timer::{Age, ClockKey, FoundClock, Scope, Tick, Timelines, is_going_on},
};

/// All update components of a world, in the order in which they are called.
#[derive(Resource)]
pub(crate) struct UpdateRun {
    /// By scope, then by priority.
    rosters: [BTreeMap<i32, Roster<Member>>; 2],
    /// Those who take part from the next run on.
    added: [Roster<Added>; 2],
    next: Nth,
    marks: Marks,
    /// What lets this run, until it has.
    pub(super) add_run: Option<fn(&mut World)>,
}

/// The components that make a difference to a call.
#[derive(Clone, Copy)]
struct Marks {
    owned: ComponentId,
    paused: ComponentId,
    clock: ComponentId,
}

pub(super) struct Added {
    pub(super) priority: i32,
    pub(super) clock: FoundClock,
    pub(super) member: Member,
}

pub(super) struct Member {
    /// The entity with the component.
    pub(super) entity: Entity,
    pub(super) call: Call,
    pub(super) line: ClockKey,
    pub(super) age: Age,
}

/// What a run needs of the world.
pub(crate) type UpdateParams = SystemState<(
    EntityCaller<'static, 'static>,
    ResMut<'static, UpdateRun>,
    Res<'static, Timelines>,
    Option<Res<'static, UpdatesPausedFrom>>,
)>;

/// What comes next in a run: the first from this place on in the roster of this priority.
struct Progress {
    priority: i32,
    nth: Nth,
}

/// A system that is to be run before the others go on.
struct ToRun {
    system: Arc<System>,
    updated: UpdateInput,
}

/// Lets those take part that have been inserted since the run before.
pub(crate) fn swap_updates(mut run: ResMut<UpdateRun>) {
    run.swap(Scope::Frame);
}

/// Calls the functions on the clocks of the frame.
pub(crate) fn run_updates(world: &mut World, params: &mut UpdateParams) -> Result<(), BevyError> {
    update_scope(world, Scope::Frame, params)
}

/// Calls the functions on the clocks of a scope.
pub(crate) fn update_scope(
    world: &mut World,
    scope: Scope,
    params: &mut UpdateParams,
) -> Result<(), BevyError> {
    let mut progress = Progress {
        priority: i32::MIN,
        nth: 0,
    };
    // What a panic has kept from being done, if somebody has caught it.
    params.apply(world);
    loop {
        let (mut caller, run, timelines, paused_from) = params.get_mut(world)?;
        let paused_from = paused_from.and_then(|paused| paused.0);
        let to_run = run.go_on(scope, &mut progress, &mut caller, &timelines, paused_from);
        let is_done = to_run.is_none() && !caller.has_commands();
        params.apply(world);
        if let Some(ToRun { system, updated }) = to_run {
            call_with_world::<UpdateComponent>(world, updated.update_entity, |world| {
                system(world, updated)
            });
        }
        if is_done {
            return Ok(());
        }
    }
}

impl UpdateRun {
    pub(crate) fn new(world: &mut World, add_run: fn(&mut World)) -> Self {
        Self {
            rosters: Default::default(),
            added: Default::default(),
            next: 0,
            marks: Marks {
                owned: world.register_component::<UpdateOf>(),
                paused: world.register_component::<UpdatesPaused>(),
                clock: world.register_component::<Clock>(),
            },
            add_run: Some(add_run),
        }
    }

    /// Takes one in, for the next run, and returns its place.
    pub(super) fn add(&mut self, added: Added) -> Nth {
        let nth = self.next;
        self.next += 1;
        self.added[index(added.clock.scope)].join(nth, added);
        nth
    }

    /// Lets those take part that have been added, and are still there.
    pub(crate) fn swap(&mut self, scope: Scope) {
        let rosters = &mut self.rosters[index(scope)];
        let mut has_new = false;
        for (nth, added) in self.added[index(scope)].drain() {
            let roster = rosters.entry(added.priority).or_default();
            roster.join(nth, added.member);
            has_new = true;
        }
        if !has_new {
            return;
        }
        let vacant = rosters.values().filter(|roster| roster.len() == 0).count();
        if 2 * vacant > rosters.len() {
            rosters.retain(|_, roster| roster.len() > 0);
        }
    }

    /// Whether there is anything to call.
    pub(crate) fn has_work(&self, scope: Scope) -> bool {
        let mut rosters = self.rosters[index(scope)].values();
        rosters.any(|roster| roster.len() > 0)
    }

    /// Lets one go, if it is there.
    pub(super) fn remove(&mut self, priority: i32, nth: Nth) {
        for added in &mut self.added {
            added.leave(nth);
        }
        for rosters in &mut self.rosters {
            if let Some(roster) = rosters.get_mut(&priority) {
                roster.leave(nth);
            }
        }
    }

    /// Calls one after the other, until one has given commands, or a system is to be run.
    fn go_on(
        &self,
        scope: Scope,
        progress: &mut Progress,
        caller: &mut EntityCaller,
        timelines: &Timelines,
        paused_from: Option<i32>,
    ) -> Option<ToRun> {
        // Most of them are on one clock.
        let mut last_tick = None;
        for (&priority, roster) in self.rosters[index(scope)].range(progress.priority..) {
            if paused_from.is_some_and(|from| priority >= from) {
                return None;
            }
            if priority > progress.priority {
                *progress = Progress { priority, nth: 0 };
            }
            for (nth, member) in roster.from(progress.nth) {
                progress.nth = nth + 1;
                let Some(target) = self.target(member, caller) else {
                    continue;
                };
                let line = (member.line, member.age);
                let tick = match last_tick {
                    Some((last, tick)) if last == line => tick,
                    _ => tick(line, caller, timelines),
                };
                last_tick = Some((line, tick));
                let Some(Tick {
                    clock,
                    delta,
                    elapsed,
                }) = tick
                else {
                    continue;
                };
                let update_entity = member.entity;
                match &member.call {
                    Call::Closure(closure) => {
                        caller.call::<UpdateComponent>(target, |entity, commands| {
                            if entity.archetype().contains(self.marks.clock) {
                                // It may stop its own clock.
                                last_tick = None;
                            }
                            closure(UpdateContext {
                                entity,
                                commands,
                                update_entity,
                                delta,
                                elapsed,
                                clock,
                            })
                        });
                        if caller.has_commands() {
                            return None;
                        }
                    }
                    Call::System(system) => {
                        let updated = UpdateInput {
                            entity: target,
                            update_entity,
                            delta,
                            elapsed,
                            clock,
                        };
                        let system = system.clone();
                        return Some(ToRun { system, updated });
                    }
                }
            }
        }
        None
    }

    /// Returns whose function it is, unless it is paused.
    fn target(&self, member: &Member, caller: &EntityCaller) -> Option<Entity> {
        let entity = caller.entities.get(member.entity).ok()?;
        let archetype = entity.archetype();
        if archetype.contains(self.marks.paused) {
            return None;
        }
        if !archetype.contains(self.marks.owned) {
            return Some(member.entity);
        }
        let &UpdateOf(owner) = entity.get()?;
        let owner = caller.entities.get(owner).ok()?;
        let is_paused = owner.archetype().contains(self.marks.paused);
        (!is_paused).then(|| owner.id())
    }
}

/// Returns what time it is on a clock, unless it stands still.
fn tick(
    (line, age): (ClockKey, Age),
    caller: &EntityCaller,
    timelines: &Timelines,
) -> Option<Tick> {
    timelines.tick_of(line, age, |clock| {
        caller.entities.get(clock).is_ok_and(is_going_on)
    })
}

fn index(scope: Scope) -> usize {
    usize::from(scope == Scope::Fixed)
}
