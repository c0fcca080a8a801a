//! `Cooldown`: a recharge time with one or more charges.

use std::panic::catch_unwind;

use crate::support::*;
use bevy_app::App;
use bevy_due::{ClockId, Clocks, Cooldown, DueWorldExt};
use bevy_ecs::prelude::*;
use core::time::Duration;

#[test]
fn a_cooldown_starts_ready_and_is_ready_again_after_its_duration() {
    let mut spell = Cooldown::new(ms(100));
    assert!(spell.is_ready(ms(0)));
    assert!(spell.try_use(ms(7)));
    assert!(!spell.try_use(ms(106)));
    assert_eq!(spell.remaining(ms(106)), ms(1));
    assert_eq!(spell.remaining(ms(57)), ms(50));
    assert_eq!(spell.fraction(ms(57)), 0.5);
    assert!(
        spell.is_ready(ms(107)),
        "should be ready on the exact nanosecond"
    );
    assert!(spell.try_use(ms(107)));
}

#[test]
fn charges_return_one_at_a_time() {
    let mut dash = Cooldown::new(ms(100)).with_charges(3);
    for charges in [2, 1, 0] {
        assert!(dash.try_use(ms(10)));
        assert_eq!(dash.charges(ms(10)), charges);
    }
    assert!(!dash.try_use(ms(109)));
    let charges = [109, 110, 209, 210, 310, 10_000].map(|now| dash.charges(ms(now)));
    assert_eq!(charges, [0, 1, 1, 2, 3, 3]);
    assert_eq!(
        dash.fraction(ms(135)),
        0.25,
        "should be the fraction of the second charge"
    );
    let next = [109, 110, 209, 310].map(|now| dash.next_charge_at(ms(now)));
    assert_eq!(next, [Some(ms(110)), Some(ms(210)), Some(ms(210)), None]);
    assert_eq!(dash.fraction(ms(310)), 1.0);
    assert!(dash.try_use(ms(135)));
    assert_eq!(
        dash.remaining(ms(135)),
        ms(75),
        "using a charge should not delay the one in progress"
    );
}

#[test]
fn a_failed_use_changes_nothing() {
    let mut spell = Cooldown::new(ms(100));
    assert!(spell.try_use(ms(0)));
    let before = spell;
    assert!(!spell.try_use(ms(50)));
    assert_eq!(spell, before);
    assert_eq!(spell.ready_at(), ms(100));
}

#[test]
fn a_reset_restores_all_charges() {
    let mut dash = Cooldown::new(ms(100)).with_charges(2);
    assert!(dash.try_use(ms(10)));
    assert!(dash.try_use(ms(10)));
    dash.reset();
    assert_eq!(dash.charges(ms(10)), 2);
}

#[test]
fn the_ready_timer_fires_when_the_cooldown_is_over() {
    let mut app = app();
    advance_ms(&mut app, 30);
    let mut cannon = Cooldown::new(ms(100));
    assert!(cannon.try_use(ms(30)));
    let timer: Entity = spawn(&mut app, "ready", cannon.ready_timer());
    app.world_mut().entity_mut(timer).insert(cannon);
    advance_ms(&mut app, 99);
    assert!(fired(&mut app).is_empty());
    advance_ms(&mut app, 1);
    assert_eq!(fired_at(&mut app), [("ready", 130)]);
    let cannon = app.world().get::<Cooldown>(timer).unwrap();
    assert!(cannon.is_ready(ms(130)));
}

#[test]
fn zero_and_maximal_durations_work() {
    let mut free = Cooldown::new(ms(0));
    for _ in 0..3 {
        assert!(free.try_use(ms(5)));
    }
    assert_eq!((free.charges(ms(5)), free.fraction(ms(5))), (1, 1.0));

    let mut once = Cooldown::new(Duration::MAX).with_charges(2);
    assert!(once.try_use(ms(5)));
    assert!(once.try_use(ms(5)));
    assert!(!once.try_use(ms(5)), "both charges are used");
    assert_eq!(once.charges(ms(5)), 0);
}

#[test]
fn bad_input_panics_with_the_value() {
    let cases: [(fn() -> Cooldown, &str); 3] = [
        (|| Cooldown::new(-1.5), "got -1.5 s"),
        (|| Cooldown::new(f64::NAN), "got NaN s"),
        (|| Cooldown::new(1.0).with_charges(0), "got 0"),
    ];
    for (make, value) in cases {
        let panic = catch_unwind(make).unwrap_err();
        let message = panic.downcast_ref::<String>().cloned();
        let message = message.or_else(|| panic.downcast_ref::<&str>().map(ToString::to_string));
        assert!(message.unwrap().ends_with(value), "should name {value:?}");
    }
}

#[test]
fn a_cooldown_follows_the_game_clock_also_after_a_fast_forward() {
    fn is_ready(clocks: Clocks, spell: Single<&Cooldown>) -> bool {
        let now = clocks.now(ClockId::Virtual).unwrap();
        spell.is_ready(now)
    }

    let mut app = app();
    let mut spell = Cooldown::new(ms(100));
    assert!(spell.try_use(ms(0)));
    app.world_mut().spawn(spell);
    let ask = |app: &mut App| app.world_mut().run_system_cached(is_ready).unwrap();
    advance_ms(&mut app, 60);
    assert!(!ask(&mut app));
    let forward = app.world_mut().fast_forward(ClockId::Virtual, ms(40));
    forward.expect("the clock runs");
    assert!(ask(&mut app), "`Time<Virtual>` is at 60 ms");
}

#[test]
fn a_new_duration_keeps_the_charges_and_the_progress() {
    for (before, after) in [(100, 50), (100, 400), (7, 3), (3, 7), (100, 100)] {
        for used in 0..=3 {
            for now in 0..=before {
                let mut dash = Cooldown::new(ms(before)).with_charges(3);
                for _ in 0..used {
                    assert!(dash.try_use(ms(0)));
                }
                let (charges, fraction) = (dash.charges(ms(now)), dash.fraction(ms(now)));
                dash.set_duration(ms(after), ms(now));
                let case = format!("{before} to {after} ms, {used} used, at {now} ms");
                assert_eq!(dash.duration(), ms(after));
                assert_eq!(dash.charges(ms(now)), charges, "{case}");
                let change = dash.fraction(ms(now)) - fraction;
                assert!(change.abs() < 1e-6, "{case}: {change}");
            }
        }
    }
}

#[test]
fn a_new_duration_is_safe_at_the_extremes() {
    let durations = [
        Duration::ZERO,
        Duration::from_nanos(1),
        ms(5),
        Duration::MAX,
    ];
    for before in durations {
        for after in durations {
            for charges in [1, 2, 1000, u32::MAX] {
                let mut spell = Cooldown::new(before).with_charges(charges);
                spell = spell.empty(ms(3));
                spell.set_duration(after, ms(3));
                let is_ready = before.is_zero() || after.is_zero();
                // Four billion charges of centuries do not fit into a `Duration`.
                if is_ready || charges < u32::MAX {
                    assert_eq!(spell.is_ready(ms(3)), is_ready, "{before:?} to {after:?}");
                }
            }
        }
    }
}

#[test]
fn an_empty_cooldown_gets_its_charges_one_at_a_time() {
    let dash = Cooldown::new(ms(100)).with_charges(2).empty(ms(7));
    let charges = [7, 106, 107, 206, 207].map(|now| dash.charges(ms(now)));
    assert_eq!(charges, [0, 0, 1, 1, 2]);
    assert_eq!(dash.fraction(ms(57)), 0.5);
}

#[test]
fn an_empty_cooldown_has_no_charge_whenever_it_learns_their_number() {
    let before = Cooldown::new(ms(100)).with_charges(3).empty(ms(10));
    let after = Cooldown::new(ms(100)).empty(ms(10)).with_charges(3);
    assert_eq!(after, before);
    assert_eq!(after.charges(ms(10)), 0);
    let mut ready = Cooldown::new(ms(100)).with_charges(2);
    assert!(ready.try_use(ms(10)));
    assert_eq!(ready.with_charges(4).charges(ms(10)), 3, "one is missing");
}

#[test]
fn a_refund_gives_back_charges_and_keeps_the_progress_of_the_next() {
    let mut dash = Cooldown::new(ms(100)).with_charges(3);
    for _ in 0..3 {
        assert!(dash.try_use(ms(0)));
    }
    dash.add_charges(1);
    assert_eq!(dash.charges(ms(25)), 1);
    assert_eq!(dash.fraction(ms(25)), 0.25);
    dash.add_charges(9);
    assert_eq!(dash.charges(ms(25)), 3, "never more than the maximum");
    assert!(dash.try_use(ms(25)));
    assert_eq!(dash.charges(ms(25)), 2, "nothing is saved up");
}

#[test]
fn a_reduction_shortens_the_wait_and_its_excess_counts_for_the_next_charge() {
    let mut dash = Cooldown::new(ms(100)).with_charges(2).empty(ms(0));
    dash.reduce_by(ms(30));
    assert_eq!(dash.remaining(ms(10)), ms(60));
    dash.reduce_by(ms(80));
    assert_eq!(dash.charges(ms(10)), 1);
    assert_eq!(dash.next_charge_at(ms(10)), Some(ms(90)));
}

#[test]
fn a_cooldown_is_ready_on_a_clock_that_is_set_back_before_the_last_use() {
    type Use = fn(&mut Cooldown);
    let uses: [Use; 3] = [
        |spell| assert!(spell.try_use(ms(10_000))),
        |spell| *spell = spell.empty(ms(10_000)),
        |spell| {
            assert!(spell.try_use(ms(9_950)));
            spell.set_duration(ms(200), ms(10_000));
        },
    ];
    for take in uses {
        let mut spell = Cooldown::new(ms(100));
        take(&mut spell);
        for now in [0, 50, 100, 5_000, 9_900, 9_999] {
            assert!(spell.is_ready(ms(now)), "should be ready at {now} ms");
            assert_eq!(spell.remaining(ms(now)), ms(0));
            assert_eq!((spell.charges(ms(now)), spell.fraction(ms(now))), (1, 1.0));
            assert_eq!(spell.next_charge_at(ms(now)), None);
        }
        assert!(!spell.is_ready(ms(10_000)), "the last use counts again");
        assert!(spell.try_use(ms(0)));
        assert_eq!(spell.remaining(ms(0)), spell.duration());
        assert!(spell.is_ready(ms(10_000)), "the earlier use is forgotten");
    }
    let mut hasted = Cooldown::new(ms(100));
    assert!(hasted.try_use(ms(10_000)));
    hasted.set_duration(ms(50), ms(0));
    assert!(hasted.is_ready(ms(10_000)), "it was ready when it changed");
}

#[test]
fn a_cooldown_with_fewer_charges_takes_at_most_its_full_duration() {
    let dash = Cooldown::new(ms(100)).with_charges(3).empty(ms(0));
    assert_eq!(dash.with_charges(1).remaining(ms(0)), ms(100));
}

#[test]
fn a_cooldown_of_zero_is_always_ready() {
    let mut free = Cooldown::default();
    assert!(free.try_use(ms(10_000)));
    assert!(free.try_use(ms(0)), "a cooldown of zero is always ready");
}

#[cfg(feature = "serialize")]
#[test]
fn a_loaded_cooldown_is_ready_in_a_process_whose_clock_starts_at_zero() {
    let mut spell = Cooldown::new(5.0);
    assert!(spell.try_use(ms(3_600_000)));
    let text = ron::to_string(&spell).unwrap();
    let loaded: Cooldown = ron::from_str(&text).unwrap();
    assert_eq!(loaded, spell);
    for now in [0, 5_000, 100_000, 3_599_999] {
        assert!(loaded.is_ready(ms(now)), "should be ready at {now} ms");
    }
}

#[cfg(feature = "serialize")]
#[test]
fn invalid_data_of_a_cooldown_is_an_error_that_names_it() {
    let zero = "(secs: 0, nanos: 0)";
    let text = |secs: u64, nanos: u32, charges: u32, more: &str| {
        format!(
            "(duration: (secs: {secs}, nanos: {nanos}), max_charges: {charges}, full_at: {zero}, \
             used_at: {zero}{more})"
        )
    };
    let load = |text: &str| ron::from_str::<Cooldown>(text).map_err(|error| error.to_string());
    // The longest duration is `u64::MAX` nanoseconds.
    let (secs, nanos) = (18_446_744_073, 709_551_615);
    let longest = Cooldown::new(Duration::from_nanos(u64::MAX));
    assert_eq!(load(&text(secs, nanos, 1, "")), Ok(longest));
    for (text, named) in [
        (text(secs, nanos + 1, 1, ""), "18446744073.709551616s"),
        (text(u64::MAX, 0, 1, ""), "18446744073709551615s"),
        (text(5, 0, 0, ""), "nonzero"),
        (text(5, 0, 1, ", ready: true"), "ready"),
    ] {
        let error = load(&text).expect_err(&text);
        assert!(error.contains(named), "{error} should name {named}");
    }
}

#[cfg(feature = "bevy_reflect")]
#[test]
fn a_duration_set_by_reflection_is_at_most_the_longest() {
    use bevy_reflect::GetPath;

    let longest = Duration::from_nanos(u64::MAX);
    let mut spell = Cooldown::new(1.0).with_charges(2);
    *spell.path_mut("duration").expect("a field") = Duration::MAX;
    assert_eq!(spell.duration(), longest);
    let mut expected = Cooldown::new(longest).with_charges(2);
    let now = ms(1000);
    for spell in [&mut spell, &mut expected] {
        assert!(spell.try_use(now) && spell.try_use(now));
    }
    let half = ms(1000) + longest / 2;
    for spell in [&mut spell, &mut expected] {
        spell.set_duration(ms(500), half);
        spell.add_charges(1);
    }
    assert_eq!(spell, expected);
    assert_eq!((spell.charges(half), spell.remaining(half)), (1, ms(0)));
    assert_eq!(spell.fraction(half), 0.5);
}

#[cfg(feature = "bevy_reflect")]
#[test]
fn no_value_set_by_reflection_breaks_a_cooldown() {
    use bevy_reflect::GetPath;

    let times = [
        ms(0),
        Duration::from_nanos(1),
        ms(1500),
        Duration::from_nanos(u64::MAX),
    ];
    let times = times.into_iter().chain([Duration::MAX / 2, Duration::MAX]);
    let times: Vec<Duration> = times.collect();
    let nows = [0, 1, 2000].map(ms);
    for (&duration, &full_at, &used_at) in times.iter().flat_map(|duration| {
        let times = &times;
        let pairs = times
            .iter()
            .flat_map(|full| times.iter().map(move |used| (full, used)));
        pairs.map(move |(full, used)| (duration, full, used))
    }) {
        for (now, charges) in nows
            .iter()
            .flat_map(|&now| [(now, 1), (now, 3), (now, u32::MAX)])
        {
            let mut spell = Cooldown::new(1.0).with_charges(charges);
            *spell.path_mut("duration").expect("a field") = duration;
            *spell.path_mut("full_at").expect("a field") = full_at;
            *spell.path_mut("used_at").expect("a field") = used_at;
            for change in 0..6 {
                let context = format!("{spell:?} at {now:?}, after {change} changes");
                assert!(spell.charges(now) <= charges, "{context}");
                assert_eq!(spell.is_ready(now), spell.charges(now) > 0, "{context}");
                assert!(spell.remaining(now) <= spell.duration(), "{context}");
                assert!((0.0..=1.0).contains(&spell.fraction(now)), "{context}");
                let next = spell.next_charge_at(now);
                assert_eq!(next.is_none(), spell.charges(now) == charges, "{context}");
                assert!(spell.ready_timer().delay() >= ms(0), "{context}");
                match change {
                    0 => _ = spell.try_use(now),
                    1 => spell.set_duration(ms(700), now),
                    2 => spell.add_charges(1),
                    3 => spell.set_duration(Duration::MAX, now),
                    _ => spell.reduce_by(ms(3)),
                }
            }
            spell.reset();
            assert_eq!(spell.charges(now), charges);
        }
    }
}
