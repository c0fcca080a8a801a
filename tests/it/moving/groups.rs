//! Moves between worlds of a group: the stable key moves along, and so does what is sent to it.

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
    message::{MessageCommandsExt, MessageEntityCommandsExt, MessageWorldExt},
    rollback::RollbackWorldExt,
    worlds::{
        LoopInterval, Parcel, ParcelCommandsExt, ParcelEntityCommandsExt, StableKey, WorldGroups,
    },
};
use bevy_ecs::error::{BevyError, ErrorContext, FallbackErrorHandler};

use super::*;

const HERO: StableKey = StableKey(7);

/// Fails a test on any warning, such as one about a key that two worlds have.
fn panic_on_warning(error: BevyError, context: ErrorContext) {
    panic!("{error} in {context}");
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
fn parcels_to_the_key_are_neither_lost_nor_reordered() {
    let groups = WorldGroups::new();
    let [mut forest, mut town] = [(); 2].map(|()| member(&groups, "zones"));
    let hero = forest.world_mut().spawn((ears(), HERO)).id();
    post(&groups, 1);
    advance_ms(&mut forest, 0);
    assert_eq!(heard(&mut forest, hero), [1]);

    post(&groups, 2);
    let moved = export(&mut forest, hero);
    post(&groups, 3);
    advance_ms(&mut forest, 0);
    post(&groups, 4);
    let here = import(&mut town, &moved, 0);
    post(&groups, 5);
    for app in [&mut forest, &mut town] {
        advance_ms(app, 0);
    }
    let late = forget(&mut forest, hero);
    post(&groups, 6);
    advance_ms(&mut town, 0);
    commit(&mut town, here, &late);
    post(&groups, 7);
    advance_ms(&mut town, 0);
    assert_eq!(heard(&mut town, here), [2, 3, 4, 5, 6, 7]);
    advance_ms(&mut forest, 0);
    for app in [&forest, &town] {
        assert_eq!(app.world().resource::<MessageStats>().undeliverable, 0);
    }
}

#[test]
fn the_key_goes_back_when_the_old_world_keeps_the_entity() {
    let groups = WorldGroups::new();
    let [mut forest, mut town] = [(); 2].map(|()| member(&groups, "zones"));
    let hero = forest.world_mut().spawn((ears(), HERO)).id();
    let moved = export(&mut forest, hero);
    let here = import(&mut town, &moved, 0);
    post(&groups, 1);
    let back = forget(&mut town, here);
    post(&groups, 2);
    commit(&mut forest, hero, &back);
    post(&groups, 3);
    advance_ms(&mut forest, 0);
    assert_eq!(heard(&mut forest, hero), [1, 2, 3]);
}

#[test]
fn parcels_come_back_in_the_order_of_sending() {
    // In which of the gaps between two parcels the old world runs a frame.
    for frames in 0..32 {
        let groups = WorldGroups::new();
        let [mut forest, mut town] = [(); 2].map(|()| member(&groups, "zones"));
        let hero = forest.world_mut().spawn((ears(), HERO)).id();
        let frame = |app: &mut App, nth: u8| {
            post(&groups, nth);
            if frames & (1 << nth) != 0 {
                advance_ms(app, 0);
            }
        };
        post(&groups, 0);
        let moved = export(&mut forest, hero);
        frame(&mut forest, 1);
        let here = import(&mut town, &moved, 0);
        frame(&mut forest, 2);
        let back = forget(&mut town, here);
        frame(&mut forest, 3);
        frame(&mut forest, 4);
        commit(&mut forest, hero, &back);
        post(&groups, 5);
        advance_ms(&mut forest, 0);
        assert_eq!(heard(&mut forest, hero), [0, 1, 2, 3, 4, 5], "{frames:b}");
        let stats = forest.world().resource::<MessageStats>();
        assert_eq!((stats.undeliverable, stats.late), (0, 0));
    }
}

#[test]
fn a_key_that_is_taken_is_refused() {
    let groups = WorldGroups::new();
    let [mut forest, mut town] = [(); 2].map(|()| member(&groups, "zones"));
    let hero = forest.world_mut().spawn((ears(), HERO)).id();
    let moved = export(&mut forest, hero);
    let here = import(&mut town, &moved, 0);
    let mut map = EntityHashMap::default();
    let again = town.world_mut().import_entity(&moved, ms(0), &mut map);
    let taken = MoveError::KeyInUse {
        key: HERO.0,
        entity: here,
    };
    assert_eq!(again.err(), Some(taken));
    assert!(map.is_empty());
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
fn a_reply_that_comes_during_a_move_is_held() {
    let groups = WorldGroups::new();
    let [mut forest, mut town] = [(); 2].map(|()| member(&groups, "zones"));
    let mut library = member(&groups, "library");
    let sage = library.world_mut().spawn(thinker()).id();
    let hero = forest.world_mut().spawn((ears(), HERO)).id();
    for _ in 0..2 {
        ask_world(&mut forest, hero, "library");
    }
    advance_ms(&mut library, 0);
    let moved = export(&mut forest, hero);
    let first = library
        .world_mut()
        .get_mut::<Kept>(sage)
        .expect("it keeps")
        .0
        .remove(0);
    let answer = Packet::new(ANSWER, [1]);
    library.world_mut().commands().reply(first, answer);
    library.world_mut().flush();
    let here = import(&mut town, &moved, 0);
    reply_all(&mut library, sage, 2);
    advance_ms(&mut town, 0);
    let late = forget(&mut forest, hero);
    assert_eq!(late.len(), 1, "the reply that came to the old world");
    commit(&mut town, here, &late);
    advance_ms(&mut town, 0);
    assert_eq!(told(&town, here), [Some(1), Some(2)]);
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
    let moved = export(&mut forest, sage);
    let mut map = EntityHashMap::default();
    let here = town.world_mut().import_entity(&moved, ms(0), &mut map);
    let here = here.expect("the data is valid");
    town.world_mut().entity_mut(here).insert(thinker());
    // The request from the library was sent to all, and is none of its mail.
    let late = forget(&mut forest, sage);
    commit(&mut town, here, &late);
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
    let moved = export(&mut forest, sage);
    let mut map = EntityHashMap::default();
    let here = town.world_mut().import_entity(&moved, ms(0), &mut map);
    let here = here.expect("the data is valid");
    town.world_mut().entity_mut(here).insert(thinker());
    let late = forget(&mut forest, sage);
    assert_eq!(late.len(), 1);
    commit(&mut town, here, &late);
    advance_ms(&mut town, 0);
    reply_all(&mut town, here, 6);
    advance_ms(&mut library, 0);
    assert_eq!(told(&library, far), [Some(6)]);
}

#[test]
fn two_worlds_that_keep_the_same_key_are_still_warned() {
    static WARNINGS: AtomicUsize = AtomicUsize::new(0);
    let groups = WorldGroups::new();
    let [mut forest, mut town] = [(); 2].map(|()| member(&groups, "zones"));
    town.insert_resource(FallbackErrorHandler(|_, _| {
        WARNINGS.fetch_add(1, Ordering::Relaxed);
    }));
    let hero = forest.world_mut().spawn((ears(), HERO)).id();
    let moved = export(&mut forest, hero);
    let here = import(&mut town, &moved, 0);
    commit(&mut town, here, &HeldMail::default());
    advance_ms(&mut town, 0);
    assert_eq!(WARNINGS.load(Ordering::Relaxed), 1, "not forgotten");
}

#[test]
fn a_key_that_goes_to_and_fro_leaves_the_room_for_messages_free() {
    const ROOM: u8 = 4;
    let groups = WorldGroups::new();
    let [mut forest, mut town] = [(); 2].map(|()| {
        let mut app = app_with(DuePlugin {
            mailbox_capacity: ROOM.into(),
            inbox_capacity: ROOM.into(),
            ..DuePlugin::default()
        });
        app.insert_resource(FallbackErrorHandler(|_, _| {}));
        groups.add("zones", &mut app);
        app
    });
    let [mut in_forest, in_town] =
        [&mut forest, &mut town].map(|app| app.world_mut().spawn(ears()).id());
    for frames in 0..20 {
        // Each note that another world has the key comes alone, or while its entity moves away.
        for (app, entity) in [(&mut forest, in_forest), (&mut town, in_town)] {
            app.world_mut().entity_mut(entity).remove::<StableKey>();
            app.world_mut().entity_mut(entity).insert(HERO);
        }
        if frames % 2 == 0 {
            export(&mut forest, in_forest);
            forget(&mut forest, in_forest);
            in_forest = forest.world_mut().spawn(ears()).id();
        }
        for app in [&mut forest, &mut town] {
            advance_ms(app, 0);
        }
        for (app, entity) in [(&mut forest, in_forest), (&mut town, in_town)] {
            let inbox = app.world_mut().message_sender();
            for nth in 0..ROOM {
                let sent = app.world_mut().send(entity, note(nth));
                assert_eq!(sent, Ok(()), "in frame {frames}");
                inbox.send(entity, note(nth)).expect("room in the inbox");
            }
            advance_ms(app, 0);
            assert_eq!(heard(app, entity).len(), 2 * usize::from(ROOM));
        }
    }
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
const ARRIVED: u32 = 12;
const LATE: u32 = 13;

/// The hero of a world, by its place in the move.
#[derive(Resource, Default)]
struct Hero(Option<Entity>);

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
    let to_other = move |id, data: String| {
        Parcel::new(
            "zones",
            StableKey(other),
            Packet::new(id, data.into_bytes()),
        )
    };
    let to_test = Mutex::new(to_test);
    move |app| {
        let (report, commit) = to_test.lock().expect("no panic").clone();
        app.add_plugins(DuePlugin::default())
            .insert_resource(LoopInterval::Every(Duration::from_secs(3600)))
            .init_resource::<Hero>();
        if starts_here {
            let hero = app
                .world_mut()
                .spawn((HERO, reporting(report.clone())))
                .id();
            app.insert_resource(Hero(Some(hero)));
        }
        let gate = MessageComponent::new()
            .on_packet(LEAVE, move |mut me, _| {
                me.commands.queue(move |world: &mut World| -> Result {
                    let hero = world.resource::<Hero>().0.ok_or("no hero")?;
                    let moved = world.export_entity(hero)?;
                    world
                        .commands()
                        .post(to_other(ARRIVE, ron::to_string(&moved)?));
                    Ok(())
                });
            })
            .on_packet(ARRIVE, move |mut me, packet| -> Result {
                let moved: MovedEntity = ron::de::from_bytes(packet.payload())?;
                let report = report.clone();
                me.commands.queue(move |world: &mut World| -> Result {
                    let mut map = EntityHashMap::default();
                    let hero = world.import_entity(&moved, Duration::ZERO, &mut map)?;
                    world.entity_mut(hero).insert(reporting(report));
                    world.insert_resource(Hero(Some(hero)));
                    world.commands().post(to_other(ARRIVED, String::new()));
                    Ok(())
                });
                Ok(())
            })
            .on_packet(ARRIVED, move |mut me, _| {
                me.commands.queue(move |world: &mut World| -> Result {
                    let hero = world.resource_mut::<Hero>().0.take().ok_or("no hero")?;
                    let late = world.forget_entity(hero)?;
                    world
                        .commands()
                        .post(to_other(LATE, ron::to_string(&late)?));
                    Ok(())
                });
            })
            .on_packet(LATE, move |mut me, packet| -> Result {
                let commit = commit.clone();
                let late: HeldMail = ron::de::from_bytes(packet.payload())?;
                me.commands.queue(move |world: &mut World| -> Result {
                    let hero = world.resource::<Hero>().0.ok_or("no hero")?;
                    world.commit_entity(hero, &late)?;
                    commit.send(()).ok();
                    Ok(())
                });
                Ok(())
            });
        app.world_mut().spawn((StableKey(own), gate));
    }
}

#[test]
fn worlds_on_threads_lose_and_reorder_no_parcel_while_an_entity_moves_to_and_fro() {
    const POSTERS: u32 = 3;
    const MOVES: u32 = 40;
    const NOTES: u32 = 100;
    let (report, reports) = mpsc::channel();
    let (commit, commits) = mpsc::channel();
    let mut groups = WorldGroups::new();
    for (own, other, starts_here) in [(1, 2, true), (2, 1, false)] {
        let build = gated(own, other, (report.clone(), commit.clone()), starts_here);
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
                let parcel = Parcel::new("zones", HERO, Packet::new(NOTE, payload));
                handle.post(parcel).expect("a world has the key");
            }
        })
    });
    let posters: Vec<_> = posters.collect();
    for nth in 0..MOVES {
        let gate = StableKey(1 + u64::from(nth % 2));
        let leave = Parcel::new("zones", gate, Packet::new(LEAVE, []));
        handle.post(leave).expect("the gate is there");
        let committed = commits.recv_timeout(Duration::from_secs(60));
        committed.expect("it should arrive");
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
fn a_held_letter_to_a_key_keeps_the_key() {
    let groups = WorldGroups::new();
    let mut forest = member(&groups, "zones");
    let hero = forest.world_mut().spawn((ears(), HERO)).id();
    export(&mut forest, hero);
    post(&groups, 1);
    advance_ms(&mut forest, 0);
    let left = forest.world_mut().close_inbox();
    assert_eq!(left.len(), 1);
    assert_eq!(left[0].delivery(), None, "it goes to a key");
}

#[test]
fn mail_to_the_key_of_an_entity_that_stays_is_delivered_after_the_commit() {
    let groups = WorldGroups::new();
    let mut forest = member(&groups, "zones");
    let hero = forest.world_mut().spawn((ears(), HERO)).id();
    post(&groups, 1);
    forest.world_mut().flush();
    export(&mut forest, hero);
    post(&groups, 2);
    advance_ms(&mut forest, 0);
    commit(&mut forest, hero, &HeldMail::default());
    post(&groups, 3);
    advance_ms(&mut forest, 0);
    assert_eq!(heard(&mut forest, hero), [1, 2, 3]);
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
    let moved = export(&mut forest, hero);
    commit(&mut forest, hero, &HeldMail::default());
    let mut map = EntityHashMap::default();
    let again = forest.world_mut().import_entity(&moved, ms(0), &mut map);
    let request = request.entity().expect("it was made here");
    assert_eq!(again.err(), Some(MoveError::InvalidRequest(request)));
}
