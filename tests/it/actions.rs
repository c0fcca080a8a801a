//! `TimerAction`: an action that runs each time its timer fires.

use crate::support::{errors::*, *};
use bevy_app::{App, FixedPreUpdate, PreUpdate};
use bevy_due::{OwnedTimerFired, Timer, prelude::*};
use bevy_ecs::{error::FallbackErrorHandler, message::Messages, prelude::*};
use bevy_time::{Fixed, Time};

#[derive(Component, Clone)]
struct Mark;

#[derive(Event, Clone)]
struct Bell;

#[derive(EntityEvent)]
struct Explode {
    entity: Entity,
}

#[derive(Message, Clone)]
struct Note(Entity);

/// The actions that ran, in order, each with its entity.
#[derive(Resource, Default)]
struct Calls(Vec<(&'static str, Entity)>);

fn action_app() -> App {
    let mut app = app();
    app.init_resource::<Calls>()
        .insert_resource(FallbackErrorHandler(record));
    app
}

fn calls(app: &mut App) -> Vec<(&'static str, Entity)> {
    core::mem::take(&mut app.world_mut().resource_mut::<Calls>().0)
}

fn notes(app: &mut App) -> Vec<Entity> {
    let mut notes = app.world_mut().resource_mut::<Messages<Note>>();
    notes.drain().map(|note| note.0).collect()
}

/// Returns an action that logs its own call.
fn log_call(name: &'static str) -> TimerAction {
    TimerAction::call(move |world: &mut World, fired: TimerFired| {
        world.resource_mut::<Calls>().0.push((name, fired.entity()));
    })
}

fn spawn_with_action(app: &mut App, action: TimerAction) -> Entity {
    let timer = (Timer::after(ms(10)), action, Mark);
    app.world_mut().spawn(timer).id()
}

#[test]
fn an_action_targets_the_timer_or_its_owner() {
    for on_owner in [false, true] {
        let mut app = action_app();
        app.add_message::<Note>()
            .add_observer(|explode: On<Explode>, mut calls: ResMut<Calls>| {
                calls.0.push(("explode", explode.entity));
            });
        let actions = [
            match on_owner {
                true => TimerAction::despawn_owner(),
                false => TimerAction::despawn(),
            },
            TimerAction::call(|world, fired| {
                world.entity_mut(fired.owner()).insert(Tag("new"));
            }),
            TimerAction::call(|world, fired| {
                world.entity_mut(fired.owner()).remove::<Mark>();
            }),
            TimerAction::call(|world, fired| {
                let entity = fired.owner();
                world.trigger(Explode { entity });
            }),
            TimerAction::call(|world, fired| {
                world.write_message(Note(fired.owner()));
            }),
        ];
        let targets = actions.map(|action| {
            if !on_owner {
                return spawn_with_action(&mut app, action);
            }
            let owner = app.world_mut().spawn(Mark).id();
            let timer = (OwnedBy(owner), Timer::after(ms(10)), action);
            app.world_mut().spawn(timer);
            owner
        });
        advance_ms(&mut app, 10);
        let [despawned, inserted, removed, exploded, noted] = targets;
        assert!(app.world().get_entity(despawned).is_err());
        assert!(app.world().entity(inserted).contains::<Tag>());
        assert!(!app.world().entity(removed).contains::<Mark>());
        assert_eq!(calls(&mut app), [("explode", exploded)]);
        assert_eq!(notes(&mut app), [noted]);
    }
}

#[test]
fn actions_of_every_kind_run_in_firing_order() {
    fn system(In(fired): In<TimerFired>, mut calls: ResMut<Calls>) {
        calls.0.push(("system", fired.entity()));
    }

    let mut app = action_app();
    app.world_mut().add_timer_handler("handler", system);
    app.add_message::<Note>()
        .add_observer(|_: On<Bell>, mut calls: ResMut<Calls>| {
            calls.0.push(("bell", Entity::PLACEHOLDER));
        });
    let call = spawn_with_action(&mut app, log_call("call"));
    spawn_with_action(&mut app, TimerAction::call(|world, _| world.trigger(Bell)));
    let one_shot = app.world_mut().register_system(system);
    let one_shot = TimerAction::call(move |world, fired| world.run_system_with(one_shot, fired));
    let one_shot = spawn_with_action(&mut app, one_shot);
    let named = spawn_with_action(&mut app, TimerAction::named("handler"));
    let write = TimerAction::call(move |world, _| {
        world.write_message(Note(named));
    });
    spawn_with_action(&mut app, write);
    advance_ms(&mut app, 10);
    assert_eq!(
        calls(&mut app),
        [
            ("call", call),
            ("bell", Entity::PLACEHOLDER),
            ("system", one_shot),
            ("system", named),
        ]
    );
    assert_eq!(notes(&mut app), [named]);
}

#[test]
fn an_action_runs_at_every_firing_after_the_observers() {
    let mut app = action_app();
    let timer = (Timer::every(ms(10)).times(3), log_call("act"));
    let timer = app.world_mut().spawn(timer).id();
    app.add_observer(|fired: On<TimerFired>, mut calls: ResMut<Calls>| {
        calls.0.push(("observe", fired.entity()));
    });
    advance_ms(&mut app, 100);
    let once = [("observe", timer), ("act", timer)];
    assert_eq!(calls(&mut app), [once, once, once].concat());
}

#[test]
fn an_action_is_skipped_if_an_observer_cancelled_or_rearmed_the_timer() {
    let changes: [fn(EntityCommands); 5] = [
        |mut timer| _ = timer.remove::<Timer>(),
        |mut timer| _ = timer.insert(Timer::after(ms(500))),
        |mut timer| _ = timer.remove::<TimerAction>(),
        |mut timer| _ = timer.insert(Timer::after(ms(500)).on(ClockId::Real)),
        |mut timer| timer.despawn(),
    ];
    for timer in [Timer::after(ms(10)), Timer::every(ms(10))] {
        for (nth, change) in changes.into_iter().enumerate() {
            let mut app = action_app();
            app.add_observer(move |fired: On<TimerFired>, mut commands: Commands| {
                change(commands.entity(fired.entity()));
            });
            app.world_mut().spawn((timer.clone(), log_call("act")));
            advance_ms(&mut app, 10);
            assert_eq!(calls(&mut app), [], "change {nth} of {timer:?}");
        }
    }
}

#[test]
fn an_action_can_be_added_replaced_and_removed_while_the_timer_is_armed() {
    let mut app = action_app();
    let timer = spawn(&mut app, "x", Timer::every(ms(10)));
    for action in [Some(log_call("first")), Some(log_call("second")), None] {
        let mut timer = app.world_mut().entity_mut(timer);
        match action {
            Some(action) => timer.insert(action),
            None => timer.remove::<TimerAction>(),
        };
        advance_ms(&mut app, 10);
    }
    assert_eq!(calls(&mut app), [("first", timer), ("second", timer)]);
}

#[test]
fn an_error_in_an_action_reaches_the_error_handler_and_stops_no_timer() {
    let mut app = action_app();
    let one_shot = app.world_mut().register_system(|_: In<TimerFired>| {});
    app.world_mut().unregister_system(one_shot).unwrap();
    let fails = |_: In<TimerFired>| -> Result { Err("no luck".into()) };
    app.world_mut().add_timer_handler("fails", fails);
    let failing = TimerAction::call(|_: &mut World, fired: TimerFired| -> Result {
        Err(format!("failed {}", fired.count()).into())
    });
    let failing = (Timer::every(ms(5)), failing);
    app.world_mut().spawn(failing);
    spawn_with_action(&mut app, TimerAction::named("unheard of"));
    spawn_with_action(&mut app, TimerAction::named("fails"));
    let write = TimerAction::call(|world, _| -> Result {
        let note = Note(Entity::PLACEHOLDER);
        world
            .write_message(note)
            .ok_or("`Note` is not a registered message")?;
        Ok(())
    });
    spawn_with_action(&mut app, write);
    let one_shot = TimerAction::call(move |world, fired| world.run_system_with(one_shot, fired));
    spawn_with_action(&mut app, one_shot);
    let last = spawn_with_action(&mut app, log_call("last"));
    advance_ms(&mut app, 10);
    assert_eq!(calls(&mut app), [("last", last)]);
    let errors = errors();
    let expected = [
        "\"unheard of\"", // A warning, before the first timer fires.
        "failed 1",
        "failed 2",
        "\"unheard of\"",
        "no luck",
        "Note",
        "",
    ];
    assert_eq!(errors.len(), expected.len(), "{errors:?}");
    for (error, part) in errors.iter().zip(expected) {
        assert!(error.contains(part), "{error:?} should contain {part:?}");
    }
}

#[test]
fn a_despawned_target_is_not_an_error() {
    let mut app = action_app();
    for action in [
        TimerAction::despawn_owner(),
        TimerAction::call(|world, fired| {
            let commands = &mut world.commands();
            commands.entity(fired.owner()).try_insert(Mark);
        }),
        TimerAction::call(|world, fired| {
            let commands = &mut world.commands();
            commands.entity(fired.owner()).try_remove::<Mark>();
        }),
    ] {
        let owner = app.world_mut().spawn_empty().id();
        let timer = (OwnedBy(owner), Timer::after(ms(10)), action);
        let timer = app.world_mut().spawn(timer).id();
        // During its firing the timer loses its owner, and the owner despawns.
        app.world_mut().entity_mut(timer).observe(
            move |_: On<TimerFired>, mut commands: Commands| {
                commands.entity(timer).remove::<OwnedBy>();
                commands.entity(owner).despawn();
            },
        );
    }
    advance_ms(&mut app, 10);
    assert_eq!(errors(), Vec::<String>::new());
}

#[test]
fn a_named_handler_reads_the_data_of_the_action_that_runs() {
    #[derive(Resource, Default)]
    struct Read(Vec<(Entity, Vec<u8>)>);

    fn read(In(fired): In<TimerFired>, actions: Query<&TimerAction>, mut read: ResMut<Read>) {
        let action = actions.get(fired.entity()).expect("it runs");
        read.0.push((fired.entity(), action.data().to_vec()));
    }

    let mut app = action_app();
    app.init_resource::<Read>();
    app.world_mut().add_timer_handler("read", read);
    let boss = app.world_mut().spawn_empty().id();
    let actions = [
        TimerAction::named_with("read", [1, 2, 255]),
        TimerAction::named_with("read", "text"),
        TimerAction::named("read"),
    ];
    let timers = actions.map(|action| {
        let timer = (OwnedBy(boss), Timer::after(ms(10)), action);
        app.world_mut().spawn(timer).id()
    });
    let later = spawn(&mut app, "x", Timer::every(ms(10)).times(2));
    let data = [vec![1, 2, 255], b"text".to_vec(), vec![]];
    let mut expected: Vec<_> = timers.into_iter().zip(data).collect();
    for data in [7, 8] {
        let action = TimerAction::named_with("read", [data]);
        app.world_mut().entity_mut(later).insert(action);
        advance_ms(&mut app, 10);
        expected.push((later, vec![data]));
    }
    assert_eq!(app.world().resource::<Read>().0, expected);
    assert_eq!(errors(), Vec::<String>::new());
}

#[test]
fn an_action_without_a_handler_has_no_data() {
    for action in [
        TimerAction::default(),
        TimerAction::despawn(),
        TimerAction::despawn_owner(),
        TimerAction::call(|_, _| ()),
    ] {
        assert_eq!(action.data(), b"", "{action:?}");
    }
}

#[cfg(feature = "serialize")]
#[test]
fn a_closure_can_not_be_saved_and_the_error_says_what_can() {
    let bite = 3;
    let action = TimerAction::call(move |world: &mut World, fired: TimerFired| -> Result {
        world.entity_mut(fired.owner()).insert(Tag("bitten"));
        (bite > 0).then_some(()).ok_or("no teeth".into())
    });
    let error = ron::to_string(&action).unwrap_err().to_string();
    for part in [
        "actions::a_closure_can_not_be_saved",
        "`TimerAction::named_with`",
        "`add_timer_handler`",
    ] {
        assert!(error.contains(part), "{error:?} should contain {part:?}");
    }
}

#[test]
#[should_panic(expected = "\"grow\"")]
fn registering_a_handler_name_twice_panics() {
    let mut app = app();
    for _ in 0..2 {
        app.world_mut()
            .add_timer_handler("grow", |_: In<TimerFired>| {});
    }
}

#[test]
fn a_firing_triggers_one_event_for_the_timer_and_one_for_its_owner() {
    let mut app = action_app();
    let boss = app.world_mut().spawn_empty().id();
    let timer = (Tag("x"), OwnedBy(boss), Timer::after(ms(10)));
    let timer = app.world_mut().spawn(timer).id();
    for entity in [boss, timer] {
        app.world_mut().entity_mut(entity).observe(
            |fired: On<TimerFired>, mut calls: ResMut<Calls>| {
                calls.0.push(("timer", fired.entity()));
            },
        );
    }
    app.world_mut().entity_mut(boss).observe(
        move |fired: On<OwnedTimerFired>, mut calls: ResMut<Calls>| {
            assert_eq!((fired.event_target(), fired.owner()), (boss, boss));
            calls.0.push(("owner", fired.entity()));
        },
    );
    app.add_observer(|fired: On<TimerFired>, mut calls: ResMut<Calls>| {
        calls.0.push(("global", fired.event_target()));
    });
    advance_ms(&mut app, 10);
    let expected = [("global", timer), ("timer", timer), ("owner", timer)];
    assert_eq!(calls(&mut app), expected);
}

#[test]
fn a_firing_does_not_propagate_to_an_unobserved_owner() {
    let mut app = action_app();
    let boss = app.world_mut().spawn_empty().id();
    let timer = (OwnedBy(boss), Timer::after(ms(10)));
    app.world_mut().spawn(timer);
    app.add_observer(|fired: On<TimerFired>, mut calls: ResMut<Calls>| {
        calls.0.push(("global", fired.entity()));
    });
    advance_ms(&mut app, 10);
    assert_eq!(calls(&mut app).len(), 1);
}

#[test]
fn a_timer_without_an_owner_is_observed_once() {
    let mut app = action_app();
    let timer = spawn(&mut app, "x", Timer::after(ms(10)));
    app.world_mut()
        .entity_mut(timer)
        .observe(|fired: On<TimerFired>, mut calls: ResMut<Calls>| {
            calls.0.push(("x", fired.entity()));
        });
    advance_ms(&mut app, 10);
    assert_eq!(calls(&mut app), [("x", timer)]);
}

/// Spawns a timer with an action and an observer that runs [`PreUpdate`], and with it a run inside
/// the run.
fn spawn_nesting(app: &mut App, timer: Timer) -> Entity {
    app.world_mut()
        .spawn((timer, log_call("act")))
        .observe(|_: On<TimerFired>, mut commands: Commands| {
            commands.run_schedule(PreUpdate);
        })
        .id()
}

#[test]
fn in_a_fast_forward_an_action_runs_after_an_observer_that_runs_pre_update() {
    for timer in [
        Timer::after(ms(10)),
        Timer::every(ms(10)).times(1),
        Timer::every(ms(10)),
    ] {
        let case = format!("{timer:?}");
        let mut app = action_app();
        let timer = spawn_nesting(&mut app, timer);
        let forward = app.world_mut().fast_forward(ClockId::Virtual, ms(15));
        forward.expect("the clock runs");
        assert_eq!(calls(&mut app), [("act", timer)], "{case}");
    }
}

#[test]
fn in_the_fixed_schedule_an_action_runs_after_an_observer_that_runs_pre_update() {
    let mut app = action_app();
    app.insert_resource(Time::<Fixed>::from_duration(ms(10)));
    let timer = spawn_nesting(&mut app, Timer::after(ms(10)).on(ClockId::Fixed));
    for _ in 0..4 {
        advance_ms(&mut app, 10);
    }
    assert_eq!(calls(&mut app), [("act", timer)]);
}

/// Runs a named handler in a frame that also runs the fixed schedule, where a timer fires that has the same handler.
fn nested_calls<M>(
    handler: impl IntoSystem<In<TimerFired>, (), M> + 'static,
) -> (Vec<(&'static str, Entity)>, [Entity; 2]) {
    let mut app = action_app();
    app.world_mut().add_timer_handler("nest", handler);
    let act = || TimerAction::named("nest");
    let inner = Timer::after(0).on(ClockId::Fixed);
    let inner = app.world_mut().spawn((inner, act())).id();
    let outer = app.world_mut().spawn((Timer::after(ms(10)), act())).id();
    advance_ms(&mut app, 10);
    (calls(&mut app), [outer, inner])
}

#[test]
fn a_named_handler_that_runs_a_schedule_by_a_command_is_called_in_it() {
    let (calls, [outer, inner]) = nested_calls(
        |In(fired): In<TimerFired>,
         mut nth: Local<usize>,
         mut calls: ResMut<Calls>,
         mut commands: Commands| {
            let name = ["first", "second"][*nth];
            calls.0.push((name, fired.entity()));
            *nth += 1;
            commands.run_schedule(FixedPreUpdate);
        },
    );
    assert_eq!(errors(), [] as [&str; 0]);
    assert_eq!(calls, [("first", outer), ("second", inner)]);
}

#[test]
fn an_exclusive_handler_that_is_called_in_the_schedule_that_it_runs_is_reported() {
    let (calls, [outer, inner]) = nested_calls(|In(fired): In<TimerFired>, world: &mut World| {
        world
            .resource_mut::<Calls>()
            .0
            .push(("act", fired.entity()));
        world.run_schedule(FixedPreUpdate);
    });
    assert_eq!(calls, [("act", outer)]);
    let place = format!("timer handler \"nest\" of {inner}");
    let error = "the system is already running, and runs a schedule that calls it: run the schedule by a \
                 command, such as `commands.run_schedule`";
    assert_eq!(errors(), [format!("{place}: {error}")]);
}

#[test]
fn the_commands_of_a_named_handler_that_fails_are_applied() {
    let mut app = action_app();
    app.world_mut()
        .add_timer_handler("fail", |_: In<TimerFired>, mut commands: Commands| {
            commands.spawn(Mark);
            Err::<(), BevyError>("no luck".into())
        });
    let timer = (Timer::after(ms(10)), TimerAction::named("fail"));
    app.world_mut().spawn(timer);
    advance_ms(&mut app, 10);
    assert_eq!(errors().len(), 1);
    let mut marks = app.world_mut().query::<&Mark>();
    assert_eq!(marks.iter(app.world()).count(), 1);
}
