//! The way back: the old world keeps the entity.

use bevy_due::{Timer, TimerFired};

use super::*;

#[test]
fn an_entity_that_is_committed_at_the_old_place_goes_on_as_if_nothing_had_happened() {
    let script = |is_moved: bool| {
        let mut forest = zone();
        let hero = forest.world_mut().spawn(ears()).id();
        for (tag, timer) in [
            ("a", Timer::every(ms(30))),
            ("b", Timer::every(ms(20)).times(4)),
            ("c", Timer::after(ms(60))),
        ] {
            set_timer(forest.world_mut(), hero, tag, timer.clone());
            spawn(&mut forest, tag, timer);
        }
        advance_ms(&mut forest, 20);
        send(&mut forest, hero, 1);
        if is_moved {
            export(&mut forest, hero);
        }
        send(&mut forest, hero, 2);
        if is_moved {
            commit(&mut forest, hero, &HeldMail::default());
        }
        send(&mut forest, hero, 3);
        let mut log: Vec<TimerFired> = Vec::new();
        for _ in 0..10 {
            advance_ms(&mut forest, 15);
            log.extend(firings(&mut forest));
        }
        (log, heard(&mut forest, hero))
    };
    assert_eq!(script(true), script(false));
}

#[test]
fn deadlines_reached_during_the_hold_fire_in_the_next_run() {
    let mut forest = zone();
    let hero = spawn(&mut forest, "hero", Timer::every(ms(100)));
    advance_ms(&mut forest, 30);
    export(&mut forest, hero);
    advance_ms(&mut forest, 150);
    assert_eq!(firings(&mut forest), []);
    commit(&mut forest, hero, &HeldMail::default());
    advance_ms(&mut forest, 0);
    let fired = firings(&mut forest);
    assert_eq!(fired.len(), 1);
    assert_eq!(
        (fired[0].deadline(), fired[0].lateness()),
        (ms(100), ms(80))
    );
    advance_ms(&mut forest, 20);
    assert_eq!(
        firings(&mut forest)[0].deadline(),
        ms(200),
        "the grid stays"
    );
}

#[test]
fn mail_that_went_to_the_other_world_comes_back_after_the_mail_held_here() {
    let (mut forest, mut town) = (zone(), zone());
    let hero = forest.world_mut().spawn(ears()).id();
    send(&mut forest, hero, 1);
    let moved = export(&mut forest, hero);
    let here = import(&mut town, &moved, 0);
    send(&mut town, here, 2);
    send(&mut forest, hero, 3);
    advance_ms(&mut forest, 0);
    let back = forget(&mut town, here);
    assert_eq!(back.len(), 1, "the exported mail is known");
    assert!(town.world().get_entity(here).is_err());
    commit(&mut forest, hero, &back);
    advance_ms(&mut forest, 0);
    assert_eq!(heard(&mut forest, hero), [1, 3, 2]);
}

#[test]
fn an_entity_moves_on_and_comes_home() {
    let (mut forest, mut town, mut port) = (zone(), zone(), zone());
    let hero = forest
        .world_mut()
        .spawn((ears(), Timer::every(ms(100)).times(4)))
        .id();
    advance_ms(&mut forest, 150);
    send(&mut forest, hero, 1);
    let there = carry(&mut forest, hero, &mut town);
    send(&mut town, there, 2);
    let there = carry(&mut town, there, &mut port);
    advance_ms(&mut port, 50);
    assert_eq!(heard(&mut port, there), [1, 2]);
    let home = carry(&mut port, there, &mut forest);
    firings(&mut forest);
    advance_ms(&mut forest, 200);
    let counts: Vec<u64> = firings(&mut forest).iter().map(TimerFired::count).collect();
    assert_eq!(counts, [3, 4]);
    assert!(
        forest.world().get::<Timer>(home).is_none(),
        "it fired its last"
    );
}
