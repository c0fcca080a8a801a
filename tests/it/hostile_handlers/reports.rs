//! What events, messages and statistics say about timers that end in unusual ways.

use super::*;
use crate::support::*;
use bevy_app::FixedPreUpdate;
use bevy_due::{OnClock, TimerAction, TimerFired};
use bevy_ecs::lifecycle::Discard;

#[test]
fn event_and_message_agree_if_a_run_comes_between_the_removal_and_its_report() {
    let mut app = app();
    let timer = spawn(&mut app, "timer", Timer::after(ms(10)));
    app.add_observer(|_: On<Discard<Timer>>, mut commands: Commands| {
        commands.queue(|world: &mut World| {
            _ = world.fast_forward(ClockId::Frames, ms(0));
        });
    });
    app.world_mut().entity_mut(timer).remove::<Timer>();
    let expected = [(timer, CancelReason::Removed)];
    assert_eq!(cancel_messages(&app), expected, "one message is expected");
    assert_eq!(cancelled(&mut app), expected, "one event is expected");
}

#[test]
fn a_timer_spawned_for_a_dead_owner_names_that_owner() {
    #[derive(Resource, Default)]
    struct Owners(Vec<Entity>);
    let mut app = app();
    app.init_resource::<Owners>().add_observer(
        |cancelled: On<TimerCancelled>, mut owners: ResMut<Owners>| {
            owners.0.push(cancelled.owner());
        },
    );
    let owner = app.world_mut().spawn_empty().id();
    app.world_mut().despawn(owner);
    let timer = spawn_owned(&mut app, owner, Timer::after(ms(10)));
    assert_eq!(
        cancelled(&mut app),
        [(timer, CancelReason::OwnerGone)],
        "the timer should end at once"
    );
    assert_eq!(
        app.world().resource::<Owners>().0,
        [owner],
        "the event should name the dead owner"
    );
}

#[test]
fn a_replaced_timer_keeps_its_reason_if_the_new_timer_is_refused() {
    let mut app = app();
    ignore_errors(&mut app);
    let [clock, dead] = [(); 2].map(|()| app.world_mut().spawn(Clock::new()).id());
    app.world_mut().despawn(dead);
    let timer = (Timer::after(ms(10)), OnClock::new(clock));
    let timer = app.world_mut().spawn(timer).id();
    app.world_mut().entity_mut(timer).insert(OnClock::new(dead));
    app.world_mut()
        .modify_component(timer, |_: &mut Timer| ())
        .unwrap();
    app.world_mut().flush();
    advance_ms(&mut app, 10);
    let both = [
        (timer, CancelReason::Replaced),
        (timer, CancelReason::ClockGone),
    ];
    assert_eq!(cancelled(&mut app), both, "the events should match");
    assert_eq!(cancel_messages(&app), both, "the messages should match");
}

#[test]
fn the_stats_of_a_run_that_panics_count_only_that_run() {
    let mut app = app();
    ignore_errors(&mut app);
    spawn(&mut app, "periodic", Timer::every(ms(10)));
    app.add_observer(|fired: On<TimerFired>| assert!(fired.count() != 3));
    advance_ms(&mut app, 10);
    let first = LastRun {
        armed: 1,
        fired: 1,
        missed: 0,
        cancelled: 0,
    };
    assert_eq!(last_run(&mut app), first, "the run without a panic");
    let despawned = spawn(&mut app, "despawned", Timer::after(ms(100)));
    app.world_mut().despawn(despawned);
    advance_ms(&mut app, 50);
    let second = LastRun {
        armed: 0,
        fired: 2,
        missed: 0,
        cancelled: 1,
    };
    assert_eq!(last_run(&mut app), second, "the run with a panic");
}

#[test]
fn the_stats_count_nested_runs_and_missed_ticks() {
    let mut app = app_with(burst_limit(3));
    spawn(&mut app, "periodic", Timer::every(ms(10)));
    let removed = spawn(&mut app, "removed", Timer::every(ms(10)));
    let nested = TimerAction::call(|world: &mut World, _| world.run_schedule(FixedPreUpdate));
    app.world_mut().spawn((Timer::after(ms(15)), nested));
    app.world_mut().entity_mut(removed).remove::<Timer>();
    advance_ms(&mut app, 100);
    let long = LastRun {
        armed: 2,
        fired: 4,
        missed: 7,
        cancelled: 1,
    };
    assert_eq!(last_run(&mut app), long, "the long frame");
    advance_ms(&mut app, 0);
    let empty = LastRun {
        armed: 0,
        fired: 0,
        missed: 0,
        cancelled: 0,
    };
    assert_eq!(last_run(&mut app), empty, "the empty frame");
}
