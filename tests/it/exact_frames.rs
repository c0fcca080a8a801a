//! Exact frames: each handler of a frame acts at its deadline, and the frame ends whatever the handlers do.
//! `tests/exact_frames.rs` plays random games.

use core::time::Duration;

use crate::support::*;
use bevy_app::{App, First, FixedPreUpdate, PreUpdate};
use bevy_due::{
    ClocksMut, DueSystems, Timer,
    clock::{ClockMut, SpeedModifier},
    prelude::*,
};
use bevy_ecs::prelude::*;
use bevy_time::{Time, Virtual};

const LIMIT: u32 = 5;

fn exact_app() -> App {
    app_with(DuePlugin {
        exact_frames: true,
        ..burst_limit(LIMIT)
    })
}

#[test]
fn a_pause_takes_effect_at_its_deadline() {
    let mut app = exact_app();
    let sun = spawn_clock(&mut app, Clock::new());
    let dusk = spawn(&mut app, "dusk", Timer::after(4));
    app.world_mut()
        .entity_mut(dusk)
        .observe(move |_: On<TimerFired>, mut clocks: ClocksMut| {
            clocks.get_mut(sun).unwrap().pause();
        });
    advance(&mut app, Duration::from_secs(10));
    assert_eq!(now(&app, sun), Duration::from_secs(4));
}

#[test]
fn a_chain_of_zero_delays_goes_on_in_the_next_frame() {
    let mut app = exact_app();
    app.add_observer(|_: On<TimerFired>, mut commands: Commands| {
        commands.spawn((Timer::after(0), DespawnAfter::new(60)));
    });
    spawn(&mut app, "first", Timer::after(0));
    for _ in 0..3 {
        advance_ms(&mut app, 10);
        let firings = firings(&mut app).len();
        assert_eq!(firings, LIMIT as usize);
    }
}

/// Lets each firing of a periodic timer change its clock, and returns the firings of two frames.
fn firings_of_two_frames(clock: Clock, timer: Timer, change: fn(&mut ClockMut)) -> [usize; 2] {
    let mut app = exact_app();
    let own = spawn_clock(&mut app, clock);
    let timer = spawn(&mut app, "x", timer.on(own));
    app.world_mut()
        .entity_mut(timer)
        .observe(move |_: On<TimerFired>, mut clocks: ClocksMut| {
            change(&mut clocks.get_mut(own).unwrap());
        });
    advance_ms(&mut app, 1);
    change_clock(&mut app, own, |clock| clock.advance_by(ms(10)));
    [1, 1].map(|span| {
        advance_ms(&mut app, span);
        firings(&mut app).len()
    })
}

/// Each firing makes the next one due. The timer fires up to the limit, and waits for the next frame.
#[test]
fn a_handler_that_lets_its_own_clock_jump_does_not_hold_up_the_frame() {
    let jumps = [
        |clock: &mut ClockMut| clock.advance_by(ms(10)),
        |clock: &mut ClockMut| clock.skip_by(ms(10)),
        |clock: &mut ClockMut| clock.advance_by(ms(1_000)),
    ];
    for jump in jumps {
        for clock in [Clock::new, Clock::manual] {
            for missed in [MissedTicks::Burst, MissedTicks::Skip, MissedTicks::Delay] {
                let timer = Timer::every(ms(10)).with_missed_ticks(missed);
                let fired = firings_of_two_frames(clock(), timer, jump);
                assert_eq!(fired, [LIMIT as usize; 2], "{missed:?}");
            }
        }
    }
}

#[test]
fn a_handler_that_speeds_its_own_clock_up_does_not_hold_up_the_frame() {
    let fired = firings_of_two_frames(Clock::new(), Timer::every(ms(10)), |clock| {
        clock.set_speed(1e6);
    });
    assert_eq!(fired, [LIMIT as usize; 2]);
}

/// Bevy's time moves on each time. What has passed waits for the next frame.
#[test]
fn a_handler_that_reads_the_clocks_does_not_hold_up_the_frame() {
    let mut app = exact_app();
    app.add_observer(|_: On<TimerFired>, mut commands: Commands| {
        commands.queue(|world: &mut World| world.run_schedule(First));
    });
    spawn(&mut app, "x", Timer::every(ms(10)));
    advance_ms(&mut app, 10);
    assert_eq!(fired_at(&mut app), [("x", 10)]);
    advance_ms(&mut app, 10);
    assert_eq!(fired_at(&mut app), [("x", 20), ("x", 30)]);
}

#[test]
fn a_chain_goes_on_in_the_next_frame_if_its_handlers_run_schedules() {
    let mut app = exact_app();
    app.add_observer(|_: On<TimerFired>, mut commands: Commands| {
        commands.spawn(Timer::after(0));
        commands.queue(|world: &mut World| world.run_schedule(FixedPreUpdate));
        commands.spawn(Timer::after(0));
    });
    spawn(&mut app, "first", Timer::after(0));
    advance_ms(&mut app, 10);
    let firings = firings(&mut app).len();
    assert!(
        firings < 1 << LIMIT,
        "{firings} firings of a tree with {LIMIT} levels"
    );
}

#[test]
fn a_fast_forward_that_a_handler_asks_for_runs_at_its_instant() {
    for frame in [100, 1_000] {
        let mut app = exact_app();
        let arena = spawn_clock(&mut app, Clock::new());
        let mut commands = app.world_mut().commands();
        commands
            .after(0.2)
            .queue(move |commands: &mut Commands| commands.fast_forward(arena, 10));
        spawn(&mut app, "later", Timer::after(10.3).on(arena));
        for _ in 0..1_000 / frame {
            advance_ms(&mut app, frame);
        }
        assert_eq!(now(&app, arena), ms(11_000));
        assert_eq!(now(&app, ClockId::Virtual), ms(1_000));
    }
}

#[test]
fn handlers_that_ask_for_one_fast_forward_after_the_other_do_not_hold_up_the_frame() {
    let mut app = exact_app();
    let arena = spawn_clock(&mut app, Clock::new());
    app.add_observer(move |_: On<TimerFired>, mut commands: Commands| {
        commands.fast_forward(arena, ms(10));
    });
    spawn(&mut app, "x", Timer::every(ms(10)).on(arena));
    advance_ms(&mut app, 10);
    // The first, as many as a burst has, and one at the end of the frame.
    assert_eq!(firings(&mut app).len(), LIMIT as usize + 2);
}

#[test]
fn no_handler_gives_another_timer_more_firings_than_the_limit() {
    let mut app = exact_app();
    let again = |world: &mut World, timer: Entity| {
        world
            .change_timer(timer, |timer| timer.set_remaining(ms(1)))
            .unwrap();
    };
    let renewed = TimerAction::call(move |world, fired| again(world, fired.entity()));
    let timer = spawn(&mut app, "x", Timer::every(ms(1)));
    app.world_mut().entity_mut(timer).insert(renewed);
    let other = TimerAction::call(move |world, _| again(world, timer));
    app.world_mut().spawn((Timer::every(ms(20)), other));
    advance_ms(&mut app, 99);
    let of_timer = firings(&mut app)
        .into_iter()
        .filter(|fired| fired.entity() == timer);
    assert_eq!(of_timer.count(), LIMIT as usize);
}

#[test]
fn a_modifier_counts_before_the_time_of_an_idle_frame_passes() {
    for is_idle in [true, false] {
        let mut app = exact_app();
        let unit = spawn(&mut app, "x", Timer::after(10));
        advance_ms(&mut app, 100);
        if !is_idle {
            spawn(&mut app, "other", Timer::after(ms(50)));
        }
        let freeze = move |mut commands: Commands, mut is_done: Local<bool>| {
            if !core::mem::replace(&mut is_done, true) {
                commands.spawn(SpeedModifier::new(unit, 0.0));
            }
        };
        app.add_systems(PreUpdate, freeze.before(DueSystems::Timers));
        advance_ms(&mut app, 100);
        assert_eq!(status(&mut app, unit).remaining, ms(9_900), "{is_idle}");
    }
}

/// Bevy's times go at different speeds. What handlers read of one at the deadlines of another is rounded once.
#[test]
fn the_real_time_at_a_deadline_of_the_game_does_not_depend_on_the_frames() {
    let play = |frame: u64| {
        let mut app = app_with(DuePlugin {
            exact_frames: true,
            ..DuePlugin::default()
        });
        let mut time = app.world_mut().resource_mut::<Time<Virtual>>();
        time.set_relative_speed(4.0);
        time.set_max_delta(Duration::MAX);
        let read = |world: &mut World, _: TimerFired| {
            let real = world.clock_now(ClockId::Real).unwrap();
            world.resource_mut::<Read>().0.push(real);
        };
        app.init_resource::<Read>();
        let timer = Timer::every(Duration::from_nanos(10_000_003));
        app.world_mut().spawn((timer, TimerAction::call(read)));
        for _ in 0..400 / frame {
            advance_ms(&mut app, frame);
        }
        app.world().resource::<Read>().0.clone()
    };
    let read = play(400);
    assert_eq!(read.len(), 159);
    assert_eq!(read, play(10));
}

#[derive(Resource, Default)]
struct Read(Vec<Duration>);
