//! Bugs in other timer libraries, as tests. Each test names the bug report.

use crate::support::*;
use bevy_app::App;
use bevy_due::{
    ArmedTimers, Timer,
    prelude::*,
    timer::{InvalidTimer, Keyed, NoSuchTimer, TimerMut},
};
use bevy_ecs::{entity_disabling::Disabled, prelude::*, query::Allow, system::SystemState};
use core::time::Duration;

fn read<R>(world: &mut World, query: impl FnOnce(ArmedTimers) -> R) -> R {
    let mut state = SystemState::<ArmedTimers>::new(world);
    query(state.get(world).unwrap())
}

fn assert_count_is_exact(app: &mut App, case: &str) {
    let world = app.world_mut();
    let timers = world.query_filtered::<(), (With<Timer>, Allow<Disabled>)>();
    let timers = timers.iter_manual(world).count();
    let counted = read(world, |timers| (timers.count(), timers.iter().count()));
    assert_eq!(
        counted,
        (timers, timers),
        "{case}: should match the number of entities with a `Timer`"
    );
}

// cocos2d-x issues 17611, 17898, pull request 17431
#[test]
fn a_timer_cancelled_while_it_catches_up_does_not_fire_again() {
    let stops: [fn(&mut World, Entity); 4] = [
        |world, timer| _ = world.despawn(timer),
        |world, timer| _ = world.entity_mut(timer).remove::<Timer>(),
        |world, timer| _ = world.entity_mut(timer).cancel_timers(),
        |world, timer| _ = world.entity_mut(timer).insert(Paused),
    ];
    for stop in stops {
        let mut app = app();
        spawn(&mut app, "x", Timer::every(ms(10)));
        app.add_observer(move |fired: On<TimerFired>, mut commands: Commands| {
            let timer = fired.entity();
            commands.queue(move |world: &mut World| stop(world, timer));
        });
        advance_ms(&mut app, 100);
        assert_eq!(fired_at(&mut app), [("x", 10)]);
    }
}

// cocos2d-x issue 11147
#[test]
fn a_key_set_during_its_last_firing_is_not_lost() {
    fn again(fired: On<TimerFired>, mut commands: Commands) {
        let longer = Timer::after(ms(10) + fired.deadline());
        let key = (OwnedBy(fired.owner()), Keyed::new("again"));
        commands.spawn((key, Tag("x"), longer)).observe(again);
    }

    let mut app = app();
    let owner = app.world_mut().spawn_empty().id();
    let key = (OwnedBy(owner), Keyed::new("again"));
    let first = (key, Tag("x"), Timer::after(ms(10)));
    app.world_mut().spawn(first).observe(again);
    for _ in 0..15 {
        advance_ms(&mut app, 10);
    }
    let expected = [("x", 10), ("x", 30), ("x", 70), ("x", 150)];
    assert_eq!(fired_at(&mut app), expected);
    assert!(
        cancelled(&mut app).is_empty(),
        "each timer finished by itself"
    );
    assert_eq!(app.world().get::<Owned>(owner).unwrap().len(), 1);
}

// cocos2d-x issue 16323
#[test]
fn an_entity_with_a_reused_index_inherits_no_timer() {
    let mut app = app();
    let old = spawn(&mut app, "old", Timer::after(ms(10)));
    let freed = app.world_mut().despawn_no_free(old).unwrap();
    let new = app.world_mut().spawn_at(freed, Tag("new")).unwrap().id();
    assert_eq!(old.index(), new.index());
    advance_ms(&mut app, 10);
    assert!(fired(&mut app).is_empty());

    app.world_mut().entity_mut(new).insert(Timer::after(ms(10)));
    assert!(app.world_mut().get_entity_mut(old).is_err());
    let mut commands = app.world_mut().commands();
    commands
        .entity(old)
        .reschedule(ms(500))
        .delay_timers_by(ms(500))
        .cancel_timers();
    app.world_mut().flush();
    advance_ms(&mut app, 10);
    assert_eq!(fired_at(&mut app), [("new", 20)]);
}

#[derive(Clone, Copy, PartialEq)]
enum Effect {
    Arms,
    Ends,
    Pauses,
    Resumes,
    Keeps,
}
use Effect::*;

/// Receives a timer under the key "k", and its owner.
type Operation = fn(&mut World, Entity, Entity);

fn edit(world: &mut World, entity: Entity, edit: impl FnOnce(&mut EntityWorldMut)) {
    if let Ok(mut entity) = world.get_entity_mut(entity) {
        edit(&mut entity);
    }
}

fn move_deadline(world: &mut World, timer: Entity, to: fn(&mut TimerMut)) {
    let is_armed = read(world, |timers| timers.get(timer).is_some());
    let expected = if is_armed {
        Ok(())
    } else {
        Err(NoSuchTimer {
            entity: timer,
            key: None,
            clock: None,
        })
    };
    assert_eq!(world.change_timer(timer, to), expected);
}

const OPERATIONS: [(&str, Effect, Operation); 16] = [
    ("insert", Arms, |world, timer, _| {
        edit(world, timer, |timer| _ = timer.insert(Timer::after(ms(20))));
    }),
    ("insert twice", Arms, |world, timer, _| {
        edit(world, timer, |timer| {
            timer.insert(Timer::after(ms(5)));
            timer.insert(Timer::every(ms(20)));
        });
    }),
    ("remove and insert", Arms, |world, timer, _| {
        edit(world, timer, |timer| {
            timer.remove::<Timer>();
            timer.insert(Timer::after(ms(20)));
        });
    }),
    ("remove", Ends, |world, timer, _| {
        edit(world, timer, |timer| _ = timer.remove::<Timer>());
    }),
    ("despawn", Ends, |world, timer, _| {
        world.try_despawn(timer).ok();
    }),
    ("despawn the owner", Ends, |world, _, owner| {
        world.try_despawn(owner).ok();
    }),
    ("pause", Pauses, |world, timer, _| {
        edit(world, timer, |timer| _ = timer.insert(Paused));
    }),
    ("pause the owner", Pauses, |world, _, owner| {
        edit(world, owner, |owner| _ = owner.insert(Paused));
    }),
    ("resume", Resumes, |world, timer, _| {
        edit(world, timer, |timer| _ = timer.remove::<Paused>());
    }),
    ("reschedule", Keeps, |world, timer, _| {
        move_deadline(world, timer, |timer| timer.reschedule(ms(300)));
    }),
    ("reschedule to the past", Keeps, |world, timer, _| {
        move_deadline(world, timer, |timer| timer.reschedule(ms(1)));
    }),
    ("delay_by", Keeps, |world, timer, _| {
        move_deadline(world, timer, |timer| timer.delay_by(ms(30)));
    }),
    ("set owner", Keeps, |world, timer, _| {
        let other = world.spawn_empty().id();
        edit(world, timer, |timer| _ = timer.insert(OwnedBy(other)));
    }),
    ("replace the key", Ends, |world, _, owner| {
        world.entity_mut(owner).set_timer("k", Timer::after(ms(20)));
    }),
    ("cancel the key", Ends, |world, _, owner| {
        world.cancel_timer(owner, "k");
    }),
    ("cancel_timers", Ends, |world, _, owner| {
        world.entity_mut(owner).cancel_timers();
    }),
];

const STATES: [&str; 8] = [
    "waiting",
    "just added",
    "paused",
    "firing",
    "firing for the last time",
    "finished",
    "cancelled",
    "despawned",
];

// tokio issue 2473, pull requests 3270, 8274; netty issue 14959
#[test]
fn every_operation_works_in_every_state() {
    for (name, effect, operate) in OPERATIONS {
        for state in STATES {
            let case = format!("{name}, {state}");
            let mut app = app();
            let owner = app.world_mut().spawn_empty().id();
            let timer = match state {
                "firing for the last time" | "finished" => Timer::after(ms(10)),
                _ => Timer::every(ms(10)),
            };
            let timer = set_timer(app.world_mut(), owner, "k", timer);
            if state.starts_with("firing") {
                app.add_observer(
                    move |_: On<TimerFired>, mut commands: Commands, mut done: Local<bool>| {
                        if !core::mem::replace(&mut done, true) {
                            commands.queue(move |world: &mut World| operate(world, timer, owner));
                        }
                    },
                );
            }
            let before = match state {
                "just added" => 0,
                "waiting" | "paused" | "cancelled" | "despawned" => 5,
                _ => 10,
            };
            if state == "paused" {
                app.world_mut().entity_mut(timer).insert(Paused);
            }
            advance_ms(&mut app, before);
            match state {
                "cancelled" => _ = app.world_mut().entity_mut(timer).remove::<Timer>(),
                "despawned" => _ = app.world_mut().despawn(timer),
                _ => {}
            }
            if !state.starts_with("firing") {
                fired(&mut app);
                operate(app.world_mut(), timer, owner);
                app.world_mut().flush();
            }
            assert_count_is_exact(&mut app, &case);
            for _ in 0..8 {
                advance_ms(&mut app, 50);
                assert_count_is_exact(&mut app, &case);
            }

            let is_armed = match effect {
                Arms => state != "despawned",
                Ends => false,
                _ => ["waiting", "just added", "paused", "firing"].contains(&state),
            };
            let is_paused = effect == Pauses || state == "paused" && effect != Resumes;
            let firings = firings(&mut app);
            let firings = firings
                .iter()
                .filter(|fired| fired.entity() == timer)
                .count();
            let after = firings - usize::from(state.starts_with("firing"));
            assert_eq!(
                after > 0,
                is_armed && !is_paused,
                "{case}: fired {after} times afterwards"
            );
        }
    }
}

// tokio pull request 3270
#[test]
fn a_due_timer_that_has_not_fired_yet_can_be_moved_and_removed() {
    let mut app = app();
    spawn(&mut app, "a", Timer::after(ms(64)));
    let [b, c] = ["b", "c"].map(|tag| spawn(&mut app, tag, Timer::after(ms(64))));
    app.add_observer(move |fired: On<TimerFired>, mut commands: Commands| {
        if fired.deadline() == ms(64) {
            commands.entity(b).delay_by(ms(6));
            commands.entity(c).despawn();
        }
    });
    advance_ms(&mut app, 64);
    assert_eq!(fired_at(&mut app), [("a", 64)]);
    advance_ms(&mut app, 6);
    assert_eq!(fired_at(&mut app), [("b", 70)]);
}

// tokio-util 5536, skynet 1243
#[test]
fn no_counter_wraps_after_a_long_uptime() {
    let centiseconds = |count: u64| ms(10 * count);
    let two_years = Duration::from_secs(2 * 365 * 24 * 3600);
    for uptime in [centiseconds(1 << 32), ms(1 << 32), two_years, ms(1 << 36)] {
        let mut app = app();
        advance(&mut app, uptime - ms(15));
        spawn(&mut app, "x", Timer::every(ms(10)));
        for _ in 0..6 {
            advance_ms(&mut app, 5);
        }
        let deadlines = fired_at(&mut app).into_iter().map(|(_, at)| at);
        let uptime = uptime.as_millis();
        assert!(deadlines.eq([uptime - 5, uptime + 5, uptime + 15]));
    }
}

// netty issue 14959
#[test]
fn a_timer_cancelled_on_its_deadline_leaves_the_count_once() {
    let mut app = app();
    spawn(&mut app, "killer", Timer::after(ms(10)));
    let others: Vec<Entity> = (0..10)
        .map(|_| spawn(&mut app, "other", Timer::after(ms(10))))
        .collect();
    spawn(&mut app, "bystander", Timer::after(ms(50)));
    app.add_observer(move |fired: On<TimerFired>, mut commands: Commands| {
        if fired.deadline() == ms(10) {
            others
                .iter()
                .for_each(|&other| commands.entity(other).despawn());
        }
    });
    advance_ms(&mut app, 10);
    assert_count_is_exact(&mut app, "only the bystander is left");
    advance_ms(&mut app, 40);
    assert_eq!(fired(&mut app), ["killer", "bystander"]);
    assert_count_is_exact(&mut app, "no timer is left");
}

// libuv: `uv_timer_start` with a timeout of zero in its own callback
#[test]
fn a_handler_that_rearms_with_zero_delay_does_not_block_the_frame() {
    let mut app = app();
    spawn(&mut app, "x", Timer::after(ms(0)));
    app.add_observer(|fired: On<TimerFired>, mut commands: Commands| {
        commands.entity(fired.entity()).insert(Timer::after(ms(0)));
    });
    for _ in 0..3 {
        advance_ms(&mut app, 10);
        assert_eq!(fired(&mut app), ["x"], "should fire once per run");
    }
}

// Godot issue 7530, RobustToolbox: seconds lost in minutes
#[test]
fn no_time_is_lost_over_five_minutes_of_frames() {
    let mut app = app();
    spawn(&mut app, "x", Timer::every(ms(50)));
    let frame = Duration::from_secs(1) / 7;
    for _ in 0..5 * 60 * 7 {
        advance(&mut app, frame);
    }
    advance(&mut app, Duration::from_secs(300) - frame * 2100);
    let firings = firings(&mut app);
    assert_eq!(firings.len(), 6000);
    assert_eq!(firings[5999].deadline(), Duration::from_secs(300));
    assert!(firings.iter().all(|fired| fired.lateness() <= frame));
}

#[derive(Component)]
struct Minion;

// Bevy `DelayedCommands`
#[test]
fn delayed_commands_due_in_one_frame_run_in_order() {
    let mut app = app();
    let mut commands = app.world_mut().commands();
    commands.after(ms(20)).queue(|commands| {
        commands.queue(|world: &mut World| {
            let mut minions = world.query_filtered::<Entity, With<Minion>>();
            let minion = minions
                .single(world)
                .expect("the minion should be spawned first");
            world.despawn(minion);
        });
    });
    commands.after(ms(10)).queue(|commands| {
        commands.spawn(Minion);
    });
    app.world_mut().flush();
    advance_ms(&mut app, 100);
    let mut minions = app.world_mut().query::<&Minion>();
    assert_eq!(minions.iter(app.world()).count(), 0);
}

// Bevy repeating `Timer` with a zero duration: pull request 8467
#[test]
fn a_zero_interval_is_an_error() {
    assert_eq!(Timer::try_every(ms(0)), Err(InvalidTimer::ZeroInterval));
    let mut app = app();
    spawn(&mut app, "x", Timer::every(ms(10)).immediately());
    advance_ms(&mut app, 0);
    advance_ms(&mut app, 0);
    assert_eq!(
        fired(&mut app).len(),
        1,
        "should not fire four billion times"
    );
}

// Bevy `Timer::remaining` after `set_duration`
#[test]
fn a_wait_shortened_below_the_elapsed_time_is_over() {
    let mut app = app();
    let timer = spawn(&mut app, "x", Timer::after(ms(100)));
    advance_ms(&mut app, 50);
    app.world_mut()
        .change_timer(timer, |timer| timer.reschedule(ms(20)))
        .unwrap();
    let status = read(app.world_mut(), |timers| timers.get(timer)).unwrap();
    assert_eq!((status.remaining, status.fraction()), (ms(0), 1.0));
    advance_ms(&mut app, 0);
    assert_eq!(fired_at(&mut app), [("x", 20)]);
}

// Flecs issue 2094
#[test]
fn a_long_frame_drops_no_firing() {
    let mut app = app();
    spawn(&mut app, "x", Timer::every(0.5));
    advance_ms(&mut app, 10_000);
    assert_eq!(fired(&mut app).len(), 20);
}
