//! Systems of delayed commands and named handlers that panic, or run within themselves.

use crate::support::*;
use bevy_app::{App, FixedPreUpdate};
use bevy_due::{Timer, TimerAction, prelude::*};
use bevy_ecs::{
    error::{FallbackErrorHandler, ignore},
    prelude::*,
};

#[derive(Resource, Default)]
struct Runs(u32);

fn game() -> App {
    let mut app = app();
    app.init_resource::<Runs>()
        .insert_resource(FallbackErrorHandler(ignore));
    app
}

fn runs(app: &mut App) -> u32 {
    for _ in 0..8 {
        advance_ms(app, 5);
    }
    app.world().resource::<Runs>().0
}

fn panics_once(mut runs: ResMut<Runs>) {
    runs.0 += 1;
    if runs.0 == 1 {
        std::panic::resume_unwind(Box::new("the first run panics"));
    }
}

#[test]
fn a_function_that_panicked_runs_again() {
    let mut app = game();
    for at in [5, 10, 20] {
        app.world_mut().commands().after(ms(at)).run(panics_once);
    }
    app.world_mut().flush();
    assert_eq!(runs(&mut app), 3);
}

#[test]
fn a_closure_that_panicked_runs_again() {
    let mut app = game();
    let by = 1;
    app.world_mut()
        .commands()
        .every(ms(5))
        .times(3)
        .run(move |mut runs: ResMut<Runs>| {
            runs.0 += by;
            if runs.0 == 1 {
                std::panic::resume_unwind(Box::new("the first run panics"));
            }
        });
    app.world_mut().flush();
    assert_eq!(runs(&mut app), 3);
}

#[test]
fn a_named_handler_that_panicked_runs_again() {
    let mut app = game();
    app.world_mut()
        .add_timer_handler("once", |_: In<TimerFired>, runs: ResMut<Runs>| {
            panics_once(runs);
        });
    let named = TimerAction::named("once");
    app.world_mut().spawn((Timer::every(ms(5)).times(3), named));
    assert_eq!(runs(&mut app), 3);
}

#[test]
fn a_function_may_run_a_schedule_that_runs_it_again() {
    fn nests(world: &mut World) {
        world.resource_mut::<Runs>().0 += 1;
        world.run_schedule(FixedPreUpdate);
    }

    let mut app = game();
    let mut commands = app.world_mut().commands();
    commands.after(ms(5)).run(nests);
    commands.after(ms(0)).on(ClockId::Fixed).run(nests);
    app.world_mut().flush();
    assert_eq!(runs(&mut app), 2);
}

#[test]
fn a_callback_can_run_a_closure_that_captures_values() {
    let mut app = game();
    let callback = UpdateComponent::new(|mut me| {
        let entity = me.entity.id();
        let by = 2;
        let add = move |In(entity): In<Entity>, all: Query<Entity>, mut runs: ResMut<Runs>| {
            runs.0 += by * u32::from(all.contains(entity));
        };
        me.run(add, entity);
        me.run(
            |mut runs: ResMut<Runs>, mut own: Local<u32>| {
                *own += 1;
                runs.0 += u32::from(*own == 8);
            },
            (),
        );
    });
    app.world_mut().spawn(callback);
    assert_eq!(runs(&mut app), 17, "the function keeps its `Local`");
}
