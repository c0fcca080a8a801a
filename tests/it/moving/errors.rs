//! Steps that are not possible leave the world as it was.

use core::fmt::Write;

use bevy_due::{
    Timer, TimerAction, TimerFired,
    message::MessageEntityCommandsExt,
    save::{LoadError, SaveWorldExt},
};

use bevy_ecs::resource::IsResource;

use super::*;

/// Describes everything that a move changes. Bevy adds entities for resources on first use.
fn describe(app: &mut App) -> String {
    let world = app.world_mut();
    let mut text = String::new();
    let entities = world.iter_entities();
    for entity in entities.filter(|entity| !entity.contains::<IsResource>()) {
        let archetype = entity.archetype();
        let components: Vec<_> = archetype.components().to_vec();
        writeln!(text, "{}: {components:?}", entity.id()).expect("a string");
    }
    world.with_timers(|timers| {
        for timer in timers.iter() {
            writeln!(text, "{timer:?}").expect("a string");
        }
    });
    text
}

/// Checks that a call fails and changes nothing, and returns the error.
#[track_caller]
fn refused<T: core::fmt::Debug>(
    app: &mut App,
    call: impl FnOnce(&mut World) -> Result<T, MoveError>,
) -> MoveError {
    let before = describe(app);
    let error = call(app.world_mut()).expect_err("it should fail");
    assert_eq!(describe(app), before, "the world should stay as it was");
    error
}

/// The serialized form of an entity with a timer, a cooldown and mail.
fn taken() -> (Entity, String) {
    let mut forest = zone();
    let hero = forest.world_mut().spawn((ears(), Cooldown::new(1.0))).id();
    set_timer(forest.world_mut(), hero, "a", Timer::every(ms(100)));
    advance_ms(&mut forest, 50);
    send(&mut forest, hero, 1);
    forest
        .world_mut()
        .send(hero, Hit(2))
        .expect("there is room");
    let moved = forest.world_mut().take_entity(hero).expect("it can move");
    (hero, ron::to_string(&moved).expect("it is data"))
}

/// Tries to import changed data, and returns the error.
#[track_caller]
fn changed(from: &str, to: &str) -> MoveError {
    let (_, text) = taken();
    assert!(text.contains(from), "{text} should contain {from}");
    let text = text.replacen(from, to, 1);
    let moved: MovedEntity = ron::from_str(&text).unwrap_or_else(|error| panic!("{error}: {text}"));
    let mut town = zone();
    let mut map = EntityHashMap::default();
    let error = refused(&mut town, |world| try_put(world, moved, &mut map));
    assert!(map.is_empty());
    error
}

/// Tries to put an entity into a world, and checks that an error hands it back.
fn try_put(
    world: &mut World,
    moved: MovedEntity,
    map: &mut EntityHashMap<Entity>,
) -> Result<Entity, MoveError> {
    let text = ron::to_string(&moved).expect("it is data");
    let put = world.put_entity(moved, ms(0), map);
    put.map_err(|PutError { moved, reason }| {
        assert_eq!(ron::to_string(&moved).expect("it is data"), text);
        reason
    })
}

#[test]
fn an_entity_that_is_gone_cannot_leave() {
    let mut forest = zone();
    let gone = forest.world_mut().spawn_empty().id();
    forest.world_mut().despawn(gone);
    let error = refused(&mut forest, |world| world.take_entity(gone));
    assert_eq!(error, MoveError::NoSuchEntity(gone));
}

#[test]
fn a_closure_stops_the_move() {
    let mut forest = zone();
    let hero = forest.world_mut().spawn(ears()).id();
    let timer = (Timer::after(1.0), TimerAction::call(|_: &mut World, _| ()));
    forest.world_mut().spawn((OwnedBy(hero), timer));
    let error = refused(&mut forest, |world| world.take_entity(hero));
    assert!(matches!(error, MoveError::Timers(_)), "{error:?}");
    assert!(error.to_string().contains("add_timer_handler"), "{error}");
}

#[test]
fn a_handler_of_a_timer_cannot_take() {
    #[derive(Resource)]
    struct Tried(Option<MoveError>);
    let mut forest = zone();
    let hero = spawn(&mut forest, "hero", Timer::after(0.0));
    forest.world_mut().entity_mut(hero).observe(
        move |_: On<TimerFired>, mut commands: Commands| {
            commands.queue(move |world: &mut World| {
                let error = world.take_entity(hero).err();
                world.insert_resource(Tried(error));
            });
        },
    );
    advance_ms(&mut forest, 0);
    let tried = &forest.world().resource::<Tried>().0;
    assert_eq!(*tried, Some(MoveError::Running));
}

#[test]
fn a_world_without_the_plugin_is_refused() {
    let mut world = World::new();
    let entity = world.spawn_empty().id();
    let entities = world.entities().count_spawned();
    assert_eq!(world.take_entity(entity).err(), Some(MoveError::NoPlugin));
    let (_, text) = taken();
    let moved: MovedEntity = ron::from_str(&text).expect("it is data");
    let mut map = EntityHashMap::default();
    let put = try_put(&mut world, moved, &mut map);
    assert_eq!(put.err(), Some(MoveError::NoPlugin));
    assert_eq!(world.entities().count_spawned(), entities);
}

#[test]
fn data_that_contradicts_itself_is_refused() {
    let (hero, _) = taken();
    let hero = hero.to_bits();
    let stranger = Entity::from_raw_u32(4_000_000).expect("a small number");
    let bits = stranger.to_bits();
    let error = changed(&format!("(entity:{hero}"), &format!("(entity:{bits}"));
    assert_eq!(error, MoveError::UnknownEntity(stranger));
    let to = |entity: u64| format!("(to:Entity({entity})");
    let error = changed(&to(hero), &to(bits));
    let message = "Packet".into();
    let unknown = LoadError::UnknownInMessage {
        message,
        to: stranger,
    };
    assert_eq!(error, MoveError::Load(unknown));
    let error = changed("name:\"hit\"", "name:\"hat\"");
    assert_eq!(error, MoveError::Load(LoadError::NoCodec("hat".into())));
    assert!(error.to_string().contains("add_message_codec"), "{error}");
    let error = changed("data:[2]", "data:[2,2]");
    assert!(
        matches!(error, MoveError::Load(LoadError::Decode { .. })),
        "{error:?}"
    );
    assert!(error.to_string().contains("2 bytes"), "{error}");
    let error = changed(
        "requests:[]",
        &format!("requests:[(entity:{bits},token:1,number:2)]"),
    );
    assert_eq!(error, MoveError::UnknownEntity(stranger));
}

#[test]
fn a_version_that_is_not_known_is_an_error() {
    let (_, text) = taken();
    let text = text.replacen("V2", "V3", 1);
    let error = ron::from_str::<MovedEntity>(&text).expect_err("there is no V3");
    assert!(error.to_string().contains("V3"), "{error}");
}

#[test]
fn any_cut_or_changed_byte_is_an_error_or_a_valid_entity() {
    let (_, text) = taken();
    for at in 0..text.len() {
        assert!(ron::from_str::<MovedEntity>(&text[..at]).is_err());
        let mut bytes = text.clone().into_bytes();
        for byte in [b'9', b')'] {
            bytes[at] = byte;
            let Ok(moved) = ron::de::from_bytes::<MovedEntity>(&bytes) else {
                continue;
            };
            let mut town = zone();
            let before = describe(&mut town);
            let mut map = EntityHashMap::default();
            match town.world_mut().put_entity(moved, ms(100), &mut map) {
                Ok(_) => advance_ms(&mut town, 1000),
                Err(_) => assert_eq!(describe(&mut town), before, "byte {at}: {byte}"),
            }
        }
    }
}

#[test]
fn two_codecs_under_one_name_or_for_one_type_panic() {
    for (name, says) in [
        ("hit", "choose another name"),
        ("hat", "one codec per type"),
    ] {
        let mut app = zone();
        let register = move || {
            let decode = |_: &[u8]| Ok(Hit(0));
            let encode = |_: &Hit| Ok(Vec::new());
            app.world_mut().add_message_codec(name, encode, decode);
        };
        let panic = std::panic::catch_unwind(core::panic::AssertUnwindSafe(register));
        let panic = panic.expect_err("it should panic");
        let text = panic.downcast_ref::<String>().expect("a text");
        assert!(text.contains(says), "{text}");
    }
}

#[test]
fn data_of_a_whole_world_is_refused() {
    let mut forest = zone();
    forest.world_mut().spawn(Timer::after(1.0));
    let saved = forest.world_mut().save_timers().expect("no closures");
    let saved = ron::to_string(&saved).expect("it is data");
    let (_, state) = saved.split_once("world:").expect("it has a state");
    let (state, _) = state.split_once(",mail:").expect("it has mail");
    assert!(state.starts_with("Some("), "{state}");
    let error = changed("world:None", &format!("world:{state}"));
    assert_eq!(error, MoveError::WholeWorld);
}

/// The serialized form of an entity with an open request, and the entity of the request.
fn taken_asker() -> (Entity, Entity, String) {
    let mut forest = zone();
    let hero = forest.world_mut().spawn(ears()).id();
    let mut commands = forest.world_mut().commands();
    let question = Packet::new(QUESTION, []);
    let until = Timer::after(ms(100));
    let request = commands
        .entity(hero)
        .ask(Entity::PLACEHOLDER, question, until);
    forest.world_mut().flush();
    let moved = forest.world_mut().take_entity(hero).expect("it can move");
    let request = request.entity().expect("it was made here");
    (hero, request, ron::to_string(&moved).expect("it is data"))
}

/// Replaces the names of the requests in the data.
fn with_names(text: &str, names: &[(Entity, u64, u64)]) -> MovedEntity {
    let name = |&(entity, token, number): &(Entity, u64, u64)| {
        format!(
            "(entity:{},token:{token},number:{number})",
            entity.to_bits()
        )
    };
    let names: Vec<String> = names.iter().map(name).collect();
    assert!(text.contains("requests:[]"), "{text}");
    let text = text.replacen("requests:[]", &format!("requests:[{}]", names.join(",")), 1);
    ron::from_str(&text).unwrap_or_else(|error| panic!("{error}: {text}"))
}

#[test]
fn the_names_of_requests_are_checked() {
    let (hero, request, text) = taken_asker();
    let mut town = zone();
    for (names, wrong) in [
        (vec![(hero, 1, 2)], hero),
        (vec![(request, 1, 2), (request, 1, 3)], request),
        (vec![(request, 1, 2), (request, 1, 2)], request),
    ] {
        let moved = with_names(&text, &names);
        let mut map = EntityHashMap::default();
        let error = refused(&mut town, |world| try_put(world, moved, &mut map));
        assert_eq!(error, MoveError::InvalidRequest(wrong), "{names:?}");
    }
    let moved = with_names(&text, &[(request, 1, 2)]);
    put(&mut town, moved.clone(), 0);
    let mut map = EntityHashMap::default();
    let error = refused(&mut town, |world| try_put(world, moved, &mut map));
    assert_eq!(error, MoveError::InvalidRequest(request), "it is taken");
}
