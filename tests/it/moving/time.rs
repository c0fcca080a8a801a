//! Remaining times are kept, and deadlines reached on the way fire once on arrival.

use core::time::Duration;

use bevy_due::{
    Clock, ClockId, MissedTicks, OnClock, Paused, Timer, TimerAction, TimerFired,
    timer::{Keyed, RunsWhilePaused},
};

use super::*;

#[test]
fn remaining_times_counts_and_keys_move_along() {
    let (mut forest, mut town) = (zone(), zone());
    advance_ms(&mut town, 7777);
    let hero = forest.world_mut().spawn((ears(), Tag("hero"))).id();
    set_timer(
        forest.world_mut(),
        hero,
        "poison",
        Timer::every(ms(100)).times(5),
    );
    set_timer(forest.world_mut(), hero, "curse", Timer::after(ms(1000)));
    advance_ms(&mut forest, 250);
    assert_eq!(fired(&mut forest), ["poison", "poison"]);

    let here = carry(&mut forest, hero, &mut town);
    let timers = town.world_mut().with_timers(|timers| {
        let of = |key: &'static str| timers.keyed(here, key).expect("it moved");
        [of("poison"), of("curse")]
    });
    assert_eq!(timers[0].remaining, ms(50));
    assert_eq!((timers[0].count, timers[0].left), (2, Some(3)));
    assert_eq!(timers[1].remaining, ms(750));

    advance_ms(&mut town, 49);
    assert_eq!(firings(&mut town), []);
    advance_ms(&mut town, 1);
    let poison = firings(&mut town);
    assert_eq!(poison.len(), 1);
    assert_eq!(poison[0].key().as_deref(), Some("poison"));
    assert_eq!((poison[0].count(), poison[0].owner()), (3, here));
}

#[test]
fn a_deadline_reached_on_the_way_fires_once_on_arrival() {
    let (mut forest, mut town) = (zone(), zone());
    let hero = forest
        .world_mut()
        .spawn((ears(), Timer::after(ms(100))))
        .id();
    advance_ms(&mut forest, 40);
    let moved = take(&mut forest, hero);
    put(&mut town, moved, 90);
    advance_ms(&mut town, 0);
    let fired = firings(&mut town);
    assert_eq!(fired.len(), 1);
    assert_eq!(fired[0].lateness(), ms(30));
    advance_ms(&mut town, 500);
    assert_eq!(firings(&mut town), []);
    advance_ms(&mut forest, 500);
    assert_eq!(firings(&mut forest), [], "it has left");
}

#[test]
fn time_on_the_way_counts_from_the_fraction_of_a_slow_clock() {
    let mut forest = zone();
    let slow = Clock::default().with_speed(0.25);
    let slow = forest.world_mut().spawn(slow).id();
    advance(&mut forest, Duration::from_nanos(3));
    let timer = Timer::after(ms(1)).on(ClockId::Own(slow));
    let hero = forest.world_mut().spawn(timer).id();
    let (moved, mut map) = (
        take(&mut forest, hero),
        EntityHashMap::from_iter([(slow, slow)]),
    );
    let one = Duration::from_nanos(1);
    let here = forest.world_mut().put_entity(moved, one, &mut map);
    let here = here.expect("the data is valid");
    // A quarter was left to the next nanosecond.
    let timer = forest.world_mut().with_timers(|timers| timers.get(here));
    assert_eq!(timer.expect("it is armed").remaining, ms(1) - one);
}

#[test]
fn missed_ticks_follow_the_policy_of_the_timer() {
    for (policy, counts) in [
        (MissedTicks::Burst, vec![(1, 0), (2, 0), (3, 0)]),
        (MissedTicks::Skip, vec![(1, 2)]),
        (MissedTicks::Delay, vec![(1, 2)]),
    ] {
        let (mut forest, mut town) = (zone(), zone());
        let timer = Timer::every(ms(100)).with_missed_ticks(policy);
        let hero = forest.world_mut().spawn((ears(), timer)).id();
        let moved = take(&mut forest, hero);
        put(&mut town, moved, 310);
        advance_ms(&mut town, 0);
        let fired = firings(&mut town);
        let fired: Vec<_> = fired.iter().map(|it| (it.count(), it.missed())).collect();
        assert_eq!(fired, counts, "{policy:?}");
    }
}

#[test]
fn a_paused_timer_keeps_its_full_remaining_time() {
    let (mut forest, mut town) = (zone(), zone());
    let hero = forest
        .world_mut()
        .spawn((ears(), Timer::after(ms(100)), Paused))
        .id();
    let moved = take(&mut forest, hero);
    let here = put(&mut town, moved, 5000);
    advance_ms(&mut town, 50);
    advance_ms(&mut town, 1000);
    assert_eq!(firings(&mut town), []);
    town.world_mut().entity_mut(here).remove::<Paused>();
    advance_ms(&mut town, 99);
    assert_eq!(firings(&mut town), []);
    advance_ms(&mut town, 1);
    assert_eq!(firings(&mut town).len(), 1);
}

#[test]
fn a_clock_that_moves_along_advances_at_its_speed() {
    let (mut forest, mut town) = (zone(), zone());
    let clock = Clock::new().with_speed(0.5).with_now(ms(1000));
    let hero = forest.world_mut().spawn((ears(), clock)).id();
    set_timer(forest.world_mut(), hero, "slow", Timer::after(ms(100)));
    let moved = take(&mut forest, hero);
    let here = put(&mut town, moved, 120);
    assert_eq!(town.world().clock_now(here), Ok(ms(1060)));
    advance_ms(&mut town, 79);
    assert_eq!(firings(&mut town).len(), 0);
    advance_ms(&mut town, 1);
    assert_eq!(firings(&mut town).len(), 1);
}

#[test]
fn timers_on_a_mapped_clock_go_by_its_speed() {
    let (mut forest, mut town) = (zone(), zone());
    let arena = forest.world_mut().spawn(Clock::new().with_speed(2.0)).id();
    let hero = forest
        .world_mut()
        .spawn((ears(), OnClock::new(arena), Timer::after(ms(100))))
        .id();
    let moved = take(&mut forest, hero);
    let slow = town.world_mut().spawn(Clock::new().with_speed(0.25)).id();
    let mut map: EntityHashMap<Entity> = [(arena, slow)].into_iter().collect();
    let here = put_with(&mut town, moved, 200, &mut map);
    let timer = town.world_mut().with_timers(|timers| timers.get(here));
    let timer = timer.expect("it is armed");
    assert_eq!((timer.clock, timer.remaining), (ClockId::Own(slow), ms(50)));
}

#[test]
fn frames_do_not_pass_on_the_way() {
    let (mut forest, mut town) = (zone(), zone());
    let timer = Timer::after(3.0).on(ClockId::Frames);
    let hero = forest.world_mut().spawn((ears(), timer)).id();
    let moved = take(&mut forest, hero);
    put(&mut town, moved, 10_000);
    for _ in 0..2 {
        advance_ms(&mut town, 1);
        assert_eq!(firings(&mut town), []);
    }
    advance_ms(&mut town, 1);
    assert_eq!(firings(&mut town).len(), 1);
}

#[test]
fn a_cooldown_keeps_its_remaining_time_and_its_charges() {
    let (mut forest, mut town) = (zone(), zone());
    advance_ms(&mut forest, 9000);
    advance_ms(&mut town, 100);
    let mut dash = Cooldown::new(ms(1000)).with_charges(3);
    for _ in 0..2 {
        assert!(dash.try_use(game_time(&forest)));
    }
    let hero = forest.world_mut().spawn((ears(), dash)).id();
    advance_ms(&mut forest, 300);
    let moved = take(&mut forest, hero);
    let here = put(&mut town, moved, 200);
    let mut dash = *town.world().get::<Cooldown>(here).expect("it moved");
    assert_eq!(dash.charges(game_time(&town)), 1);
    let next = dash.next_charge_at(game_time(&town));
    assert_eq!(next, Some(ms(600)), "500 ms after now");
    assert_eq!(dash.fraction(game_time(&town)), 0.5);
    assert!(dash.try_use(game_time(&town)));
    assert_eq!(dash.remaining(game_time(&town)), ms(500));
    advance_ms(&mut town, 2500);
    assert_eq!(dash.charges(game_time(&town)), 3);
}

#[test]
fn a_cooldown_on_a_clock_that_moves_along_stays_as_it_is() {
    let (mut forest, mut town) = (zone(), zone());
    let clock = Clock::new().with_now(ms(5000));
    let mut dash = Cooldown::new(ms(1000));
    assert!(dash.try_use(ms(5000)));
    let hero = forest.world_mut().spawn((ears(), clock, dash)).id();
    let moved = take(&mut forest, hero);
    let here = put(&mut town, moved, 400);
    let now = town.world().clock_now(here).expect("it moved");
    let dash = town.world().get::<Cooldown>(here).expect("it moved");
    assert_eq!(dash.remaining(now), ms(600));
}

#[test]
fn a_lifetime_and_a_handler_with_data_move_along() {
    let (mut forest, mut town) = (zone(), zone());
    town.init_resource::<Calls>();
    fn call(In(fired): In<TimerFired>, actions: Query<&TimerAction>, mut calls: ResMut<Calls>) {
        let data = actions.get(fired.entity()).map(TimerAction::data);
        calls.0.push(data.map(<[u8]>::to_vec).unwrap_or_default());
    }
    #[derive(Resource, Default)]
    struct Calls(Vec<Vec<u8>>);
    town.world_mut().add_timer_handler("call", call);
    let hero = forest
        .world_mut()
        .spawn((ears(), DespawnAfter::new(ms(100))))
        .id();
    let action = TimerAction::named_with("call", *b"abc");
    forest
        .world_mut()
        .spawn((OwnedBy(hero), Keyed::new("k"), Timer::after(ms(50)), action));
    advance_ms(&mut forest, 10);
    let here = carry(&mut forest, hero, &mut town);
    advance_ms(&mut town, 40);
    assert_eq!(town.world().resource::<Calls>().0, [b"abc"]);
    assert!(town.world().get_entity(here).is_ok());
    advance_ms(&mut town, 50);
    assert!(town.world().get_entity(here).is_err(), "its life is over");
}

#[test]
fn a_cooldown_goes_on_with_the_clock_on_which_it_is_read_at_the_new_place() {
    let (mut forest, mut town) = (zone(), zone());
    advance_ms(&mut town, 9000);
    let arena = Clock::new().with_now(ms(5000));
    let mut dash = Cooldown::new(ms(1000));
    assert!(dash.try_use(ms(5000)));
    let arena = forest.world_mut().spawn(arena).id();
    let owner = forest.world_mut().spawn(OnClock::new(arena)).id();
    let pet = forest.world_mut().spawn((dash, OwnedBy(owner))).id();
    let moved = take(&mut forest, pet);
    // The owner in the town is on game time, and the name of the arena means another clock there.
    let master = town.world_mut().spawn_empty().id();
    while town.world().get_entity(arena).is_err() {
        town.world_mut().spawn_empty();
    }
    if arena != master {
        let other = Clock::new().with_speed(3.0).with_now(ms(1));
        town.world_mut().entity_mut(arena).insert(other);
    }
    let mut map: EntityHashMap<Entity> = [(owner, master)].into_iter().collect();
    let here = put_with(&mut town, moved, 400, &mut map);
    let dash = town.world().get::<Cooldown>(here).expect("it moved");
    assert_eq!(dash.remaining(game_time(&town)), ms(600));
}

#[test]
fn each_built_in_clock_has_its_own_time_on_the_way() {
    use bevy_due::moving::TimePassed;

    let clocks = [
        ("real", ClockId::Real),
        ("game", ClockId::Virtual),
        ("fixed", ClockId::Fixed),
        ("frames", ClockId::Frames),
    ];
    let (mut forest, mut town) = (zone(), zone());
    let hero = forest.world_mut().spawn(ears()).id();
    for (key, clock) in clocks {
        let timer = Timer::after(ms(60_000)).on(clock);
        set_timer(forest.world_mut(), hero, key, timer);
    }
    // A clock of its own at half speed of the game.
    let slow = Clock::of(ClockId::Virtual).with_speed(0.5);
    let clock = forest.world_mut().spawn((slow, OwnedBy(hero))).id();
    let timer = Timer::after(ms(60_000)).on(clock);
    set_timer(forest.world_mut(), hero, "slow", timer);
    advance_ms(&mut forest, 0);
    let moved = take(&mut forest, hero);
    let remaining = |town: &mut App, here| {
        town.world_mut().with_timers(|timers| {
            let of = |key: &'static str| timers.keyed(here, key).expect("it moved").remaining;
            ["real", "game", "fixed", "frames", "slow"].map(of)
        })
    };
    let passed = TimePassed {
        real: ms(1000),
        game: ms(2000),
        fixed: ms(4000),
        frames: 8,
    };
    let mut map = EntityHashMap::default();
    let here = town.world_mut().put_entity(moved.clone(), passed, &mut map);
    let here = here.expect("the data is valid");
    // One frame has passed before.
    let expected = [59_000, 58_000, 56_000, 51_000, 59_000].map(ms);
    assert_eq!(remaining(&mut town, here), expected);
    drop(take(&mut town, here));

    let mut map = EntityHashMap::default();
    let here = put_with(&mut town, moved, 1000, &mut map);
    let expected = [59_000, 59_000, 59_000, 59_000, 59_500].map(ms);
    assert_eq!(remaining(&mut town, here), expected);
}

/// A pause never stops its own end, also while it moves with its target.
#[test]
fn the_end_of_a_keyed_pause_comes_nearer_on_the_way() {
    let (mut forest, mut town) = (zone(), zone());
    let hero = forest
        .world_mut()
        .spawn((ears(), Timer::after(ms(50))))
        .id();
    let stun = (
        Timer::after(ms(1000)),
        TimerAction::despawn(),
        bevy_due::timer::Pauses(hero),
    );
    let mut commands = forest.world_mut().commands();
    commands.entity(hero).set_timer("stun", stun);
    advance_ms(&mut forest, 0);
    let moved = take(&mut forest, hero);
    let here = put(&mut town, moved, 900);
    advance_ms(&mut town, 99);
    assert!(town.world().get::<bevy_due::PausedBy>(here).is_some());
    advance_ms(&mut town, 1);
    assert!(town.world().get::<bevy_due::PausedBy>(here).is_none());
    advance_ms(&mut town, 50);
    assert_eq!(firings(&mut town).len(), 2, "the stun and the timer");
}

/// On the way, time passes for a shield, but not for the cast of the same stunned hero.
#[test]
fn what_runs_while_paused_comes_nearer_on_the_way_of_a_paused_entity() {
    let (mut forest, mut town) = (zone(), zone());
    let mut hero = forest.world_mut().spawn((ears(), Paused));
    hero.set_timer("shield", (Timer::after(ms(1000)), RunsWhilePaused))
        .set_timer("cast", Timer::after(ms(1000)));
    let hero = hero.id();
    advance_ms(&mut forest, 0);
    let moved = take(&mut forest, hero);
    let here = put(&mut town, moved, 900);
    let left = town.world_mut().with_timers(|timers| {
        ["shield", "cast"].map(|key| timers.keyed(here, key).expect("it moved").remaining)
    });
    assert_eq!(left, [ms(100), ms(1000)]);
}
