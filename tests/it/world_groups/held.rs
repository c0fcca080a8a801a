//! Worlds whose parcels and keys are held back.

use bevy_due::worlds::link::{Effect, PeerSettings};

use super::*;

/// An app in a group.
fn member(groups: &WorldGroups, group: &'static str) -> App {
    let mut app = App::new();
    app.add_plugins((TimePlugin, DuePlugin::default()));
    groups.add(group, &mut app);
    app
}

/// Holds what the world of an app does from now on.
fn hold(app: &App) -> Receiver<Effect> {
    let (hold, held) = mpsc::channel();
    let link = app.world().resource::<WorldLink>();
    link.hold(move |effect| _ = hold.send(effect));
    held
}

#[test]
fn others_see_a_parcel_and_a_key_when_they_are_released() {
    let groups = WorldGroups::new();
    let mut actor = member(&groups, "actors");
    let mut ears = member(&groups, "ears");
    let (hear, heard) = mpsc::channel();
    spawn_listener(hear)(ears.world_mut());
    let early = actor.world_mut().spawn(StableKey(1)).id();
    let held = hold(&actor);

    let world = actor.world_mut();
    let late = world.spawn(StableKey(2)).id();
    let mut commands = world.commands();
    commands.post(say("ears", Delivery::InTurn, 1));
    commands.entity(early).despawn();
    commands.post(say("ears", Delivery::InTurn, 2));
    world.flush();
    world.despawn(late);

    let reaches = |key: u64| groups.post(say("actors", StableKey(key), 0)).is_ok();
    let mut hears = || {
        ears.update();
        heard.try_recv().ok().map(|(_, what)| what)
    };
    assert!(reaches(1) && !reaches(2));
    assert_eq!(hears(), None);
    let mut effects = held.try_iter();
    let mut next = || effects.next().expect("it was held");
    let bound = next();
    let (address, is_bound) = bound.address().unwrap();
    assert_eq!(
        (&*address.group, address.key.0, is_bound),
        ("actors", 2, true)
    );
    assert!(bound.parcel().is_none());
    bound.release();
    assert!(reaches(2));
    let parcel = next();
    assert_eq!(parcel.parcel(), Some(&say("ears", Delivery::InTurn, 1)));
    assert!(parcel.address().is_none());
    parcel.release();
    assert_eq!(hears(), Some(1));
    assert!(reaches(1));
    next().release();
    assert!(!reaches(1));
    // What is dropped never happens.
    drop(next());
    assert_eq!(hears(), None);
    next().release();
    assert!(!reaches(2));
    assert!(held.try_recv().is_err());
}

#[test]
fn the_last_effects_of_a_world_outlive_it() {
    let groups = WorldGroups::new();
    let actor = member(&groups, "actors");
    let mut ears = member(&groups, "ears");
    let (hear, heard) = mpsc::channel();
    spawn_listener(hear)(ears.world_mut());
    let held = hold(&actor);
    let link = actor.world().resource::<WorldLink>();
    link.post(say("ears", Delivery::All, 1)).unwrap();
    drop(actor);
    assert_eq!(groups.running("actors"), 0);
    held.try_iter().for_each(Effect::release);
    ears.update();
    assert_eq!(heard.try_recv().map(|(_, what)| what), Ok(1));
}

/// An entity that tells how its requests end.
fn asker(tell: Sender<Result<u32, NoAnswer>>) -> impl Bundle {
    let told = tell.clone();
    let ends = MessageComponent::new()
        .on_packet(ANSWER, move |_: MessageContext, answer: &Packet| {
            tell.send(Ok(read(answer))).ok();
        })
        .on(move |_: MessageContext, no_answer: &NoAnswer| {
            told.send(Err(*no_answer)).ok();
        });
    (StableKey(7), ends)
}

fn ask(app: &mut App, asker: Entity) {
    let question = Parcel::new("answerers", Delivery::InTurn, number(QUESTION, 21));
    let until = Timer::after(3600.0);
    let mut commands = app.world_mut().commands();
    commands.entity(asker).ask_world(question, until);
    app.world_mut().flush();
}

#[test]
fn a_request_that_is_refused_on_release_completes() {
    let groups = WorldGroups::new();
    let mut app = member(&groups, "askers");
    let (tell, told) = mpsc::channel();
    let asker = app.world_mut().spawn(asker(tell)).id();
    let held = hold(&app);
    ask(&mut app, asker);
    app.update();
    assert!(told.try_recv().is_err());
    held.try_iter().for_each(Effect::release);
    app.update();
    app.update();
    let refused = NoAnswer::Refused(RefusalReason::UnknownGroup);
    assert_eq!(told.try_recv(), Ok(Err(refused)));
}

#[test]
fn a_request_that_was_held_fails_when_its_process_goes() {
    let [here, there] = [WorldGroups::new(), WorldGroups::new()];
    let _answerer = member(&there, "answerers");
    let mut app = member(&here, "askers");
    let (tell, told) = mpsc::channel();
    let asker = app.world_mut().spawn(asker(tell)).id();
    let held = hold(&app);
    let settings = PeerSettings::default();
    let [one, other] =
        [(&here, "b"), (&there, "a")].map(|(groups, name)| groups.handle().connect(name, settings));
    // Each end sends what it has, until the first knows the world of the other.
    while here.running("answerers") == 0 {
        other.receive(&one.next_batch().unwrap()).unwrap();
        one.receive(&other.next_batch().unwrap()).unwrap();
    }
    ask(&mut app, asker);
    held.try_iter().for_each(Effect::release);
    app.update();
    assert!(told.try_recv().is_err());
    one.disconnected();
    app.update();
    app.update();
    let lost = NoAnswer::Refused(RefusalReason::PeerLost);
    assert_eq!(told.try_recv(), Ok(Err(lost)));
}

#[test]
#[should_panic = "only once"]
fn a_world_is_held_only_once() {
    let app = member(&WorldGroups::new(), "actors");
    let _held = [hold(&app), hold(&app)];
}
