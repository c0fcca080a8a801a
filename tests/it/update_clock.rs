//! The clocks of an `UpdateComponent`: the time it gets, and the frames in which it runs.

use core::time::Duration;

use crate::support::{errors::*, updates::*, *};
use bevy_app::{App, Update};
use bevy_due::{ClocksMut, OnClock, Timer, UpdateComponent, prelude::*};
use bevy_ecs::{
    component::Component,
    entity::{EntityHashMap, SceneEntityMapper},
    error::{FallbackErrorHandler, Severity},
    prelude::*,
};
use bevy_time::{Fixed, Time, TimePlugin, Virtual};

fn spawn_on(app: &mut App, clock: impl Into<ClockId>) -> Entity {
    let entity = (Ticks::default(), note_time().on(clock));
    app.world_mut().spawn(entity).id()
}

/// Sets the steps of the fixed schedule to ten milliseconds.
fn with_fixed_steps(app: &mut App) {
    app.insert_resource(Time::<Fixed>::from_duration(ms(10)));
}

#[test]
fn a_callback_gets_the_delta_and_the_reading_of_its_clock() {
    let mut app = update_app();
    let entity = (Ticks::default(), note_time());
    let entity = app.world_mut().spawn(entity).id();
    for millis in [10, 0, 35] {
        advance_ms(&mut app, millis);
    }
    let told = ticks(&mut app, entity);
    assert!(told.iter().all(|tick| tick.clock == ClockId::Virtual));
    let expected = [(10, 10), (0, 10), (35, 45)].map(|(delta, elapsed)| Tick {
        delta: ms(delta),
        elapsed: ms(elapsed),
        clock: ClockId::Virtual,
    });
    assert_eq!(told, expected);
}

#[test]
fn a_late_callback_gets_the_delta_of_one_frame() {
    let mut app = update_app();
    advance_ms(&mut app, 100);
    let entity = spawn_on(&mut app, ClockId::Virtual);
    advance_ms(&mut app, 10);
    assert_eq!(times(&mut app, entity), [(10, 110)]);

    app.world_mut().entity_mut(entity).insert(Paused);
    advance_ms(&mut app, 50);
    app.world_mut().entity_mut(entity).remove::<Paused>();
    advance_ms(&mut app, 10);
    assert_eq!(times(&mut app, entity), [(10, 170)], "after a pause, too");
}

#[test]
fn a_slow_clock_gives_less_time() {
    let mut app = update_app();
    let half = spawn_clock(&mut app, Clock::new().with_speed(0.5));
    let quarter = spawn_clock(&mut app, Clock::of(half).with_speed(0.5));
    let [on_half, on_quarter] = [half, quarter].map(|clock| spawn_on(&mut app, clock));
    advance_ms(&mut app, 20);
    assert_eq!(times(&mut app, on_half), [(10, 10)]);
    assert_eq!(times(&mut app, on_quarter), [(5, 5)]);
    change_clock(&mut app, half, |clock| clock.set_speed(3.0));
    advance_ms(&mut app, 20);
    assert_eq!(times(&mut app, on_half), [(60, 70)]);
    assert_eq!(times(&mut app, on_quarter), [(30, 35)]);
}

#[test]
fn an_advanced_clock_adds_to_the_delta() {
    let mut app = update_app();
    let own = spawn_clock(&mut app, Clock::new());
    let entity = spawn_on(&mut app, own);
    advance_ms(&mut app, 10);
    change_clock(&mut app, own, |clock| clock.advance_by(ms(500)));
    advance_ms(&mut app, 10);
    change_clock(&mut app, own, |clock| clock.set_now(ms(9000)));
    advance_ms(&mut app, 10);
    let expected = [(10, 10), (510, 520), (10, 9010)];
    assert_eq!(times(&mut app, entity), expected, "what is set is not");
}

#[test]
fn callbacks_on_a_stopped_clock_do_not_run() {
    let stop: [(&str, fn(&mut App, Entity)); 3] = [
        ("paused", |app, own| {
            change_clock(app, own, |clock| clock.pause());
        }),
        ("of no speed", |app, own| {
            change_clock(app, own, |clock| clock.set_speed(0.0));
        }),
        ("disabled", |app, own| {
            let disabled = bevy_ecs::entity_disabling::Disabled;
            app.world_mut().entity_mut(own).insert(disabled);
        }),
    ];
    for (how, stop) in stop {
        let mut app = update_app();
        let own = spawn_clock(&mut app, Clock::new());
        let child = spawn_clock(&mut app, Clock::of(own));
        let [on_own, on_child] = [own, child].map(|clock| spawn_on(&mut app, clock));
        let other = spawn_on(&mut app, ClockId::Virtual);
        stop(&mut app, own);
        advance_ms(&mut app, 10);
        for entity in [on_own, on_child] {
            assert_eq!(times(&mut app, entity), [], "{how}");
        }
        assert_eq!(times(&mut app, other), [(10, 10)]);

        let mut entity = app.world_mut().entity_mut(own);
        entity.remove::<bevy_ecs::entity_disabling::Disabled>();
        change_clock(&mut app, own, |clock| clock.unpause());
        change_clock(&mut app, own, |clock| clock.set_speed(1.0));
        advance_ms(&mut app, 10);
        for entity in [on_own, on_child] {
            assert_eq!(times(&mut app, entity), [(10, 10)], "no longer {how}");
        }
    }
}

#[test]
fn real_time_runs_while_game_time_is_paused() {
    let stop: [fn(&mut Time<Virtual>); 2] =
        [|time| time.pause(), |time| time.set_relative_speed(0.0)];
    for stop in stop {
        let mut app = update_app();
        let clocks = [ClockId::Virtual, ClockId::Real, ClockId::Frames];
        let [game, real, frames] = clocks.map(|clock| spawn_on(&mut app, clock));
        stop(&mut app.world_mut().resource_mut());
        advance_ms(&mut app, 10);
        assert_eq!(times(&mut app, game), []);
        assert_eq!(times(&mut app, real), [(10, 10)]);
        assert_eq!(times(&mut app, frames).len(), 1);
    }
}

#[test]
fn on_the_clock_of_frames_a_frame_is_a_second() {
    let mut app = update_app();
    let entity = spawn_on(&mut app, ClockId::Frames);
    advance_ms(&mut app, 10);
    advance_ms(&mut app, 99);
    let deltas = ticks(&mut app, entity).into_iter().map(|tick| tick.delta);
    assert!(deltas.eq([Duration::from_secs(1); 2]));
}

#[test]
fn a_clock_stopped_earlier_in_the_frame_stops_later_callbacks() {
    let mut app = update_app();
    let own = spawn_clock(&mut app, Clock::new());
    app.world_mut().spawn(say("a").on(own));
    app.world_mut()
        .spawn(doing("by a command", move |world, _| {
            world.change_clock(own, |clock| clock.pause()).unwrap();
        }));
    app.world_mut().spawn(say("b").on(own));
    app.world_mut().spawn(say("c"));
    advance_ms(&mut app, 10);
    assert_eq!(called(&mut app), ["a", "by a command", "c"]);
}

#[test]
fn a_clock_resumed_earlier_in_the_frame_calls_its_callbacks_without_a_delta() {
    let mut app = update_app();
    let own = spawn_clock(&mut app, Clock::new());
    let entity = spawn_on(&mut app, own);
    change_clock(&mut app, own, |clock| clock.pause());
    advance_ms(&mut app, 10);
    let unpause = doing("a", move |world, _| {
        world.change_clock(own, |clock| clock.unpause()).unwrap();
    });
    app.world_mut().spawn(unpause.with_priority(-1));
    advance_ms(&mut app, 10);
    assert_eq!(times(&mut app, entity), [(0, 0)], "no time has passed");
    advance_ms(&mut app, 10);
    assert_eq!(times(&mut app, entity), [(10, 10)]);
}

#[test]
fn a_callback_whose_clock_despawns_never_runs_again() {
    let mut app = update_app();
    let own = spawn_clock(&mut app, Clock::new());
    app.world_mut().spawn(doing("a", move |world, _| {
        world.try_despawn(own).ok();
    }));
    let b = app.world_mut().spawn(say("b").on(own)).id();
    advance_ms(&mut app, 10);
    assert_eq!(called(&mut app), ["a"]);
    // The new clock may reuse the place of the old one.
    let another = spawn_clock(&mut app, Clock::new());
    advance_ms(&mut app, 10);
    assert_eq!(called(&mut app), ["a"]);
    app.world_mut().entity_mut(b).insert(say("b").on(another));
    advance_ms(&mut app, 10);
    assert_eq!(called(&mut app), ["a", "b"], "unless it is inserted again");
}

#[test]
fn a_missing_clock_is_a_warning_and_removes_the_component() {
    let mut app = update_app();
    app.insert_resource(FallbackErrorHandler(record));
    let gone = spawn_clock(&mut app, Clock::new());
    app.world_mut().despawn(gone);
    let a = app.world_mut().spawn(say("a").on(gone)).id();
    app.world_mut().flush();
    let recorded = reports();
    let [(Severity::Warning, error)] = &recorded[..] else {
        panic!("{recorded:?}");
    };
    assert!(error.contains(&gone.to_string()), "{error}");
    assert!(!app.world().entity(a).contains::<UpdateComponent>());

    // A component that is corrected in time stays.
    let mut commands = app.world_mut().commands();
    commands
        .entity(a)
        .insert(say("a").on(gone))
        .insert(say("a"));
    app.world_mut().flush();
    assert_eq!(errors().len(), 1);
    advance_ms(&mut app, 10);
    assert_eq!(called(&mut app), ["a"]);
}

#[test]
fn callbacks_on_the_fixed_clock_run_in_every_fixed_step() {
    let mut app = update_app();
    with_fixed_steps(&mut app);
    let fixed = spawn_on(&mut app, ClockId::Fixed);
    let own = spawn_clock(&mut app, Clock::of(ClockId::Fixed).with_speed(0.5));
    let on_own = spawn_on(&mut app, own);
    let game = spawn_on(&mut app, ClockId::Virtual);
    advance_ms(&mut app, 35);
    assert_eq!(times(&mut app, fixed), [(10, 10), (10, 20), (10, 30)]);
    assert_eq!(times(&mut app, on_own), [(5, 5), (5, 10), (5, 15)]);
    assert_eq!(times(&mut app, game), [(35, 35)]);
    advance_ms(&mut app, 4);
    assert_eq!(times(&mut app, fixed), []);
    advance_ms(&mut app, 1);
    assert_eq!(times(&mut app, fixed), [(10, 40)]);
}

#[test]
fn order_and_pauses_hold_in_a_fixed_step() {
    let mut app = update_app();
    with_fixed_steps(&mut app);
    let on_fixed = |update: UpdateComponent| update.on(ClockId::Fixed);
    let c = app.world_mut().spawn_empty().id();
    app.world_mut().spawn(on_fixed(say("b")));
    let a = on_fixed(doing("a", move |world, _| {
        world.spawn(say("new").on(ClockId::Fixed));
        world.entity_mut(c).remove::<UpdateComponent>();
    }));
    let a = app.world_mut().spawn(a.with_priority(-1)).id();
    app.world_mut().entity_mut(c).insert(on_fixed(say("c")));
    app.world_mut().spawn((on_fixed(say("d")), Paused));
    advance_ms(&mut app, 10);
    assert_eq!(called(&mut app), ["a", "b"]);
    app.world_mut().despawn(a);
    advance_ms(&mut app, 20);
    assert_eq!(called(&mut app), ["b", "new", "b", "new"]);
}

#[test]
fn a_callback_inserted_in_a_fixed_step_starts_in_the_next_one() {
    let mut app = update_app();
    with_fixed_steps(&mut app);
    app.world_mut()
        .spawn(say("first of all").on(ClockId::Fixed));
    let act = doing("a", |world, a| {
        world.spawn(say("b").on(ClockId::Fixed));
        world.despawn(a);
    });
    app.world_mut().spawn(act.on(ClockId::Fixed));
    advance_ms(&mut app, 20);
    assert_eq!(
        called(&mut app),
        ["first of all", "a", "first of all", "b"],
        "of the same frame"
    );
}

#[test]
fn callbacks_on_the_fixed_clock_get_all_of_the_time() {
    let mut app = update_app();
    with_fixed_steps(&mut app);
    let own = spawn_clock(&mut app, Clock::of(ClockId::Fixed));
    let entity = spawn_on(&mut app, own);
    app.add_systems(Update, move |mut clocks: ClocksMut| {
        clocks.get_mut(own).unwrap().advance_by(ms(100));
    });
    for millis in [20, 4, 20, 6] {
        advance_ms(&mut app, millis);
    }
    let told = times(&mut app, entity);
    let deltas: u128 = told.iter().map(|&(delta, _)| delta).sum();
    assert_eq!(deltas, told.last().unwrap().1, "{told:?}");
}

/// Bevy's first frame takes no time, and a plugin may come late.
#[test]
fn the_first_frame_gives_its_own_delta() {
    for elapsed in [0, 5000] {
        let mut app = App::new();
        app.add_plugins(TimePlugin);
        advance_ms(&mut app, 0);
        for _ in 0..elapsed / 250 {
            advance_ms(&mut app, 250);
        }
        app.add_plugins(DuePlugin::default());
        let entities = [ClockId::Virtual, ClockId::Real].map(|clock| spawn_on(&mut app, clock));
        advance_ms(&mut app, 10);
        for entity in entities {
            assert_eq!(times(&mut app, entity), [(10, elapsed + 10)]);
        }
    }
    let mut app = App::new();
    app.add_plugins((DuePlugin::default(), TimePlugin));
    let entity = spawn_on(&mut app, ClockId::Virtual);
    advance_ms(&mut app, 10);
    assert_eq!(times(&mut app, entity), [(0, 0)]);
}

#[test]
fn a_fast_forward_adds_to_the_delta_of_the_next_frame() {
    let mut app = update_app();
    let own = spawn_clock(&mut app, Clock::new());
    let child = spawn_clock(&mut app, Clock::of(own));
    app.world_mut().spawn(Timer::every(ms(30)).on(child));
    let clocks = [own, child];
    let before = clocks.map(|clock| spawn_on(&mut app, clock));
    app.world_mut().spawn(doing("forward", move |world, me| {
        world.fast_forward(own, ms(1000)).unwrap();
        world.despawn(me);
    }));
    let after = clocks.map(|clock| spawn_on(&mut app, clock));
    change_clock(&mut app, child, |clock| clock.advance_by(ms(500)));
    advance_ms(&mut app, 10);
    advance_ms(&mut app, 10);
    let [own, child] = before.map(|entity| times(&mut app, entity));
    assert_eq!(own, [(10, 10), (1010, 1020)]);
    assert_eq!(child, [(510, 510), (1010, 1520)]);
    let [own, child] = after.map(|entity| ticks(&mut app, entity));
    let deltas =
        |ticks: &[Tick]| -> Vec<u128> { ticks.iter().map(|tick| tick.delta.as_millis()).collect() };
    assert_eq!([deltas(&own), deltas(&child)], [[10, 1010], [510, 1010]]);
}

#[test]
fn a_callback_is_on_the_clock_of_its_entity_or_owner() {
    let mut app = update_app();
    let [slow, other] =
        [0.5, 2.0].map(|speed| spawn_clock(&mut app, Clock::new().with_speed(speed)));
    let noting = || (Ticks::default(), note_time());
    let mut spawn = |bundle: fn(Entity, Entity) -> OnClock| {
        let bundle = (noting(), bundle(slow, other));
        app.world_mut().spawn(bundle).id()
    };
    let on_clock = spawn(|slow, _| OnClock::new(slow));
    let told = app
        .world_mut()
        .spawn((Ticks::default(), note_time().on(other), OnClock::new(slow)))
        .id();
    let itself = app
        .world_mut()
        .spawn((noting(), Clock::new().with_speed(0.5)))
        .id();
    let owner = app
        .world_mut()
        .spawn((
            Ticks::default(),
            OnClock::new(slow),
            related!(Owned[note_time()]),
        ))
        .id();
    let clock_as_owner = app
        .world_mut()
        .spawn((
            Ticks::default(),
            Clock::new().with_speed(0.5),
            related!(Owned[note_time()]),
        ))
        .id();
    advance_ms(&mut app, 10);
    for (who, entity, delta) in [
        ("on a clock", on_clock, 5),
        ("told otherwise", told, 20),
        ("a clock itself", itself, 5),
        ("of an owner on a clock", owner, 5),
        ("of a clock", clock_as_owner, 5),
    ] {
        assert_eq!(times(&mut app, entity), [(delta, delta)], "{who}");
    }
}

#[test]
fn a_jump_of_a_thousand_years_is_a_long_frame() {
    let mut app = update_app();
    let entity = spawn_on(&mut app, ClockId::Virtual);
    advance(&mut app, Duration::from_secs(1000 * 365 * 24 * 3600));
    advance(&mut app, Duration::MAX / 4);
    advance_ms(&mut app, 10);
    let told = ticks(&mut app, entity);
    assert_eq!(told.len(), 3);
    assert!(told[0].elapsed <= told[1].elapsed && told[1].elapsed <= told[2].elapsed);
}

#[test]
fn a_clone_of_an_owner_takes_its_callbacks_to_the_clone_of_their_clock() {
    let mut app = update_app();
    let owner = app.world_mut().spawn_empty().id();
    let its_clock = app.world_mut().spawn((OwnedBy(owner), Clock::new())).id();
    let timer = Timer::every(ms(10)).on(its_clock);
    let callback = say("x").on(its_clock);
    app.world_mut().spawn((OwnedBy(owner), callback, timer));
    let clone = app
        .world_mut()
        .entity_mut(owner)
        .clone_and_spawn_with_opt_out(|builder| _ = builder.linked_cloning(true));
    let owned = owned(app.world(), clone);
    let [clone_of_clock, callback] = owned[..] else {
        panic!("{owned:?}");
    };
    let on = Some(ClockId::Own(clone_of_clock));
    let timer = app.world().get::<Timer>(callback).unwrap();
    assert_eq!(timer.clock(), on, "clock of the timer");
    let update = app.world().get::<UpdateComponent>(callback).unwrap();
    assert_eq!(update.clock(), on, "clock of the callback");

    change_clock(&mut app, its_clock, |clock| clock.pause());
    advance_ms(&mut app, 10);
    assert_eq!(called(&mut app), ["x"], "that of the clone");
}

#[test]
fn a_scene_maps_the_clock_of_a_callback() {
    let mut app = app();
    let [old, new] = [(); 2].map(|()| spawn_clock(&mut app, Clock::new()));
    let mut map = EntityHashMap::default();
    map.insert(old, new);
    let mut timer = Timer::every(ms(10)).on(old);
    let mut update = say("x").on(old);
    SceneEntityMapper::world_scope(&mut map, app.world_mut(), |_, mapper| {
        <Timer as Component>::map_entities(&mut timer, mapper);
        UpdateComponent::map_entities(&mut update, mapper);
    });
    assert_eq!(timer.clock(), Some(new.into()), "clock of the timer");
    assert_eq!(update.clock(), Some(new.into()), "clock of the callback");
}
