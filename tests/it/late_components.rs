//! The components of a timer may arrive in any order, up to the next run.

use crate::support::*;
use bevy_due::{
    ArmedTimers, DespawnAfter, OnClock, Timer, TimerCancelled, TimerFired, clock::SpeedModifier,
    prelude::*, timer::Keyed,
};
use bevy_ecs::{prelude::*, system::SystemState};
use bevy_time::{Time, Virtual};
use core::time::Duration;

fn half_speed(app: &mut bevy_app::App) -> Entity {
    app.world_mut().spawn(Clock::new().with_speed(0.5)).id()
}

#[test]
fn a_clock_on_the_entity_may_come_after_the_timer() {
    let mut app = app();
    let timer = spawn(&mut app, "x", Timer::after(ms(10)));
    let clock = Clock::new().with_speed(0.5);
    app.world_mut().entity_mut(timer).insert(clock);
    advance_ms(&mut app, 10);
    assert_eq!(fired(&mut app), [""; 0], "ten milliseconds are twenty");
    advance_ms(&mut app, 10);
    assert_eq!(fired(&mut app), ["x"]);
}

#[test]
fn on_clock_may_come_after_the_timer() {
    let mut app = app();
    let slow = half_speed(&mut app);
    let timer = spawn(&mut app, "x", Timer::after(ms(10)));
    app.world_mut().entity_mut(timer).insert(OnClock::new(slow));
    advance_ms(&mut app, 15);
    assert_eq!(fired(&mut app), [""; 0]);
    advance_ms(&mut app, 5);
    assert_eq!(fired(&mut app), ["x"]);
}

/// A spell that poisons and slows, a unit that enters a slow arena with its effects, an effect that gets its owner
/// last.
#[test]
fn a_delay_counts_from_the_frame_of_the_insertion_whichever_component_comes_last() {
    let mut app = app();
    let slow = half_speed(&mut app);
    advance_ms(&mut app, 100);
    let world = app.world_mut();
    let timer = || Timer::after(ms(10));

    let slowed = world.spawn_empty().id();
    world
        .entity_mut(slowed)
        .set_timer("poison", (timer(), Tag("slowed")));
    world.spawn(SpeedModifier::new(slowed, 0.5));

    let entering = world.spawn_empty().id();
    world
        .entity_mut(entering)
        .set_timer("poison", (timer(), Tag("entering")));
    world.entity_mut(entering).insert(OnClock::new(slow));

    let alone = world.spawn((Tag("alone"), timer())).id();
    let owner = world.spawn(OnClock::new(slow)).id();
    world.entity_mut(alone).insert(OwnedBy(owner));

    let clocked = world.spawn((Tag("clocked"), timer())).id();
    world
        .entity_mut(clocked)
        .insert(Clock::new().with_speed(0.5));

    let corpse = world.spawn(DespawnAfter::new(ms(10))).id();
    world.entity_mut(corpse).insert(OnClock::new(slow));

    advance_ms(&mut app, 19);
    assert_eq!(fired(&mut app), [""; 0]);
    advance_ms(&mut app, 1);
    let mut fired = fired(&mut app);
    fired.sort_unstable();
    assert_eq!(fired, ["alone", "clocked", "entering", "slowed"]);
    assert!(app.world().get_entity(corpse).is_err());
}

#[test]
fn the_owner_and_its_clock_may_come_after_the_timer() {
    let mut app = app();
    let owner = app.world_mut().spawn(Paused).id();
    let timer = spawn(&mut app, "x", Timer::after(ms(10)));
    let slow = half_speed(&mut app);
    app.world_mut().entity_mut(timer).insert(OwnedBy(owner));
    app.world_mut().entity_mut(owner).insert(OnClock::new(slow));
    advance_ms(&mut app, 100);
    assert_eq!(fired(&mut app), [""; 0], "its owner is paused");
    app.world_mut().entity_mut(owner).remove::<Paused>();
    advance_ms(&mut app, 15);
    assert_eq!(fired(&mut app), [""; 0], "its owner is slow");
    advance_ms(&mut app, 5);
    assert_eq!(fired(&mut app), ["x"]);
}

#[test]
fn a_timer_may_name_a_clock_that_comes_later() {
    let mut app = app();
    let arena = app.world_mut().spawn_empty().id();
    spawn(&mut app, "x", Timer::after(ms(10)).on(arena));
    app.world_mut().entity_mut(arena).insert(Clock::new());
    advance_ms(&mut app, 0);
    assert_eq!(cancelled(&mut app), []);
    advance_ms(&mut app, 10);
    assert_eq!(fired(&mut app), ["x"]);
}

#[test]
fn a_delay_counts_from_the_insertion_if_the_clock_is_there() {
    let mut app = app();
    let slow = half_speed(&mut app);
    advance_ms(&mut app, 10);
    // Bevy advances its time before the run that arms the timers.
    spawn(&mut app, "virtual", Timer::after(ms(10)));
    spawn(&mut app, "slow", Timer::after(ms(5)).on(slow));
    app.world_mut()
        .spawn((Tag("own"), Timer::after(ms(10)), Clock::new()));
    advance_ms(&mut app, 10);
    assert_eq!(fired(&mut app), ["virtual", "slow", "own"]);
}

#[test]
fn a_delay_counts_from_the_time_that_the_clock_shows_wherever_it_moves_in_a_frame() {
    let mut app = app();
    // Timers like these have been armed before.
    app.world_mut().spawn(Timer::after(ms(1000)));
    app.world_mut().spawn(DespawnAfter::new(ms(1000)));
    advance_ms(&mut app, 1);
    let steps: [fn(&mut World); 5] = [
        |_| {},
        |world| world.resource_mut::<Time<Virtual>>().advance_by(ms(5)),
        |world| advance_game_clock(world, ms(3)),
        |world| world.resource_mut::<Time<Virtual>>().advance_by(ms(2)),
        |world| advance_game_clock(world, ms(4)),
    ];
    let spawned = steps.map(|step| {
        let world = app.world_mut();
        step(world);
        let timer = world.spawn(Timer::after(ms(100))).id();
        let bullet = world.spawn(DespawnAfter::new(ms(100))).id();
        (timer, bullet)
    });
    // The next run reads the clock again.
    advance_ms(&mut app, 1);
    let remaining = spawned.map(|(timer, bullet)| {
        app.world_mut().with_timers(|timers| {
            let remaining = timers.get(timer).expect("it is armed").remaining;
            assert_eq!(timers.lifetime(bullet), Some(remaining));
            remaining
        })
    });
    let passed = remaining.map(|remaining| ms(100) - remaining);
    // Bevy's time shows at the reading, and a jump of the clock at once.
    assert_eq!(passed, [15, 15, 12, 12, 8].map(ms));
}

/// Advances the game clock, but not Bevy's.
fn advance_game_clock(world: &mut World, by: Duration) {
    let changed = world.change_clock(ClockId::Virtual, |clock| clock.advance_by(by));
    changed.expect("it is built in");
}

#[test]
fn queries_find_a_timer_as_soon_as_it_is_inserted() {
    let mut app = app();
    let slow = half_speed(&mut app);
    let owner = app.world_mut().spawn(OnClock::new(slow)).id();
    let timer = (OwnedBy(owner), Keyed::new("key"), Timer::every(ms(10)));
    let timer = app.world_mut().spawn(timer).id();
    let mut state = SystemState::<ArmedTimers>::new(app.world_mut());
    let timers = state.get(app.world()).unwrap();
    let status = timers.keyed(owner, "key").expect("it is armed");
    assert_eq!((status.entity, status.owner), (timer, owner));
    assert_eq!(status.clock, slow.into());
    assert_eq!(status.remaining, ms(10));
    assert_eq!(status.interval, Some(ms(10)));
    assert_eq!(timers.count(), 1);
    assert_eq!(timers.iter().count(), 1);
    assert_eq!(timers.due_within(slow, ms(10)).unwrap().len(), 1);

    app.world_mut().entity_mut(owner).insert(Paused);
    let timers = state.get(app.world()).unwrap();
    assert!(timers.get(timer).is_some_and(|timer| timer.paused));
}

#[test]
fn a_timer_that_is_paused_before_the_first_run_keeps_its_delay() {
    let mut app = app();
    let timer = spawn(&mut app, "x", Timer::after(ms(10)));
    app.world_mut().entity_mut(timer).insert(Paused);
    advance_ms(&mut app, 50);
    app.world_mut().entity_mut(timer).remove::<Paused>();
    advance_ms(&mut app, 9);
    assert_eq!(fired(&mut app), [""; 0]);
    advance_ms(&mut app, 1);
    assert_eq!(fired(&mut app), ["x"]);
}

#[test]
fn a_lifetime_is_on_its_own_entity_and_takes_no_other() {
    let mut app = app();
    let before = app.world().entities().count_spawned();
    let slow = half_speed(&mut app);
    let bullet = app.world_mut().spawn(DespawnAfter::new(ms(10))).id();
    app.world_mut()
        .entity_mut(bullet)
        .insert(OnClock::new(slow));
    app.world_mut().flush();
    assert_eq!(app.world().entities().count_spawned(), before + 2);
    let mut state = SystemState::<ArmedTimers>::new(app.world_mut());
    let lifetime = |timers: ArmedTimers| timers.lifetime(bullet);
    let left = lifetime(state.get(app.world()).unwrap());
    assert_eq!(left, Some(ms(10)));
    advance_ms(&mut app, 10);
    let left = lifetime(state.get(app.world()).unwrap());
    assert_eq!(left, Some(ms(5)));
    let paused = || state.get(app.world()).unwrap().count();
    let mut paused = paused;
    assert_eq!(paused(), 0, "a lifetime is not a `Timer`");
    advance_ms(&mut app, 10);
    assert!(app.world().get_entity(bullet).is_err());
}

#[test]
fn a_timer_that_is_moved_before_the_first_run_fires_at_its_new_deadline() {
    let mut app = app();
    let timer = spawn(&mut app, "x", Timer::after(ms(10)));
    let moved = app
        .world_mut()
        .change_timer(timer, |timer| timer.reschedule(ms(30)));
    assert_eq!(moved, Ok(()));
    advance_ms(&mut app, 29);
    assert_eq!(fired(&mut app), [""; 0]);
    advance_ms(&mut app, 1);
    assert_eq!(fired(&mut app), ["x"]);
}

#[test]
fn an_observer_of_the_owner_hears_only_the_owners_timer() {
    #[derive(Resource, Default)]
    struct Heard(Vec<(&'static str, Entity, bool)>);

    let mut app = app();
    app.init_resource::<Heard>();
    let enemy = spawn(&mut app, "attack", Timer::every(ms(10)));
    app.world_mut()
        .entity_mut(enemy)
        .observe(|fired: On<TimerFired>, mut heard: ResMut<Heard>| {
            heard
                .0
                .push(("own", fired.entity(), fired.has_key("poison")));
        })
        .observe(
            |fired: On<bevy_due::OwnedTimerFired>, mut heard: ResMut<Heard>| {
                heard
                    .0
                    .push(("owned", fired.entity(), fired.has_key("poison")));
                assert_eq!(fired.clock(), ClockId::Virtual);
            },
        )
        .set_timer("poison", Timer::every(ms(5)));
    let poison = owned(app.world(), enemy)[0];
    advance(&mut app, Duration::from_millis(10));
    assert_eq!(
        app.world().resource::<Heard>().0,
        [
            ("owned", poison, true),
            ("own", enemy, false),
            ("owned", poison, true),
        ]
    );
}

/// Returns the delays of these timers on a clock that comes later.
fn late_delays<const N: usize>(timers: [Timer; N]) -> [Duration; N] {
    let mut app = app();
    let arena = app.world_mut().spawn_empty().id();
    let timers = timers.map(|timer| app.world_mut().spawn(timer.on(arena)).id());
    app.world_mut().entity_mut(arena).insert(Clock::new());
    advance_ms(&mut app, 0);
    timers.map(|timer| {
        let status = app.world_mut().with_timers(|timers| timers.get(timer));
        status.expect("it is armed").remaining
    })
}

#[test]
fn a_timer_on_a_late_clock_has_its_jitter_and_draws_for_no_other_timer() {
    let plain = || Timer::after(ms(10));
    let with_jitter = || plain().with_jitter(Duration::from_secs(9));
    let [delay] = late_delays([with_jitter()]);
    assert!(delay > ms(10), "{delay:?} without jitter");
    assert_eq!(late_delays([plain(), with_jitter()]), [ms(10), delay]);
}

#[test]
fn a_clock_that_the_end_of_another_timer_brings_is_found() {
    let mut app = app();
    let [never, late] = [(); 2].map(|()| app.world_mut().spawn_empty().id());
    let first = spawn(&mut app, "first", Timer::after(ms(10)).on(never));
    spawn(&mut app, "second", Timer::after(ms(10)).on(late));
    app.world_mut().entity_mut(first).observe(
        move |_: On<TimerCancelled>, mut commands: Commands| {
            commands.entity(late).insert(Clock::new());
        },
    );
    advance_ms(&mut app, 1);
    advance_ms(&mut app, 10);
    assert_eq!(fired(&mut app), ["second"]);
    assert_eq!(cancelled(&mut app).len(), 1);
}

/// It is on no other clock than the one that it would be on if it were inserted now.
#[test]
fn a_timer_that_loses_its_owner_or_its_modifier_leaves_their_clocks() {
    let mut app = app();
    let slow = half_speed(&mut app);
    let unit = app.world_mut().spawn(Clock::of(slow)).id();
    let owned = (OwnedBy(slow), Timer::after(ms(10)), Tag("owned"));
    let modifier = (SpeedModifier::new(unit, 3.0), Timer::after(ms(10)));
    let owned = app.world_mut().spawn(owned).id();
    let modifier = app.world_mut().spawn((modifier, Tag("modifier"))).id();
    let clocks = |app: &mut bevy_app::App| {
        app.update();
        [owned, modifier].map(|timer| status(app, timer).clock)
    };
    assert_eq!(clocks(&mut app), [slow.into(); 2]);
    app.world_mut().entity_mut(owned).remove::<OwnedBy>();
    app.world_mut()
        .entity_mut(modifier)
        .remove::<SpeedModifier>();
    assert_eq!(clocks(&mut app), [ClockId::Virtual; 2]);
}

#[test]
fn an_effect_follows_the_clock_that_it_slows_to_another_parent() {
    let mut app = app();
    let arena = spawn_clock(&mut app, Clock::new());
    let unit = app.world_mut().spawn_empty().id();
    let slow = (SpeedModifier::new(unit, 0.5), DespawnAfter::new(ms(20)));
    let slow = app.world_mut().spawn(slow).id();
    advance_ms(&mut app, 10);
    app.world_mut().entity_mut(unit).insert(OnClock::new(arena));
    change_clock(&mut app, arena, |clock| clock.pause());
    advance_ms(&mut app, 100);
    assert!(
        app.world().get_entity(slow).is_ok(),
        "it waits with the arena"
    );
    change_clock(&mut app, arena, |clock| clock.unpause());
    change_clock(&mut app, unit, |clock| _ = clock.set_parent(ClockId::Real));
    advance_ms(&mut app, 9);
    assert!(app.world().get_entity(slow).is_ok());
    advance_ms(&mut app, 1);
    assert!(app.world().get_entity(slow).is_err());
}
