//! Open requests move with the asking entity.

use bevy_due::{ClockId, Timer, message::MessageEntityCommandsExt, moving::UnsavableReason};

use super::*;

fn ask(app: &mut App, asker: Entity, asked: Entity, millis: u64) -> Request {
    let mut commands = app.world_mut().commands();
    let until = Timer::after(ms(millis));
    let request = commands
        .entity(asker)
        .ask(asked, Packet::new(QUESTION, []), until);
    app.world_mut().flush();
    request
}

/// An entity that has asked, and the one that thinks about it.
fn asked(forest: &mut App) -> (Entity, Entity, Request) {
    let hero = forest.world_mut().spawn(ears()).id();
    let sage = forest.world_mut().spawn(thinker()).id();
    let request = ask(forest, hero, sage, 1000);
    advance_ms(forest, 100);
    (hero, sage, request)
}

#[test]
fn a_reply_that_waits_moves_along() {
    let (mut forest, mut town) = (zone(), zone());
    let (hero, sage, _) = asked(&mut forest);
    reply_all(&mut forest, sage, 7);
    let here = carry(&mut forest, hero, &mut town);
    advance_ms(&mut town, 0);
    assert_eq!(told(&town, here), [Some(7)]);
    advance_ms(&mut town, 2000);
    assert_eq!(told(&town, here), [Some(7)], "once");
    assert_eq!(forest.world().resource::<MessageStats>().late, 0);
}

#[test]
fn a_request_times_out_at_the_new_place_and_not_at_the_old_one() {
    let (mut forest, mut town) = (zone(), zone());
    let (hero, ..) = asked(&mut forest);
    let moved = take(&mut forest, hero);
    advance_ms(&mut forest, 5000);
    let here = put(&mut town, moved, 850);
    advance_ms(&mut town, 49);
    advance_ms(&mut town, 0);
    assert_eq!(told(&town, here), []);
    advance_ms(&mut town, 1);
    advance_ms(&mut town, 0);
    assert_eq!(told(&town, here), [None]);
}

#[test]
fn a_time_out_that_waits_moves_along() {
    let (mut forest, mut town) = (zone(), zone());
    let hero = forest.world_mut().spawn(ears()).id();
    let sage = forest.world_mut().spawn(thinker()).id();
    ask(&mut forest, hero, sage, 10);
    let leave = |app: &mut App| app.world_mut().take_entity(hero);
    forest
        .world_mut()
        .fast_forward(ClockId::Virtual, ms(10))
        .expect("it runs");
    let moved = leave(&mut forest).expect("a time-out is data");
    let moved = through_text(&moved);
    let here = put(&mut town, moved, 0);
    advance_ms(&mut town, 0);
    assert_eq!(told(&town, here), [None]);
}

#[test]
fn a_request_between_entities_that_move_together_is_answered_at_the_new_place() {
    let (mut forest, mut town) = (zone(), zone());
    let sage = forest.world_mut().spawn(thinker()).id();
    let pet = forest.world_mut().spawn((ears(), OwnedBy(sage))).id();
    ask(&mut forest, pet, sage, 1000);
    let moved = take(&mut forest, sage);
    let mut map = EntityHashMap::default();
    let here = put_with(&mut town, moved, 0, &mut map);
    town.world_mut().entity_mut(here).insert(thinker());
    town.world_mut().entity_mut(map[&pet]).insert(ears());
    advance_ms(&mut town, 0);
    reply_all(&mut town, here, 7);
    advance_ms(&mut town, 0);
    advance_ms(&mut town, 2000);
    assert_eq!(told(&town, map[&pet]), [Some(7)]);
}

#[test]
fn a_reply_in_the_old_world_after_the_entity_has_left_is_late() {
    let (mut forest, mut town) = (zone(), zone());
    let (hero, sage, _) = asked(&mut forest);
    let here = carry(&mut forest, hero, &mut town);
    reply_all(&mut forest, sage, 7);
    advance_ms(&mut forest, 0);
    assert_eq!(forest.world().resource::<MessageStats>().late, 1);
    advance_ms(&mut town, 900);
    advance_ms(&mut town, 0);
    assert_eq!(told(&town, here), [None], "it is told once");
}

#[test]
fn a_request_to_the_entity_that_no_reply_could_reach_stops_the_move() {
    let mut forest = zone();
    let hero = forest.world_mut().spawn(ears()).id();
    let asker = forest.world_mut().spawn(ears()).id();
    ask(&mut forest, asker, hero, 100);
    let refused = forest.world_mut().take_entity(hero);
    let Err(MoveError::Mail(mail)) = refused else {
        panic!("{refused:?}");
    };
    assert_eq!(mail[0].reason, UnsavableReason::NoAddress(asker));
    let text = mail[0].to_string();
    for part in [&hero.to_string(), &asker.to_string(), "Packet", "StableKey"] {
        assert!(text.contains(part), "{text:?} should contain {part:?}");
    }
}

#[test]
fn a_typed_request_to_the_entity_stops_the_move() {
    let mut forest = zone();
    let hero = forest.world_mut().spawn(ears()).id();
    let asker = forest.world_mut().spawn(ears()).id();
    let mut commands = forest.world_mut().commands();
    commands
        .entity(asker)
        .ask(hero, Hit(1), Timer::after(ms(100)));
    forest.world_mut().flush();
    let refused = forest.world_mut().take_entity(hero);
    let Err(MoveError::Mail(mail)) = refused else {
        panic!("{refused:?}");
    };
    assert!(
        mail[0].to_string().contains("only a `Packet` can ask"),
        "{mail:?}"
    );
}

#[test]
fn a_withdrawn_request_stays_withdrawn() {
    let (mut forest, mut town) = (zone(), zone());
    let (hero, sage, request) = asked(&mut forest);
    reply_all(&mut forest, sage, 7);
    forest
        .world_mut()
        .despawn(request.entity().expect("made here"));
    let here = carry(&mut forest, hero, &mut town);
    advance_ms(&mut town, 0);
    assert_eq!(told(&town, here), []);
    assert_eq!(town.world().resource::<MessageStats>().late, 1);
}
