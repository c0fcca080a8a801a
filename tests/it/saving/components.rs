//! Components of the game that are saved, moved and rolled back with those of the crate.

use core::time::Duration;

use bevy_app::App;
use bevy_due::{
    OnClock, Timer,
    message::{Delivery, MessageWorldExt},
    moving::{MoveWorldExt, MovedEntity, TimePassed},
    prelude::*,
    rollback::RollbackWorldExt,
    save::{LoadError, SaveError, SaveWorldExt, SavedTimers, Unsavable},
};
use bevy_ecs::{entity::EntityHashMap, error::FallbackErrorHandler, prelude::*};
use serde::{Deserialize, Serialize, Serializer, ser::Error};

use crate::support::*;

#[derive(Component, Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
struct Health(u32);

#[derive(Component, Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[component(immutable)]
struct Target(#[entities] Entity);

#[derive(Component, Clone, Serialize, Deserialize)]
struct Title(String);

/// Its entity hears messages without being told.
#[derive(Component, Clone, Default, Serialize, Deserialize)]
#[require(MessageComponent = ears())]
struct Hears;

/// It can't be serialized while it holds zero.
#[derive(Component, Clone, Deserialize)]
struct Shy(u32);

impl Serialize for Shy {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.0 {
            0 => Err(S::Error::custom("it is zero")),
            some => some.serialize(serializer),
        }
    }
}

/// Its entity counts the seconds of its clock.
#[derive(Component, Clone, Default, Serialize, Deserialize)]
#[require(UpdateComponent = ages())]
struct Age(f32);

fn ages() -> UpdateComponent {
    UpdateComponent::new(|mut me| {
        let passed = me.delta.as_secs_f32();
        me.entity.get_mut::<Age>().unwrap().0 += passed;
    })
}

#[derive(Component, Clone, Default, Serialize, Deserialize)]
#[require(Timer = Timer::after(1.0), Paused, Cooldown = Cooldown::new(2.0), Clock)]
struct Fuse;

#[derive(Message)]
struct Hit;

#[derive(Resource, Default)]
struct Inserts(Vec<Entity>);

fn ears() -> MessageComponent {
    MessageComponent::new().on(|mut me, _: &Hit| {
        if let Some(mut health) = me.entity.get_mut::<Health>() {
            health.0 -= 1;
        }
    })
}

fn game() -> App {
    let mut app = app();
    let world = app.world_mut();
    world.add_saved_component::<Health>("health");
    world.add_saved_component::<Target>("target");
    world.add_saved_component::<Hears>("hears");
    world.add_saved_component::<Age>("age");
    world.add_message_codec("hit", |_: &Hit| Ok(Vec::new()), |_| Ok(Hit));
    advance_ms(&mut app, 0);
    app
}

fn health(app: &App, entity: Entity) -> Option<u32> {
    app.world().get::<Health>(entity).map(|health| health.0)
}

fn target(app: &App, entity: Entity) -> Option<Entity> {
    app.world().get::<Target>(entity).map(|target| target.0)
}

fn load(app: &mut App, saved: &SavedTimers) -> Result<EntityHashMap<Entity>, LoadError> {
    let mut entities = EntityHashMap::default();
    app.world_mut().load_timers(saved, &mut entities)?;
    Ok(entities)
}

#[test]
fn the_components_of_a_game_are_loaded_with_its_timers_in_any_format() {
    let mut before = game();
    let world = before.world_mut();
    // It has nothing that is saved, but the loaded components refer to it.
    let place = world.spawn(Tag("place")).id();
    let hero = world.spawn((Health(10), Target(place), Hears)).id();
    let bomb = world.spawn((Target(hero), Timer::after(3.0))).id();
    let gone = world.spawn_empty().id();
    let widow = world.spawn(Target(gone)).id();
    world.despawn(gone);
    world.send(hero, Hit).unwrap();
    let saved = world.save_timers().unwrap();
    let text: SavedTimers = ron::from_str(&ron::to_string(&saved).unwrap()).unwrap();
    let bytes = postcard::to_allocvec(&saved).unwrap();
    let bytes: SavedTimers = postcard::from_bytes(&bytes).unwrap();
    for saved in [text, bytes] {
        let mut after = game();
        let new = load(&mut after, &saved).unwrap();
        assert_eq!(health(&after, new[&hero]), Some(10));
        assert_eq!(target(&after, new[&hero]), Some(new[&place]));
        assert_eq!(target(&after, new[&bomb]), Some(new[&hero]));
        assert_eq!(target(&after, new[&widow]), Some(Entity::PLACEHOLDER));
        assert!(after.world().get::<Timer>(new[&bomb]).is_some());
        advance_ms(&mut after, 100);
        assert_eq!(health(&after, new[&hero]), Some(9), "the hit arrives");
    }
}

/// Its entity says its name in each frame, and when it is asked.
#[derive(Component, Clone, Default, Serialize, Deserialize)]
#[require(UpdateComponent = says(), MessageComponent = answers())]
struct Name(String);

#[derive(Resource, Default)]
struct Said(Vec<String>);

fn says() -> UpdateComponent {
    UpdateComponent::new(|mut me| {
        let Name(name) = me.entity.get().cloned().unwrap();
        say(&mut me.commands, format!("{name} acts"));
    })
}

fn answers() -> MessageComponent {
    MessageComponent::new().on(|mut me, _: &Hit| {
        let Name(name) = me.entity.get().cloned().unwrap();
        say(&mut me.commands, format!("{name} hears"));
    })
}

fn say(commands: &mut Commands, what: String) {
    commands.queue(|world: &mut World| world.resource_mut::<Said>().0.push(what));
}

#[test]
fn loaded_followers_are_called_in_the_order_of_the_saved_world() {
    let said = |app: &mut App| {
        app.init_resource::<Said>();
        app.world_mut().send(Delivery::All, Hit).unwrap();
        advance_ms(app, 10);
        core::mem::take(&mut app.world_mut().resource_mut::<Said>().0)
    };
    let app = || {
        let mut app = game();
        app.world_mut().add_saved_component::<Name>("name");
        app
    };
    let mut before = app();
    let world = before.world_mut();
    let entities = [(); 4].map(|()| world.spawn_empty().id());
    for (nth, name) in [(2, "a"), (0, "b"), (3, "c"), (1, "d")] {
        world.entity_mut(entities[nth]).insert(Name(name.into()));
    }
    // It acts in its place, and hears last.
    world.entity_mut(entities[0]).remove::<MessageComponent>();
    world.entity_mut(entities[0]).insert(answers());
    let saved = before.world_mut().save_timers().unwrap();
    let mut after = app();
    load(&mut after, &saved).unwrap();
    let expected = said(&mut before);
    assert_eq!(expected.len(), 8);
    assert_eq!(said(&mut after), expected);
}

#[test]
fn what_a_component_has_brought_along_since_a_snapshot_goes_with_it() {
    let mut app = game();
    let world = app.world_mut();
    world.add_saved_component::<Name>("name");
    let [silent, own] = [world.spawn_empty().id(), world.spawn(says()).id()];
    let snapshot = world.snapshot_timers();
    for entity in [silent, own] {
        world.entity_mut(entity).insert(Name::default());
    }
    world.restore_timers(&snapshot, &mut EntityHashMap::default());
    assert!(world.get::<Name>(silent).is_none());
    assert!(world.get::<UpdateComponent>(silent).is_none());
    assert!(world.get::<MessageComponent>(silent).is_none());
    assert!(world.get::<UpdateComponent>(own).is_some(), "it was there");
}

#[test]
fn a_map_gives_the_loaded_components_to_the_entities_of_the_game() {
    let mut before = game();
    let world = before.world_mut();
    let place = world.spawn_empty().id();
    let hero = world.spawn((Health(10), Target(place))).id();
    let saved = world.save_timers().unwrap();

    let mut after = game();
    let here = after.world_mut().spawn(Tag("place")).id();
    let mut entities = EntityHashMap::from_iter([(place, here)]);
    after
        .world_mut()
        .load_timers(&saved, &mut entities)
        .unwrap();
    assert_eq!(target(&after, entities[&hero]), Some(here));
}

#[test]
fn what_a_loaded_component_brings_along_is_replaced_by_what_was_saved() {
    fn restless() -> App {
        let mut app = game();
        app.add_observer(|added: On<Add<Health>>, mut commands: Commands| {
            commands.entity(added.entity).insert(Timer::after(60.0));
        });
        app
    }
    let mut before = restless();
    let hero = before.world_mut().spawn(Health(10)).id();
    advance_ms(&mut before, 20000);
    let saved = before.world_mut().save_timers().unwrap();
    let mut after = restless();
    let new = load(&mut after, &saved).unwrap();
    let timer = after
        .world_mut()
        .with_timers(|timers| timers.get(new[&hero]));
    assert_eq!(timer.unwrap().remaining, Duration::from_secs(40));
}

#[test]
fn a_callback_that_a_loaded_component_brings_along_is_on_the_clock_of_its_entity() {
    let mut before = game();
    let world = before.world_mut();
    let dungeon = world.spawn(Clock::new().with_speed(0.5)).id();
    let bats = [
        world.spawn((Age::default(), OnClock::new(dungeon))).id(),
        world
            .spawn((Age::default(), Clock::new().with_speed(0.25)))
            .id(),
    ];
    let saved = world.save_timers().unwrap();
    let mut after = game();
    let new = load(&mut after, &saved).unwrap();
    let snapshot = after.world_mut().snapshot_timers();
    for bat in bats {
        after.world_mut().despawn(new[&bat]);
    }
    let mut again = EntityHashMap::default();
    after.world_mut().restore_timers(&snapshot, &mut again);
    let mut loaded = game();
    let also_new = load(&mut loaded, &saved).unwrap();
    for app in [&mut before, &mut after, &mut loaded] {
        advance_ms(app, 2000);
    }
    let age = |app: &App, bat: Entity| app.world().get::<Age>(bat).unwrap().0;
    for (nth, bat) in bats.into_iter().enumerate() {
        let expected = [1.0, 0.5][nth];
        assert_eq!(age(&before, bat), expected);
        assert_eq!(age(&loaded, also_new[&bat]), expected, "loaded");
        assert_eq!(age(&after, again[&new[&bat]]), expected, "spawned again");
    }
}

/// What has ended by the save does not come back with the component that requires it.
#[test]
fn what_a_component_requires_is_there_only_if_it_was_there_at_the_save() {
    let mut before = game();
    let world = before.world_mut();
    world.add_saved_component::<Fuse>("fuse");
    let [spent, armed] = [(); 2].map(|()| world.spawn(Fuse).id());
    world
        .entity_mut(spent)
        .remove::<(Timer, Paused, Cooldown, Clock)>();
    let saved = world.save_timers().unwrap();
    let mut after = game();
    after.world_mut().add_saved_component::<Fuse>("fuse");
    let new = load(&mut after, &saved).unwrap();
    let snapshot = after.world_mut().snapshot_timers();
    for fuse in [spent, armed] {
        after.world_mut().despawn(new[&fuse]);
    }
    let mut again = EntityHashMap::default();
    after.world_mut().restore_timers(&snapshot, &mut again);
    let mut loaded = game();
    loaded.world_mut().add_saved_component::<Fuse>("fuse");
    let also_new = load(&mut loaded, &saved).unwrap();
    cancelled(&mut after);
    advance_ms(&mut after, 0);
    advance_ms(&mut loaded, 0);
    let fuses = [spent, armed];
    for (app, [spent, armed]) in [
        (&mut after, fuses.map(|fuse| again[&new[&fuse]])),
        (&mut loaded, fuses.map(|fuse| also_new[&fuse])),
    ] {
        let has_all = |entity: Entity| {
            let entity = app.world().entity(entity);
            [
                entity.contains::<Timer>(),
                entity.contains::<Paused>(),
                entity.contains::<Cooldown>(),
                entity.contains::<Clock>(),
            ]
        };
        assert_eq!(has_all(spent), [false; 4]);
        assert_eq!(has_all(armed), [true; 4]);
        assert_eq!(cancelled(app), [], "nobody hears of it");
    }
}

#[test]
fn a_component_for_a_time_ends_on_time_after_loading() {
    let mut before = game();
    let hero = before.world_mut().spawn_empty().id();
    before
        .world_mut()
        .entity_mut(hero)
        .insert_for(3.0, Health(1));
    advance_ms(&mut before, 1000);
    let saved = before.world_mut().save_timers().unwrap();
    let mut after = game();
    let new = load(&mut after, &saved).unwrap();
    advance_ms(&mut after, 1999);
    assert_eq!(health(&after, new[&hero]), Some(1));
    advance_ms(&mut after, 1);
    assert_eq!(health(&after, new[&hero]), None);
}

#[test]
fn a_component_that_is_unknown_or_has_changed_is_an_error_that_changes_nothing() {
    let mut before = game();
    let hero = before
        .world_mut()
        .spawn((Health(10), Timer::after(1.0)))
        .id();
    let saved = before.world_mut().save_timers().unwrap();

    let mut without = app();
    let entities = without.world().entities().count_spawned();
    let unknown = LoadError::UnknownComponent(hero, "health".into());
    assert_eq!(load(&mut without, &saved), Err(unknown));
    assert_eq!(without.world().entities().count_spawned(), entities);

    let mut changed = app();
    changed.world_mut().add_saved_component::<Title>("health");
    let error = load(&mut changed, &saved).unwrap_err();
    assert!(
        matches!(&error, LoadError::Component { entity, component, .. }
            if *entity == hero && component == "health"),
        "{error}"
    );
    let mut shorter = app();
    shorter.world_mut().add_saved_component::<Hears>("health");
    let error = load(&mut shorter, &saved).unwrap_err().to_string();
    assert!(error.contains("add_versioned_component"), "{error}");
}

#[test]
fn a_component_that_cannot_be_serialized_is_an_error_or_is_left_out() {
    let mut app = game();
    let world = app.world_mut();
    world.add_saved_component::<Shy>("shy");
    let hero = world.spawn((Shy(0), Health(10))).id();
    let Err(SaveError::Unsavable(unsavable)) = world.save_timers() else {
        panic!("it can't be saved");
    };
    let [Unsavable::Component(unsavable)] = &unsavable[..] else {
        panic!("{unsavable:?}");
    };
    assert_eq!((unsavable.entity, &*unsavable.component), (hero, "shy"));
    let (saved, left_out) = world.save_timers_without_closures();
    assert_eq!(left_out.len(), 1);
    let mut after = game();
    after.world_mut().add_saved_component::<Shy>("shy");
    let new = load(&mut after, &saved).unwrap();
    assert_eq!(health(&after, new[&hero]), Some(10));
    assert!(after.world().get::<Shy>(new[&hero]).is_none());
}

#[test]
fn components_move_with_their_entities() {
    let (mut forest, mut town) = (game(), game());
    let world = forest.world_mut();
    let hero = world.spawn((Health(10), Hears)).id();
    world.spawn((OwnedBy(hero), Target(hero), Timer::after(1.0)));
    world.send(hero, Hit).unwrap();
    let moved = world.take_entity(hero).unwrap();
    let moved: MovedEntity = ron::from_str(&ron::to_string(&moved).unwrap()).unwrap();
    let mut entities = EntityHashMap::default();
    let world = town.world_mut();
    let here = world
        .put_entity(moved, Duration::ZERO, &mut entities)
        .unwrap();
    let mut owned = world.query_filtered::<&Target, With<OwnedBy>>();
    assert_eq!(owned.single(world).unwrap().0, here);
    advance_ms(&mut town, 100);
    assert_eq!(health(&town, here), Some(9));
}

#[test]
fn a_component_that_refers_to_what_stays_refers_to_nothing_without_a_map() {
    let (mut forest, mut town) = (game(), game());
    let enemy = forest.world_mut().spawn(Health(5)).id();
    let hero = forest.world_mut().spawn((Health(10), Target(enemy))).id();
    let moved = forest.world_mut().take_entity(hero).unwrap();
    let there = town.world_mut().spawn(Health(6)).id();
    let mut put = |mut entities| {
        let world = town.world_mut();
        world.put_entity(moved.clone(), Duration::ZERO, &mut entities)
    };
    let mapped = put(EntityHashMap::from_iter([(enemy, there)])).unwrap();
    let alone = put(EntityHashMap::default()).unwrap();
    assert_eq!(target(&town, mapped), Some(there));
    assert_eq!(target(&town, alone), Some(Entity::PLACEHOLDER));
}

#[test]
fn a_rollback_takes_components_back_that_systems_have_changed() {
    let mut app = game();
    let world = app.world_mut();
    let hurt = world.spawn(Health(10)).id();
    let bare = world.spawn(Health(11)).id();
    let healed = world.spawn(Timer::after(9.0)).id();
    let calm = world.spawn((Health(12), Timer::after(9.0))).id();
    let snapshot = world.snapshot_timers();
    world.get_mut::<Health>(hurt).unwrap().0 = 1;
    world.entity_mut(bare).remove::<Health>();
    world.entity_mut(healed).insert(Health(13));
    let changed = world.changed_since(&snapshot);
    let mut expected = [hurt, bare, healed];
    expected.sort_unstable();
    assert_eq!(changed, expected);

    world.restore_timers(&snapshot, &mut EntityHashMap::default());
    let healths = [hurt, bare, healed, calm].map(|entity| health(&app, entity));
    assert_eq!(healths, [Some(10), Some(11), None, Some(12)]);
}

#[test]
fn a_rollback_spawns_and_despawns_entities_with_saved_components() {
    let mut app = game();
    let world = app.world_mut();
    let enemy = world.spawn((Health(5), Hears)).id();
    let hero = world.spawn(Target(enemy)).id();
    let oldest = world.snapshot_timers();
    world.send(enemy, Hit).unwrap();
    let snapshot = world.snapshot_timers();
    world.despawn(enemy);
    let new = world.spawn(Health(99)).id();
    for snapshot in [&snapshot, &oldest, &snapshot] {
        let mut entities = EntityHashMap::default();
        let world = app.world_mut();
        world.restore_timers(snapshot, &mut entities);
        assert!(world.get_entity(new).is_err());
        assert_eq!(world.query::<&Health>().iter(world).count(), 1);
        assert_eq!(target(&app, hero), Some(entities[&enemy]));
        assert_eq!(health(&app, entities[&enemy]), Some(5));
        assert!(
            app.world()
                .get::<MessageComponent>(entities[&enemy])
                .is_some()
        );
    }
    advance_ms(&mut app, 100);
    let enemy = target(&app, hero).unwrap();
    assert_eq!(health(&app, enemy), Some(4), "the hit arrives");
}

#[test]
fn a_rollback_leaves_components_alone_that_have_not_changed() {
    let mut app = game();
    app.add_observer(
        |inserted: On<Insert<Health>>, mut inserts: ResMut<Inserts>| {
            inserts.0.push(inserted.entity);
        },
    );
    app.init_resource::<Inserts>();
    let world = app.world_mut();
    let [hurt, calm] = [10, 11].map(|health| world.spawn(Health(health)).id());
    let snapshot = world.snapshot_timers();
    world.get_mut::<Health>(hurt).unwrap().0 = 1;
    world.resource_mut::<Inserts>().0.clear();
    world.restore_timers(&snapshot, &mut EntityHashMap::default());
    assert_eq!(world.resource::<Inserts>().0, [hurt]);
    assert_eq!(health(&app, calm), Some(11));
}

/// A system has written to the component, which stays, and something that it requires is gone.
#[test]
fn a_rollback_of_a_written_component_brings_nothing_along() {
    let mut app = game();
    let world = app.world_mut();
    world.add_saved_component::<Fuse>("fuse");
    let bomb = world.spawn(Fuse).id();
    world
        .entity_mut(bomb)
        .remove::<(Timer, Paused, Cooldown, Clock)>();
    let snapshot = world.snapshot_timers();
    world.get_mut::<Fuse>(bomb).unwrap().set_changed();
    world.restore_timers(&snapshot, &mut EntityHashMap::default());
    let bomb = world.entity(bomb);
    assert!(bomb.contains::<Fuse>());
    assert!(!bomb.contains::<Timer>() && !bomb.contains::<Paused>());
    assert!(!bomb.contains::<Cooldown>() && !bomb.contains::<Clock>());
}

#[test]
fn a_rollback_leads_references_to_entities_that_the_game_has_spawned_again() {
    let mut app = game();
    let world = app.world_mut();
    let place = world.spawn_empty().id();
    let hero = world.spawn(Target(place)).id();
    let snapshot = world.snapshot_timers();
    world.despawn(place);
    let again = world.spawn_empty().id();
    let mut entities = EntityHashMap::from_iter([(place, again)]);
    world.restore_timers(&snapshot, &mut entities);
    assert_eq!(target(&app, hero), Some(again));
}

#[test]
fn loading_leaves_the_timers_of_an_entity_in_the_map_alone() {
    let mut before = game();
    let hero = before.world_mut().spawn(Health(3)).id();
    let saved = before.world_mut().save_timers().unwrap();
    let mut after = game();
    after.add_observer(|added: On<Add<Health>>, mut commands: Commands| {
        let mut hero = commands.entity(added.entity);
        hero.insert(Cooldown::new(1.0))
            .set_timer("regenerate", Timer::every(1.0));
    });
    let here = after.world_mut().spawn(Timer::after(0.5)).id();
    let mut entities = EntityHashMap::from_iter([(hero, here)]);
    after
        .world_mut()
        .load_timers(&saved, &mut entities)
        .unwrap();
    advance_ms(&mut after, 500);
    assert_eq!(firings(&mut after)[0].entity(), here);
}

/// The format has no names of fields, which this attribute needs.
/// Fields that are left out and numbers of any size come back as they were, or the save is an error.
#[test]
fn a_component_comes_back_as_it_was_whatever_serde_leaves_out() {
    #[derive(Component, Clone, Debug, PartialEq, Serialize, Deserialize)]
    struct Points {
        #[serde(default, skip_serializing_if = "is_zero")]
        bonus: u8,
        points: u16,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        best: Option<u16>,
    }
    fn is_zero(bonus: &u8) -> bool {
        *bonus == 0
    }
    let mut app = game();
    let world = app.world_mut();
    world.add_saved_component::<Points>("points");
    let all: Vec<_> = (0..2001)
        .map(|points| {
            let points = Points {
                bonus: (points % 3) as u8,
                points,
                best: (points % 5 == 0).then_some(points),
            };
            (world.spawn(points.clone()).id(), points)
        })
        .collect();
    let saved = world.save_timers().unwrap();
    let mut after = game();
    after.world_mut().add_saved_component::<Points>("points");
    let new = load(&mut after, &saved).unwrap();
    for (entity, points) in all {
        assert_eq!(after.world().get::<Points>(new[&entity]), Some(&points));
    }
}

#[test]
fn a_component_that_could_not_be_loaded_is_an_error_of_the_save() {
    /// Writes its two numbers as one.
    #[derive(Component, Clone, Deserialize)]
    struct Sum(#[allow(dead_code, reason = "it is never read")] u32, u32);
    impl Serialize for Sum {
        fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
            serializer.serialize_u32(self.1)
        }
    }
    let mut app = game();
    let world = app.world_mut();
    world.add_saved_component::<Sum>("sum");
    world.spawn(Sum(1, 2));
    let error = world.save_timers().unwrap_err().to_string();
    assert!(error.contains("sum"), "{error}");
}

/// A tree as deep as its number of levels.
#[derive(Component, Clone, Default, Serialize, Deserialize)]
struct Tree {
    kids: Vec<Tree>,
}

impl Tree {
    fn of_depth(depth: usize) -> Self {
        (1..depth).fold(Self::default(), |kid, _| Self { kids: vec![kid] })
    }
}

#[test]
fn a_component_that_is_nested_too_deep_is_an_error_and_ends_no_process() {
    let mut app = game();
    let world = app.world_mut();
    world.add_saved_component::<Tree>("tree");
    let shallow = world.spawn(Tree::of_depth(20)).id();
    let saved = world.save_timers().expect("20 levels are fine");
    let deep = world.spawn(Tree::of_depth(1000)).id();
    let error = world.save_timers().unwrap_err().to_string();
    assert!(error.contains("tree") && error.contains("limit"), "{error}");
    world.despawn(deep);
    let text = ron::to_string(&saved).unwrap();
    let (from, deeper) = ("kids:[]", 100_000);
    let hostile = format!("{}{}", "kids:[(".repeat(deeper), ")]".repeat(deeper));
    let text = text.replacen(from, &hostile, 1);
    let saved: SavedTimers = ron::from_str(&text).unwrap();
    let mut after = game();
    after.world_mut().add_saved_component::<Tree>("tree");
    let error = load(&mut after, &saved).unwrap_err();
    assert!(
        matches!(&error, LoadError::Component { entity, .. } if *entity == shallow),
        "{error}"
    );
}

#[test]
fn a_component_of_a_later_release_is_an_error_and_one_of_an_earlier_release_is_read() {
    #[derive(Component, Clone, Debug, PartialEq, Serialize, Deserialize)]
    struct Life {
        now: u32,
        most: u32,
    }
    let mut old = game();
    let hero = old.world_mut().spawn(Health(7)).id();
    let saved = old.world_mut().save_timers().unwrap();

    let mut new = app();
    new.world_mut()
        .add_versioned_component("health", 3, |older| {
            assert_eq!(older.version(), 1);
            let Health(now) = older.read()?;
            Ok(Life { now, most: 100 })
        });
    new.world_mut().add_saved_component::<Target>("target");
    let entities = load(&mut new, &saved).unwrap();
    let life = Life { now: 7, most: 100 };
    assert_eq!(new.world().get::<Life>(entities[&hero]), Some(&life));

    let later = new.world_mut().save_timers().unwrap();
    let error = load(&mut game(), &later).unwrap_err().to_string();
    for part in ["health", "version 3", "version 1"] {
        assert!(error.contains(part), "{error:?} should contain {part:?}");
    }
}

#[test]
#[should_panic(expected = "is a resource")]
fn a_resource_is_no_saved_component() {
    #[derive(Resource, Clone, Serialize, Deserialize)]
    struct Score(u32);

    game().world_mut().add_saved_component::<Score>("score");
}

#[test]
#[should_panic(expected = "of this crate is saved with the timers")]
fn a_component_of_the_crate_is_saved_anyway() {
    game()
        .world_mut()
        .add_saved_component::<Cooldown>("cooldown");
}

#[test]
fn components_can_be_added_once_all_snapshots_are_dropped() {
    let mut app = game();
    drop(app.world_mut().snapshot_timers());
    app.world_mut().add_saved_component::<Shy>("shy");
}

#[test]
#[should_panic(expected = "already registered as \"health\"")]
fn a_name_is_for_one_component() {
    game().world_mut().add_saved_component::<Shy>("health");
}

#[test]
#[should_panic(expected = "is already saved as \"health\"")]
fn a_component_has_one_name() {
    game().world_mut().add_saved_component::<Health>("life");
}

#[test]
#[should_panic(expected = "while a snapshot or a mark exists")]
fn components_are_added_before_the_first_snapshot() {
    let mut app = game();
    let _snapshot = app.world_mut().snapshot_timers();
    app.world_mut().add_saved_component::<Shy>("shy");
}

#[test]
fn a_component_that_refers_to_an_entity_that_is_refused_refers_to_nothing() {
    let (mut forest, mut town) = (game(), game());
    town.insert_resource(FallbackErrorHandler(errors::record));
    let world = forest.world_mut();
    world.add_saved_component::<Title>("title");
    let enemy = world.spawn(Title(String::from("king"))).id();
    let hero = world.spawn(Target(enemy)).id();
    let moved = world.copy_entities(&[hero, enemy]).into_iter();
    let moved: Vec<_> = moved
        .map(|it| (it.unwrap(), TimePassed::default()))
        .collect();
    let mut names = EntityHashMap::default();
    let put = town.world_mut().put_entities(moved, &mut names);
    assert!(put[1].is_err(), "a title is unknown there");
    assert_eq!(target(&town, names[&hero]), Some(Entity::PLACEHOLDER));
    let [warning] = &errors::errors()[..] else {
        panic!("one warning")
    };
    for part in ["target", &enemy.to_string()] {
        assert!(
            warning.contains(part),
            "{warning:?} should contain {part:?}"
        );
    }
}

#[test]
fn a_rollback_goes_on_if_an_observer_despawns_what_loses_a_component() {
    let mut app = game();
    app.add_observer(|removed: On<Remove<Hears>>, mut commands: Commands| {
        commands.entity(removed.entity).despawn();
    });
    let world = app.world_mut();
    let hero = world.spawn(Health(7)).id();
    let snapshot = world.snapshot_timers();
    world.entity_mut(hero).insert(Hears);
    world.restore_timers(&snapshot, &mut EntityHashMap::default());
    assert!(world.get_entity(hero).is_err());
}

#[test]
fn a_rollback_keeps_a_component_that_was_there_and_came_again_for_a_time() {
    let mut app = game();
    let world = app.world_mut();
    let hero = world.spawn(Health(7)).id();
    let snapshot = world.snapshot_timers();
    world.entity_mut(hero).remove::<Health>();
    world.entity_mut(hero).insert_for(5.0, Health(9));
    world.restore_timers(&snapshot, &mut EntityHashMap::default());
    assert_eq!(health(&app, hero), Some(7));
    for _ in 0..6 {
        advance_ms(&mut app, 1000);
    }
    assert_eq!(health(&app, hero), Some(7));
}

#[test]
fn a_rollback_leaves_a_callback_that_another_component_requires() {
    #[derive(Component, Clone, Serialize, Deserialize)]
    #[require(MessageComponent = ears())]
    struct Listens;

    let mut app = game();
    let world = app.world_mut();
    world.add_saved_component::<Listens>("listens");
    let hero = world.spawn((Health(7), Listens)).id();
    let snapshot = world.snapshot_timers();
    world
        .entity_mut(hero)
        .remove::<MessageComponent>()
        .insert(Hears);
    world.restore_timers(&snapshot, &mut EntityHashMap::default());
    assert!(!world.entity(hero).contains::<Hears>());
    assert!(world.entity(hero).contains::<MessageComponent>());
}

#[test]
fn an_observer_that_sets_a_new_hero_up_does_not_overwrite_a_saved_one() {
    let new_game = || {
        let mut app = game();
        app.world_mut().add_saved_component::<Title>("title");
        app.add_observer(|added: On<Add<Title>>, mut commands: Commands| {
            commands.entity(added.entity).insert(Health(100));
        });
        app
    };
    let mut app = new_game();
    let world = app.world_mut();
    let hero = world.spawn(Title(String::from("king"))).id();
    world.entity_mut(hero).insert(Health(30));
    let saved = world.save_timers().unwrap();
    let mut loaded = new_game();
    let names = load(&mut loaded, &saved).unwrap();
    assert_eq!(health(&loaded, names[&hero]), Some(30));
    let world = app.world_mut();
    let snapshot = world.snapshot_timers();
    world.despawn(hero);
    let mut names = EntityHashMap::default();
    world.restore_timers(&snapshot, &mut names);
    assert_eq!(health(&app, names[&hero]), Some(30));
}

#[test]
fn a_registered_component_that_another_one_requires_stays_away_if_it_was_lost() {
    #[derive(Component, Clone, Default, Serialize, Deserialize)]
    struct Shield;

    #[derive(Component, Clone, Serialize, Deserialize)]
    #[require(Shield)]
    struct Knight;

    let new_game = || {
        let mut app = game();
        app.world_mut().add_saved_component::<Shield>("shield");
        app.world_mut().add_saved_component::<Knight>("knight");
        app
    };
    let mut app = new_game();
    let [armed, bare] = [(); 2].map(|()| app.world_mut().spawn(Knight).id());
    app.world_mut().entity_mut(bare).remove::<Shield>();
    let saved = app.world_mut().save_timers().unwrap();
    let mut loaded = new_game();
    let names = load(&mut loaded, &saved).unwrap();
    let has_shield = |it| loaded.world().entity(names[&it]).contains::<Shield>();
    assert!(has_shield(armed) && !has_shield(bare));
}

#[test]
fn an_observer_may_despawn_what_loses_its_callback_in_a_load() {
    let mut before = game();
    let hero = before.world_mut().spawn(Hears).id();
    let saved = before.world_mut().save_timers().unwrap();
    let mut after = game();
    after.add_observer(
        |removed: On<Remove<MessageComponent>>, mut commands: Commands| {
            commands.entity(removed.entity).try_despawn();
        },
    );
    let names = load(&mut after, &saved).unwrap();
    assert!(after.world().get_entity(names[&hero]).is_err());
}
