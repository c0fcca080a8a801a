//! Mail is held during a move, and delivered in order.

use core::panic::AssertUnwindSafe;
use std::panic::catch_unwind;

use bevy_due::message::Outbox;
use bevy_ecs::system::RunSystemOnce;

use super::*;

#[test]
fn mail_before_during_and_after_a_move_arrives_in_order() {
    let (mut forest, mut town) = (zone(), zone());
    let hero = forest.world_mut().spawn(ears()).id();
    send(&mut forest, hero, 1);
    forest
        .world_mut()
        .send(hero, Hit(2))
        .expect("there is room");
    let moved = export(&mut forest, hero);
    send(&mut forest, hero, 3);
    let here = import(&mut town, &moved, 0);
    send(&mut town, here, 6);
    for app in [&mut forest, &mut town] {
        advance_ms(app, 0);
    }
    forest
        .world_mut()
        .send(hero, Hit(4))
        .expect("there is room");
    send(&mut town, here, 7);
    let sender = forest.world_mut().message_sender();
    sender.send(hero, note(5)).expect("there is room");
    let late = forget(&mut forest, hero);
    assert_eq!(late.len(), 3);
    commit(&mut town, here, &late);
    send(&mut town, here, 8);
    advance_ms(&mut town, 0);
    assert_eq!(heard(&mut town, here), [1, 102, 3, 104, 5, 6, 7, 8]);
    let lost = |app: &App| app.world().resource::<MessageStats>().undeliverable;
    assert_eq!((lost(&forest), lost(&town)), (0, 0));
}

#[test]
fn mail_to_everything_that_moves_along_keeps_its_order() {
    #[derive(Resource, Default)]
    struct Order(Vec<u8>);
    fn telling() -> MessageComponent {
        MessageComponent::new().on_packet(NOTE, |mut me, note| {
            let nth = note.payload()[0];
            me.commands
                .queue(move |world: &mut World| world.resource_mut::<Order>().0.push(nth));
        })
    }
    let (mut forest, mut town) = (zone(), zone());
    town.init_resource::<Order>();
    let hero = forest.world_mut().spawn(telling()).id();
    let pet = forest.world_mut().spawn((OwnedBy(hero), telling())).id();
    for (nth, to) in [(1, pet), (2, hero), (3, pet)] {
        send(&mut forest, to, nth);
    }
    let moved = export(&mut forest, hero);
    let mut map = EntityHashMap::default();
    let here = town.world_mut().import_entity(&moved, ms(0), &mut map);
    let here = here.expect("the data is valid");
    for entity in map.values() {
        town.world_mut().entity_mut(*entity).insert(telling());
    }
    for (nth, to) in [(4, hero), (5, pet), (6, hero)] {
        send(&mut forest, to, nth);
    }
    let late = forget(&mut forest, hero);
    commit(&mut town, here, &late);
    advance_ms(&mut town, 0);
    assert_eq!(town.world().resource::<Order>().0, [1, 2, 3, 4, 5, 6]);
}

#[test]
fn mail_of_an_outbox_is_split() {
    let (mut forest, mut town) = (zone(), zone());
    let [hero, other] = [(); 2].map(|()| forest.world_mut().spawn(ears()).id());
    advance_ms(&mut forest, 0);
    let send_four = move |mut outbox: Outbox| {
        for (nth, to) in [(1, hero), (2, other), (3, hero), (4, other)] {
            outbox.send(to, note(nth)).expect("there is room");
        }
    };
    forest
        .world_mut()
        .run_system_once(send_four)
        .expect("a system");
    let moved = export(&mut forest, hero);
    let here = import(&mut town, &moved, 0);
    forest
        .world_mut()
        .run_system_once(send_four)
        .expect("a system");
    advance_ms(&mut forest, 0);
    assert_eq!(heard(&mut forest, other), [2, 4, 2, 4]);
    let late = forget(&mut forest, hero);
    commit(&mut town, here, &late);
    advance_ms(&mut town, 0);
    assert_eq!(heard(&mut town, here), [1, 3, 1, 3]);
}

#[test]
fn an_entity_can_leave_in_the_middle_of_a_delivery() {
    #[derive(Resource)]
    struct Leaving(Option<MovedEntity>);
    let (mut forest, mut town) = (zone(), zone());
    let hero = forest.world_mut().spawn(ears()).id();
    let gate = MessageComponent::new().on_packet(NOTE, move |mut me, _| {
        me.commands.queue(move |world: &mut World| {
            let moved = world.export_entity(hero).expect("it can move");
            world.insert_resource(Leaving(Some(moved)));
        });
    });
    let gate = forest.world_mut().spawn(gate).id();
    let send_five = move |mut outbox: Outbox| {
        for (nth, to) in [(1, hero), (2, gate), (3, hero), (4, hero)] {
            outbox.send(to, note(nth)).expect("there is room");
        }
    };
    forest
        .world_mut()
        .run_system_once(send_five)
        .expect("a system");
    send(&mut forest, hero, 5);
    advance_ms(&mut forest, 0);
    assert_eq!(heard(&mut forest, hero), [1]);
    let mut leaving = forest.world_mut().resource_mut::<Leaving>();
    let moved = leaving.0.take().expect("it has left");
    let here = import(&mut town, &moved, 0);
    let late = forget(&mut forest, hero);
    assert!(late.is_empty(), "the rest of the delivery was exported");
    commit(&mut town, here, &late);
    advance_ms(&mut town, 0);
    assert_eq!(heard(&mut town, here), [3, 4, 5]);
}

#[test]
fn an_entity_can_arrive_in_the_middle_of_a_delivery() {
    let (mut forest, mut town) = (zone(), zone());
    let hero = forest.world_mut().spawn(ears()).id();
    send(&mut forest, hero, 1);
    let moved = export(&mut forest, hero);
    let here = import(&mut town, &moved, 0);
    send(&mut forest, hero, 2);
    let late = forget(&mut forest, hero);
    let gate = MessageComponent::new().on_packet(NOTE, move |mut me, _| {
        let late = late.clone();
        me.commands.queue(move |world: &mut World| {
            world.commit_entity(here, &late).expect("it is in transit");
        });
    });
    let gate = town.world_mut().spawn(gate).id();
    advance_ms(&mut town, 0);
    for (nth, to) in [(3, here), (0, gate), (4, here), (5, here)] {
        send(&mut town, to, nth);
    }
    advance_ms(&mut town, 0);
    assert_eq!(heard(&mut town, here), [1, 2, 3, 4, 5]);
}

#[test]
fn a_message_to_all_comes_between_the_mail_before_and_after_it() {
    #[derive(Resource)]
    struct Arriving(Entity, HeldMail);
    let (mut forest, mut town) = (zone(), zone());
    let hero = forest.world_mut().spawn(ears()).id();
    send(&mut forest, hero, 1);
    let moved = export(&mut forest, hero);
    send(&mut forest, hero, 2);
    // It follows before the hero.
    let gate = MessageComponent::new().on_packet(NOTE, |mut me, _| {
        me.commands.queue(|world: &mut World| {
            let Arriving(here, late) = world.remove_resource().expect("the hero");
            world.commit_entity(here, &late).expect("it is in transit");
        });
    });
    town.world_mut().spawn(gate);
    let here = import(&mut town, &moved, 0);
    let late = forget(&mut forest, hero);
    town.insert_resource(Arriving(here, late));
    send(&mut town, here, 3);
    advance_ms(&mut town, 0);
    send(&mut town, Delivery::All, 4);
    send(&mut town, here, 5);
    advance_ms(&mut town, 0);
    assert_eq!(heard(&mut town, here), [1, 2, 3, 4, 5]);
}

#[test]
fn mail_that_is_neither_packet_nor_registered_stops_the_export_and_nothing_is_lost() {
    let mut forest = zone();
    let hero = forest.world_mut().spawn(ears()).id();
    send(&mut forest, hero, 1);
    forest
        .world_mut()
        .send(hero, Look(2))
        .expect("there is room");
    send(&mut forest, hero, 3);
    let refused = forest.world_mut().export_entity(hero);
    let Err(MoveError::Mail(mail)) = refused else {
        panic!("{refused:?}");
    };
    assert_eq!(mail.len(), 1);
    assert_eq!(mail[0].to, Some(hero.into()));
    let text = mail[0].to_string();
    for part in [&hero.to_string(), "Look", "add_message_codec", "Packet"] {
        assert!(text.contains(part), "{text:?} should contain {part:?}");
    }
    advance_ms(&mut forest, 0);
    assert_eq!(heard(&mut forest, hero), [1, 202, 3]);
}

#[test]
fn held_mail_that_is_not_data_stops_the_forgetting_until_it_has_a_codec() {
    let (mut forest, mut town) = (zone(), zone());
    let hero = forest.world_mut().spawn(ears()).id();
    let moved = export(&mut forest, hero);
    let here = import(&mut town, &moved, 0);
    forest
        .world_mut()
        .send(hero, Look(1))
        .expect("there is room");
    send(&mut forest, hero, 2);
    let refused = forest.world_mut().forget_entity(hero);
    assert!(matches!(refused, Err(MoveError::Mail(_))), "{refused:?}");
    assert!(forest.world().get_entity(hero).is_ok());
    for app in [&mut forest, &mut town] {
        let decode = |data: &[u8]| Ok(Look(data.first().copied().ok_or("no byte")?));
        app.world_mut()
            .add_message_codec("look", |look: &Look| Ok([look.0].into()), decode);
    }
    let late = forget(&mut forest, hero);
    commit(&mut town, here, &late);
    advance_ms(&mut town, 0);
    assert_eq!(heard(&mut town, here), [201, 2]);
}

#[test]
fn mail_that_waits_takes_room_and_gives_it_back() {
    let plugin = DuePlugin {
        mailbox_capacity: 3,
        ..DuePlugin::default()
    };
    let (mut forest, mut town) = (app_with(plugin), app_with(plugin));
    let has_room = |app: &mut App| {
        let nobody = app.world_mut().spawn_empty().id();
        let sent = (0..3).take_while(|nth| app.world_mut().send(nobody, note(*nth)).is_ok());
        let sent = sent.count();
        advance_ms(app, 0);
        sent
    };
    let hero = forest.world_mut().spawn(ears()).id();
    send(&mut forest, hero, 1);
    let moved = export(&mut forest, hero);
    assert_eq!(has_room(&mut forest), 2);
    let here = import(&mut town, &moved, 0);
    assert_eq!(has_room(&mut town), 2);
    send(&mut forest, hero, 2);
    assert_eq!(has_room(&mut forest), 1);
    let late = forget(&mut forest, hero);
    assert_eq!(has_room(&mut forest), 3);
    commit(&mut town, here, &late);
    advance_ms(&mut town, 0);
    assert_eq!(heard(&mut town, here), [1, 2]);
    assert_eq!(has_room(&mut town), 3);
}

#[test]
fn a_closed_inbox_returns_held_mail() {
    let mut forest = zone();
    let hero = forest.world_mut().spawn(ears()).id();
    send(&mut forest, hero, 1);
    export(&mut forest, hero);
    send(&mut forest, hero, 2);
    let left = forest.world_mut().close_inbox();
    let left: Vec<_> = left.iter().filter_map(|mail| mail.packet()).collect();
    assert_eq!(left, [&note(2)]);
}

#[test]
fn a_closed_inbox_leaves_the_exported_mail_to_the_other_world() {
    let (mut forest, mut town) = (zone(), zone());
    let hero = forest.world_mut().spawn(ears()).id();
    send(&mut forest, hero, 1);
    let moved = export(&mut forest, hero);
    send(&mut forest, hero, 2);
    let left = forest.world_mut().close_inbox();
    let packets: Vec<_> = left.iter().filter_map(|mail| mail.packet()).collect();
    assert_eq!(packets, [&note(2)], "the data contains the first");
    for mail in left {
        forest.world_mut().resend(mail);
    }
    let here = import(&mut town, &moved, 0);
    let late = forget(&mut forest, hero);
    commit(&mut town, here, &late);
    advance_ms(&mut town, 0);
    assert_eq!(heard(&mut town, here), [1, 2]);
}

#[test]
fn an_entity_can_still_be_committed_after_the_inbox_was_closed() {
    let (mut forest, mut town) = (zone(), zone());
    let hero = forest.world_mut().spawn(ears()).id();
    send(&mut forest, hero, 1);
    let moved = export(&mut forest, hero);
    let here = import(&mut town, &moved, 0);
    for (app, hero) in [(&mut forest, hero), (&mut town, here)] {
        assert_eq!(app.world_mut().close_inbox().len(), 0);
        commit(app, hero, &HeldMail::default());
        advance_ms(app, 0);
        assert_eq!(heard(app, hero), [1]);
    }
}

/// The data of an export that an observer has made.
#[derive(Resource)]
struct Again(MovedEntity);

#[test]
fn an_observer_of_the_commit_may_export_the_entity_again() {
    let (mut forest, mut town, mut port) = (zone(), zone(), zone());
    let hero = forest.world_mut().spawn(ears()).id();
    send(&mut forest, hero, 1);
    let moved = export(&mut forest, hero);
    let here = import(&mut town, &moved, 0);
    send(&mut town, here, 3);
    advance_ms(&mut town, 0);
    send(&mut forest, hero, 2);
    let late = forget(&mut forest, hero);
    town.world_mut()
        .add_observer(|ended: On<Remove<InTransit>>, mut commands: Commands| {
            let entity = ended.entity;
            commands.queue(move |world: &mut World| {
                // The mark also ends when the entity is forgotten.
                if let Ok(moved) = world.export_entity(entity) {
                    world.insert_resource(Again(moved));
                }
            });
        });
    commit(&mut town, here, &late);
    advance_ms(&mut town, 0);
    assert!(town.world().get::<InTransit>(here).is_some());
    let moved = town.world_mut().remove_resource::<Again>();
    let moved = moved.expect("it was exported again").0;
    let there = import(&mut port, &moved, 0);
    let late = forget(&mut town, here);
    commit(&mut port, there, &late);
    advance_ms(&mut port, 0);
    assert_eq!(heard(&mut port, there), [1, 2, 3]);
}

/// Moves a hero with a pet. While the move ends, an observer of a mark panics once. Returns what the hero has
/// heard.
fn panicking_commit(panics_at_hero: bool) -> Vec<u8> {
    #[derive(Component)]
    struct Fuse;

    let (mut forest, mut town) = (zone(), zone());
    let hero = forest.world_mut().spawn(ears()).id();
    let pet = forest.world_mut().spawn(OwnedBy(hero)).id();
    send(&mut forest, hero, 1);
    let moved = export(&mut forest, hero);
    let mut map = EntityHashMap::default();
    let here = town.world_mut().import_entity(&moved, ms(0), &mut map);
    let here = here.expect("the data is valid");
    town.world_mut().entity_mut(here).insert(ears());
    send(&mut town, here, 3);
    advance_ms(&mut town, 0);
    send(&mut forest, hero, 2);
    let late = forget(&mut forest, hero);
    let fuse = if panics_at_hero { here } else { map[&pet] };
    town.world_mut().entity_mut(fuse).insert(Fuse);
    let explode = |ended: On<Remove<InTransit>>, fuses: Query<&Fuse>| {
        assert!(!fuses.contains(ended.entity), "boom");
    };
    let observer = town.world_mut().add_observer(explode).id();
    let world = town.world_mut();
    let commit = AssertUnwindSafe(|| world.commit_entity(here, &late));
    catch_unwind(commit).expect_err("the observer panics");
    town.world_mut().despawn(observer);
    if panics_at_hero {
        advance_ms(&mut town, 0);
        assert_eq!(heard(&mut town, here), [], "it is still in transit");
        town.world_mut()
            .commit_entity(here, &late)
            .expect("it is in transit");
    }
    advance_ms(&mut town, 0);
    for entity in [here, map[&pet]] {
        assert!(town.world().get::<InTransit>(entity).is_none());
    }
    let stats = town.world().resource::<MessageStats>();
    assert_eq!(stats.undeliverable, 0);
    heard(&mut town, here)
}

#[test]
fn a_panic_at_the_end_of_a_move_loses_no_mail() {
    for panics_at_hero in [true, false] {
        assert_eq!(panicking_commit(panics_at_hero), [1, 2, 3]);
    }
}

#[test]
fn mail_of_a_move_whose_mark_was_removed_moves_along_with_the_next_one() {
    let (mut forest, mut town) = (zone(), zone());
    let hero = forest.world_mut().spawn(ears()).id();
    forest.world_mut().spawn((OwnedBy(hero), ears()));
    send(&mut forest, hero, 1);
    export(&mut forest, hero);
    send(&mut forest, hero, 2);
    advance_ms(&mut forest, 0);
    send(&mut forest, hero, 3);
    forest.world_mut().entity_mut(hero).remove::<InTransit>();
    let here = carry(&mut forest, hero, &mut town);
    advance_ms(&mut town, 0);
    assert_eq!(heard(&mut town, here), [1, 2, 3]);
}
