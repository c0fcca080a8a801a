//! Measures how costs grow: the same work with n and with 10 n of something.
//!
//! ```text
//! cargo bench -p bevy_due_benches --bench growth -- [--quick]
//! ```
//!
//! Prints CSV: `work,n,time_ns,ten_times_ns,ratio`. Both sizes take turns, and each time is the
//! shortest of several. A cost that is linear in total has a ratio of about 10, and a quadratic one
//! about 100. The ratio of `idle_clocks` should be about 1, because idle clocks cost nothing.

#![allow(missing_docs, reason = "a program")]

use core::time::Duration;
use std::{env, time::Instant};

use bevy_app::App;
use bevy_due::{
    ClocksMut, DueWorldExt, Timer,
    message::{MessageContext, MessageEntityCommandsExt, NoAnswer},
    prelude::*,
};
use bevy_ecs::{message::Message, prelude::*};
use bevy_time::{TimePlugin, TimeUpdateStrategy};

const FRAME: Duration = Duration::from_millis(16);

/// Builds an app for n, and returns the work to measure.
type Work = fn(u32) -> (App, Box<dyn FnOnce(&mut App)>);

const WORKS: [(&str, u32, Work); 7] = [
    ("fast_forward", 3_000, fast_forward),
    ("despawn_clocks", 1_000, despawn_clocks),
    ("owned_timers_end", 3_000, owned_timers_end),
    ("keys_of_one_owner", 3_000, keys_of_one_owner),
    ("requests_of_one_asker", 1_000, requests_of_one_asker),
    ("pause_in_a_handler", 3_000, pause_in_a_handler),
    ("idle_clocks", 1_000, idle_clocks),
];

fn main() {
    let args: Vec<String> = env::args().collect();
    let is_short = args.iter().any(|arg| arg == "--quick" || arg == "--test");
    let turns = if is_short { 2 } else { 7 };
    println!("work,n,time_ns,ten_times_ns,ratio");
    for (name, n, work) in WORKS {
        let mut shortest = [Duration::MAX; 2];
        for _ in 0..turns {
            for (shortest, n) in shortest.iter_mut().zip([n, 10 * n]) {
                let (mut app, run) = work(n);
                let start = Instant::now();
                run(&mut app);
                *shortest = start.elapsed().min(*shortest);
            }
        }
        let [small, large] = shortest.map(|time| time.as_nanos());
        let ratio = large as f64 / small as f64;
        println!("{name},{n},{small},{large},{ratio:.1}");
    }
}

fn app() -> App {
    let mut app = App::new();
    app.add_plugins((TimePlugin, DuePlugin::default()))
        .insert_resource(TimeUpdateStrategy::ManualDuration(FRAME));
    app.update();
    app
}

/// Fast-forwards over n one-shot timers, each at its own time.
fn fast_forward(n: u32) -> (App, Box<dyn FnOnce(&mut App)>) {
    let mut app = app();
    for timer in 1..=n {
        let delay = Duration::from_millis(u64::from(timer.wrapping_mul(7919) % n) * 10);
        app.world_mut().spawn(Timer::after(delay));
    }
    app.update();
    let run = move |app: &mut App| {
        let span = Duration::from_millis(u64::from(n) * 10);
        let stats = app.world_mut().fast_forward(ClockId::Virtual, span);
        assert_eq!(stats.unwrap().fired as u32 + fired_before(app), n);
    };
    (app, Box::new(run))
}

/// The timers that were due in the first frame.
fn fired_before(app: &mut App) -> u32 {
    app.world_mut()
        .with_timers(|timers| timers.last_run().fired as u32)
}

/// Despawns n clocks, each with a timer.
fn despawn_clocks(n: u32) -> (App, Box<dyn FnOnce(&mut App)>) {
    let mut app = app();
    let clocks: Vec<Entity> = (0..n)
        .map(|_| {
            app.world_mut()
                .spawn((Clock::new(), Timer::after(60.0)))
                .id()
        })
        .collect();
    app.update();
    let run = move |app: &mut App| {
        for clock in clocks {
            app.world_mut().despawn(clock);
        }
        app.update();
    };
    (app, Box::new(run))
}

/// Ends n timers of one owner in random order.
fn owned_timers_end(n: u32) -> (App, Box<dyn FnOnce(&mut App)>) {
    let mut app = app();
    let owner = app.world_mut().spawn_empty().id();
    for timer in 1..=n {
        let delay = Duration::from_nanos(u64::from(timer.wrapping_mul(7919) % n));
        app.world_mut()
            .spawn((OwnedBy(owner), Timer::after(delay + 2 * FRAME)));
    }
    app.update();
    let run = move |app: &mut App| {
        for _ in 0..4 {
            app.update();
        }
        assert!(app.world().get::<Owned>(owner).is_none(), "all have ended");
    };
    (app, Box::new(run))
}

/// Sets n keys on one owner, and finds each.
fn keys_of_one_owner(n: u32) -> (App, Box<dyn FnOnce(&mut App)>) {
    let mut app = app();
    let owner = app.world_mut().spawn_empty().id();
    let run = move |app: &mut App| {
        for key in 0..n {
            let mut owner = app.world_mut().entity_mut(owner);
            owner.set_timer(format!("key {key}"), Timer::after(60.0));
        }
        app.update();
        app.world_mut().with_timers(|timers| {
            assert!((0..n).all(|key| timers.keyed(owner, format!("key {key}")).is_some()));
        });
    };
    (app, Box::new(run))
}

#[derive(Message)]
struct Ask;
#[derive(Message)]
struct Answer;
#[derive(Component)]
struct Answers(u32);

/// Answers n requests of one asker.
fn requests_of_one_asker(n: u32) -> (App, Box<dyn FnOnce(&mut App)>) {
    let mut app = app();
    let answerer = MessageComponent::new()
        .on(|mut me: MessageContext, _: &Ask| -> Result { Ok(me.reply(Answer)?) });
    let answerer = app.world_mut().spawn(answerer).id();
    let asker = MessageComponent::new()
        .on(|mut me: MessageContext, _: &Answer| {
            if let Some(mut answers) = me.entity.get_mut::<Answers>() {
                answers.0 += 1;
            }
        })
        .on(|_: MessageContext, _: &NoAnswer| panic!("all are answered"));
    let asker = app.world_mut().spawn((asker, Answers(0))).id();
    app.update();
    let run = move |app: &mut App| {
        let mut commands = app.world_mut().commands();
        for _ in 0..n {
            commands
                .entity(asker)
                .ask(answerer, Ask, Timer::after(60.0));
        }
        for _ in 0..4 {
            app.update();
        }
        assert_eq!(app.world().get::<Answers>(asker).unwrap().0, n);
    };
    (app, Box::new(run))
}

/// Pauses a clock with n timers from the handler of one of them, a hundred times.
fn pause_in_a_handler(n: u32) -> (App, Box<dyn FnOnce(&mut App)>) {
    let mut app = app();
    let clock = app.world_mut().spawn(Clock::new()).id();
    for _ in 0..n {
        app.world_mut().spawn(Timer::after(60.0).on(clock));
    }
    app.world_mut()
        .spawn(Timer::every(FRAME).on(clock))
        .observe(move |_: On<TimerFired>, mut clocks: ClocksMut| {
            clocks.get_mut(clock).unwrap().pause();
        });
    app.update();
    let run = move |app: &mut App| {
        for _ in 0..100 {
            let unpaused = app.world_mut().change_clock(clock, |clock| clock.unpause());
            assert_eq!(unpaused, Ok(()));
            app.update();
        }
    };
    (app, Box::new(run))
}

/// Runs a hundred frames with n clocks, each with a timer that is not due.
fn idle_clocks(n: u32) -> (App, Box<dyn FnOnce(&mut App)>) {
    let mut app = app();
    for _ in 0..n {
        app.world_mut().spawn((Clock::new(), Timer::after(3600.0)));
    }
    for _ in 0..5 {
        app.update();
    }
    let run = |app: &mut App| {
        for _ in 0..100 {
            app.update();
        }
    };
    (app, Box::new(run))
}
