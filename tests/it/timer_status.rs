//! `TimerStatus`: the state of a timer or a cooldown as a component.

use core::time::Duration;

use crate::support::*;
use bevy_app::App;
use bevy_due::{
    Clock, ClockId, Cooldown, OnClock, Owned, OwnedBy, Timer, prelude::*, timer::TimerStatus,
};
use bevy_ecs::{entity_disabling::Disabled, prelude::*};
use bevy_time::{Fixed, Time};

fn shown(app: &App, timer: Entity) -> &TimerStatus {
    app.world().get(timer).expect("a `TimerStatus`")
}

fn spawn_shown(app: &mut App, timer: Timer) -> Entity {
    let shown = TimerStatus::default();
    app.world_mut().spawn((timer, shown)).id()
}

/// Asserts that the component shows what a query returns.
fn assert_right(app: &mut App, timer: Entity) {
    let status = app.world_mut().with_timers(|timers| timers.get(timer));
    let status = status.expect("it is armed");
    let progress = shown(app, timer);
    let of_progress = (progress.remaining, progress.elapsed, progress.wait);
    assert_eq!(of_progress, (status.remaining, status.elapsed, status.wait));
    let of_progress = (progress.count, progress.left, progress.paused);
    assert_eq!(of_progress, (status.count, status.left, status.paused));
    assert_eq!(progress.clock, status.clock);
    assert_eq!((progress.entity, progress.owner), (timer, status.owner));
    assert_eq!(progress.interval, status.interval);
}

#[test]
fn a_component_shows_its_timer_from_insertion_on() {
    let mut app = app();
    let arena = app.world_mut().spawn(Clock::new().with_speed(0.5)).id();
    let timer = Timer::every(ms(40)).first_after(ms(100)).times(9).on(arena);
    let timer = spawn_shown(&mut app, timer);
    assert_right(&mut app, timer);
    let new = shown(&app, timer);
    assert_eq!((new.remaining, new.wait, new.count), (ms(100), ms(100), 0));
    assert_eq!((new.left, new.clock), (Some(9), arena.into()));
    for millis in [1, 100, 99, 50, 80, 72] {
        advance_ms(&mut app, millis);
        assert_right(&mut app, timer);
    }
    let text = format!("0.021 s of 0.04 s, fired 3 times, on clock {arena}");
    assert_eq!(shown(&app, timer).to_string(), text);
    let late = app.world_mut().spawn(Timer::after(ms(7))).id();
    advance_ms(&mut app, 5);
    let default = TimerStatus::default();
    app.world_mut().entity_mut(late).insert(default);
    assert_eq!(shown(&app, late).remaining, ms(2));
}

#[test]
fn the_sentence_counts_in_words() {
    let mut app = app();
    let timer = spawn_shown(&mut app, Timer::every(4.0));
    let mut expect = |millis, text: &str| {
        advance_ms(&mut app, millis);
        assert_eq!(shown(&app, timer).to_string(), text);
    };
    expect(0, "0 s of 4 s, never fired, on clock virtual");
    expect(4000, "0 s of 4 s, fired once, on clock virtual");
    expect(5300, "1.3 s of 4 s, fired twice, on clock virtual");
    expect(4005, "1.305 s of 4 s, fired 3 times, on clock virtual");
    app.world_mut().entity_mut(timer).insert(Paused);
    advance_ms(&mut app, 1);
    let text = shown(&app, timer).to_string();
    assert!(text.ends_with(", on clock virtual, paused"), "{text}");
}

#[test]
fn an_ended_timer_shows_that_it_is_done() {
    let mut app = app();
    let timer = spawn_shown(&mut app, Timer::after(ms(10)));
    let cancelled = spawn_shown(&mut app, Timer::after(ms(50)));
    let never = app.world_mut().spawn(TimerStatus::default()).id();
    advance_ms(&mut app, 9);
    assert_eq!(shown(&app, timer).left, Some(1));
    app.world_mut().entity_mut(cancelled).remove::<Timer>();
    advance_ms(&mut app, 1);
    for timer in [timer, cancelled, never] {
        assert_eq!(*shown(&app, timer), TimerStatus::done(timer));
        assert_eq!(shown(&app, timer).to_string(), "done");
    }
    app.world_mut()
        .entity_mut(timer)
        .insert(Timer::after(ms(5)));
    advance_ms(&mut app, 1);
    assert_eq!(shown(&app, timer).remaining, ms(4));
}

#[test]
fn paused_owned_fixed_and_disabled_timers_are_shown() {
    let mut app = app();
    app.insert_resource(Time::<Fixed>::from_duration(ms(10)));
    let owner = app.world_mut().spawn(Paused).id();
    let default = TimerStatus::default;
    let owned = (OwnedBy(owner), Timer::after(ms(100)), default());
    let owned = app.world_mut().spawn(owned).id();
    assert!(shown(&app, owned).paused);
    let fixed = spawn_shown(&mut app, Timer::after(ms(100)).on(ClockId::Fixed));
    let disabled = spawn_shown(&mut app, Timer::after(ms(100)));
    app.world_mut().entity_mut(disabled).insert(Disabled);
    for _ in 0..3 {
        advance_ms(&mut app, 10);
    }
    assert_right(&mut app, owned);
    assert_right(&mut app, disabled);
    assert_eq!(
        shown(&app, fixed).remaining,
        ms(80),
        "after two fixed steps"
    );
    app.world_mut().entity_mut(owner).remove::<Paused>();
    advance_ms(&mut app, 10);
    assert_eq!(shown(&app, owned).remaining, ms(90));
    assert_eq!(app.world().get::<Owned>(owner).map(Owned::len), Some(1));
}

/// Uses a charge of the cooldown on `entity`, which runs on `clock`.
fn use_charge(app: &mut App, entity: Entity, clock: Entity) {
    let now = app.world().clock_now(clock).expect("a clock");
    let mut cooldown = app.world_mut().get_mut::<Cooldown>(entity).expect("there");
    assert!(cooldown.try_use(now));
}

#[test]
fn a_cooldown_is_shown_as_a_timer_that_fires_when_a_charge_comes_back() {
    let mut app = app();
    let arena = app.world_mut().spawn(Clock::new().with_speed(0.5)).id();
    let hero = app.world_mut().spawn(OnClock::new(arena)).id();
    let dash = Cooldown::new(ms(100)).with_charges(3);
    let dash = (OwnedBy(hero), dash, TimerStatus::default());
    let dash = app.world_mut().spawn(dash).id();
    let expect = |app: &mut App, millis, remaining, count, left| {
        advance_ms(app, millis);
        let shown = shown(app, dash);
        let clock = shown.clock;
        assert_eq!(clock, arena.into());
        assert_eq!((shown.remaining, shown.wait), (ms(remaining), ms(100)));
        assert_eq!(shown.elapsed, ms(100 - remaining));
        assert_eq!((shown.count, shown.left), (count, Some(left)));
    };
    use_charge(&mut app, dash, arena);
    expect(&mut app, 40, 80, 2, 1);
    use_charge(&mut app, dash, arena);
    expect(&mut app, 0, 80, 1, 2);
    expect(&mut app, 158, 1, 1, 2);
    expect(&mut app, 2, 100, 2, 1);
    expect(&mut app, 198, 1, 2, 1);
    advance_ms(&mut app, 2);
    assert_eq!(*shown(&app, dash), TimerStatus::done(dash), "it is full");
}

#[test]
fn a_cooldown_is_shown_from_insertion_on_unless_there_is_a_timer() {
    let mut app = app();
    let own = app.world_mut().spawn(Clock::new()).id();
    advance_ms(&mut app, 30);
    let now = app.world().clock_now(own).expect("a clock");
    let cannon = (Cooldown::new(ms(100)).empty(now), TimerStatus::default());
    app.world_mut().entity_mut(own).insert(cannon);
    assert_eq!(shown(&app, own).remaining, ms(100));
    advance_ms(&mut app, 10);
    assert_eq!(shown(&app, own).remaining, ms(90));
    app.world_mut().entity_mut(own).insert(Timer::after(ms(20)));
    advance_ms(&mut app, 10);
    assert_eq!(shown(&app, own).wait, ms(20));
    advance_ms(&mut app, 10);
    assert_eq!(shown(&app, own).wait, ms(100), "the timer has ended");
    assert_eq!(shown(&app, own).remaining, ms(70));
}

#[test]
fn a_change_of_the_component_does_nothing_and_is_overwritten() {
    let mut app = app();
    let timer = spawn_shown(&mut app, Timer::after(ms(100)));
    let mut progress = app.world_mut().get_mut::<TimerStatus>(timer).unwrap();
    (progress.remaining, progress.paused) = (Duration::ZERO, true);
    advance_ms(&mut app, 10);
    assert_right(&mut app, timer);
    app.world_mut()
        .change_timer(timer, |timer| timer.set_remaining(ms(500)))
        .unwrap();
    advance_ms(&mut app, 0);
    assert_eq!(shown(&app, timer).remaining, ms(500));
}

#[test]
fn a_component_that_did_not_change_is_not_marked_as_changed() {
    let mut app = app();
    let timer = spawn_shown(&mut app, Timer::after(ms(100)));
    app.world_mut().entity_mut(timer).insert(Paused);
    advance_ms(&mut app, 10);
    let changed = |app: &App| {
        let progress = app.world().entity(timer).get_ref::<TimerStatus>();
        progress.expect("a `TimerStatus`").last_changed()
    };
    let before = changed(&app);
    advance_ms(&mut app, 10);
    assert_eq!(changed(&app), before);
}

#[test]
fn a_world_without_the_plugin_leaves_the_component_alone() {
    let mut world = World::new();
    let progress = world
        .spawn((Timer::after(ms(5)), TimerStatus::default()))
        .id();
    world.flush();
    assert_eq!(
        world.get::<TimerStatus>(progress),
        Some(&TimerStatus::default())
    );
}

/// A remote client finds components by the path of their type, and sends values.
#[cfg(feature = "bevy_reflect")]
mod remote {
    use bevy_ecs::reflect::{AppTypeRegistry, ReflectComponent};
    use bevy_reflect::{GetPath, Reflect, structs::DynamicStruct};

    use super::*;

    fn component(app: &App, path: &str) -> (AppTypeRegistry, ReflectComponent) {
        let registry = app.world().resource::<AppTypeRegistry>().clone();
        let types = registry.read();
        let found = types.get_with_type_path(path).expect("it is registered");
        let component = found
            .data::<ReflectComponent>()
            .expect("a component")
            .clone();
        drop(types);
        (registry, component)
    }

    fn read<T: Reflect + Clone>(app: &App, entity: Entity, path: &str) -> T {
        let (_, component) = component(app, "bevy_due::timer::TimerStatus");
        let shown = component
            .reflect(app.world().entity(entity))
            .expect("it is there");
        shown.path::<T>(path).expect("a field of this type").clone()
    }

    #[test]
    fn a_remote_client_watches_and_pauses_a_timer() {
        let mut app = app();
        let arena = app.world_mut().spawn(Clock::new()).id();
        let timer = spawn_shown(&mut app, Timer::every(ms(100)).on(arena));
        advance_ms(&mut app, 30);
        assert_eq!(read::<Duration>(&app, timer, ".remaining"), ms(70));
        assert_eq!(read::<ClockId>(&app, timer, ".clock"), arena.into());

        // The component is immutable, so the client inserts another one.
        let (registry, clock) = component(&app, "bevy_due::Clock");
        let shown = clock.reflect(app.world().entity(arena)).expect("a clock");
        let mut value = shown.reflect_clone().expect("a clone");
        *value.path_mut::<f64>(".speed").expect("a field") = 0.5;
        let mut entity = app.world_mut().entity_mut(arena);
        clock.insert(&mut entity, &*value, &registry.read());
        advance_ms(&mut app, 20);
        assert_eq!(read::<Duration>(&app, timer, ".remaining"), ms(60));

        let (registry, paused) = component(&app, "bevy_due::Paused");
        let mut entity = app.world_mut().entity_mut(timer);
        paused.insert(&mut entity, &DynamicStruct::default(), &registry.read());
        for _ in 0..3 {
            advance_ms(&mut app, 1000);
        }
        assert_eq!(read::<Duration>(&app, timer, ".remaining"), ms(60));
        assert!(read::<bool>(&app, timer, ".paused"));

        paused.remove(&mut app.world_mut().entity_mut(timer));
        advance_ms(&mut app, 20);
        assert_eq!(read::<Duration>(&app, timer, ".remaining"), ms(50));
        advance_ms(&mut app, 120);
        assert_eq!(read::<u64>(&app, timer, ".count"), 1);
        assert_eq!(read::<Option<u32>>(&app, timer, ".left"), None);
    }

    #[cfg(feature = "serialize")]
    #[test]
    fn a_component_is_serialized_with_its_fields() {
        let mut app = app();
        let timer = spawn_shown(&mut app, Timer::after(ms(100)).on(ClockId::Real));
        let text = ron::to_string(shown(&app, timer)).expect("it can be serialized");
        assert!(
            text.contains("clock:Real,remaining:(secs:0,nanos:100000000)"),
            "{text}"
        );
        let loaded: TimerStatus = ron::from_str(&text).expect("it can be deserialized");
        assert_eq!(loaded, *shown(&app, timer));
        // A loaded component shows the current timer.
        advance_ms(&mut app, 10);
        app.world_mut().entity_mut(timer).insert(loaded);
        assert_eq!(shown(&app, timer).remaining, ms(90));
    }
}
