//! `OwnedBy` and `Owned`: many timers per owner.

use crate::support::*;
use bevy_app::{App, Update};
use bevy_due::{
    CancelReason, Owned, OwnedBy, PausedBy, Timer, TimerCancelled, TimerFired,
    clock::{SpeedModifier, SpeedModifiers},
    timer::Pauses,
};
use bevy_ecs::{
    entity::{EntityCloner, EntityHashSet},
    prelude::*,
};

#[test]
fn a_timer_without_an_owner_belongs_to_its_entity() {
    let mut app = app();
    let entity = spawn(&mut app, "x", Timer::after(ms(10)));
    advance_ms(&mut app, 10);
    assert_eq!(firings(&mut app)[0].owner(), entity);
}

#[test]
fn a_firing_names_the_owner() {
    let mut app = app();
    let boss = app.world_mut().spawn_empty().id();
    let timer = app
        .world_mut()
        .spawn((OwnedBy(boss), Timer::after(ms(10))))
        .id();
    advance_ms(&mut app, 10);
    let fired = firings(&mut app)[0];
    assert_eq!((fired.entity(), fired.owner()), (timer, boss));
}

#[test]
fn the_owner_can_change_while_the_timer_is_armed() {
    let mut app = app();
    let (a, b) = (
        app.world_mut().spawn_empty().id(),
        app.world_mut().spawn_empty().id(),
    );
    let timer = spawn(&mut app, "x", Timer::every(ms(10)));
    let mut owners = Vec::new();
    let mut step = |app: &mut bevy_app::App| {
        advance_ms(app, 10);
        owners.push(firings(app)[0].owner());
    };
    step(&mut app);
    app.world_mut().entity_mut(timer).insert(OwnedBy(a));
    step(&mut app);
    app.world_mut().entity_mut(timer).insert(OwnedBy(b));
    step(&mut app);
    app.world_mut().entity_mut(timer).remove::<OwnedBy>();
    step(&mut app);
    assert_eq!(owners, [timer, a, b, timer]);
}

#[test]
fn the_timers_of_one_owner_fire_independently() {
    let mut app = app();
    let boss = app
        .world_mut()
        .spawn(related!(Owned[
            (Tag("a"), Timer::every(ms(10))),
            (Tag("b"), Timer::every(ms(15))),
            (Tag("c"), Timer::after(ms(12))),
        ]))
        .id();
    advance_ms(&mut app, 30);
    advance_ms(&mut app, 0);
    assert_eq!(fired(&mut app), ["a", "c", "b", "a", "a", "b"]);
    let left = app.world().get::<Owned>(boss).unwrap().len();
    assert_eq!(
        left, 2,
        "the entity of the finished `c` should be despawned"
    );
}

#[test]
fn cancelling_one_owned_timer_spares_the_others() {
    let mut app = app();
    let boss = app
        .world_mut()
        .spawn(related!(Owned[
            (Tag("a"), Timer::every(ms(10))),
            (Tag("b"), Timer::every(ms(10))),
        ]))
        .id();
    let a = owned(app.world(), boss)[0];
    app.world_mut().despawn(a);
    assert_eq!(cancelled(&mut app), [(a, CancelReason::Despawned)]);
    advance_ms(&mut app, 10);
    assert_eq!(fired(&mut app), ["b"]);
}

#[test]
fn a_finished_owned_timer_is_despawned_in_the_next_run() {
    #[derive(Resource, Default)]
    struct Read(Vec<&'static str>);

    let mut app = app();
    app.init_resource::<Read>().add_systems(
        Update,
        |mut fired: MessageReader<TimerFired>, tags: Query<&Tag>, mut read: ResMut<Read>| {
            read.0.extend(
                fired
                    .read()
                    .map(|fired| tags.get(fired.entity()).unwrap().0),
            );
        },
    );
    let owner = app.world_mut().spawn_empty().id();
    let timer = app
        .world_mut()
        .spawn((OwnedBy(owner), Tag("x"), Timer::after(ms(10))))
        .id();
    advance_ms(&mut app, 10);
    assert_eq!(
        app.world().resource::<Read>().0,
        ["x"],
        "a system that reads the message should still find the entity"
    );
    assert!(!app.world().entity(timer).contains::<Timer>());
    advance_ms(&mut app, 0);
    assert!(
        app.world().get_entity(timer).is_err(),
        "should be despawned"
    );
    assert!(app.world().get_entity(owner).is_ok());
    assert!(
        cancelled(&mut app).is_empty(),
        "finishing is not a cancellation"
    );
}

#[test]
fn a_finished_owned_timer_stays_if_it_is_rearmed() {
    let mut app = app();
    let owner = app.world_mut().spawn_empty().id();
    let timer = app
        .world_mut()
        .spawn((OwnedBy(owner), Tag("x"), Timer::after(ms(10))))
        .id();
    advance_ms(&mut app, 10);
    app.world_mut()
        .entity_mut(timer)
        .insert(Timer::after(ms(10)));
    advance_ms(&mut app, 5);
    advance_ms(&mut app, 5);
    assert_eq!(fired_at(&mut app), [("x", 10), ("x", 20)]);
}

/// Spawns an owned timer whose handler changes its entity.
fn spawn_owned(app: &mut App, change: fn(EntityCommands)) -> Entity {
    let owner = app.world_mut().spawn_empty().id();
    let mut timer = app
        .world_mut()
        .spawn((OwnedBy(owner), Timer::after(ms(10))));
    timer.observe(move |fired: On<TimerFired>, mut commands: Commands| {
        change(commands.entity(fired.entity()));
    });
    timer.id()
}

#[test]
fn a_finished_owned_timer_is_despawned_even_if_a_handler_removed_it() {
    let mut app = app();
    let timer = spawn_owned(&mut app, |mut timer| _ = timer.remove::<Timer>());
    advance_ms(&mut app, 10);
    advance_ms(&mut app, 0);
    assert!(app.world().get_entity(timer).is_err());
}

#[test]
fn a_cancellation_names_the_owner_in_any_order_of_removal() {
    #[derive(Resource, Default)]
    struct Owners(Vec<Entity>);

    let removals: [fn(EntityWorldMut); 4] = [
        |mut timer| {
            timer.remove::<(Timer, OwnedBy)>();
        },
        |mut timer| {
            timer.remove::<(OwnedBy, Timer)>();
        },
        |mut timer| {
            timer.clear();
        },
        |timer| timer.despawn(),
    ];
    for removal in removals {
        let mut app = app();
        app.init_resource::<Owners>().add_observer(
            |cancelled: On<TimerCancelled>, mut owners: ResMut<Owners>| {
                owners.0.push(cancelled.owner());
            },
        );
        let owner = app.world_mut().spawn_empty().id();
        let timer = app
            .world_mut()
            .spawn((OwnedBy(owner), Timer::after(ms(10))))
            .id();
        removal(app.world_mut().entity_mut(timer));
        assert_eq!(app.world().resource::<Owners>().0, [owner]);
    }
}

#[test]
fn cloning_an_owner_can_clone_its_timers() {
    let mut app = app();
    let boss = app
        .world_mut()
        .spawn(related!(Owned[(Tag("a"), Timer::every(ms(10)))]))
        .id();
    let clone = app
        .world_mut()
        .entity_mut(boss)
        .clone_and_spawn_with_opt_out(|builder| {
            builder.linked_cloning(true);
        });
    app.world_mut().despawn(boss);
    advance_ms(&mut app, 10);
    let firings = firings(&mut app);
    assert_eq!(
        firings.len(),
        1,
        "only the timer of the clone should be left"
    );
    assert_eq!(firings[0].owner(), clone);
}

#[test]
fn a_timer_of_a_despawned_owner_despawns_in_the_next_run_and_never_fires() {
    let mut app = app();
    let gone = app.world_mut().spawn_empty().id();
    app.world_mut().despawn(gone);
    let mut commands = app.world_mut().commands();
    let timer = commands.spawn((OwnedBy(gone), Timer::after(ms(0)))).id();
    commands.entity(timer).insert(Tag("x"));
    app.world_mut().flush();
    assert_eq!(cancelled(&mut app), [(timer, CancelReason::OwnerGone)]);
    assert!(
        app.world().entity(timer).contains::<Tag>(),
        "the entity takes the commands that follow its spawn"
    );
    advance_ms(&mut app, 10);
    assert!(app.world().get_entity(timer).is_err());
    assert!(fired(&mut app).is_empty());
}

#[test]
fn a_timer_that_leaves_its_owner_in_its_last_firing_keeps_its_entity() {
    let mut app = app();
    let timer = spawn_owned(&mut app, |mut timer| _ = timer.remove::<OwnedBy>());
    advance_ms(&mut app, 10);
    advance_ms(&mut app, 1);
    assert!(app.world().get_entity(timer).is_ok());
}

#[test]
fn a_timer_that_gets_an_owner_in_its_last_firing_keeps_its_entity() {
    let mut app = app();
    let owner = app.world_mut().spawn_empty().id();
    let timer = app.world_mut().spawn(Timer::after(ms(10))).id();
    app.world_mut().entity_mut(timer).observe(
        move |fired: On<TimerFired>, mut commands: Commands| {
            commands.entity(fired.entity()).insert(OwnedBy(owner));
        },
    );
    advance_ms(&mut app, 10);
    advance_ms(&mut app, 1);
    assert!(app.world().get_entity(timer).is_ok());
}

#[test]
fn entities_join_their_owner_at_the_place_that_bevy_is_told() {
    let mut app = app();
    let world = app.world_mut();
    let owner = world.spawn_empty().id();
    let others = world.spawn_empty().id();
    let timers = [(); 20].map(|()| world.spawn((OwnedBy(owner), Timer::after(1.0))).id());
    let stranger = world.spawn((OwnedBy(others), Timer::after(1.0))).id();
    let mut expected = timers.to_vec();

    let mut owner = world.entity_mut(owner);
    owner.insert_related::<OwnedBy>(1, &[stranger, timers[15]]);
    expected.remove(15);
    expected.splice(1..1, [stranger, timers[15]]);
    assert!(owner.get::<Owned>().unwrap().iter().eq(expected.clone()));

    owner.insert_related::<OwnedBy>(usize::MAX, &[timers[0]]);
    expected.remove(0);
    expected.push(timers[0]);
    assert!(owner.get::<Owned>().unwrap().iter().eq(expected.clone()));

    owner.despawn();
    advance_ms(&mut app, 0);
    let cancelled = cancelled(&mut app).into_iter();
    let cancelled: Vec<_> = cancelled.map(|(entity, _)| entity).collect();
    assert_eq!(cancelled, expected, "they go in this order");
}

/// Bevy leaves out the list of a target that it does not clone, too.
#[test]
fn a_copy_is_on_the_lists_of_its_targets() {
    for is_linked in [true, false] {
        let mut app = app();
        let world = app.world_mut();
        let [hero, field] = [0, 1].map(|_| world.spawn_empty().id());
        let slow = (SpeedModifier::new(hero, 0.5), OwnedBy(field));
        let stun = (Pauses(hero), OwnedBy(field));
        let effects = [world.spawn(slow).id(), world.spawn(stun).id()];
        world.flush();
        let copied = |world: &mut World, entity: Entity| {
            let copy = world.spawn_empty().id();
            let mut cloner = EntityCloner::build_opt_out(world);
            cloner.linked_cloning(is_linked).clone_entity(entity, copy);
            world.flush();
            copy
        };

        // The copies of the effects end with the field, too.
        let copy = copied(world, hero);
        let lists = |world: &World, hero: Entity| {
            let hero = world.entity(hero);
            let slows = hero.get::<SpeedModifiers>().map(|slows| slows.to_vec());
            let stuns = hero.get::<PausedBy>();
            let stuns = stuns.map(|stuns| stuns.iter().collect::<Vec<_>>());
            [slows, stuns]
        };
        match is_linked {
            true => {
                let copies = lists(world, copy).map(|list| list.map(|list| list.len()));
                assert_eq!(copies, [Some(1), Some(1)]);
                let copies = lists(world, copy).into_iter().flatten().flatten();
                let copies: EntityHashSet = copies.collect();
                let new: EntityHashSet = owned(world, field).into_iter().skip(2).collect();
                assert_eq!(new, copies);
            }
            false => {
                assert_eq!(
                    lists(world, copy),
                    [None, None],
                    "nothing slows or stuns it"
                );
                assert_eq!(owned(world, field), effects);
            }
        }

        // The effects of a copy of the field act on the hero.
        let copy = copied(world, field);
        if is_linked {
            let [slow, stun] = owned(world, copy)[..2] else {
                panic!("{:?} should be copied", owned(world, field));
            };
            let expected = [vec![effects[0], slow], vec![effects[1], stun]];
            assert_eq!(
                lists(world, hero).map(|list| list.unwrap()[..2].to_vec()),
                expected
            );
            world.despawn(copy);
        } else {
            assert!(!world.entity(copy).contains::<Owned>());
        }
        world.despawn(field);
        assert_eq!(lists(world, hero), [None, None]);
        assert_eq!(world.query::<&SpeedModifier>().iter(world).count(), 0);
        assert_eq!(world.query::<&Pauses>().iter(world).count(), 0);
    }
}
