//! Mail that waits moves along, in order.

use bevy_due::message::Outbox;
use bevy_ecs::system::RunSystemOnce;

use super::*;

#[test]
fn mail_that_waits_moves_along_in_order() {
    let (mut forest, mut town) = (zone(), zone());
    let hero = forest.world_mut().spawn(ears()).id();
    send(&mut forest, hero, 1);
    forest
        .world_mut()
        .send(hero, Hit(2))
        .expect("there is room");
    send(&mut forest, hero, 3);
    let sender = forest.world_mut().message_sender();
    sender.send(hero, note(4)).expect("there is room");
    let moved = take(&mut forest, hero);
    let here = put(&mut town, moved, 0);
    send(&mut town, here, 5);
    advance_ms(&mut forest, 0);
    advance_ms(&mut town, 0);
    assert_eq!(heard(&mut town, here), [1, 102, 3, 4, 5]);
    let lost = |app: &App| app.world().resource::<MessageStats>().undeliverable;
    assert_eq!((lost(&forest), lost(&town)), (0, 0));
}

#[test]
fn mail_to_an_entity_that_is_away_is_counted() {
    let mut forest = zone();
    let hero = forest.world_mut().spawn(ears()).id();
    drop(take(&mut forest, hero));
    send(&mut forest, hero, 1);
    advance_ms(&mut forest, 0);
    assert_eq!(forest.world().resource::<MessageStats>().undeliverable, 1);
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
    let moved = take(&mut forest, hero);
    let mut map = EntityHashMap::default();
    put_with(&mut town, moved, 0, &mut map);
    for entity in map.values() {
        town.world_mut().entity_mut(*entity).insert(telling());
    }
    advance_ms(&mut town, 0);
    assert_eq!(town.world().resource::<Order>().0, [1, 2, 3]);
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
    let moved = take(&mut forest, hero);
    let here = put(&mut town, moved, 0);
    advance_ms(&mut forest, 0);
    assert_eq!(heard(&mut forest, other), [2, 4]);
    advance_ms(&mut town, 0);
    assert_eq!(heard(&mut town, here), [1, 3]);
}

#[test]
fn an_entity_can_leave_in_the_middle_of_a_delivery() {
    #[derive(Resource)]
    struct Leaving(Option<MovedEntity>);
    let (mut forest, mut town) = (zone(), zone());
    let hero = forest.world_mut().spawn(ears()).id();
    let gate = MessageComponent::new().on_packet(NOTE, move |mut me, _| {
        me.commands.queue(move |world: &mut World| {
            let moved = world.take_entity(hero).expect("it can move");
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
    let mut leaving = forest.world_mut().resource_mut::<Leaving>();
    let moved = leaving.0.take().expect("it has left");
    let here = put(&mut town, moved, 0);
    advance_ms(&mut town, 0);
    assert_eq!(heard(&mut town, here), [3, 4, 5]);
}

#[test]
fn mail_that_is_neither_packet_nor_registered_stops_the_move_and_nothing_is_lost() {
    let mut forest = zone();
    let hero = forest.world_mut().spawn(ears()).id();
    send(&mut forest, hero, 1);
    forest
        .world_mut()
        .send(hero, Look(2))
        .expect("there is room");
    send(&mut forest, hero, 3);
    let refused = forest.world_mut().take_entity(hero);
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
    let moved = take(&mut forest, hero);
    assert_eq!(has_room(&mut forest), 3);
    let here = put(&mut town, moved, 0);
    assert_eq!(has_room(&mut town), 2);
    assert_eq!(heard(&mut town, here), [1]);
    assert_eq!(has_room(&mut town), 3);
}
