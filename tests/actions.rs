//! `TimerAction`: what a timer does by itself when it fires.

mod support;

use core::cell::RefCell;

use bevy_app::{App, PreUpdate};
use bevy_due::{Timer, prelude::*};
use bevy_ecs::{
    error::{BevyError, ErrorContext, FallbackErrorHandler},
    message::Messages,
    prelude::*,
};
use bevy_time::{Fixed, Time};
use support::*;

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

/// What the actions have done, in order: which, and to whom.
#[derive(Resource, Default)]
struct Done(Vec<(&'static str, Entity)>);

thread_local!(static ERRORS: RefCell<Vec<String>> = const { RefCell::new(Vec::new()) });

fn record(error: BevyError, _: ErrorContext) {
    ERRORS.with_borrow_mut(|errors| errors.push(format!("{error}")));
}

fn action_app() -> App {
    let mut app = app();
    app.init_resource::<Done>()
        .insert_resource(FallbackErrorHandler(record));
    app
}

fn done(app: &mut App) -> Vec<(&'static str, Entity)> {
    core::mem::take(&mut app.world_mut().resource_mut::<Done>().0)
}

fn notes(app: &mut App) -> Vec<Entity> {
    let mut notes = app.world_mut().resource_mut::<Messages<Note>>();
    notes.drain().map(|note| note.0).collect()
}

/// An action that says that it has been done.
fn say(what: &'static str) -> TimerAction {
    TimerAction::call(move |world: &mut World, fired: TimerFired| {
        world.resource_mut::<Done>().0.push((what, fired.entity()));
    })
}

fn in_ten(app: &mut App, action: TimerAction) -> Entity {
    let timer = (Timer::after(ms(10)), action, Mark);
    app.world_mut().spawn(timer).id()
}

#[test]
fn an_action_concerns_the_entity_or_its_owner() {
    for on_owner in [false, true] {
        let mut app = action_app();
        app.add_message::<Note>()
            .add_observer(|explode: On<Explode>, mut done: ResMut<Done>| {
                done.0.push(("explode", explode.entity));
            });
        let actions = [
            TimerAction::despawn(),
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
                return in_ten(&mut app, action);
            }
            let owner = app.world_mut().spawn(Mark).id();
            let timer = (OwnedBy(owner), Timer::after(ms(10)), action.on_owner());
            app.world_mut().spawn(timer);
            owner
        });
        advance_ms(&mut app, 10);
        let [despawned, inserted, removed, exploded, noted] = targets;
        assert!(app.world().get_entity(despawned).is_err());
        assert!(app.world().entity(inserted).contains::<Tag>());
        assert!(!app.world().entity(removed).contains::<Mark>());
        assert_eq!(done(&mut app), [("explode", exploded)]);
        assert_eq!(notes(&mut app), [noted]);
    }
}

#[test]
fn events_messages_closures_and_systems_run_in_order() {
    fn system(In(fired): In<TimerFired>, mut done: ResMut<Done>) {
        done.0.push(("system", fired.entity()));
    }

    let mut app = action_app();
    app.world_mut().add_timer_handler("handler", system);
    app.add_message::<Note>()
        .add_observer(|_: On<Bell>, mut done: ResMut<Done>| {
            done.0.push(("bell", Entity::PLACEHOLDER));
        });
    let call = in_ten(&mut app, say("call"));
    in_ten(&mut app, TimerAction::call(|world, _| world.trigger(Bell)));
    let one_shot = app.world_mut().register_system(system);
    let one_shot = TimerAction::call(move |world, fired| world.run_system_with(one_shot, fired));
    let one_shot = in_ten(&mut app, one_shot);
    let named = in_ten(&mut app, TimerAction::named("handler"));
    let write = TimerAction::call(move |world, _| {
        world.write_message(Note(named));
    });
    in_ten(&mut app, write);
    advance_ms(&mut app, 10);
    assert_eq!(
        done(&mut app),
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
fn it_acts_at_every_firing_after_the_observers() {
    let mut app = action_app();
    let timer = (Timer::every(ms(10)).times(3), say("act"));
    let timer = app.world_mut().spawn(timer).id();
    app.add_observer(|fired: On<TimerFired>, mut done: ResMut<Done>| {
        done.0.push(("observe", fired.entity()));
    });
    advance_ms(&mut app, 100);
    let once = [("observe", timer), ("act", timer)];
    assert_eq!(done(&mut app), [once, once, once].concat());
}

#[test]
fn it_is_left_out_if_an_observer_has_cancelled_or_rearmed_the_timer() {
    let ways: [fn(EntityCommands); 5] = [
        |mut timer| _ = timer.remove::<Timer>(),
        |mut timer| _ = timer.insert(Timer::after(ms(500))),
        |mut timer| _ = timer.remove::<TimerAction>(),
        |mut timer| _ = timer.insert(Timer::after(ms(500)).on(ClockId::Real)),
        |mut timer| timer.despawn(),
    ];
    for timer in [Timer::after(ms(10)), Timer::every(ms(10))] {
        for (nth, way) in ways.into_iter().enumerate() {
            let mut app = action_app();
            app.add_observer(move |fired: On<TimerFired>, mut commands: Commands| {
                way(commands.entity(fired.entity()));
            });
            app.world_mut().spawn((timer.clone(), say("act")));
            advance_ms(&mut app, 10);
            assert_eq!(done(&mut app), [], "way {nth} of {timer:?}");
        }
    }
}

#[test]
fn it_may_come_and_change_while_the_timer_is_armed() {
    let mut app = action_app();
    let timer = spawn(&mut app, "x", Timer::every(ms(10)));
    for action in [Some(say("first")), Some(say("second")), None] {
        let mut timer = app.world_mut().entity_mut(timer);
        match action {
            Some(action) => timer.insert(action),
            None => timer.remove::<TimerAction>(),
        };
        advance_ms(&mut app, 10);
    }
    assert_eq!(done(&mut app), [("first", timer), ("second", timer)]);
}

#[test]
fn an_error_goes_to_the_handler_and_stops_neither_the_timer_nor_the_others() {
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
    in_ten(&mut app, TimerAction::named("unheard of"));
    in_ten(&mut app, TimerAction::named("fails"));
    let write = TimerAction::call(|world, _| -> Result {
        let note = Note(Entity::PLACEHOLDER);
        world.write_message(note).ok_or("Note is no message here")?;
        Ok(())
    });
    in_ten(&mut app, write);
    let one_shot = TimerAction::call(move |world, fired| world.run_system_with(one_shot, fired));
    in_ten(&mut app, one_shot);
    let last = in_ten(&mut app, say("last"));
    advance_ms(&mut app, 10);
    assert_eq!(done(&mut app), [("last", last)]);
    let errors = ERRORS.take();
    let expected = [
        "failed 1",
        "failed 2",
        "\"unheard of\"",
        "no luck",
        "Note",
        "",
    ];
    assert_eq!(errors.len(), expected.len(), "{errors:?}");
    for (error, part) in errors.iter().zip(expected) {
        assert!(error.contains(part), "{error:?} should name {part:?}");
    }
}

#[test]
fn a_target_that_is_gone_is_no_error() {
    let mut app = action_app();
    for action in [
        TimerAction::despawn(),
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
        let timer = (OwnedBy(owner), Timer::after(ms(10)), action.on_owner());
        let timer = app.world_mut().spawn(timer).id();
        // The owner goes, and the timer stays behind without one, in the middle of its firing.
        app.world_mut().entity_mut(timer).observe(
            move |_: On<TimerFired>, mut commands: Commands| {
                commands.entity(timer).remove::<OwnedBy>();
                commands.entity(owner).despawn();
            },
        );
    }
    advance_ms(&mut app, 10);
    assert_eq!(ERRORS.take(), Vec::<String>::new());
}

#[test]
#[should_panic(expected = "\"grow\"")]
fn a_name_can_not_be_taken_twice() {
    let mut app = app();
    for _ in 0..2 {
        app.world_mut()
            .add_timer_handler("grow", |_: In<TimerFired>| {});
    }
}

#[test]
fn a_firing_goes_on_to_the_observers_of_the_owner() {
    let mut app = action_app();
    let boss = app.world_mut().spawn_empty().id();
    let timer = (Tag("x"), OwnedBy(boss), Timer::after(ms(10)));
    let timer = app.world_mut().spawn(timer).id();
    for (name, entity) in [("owner", boss), ("timer", timer)] {
        app.world_mut().entity_mut(entity).observe(
            move |fired: On<TimerFired>, mut done: ResMut<Done>| {
                assert_eq!(fired.owner(), boss);
                done.0.push((name, fired.entity()));
            },
        );
    }
    app.add_observer(|fired: On<TimerFired>, mut done: ResMut<Done>| {
        done.0.push(("everything", fired.event_target()));
    });
    advance_ms(&mut app, 10);
    let (everything, heard): (Vec<_>, Vec<_>) = done(&mut app)
        .into_iter()
        .partition(|(name, _)| *name == "everything");
    assert_eq!(heard, [("timer", timer), ("owner", timer)]);
    assert_eq!(
        everything,
        [("everything", timer), ("everything", boss)],
        "an observer of everything hears of each step, as Bevy has it"
    );
}

#[test]
fn a_firing_stays_at_the_timer_if_nobody_observes_the_owner() {
    let mut app = action_app();
    let boss = app.world_mut().spawn_empty().id();
    let timer = (OwnedBy(boss), Timer::after(ms(10)));
    app.world_mut().spawn(timer);
    app.add_observer(|fired: On<TimerFired>, mut done: ResMut<Done>| {
        done.0.push(("everything", fired.entity()));
    });
    advance_ms(&mut app, 10);
    assert_eq!(done(&mut app).len(), 1);
}

#[test]
fn an_owner_that_is_the_timer_hears_of_it_once() {
    let mut app = action_app();
    let timer = spawn(&mut app, "x", Timer::after(ms(10)));
    app.world_mut()
        .entity_mut(timer)
        .observe(|fired: On<TimerFired>, mut done: ResMut<Done>| {
            done.0.push(("x", fired.entity()));
        });
    advance_ms(&mut app, 10);
    assert_eq!(done(&mut app), [("x", timer)]);
}

/// Spawns a timer with an action and an observer that runs [`PreUpdate`], and with it a run inside
/// the run.
fn spawn_nesting(app: &mut App, timer: Timer) -> Entity {
    app.world_mut()
        .spawn((timer, say("act")))
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
        assert_eq!(done(&mut app), [("act", timer)], "{case}");
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
    assert_eq!(done(&mut app), [("act", timer)]);
}
