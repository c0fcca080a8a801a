//! Connections that come and go, and that are full.

use std::collections::BTreeSet;

use super::{raw::*, *};

#[test]
fn worlds_hear_of_each_connection_once_while_threads_end_it() {
    let [here, there] = [WorldGroups::new(), WorldGroups::new()];
    let mut apps = [member(&here, "main"), member(&there, "main")];
    for app in &mut apps {
        record::<PeerChanged>(app);
    }
    let settings = PeerSettings {
        heartbeat: Duration::from_millis(1),
        suspect_after: Duration::from_millis(2),
        ..QUICK
    };
    let wire = Wire::with([&here, &there], ["a", "b"], settings);
    let mut changes = [Vec::new(), Vec::new()];
    let mut keys = BTreeSet::new();
    thread::scope(|scope| {
        for end in &wire.ends {
            scope.spawn(|| {
                for _ in 0..200 {
                    thread::sleep(Duration::from_millis(1));
                    end.disconnected();
                }
            });
        }
        for nth in 0..400_u64 {
            let key = nth * 7 % 20 + 1;
            for (app, changes) in apps.iter_mut().zip(&mut changes) {
                changes.extend(received::<PeerChanged>(app));
            }
            let world = apps[0].world_mut();
            match keys.remove(&key) {
                true => {
                    let mut all = world.query::<(Entity, &StableKey)>();
                    let (entity, _) = all.iter(world).find(|(_, it)| it.0 == key).unwrap();
                    world.despawn(entity);
                }
                false => {
                    keys.insert(key);
                    world.spawn(StableKey(key));
                }
            }
            thread::sleep(Duration::from_micros(500));
        }
    });
    wait_for_worlds(&there, "main", 2);
    let known = || {
        let known = (1..=20).filter(|&key| there.post(say("main", StableKey(key), 0)).is_ok());
        known.collect::<BTreeSet<u64>>()
    };
    wait_until(|| known() == keys, "the keys");
    for (app, mut changes) in apps.iter_mut().zip(changes) {
        changes.extend(received::<PeerChanged>(app));
        let mut is_up = false;
        for (nth, change) in changes.iter().enumerate() {
            let before = nth.checked_sub(1).map(|nth| changes[nth].liveness);
            match change.liveness {
                Liveness::Up if is_up => assert_ne!(before, Some(Liveness::Down)),
                Liveness::Suspect | Liveness::Down => assert!(is_up, "{nth}: {changes:?}"),
                Liveness::Up => {}
            }
            is_up = change.liveness != Liveness::Down;
        }
        assert!(changes.len() > 50, "{}", changes.len());
    }
}

#[test]
fn each_request_ends_once_while_threads_end_the_connection() {
    #[derive(Resource, Default)]
    struct Ends(Vec<Option<bevy_due::message::Request>>);

    fn end(me: &mut MessageContext) {
        let request = me.request();
        let note = move |world: &mut World| world.resource_mut::<Ends>().0.push(request);
        me.commands.queue(note);
    }

    let [here, mut there] = [WorldGroups::new(), WorldGroups::new()];
    there.start_worlds("answerers", 2, answerer).unwrap();
    let mut app = member(&here, "askers");
    app.init_resource::<Ends>();
    let ears = MessageComponent::new()
        .on_packet(ANSWER, |mut me: MessageContext, _: &Packet| end(&mut me))
        .on(|mut me: MessageContext, _: &NoAnswer| end(&mut me));
    let asker = app.world_mut().spawn((StableKey(7), ears)).id();
    let settings = PeerSettings {
        heartbeat: Duration::from_millis(1),
        ..QUICK
    };
    let wire = Wire::with([&here, &there], ["a", "b"], settings);
    let mut asked = 0;
    thread::scope(|scope| {
        for (nth, end) in (3..).zip(&wire.ends) {
            scope.spawn(move || {
                for _ in 0..60 {
                    thread::sleep(Duration::from_millis(nth));
                    end.disconnected();
                }
            });
        }
        for _ in 0..1000 {
            let question = Parcel::new("answerers", Delivery::InTurn, number(QUESTION, 21));
            let mut commands = app.world_mut().commands();
            let until = Timer::after(3600.0);
            commands.entity(asker).ask_world(question, until);
            asked += 1;
            app.update();
            thread::sleep(Duration::from_micros(200));
        }
    });
    let ended = |app: &App| app.world().resource::<Ends>().0.len();
    wait_until(
        || {
            app.update();
            ended(&app) >= asked
        },
        "all requests end",
    );
    let ends: HashSet<_> = app.world().resource::<Ends>().0.iter().collect();
    assert_eq!((ends.len(), ended(&app)), (asked, asked));
}

#[test]
fn two_processes_that_fill_both_windows_go_on() {
    const PARCELS: u32 = 3000;

    let (hear, heard) = mpsc::channel();
    let mut processes = [(); 2].map(|()| WorldGroups::new());
    for (groups, name) in processes.iter_mut().zip(["ears 0", "ears 1"]) {
        groups
            .start_worlds(name, 1, listener(hear.clone()))
            .unwrap();
    }
    let settings = PeerSettings {
        window_bytes: 300,
        batch_bytes: 100,
        heartbeat: Duration::from_secs(3600),
        ..QUICK
    };
    let [here, there] = &processes;
    let _wire = Wire::with([here, there], ["a", "b"], settings);
    wait_for_worlds(here, "ears 1", 1);
    wait_for_worlds(there, "ears 0", 1);
    for nth in 0..PARCELS {
        here.post(say("ears 1", Delivery::All, nth)).unwrap();
        there.post(say("ears 0", Delivery::All, nth)).unwrap();
    }
    let said = sorted((0..2 * PARCELS).map(|_| next(&heard).1));
    assert!(
        said.chunks(2)
            .zip(0..)
            .all(|(both, nth)| both == [nth, nth])
    );
}

#[test]
fn peers_that_come_and_go_leave_nothing_behind() {
    let here = WorldGroups::new();
    let mut app = member(&here, "zones");
    app.world_mut().spawn(StableKey(1));
    for nth in 0..10_000 {
        let mut raw = Raw::connect(&here, QUICK);
        raw.send(&[worlds("zones", 1), bound("zones", nth + 2, nth)])
            .unwrap();
        assert_eq!(here.running("zones"), 2);
        drop(raw);
        assert_eq!(here.running("zones"), 1);
        if nth % 100 == 0 {
            app.update();
        }
    }
    let debug = format!("{here:?}");
    assert!(debug.len() < 3000, "{}: {debug}", debug.len());
}
