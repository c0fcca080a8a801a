//! The features of `TrinityCore`'s event processor, one by one.

use core::time::Duration;

use crate::support::*;
use bevy_app::{App, Update};
use bevy_due::{CancelReason, Timer, TimerCancelled, prelude::*, timer::NoSuchTimer};
use bevy_ecs::prelude::*;
use bevy_time::{Time, Virtual};

/// The events that ran, each with the time at which it ran.
#[derive(Resource, Default)]
struct Executed(Vec<(&'static str, Duration)>);

/// Logs the execution of an event.
fn execute(world: &mut World, what: &'static str, fired: &TimerFired) {
    let now = fired.deadline() + fired.lateness();
    world.resource_mut::<Executed>().0.push((what, now));
}

/// Spawns an event owned by `owner`.
fn add_event(app: &mut App, owner: Entity, tag: &'static str, timer: Timer) -> Entity {
    app.world_mut()
        .spawn((OwnedBy(owner), Tag(tag), timer))
        .id()
}

fn spawn_owner(app: &mut App) -> Entity {
    app.world_mut().spawn_empty().id()
}

fn is_alive(app: &App, entity: Entity) -> bool {
    app.world().get_entity(entity).is_ok()
}

/// Event object or closure; execute.
#[test]
fn an_event_can_be_an_object_or_a_closure() {
    #[derive(Component)]
    struct Heal(&'static str);

    fn heal(In(fired): In<TimerFired>, world: &mut World) {
        let &Heal(what) = world
            .get(fired.entity())
            .expect("the event should still have its components");
        execute(world, what, &fired);
    }

    let mut app = app();
    app.init_resource::<Executed>();
    let owner = spawn_owner(&mut app);
    let heal = app.register_system(heal);
    let heal = TimerAction::call(move |world, fired| world.run_system_with(heal, fired));
    let closure = TimerAction::call(|world: &mut World, fired: TimerFired| {
        execute(world, "closure", &fired);
    });
    let world = app.world_mut();
    world.spawn((OwnedBy(owner), Timer::after(ms(20)), closure));
    world.spawn((OwnedBy(owner), Timer::after(ms(10)), heal, Heal("object")));
    world.commands().after(ms(15)).of(owner).queue(|commands| {
        commands.queue(|world: &mut World| {
            let now = world.resource::<Time<Virtual>>().elapsed();
            world.resource_mut::<Executed>().0.push(("commands", now));
        });
    });
    world.flush();
    advance_ms(&mut app, 15);
    advance_ms(&mut app, 30);
    let expected = [
        ("object", ms(15)),
        ("commands", ms(15)),
        ("closure", ms(45)),
    ];
    assert_eq!(app.world().resource::<Executed>().0, expected);
    assert!(
        app.world()
            .get::<Owned>(owner)
            .is_some_and(|left| left.len() == 1),
        "the last event is despawned in the next run"
    );
    advance_ms(&mut app, 0);
    assert!(app.world().get::<Owned>(owner).is_none());
}

/// Abort.
#[test]
fn an_aborted_event_is_notified_and_not_executed() {
    #[derive(Resource, Default)]
    struct Aborted(Vec<&'static str>);

    let mut app = app();
    app.init_resource::<Aborted>();
    let owner = spawn_owner(&mut app);
    let [_, b] = ["a", "b"].map(|tag| {
        let event = add_event(&mut app, owner, tag, Timer::after(ms(10)));
        app.world_mut().entity_mut(event).observe(
            move |_: On<TimerCancelled>, mut aborted: ResMut<Aborted>| aborted.0.push(tag),
        );
        event
    });
    app.world_mut().despawn(b);
    assert_eq!(
        app.world().resource::<Aborted>().0,
        ["b"],
        "should be notified immediately"
    );
    advance_ms(&mut app, 10);
    advance_ms(&mut app, 0);
    assert_eq!(fired(&mut app), ["a"]);
    assert_eq!(
        app.world().resource::<Aborted>().0,
        ["b"],
        "`a` finished, so it was not aborted"
    );
}

/// Deletable or not: an event that survives "cancel all" unless forced.
#[test]
fn a_non_deletable_event_is_cancelled_only_by_force() {
    let mut app = app();
    let owner = spawn(&mut app, "own", Timer::every(ms(10)));
    let deletable = add_event(&mut app, owner, "deletable", Timer::every(ms(10)));
    let tough = add_event(&mut app, owner, "tough", Timer::every(ms(10)));
    app.world_mut().entity_mut(tough).insert(Survives);
    cancel_deletable(app.world_mut(), owner);
    let expected = [
        (owner, CancelReason::Removed),
        (deletable, CancelReason::Despawned),
    ];
    assert_eq!(cancelled(&mut app), expected);
    advance_ms(&mut app, 10);
    assert_eq!(fired(&mut app), ["tough"]);
    app.world_mut().entity_mut(owner).cancel_timers();
    assert_eq!(cancelled(&mut app), [(tough, CancelReason::Cancelled)]);
    advance_ms(&mut app, 10);
    assert!(fired(&mut app).is_empty());

    let tough = add_event(&mut app, owner, "tough", Timer::every(ms(10)));
    app.world_mut().entity_mut(tough).insert(Survives);
    app.world_mut().despawn(owner);
    assert!(!is_alive(&app, tough), "should still die with its owner");
}

/// Deletable or not: an event that re-adds itself, like an `Execute` that returns `false`.
#[test]
fn an_event_that_re_adds_itself_is_not_deleted() {
    let mut app = app();
    let owner = spawn_owner(&mut app);
    let event = add_event(&mut app, owner, "x", Timer::after(ms(10)));
    app.world_mut()
        .entity_mut(event)
        .observe(|fired: On<TimerFired>, mut commands: Commands| {
            if fired.deadline() < ms(40) {
                let again = Timer::after(ms(15)).since(fired.deadline());
                commands.entity(fired.entity()).insert(again);
            }
        });
    for _ in 0..6 {
        advance_ms(&mut app, 10);
    }
    assert_eq!(fired_at(&mut app), [("x", 10), ("x", 25), ("x", 40)]);
    assert!(
        !is_alive(&app, event),
        "should be despawned after its last firing"
    );

    let kept = add_event(
        &mut app,
        owner,
        "kept",
        Timer::after(ms(10)).keep_when_done(),
    );
    advance_ms(&mut app, 10);
    advance_ms(&mut app, 10);
    assert!(is_alive(&app, kept));
    assert!(!app.world().entity(kept).contains::<Timer>());
    assert!(cancelled(&mut app).is_empty(), "no event was aborted");
}

/// Add at time, at offset.
#[test]
fn an_event_can_be_added_at_a_time_or_at_an_offset() {
    let mut app = app();
    let owner = spawn_owner(&mut app);
    advance_ms(&mut app, 100);
    add_event(&mut app, owner, "at", Timer::at(ms(130)));
    add_event(&mut app, owner, "offset", Timer::after(ms(20)));
    add_event(&mut app, owner, "past", Timer::at(ms(50)));
    add_event(
        &mut app,
        owner,
        "each",
        Timer::every(ms(10)).first_at(ms(115)),
    );
    advance_ms(&mut app, 30);
    let expected = [
        ("past", 50),
        ("each", 115),
        ("offset", 120),
        ("each", 125),
        ("at", 130),
    ];
    assert_eq!(fired_at(&mut app), expected);
}

/// At a random offset in a range (seeded, deterministic).
#[test]
fn an_event_can_be_added_at_a_random_offset_in_a_range() {
    let offsets = |seed, longest: Duration| {
        let mut app = app_with(DuePlugin {
            delay_seed: seed,
            ..DuePlugin::default()
        });
        advance_ms(&mut app, 100);
        let owner = spawn_owner(&mut app);
        for _ in 0..200 {
            let timer = Timer::after(ms(5)).with_jitter(longest - ms(5));
            add_event(&mut app, owner, "x", timer);
        }
        advance_ms(&mut app, 1000);
        let mut firings = firings(&mut app);
        assert!(firings.is_sorted_by_key(|fired| fired.deadline()));
        firings.sort_by_key(|fired| fired.entity());
        let offsets = firings.iter().map(|fired| fired.deadline() - ms(105));
        offsets.collect::<Vec<_>>()
    };
    let long = offsets(7, ms(15));
    assert_eq!(long.len(), 200);
    assert!(long.iter().all(|&offset| offset <= ms(10)));
    assert_eq!(
        long,
        offsets(7, ms(15)),
        "the same seed should give the same offsets"
    );
    assert_ne!(
        long,
        offsets(8, ms(15)),
        "another seed should give other offsets"
    );

    let nanos = |n| Duration::from_nanos(n);
    let short = offsets(7, ms(5) + nanos(3));
    for n in 0..=3 {
        let count = short.iter().filter(|&&offset| offset == nanos(n)).count();
        assert!(
            (30..=70).contains(&count),
            "{count} of 200 events are at offset {n}, but each of the four is equally likely"
        );
    }
    assert_eq!(offsets(7, ms(5)), [Duration::ZERO; 200]);
}

/// Change the time of a waiting event: re-insert; `reschedule`.
#[test]
fn the_time_of_a_waiting_event_can_be_changed() {
    let mut app = app();
    let owner = spawn_owner(&mut app);
    let [sooner, later, past, again, off] = ["sooner", "later", "past", "again", "off"]
        .map(|tag| add_event(&mut app, owner, tag, Timer::after(ms(50))));
    advance_ms(&mut app, 10);
    let world = app.world_mut();
    assert_eq!(
        world.change_timer(sooner, |timer| timer.reschedule(ms(20))),
        Ok(())
    );
    assert_eq!(
        world.change_timer(later, |timer| timer.reschedule(ms(60))),
        Ok(())
    );
    assert_eq!(
        world.change_timer(past, |timer| timer.reschedule(ms(5))),
        Ok(())
    );
    assert_eq!(
        world.change_timer(off, |timer| timer.delay_by(ms(5))),
        Ok(())
    );
    world.entity_mut(again).insert(Timer::after(ms(35)));
    assert!(
        fired(&mut app).is_empty(),
        "should not fire inside the call"
    );
    assert_eq!(cancelled(&mut app), [(again, CancelReason::Replaced)]);
    advance_ms(&mut app, 50);
    let expected = [
        ("past", 5),
        ("sooner", 20),
        ("again", 45),
        ("off", 55),
        ("later", 60),
    ];
    assert_eq!(fired_at(&mut app), expected);
    let too_late = app
        .world_mut()
        .change_timer(later, |timer| timer.reschedule(ms(90)));
    assert_eq!(
        too_late,
        Err(NoSuchTimer {
            entity: later,
            key: None,
            clock: None
        })
    );
    app.world_mut().despawn(owner);
    assert!(app.world_mut().get_entity_mut(later).is_err());
    let mut commands = app.world_mut().commands();
    commands.entity(later).reschedule(ms(90));
    app.world_mut().flush();
}

/// Change the time of a waiting event, from inside an event that is due earlier.
#[test]
fn an_event_can_change_the_time_of_another() {
    let mut app = app();
    let owner = spawn_owner(&mut app);
    let waiting = add_event(&mut app, owner, "waiting", Timer::after(ms(20)));
    let changing = add_event(&mut app, owner, "changing", Timer::after(ms(10)));
    app.world_mut().entity_mut(changing).observe(
        move |_: On<TimerFired>, mut commands: Commands| {
            commands.entity(waiting).reschedule(ms(50));
        },
    );
    advance_ms(&mut app, 40);
    assert_eq!(fired_at(&mut app), [("changing", 10)]);
    advance_ms(&mut app, 10);
    assert_eq!(fired_at(&mut app), [("waiting", 50)]);
}

/// Abort one at the next tick.
#[test]
fn one_event_can_be_aborted_at_the_next_tick() {
    #[derive(Resource)]
    struct Unwanted(Option<Entity>);

    let mut app = app();
    app.add_systems(
        Update,
        |mut unwanted: ResMut<Unwanted>, mut commands: Commands| {
            if let Some(event) = unwanted.0.take() {
                commands.entity(event).despawn();
            }
        },
    );
    let owner = spawn_owner(&mut app);
    let a = add_event(&mut app, owner, "a", Timer::after(ms(20)));
    add_event(&mut app, owner, "b", Timer::after(ms(20)));
    app.insert_resource(Unwanted(Some(a)));
    advance_ms(&mut app, 10);
    assert_eq!(cancelled(&mut app), [(a, CancelReason::Despawned)]);
    advance_ms(&mut app, 10);
    assert_eq!(fired(&mut app), ["b"]);
}

/// Kill all, forced or not.
#[test]
fn an_event_can_kill_all_events_of_its_owner_forced_or_not() {
    for (is_forced, expected) in [(false, &["first", "tough"][..]), (true, &["first"])] {
        let mut app = app();
        let owner = spawn(&mut app, "own", Timer::after(ms(15)));
        let bystander = spawn_owner(&mut app);
        let first = add_event(&mut app, owner, "first", Timer::every(ms(10)));
        add_event(&mut app, owner, "tender", Timer::after(ms(10)));
        let tough = add_event(&mut app, owner, "tough", Timer::after(ms(10)));
        app.world_mut().entity_mut(tough).insert(Survives);
        app.world_mut().entity_mut(first).observe(
            move |fired: On<TimerFired>, mut commands: Commands| {
                let owner = fired.owner();
                if is_forced {
                    commands.entity(owner).cancel_timers();
                } else {
                    commands.queue(move |world: &mut World| cancel_deletable(world, owner));
                }
            },
        );
        add_event(&mut app, bystander, "bystander", Timer::after(ms(20)));
        advance_ms(&mut app, 20);
        let mut fired = fired(&mut app);
        assert_eq!(
            fired.pop(),
            Some("bystander"),
            "events of another owner should be unaffected"
        );
        assert_eq!(fired, expected, "forced: {is_forced}");
        assert!(is_alive(&app, owner), "only its events should be killed");
    }
}

/// A processor per object: the event's end ends the spell it carries.
#[test]
fn each_object_has_its_own_events_and_a_spell_ends_with_its_event() {
    #[derive(Component)]
    struct Spell;

    let mut app = app();
    let mage = app.world_mut().spawn(Clock::new()).id();
    let priest = spawn_owner(&mut app);
    let [bolt, storm] = [("bolt", 10), ("storm", 90)]
        .map(|(tag, after)| add_event(&mut app, mage, tag, Timer::after(ms(after))));
    let [prayer, curse] = [("prayer", 20), ("curse", 30)]
        .map(|(tag, after)| add_event(&mut app, priest, tag, Timer::after(ms(after))));
    for event in [bolt, storm, prayer, curse] {
        app.world_mut().entity_mut(event).insert(Spell);
    }
    let spells = |app: &mut App| {
        let mut spells = app.world_mut().query_filtered::<&Tag, With<Spell>>();
        let mut spells: Vec<_> = spells.iter(app.world()).map(|tag| tag.0).collect();
        spells.sort_unstable();
        spells
    };

    advance_ms(&mut app, 10);
    assert_eq!(fired(&mut app), ["bolt"]);
    assert_eq!(
        spells(&mut app).len(),
        4,
        "systems that read the firing should still find the spell"
    );
    advance_ms(&mut app, 0);
    assert_eq!(
        spells(&mut app),
        ["curse", "prayer", "storm"],
        "`bolt` was executed"
    );

    app.world_mut().despawn(curse);
    assert_eq!(spells(&mut app), ["prayer", "storm"], "`curse` was aborted");
    assert_eq!(cancelled(&mut app), [(curse, CancelReason::Despawned)]);

    change_clock(&mut app, mage, |clock| clock.pause());
    advance_ms(&mut app, 100);
    assert_eq!(fired(&mut app), ["prayer"], "the mage's clock is paused");
    change_clock(&mut app, mage, |clock| clock.unpause());
    advance_ms(&mut app, 79);
    assert!(fired(&mut app).is_empty());
    assert_eq!(spells(&mut app), ["storm"]);

    let vow = add_event(&mut app, priest, "vow", Timer::after(ms(100)));
    app.world_mut().despawn(priest);
    assert_eq!(cancelled(&mut app), [(vow, CancelReason::OwnerGone)]);
    app.world_mut().despawn(mage);
    assert!(
        spells(&mut app).is_empty(),
        "`storm` should die with the mage"
    );
    assert_eq!(cancelled(&mut app).len(), 1);
    advance_ms(&mut app, 100);
    assert!(fired(&mut app).is_empty());
}
