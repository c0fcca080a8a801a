//! Delivery to all worlds, to one in turn, and to the one with an entity.

use super::*;

#[test]
fn a_broadcast_reaches_each_world_once() {
    let (hear, heard) = mpsc::channel();
    let mut groups = WorldGroups::new();
    groups
        .start_worlds("ears", 3, listener(hear.clone()))
        .unwrap();
    groups.start_worlds("others", 1, listener(hear)).unwrap();
    groups.post(say("ears", Delivery::All, 7)).unwrap();
    end_well(&groups.stop());
    assert_eq!(sorted(heard), [(0, 7), (1, 7), (2, 7)]);
}

#[test]
fn parcels_in_turn_go_to_one_world_after_the_other() {
    let (hear, heard) = mpsc::channel();
    let mut groups = WorldGroups::new();
    groups.start_worlds("ears", 3, listener(hear)).unwrap();
    for what in 0..7 {
        groups.post(say("ears", Delivery::InTurn, what)).unwrap();
    }
    end_well(&groups.stop());
    let turns = [(0, 0), (0, 3), (0, 6), (1, 1), (1, 4), (2, 2), (2, 5)];
    assert_eq!(sorted(heard), turns, "each exactly once");
}

#[test]
fn parcels_allocate_nothing_in_a_steady_state() {
    let groups = WorldGroups::new();
    let mut apps = [(); 2].map(|()| {
        let mut app = App::new();
        app.add_plugins((TimePlugin, DuePlugin::default()));
        groups.add("worlds", &mut app);
        let ears = MessageComponent::new().on_packet(SAY, |_, _: &Packet| ());
        app.world_mut().spawn((StableKey(1), ears));
        app
    });
    for delivery in [Delivery::All, Delivery::InTurn, StableKey(1).into()] {
        let mut allocated = u64::MAX;
        for _ in 0..10 {
            let parcels: Vec<_> = (0..100).map(|what| say("worlds", delivery, what)).collect();
            let used = allocation_counter::measure(|| {
                for parcel in parcels {
                    groups.post(parcel).unwrap();
                }
            });
            allocated = used.count_total;
            apps.iter_mut().for_each(App::update);
        }
        assert_eq!(allocated, 0, "{delivery:?}: allocations of 100 parcels");
    }
    let stats = apps.map(|app| app.world().resource::<MessageStats>().delivered);
    assert_eq!(stats.iter().sum::<u64>(), 1000 * 2 + 1000 + 1000);
}

#[test]
fn a_parcel_to_a_key_goes_to_the_world_with_that_entity() {
    let (hear, heard) = mpsc::channel();
    let mut groups = WorldGroups::new();
    groups.start_worlds("ears", 3, listener(hear)).unwrap();
    for key in [2, 0, 2] {
        groups.post(say("ears", StableKey(key), 9)).unwrap();
    }
    end_well(&groups.stop());
    assert_eq!(sorted(heard), [(0, 9), (2, 9), (2, 9)]);
}

#[test]
fn a_key_moves_with_its_entity_to_another_world() {
    const TRAVELLER: StableKey = StableKey(100);
    let (hear, heard) = mpsc::channel();
    let (arrive, arrived) = mpsc::channel();
    let worlds = AtomicUsize::new(0);
    // On this packet an entity despawns here and is spawned in the other world.
    let build = move |app: &mut App| {
        let nth = worlds.fetch_add(1, Ordering::Relaxed);
        let (hear, arrive) = (hear.clone(), arrive.clone());
        let traveller = move || {
            let hear = hear.clone();
            MessageComponent::new()
                .on_packet(SAY, move |_: MessageContext, said: &Packet| {
                    hear.send((nth, read(said))).ok();
                })
                .on_packet(WAIT, move |mut me: MessageContext, _: &Packet| {
                    let to = StableKey(1 - nth as u64);
                    me.commands.entity(me.entity.id()).despawn();
                    me.commands.post(Parcel::new("places", to, number(GO, 0)));
                })
        };
        let here = traveller.clone();
        let place =
            MessageComponent::new().on_packet(GO, move |mut me: MessageContext, _: &Packet| {
                me.commands.spawn((TRAVELLER, here()));
                let arrive = arrive.clone();
                me.commands.queue(move |_: &mut World| _ = arrive.send(nth));
            });
        app.world_mut().spawn((StableKey(nth as u64), place));
        if nth == 0 {
            app.world_mut().spawn((TRAVELLER, traveller()));
        }
    };
    let mut groups = WorldGroups::new();
    groups.start_worlds("places", 2, build).unwrap();
    for (place, what) in [(1, 10), (0, 11), (1, 12)] {
        let go = Parcel::new("places", TRAVELLER, number(WAIT, 0));
        groups.post(go).unwrap();
        assert_eq!(next(&arrived), place);
        groups.post(say("places", TRAVELLER, what)).unwrap();
        assert_eq!(next(&heard), (place, what));
    }
    end_well(&groups.stop());
}

#[test]
fn parcels_of_one_sender_arrive_in_order() {
    const EACH: u32 = 500;
    let (hear, heard) = mpsc::channel();
    let mut groups = WorldGroups::new();
    groups.start_worlds("ears", 1, listener(hear)).unwrap();
    let worlds = AtomicUsize::new(0);
    let build = move |app: &mut App| {
        let first = worlds.fetch_add(1, Ordering::Relaxed) as u32 * EACH;
        // Ten per frame, by all three kinds of delivery.
        let talk = move |mut talked: Local<u32>, mut commands: Commands| {
            for _ in 0..10.min(EACH - *talked) {
                let to = match *talked % 3 {
                    0 => Delivery::All,
                    1 => Delivery::InTurn,
                    _ => Delivery::To(StableKey(0)),
                };
                commands.post(say("ears", to, first + *talked));
                *talked += 1;
            }
        };
        app.insert_resource(LoopInterval::Every(Duration::ZERO))
            .add_systems(Update, talk);
    };
    groups.start_worlds("mouths", 3, build).unwrap();
    let mut said: Vec<Vec<u32>> = vec![Vec::new(); 3];
    for _ in 0..3 * EACH {
        let (_, what) = next(&heard);
        said[(what / EACH) as usize].push(what);
    }
    for said in said {
        assert_eq!(said.len(), EACH as usize);
        assert!(said.is_sorted(), "{said:?}");
    }
    end_well(&groups.stop());
}

#[test]
fn turns_are_fair_for_concurrent_senders() {
    let (hear, heard) = mpsc::channel();
    let mut groups = WorldGroups::new();
    groups.start_worlds("ears", 3, listener(hear)).unwrap();
    thread::scope(|scope| {
        for thread in 0..4 {
            let groups = &groups;
            scope.spawn(move || {
                for n in 0..300 {
                    let what = thread * 300 + n;
                    groups.post(say("ears", Delivery::InTurn, what)).unwrap();
                }
            });
        }
    });
    end_well(&groups.stop());
    let heard: Vec<_> = heard.iter().collect();
    for world in 0..3 {
        let by_it = heard.iter().filter(|(nth, _)| *nth == world);
        assert_eq!(by_it.count(), 400);
    }
    let once = sorted(heard.iter().map(|(_, what)| *what));
    assert!(once.into_iter().eq(0..1_200));
}
