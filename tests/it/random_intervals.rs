//! `Timer::every_between`: a new random interval each time.

use crate::support::*;
use bevy_app::App;
use bevy_due::{MissedTicks, Timer, prelude::*};
use core::time::Duration;

const SHORT: u64 = 10;
const LONG: u64 = 30;

fn timer() -> Timer {
    Timer::every_between(ms(SHORT)..=ms(LONG))
}

fn seeded_app(seed: u64) -> App {
    app_with(DuePlugin {
        delay_seed: seed,
        ..DuePlugin::default()
    })
}

fn deadlines(app: &mut App) -> Vec<Duration> {
    let firings = firings(app).into_iter();
    firings.map(|fired| fired.deadline()).collect()
}

fn waits(deadlines: &[Duration]) -> Vec<Duration> {
    let starts = core::iter::once(&Duration::ZERO).chain(deadlines);
    starts
        .zip(deadlines)
        .map(|(from, to)| *to - *from)
        .collect()
}

#[test]
fn each_interval_is_drawn_anew_from_the_whole_range() {
    let mut app = app();
    spawn(&mut app, "x", timer());
    advance_ms(&mut app, 10_000);
    let deadlines = deadlines(&mut app);
    let waits = waits(&deadlines);
    assert!((450..550).contains(&waits.len()), "{} in 10 s", waits.len());
    assert!(
        waits
            .iter()
            .all(|wait| (ms(SHORT)..=ms(LONG)).contains(wait))
    );
    let [low, high] = [ms(SHORT + 1), ms(LONG - 1)];
    assert!(waits.iter().any(|&wait| wait < low), "short ones, too");
    assert!(waits.iter().any(|&wait| wait > high), "long ones, too");
}

#[test]
fn the_intervals_depend_on_the_seed_and_not_on_the_frames() {
    let run = |seed, frame: u64| {
        let mut app = seeded_app(seed);
        for _ in 0..3 {
            spawn(&mut app, "x", timer());
        }
        (0..1200 / frame).for_each(|_| advance_ms(&mut app, frame));
        let mut deadlines = deadlines(&mut app);
        deadlines.sort();
        deadlines
    };
    assert_eq!(run(1, 1), run(1, 1200));
    assert_ne!(run(1, 1), run(2, 1));
}

#[test]
fn the_number_of_firings_and_the_first_delay_can_be_set() {
    let mut app = app();
    let timer = timer().first_after(ms(5)).times(3);
    spawn(&mut app, "x", timer);
    advance_ms(&mut app, 1000);
    let deadlines = deadlines(&mut app);
    assert_eq!(deadlines.len(), 3);
    assert_eq!(deadlines[0], ms(5));
}

#[test]
fn the_status_shows_the_interval_that_was_drawn() {
    let mut app = app();
    let entity = spawn(&mut app, "x", timer());
    for _ in 0..20 {
        let status = app.world_mut().with_timers(|timers| timers.get(entity));
        let status = status.expect("armed");
        assert!((ms(SHORT)..=ms(LONG)).contains(&status.wait), "{status:?}");
        assert_eq!(status.remaining, status.wait);
        advance(&mut app, status.remaining);
        assert_eq!(deadlines(&mut app), [status.deadline]);
    }
}

#[test]
fn after_a_long_frame_the_policy_decides() {
    for (policy, firings_in_frame) in [
        (MissedTicks::Burst, 5),
        (MissedTicks::Skip, 1),
        (MissedTicks::Delay, 1),
    ] {
        let mut app = app_with(burst_limit(5));
        spawn(&mut app, "x", timer().with_missed_ticks(policy));
        advance_ms(&mut app, 1000);
        let fired = firings(&mut app);
        assert_eq!(fired.len(), firings_in_frame, "{policy:?}");
        let served: u64 = fired.iter().map(|fired| fired.missed() + 1).sum();
        assert!((40..=60).contains(&served), "{policy:?}: {served} in 50");
        advance_ms(&mut app, SHORT - 1);
        assert!(firings(&mut app).is_empty(), "the interval starts over");
        advance_ms(&mut app, LONG - SHORT + 1);
        assert!(!firings(&mut app).is_empty(), "{policy:?}");
    }
}

#[test]
fn only_a_late_firing_reports_missed_deadlines() {
    const FRAME: u64 = 25;
    for policy in [MissedTicks::Skip, MissedTicks::Delay] {
        let mut app = app();
        spawn(&mut app, "x", timer().with_missed_ticks(policy));
        let (mut last, mut late, mut on_time) = (None, 0, 0);
        for frame in 1..=2000 {
            advance_ms(&mut app, FRAME);
            let now = ms(frame * FRAME);
            for fired in firings(&mut app) {
                let next = fired.deadline();
                if let Some((deadline, then, missed)) = last.replace((next, now, fired.missed())) {
                    // Under `Delay`, every interval counts from the firing.
                    let is_late = match policy {
                        MissedTicks::Delay => deadline + (next - then) <= then,
                        _ if next - deadline > ms(LONG) => true,
                        _ => continue,
                    };
                    let case = format!("{policy:?}: {deadline:?} at {then:?}, then {next:?}");
                    assert_eq!(missed > 0, is_late, "{case}: {missed} missed");
                    late += u32::from(is_late);
                    on_time += u32::from(!is_late);
                }
            }
        }
        assert!(late > 100, "{policy:?}: {late} late firings");
        assert!(on_time > 100 || policy == MissedTicks::Skip, "{on_time}");
    }
}

#[test]
fn extreme_ranges_are_quiet() {
    let nano = Duration::from_nanos(1);
    for range in [
        nano..=nano,
        nano..=Duration::MAX,
        Duration::MAX..=Duration::MAX,
    ] {
        let mut app = app();
        spawn(&mut app, "x", Timer::every_between(range));
        advance_ms(&mut app, 1);
        advance(&mut app, Duration::from_secs(1 << 34));
        advance_ms(&mut app, 1);
    }
}

#[cfg(feature = "serialize")]
#[test]
fn random_intervals_survive_a_serde_round_trip() {
    let text = ron::to_string(&timer()).unwrap();
    assert_eq!(ron::from_str::<Timer>(&text).unwrap(), timer(), "{text}");
}

#[cfg(feature = "serialize")]
#[test]
fn a_loaded_range_of_intervals_needs_an_interval() {
    let loaded = |interval| {
        let data = "(delay:(secs:1,nanos:0),interval:INTERVAL,times:None,\
                    interval_span:(secs:4,nanos:0))";
        ron::from_str::<Timer>(&data.replace("INTERVAL", interval))
    };
    let error = loaded("None").unwrap_err().to_string();
    for part in ["`interval_span` of 4s", "set `interval`"] {
        assert!(error.contains(part), "{error:?} should say {part:?}");
    }
    assert!(loaded("Some((secs:1,nanos:0))").is_ok());
}
