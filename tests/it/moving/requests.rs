//! Open requests move with the asking entity.

use bevy_due::{
    ClockId, Timer, message::MessageEntityCommandsExt, moving::UnsavableReason, save::SaveWorldExt,
};

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
fn a_reply_that_is_held_completes_the_request_at_the_new_place() {
    let (mut forest, mut town) = (zone(), zone());
    let (hero, sage, request) = asked(&mut forest);
    let moved = export(&mut forest, hero);
    reply_all(&mut forest, sage, 7);
    advance_ms(&mut forest, 0);
    let mut map = EntityHashMap::default();
    let here = town.world_mut().import_entity(&moved, ms(0), &mut map);
    let here = here.expect("the data is valid");
    town.world_mut().entity_mut(here).insert(ears());
    let late = forget(&mut forest, hero);
    commit(&mut town, here, &late);
    advance_ms(&mut town, 0);
    assert_eq!(told(&town, here), [Some(7)]);
    let told = town.world().get::<Told>(here).expect("it asks").0[0].0;
    let old = request.entity().expect("it was made there");
    assert_eq!(told.entity(), Some(map[&old]));
    advance_ms(&mut town, 2000);
    assert_eq!(self::told(&town, here), [Some(7)], "once");
}

#[test]
fn a_reply_that_waits_at_the_export_moves_along() {
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
    let moved = export(&mut forest, hero);
    advance_ms(&mut forest, 5000);
    assert_eq!(told(&forest, hero), []);
    let here = import(&mut town, &moved, 850);
    let late = forget(&mut forest, hero);
    commit(&mut town, here, &late);
    advance_ms(&mut town, 49);
    advance_ms(&mut town, 0);
    assert_eq!(told(&town, here), []);
    advance_ms(&mut town, 1);
    advance_ms(&mut town, 0);
    assert_eq!(told(&town, here), [None]);
}

#[test]
fn a_time_out_reached_on_the_way_comes_after_a_held_reply() {
    let (mut forest, mut town) = (zone(), zone());
    let (hero, sage, _) = asked(&mut forest);
    let moved = export(&mut forest, hero);
    reply_all(&mut forest, sage, 7);
    let here = import(&mut town, &moved, 5000);
    let late = forget(&mut forest, hero);
    commit(&mut town, here, &late);
    for _ in 0..3 {
        advance_ms(&mut town, 0);
    }
    assert_eq!(told(&town, here), [Some(7)]);
}

#[test]
fn a_time_out_that_waits_at_the_export_moves_along() {
    let (mut forest, mut town) = (zone(), zone());
    let hero = forest.world_mut().spawn(ears()).id();
    let sage = forest.world_mut().spawn(thinker()).id();
    ask(&mut forest, hero, sage, 10);
    let leave = |app: &mut App| app.world_mut().export_entity(hero);
    forest
        .world_mut()
        .fast_forward(ClockId::Virtual, ms(10))
        .expect("it runs");
    let moved = leave(&mut forest).expect("a time-out is data");
    let moved = through_text(&moved);
    let here = import(&mut town, &moved, 0);
    let late = forget(&mut forest, hero);
    commit(&mut town, here, &late);
    advance_ms(&mut town, 0);
    assert_eq!(told(&town, here), [None]);
}

#[test]
fn a_request_between_entities_that_move_together_is_answered_at_the_new_place() {
    let (mut forest, mut town) = (zone(), zone());
    let sage = forest.world_mut().spawn(thinker()).id();
    let pet = forest.world_mut().spawn((ears(), OwnedBy(sage))).id();
    ask(&mut forest, pet, sage, 1000);
    let moved = export(&mut forest, sage);
    let mut map = EntityHashMap::default();
    let here = town.world_mut().import_entity(&moved, ms(0), &mut map);
    let here = here.expect("the data is valid");
    town.world_mut().entity_mut(here).insert(thinker());
    town.world_mut().entity_mut(map[&pet]).insert(ears());
    let late = forget(&mut forest, sage);
    commit(&mut town, here, &late);
    advance_ms(&mut town, 0);
    reply_all(&mut town, here, 7);
    advance_ms(&mut town, 0);
    advance_ms(&mut town, 2000);
    assert_eq!(told(&town, map[&pet]), [Some(7)]);
}

#[test]
fn a_reply_in_the_old_world_after_the_entity_was_forgotten_is_late() {
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
fn a_request_to_the_entity_that_no_reply_could_reach_stops_the_export() {
    let mut forest = zone();
    let hero = forest.world_mut().spawn(ears()).id();
    let asker = forest.world_mut().spawn(ears()).id();
    ask(&mut forest, asker, hero, 100);
    let refused = forest.world_mut().export_entity(hero);
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
fn a_typed_request_to_the_entity_stops_the_export() {
    let mut forest = zone();
    let hero = forest.world_mut().spawn(ears()).id();
    let asker = forest.world_mut().spawn(ears()).id();
    let mut commands = forest.world_mut().commands();
    commands
        .entity(asker)
        .ask(hero, Hit(1), Timer::after(ms(100)));
    forest.world_mut().flush();
    let refused = forest.world_mut().export_entity(hero);
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

#[test]
fn a_request_that_has_timed_out_completes_once_after_a_move_and_in_a_world_that_is_saved_during_it()
{
    let (mut forest, mut town, mut save_game) = (zone(), zone(), zone());
    let (hero, ..) = asked(&mut forest);
    let forwarded = forest.world_mut().fast_forward(ClockId::Virtual, ms(900));
    forwarded.expect("the clock exists");
    let moved = export(&mut forest, hero);
    let saved = forest.world_mut().save_timers().expect("no closures");
    let here = import(&mut town, &moved, 0);
    let late = forget(&mut forest, hero);
    commit(&mut town, here, &late);
    let loaded = save_game.world_mut().spawn(ears()).id();
    let spawn = |id| (id, save_game.world_mut().spawn_empty().id());
    let others = saved.entities().filter(|&id| id != hero).map(spawn);
    let mut map: EntityHashMap<Entity> = others.collect();
    map.insert(hero, loaded);
    let result = save_game.world_mut().load_timers(&saved, &mut map);
    result.expect("the data is valid");
    for (app, hero) in [(&mut town, here), (&mut save_game, loaded)] {
        for _ in 0..3 {
            advance_ms(app, 0);
            assert_eq!(told(app, hero), [None]);
        }
        let stats = app.world().resource::<MessageStats>();
        assert_eq!((stats.undeliverable, stats.late), (0, 0));
    }
}
