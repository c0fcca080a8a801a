//! How long a world waits.

use std::{prelude::rust_2024::*, vec::Vec};

use bevy_app::{First, Update};
use bevy_ecs::{entity_disabling::Disabled, system::RunSystemOnce};
use bevy_time::TimePlugin;
use proptest::prelude::*;

use super::*;
use crate::{
    Clock, ClocksMut, DuePlugin, DueSystems, DueWorldExt, OwnedBy, Paused, Timer, TimerFired,
    UpdateComponent,
    clock::ClockMut,
    message::{Delivery, MessageComponent, MessageEntityCommandsExt, MessageWorldExt},
};

const ZERO: Option<Duration> = Some(Duration::ZERO);
const CLOCKS: [ClockId; 3] = [ClockId::Real, ClockId::Virtual, ClockId::Fixed];

fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

/// Returns an app with nothing to do, in which a fixed step takes 20 ms.
fn app() -> App {
    let mut app = App::new();
    app.add_plugins((TimePlugin, DuePlugin::default()))
        .insert_resource(Time::<Virtual>::from_max_delta(Duration::MAX))
        .insert_resource(Time::<Fixed>::from_duration(ms(20)));
    advance(&mut app, Duration::ZERO);
    app
}

fn advance(app: &mut App, by: Duration) {
    app.insert_resource(TimeUpdateStrategy::ManualDuration(by));
    app.update();
}

fn wait(app: &mut App) -> Option<Duration> {
    let mut updates: UpdateState = None;
    until_due(app.world_mut(), &mut updates)
}

/// Returns the wait after a frame in which 10 ms pass.
fn wait_after_frame(app: &mut App) -> Option<Duration> {
    advance(app, ms(10));
    wait(app)
}

fn game(app: &mut App) -> Mut<'_, Time<Virtual>> {
    app.world_mut().resource_mut()
}

#[test]
fn an_empty_world_waits_for_nothing() {
    assert_eq!(wait(&mut app()), None);
    assert_eq!(wait(&mut App::new()), None, "without the plugin");
}

#[test]
fn a_new_timer_has_one_frame_and_then_waits_for_its_deadline() {
    let mut app = app();
    app.world_mut().spawn(Timer::after(ms(100)));
    assert_eq!(wait(&mut app), ZERO, "to arm it");
    assert_eq!(wait_after_frame(&mut app), Some(ms(90)));
    app.world_mut()
        .spawn(Timer::every(ms(30)).on(ClockId::Real));
    assert_eq!(wait_after_frame(&mut app), Some(ms(20)));
    advance(&mut app, ms(20));
    assert_eq!(wait(&mut app), Some(ms(30)), "it is armed again at once");
}

#[test]
fn the_end_of_an_owned_timer_or_a_cancellation_takes_one_frame_more() {
    let mut app = app();
    app.world_mut().spawn(Timer::after(ms(10)));
    let other = app.world_mut().spawn(Timer::after(ms(60))).id();
    app.world_mut()
        .spawn((Timer::after(ms(20)), OwnedBy(other)));
    assert_eq!(wait_after_frame(&mut app), Some(ms(10)), "nothing is left");
    assert_eq!(wait_after_frame(&mut app), ZERO, "to despawn the entity");
    assert_eq!(wait_after_frame(&mut app), Some(ms(30)));
    app.world_mut().despawn(other);
    assert_eq!(wait(&mut app), ZERO, "to write that it was cancelled");
    assert_eq!(wait_after_frame(&mut app), None);
}

#[test]
fn the_speed_and_the_pause_of_a_clock_count() {
    let mut app = app();
    let clock = app.world_mut().spawn(Clock::new().with_speed(2.0)).id();
    app.world_mut().spawn(Timer::after(ms(100)).on(clock));
    assert_eq!(wait_after_frame(&mut app), Some(ms(40)));
    let mut change = |change: fn(&mut ClockMut)| {
        let changed = app.world_mut().change_clock(clock, change);
        changed.expect("spawned");
        wait(&mut app)
    };
    assert_eq!(change(|clock| clock.pause()), None);
    assert_eq!(change(|clock| clock.set_speed(0.5)), None, "still paused");
    assert_eq!(change(|clock| clock.unpause()), Some(ms(160)));
}

#[test]
fn the_speed_and_the_pause_of_the_game_count() {
    let mut app = app();
    app.world_mut().spawn(Timer::after(ms(100)));
    app.world_mut()
        .spawn(Timer::after(ms(100)).on(ClockId::Fixed));
    assert_eq!(wait_after_frame(&mut app), Some(ms(90)));
    game(&mut app).set_relative_speed(0.5);
    assert_eq!(wait(&mut app), Some(ms(180)));
    game(&mut app).set_relative_speed(0.0);
    assert_eq!(wait(&mut app), None);
    game(&mut app).set_relative_speed(1.0);
    game(&mut app).pause();
    assert_eq!(wait(&mut app), None);
    app.world_mut()
        .spawn(Timer::after(ms(70)).on(ClockId::Real));
    assert_eq!(wait_after_frame(&mut app), Some(ms(60)));
}

#[test]
fn a_timer_of_the_fixed_clock_waits_for_a_step() {
    let mut app = app();
    advance(&mut app, ms(50));
    // Two steps have run, and 10 ms are left over.
    let owner = app.world_mut().spawn_empty().id();
    let timer = Timer::after(ms(30)).on(ClockId::Fixed);
    app.world_mut().spawn((timer, OwnedBy(owner)));
    assert_eq!(
        wait_after_frame(&mut app),
        Some(ms(20)),
        "two steps, one of which has run"
    );
    advance(&mut app, ms(20));
    assert_eq!(
        wait(&mut app),
        Some(ms(20)),
        "to despawn the entity in a step"
    );
    advance(&mut app, ms(20));
    assert_eq!(wait(&mut app), None);
}

#[test]
fn steps_that_are_left_over_run_while_the_game_is_paused() {
    let mut app = app();
    advance(&mut app, ms(10));
    app.world_mut()
        .spawn(Timer::after(ms(5)).on(ClockId::Fixed));
    game(&mut app).pause();
    assert_eq!(wait_after_frame(&mut app), None);
    let mut fixed = app.world_mut().resource_mut::<Time<Fixed>>();
    fixed.set_timestep(ms(5));
    assert_eq!(wait(&mut app), ZERO);
    assert_eq!(wait_after_frame(&mut app), None);
    let fired = app.world().resource::<Messages<TimerFired>>();
    assert!(!fired.is_empty());
}

#[test]
fn a_world_with_many_timers_looks_at_them_at_times_and_fires_the_first_on_time() {
    let mut app = app();
    for first in [200_000, 100_000, 300_000] {
        let clock = app.world_mut().spawn(Clock::new()).id();
        let timer = |nth: u64| Timer::after(ms(first + nth)).on(clock);
        app.world_mut().spawn_batch((0..3_000).map(timer));
    }
    let mut looks = 0;
    let mut left = ms(100_000) - ms(10);
    let first = wait_after_frame(&mut app).expect("timers wait");
    assert!(ms(1000) < first && first <= left, "{first:?}");
    while !left.is_zero() {
        let wait = wait(&mut app).expect("timers wait");
        assert!(
            !wait.is_zero() && wait <= left,
            "never late: {wait:?} of {left:?}"
        );
        advance(&mut app, wait);
        left -= wait;
        looks += 1;
    }
    assert_eq!(app.world().resource::<Messages<TimerFired>>().len(), 1);
    assert!(looks < 3_000, "{looks} looks at 9,000 timers");
}

#[test]
fn a_timer_of_the_frame_clock_counts_every_frame() {
    let mut app = app();
    app.world_mut()
        .spawn(Timer::after(100.0).on(ClockId::Frames));
    assert_eq!(wait_after_frame(&mut app), ZERO);
    let pause = |mut clocks: ClocksMut| clocks.get_mut(ClockId::Frames).expect("built in").pause();
    app.world_mut().run_system_once(pause).expect("a system");
    advance(&mut app, ms(10));
    assert_eq!(wait_after_frame(&mut app), None);
}

#[test]
fn an_enabled_callback_is_due_in_every_frame() {
    for clock in [
        ClockId::Real,
        ClockId::Virtual,
        ClockId::Frames,
        ClockId::Fixed,
    ] {
        let mut app = app();
        let update = UpdateComponent::new(|_| ()).on(clock);
        let entity = app.world_mut().spawn(update).id();
        assert_eq!(wait(&mut app), ZERO, "{clock}");
        assert_eq!(wait_after_frame(&mut app), ZERO, "{clock}");

        app.world_mut().entity_mut(entity).insert(Paused);
        assert_eq!(wait(&mut app), None, "{clock}");
        app.world_mut()
            .entity_mut(entity)
            .remove::<Paused>()
            .insert(Disabled);
        assert_eq!(wait(&mut app), None, "{clock}");
        app.world_mut().entity_mut(entity).remove::<Disabled>();
        assert_eq!(wait(&mut app), ZERO, "{clock}");

        game(&mut app).pause();
        let is_of_game = matches!(clock, ClockId::Virtual | ClockId::Fixed);
        assert_eq!(wait(&mut app).is_none(), is_of_game, "{clock}");
    }
}

#[test]
fn a_callback_waits_with_its_clock() {
    let mut app = app();
    let clock = app.world_mut().spawn(Clock::new()).id();
    app.world_mut()
        .spawn(UpdateComponent::new(|_| ()).on(clock));
    assert_eq!(wait_after_frame(&mut app), ZERO);
    app.world_mut()
        .change_clock(clock, |clock| clock.pause())
        .expect("spawned");
    assert_eq!(wait_after_frame(&mut app), None);
    app.world_mut()
        .change_clock(clock, |clock| clock.unpause())
        .expect("spawned");
    advance(&mut app, ms(10));
    assert_eq!(wait_after_frame(&mut app), ZERO);
}

#[derive(Message)]
struct Ping;

#[test]
fn a_message_within_the_world_waits_for_the_next_frame() {
    let mut app = app();
    let ears = MessageComponent::new().on(|_, _: &Ping| ());
    app.world_mut().spawn(ears);
    app.world_mut().send(Delivery::All, Ping).expect("room");
    assert_eq!(wait(&mut app), ZERO);
    assert_eq!(wait_after_frame(&mut app), None);

    app.add_message::<Ping>()
        .add_systems(Update, |mut pings: MessageWriter<Ping>| {
            pings.write(Ping);
        });
    assert_eq!(
        wait_after_frame(&mut app),
        ZERO,
        "written after the delivery"
    );
}

#[test]
fn a_command_that_waits_may_have_something_to_do() {
    let mut app = app();
    app.world_mut().commands().spawn(Timer::after(ms(10)));
    assert_eq!(wait(&mut app), ZERO);
}

#[test]
fn a_reply_waits_for_a_disabled_entity() {
    let mut app = app();
    let answer = MessageComponent::new().on(|mut me, _: &Ping| me.reply(Ping));
    let answering = app.world_mut().spawn(answer).id();
    let asker = MessageComponent::new().on(|_, _: &Ping| ());
    let asker = app.world_mut().spawn(asker).id();
    advance(&mut app, ms(10));
    let mut commands = app.world_mut().commands();
    let mut commands = commands.entity(asker);
    commands.ask(answering, Ping, Timer::after(100.0));
    commands.insert(Disabled);
    for _ in 0..5 {
        assert_eq!(wait_after_frame(&mut app), ZERO);
    }
    app.world_mut().entity_mut(asker).remove::<Disabled>();
    assert_eq!(wait_after_frame(&mut app), None, "nothing is left of it");
}

#[test]
fn the_time_of_a_sleep_is_not_cut_off_and_no_system_sees_a_longer_step() {
    let second = Duration::from_secs(1);
    let mut app = app();
    let see = |game: Res<Time<Virtual>>| assert_eq!(game.max_delta(), ms(300));
    app.insert_resource(TimeUpdateStrategy::Automatic)
        .add_systems(First, see.after(DueSystems::Clocks))
        .add_systems(Update, see);
    game(&mut app).set_max_delta(ms(300));
    game(&mut app).set_relative_speed(2.0);
    update_after(&mut app, Duration::ZERO);

    // The world has slept for a second: its clock has been read a second ago.
    let slept = Instant::now()
        .checked_sub(second)
        .expect("a clock that is older");
    app.insert_resource(TimeUpdateStrategy::Automatic);
    let mut real = app.world_mut().resource_mut::<Time<Real>>();
    *real = Time::new(slept);
    real.update_with_instant(slept);
    let before = game(&mut app).elapsed();
    update_after(&mut app, second);
    let passed = game(&mut app).elapsed() - before;
    assert!(passed >= ms(2000), "twice the sleep: {passed:?}");

    // A frame that hangs for a second after no sleep is cut off.
    let mut real = app.world_mut().resource_mut::<Time<Real>>();
    *real = Time::new(slept);
    real.update_with_instant(slept);
    let before = game(&mut app).elapsed();
    update_after(&mut app, Duration::ZERO);
    assert_eq!(game(&mut app).elapsed() - before, ms(300));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..Default::default() })]

    #[test]
    fn a_wait_is_never_too_long_at_any_speed(
        nanos in 1..1_u64 << 40,
        speed in 0.01..100.0,
        before in 0..1_u64 << 40,
    ) {
        let mut app = app();
        game(&mut app).set_relative_speed_f64(speed);
        app.insert_resource(Time::<Fixed>::from_duration(Duration::from_nanos(1 << 40)));
        advance(&mut app, Duration::from_nanos(before));
        app.world_mut().spawn(Timer::every(Duration::from_nanos(nanos)).times(2));
        advance(&mut app, Duration::ZERO);
        let wait = wait(&mut app).expect("a timer waits");
        advance(&mut app, wait);
        let fired = app.world().resource::<Messages<TimerFired>>();
        prop_assert!(!fired.is_empty());
    }

    #[test]
    fn a_wait_ends_when_the_first_timer_is_due(
        clocks in prop::collection::vec((0..8_usize, 1..64_u32), 0..6),
        timers in prop::collection::vec((0..8_usize, 30_000_000..500_000_000_u64), 1..20),
        before in 0..20_000_000_u64,
    ) {
        let mut app = app();
        advance(&mut app, Duration::from_nanos(before));
        let mut all = CLOCKS.to_vec();
        let at = |all: &[ClockId], nth: usize| all[nth % all.len()];
        for (parent, speed) in clocks {
            let clock = Clock::of(at(&all, parent)).with_speed(f64::from(speed) / 16.0);
            all.push(app.world_mut().spawn(clock).id().into());
        }
        for (clock, nanos) in timers {
            let timer = Timer::after(Duration::from_nanos(nanos)).on(at(&all, clock));
            app.world_mut().spawn(timer);
        }
        advance(&mut app, Duration::ZERO);
        let fired = |app: &mut App, by| {
            advance(app, by);
            let mut fired = app.world_mut().resource_mut::<Messages<TimerFired>>();
            fired.drain().collect::<Vec<_>>().len()
        };
        let wait = wait(&mut app).expect("a timer waits");
        let nano = Duration::from_nanos(1);
        prop_assert_eq!(fired(&mut app, wait - nano), 0, "not before");
        prop_assert!(fired(&mut app, nano) > 0, "not after");
    }
}
