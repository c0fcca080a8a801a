//! `OwnedBy`, `Paused` and `pause_updates_from`: the callbacks of an owner, and pauses.

use crate::support::{updates::*, *};
use bevy_due::{UpdateComponent, UpdateContext, prelude::*, timer::Pauses};
use bevy_ecs::{entity_disabling::Disabled, prelude::*};

#[test]
fn an_owner_has_many_callbacks_that_are_called_on_it() {
    #[derive(Component, Default)]
    struct Sum(Vec<(u32, Entity)>);

    fn add(number: u32) -> UpdateComponent {
        UpdateComponent::new(move |mut me: UpdateContext| {
            let id = me.update_entity;
            me.entity.get_mut::<Sum>().unwrap().0.push((number, id));
        })
    }

    let mut app = update_app();
    let owner = app
        .world_mut()
        .spawn((
            Sum::default(),
            add(1),
            related!(Owned[add(2), add(3).with_priority(-1), add(4)]),
        ))
        .id();
    let updates = owned(app.world(), owner);
    let [two, three, four] = updates[..] else {
        panic!("{updates:?}");
    };
    advance_ms(&mut app, 10);
    let sum = &app.world().get::<Sum>(owner).unwrap().0;
    assert_eq!(sum[0], (3, three), "by its own priority");
    assert_eq!(sum[1..], [(1, owner), (2, two), (4, four)]);
}

#[test]
fn owned_callbacks_despawn_with_their_owner() {
    let mut app = update_app();
    let owner = app.world_mut().spawn(say("own")).id();
    let owned = ["a", "b"].map(|what| app.world_mut().spawn((OwnedBy(owner), say(what))).id());
    app.world_mut().spawn(say("other"));
    advance_ms(&mut app, 10);
    assert_eq!(called(&mut app), ["own", "a", "b", "other"]);
    app.world_mut().despawn(owner);
    for owned in owned {
        assert!(app.world().get_entity(owned).is_err());
    }
    advance_ms(&mut app, 10);
    assert_eq!(called(&mut app), ["other"]);
}

#[test]
fn a_callback_can_despawn_its_owner() {
    let mut app = update_app();
    let owner = app.world_mut().spawn(say("own").with_priority(1)).id();
    let kill = doing("a", move |world, _| world.entity_mut(owner).despawn());
    app.world_mut().spawn((OwnedBy(owner), kill));
    app.world_mut().spawn((OwnedBy(owner), say("b")));
    app.world_mut().spawn(say("other"));
    advance_ms(&mut app, 10);
    assert_eq!(called(&mut app), ["a", "other"]);
}

#[test]
fn removing_one_callback_of_an_owner_spares_the_others() {
    let mut app = update_app();
    let owner = app
        .world_mut()
        .spawn(related!(Owned[say("a"), say("b")]))
        .id();
    let a = owned(app.world(), owner)[0];
    app.world_mut().despawn(a);
    advance_ms(&mut app, 10);
    assert_eq!(called(&mut app), ["b"]);
    assert_eq!(app.world().get::<Owned>(owner).unwrap().len(), 1);
}

#[test]
fn a_callback_of_a_missing_owner_despawns() {
    let mut app = update_app();
    let owner = app.world_mut().spawn_empty().id();
    app.world_mut().despawn(owner);
    let late = app.world_mut().spawn((OwnedBy(owner), say("a"))).id();
    advance_ms(&mut app, 10);
    assert!(app.world().get_entity(late).is_err());
    assert!(called(&mut app).is_empty());
}

#[test]
fn a_callback_without_an_owner_is_called_on_its_own_entity() {
    #[derive(Component)]
    struct Mark;

    let mark = UpdateComponent::new(|mut me: UpdateContext| {
        me.commands.entity(me.entity.id()).insert(Mark);
    });
    let mut app = update_app();
    let owner = app.world_mut().spawn_empty().id();
    let owned = app.world_mut().spawn((OwnedBy(owner), mark)).id();
    advance_ms(&mut app, 10);
    assert!(app.world().entity(owner).contains::<Mark>());
    assert!(!app.world().entity(owned).contains::<Mark>());
    app.world_mut().entity_mut(owned).remove::<OwnedBy>();
    advance_ms(&mut app, 10);
    assert!(app.world().entity(owned).contains::<Mark>());
}

#[test]
fn a_linked_clone_of_an_owner_clones_its_callbacks() {
    let mut app = update_app();
    let owner = app.world_mut().spawn(related!(Owned[say("a")])).id();
    app.world_mut()
        .entity_mut(owner)
        .clone_and_spawn_with_opt_out(|builder| {
            builder.linked_cloning(true);
        });
    advance_ms(&mut app, 10);
    assert_eq!(called(&mut app), ["a", "a"]);
    app.world_mut().despawn(owner);
    advance_ms(&mut app, 10);
    assert_eq!(called(&mut app), ["a"]);
}

#[test]
fn a_resumed_callback_keeps_its_place() {
    let mut app = update_app();
    let [a, _, _] = ["a", "b", "c"].map(|what| app.world_mut().spawn(say(what)).id());
    app.world_mut().entity_mut(a).insert(Paused);
    advance_ms(&mut app, 10);
    assert_eq!(called(&mut app), ["b", "c"]);
    app.world_mut().spawn(say("d"));
    app.world_mut().entity_mut(a).remove::<Paused>();
    advance_ms(&mut app, 10);
    assert_eq!(called(&mut app), ["a", "b", "c", "d"]);
}

#[test]
fn a_callback_inserted_while_paused_waits_for_the_resume() {
    let mut app = update_app();
    let a = app.world_mut().spawn((say("a"), Paused)).id();
    app.world_mut().spawn(say("b"));
    advance_ms(&mut app, 10);
    assert_eq!(called(&mut app), ["b"]);
    app.world_mut().entity_mut(a).remove::<Paused>();
    advance_ms(&mut app, 10);
    assert_eq!(called(&mut app), ["a", "b"]);
}

#[test]
fn a_pause_and_its_end_take_effect_within_the_frame() {
    let mut app = update_app();
    let [b, c] = [(); 2].map(|()| app.world_mut().spawn_empty().id());
    app.world_mut().spawn(doing("a", move |world, _| {
        world.entity_mut(b).insert(Paused);
        world.entity_mut(c).remove::<Paused>();
    }));
    app.world_mut().entity_mut(b).insert(say("b"));
    app.world_mut().entity_mut(c).insert((say("c"), Paused));
    advance_ms(&mut app, 10);
    assert_eq!(called(&mut app), ["a", "c"]);
}

#[test]
fn a_paused_owner_pauses_all_of_its_callbacks() {
    let mut app = update_app();
    let owner = app
        .world_mut()
        .spawn((say("own"), related!(Owned[say("a"), say("b")])))
        .id();
    app.world_mut().spawn(say("other"));
    let a = owned(app.world(), owner)[0];

    app.world_mut().entity_mut(a).insert(Paused);
    advance_ms(&mut app, 10);
    assert_eq!(called(&mut app), ["own", "b", "other"]);
    app.world_mut().entity_mut(owner).insert(Paused);
    advance_ms(&mut app, 10);
    assert_eq!(called(&mut app), ["other"]);
    app.world_mut().entity_mut(a).remove::<Paused>();
    advance_ms(&mut app, 10);
    assert_eq!(called(&mut app), ["other"], "its owner still is");
    app.world_mut().entity_mut(owner).remove::<Paused>();
    advance_ms(&mut app, 10);
    assert_eq!(called(&mut app), ["own", "a", "b", "other"]);
}

#[test]
fn callbacks_of_a_disabled_owner_do_not_run() {
    let mut app = update_app();
    let owner = app
        .world_mut()
        .spawn((say("own"), related!(Owned[say("a")])))
        .id();
    app.world_mut().entity_mut(owner).insert(Disabled);
    advance_ms(&mut app, 10);
    assert!(called(&mut app).is_empty());
    app.world_mut().entity_mut(owner).remove::<Disabled>();
    advance_ms(&mut app, 10);
    assert_eq!(called(&mut app), ["own", "a"]);
}

#[test]
fn callbacks_can_be_paused_from_a_priority_on() {
    let mut app = update_app();
    for (what, priority) in [("c", 1), ("a", -1), ("b", 0), ("d", i32::MAX)] {
        app.world_mut().spawn(say(what).with_priority(priority));
    }
    let paused_from = [
        (Some(0), &["a"][..]),
        (Some(1), &["a", "b"]),
        (Some(2), &["a", "b", "c"]),
        (Some(i32::MIN), &[]),
        (None, &["a", "b", "c", "d"]),
    ];
    for (from, expected) in paused_from {
        pause_updates(app.world_mut(), from);
        advance_ms(&mut app, 10);
        assert_eq!(called(&mut app), expected, "from {from:?}");
    }

    pause_updates(app.world_mut(), Some(0));
    app.world_mut().spawn(say("e"));
    advance_ms(&mut app, 10);
    assert_eq!(called(&mut app), ["a"], "also those that come meanwhile");
    pause_updates(app.world_mut(), None);
    advance_ms(&mut app, 10);
    assert_eq!(called(&mut app), ["a", "b", "e", "c", "d"]);
}

#[test]
fn a_callback_can_pause_the_ones_after_it() {
    let mut app = update_app();
    app.world_mut().spawn(say("a"));
    app.world_mut().spawn(doing("b", |world, _| {
        pause_updates(world, Some(0));
    }));
    app.world_mut().spawn(say("c"));
    app.world_mut().spawn(say("d").with_priority(1));
    advance_ms(&mut app, 10);
    assert_eq!(called(&mut app), ["a", "b"], "also those of its priority");
    advance_ms(&mut app, 10);
    assert!(called(&mut app).is_empty());

    pause_updates(app.world_mut(), Some(1));
    app.world_mut().spawn(
        doing("opens", |world, _| {
            pause_updates(world, None);
        })
        .with_priority(-1),
    );
    advance_ms(&mut app, 10);
    assert_eq!(called(&mut app), ["opens", "a", "b"], "b pauses again");
}

#[test]
fn a_callback_of_a_despawned_owner_despawns_in_the_next_run_and_is_never_called() {
    let mut app = update_app();
    let gone = app.world_mut().spawn_empty().id();
    app.world_mut().despawn(gone);
    let mut commands = app.world_mut().commands();
    let update = commands.spawn((OwnedBy(gone), say("x"))).id();
    commands.entity(update).insert(Tag("x"));
    app.world_mut().flush();
    assert!(
        app.world().entity(update).contains::<Tag>(),
        "the entity takes the commands that follow its spawn"
    );
    advance_ms(&mut app, 10);
    assert!(app.world().get_entity(update).is_err());
    assert!(called(&mut app).is_empty());
}

/// Timers have the same exemption: the end of a pause is never paused by it.
#[test]
fn a_pause_that_its_target_owns_does_not_pause_its_own_callback() {
    let mut app = update_app();
    let target = app.world_mut().spawn(say("target")).id();
    let thaw = doing("thaws", |world, pause| {
        world.despawn(pause);
    });
    app.world_mut().spawn((OwnedBy(target), say("other")));
    app.world_mut()
        .spawn((OwnedBy(target), Pauses(target), thaw));
    advance_ms(&mut app, 10);
    assert_eq!(called(&mut app), ["thaws"], "the others are paused");
    advance_ms(&mut app, 10);
    assert_eq!(called(&mut app), ["target", "other"]);
}
