//! `Keyed`: an owner has at most one timer per key, and can cancel it by the key.

use crate::support::*;
use bevy_app::App;
use bevy_due::{ArmedTimers, CancelReason, Timer, TimerCancelled, prelude::*, timer::Keyed};
use bevy_ecs::prelude::*;
use bevy_time::TimePlugin;

fn set_timer(app: &mut App, owner: Entity, key: &'static str, timer: Timer) -> Entity {
    crate::support::set_timer(app.world_mut(), owner, key, timer)
}

fn spawn_owner(app: &mut App) -> Entity {
    app.world_mut().spawn_empty().id()
}

#[test]
fn setting_a_key_again_replaces_its_timer() {
    let mut app = app();
    let hero = spawn_owner(&mut app);
    let first = set_timer(&mut app, hero, "potion", Timer::every(ms(10)));
    advance_ms(&mut app, 15);
    let second = set_timer(&mut app, hero, "potion", Timer::every(ms(30)));
    assert_ne!(first, second);
    assert_eq!(cancelled(&mut app), [(first, CancelReason::Replaced)]);
    assert!(
        app.world().get_entity(first).is_err(),
        "should be despawned"
    );
    advance_ms(&mut app, 30);
    assert_eq!(fired_at(&mut app), [("potion", 10), ("potion", 45)]);
}

#[test]
fn setting_a_key_leaves_other_keys_and_owners_alone() {
    let mut app = app();
    let [a, b] = [spawn_owner(&mut app), spawn_owner(&mut app)];
    set_timer(&mut app, a, "x", Timer::after(ms(10)));
    set_timer(&mut app, a, "y", Timer::after(ms(10)));
    set_timer(&mut app, b, "x", Timer::after(ms(10)));
    app.world_mut()
        .spawn((OwnedBy(a), Tag("none"), Timer::after(ms(10))));
    advance_ms(&mut app, 10);
    assert_eq!(fired(&mut app), ["x", "y", "x", "none"]);
}

#[test]
fn a_handler_can_replace_the_key_that_is_firing() {
    let mut app = app();
    let hero = spawn_owner(&mut app);
    let timer = set_timer(&mut app, hero, "x", Timer::every(ms(10)));
    app.world_mut()
        .entity_mut(timer)
        .observe(|fired: On<TimerFired>, mut commands: Commands| {
            let next = (Timer::every(ms(30)), Tag("next"));
            commands.entity(fired.owner()).set_timer("x", next);
        });
    advance_ms(&mut app, 40);
    assert_eq!(
        fired_at(&mut app),
        [("x", 10)],
        "the old timer should not fire again"
    );
    assert_eq!(cancelled(&mut app), [(timer, CancelReason::Replaced)]);
    advance_ms(&mut app, 30);
    assert_eq!(fired_at(&mut app), [("next", 70)]);
}

#[test]
fn moving_a_timer_to_an_owner_or_a_key_replaces_the_timer_there() {
    let mut app = app();
    let [a, b] = [spawn_owner(&mut app), spawn_owner(&mut app)];
    let of_a = set_timer(&mut app, a, "x", Timer::after(ms(10)));
    let of_b = set_timer(&mut app, b, "x", Timer::after(ms(10)));
    app.world_mut().entity_mut(of_a).insert(OwnedBy(b));
    app.world_mut().flush();
    assert_eq!(cancelled(&mut app), [(of_b, CancelReason::Replaced)]);

    let other = set_timer(&mut app, b, "y", Timer::after(ms(10)));
    app.world_mut().entity_mut(other).insert(Keyed::new("x"));
    app.world_mut().flush();
    assert_eq!(cancelled(&mut app), [(of_a, CancelReason::Replaced)]);
    assert_eq!(owned(app.world(), b), [other]);
}

#[test]
fn cancelling_a_key_returns_whether_a_timer_was_armed() {
    let mut app = app();
    let hero = spawn_owner(&mut app);
    let timer = set_timer(&mut app, hero, "x", Timer::after(ms(10)));
    assert!(!app.world_mut().cancel_timer(hero, "y"));
    assert!(app.world_mut().cancel_timer(hero, "x"));
    assert!(
        !app.world_mut().cancel_timer(hero, "x"),
        "should be false the second time"
    );
    assert_eq!(cancelled(&mut app), [(timer, CancelReason::Cancelled)]);

    set_timer(&mut app, hero, "x", Timer::after(ms(10)));
    advance_ms(&mut app, 10);
    assert_eq!(fired(&mut app), ["x"]);
    assert!(
        !app.world_mut().cancel_timer(hero, "x"),
        "the timer has already finished"
    );
}

#[test]
fn a_user_marker_can_exempt_timers_from_a_bulk_cancel() {
    let mut app = app();
    let hero = spawn(&mut app, "own", Timer::after(ms(10)));
    set_timer(&mut app, hero, "keyed", Timer::after(ms(10)));
    let curse = set_timer(&mut app, hero, "curse", Timer::every(ms(10)));
    app.world_mut().entity_mut(curse).insert(Survives);
    cancel_deletable(app.world_mut(), hero);
    assert!(app.world().get_entity(hero).is_ok());
    advance_ms(&mut app, 10);
    assert_eq!(fired(&mut app), ["curse"]);
    app.world_mut().entity_mut(hero).cancel_timers();
    advance_ms(&mut app, 10);
    assert!(fired(&mut app).is_empty());

    let curse = set_timer(&mut app, hero, "curse", Timer::every(ms(10)));
    app.world_mut().entity_mut(curse).insert(Survives);
    app.world_mut().despawn(hero);
    advance_ms(&mut app, 10);
    assert!(fired(&mut app).is_empty(), "should die with its owner");
}

#[test]
fn commands_can_set_and_cancel_keys() {
    let mut app = app();
    let hero = spawn(&mut app, "own", Timer::after(ms(10)));
    let mut commands = app.world_mut().commands();
    let mut entity = commands.entity(hero);
    entity.set_timer("a", (Timer::after(ms(10)), Tag("a")));
    entity.set_timer("b", (Timer::after(ms(10)), Tag("b")));
    entity.set_timer("b", (Timer::after(ms(10)), Tag("b2")));
    entity.cancel_timer("a").cancel_timer("nothing");
    app.world_mut().flush();
    advance_ms(&mut app, 10);
    assert_eq!(fired(&mut app), ["own", "b2"]);
}

/// Sets a timer, and replaces it with `replace`. An observer of the replacement despawns the owner.
fn assert_dies_with_its_owner(replace: impl FnOnce(&mut World, Entity)) {
    let mut app = app();
    app.add_observer(|cancelled: On<TimerCancelled>, mut commands: Commands| {
        if cancelled.reason() == CancelReason::Replaced {
            commands.entity(cancelled.owner()).try_despawn();
        }
    });
    let hero = spawn_owner(&mut app);
    set_timer(&mut app, hero, "life", Timer::after(ms(10)));
    replace(app.world_mut(), hero);
    app.world_mut().flush();
    assert!(app.world().get_entity(hero).is_err());
    advance_ms(&mut app, 30);
    assert_eq!(fired(&mut app), [""; 0]);
    let mut timers = app.world_mut().query::<&Timer>();
    assert_eq!(timers.iter(app.world()).count(), 0, "should be despawned");
}

#[test]
fn a_timer_dies_if_setting_it_despawns_its_owner() {
    let life = || Timer::after(ms(20));
    assert_dies_with_its_owner(|world, hero| {
        world.entity_mut(hero).set_timer("life", life());
    });
    let key = Keyed::new("life");
    assert_dies_with_its_owner(|world, hero| {
        world.spawn((key.clone(), life(), OwnedBy(hero)));
    });
    assert_dies_with_its_owner(|world, hero| {
        let timer = world.spawn((key.clone(), life())).id();
        world.entity_mut(timer).insert(OwnedBy(hero));
    });
}

#[test]
fn a_timer_that_the_game_hides_from_queries_fires_with_its_key() {
    #[derive(Component)]
    struct Hidden;

    let mut app = App::new();
    app.world_mut().register_disabling_component::<Hidden>();
    app.add_plugins((TimePlugin, DuePlugin::default()));
    let hero = spawn_owner(&mut app);
    advance_ms(&mut app, 0); // Bevy's first frame takes no time.
    let timer = |key| (OwnedBy(hero), Keyed::new(key), Timer::after(ms(10)));
    app.world_mut().spawn(timer("first"));
    app.world_mut().spawn((timer("second"), Hidden));
    app.world_mut()
        .spawn((OwnedBy(hero), Hidden, Timer::after(ms(10))));
    app.world_mut().spawn(timer("last"));
    advance_ms(&mut app, 10);
    let fired = app.world().resource::<Messages<TimerFired>>();
    let keys: Vec<_> = fired
        .iter_current_update_messages()
        .map(TimerFired::key)
        .collect();
    let keys: Vec<_> = keys.iter().map(Option::as_deref).collect();
    assert_eq!(keys, [Some("first"), Some("second"), None, Some("last")]);
}

#[test]
fn a_list_of_timers_knows_another_as_soon_as_it_is_inserted() {
    let mut app = app();
    let hero = spawn_owner(&mut app);
    set_timer(&mut app, hero, "first", Timer::after(ms(10)));
    app.add_observer(
        |inserted: On<Insert<OwnedBy>>, owners: Query<&OwnedBy>, lists: Query<&Owned>| {
            let timer = inserted.entity;
            let OwnedBy(owner) = *owners.get(timer).unwrap();
            assert!(lists.get(owner).unwrap().iter().any(|it| it == timer));
        },
    );
    set_timer(&mut app, hero, "second", Timer::after(ms(10)));
    assert_eq!(owned(app.world(), hero).len(), 2);
}

#[test]
fn a_timer_set_on_a_despawned_owner_never_fires() {
    let mut app = app();
    let hero = spawn_owner(&mut app);
    let mut commands = app.world_mut().commands();
    commands.entity(hero).despawn();
    let late = (OwnedBy(hero), Keyed::new("late"), Timer::after(ms(10)));
    let timer = commands
        .spawn(late)
        .observe(|_: On<TimerFired>| panic!("its owner was despawned"))
        .id();
    app.world_mut().flush();
    assert_eq!(cancelled(&mut app), [(timer, CancelReason::OwnerGone)]);
    advance_ms(&mut app, 10);
    assert!(app.world().get_entity(timer).is_err());
}

#[test]
fn cancelling_a_key_in_its_last_firing_despawns_the_timer_and_cancels_nothing() {
    #[derive(Resource, Default)]
    struct Seen(Vec<(bool, bool)>);

    let mut app = app();
    app.init_resource::<Seen>();
    let hero = spawn_owner(&mut app);
    let timer = set_timer(&mut app, hero, "x", Timer::every(ms(10)).times(2));
    app.world_mut().entity_mut(timer).observe(
        |fired: On<TimerFired>, timers: ArmedTimers, mut commands: Commands| {
            if !fired.is_last() {
                return;
            }
            let owner = fired.owner();
            let is_armed = timers.keyed(owner, "x").is_some();
            commands.queue(move |world: &mut World| {
                let was_armed = world.cancel_timer(owner, "x");
                world.resource_mut::<Seen>().0.push((is_armed, was_armed));
            });
        },
    );
    advance_ms(&mut app, 20);
    assert_eq!(app.world().resource::<Seen>().0, [(false, false)]);
    assert!(app.world().get_entity(timer).is_err());
    assert!(cancelled(&mut app).is_empty());
}

/// Spawns two timers of an owner, without keys.
fn spawn_two_timers(app: &mut App, owner: Entity) -> [Entity; 2] {
    [(); 2].map(|()| {
        let timer = (OwnedBy(owner), Tag("x"), Timer::after(ms(10)));
        app.world_mut().spawn(timer).id()
    })
}

#[test]
fn the_later_of_two_timers_stays_if_both_get_the_key_in_one_batch() {
    let mut app = app();
    let owner = spawn_owner(&mut app);
    let [first, second] = spawn_two_timers(&mut app, owner);
    let world = app.world_mut();
    world.insert_batch([(first, Keyed::new("key")), (second, Keyed::new("key"))]);
    world.flush();
    assert!(app.world().get_entity(first).is_err());
    advance_ms(&mut app, 10);
    assert_eq!(fired(&mut app), ["x"]);
    assert_eq!(cancelled(&mut app), [(first, CancelReason::Replaced)]);
}

#[test]
fn a_key_is_free_once_its_timer_leaves_the_owner_or_loses_the_key() {
    let mut app = app();
    let [a, b] = [spawn_owner(&mut app), spawn_owner(&mut app)];
    let moved = set_timer(&mut app, a, "key", Timer::after(ms(10)));
    app.world_mut().entity_mut(moved).insert(OwnedBy(b));
    let unnamed = set_timer(&mut app, a, "key", Timer::after(ms(10)));
    app.world_mut().entity_mut(unnamed).remove::<Keyed>();
    set_timer(&mut app, a, "key", Timer::after(ms(10)));
    assert!(!app.world_mut().cancel_timer(a, "other"));
    assert!(app.world_mut().cancel_timer(b, "key"));
    assert!(!app.world_mut().cancel_timer(b, "key"));
    advance_ms(&mut app, 10);
    assert_eq!(fired(&mut app), ["key", "key"]);
    assert_eq!(cancelled(&mut app), [(moved, CancelReason::Cancelled)]);
}

#[test]
fn a_timer_that_gives_its_key_away_and_takes_it_back_in_one_batch_stays() {
    let mut app = app();
    let owner = spawn_owner(&mut app);
    let [first, second] = spawn_two_timers(&mut app, owner);
    let world = app.world_mut();
    let key = || Keyed::new("key");
    world.insert_batch([(first, key()), (second, key()), (first, key())]);
    world.flush();
    advance_ms(&mut app, 10);
    assert_eq!(fired(&mut app), ["x"]);
    assert_eq!(cancelled(&mut app), [(second, CancelReason::Replaced)]);
}

#[test]
fn a_key_also_names_an_entity_with_a_lifetime_only() {
    let mut app = app();
    let hero = spawn_owner(&mut app);
    let lifetime = DespawnAfter::new(ms(20));
    let spawn = |app: &mut App| {
        let effect = (OwnedBy(hero), Keyed::new("effect"), lifetime.clone());
        app.world_mut().spawn(effect).id()
    };
    let first = spawn(&mut app);
    advance_ms(&mut app, 10);
    let second = spawn(&mut app);
    assert!(app.world().get_entity(first).is_err(), "replaced");
    assert!(app.world_mut().cancel_timer(hero, "effect"));
    assert!(app.world().get_entity(second).is_err());
    assert!(!app.world_mut().cancel_timer(hero, "effect"));
    assert!(cancelled(&mut app).is_empty(), "a lifetime has no events");
}
