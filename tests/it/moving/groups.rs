//! Moves between worlds of a group: the stable key moves along, and so does what was sent to it before.

use core::{
    sync::atomic::{AtomicU32, AtomicUsize, Ordering},
    time::Duration,
};
use std::{
    sync::{
        Arc, Mutex,
        mpsc::{self, Sender},
    },
    thread,
};

use bevy_due::{
    DuePlugin, Timer,
    message::{MessageEntityCommandsExt, MessageWorldExt},
    moving::TimePassed,
    rollback::RollbackWorldExt,
    worlds::{
        LoopInterval, Parcel, ParcelCommandsExt, ParcelEntityCommandsExt, StableKey, WorldGroups,
    },
};
use bevy_ecs::error::{BevyError, ErrorContext, FallbackErrorHandler};

use super::*;

const HERO: StableKey = StableKey(7);

/// Returns `true` for the warning that a type of these tests has no codec.
fn is_expected(error: &BevyError) -> bool {
    let text = error.to_string();
    text.contains("`it::moving::Look` have no codec")
}

/// Fails a test on any other warning, such as one about a key that two worlds have.
fn panic_on_warning(error: BevyError, context: ErrorContext) {
    assert!(is_expected(&error), "{error} in {context}");
}

/// An app that is a member of a group.
fn member(groups: &WorldGroups, group: &'static str) -> App {
    let mut app = zone();
    app.insert_resource(FallbackErrorHandler(panic_on_warning));
    groups.add(group, &mut app);
    app
}

fn post(groups: &WorldGroups, nth: u8) {
    let posted = groups.post(Parcel::new("zones", HERO, note(nth)));
    posted.expect("a world has the key");
}

#[test]
fn parcels_before_a_move_go_along_and_parcels_on_the_way_are_refused() {
    let groups = WorldGroups::new();
    let [mut forest, mut town] = [(); 2].map(|()| member(&groups, "zones"));
    let hero = forest.world_mut().spawn((ears(), HERO)).id();
    post(&groups, 1);
    advance_ms(&mut forest, 0);
    assert_eq!(heard(&mut forest, hero), [1]);
    post(&groups, 2);
    let moved = take(&mut forest, hero);
    let parcel = Parcel::new("zones", HERO, note(3));
    let refused = groups.post(parcel.clone()).expect_err("nobody has the key");
    assert_eq!(refused.parcel, parcel, "it can be sent again");
    let here = put(&mut town, moved, 0);
    post(&groups, 4);
    for app in [&mut forest, &mut town] {
        advance_ms(app, 0);
        assert_eq!(app.world().resource::<MessageStats>().undeliverable, 0);
    }
    assert_eq!(heard(&mut town, here), [2, 4]);
}

#[test]
fn a_request_to_an_entity_on_the_way_is_refused_at_once() {
    let groups = WorldGroups::new();
    let mut forest = member(&groups, "zones");
    let mut library = member(&groups, "library");
    let sage = forest.world_mut().spawn((thinker(), HERO)).id();
    let asker = library.world_mut().spawn((ears(), StableKey(2))).id();
    let moved = take(&mut forest, sage);
    let question = Parcel::new("zones", HERO, Packet::new(QUESTION, []));
    let mut commands = library.world_mut().commands();
    commands
        .entity(asker)
        .ask_world(question, Timer::after(ms(1000)));
    advance_ms(&mut library, 0);
    advance_ms(&mut library, 0);
    assert_eq!(told(&library, asker), [None], "long before its time-out");
    put(&mut forest, moved, 0);
}

#[test]
fn an_entity_that_cannot_leave_still_gets_its_parcels() {
    let groups = WorldGroups::new();
    let mut forest = member(&groups, "zones");
    let hero = forest.world_mut().spawn((ears(), HERO)).id();
    let look = forest.world_mut().send(hero, Look(1));
    look.expect("there is room");
    let refused = forest.world_mut().take_entity(hero);
    assert!(matches!(refused, Err(MoveError::Mail(_))), "{refused:?}");
    post(&groups, 2);
    advance_ms(&mut forest, 0);
    assert_eq!(heard(&mut forest, hero), [201, 2]);
}

#[test]
fn a_key_that_is_taken_is_refused() {
    let groups = WorldGroups::new();
    let [mut forest, mut town] = [(); 2].map(|()| member(&groups, "zones"));
    let hero = forest.world_mut().spawn((ears(), HERO)).id();
    let moved = take(&mut forest, hero);
    let here = put(&mut town, moved.clone(), 0);
    let mut map = EntityHashMap::default();
    let again = town.world_mut().put_entity(moved, ms(0), &mut map);
    let taken = MoveError::KeyInUse {
        key: HERO.0,
        entity: here,
    };
    assert_eq!(again.expect_err("it is here").reason, taken);
    assert!(map.is_empty());
}

#[test]
fn of_two_entities_with_one_key_the_second_is_refused() {
    let groups = WorldGroups::new();
    let [mut forest, mut farm] = ["forest", "farm"].map(|group| member(&groups, group));
    let mut town = member(&groups, "zones");
    farm.world_mut().spawn_empty();
    let moved = [&mut forest, &mut farm].map(|zone| {
        let hero = zone.world_mut().spawn((ears(), HERO)).id();
        (take(zone, hero), TimePassed::default())
    });
    let mut map = EntityHashMap::default();
    let put = town.world_mut().put_entities(moved.into(), &mut map);
    let [Ok(here), Err(refused)] = &put[..] else {
        panic!("the first comes: {put:?}")
    };
    let (key, entity) = (HERO.0, *here);
    assert_eq!(refused.reason, MoveError::KeyInUse { key, entity });
}

fn ask_world(app: &mut App, asker: Entity, group: &'static str) {
    let question = Parcel::new(group, Delivery::All, Packet::new(QUESTION, []));
    let mut commands = app.world_mut().commands();
    commands
        .entity(asker)
        .ask_world(question, Timer::after(ms(1000)));
    app.world_mut().flush();
}

#[test]
fn a_reply_from_another_world_finds_the_entity_after_any_number_of_moves() {
    for moves in 0..=4 {
        let groups = WorldGroups::new();
        let mut zones = [(); 2].map(|()| member(&groups, "zones"));
        let mut library = member(&groups, "library");
        let sage = library.world_mut().spawn(thinker()).id();
        let mut hero = zones[0].world_mut().spawn((ears(), HERO)).id();
        ask_world(&mut zones[0], hero, "library");
        advance_ms(&mut library, 0);
        for _ in 0..moves {
            let [forest, town] = &mut zones;
            hero = carry(forest, hero, town);
            zones.swap(0, 1);
        }
        reply_all(&mut library, sage, 9);
        for app in &mut zones {
            advance_ms(app, 10);
        }
        assert_eq!(told(&zones[0], hero), [Some(9)], "after {moves} moves");
        advance_ms(&mut zones[0], 5000);
        advance_ms(&mut zones[0], 0);
        assert_eq!(told(&zones[0], hero), [Some(9)], "once");
    }
}

#[test]
fn a_reply_from_another_world_finds_a_request_that_a_restore_has_spawned_again() {
    for moves in 0..=1 {
        let groups = WorldGroups::new();
        let mut zones = [(); 2].map(|()| member(&groups, "zones"));
        let mut library = member(&groups, "library");
        let sage = library.world_mut().spawn(thinker()).id();
        let mut hero = zones[0].world_mut().spawn((ears(), HERO)).id();
        ask_world(&mut zones[0], hero, "library");
        advance_ms(&mut library, 0);
        for _ in 0..moves {
            let [forest, town] = &mut zones;
            hero = carry(forest, hero, town);
            zones.swap(0, 1);
        }
        let [zone, _] = &mut zones;
        let kept = library.world().get::<Kept>(sage).expect("it keeps");
        let kept = kept.0.clone();
        let snapshot = zone.world_mut().snapshot_timers();
        for nth in 1..=3 {
            reply_all(&mut library, sage, 9);
            advance_ms(zone, 10);
            assert_eq!(told(zone, hero), [Some(9)], "reply {nth}, {moves} moves");
            let mut map = EntityHashMap::default();
            zone.world_mut().restore_timers(&snapshot, &mut map);
            zone.world_mut().entity_mut(hero).insert(Told::default());
            library
                .world_mut()
                .entity_mut(sage)
                .insert(Kept(kept.clone()));
        }
    }
}

#[test]
fn a_request_that_waits_for_the_entity_is_answered_from_its_new_place() {
    let groups = WorldGroups::new();
    let [mut forest, mut town] = [(); 2].map(|()| member(&groups, "zones"));
    let mut library = member(&groups, "library");
    let sage = forest.world_mut().spawn(thinker()).id();
    let near = forest.world_mut().spawn((ears(), StableKey(1))).id();
    let far = library.world_mut().spawn((ears(), StableKey(2))).id();
    let until = Timer::after(ms(1000));
    let mut commands = forest.world_mut().commands();
    let question = Packet::new(QUESTION, []);
    commands.entity(near).ask(sage, question, until);
    ask_world(&mut library, far, "zones");
    let moved = take(&mut forest, sage);
    let here = put_with(&mut town, moved, 0, &mut EntityHashMap::default());
    town.world_mut().entity_mut(here).insert(thinker());
    advance_ms(&mut town, 0);
    reply_all(&mut town, here, 5);
    for app in [&mut forest, &mut library] {
        advance_ms(app, 0);
    }
    assert_eq!(told(&forest, near), [Some(5)]);
    assert_eq!(
        told(&library, far),
        [Some(5)],
        "it was sent to all of the zones"
    );
}

#[test]
fn a_request_by_key_from_another_world_moves_on_with_its_way_back() {
    let groups = WorldGroups::new();
    let [mut forest, mut town] = [(); 2].map(|()| member(&groups, "zones"));
    let mut library = member(&groups, "library");
    let sage = forest.world_mut().spawn((thinker(), HERO)).id();
    let far = library.world_mut().spawn((ears(), StableKey(2))).id();
    let question = Parcel::new("zones", HERO, Packet::new(QUESTION, []));
    let mut commands = library.world_mut().commands();
    commands
        .entity(far)
        .ask_world(question, Timer::after(ms(1000)));
    library.world_mut().flush();
    let moved = take(&mut forest, sage);
    let here = put_with(&mut town, moved, 0, &mut EntityHashMap::default());
    town.world_mut().entity_mut(here).insert(thinker());
    advance_ms(&mut town, 0);
    reply_all(&mut town, here, 6);
    advance_ms(&mut library, 0);
    assert_eq!(told(&library, far), [Some(6)]);
}

#[test]
fn two_worlds_with_the_same_entity_are_warned() {
    static WARNINGS: AtomicUsize = AtomicUsize::new(0);
    let groups = WorldGroups::new();
    let [mut forest, mut town] = [(); 2].map(|()| member(&groups, "zones"));
    town.insert_resource(FallbackErrorHandler(|error, _| {
        WARNINGS.fetch_add(usize::from(!is_expected(&error)), Ordering::Relaxed);
    }));
    let hero = forest.world_mut().spawn((ears(), HERO)).id();
    let copy = forest.world_mut().copy_entities(&[hero]).remove(0);
    put(&mut town, copy.expect("it is data"), 0);
    advance_ms(&mut town, 0);
    assert_eq!(WARNINGS.load(Ordering::Relaxed), 1);
}

#[test]
fn an_entity_with_a_key_moves_without_a_group_too() {
    let (mut forest, mut town) = (zone(), zone());
    WorldGroups::new().add("zones", &mut town);
    let hero = forest.world_mut().spawn((ears(), HERO)).id();
    let here = carry(&mut forest, hero, &mut town);
    assert_eq!(town.world().get::<StableKey>(here), Some(&HERO));
}

const LEAVE: u32 = 10;
const ARRIVE: u32 = 11;

/// What a hero reports: the poster, and the number of the parcel.
type Report = Sender<(u32, u32)>;

fn reporting(report: Report) -> MessageComponent {
    MessageComponent::new().on_packet(NOTE, move |_, note| {
        let (poster, nth) = note.payload().split_at(4);
        let [poster, nth] =
            [poster, nth].map(|number| u32::from_le_bytes(number.try_into().expect("four bytes")));
        report.send((poster, nth)).ok();
    })
}

/// Builds a world whose gate sends the hero to the gate of the other world.
fn gated(
    own: u64,
    other: u64,
    to_test: (Report, Sender<()>),
    starts_here: bool,
) -> impl Fn(&mut App) + Send + Sync {
    let to_test = Mutex::new(to_test);
    move |app| {
        let (report, arrived) = to_test.lock().expect("no panic").clone();
        app.add_plugins(DuePlugin::default())
            .insert_resource(LoopInterval::Every(Duration::from_secs(3600)));
        if starts_here {
            app.world_mut().spawn((HERO, reporting(report.clone())));
        }
        let gate = MessageComponent::new()
            .on_packet(LEAVE, move |mut me, _| {
                me.commands.queue(move |world: &mut World| -> Result {
                    let mut keys = world.query::<(Entity, &StableKey)>();
                    let hero = keys.iter(world).find(|&(_, key)| *key == HERO);
                    let (hero, _) = hero.ok_or("no hero")?;
                    let moved = ron::to_string(&world.take_entity(hero)?)?;
                    let packet = Packet::new(ARRIVE, moved.into_bytes());
                    world
                        .commands()
                        .post(Parcel::new("zones", StableKey(other), packet));
                    Ok(())
                });
            })
            .on_packet(ARRIVE, move |mut me, packet| -> Result {
                let moved: MovedEntity = ron::de::from_bytes(packet.payload())?;
                let (report, arrived) = (report.clone(), arrived.clone());
                me.commands.queue(move |world: &mut World| -> Result {
                    let mut map = EntityHashMap::default();
                    let hero = world.put_entity(moved, Duration::ZERO, &mut map)?;
                    world.entity_mut(hero).insert(reporting(report));
                    arrived.send(()).ok();
                    Ok(())
                });
                Ok(())
            });
        app.world_mut().spawn((StableKey(own), gate));
    }
}

/// A parcel that is refused while the entity is on its way is sent again. One that was taken is delivered.
#[test]
fn worlds_on_threads_lose_and_reorder_no_parcel_while_an_entity_moves_to_and_fro() {
    const POSTERS: u32 = 3;
    const MOVES: u32 = 40;
    const NOTES: u32 = 100;
    let (report, reports) = mpsc::channel();
    let (arrived, arrivals) = mpsc::channel();
    let mut groups = WorldGroups::new();
    for (own, other, starts_here) in [(1, 2, true), (2, 1, false)] {
        let build = gated(own, other, (report.clone(), arrived.clone()), starts_here);
        groups.start("zones", 1, build).expect("the world starts");
    }
    drop(report);
    let handle = groups.handle();
    let moves = Arc::new(AtomicU32::new(0));
    let posters = (0..POSTERS).map(|poster| {
        let (handle, moves) = (handle.clone(), moves.clone());
        thread::spawn(move || {
            for nth in 0..MOVES * NOTES {
                // As many notes in each move, so that no inbox is full.
                while nth >= (moves.load(Ordering::Relaxed) + 1) * NOTES {
                    thread::yield_now();
                }
                let payload = [poster.to_le_bytes(), nth.to_le_bytes()].concat();
                let mut parcel = Parcel::new("zones", HERO, Packet::new(NOTE, payload));
                while let Err(refused) = handle.post(parcel) {
                    parcel = refused.parcel;
                    thread::yield_now();
                }
            }
        })
    });
    let posters: Vec<_> = posters.collect();
    for nth in 0..MOVES {
        let gate = StableKey(1 + u64::from(nth % 2));
        let leave = Parcel::new("zones", gate, Packet::new(LEAVE, []));
        handle.post(leave).expect("the gate is there");
        let arrived = arrivals.recv_timeout(Duration::from_secs(60));
        arrived.expect("it should arrive");
        moves.fetch_add(1, Ordering::Relaxed);
    }
    for poster in posters {
        poster.join().expect("no panic");
    }
    let sent = [MOVES * NOTES; POSTERS as usize];
    let mut heard = [0; POSTERS as usize];
    while heard != sent {
        let (poster, nth) = reports
            .recv_timeout(Duration::from_secs(60))
            .unwrap_or_else(|_| panic!("parcels are missing: {heard:?} of {sent:?}"));
        assert_eq!(nth, heard[poster as usize], "of poster {poster}: {heard:?}");
        heard[poster as usize] += 1;
    }
    for report in groups.stop() {
        assert!(report.panic.is_none(), "{report:?}");
        assert!(report.undelivered.is_empty(), "{report:?}");
    }
}

#[test]
fn a_request_does_not_get_the_name_of_an_open_one() {
    let groups = WorldGroups::new();
    let mut forest = member(&groups, "zones");
    let hero = forest.world_mut().spawn(ears()).id();
    let mut commands = forest.world_mut().commands();
    let question = Packet::new(QUESTION, []);
    let until = Timer::after(ms(1000));
    let request = commands
        .entity(hero)
        .ask(Entity::PLACEHOLDER, question, until);
    forest.world_mut().flush();
    let copy = forest.world_mut().copy_entities(&[hero]).remove(0);
    let mut map = EntityHashMap::default();
    let world = forest.world_mut();
    let again = world.put_entity(copy.expect("it is data"), ms(0), &mut map);
    let request = request.entity().expect("it was made here");
    let invalid = MoveError::InvalidRequest(request);
    assert_eq!(again.expect_err("it is open here").reason, invalid);
}
