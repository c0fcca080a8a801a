//! `UpdateComponent`: per-entity callbacks that run every frame.

use core::{mem, time::Duration};
use std::sync::{Arc, Mutex, PoisonError};

use crate::support::{errors::*, updates::*, *};
use bevy_app::prelude::*;
use bevy_due::{DueSystems, Paused, Timer, UpdateComponent, UpdateContext, prelude::*};
use bevy_ecs::{
    entity_disabling::Disabled,
    error::FallbackErrorHandler,
    prelude::*,
    system::{SystemId, command},
};
use bevy_time::{Fixed, Time, TimePlugin};
use proptest::prelude::*;

#[derive(Component)]
struct Count(u32);

fn count(mut me: UpdateContext) {
    me.entity.get_mut::<Count>().unwrap().0 += 1;
}

fn counted(app: &App, entity: Entity) -> u32 {
    app.world().get::<Count>(entity).unwrap().0
}

// Order.

#[test]
fn callbacks_run_by_priority_then_by_order_of_insertion() {
    let mut app = update_app();
    for (what, priority) in [("a", 0), ("b", 5), ("c", -3), ("d", 0), ("e", -3), ("f", 5)] {
        app.world_mut().spawn(say(what).with_priority(priority));
    }
    advance_ms(&mut app, 10);
    assert_eq!(called(&mut app), ["c", "e", "a", "d", "b", "f"]);
    advance_ms(&mut app, 10);
    assert_eq!(called(&mut app), ["c", "e", "a", "d", "b", "f"]);
}

#[test]
fn the_extreme_priorities_come_first_and_last() {
    let mut app = update_app();
    for (what, priority) in [("b", 0), ("c", i32::MAX), ("a", i32::MIN), ("d", i32::MAX)] {
        app.world_mut().spawn(say(what).with_priority(priority));
    }
    advance_ms(&mut app, 10);
    assert_eq!(called(&mut app), ["a", "b", "c", "d"]);
}

#[test]
fn callbacks_keep_their_order_when_others_come_and_go() {
    let mut app = update_app();
    let [a, b, c, _] = ["a", "b", "c", "d"].map(|what| app.world_mut().spawn(say(what)).id());
    advance_ms(&mut app, 10);
    assert_eq!(called(&mut app), ["a", "b", "c", "d"]);

    app.world_mut().despawn(b);
    app.world_mut().spawn(say("e"));
    advance_ms(&mut app, 10);
    assert_eq!(called(&mut app), ["a", "c", "d", "e"]);

    app.world_mut().entity_mut(a).remove::<UpdateComponent>();
    app.world_mut().spawn(say("f").with_priority(-1));
    advance_ms(&mut app, 10);
    assert_eq!(called(&mut app), ["f", "c", "d", "e"]);

    app.world_mut().entity_mut(a).insert(say("a"));
    app.world_mut().entity_mut(c).insert(say("c"));
    advance_ms(&mut app, 10);
    assert_eq!(
        called(&mut app),
        ["f", "d", "e", "a", "c"],
        "what is inserted again is the last"
    );
}

const TARGETS: usize = 6;

/// An operation on one of a few targets.
#[derive(Clone, Copy, Debug)]
enum Op {
    /// On a new entity, if the target is gone.
    Insert(usize, i32),
    Remove(usize),
    Despawn(usize),
    Pause(usize),
    Resume(usize),
    PauseFrom(Option<i32>),
}

/// The operations before a frame, and the operations of callbacks during it.
#[derive(Clone, Debug)]
struct Frame {
    before: Vec<Op>,
    during: Vec<(usize, Op)>,
}

fn priority() -> impl Strategy<Value = i32> {
    prop_oneof![4 => -2..=2, 1 => Just(i32::MIN), 1 => Just(i32::MAX)]
}

fn op() -> impl Strategy<Value = Op> {
    let target = 0..TARGETS;
    prop_oneof![
        4 => (target.clone(), priority()).prop_map(|(target, priority)| Op::Insert(target, priority)),
        1 => target.clone().prop_map(Op::Remove),
        1 => target.clone().prop_map(Op::Despawn),
        1 => target.clone().prop_map(Op::Pause),
        2 => target.prop_map(Op::Resume),
        1 => proptest::option::weighted(0.3, priority()).prop_map(Op::PauseFrom),
    ]
}

fn script() -> impl Strategy<Value = Vec<Frame>> {
    let before = prop::collection::vec(op(), 0..4);
    let during = prop::collection::vec((0..TARGETS, op()), 0..4);
    let frame = (before, during).prop_map(|(before, during)| Frame { before, during });
    prop::collection::vec(frame, 1..20)
}

/// The expected calls: a list that is sorted in every frame.
#[derive(Default)]
struct Oracle {
    /// The priority and the place of each target with a callback.
    functions: [Option<(i32, u32)>; TARGETS],
    paused: [bool; TARGETS],
    paused_from: Option<i32>,
    inserted: u32,
}

impl Oracle {
    fn apply(&mut self, op: Op) {
        match op {
            Op::Insert(target, priority) => {
                self.inserted += 1;
                self.functions[target] = Some((priority, self.inserted));
            }
            Op::Remove(target) => self.functions[target] = None,
            Op::Despawn(target) => {
                self.functions[target] = None;
                self.paused[target] = false;
            }
            Op::Pause(target) => self.paused[target] = true,
            Op::Resume(target) => self.paused[target] = false,
            Op::PauseFrom(from) => self.paused_from = from,
        }
    }

    fn run(&mut self, during: &[(usize, Op)]) -> Vec<usize> {
        let functions = self.functions.iter().enumerate();
        let mut order: Vec<_> = functions
            .filter_map(|(target, &function)| Some((function?, target)))
            .collect();
        order.sort_unstable();
        let mut called = Vec::new();
        for (function, target) in order {
            let is_held = self.paused_from.is_some_and(|from| function.0 >= from);
            if self.functions[target] != Some(function) || self.paused[target] || is_held {
                continue;
            }
            called.push(target);
            for &(actor, op) in during {
                if actor == target {
                    self.apply(op);
                }
            }
        }
        called
    }
}

/// The calls, and the operations of the callbacks. A callback without operations issues no commands.
#[derive(Resource, Clone, Default)]
struct Stage(Arc<Mutex<(Vec<usize>, Vec<(usize, Op)>)>>);

#[derive(Resource)]
struct Targets([Entity; TARGETS]);

fn apply(world: &mut World, op: Op) {
    let (Op::Insert(target, _)
    | Op::Remove(target)
    | Op::Despawn(target)
    | Op::Pause(target)
    | Op::Resume(target)) = op
    else {
        if let Op::PauseFrom(from) = op {
            pause_updates(world, from);
        }
        return;
    };
    let mut entity = world.resource::<Targets>().0[target];
    if world.get_entity(entity).is_err() {
        entity = world.spawn_empty().id();
        world.resource_mut::<Targets>().0[target] = entity;
    }
    let mut entity = world.entity_mut(entity);
    match op {
        Op::Insert(_, priority) => {
            let stage = entity.resource::<Stage>().clone();
            let act = UpdateComponent::new(move |mut me: UpdateContext| {
                let mut stage = stage.0.lock().unwrap_or_else(PoisonError::into_inner);
                stage.0.push(target);
                let during = stage.1.iter().filter(|(actor, _)| *actor == target);
                for &(_, op) in during {
                    me.commands.queue(move |world: &mut World| apply(world, op));
                }
            });
            entity.insert(act.with_priority(priority));
        }
        Op::Remove(_) => {
            entity.remove::<UpdateComponent>();
        }
        Op::Despawn(_) => entity.despawn(),
        Op::Pause(_) => {
            entity.insert(Paused);
        }
        Op::Resume(_) => {
            entity.remove::<Paused>();
        }
        Op::PauseFrom(_) => unreachable!("has no target"),
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..Default::default() })]

    #[test]
    fn any_script_calls_what_a_sorted_list_calls(script in script()) {
        let mut app = app();
        let targets = [(); TARGETS].map(|()| app.world_mut().spawn_empty().id());
        let stage = Stage::default();
        app.insert_resource(Targets(targets)).insert_resource(stage.clone());
        let mut oracle = Oracle::default();
        for (nth, Frame { before, during }) in script.into_iter().enumerate() {
            for op in before {
                apply(app.world_mut(), op);
                oracle.apply(op);
            }
            stage.0.lock().unwrap().1.clone_from(&during);
            advance_ms(&mut app, 10);
            let called = mem::take(&mut stage.0.lock().unwrap().0);
            prop_assert_eq!(called, oracle.run(&during), "frame {}", nth);
        }
    }
}

// Insertion.

#[test]
fn a_callback_inserted_by_another_starts_in_the_next_frame() {
    let mut app = update_app();
    app.world_mut().spawn(doing("a", |world, a| {
        world.spawn(say("before").with_priority(-1));
        world.spawn(say("after"));
        world.despawn(a);
    }));
    advance_ms(&mut app, 10);
    assert_eq!(called(&mut app), ["a"]);
    advance_ms(&mut app, 10);
    assert_eq!(called(&mut app), ["before", "after"]);
}

#[test]
fn a_callback_that_reinserts_itself_runs_once_a_frame() {
    let mut app = update_app();
    app.world_mut().spawn(doing("a", |world, a| {
        let again = world.get::<UpdateComponent>(a).unwrap().clone();
        world.entity_mut(a).insert(again);
    }));
    for _ in 0..3 {
        advance_ms(&mut app, 10);
        assert_eq!(called(&mut app), ["a"]);
    }
}

#[test]
fn a_callback_inserted_by_a_timer_starts_in_the_next_frame() {
    for is_first_use in [true, false] {
        let mut app = update_app();
        if !is_first_use {
            app.world_mut().spawn(say("other"));
            advance_ms(&mut app, 10);
        }
        app.world_mut().spawn(Timer::after(ms(10))).observe(
            |fired: On<TimerFired>, mut commands: Commands| {
                commands.entity(fired.entity()).insert(say("a"));
            },
        );
        advance_ms(&mut app, 10);
        assert!(!called(&mut app).contains(&"a"), "{is_first_use}");
        advance_ms(&mut app, 10);
        assert!(called(&mut app).contains(&"a"), "{is_first_use}");
    }
}

#[test]
fn a_callback_inserted_by_a_system_starts_in_the_next_frame() {
    let mut app = update_app();
    app.add_systems(Update, |mut commands: Commands, mut frame: Local<u32>| {
        *frame += 1;
        match *frame {
            1 => commands.spawn(say("a")),
            2 => commands.spawn(say("b")),
            _ => return,
        };
    });
    advance_ms(&mut app, 10);
    assert!(called(&mut app).is_empty());
    advance_ms(&mut app, 10);
    assert_eq!(called(&mut app), ["a"]);
    advance_ms(&mut app, 10);
    assert_eq!(called(&mut app), ["a", "b"]);
}

#[test]
fn the_first_callback_can_be_inserted_in_any_schedule() {
    for is_fixed in [false, true] {
        let mut app = update_app();
        app.insert_resource(Time::<Fixed>::from_duration(ms(10)));
        let spawn = move |mut commands: Commands, mut frame: Local<u32>| {
            *frame += 1;
            if *frame == 1 {
                let clock = if is_fixed {
                    ClockId::Fixed
                } else {
                    ClockId::Virtual
                };
                commands.spawn(say("a").on(clock));
            }
        };
        match is_fixed {
            true => app.add_systems(FixedPreUpdate, spawn),
            false => app.add_systems(PreUpdate, spawn.after(DueSystems::Updates)),
        };
        advance_ms(&mut app, 10);
        assert!(called(&mut app).is_empty());
        advance_ms(&mut app, 10);
        assert_eq!(called(&mut app), ["a"]);
    }
}

#[test]
fn callbacks_inserted_before_the_plugin_run() {
    let mut app = App::new();
    let [a, b] = [1, 2].map(|_| {
        let counting = (Count(0), UpdateComponent::new(count));
        app.world_mut().spawn(counting).id()
    });
    app.add_plugins((TimePlugin, DuePlugin::default()));
    advance_ms(&mut app, 10);
    advance_ms(&mut app, 10);
    assert_eq!([counted(&app, a), counted(&app, b)], [2, 2]);
    app.world_mut().entity_mut(a).remove::<UpdateComponent>();
    advance_ms(&mut app, 10);
    assert_eq!([counted(&app, a), counted(&app, b)], [2, 3]);
}

#[test]
fn without_the_plugin_the_component_is_data() {
    let mut world = World::new();
    let entity = world.spawn(say("a").with_priority(1)).id();
    world.entity_mut(entity).insert(say("a").with_priority(2));
    let update = world.entity_mut(entity).take::<UpdateComponent>().unwrap();
    assert_eq!((update.priority(), update.clock()), (2, None));
}

// Removal.

#[test]
fn a_removed_callback_is_never_called_again() {
    let ways: [fn(EntityWorldMut); 4] = [
        |mut b| {
            b.remove::<UpdateComponent>();
        },
        |b| b.despawn(),
        |mut b| {
            b.clear();
        },
        |mut b| drop(b.take::<UpdateComponent>()),
    ];
    for way in ways {
        let mut app = update_app();
        let b = app.world_mut().spawn_empty().id();
        app.world_mut()
            .spawn(doing("a", move |world, _| way(world.entity_mut(b))));
        app.world_mut().entity_mut(b).insert(say("b"));
        app.world_mut().spawn(say("c"));
        advance_ms(&mut app, 10);
        assert_eq!(called(&mut app), ["a", "c"]);
        app.world_mut().despawn(b);
    }
}

#[test]
fn a_callback_replaced_earlier_in_the_frame_waits_for_the_next() {
    let mut app = update_app();
    let b = app.world_mut().spawn_empty().id();
    let a = app.world_mut().spawn(doing("a", move |world, _| {
        world.entity_mut(b).insert(say("new b").with_priority(1));
    }));
    let a = a.id();
    app.world_mut().entity_mut(b).insert(say("b"));
    app.world_mut().spawn(say("c").with_priority(2));
    advance_ms(&mut app, 10);
    assert_eq!(called(&mut app), ["a", "c"], "neither the old nor the new");
    app.world_mut().despawn(a);
    advance_ms(&mut app, 10);
    assert_eq!(called(&mut app), ["new b", "c"]);
}

#[test]
fn a_callback_can_remove_or_despawn_itself() {
    let ways: [fn(&mut World, Entity); 2] = [
        |world, me| {
            world.entity_mut(me).remove::<UpdateComponent>();
        },
        |world, me| world.entity_mut(me).despawn(),
    ];
    for way in ways {
        let mut app = update_app();
        app.world_mut().spawn(doing("a", way));
        app.world_mut().spawn(say("b"));
        advance_ms(&mut app, 10);
        assert_eq!(called(&mut app), ["a", "b"]);
        advance_ms(&mut app, 10);
        assert_eq!(called(&mut app), ["b"]);
    }
}

#[test]
fn a_callback_removed_by_a_later_one_does_not_run_again() {
    let mut app = update_app();
    let a = app.world_mut().spawn(say("a")).id();
    app.world_mut().spawn(doing("b", move |world, _| {
        world.try_despawn(a).ok();
    }));
    advance_ms(&mut app, 10);
    assert_eq!(called(&mut app), ["a", "b"]);
    advance_ms(&mut app, 10);
    assert_eq!(called(&mut app), ["b"]);
}

#[test]
fn a_callback_inserted_and_removed_between_frames_does_not_run() {
    let mut app = update_app();
    let a = app.world_mut().spawn(say("a")).id();
    app.world_mut().despawn(a);
    let b = app.world_mut().spawn(say("b")).id();
    app.world_mut().entity_mut(b).insert(say("new b"));
    advance_ms(&mut app, 10);
    assert_eq!(called(&mut app), ["new b"]);
}

#[test]
fn a_component_can_move_to_another_entity() {
    let mut app = update_app();
    let [a, b] = [1, 2].map(|_| app.world_mut().spawn(Count(0)).id());
    app.world_mut()
        .entity_mut(a)
        .insert(UpdateComponent::new(count));
    advance_ms(&mut app, 10);
    let taken = app.world_mut().entity_mut(a).take::<UpdateComponent>();
    app.world_mut().entity_mut(b).insert(taken.unwrap());
    advance_ms(&mut app, 10);
    advance_ms(&mut app, 10);
    assert_eq!([counted(&app, a), counted(&app, b)], [1, 2]);
}

#[test]
fn a_clone_calls_the_same_callback_on_another_entity() {
    let mut app = update_app();
    let counting = UpdateComponent::new(count).with_priority(3);
    let a = app.world_mut().spawn((Count(0), counting.clone())).id();
    assert_eq!(counting.priority(), 3);
    advance_ms(&mut app, 10);
    let b = app.world_mut().spawn((Count(10), counting)).id();
    let cloned = app
        .world_mut()
        .entity_mut(a)
        .clone_and_spawn_with_opt_out(|builder| {
            builder.deny::<Count>();
        });
    app.world_mut().entity_mut(cloned).insert(Count(20));
    advance_ms(&mut app, 10);
    app.world_mut().despawn(a);
    advance_ms(&mut app, 10);
    assert_eq!([counted(&app, b), counted(&app, cloned)], [12, 22]);
}

#[test]
fn a_disabled_entity_is_not_called() {
    #[derive(Component)]
    struct Hidden;

    // Before the first frame: Bevy's queries look up the disabling components once.
    let mut app = App::new();
    app.world_mut().register_disabling_component::<Hidden>();
    app.add_plugins((TimePlugin, DuePlugin::default()));
    log_calls(&mut app);
    let a = app.world_mut().spawn((say("a"), Hidden)).id();
    let b = app.world_mut().spawn(say("b")).id();
    app.world_mut().spawn(say("c"));
    app.world_mut().entity_mut(b).insert(Disabled);
    advance_ms(&mut app, 10);
    assert_eq!(called(&mut app), ["c"]);
    app.world_mut().entity_mut(a).remove::<Hidden>();
    app.world_mut().entity_mut(b).remove::<Disabled>();
    advance_ms(&mut app, 10);
    assert_eq!(called(&mut app), ["a", "b", "c"], "in the old order");
}

// The context.

#[test]
fn a_callback_changes_the_components_of_its_entity() {
    let mut app = update_app();
    let entity = app
        .world_mut()
        .spawn((Count(0), UpdateComponent::new(count)))
        .id();
    for _ in 0..3 {
        advance_ms(&mut app, 10);
    }
    assert_eq!(counted(&app, entity), 3);
}

#[test]
fn commands_are_applied_before_the_next_callback() {
    #[derive(Component)]
    struct Next(Entity);

    let mut app = update_app();
    let b = app
        .world_mut()
        .spawn(Count(0))
        .insert(
            UpdateComponent::new(|mut me: UpdateContext| {
                let seen = me.entity.get::<Count>().unwrap().0;
                me.commands.spawn(Count(seen));
            })
            .with_priority(1),
        )
        .id();
    let raise = UpdateComponent::new(|mut me: UpdateContext| {
        let &Next(next) = me.entity.get().unwrap();
        me.commands.entity(next).insert(Count(7));
    });
    app.world_mut().spawn((Next(b), raise));
    advance_ms(&mut app, 10);
    let mut counts = app
        .world_mut()
        .query_filtered::<&Count, Without<UpdateComponent>>();
    assert_eq!(counts.single(app.world()).unwrap().0, 7);
}

#[test]
fn a_one_shot_system_sees_earlier_changes() {
    fn look(In(entity): In<Entity>, counts: Query<&Count>, mut commands: Commands) {
        let sum: u32 = counts.iter().map(|count| count.0).sum();
        commands.entity(entity).insert(Count(sum));
    }

    let mut app = update_app();
    let look = app.world_mut().register_system(look);
    let looking = UpdateComponent::new(move |mut me: UpdateContext| {
        let entity = me.entity.id();
        assert_eq!((entity, me.delta), (me.update_entity, ms(10)));
        assert_eq!(me.clock, ClockId::Virtual);
        me.commands.run_system_with(look, entity);
    });
    let by_hand = UpdateComponent::new(|mut me: UpdateContext| {
        me.entity.get_mut::<Count>().unwrap().0 += 1;
    });
    app.world_mut().spawn((Count(2), by_hand));
    app.world_mut().spawn(doing("spawns", |world, _| {
        world.spawn(Count(100));
    }));
    let first = app.world_mut().spawn(looking.clone()).id();
    let second = app.world_mut().spawn(looking.clone()).id();
    app.world_mut().spawn(say("after"));
    advance_ms(&mut app, 10);
    assert_eq!([counted(&app, first), counted(&app, second)], [103, 206]);
    assert_eq!(called(&mut app), ["spawns", "after"]);
}

#[test]
fn a_callback_can_run_a_system() {
    fn count_all(In(me): In<Entity>, mut counts: Query<&mut Count>) -> Result {
        let sum: u32 = counts.iter().map(|count| count.0).sum();
        if sum > 10 {
            return Err(format!("{me} has counted to {sum}").into());
        }
        counts.get_mut(me)?.0 += sum;
        Ok(())
    }

    let mut app = update_app();
    app.insert_resource(FallbackErrorHandler(record));
    let counting = || UpdateComponent::new(|mut me| me.run(count_all, me.entity.id()));
    let counters = [1, 2].map(|count| {
        let entity = app.world_mut().spawn((Count(count), counting()));
        entity.id()
    });
    advance_ms(&mut app, 10);
    assert_eq!(counters.map(|entity| counted(&app, entity)), [4, 8]);
    assert!(errors().is_empty());
    advance_ms(&mut app, 10);
    assert_eq!(counters.map(|entity| counted(&app, entity)), [4, 8]);
    let expected = counters.map(|entity| format!("{entity} has counted to 12"));
    assert_eq!(errors().len(), expected.len());
}

#[test]
fn an_error_is_reported_and_the_other_callbacks_run() {
    fn fails(_: In<Entity>) -> Result {
        Err("the system failed".into())
    }

    let mut app = update_app();
    app.insert_resource(FallbackErrorHandler(record));
    let fails: SystemId<In<Entity>> = app.world_mut().register_system(fails);
    app.world_mut().spawn(say("a"));
    app.world_mut()
        .spawn(UpdateComponent::new(|mut me: UpdateContext| -> Result {
            me.commands
                .queue(|world: &mut World| note(world, "what it did before"));
            Err("the closure failed".into())
        }));
    app.world_mut().spawn(say("b"));
    app.world_mut()
        .spawn(UpdateComponent::new(move |mut me: UpdateContext| {
            let run = command::run_system_with(fails, me.entity.id());
            me.commands.queue(run);
        }));
    app.world_mut().spawn(say("c"));
    for _ in 0..2 {
        advance_ms(&mut app, 10);
        assert_eq!(called(&mut app), ["a", "what it did before", "b", "c"]);
        let [closure, system] = errors().try_into().unwrap();
        assert!(closure.contains("the closure failed"), "{closure}");
        assert!(system.contains("the system failed"), "{system}");
    }
    app.world_mut().unregister_system(fails).unwrap();
    advance_ms(&mut app, 10);
    assert_eq!(called(&mut app).len(), 4);
    assert_eq!(errors().len(), 2, "also that there is no such system");
}

/// Bevy catches the panic of a system or a command and passes it to its error handler. The handler may
/// ignore it.
#[test]
fn after_a_caught_panic_all_callbacks_run_in_the_next_frame() {
    fn panic_at_20(elapsed: Duration) {
        assert!(elapsed != ms(20), "on purpose");
    }

    let in_itself = UpdateComponent::new(|me: UpdateContext| panic_at_20(me.elapsed));
    let in_its_command = UpdateComponent::new(|mut me: UpdateContext| {
        me.commands
            .queue(move |_: &mut World| panic_at_20(me.elapsed));
    });
    for (panics, the_rest) in [(in_itself, &["a"][..]), (in_its_command, &["a", "b"])] {
        let mut app = update_app();
        app.insert_resource(FallbackErrorHandler(record));
        app.world_mut().spawn(say("a"));
        app.world_mut().spawn(panics);
        app.world_mut().spawn(say("b"));
        advance_ms(&mut app, 10);
        assert_eq!(called(&mut app), ["a", "b"]);
        assert!(errors().is_empty());

        advance_ms(&mut app, 10);
        assert_eq!(called(&mut app), the_rest);
        assert_eq!(errors().len(), 1);

        advance_ms(&mut app, 10);
        assert_eq!(called(&mut app), ["a", "b"], "from the first one on");
        assert!(errors().is_empty());
    }
}

#[test]
fn a_panic_propagates_like_that_of_any_system() {
    let mut app = update_app();
    app.world_mut()
        .spawn(UpdateComponent::new(|_: UpdateContext| {
            panic!("on purpose")
        }));
    let caught = std::panic::catch_unwind(core::panic::AssertUnwindSafe(|| {
        advance_ms(&mut app, 10);
    }));
    assert!(caught.is_err());
}
