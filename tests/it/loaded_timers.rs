//! The timers that the crate itself arms: `insert_for` and requests keep their promises in the world that loads them.

use core::{any::type_name, time::Duration};

use crate::support::{errors::*, *};
use bevy_app::App;
use bevy_due::{
    ClockId, OwnedTimerFired, Timer, TimerAction,
    message::{
        MessageCommandsExt, MessageContext, MessageEntityCommandsExt, NoAnswer, ReplyTo, Request,
    },
    prelude::*,
    save::{SaveWorldExt, SavedTimers},
};
use bevy_ecs::{
    entity::EntityHashMap, error::FallbackErrorHandler, prelude::*, reflect::ReflectComponent,
};
use bevy_reflect::{Reflect, TypePath};

#[derive(Component, Reflect, Clone, Copy, Debug, PartialEq)]
#[reflect(Component)]
struct Shield(u32);

#[derive(Component, Reflect)]
#[reflect(Component)]
struct Buff<Of: Reflect + TypePath>(Of);

#[derive(Reflect)]
struct Fire;

#[derive(Component, Reflect)]
struct NotReflectedAsComponent;

/// Returns an app that records its errors, and an entity with these components.
fn hero_app(components: impl Bundle) -> (App, Entity) {
    let mut app = app();
    app.insert_resource(FallbackErrorHandler(record));
    let hero = app.world_mut().spawn(components).id();
    (app, hero)
}

/// The saved timers of an owner.
type Saved = (SavedTimers, Entity);

/// Inserts a component for 20 ms in a new app, and saves its timer.
fn saved_limit(component: impl Component) -> Saved {
    let mut app = app();
    let hero = app.world_mut().spawn_empty().id();
    app.world_mut()
        .entity_mut(hero)
        .insert_for(ms(20), component);
    save_timer(&mut app, hero)
}

/// Saves an owner with its only timer.
fn save_timer(app: &mut App, owner: Entity) -> Saved {
    let saved = app.world_mut().save_entity(owner).expect("it is data");
    (saved, owner)
}

/// Loads a saved timer for an owner.
fn load(app: &mut App, owner: Entity, (saved, before): &Saved) -> Entity {
    let mut map = EntityHashMap::from_iter([(*before, owner)]);
    let loaded = app.world_mut().load_timers(saved, &mut map);
    loaded.expect("it was saved");
    let timer = map.values().find(|&&it| it != owner);
    *timer.expect("it has a timer")
}

fn assert_ends_in_20_ms<C: Component>(app: &mut App, hero: Entity) {
    advance_ms(app, 19);
    assert!(app.world().entity(hero).contains::<C>(), "too early");
    advance_ms(app, 1);
    assert!(!app.world().entity(hero).contains::<C>(), "too late");
    assert_eq!(timers_of(app, hero), 0);
}

fn timers_of(app: &mut App, entity: Entity) -> usize {
    app.world_mut()
        .with_timers(|timers| timers.of(entity).count())
}

#[test]
fn a_loaded_timer_removes_a_component_that_is_registered() {
    let saved = saved_limit(Shield(1));
    let (mut app, hero) = hero_app(Shield(1));
    app.register_type::<Shield>();
    load(&mut app, hero, &saved);
    assert_ends_in_20_ms::<Shield>(&mut app, hero);
    assert_eq!(errors(), [""; 0]);
}

#[test]
fn a_loaded_timer_removes_a_generic_component() {
    let saved = saved_limit(Buff((Fire, 1_u8)));
    let (mut app, hero) = hero_app(Buff((Fire, 2_u8)));
    let other = Buff((2_u8, Fire));
    app.register_type::<Buff<(Fire, u8)>>()
        .register_type::<Buff<(u8, Fire)>>();
    app.world_mut().entity_mut(hero).insert(other);
    load(&mut app, hero, &saved);
    assert_ends_in_20_ms::<Buff<(Fire, u8)>>(&mut app, hero);
    assert!(app.world().entity(hero).contains::<Buff<(u8, Fire)>>());
    assert_eq!(errors(), [""; 0]);
}

#[test]
fn a_loaded_timer_removes_a_component_that_had_a_limit_before() {
    let saved = saved_limit(Shield(1));
    let (mut app, hero) = hero_app(Shield(1));
    let other = app.world_mut().spawn_empty().id();
    app.world_mut()
        .entity_mut(other)
        .insert_for(ms(5), Shield(2));
    load(&mut app, hero, &saved);
    assert_ends_in_20_ms::<Shield>(&mut app, hero);
    assert_eq!(errors(), [""; 0]);
}

#[test]
fn removing_the_component_ends_its_loaded_timer() {
    let saved = saved_limit(Shield(1));
    let (mut app, hero) = hero_app(Shield(1));
    app.register_type::<Shield>();
    load(&mut app, hero, &saved);
    app.world_mut().entity_mut(hero).remove::<Shield>();
    assert_eq!(timers_of(&mut app, hero), 0);
    app.world_mut().entity_mut(hero).insert(Shield(2));
    advance_ms(&mut app, 50);
    assert!(app.world().entity(hero).contains::<Shield>());
}

#[test]
fn inserted_again_a_loaded_limit_is_extended() {
    let saved = saved_limit(Shield(1));
    let (mut app, hero) = hero_app(Shield(1));
    app.register_type::<Shield>();
    load(&mut app, hero, &saved);
    advance_ms(&mut app, 10);
    app.world_mut()
        .entity_mut(hero)
        .insert_for(ms(20), Shield(3));
    assert_eq!(timers_of(&mut app, hero), 1);
    assert_ends_in_20_ms::<Shield>(&mut app, hero);
}

#[test]
fn an_unknown_component_is_reported_once_when_its_timer_is_loaded() {
    let saved = saved_limit(Shield(1));
    let (mut app, hero) = hero_app(Shield(1));
    load(&mut app, hero, &saved);
    let reports = errors();
    assert_eq!(reports.len(), 1, "{reports:?}");
    for part in [
        type_name::<Shield>(),
        "register_type",
        "#[reflect(Component)]",
    ] {
        assert!(
            reports[0].contains(part),
            "{:?} should contain {part:?}",
            reports[0]
        );
    }
    advance_ms(&mut app, 50);
    assert_eq!(timers_of(&mut app, hero), 0);
    assert!(app.world().entity(hero).contains::<Shield>());
    assert_eq!(errors(), [""; 0]);
}

#[test]
fn a_type_that_is_not_registered_as_a_component_is_unknown() {
    let saved = saved_limit(NotReflectedAsComponent);
    let (mut app, hero) = hero_app(NotReflectedAsComponent);
    app.register_type::<NotReflectedAsComponent>();
    load(&mut app, hero, &saved);
    let reports = errors();
    assert_eq!(reports.len(), 1, "{reports:?}");
    assert!(reports[0].contains("#[reflect(Component)]"), "{reports:?}");
}

#[test]
fn a_component_may_become_known_until_its_time_is_over() {
    for is_registered in [false, true] {
        let saved = saved_limit(Shield(1));
        let (mut app, hero) = hero_app(Shield(1));
        load(&mut app, hero, &saved);
        assert_eq!(errors().len(), 1);
        if is_registered {
            app.register_type::<Shield>();
        } else {
            let other = app.world_mut().spawn_empty().id();
            app.world_mut()
                .entity_mut(other)
                .insert_for(ms(5), Shield(2));
        }
        assert_ends_in_20_ms::<Shield>(&mut app, hero);
        assert_eq!(errors(), [""; 0]);
    }
}

#[test]
fn the_action_of_a_limit_is_data() {
    let mut app = app();
    let mut hero = app.world_mut().spawn_empty();
    hero.insert_for(ms(20), Shield(1));
    let mut actions = app.world_mut().query::<&TimerAction>();
    let action = actions.single(app.world()).expect("there is one timer");
    assert_eq!(format!("{action:?}"), "TimerAction(despawn)");
}

#[test]
fn a_loaded_limit_survives_cancel_timers_and_is_not_announced_to_its_owner() {
    let saved = saved_limit(Shield(1));
    let (mut app, hero) = hero_app(Shield(1));
    app.register_type::<Shield>().init_resource::<Announced>();
    app.world_mut()
        .entity_mut(hero)
        .observe(|_: On<OwnedTimerFired>, mut announced: ResMut<Announced>| announced.0 += 1);
    load(&mut app, hero, &saved);
    let plain = (OwnedBy(hero), Timer::after(ms(10)));
    app.world_mut().spawn(plain.clone());
    app.world_mut().entity_mut(hero).cancel_timers();
    assert_eq!(timers_of(&mut app, hero), 1);
    app.world_mut().spawn(plain);
    assert_ends_in_20_ms::<Shield>(&mut app, hero);
    assert_eq!(app.world().resource::<Announced>().0, 1, "the plain timer");
}

/// The number of events for the owner of a timer.
#[derive(Resource, Default)]
struct Announced(u32);

#[derive(Message, Clone, Copy)]
struct Question;

#[derive(Message, Clone, Copy)]
struct Answer;

/// The completed requests, with `true` for an answer.
#[derive(Component, Default)]
struct Told(Vec<(Request, bool)>);

/// A request without a reply yet.
#[derive(Component)]
struct Waiting(ReplyTo);

/// Returns an app with an entity that can ask, and one that keeps the request for later.
fn question_app() -> (App, Entity, Entity) {
    fn tell(mut me: MessageContext, is_answer: bool) {
        let request = me.request().expect("it completes a request");
        let mut told = me.entity.get_mut::<Told>().expect("it asks");
        told.0.push((request, is_answer));
    }

    let asking = MessageComponent::new()
        .on(|me: MessageContext, _: &Answer| tell(me, true))
        .on(|me: MessageContext, _: &NoAnswer| tell(me, false));
    let (mut app, me) = hero_app((Told::default(), asking));
    let waiting = MessageComponent::new().on(|mut me: MessageContext, _: &Question| {
        let reply_to = me.reply_to().expect("it is a request").clone();
        let asked = me.entity.id();
        me.commands.entity(asked).insert(Waiting(reply_to));
    });
    let asked = app.world_mut().spawn(waiting).id();
    (app, me, asked)
}

/// Makes a request for 20 ms in a new app, and saves it together with the way back to it.
fn saved_request() -> (Saved, Request, ReplyTo) {
    let (mut app, me, asked) = question_app();
    let mut commands = app.world_mut().commands();
    let until = Timer::after(ms(20));
    let request = commands.entity(me).ask(asked, Question, until);
    advance_ms(&mut app, 0);
    let saved = save_timer(&mut app, me);
    let waiting = app.world().get::<Waiting>(asked).expect("it was asked");
    (saved, request, waiting.0.clone())
}

#[test]
fn a_loaded_request_times_out_once() {
    let (saved, ..) = saved_request();
    let (mut app, me, _) = question_app();
    let request = load(&mut app, me, &saved);
    advance_ms(&mut app, 19);
    let told = &app.world().get::<Told>(me).expect("it asks").0;
    assert_eq!(told.len(), 0, "too early");
    for millis in [1, 30] {
        advance_ms(&mut app, millis);
    }
    let told = &app.world().get::<Told>(me).expect("it asks").0;
    let told: Vec<_> = told
        .iter()
        .map(|(request, is_answer)| (request.entity(), *is_answer))
        .collect();
    assert_eq!(told, [(Some(request), false)]);
    assert_eq!(timers_of(&mut app, me), 0);
    assert_eq!(errors(), [""; 0]);
}

#[test]
fn a_loaded_request_takes_a_reply() {
    let (saved, request, reply_to) = saved_request();
    let (mut app, me, _) = question_app();
    let loaded = load(&mut app, me, &saved);
    // The two worlds were made alike. A save game would map the entity.
    assert_eq!(request.entity(), Some(loaded));
    app.world_mut().commands().reply(reply_to, Answer);
    for _ in 0..3 {
        advance_ms(&mut app, 20);
    }
    let told = &app.world().get::<Told>(me).expect("it asks").0;
    assert_eq!(told[..], [(request, true)]);
    assert_eq!(errors(), [""; 0]);
}

/// Returns the requests that an entity knows to be over, with `true` for an answer.
fn told(app: &App, entity: Entity) -> Vec<(Option<Entity>, bool)> {
    let told = &app.world().get::<Told>(entity).expect("it asks").0;
    let told = told.iter();
    told.map(|&(request, is_answer)| (request.entity(), is_answer))
        .collect()
}

/// Makes three requests of which two have timed out, and saves the world before anybody knows.
fn saved_between_time_out_and_no_answer() -> (SavedTimers, [Entity; 2], [Entity; 3]) {
    let (mut app, me, asked) = question_app();
    let mut commands = app.world_mut().commands();
    let mut me_asks = commands.entity(me);
    let mut ask = |millis| me_asks.ask(asked, Question, Timer::after(ms(millis)));
    let requests = [ask(20), ask(10), ask(500)];
    let requests = requests.map(|request| request.entity().expect("it was made here"));
    advance_ms(&mut app, 0);
    let forwarded = app.world_mut().fast_forward(ClockId::Virtual, ms(30));
    forwarded.expect("the clock exists");
    let saved = app.world_mut().save_timers().expect("a request is data");
    advance_ms(&mut app, 0);
    let [first, second, _] = requests.map(Some);
    assert_eq!(told(&app, me), [(second, false), (first, false)]);
    (saved, [me, asked], requests)
}

#[test]
fn a_request_that_was_saved_between_its_time_out_and_no_answer_completes_once() {
    let (saved, [me, asked], requests) = saved_between_time_out_and_no_answer();
    let (mut app, me_there, asked_there) = question_app();
    // It completes even while it is paused, because nothing has to fire.
    app.world_mut().entity_mut(me_there).insert(Paused);
    let mut entities = EntityHashMap::from_iter([(me, me_there), (asked, asked_there)]);
    let loaded = app.world_mut().load_timers(&saved, &mut entities);
    loaded.expect("the data should be valid");
    let [first, second, third] = requests.map(|request| Some(entities[&request]));
    for _ in 0..3 {
        advance_ms(&mut app, 0);
        let told = told(&app, me_there);
        assert_eq!(told, [(second, false), (first, false)], "in this order");
    }
    app.world_mut().entity_mut(me_there).remove::<Paused>();
    for millis in [469, 1] {
        let open = app.world().get::<Owned>(me_there).map(Owned::len);
        assert_eq!(open, Some(1), "the third is open");
        advance_ms(&mut app, millis);
    }
    let told = told(&app, me_there);
    assert_eq!(told, [(second, false), (first, false), (third, false)]);
}

#[test]
fn a_request_that_never_times_out_stays_open_after_loading() {
    let (mut app, me, asked) = question_app();
    let mut commands = app.world_mut().commands();
    let never = Timer::after(Duration::MAX);
    commands.entity(me).ask(asked, Question, never);
    advance_ms(&mut app, 0);
    let saved = app.world_mut().save_timers().expect("a request is data");
    let (mut app, me_there, asked_there) = question_app();
    let mut entities = EntityHashMap::from_iter([(me, me_there), (asked, asked_there)]);
    let loaded = app.world_mut().load_timers(&saved, &mut entities);
    loaded.expect("the data should be valid");
    for _ in 0..3 {
        advance_ms(&mut app, 20);
    }
    assert_eq!(told(&app, me_there), []);
}
