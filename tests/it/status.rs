//! `ArmedTimers`: reading the status of armed timers.

use crate::support::*;
use bevy_app::{App, First};
use bevy_due::{
    ArmedTimers, Timer,
    clock::ClockError,
    prelude::*,
    timer::{Keyed, TimerStatus},
};
use bevy_ecs::{name::Name, prelude::*, system::SystemState};
use bevy_time::TimeSystems;

fn read<R>(app: &mut App, query: impl FnOnce(ArmedTimers) -> R) -> R {
    let mut state = SystemState::<ArmedTimers>::new(app.world_mut());
    query(state.get(app.world()).unwrap())
}

#[test]
fn a_wait_is_the_elapsed_plus_the_remaining_time() {
    let mut app = app();
    let timer = Timer::every(ms(40)).first_after(ms(100)).times(3);
    let timer = spawn(&mut app, "x", timer);
    let before = status(&mut app, timer);
    assert_eq!((before.remaining, before.fraction()), (ms(100), 0.0));
    advance_ms(&mut app, 25);
    let first = status(&mut app, timer);
    assert_eq!(
        (first.deadline, first.remaining, first.elapsed, first.wait),
        (ms(100), ms(75), ms(25), ms(100))
    );
    assert_eq!(
        (first.fraction(), first.count, first.left),
        (0.25, 0, Some(3))
    );
    advance_ms(&mut app, 85);
    let second = status(&mut app, timer);
    assert_eq!(
        (
            second.deadline,
            second.remaining,
            second.elapsed,
            second.wait
        ),
        (ms(140), ms(30), ms(10), ms(40)),
        "should count from the last deadline, not from the run that served it"
    );
    assert_eq!((second.count, second.left), (1, Some(2)));
    advance_ms(&mut app, 100);
    assert!(read(&mut app, |timers| timers.get(timer)).is_none());
}

#[test]
fn a_paused_timer_reports_when_it_would_fire_if_resumed() {
    let mut app = app();
    let timer = spawn(&mut app, "x", Timer::after(ms(100)));
    advance_ms(&mut app, 20);
    app.world_mut().entity_mut(timer).insert(Paused);
    advance_ms(&mut app, 50);
    let status = status(&mut app, timer);
    assert!(status.paused);
    assert_eq!((status.deadline, status.remaining), (ms(150), ms(80)));
    assert_eq!(status.elapsed, ms(20));
}

#[test]
fn a_zero_delay_and_an_overdue_timer_have_completed_their_wait() {
    let mut app = app();
    let zero = spawn(&mut app, "zero", Timer::after(ms(0)));
    assert_eq!(status(&mut app, zero).fraction(), 1.0);
    let clock = app.world_mut().spawn(Clock::new()).id();
    let late = spawn(&mut app, "late", Timer::after(ms(10)).on(clock));
    change_clock(&mut app, clock, |clock| {
        clock.advance_by(ms(50));
        // A clock that stands still fires nothing.
        clock.pause();
    });
    advance_ms(&mut app, 0);
    let late = status(&mut app, late);
    assert_eq!((late.remaining, late.fraction()), (ms(0), 1.0));
    assert_eq!(late.clock, clock.into());
}

#[test]
fn timers_can_be_found_by_owner_and_key() {
    let mut app = app();
    let boss = spawn(&mut app, "boss", Timer::after(ms(50)));
    let [slow, soon] = [("slow", 100), ("soon", 10)].map(|(key, delay)| {
        let timer = Timer::after(ms(delay));
        set_timer(app.world_mut(), boss, key, timer)
    });
    let entity = |timer: TimerStatus| (timer.entity, timer.owner);
    let of: Vec<_> = read(&mut app, |timers| timers.of(boss).map(entity).collect());
    assert_eq!(of, [(boss, boss), (slow, boss), (soon, boss)]);
    let found = read(&mut app, |timers| timers.keyed(boss, "slow").map(entity));
    assert_eq!(found, Some((slow, boss)));
    assert!(read(&mut app, |timers| timers
        .keyed(boss, "none")
        .is_none()));

    let next = |app: &mut App| read(app, |timers| timers.next_of(boss).map(|next| next.entity));
    assert_eq!(next(&mut app), Some(soon));
    app.world_mut().entity_mut(soon).insert(Paused);
    assert_eq!(next(&mut app), Some(boss), "should ignore paused timers");
    app.world_mut().entity_mut(boss).insert(Paused);
    assert_eq!(next(&mut app), None);
}

#[test]
fn a_timer_that_never_fires_is_no_next_deadline() {
    let mut app = app();
    app.world_mut()
        .spawn((Timer::default(), DespawnAfter::default()));
    for _ in 0..2 {
        let next = read(&mut app, |timers| timers.next_deadline(ClockId::Virtual));
        assert_eq!(next, Ok(None));
        advance_ms(&mut app, 10);
    }
}

#[test]
fn timers_due_soon_include_those_that_were_moved_or_resumed_since_the_last_run() {
    let mut app = app();
    let [moved, resumed, new] = [30, 10, 20].map(|at| spawn(&mut app, "x", Timer::after(ms(at))));
    app.world_mut().entity_mut(resumed).insert(Paused);
    advance_ms(&mut app, 0);
    app.world_mut().entity_mut(resumed).remove::<Paused>();
    app.world_mut()
        .change_timer(moved, |timer| timer.reschedule(ms(5)))
        .unwrap();
    let due = read(&mut app, |timers| {
        timers.due_within(ClockId::Virtual, ms(20)).unwrap()
    });
    let due: Vec<Entity> = due.iter().map(|timer| timer.entity).collect();
    assert_eq!(due, [moved, resumed, new]);
}

#[test]
fn timers_due_soon_are_listed_in_order() {
    let mut app = app();
    let delays = [30, 10, 500, 20, 10, 100];
    let timers = delays.map(|delay| spawn(&mut app, "x", Timer::after(ms(delay))));
    app.world_mut().entity_mut(timers[3]).insert(Paused);
    let due = |app: &mut App, span| {
        read(app, |timers| {
            let due = timers.due_within(ClockId::Virtual, ms(span)).unwrap();
            due.iter().map(|timer| timer.entity).collect::<Vec<_>>()
        })
    };
    let next = |app: &mut App| read(app, |timers| timers.next_deadline(ClockId::Virtual));
    assert_eq!(
        due(&mut app, 100),
        [1, 4, 0, 5].map(|nth| timers[nth]),
        "should include just-added timers"
    );
    assert_eq!(
        next(&mut app),
        Ok(Some(ms(10))),
        "should include just-added timers"
    );
    advance_ms(&mut app, 0);
    assert_eq!(due(&mut app, 9), []);
    assert_eq!(due(&mut app, 100), [1, 4, 0, 5].map(|nth| timers[nth]));
    advance_ms(&mut app, 10);
    assert_eq!(due(&mut app, 20), [timers[0]]);
    assert_eq!(next(&mut app), Ok(Some(ms(30))));

    let unknown = Err(ClockError::NoSuchClock(timers[1].into()));
    let next = read(&mut app, |all| all.next_deadline(timers[1]));
    assert_eq!(next, unknown, "an entity without a clock");
}

#[test]
fn run_stats_describe_the_last_run_only() {
    let mut app = app_with(burst_limit(2));
    spawn(&mut app, "x", Timer::every(ms(10)));
    let y = spawn(&mut app, "y", Timer::after(ms(10)));
    app.world_mut().despawn(y);
    advance_ms(&mut app, 50);
    let run = read(&mut app, |timers| timers.last_run());
    assert_eq!((run.armed, run.cancelled), (1, 1));
    assert_eq!((run.fired, run.missed), (2, 3));
    advance_ms(&mut app, 1);
    let idle = read(&mut app, |timers| timers.last_run());
    assert_eq!(idle, Default::default());
}

#[test]
fn the_listing_is_human_readable() {
    let mut app = app();
    let boss = app.world_mut().spawn(Name::new("Boss")).id();
    let enrage = (Name::new("Enrage"), OwnedBy(boss), Keyed::new("rage"));
    let enrage = app.world_mut().spawn((enrage, Timer::after(60.0))).id();
    let plain = app.world_mut().spawn(Timer::every(1.5)).id();
    let real = Timer::after(0.25).on(ClockId::Real);
    let real = app.world_mut().spawn((real, Paused)).id();
    advance_ms(&mut app, 2000);
    let text = read(&mut app, |timers| timers.to_string());
    let words = |line: &str| line.split_whitespace().collect::<Vec<_>>().join(" ");
    let lines: Vec<String> = text.lines().map(words).collect();
    assert_eq!(
        lines,
        [
            "clock remaining wait fired timer".to_owned(),
            format!("real 250ms 250ms 0 {real}, paused"),
            format!("virtual 1s 1.5s 1 {plain}"),
            format!("virtual 58s 60s 0 \"rage\" Enrage ({enrage}) of Boss ({boss})"),
        ]
    );
}

#[test]
fn a_timer_armed_after_the_time_advanced_has_its_whole_wait_remaining() {
    #[derive(Resource, Default)]
    struct Seen(Vec<TimerStatus>);

    let mut app = app();
    app.init_resource::<Seen>().add_systems(
        First,
        (
            |mut commands: Commands| _ = commands.spawn(Timer::after(ms(100))),
            |timers: ArmedTimers, mut seen: ResMut<Seen>| seen.0.extend(timers.iter()),
        )
            .chain()
            .after(TimeSystems),
    );
    advance_ms(&mut app, 40);
    let seen = &app.world().resource::<Seen>().0;
    let [timer] = seen[..] else {
        panic!("one timer, not {seen:?}");
    };
    assert_eq!((timer.remaining, timer.wait), (ms(100), ms(100)));
    assert_eq!((timer.elapsed, timer.fraction()), (ms(0), 0.0));
}
