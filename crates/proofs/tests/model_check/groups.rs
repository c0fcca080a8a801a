//! Parcels to the worlds of a group, while worlds leave.

use super::*;

/// Ends a world by a parcel to its key.
fn exit(groups: &GroupsHandle, world: u64) {
    let exit = Parcel::new("worlds", StableKey(world), number(EXIT, 0));
    groups.post(exit).unwrap();
}

#[test]
fn a_message_wakes_a_world_that_waits() {
    check(|| wake(NEVER));
}

#[test]
fn a_message_wakes_a_world_that_sleeps() {
    check(|| wake(LoopInterval::WhenDue(Duration::ZERO)));
}

fn wake(interval: LoopInterval) {
    let (tell, told) = shuttle::sync::mpsc::channel();
    let mut groups = WorldGroups::new();
    let build = move |app: &mut App| {
        let tell = tell.clone();
        let ears = MessageComponent::new().on_packet(SAY, move |_, said: &Packet| {
            tell.send(read(said)).unwrap();
        });
        app.add_plugins(DuePlugin::default())
            .insert_resource(interval);
        app.world_mut().spawn(ears);
    };
    groups.start("worlds", 1, build).unwrap();
    let poster = post_on_thread(&groups, Delivery::All, [1, 2]);
    // After a lost wake-up, every thread would wait.
    assert_eq!(told.recv(), Ok(1));
    assert_eq!(told.recv(), Ok(2));
    groups.post(say(Delivery::All, 3)).unwrap();
    assert_eq!(told.recv(), Ok(3));
    poster.join().unwrap();
    groups.stop();
}

#[test]
fn parcels_in_turn_are_shared_equally() {
    check(|| {
        let log = Log::new();
        let mut groups = WorldGroups::new();
        start_worlds(&mut groups, 2, &log);
        let posters = post_on_two_threads(&groups);
        let posted = posters.map(|poster| poster.join().unwrap().len());
        assert_eq!(posted, [3, 3]);
        let reports = groups.stop();
        assert_eq!(undelivered(&reports).count(), 0);
        let log = log.take();
        assert_eq!(sorted(log.iter().map(|entry| entry.1)), [0, 1, 2, 3, 4, 5]);
        for world in 0..2 {
            let share = log.iter().filter(|entry| entry.0 == world).count();
            assert_eq!(share, 3, "the share of world {world} in {log:?}");
        }
    });
}

#[test]
fn a_parcel_in_turn_reaches_exactly_one_world_while_others_leave() {
    check(|| {
        let log = Log::new();
        let mut groups = WorldGroups::new();
        start_worlds(&mut groups, 3, &log);
        let posters = post_on_two_threads(&groups);
        let handle = groups.handle();
        exit(&handle, 1);
        exit(&handle, 2);
        let posted = posters.map(|poster| poster.join().unwrap()).concat();
        assert_eq!(posted, [0, 1, 2, 3, 4, 5], "one world always runs");
        let reports = groups.stop();
        assert_none_lost(posted, &log, &reports);
    });
}

#[test]
fn a_parcel_to_all_reaches_each_world_at_most_once_while_others_leave() {
    check(|| {
        let log = Log::new();
        let mut groups = WorldGroups::new();
        start_worlds(&mut groups, 3, &log);
        let poster = post_on_thread(&groups, Delivery::All, 0..4);
        exit(&groups.handle(), 1);
        assert_eq!(poster.join().unwrap(), [0, 1, 2, 3]);
        groups.stop();
        let log = log.take();
        for (world, all) in [(0, true), (1, false), (2, true)] {
            let got = log.iter().filter(|entry| entry.0 == world);
            let got: Vec<_> = got.map(|entry| entry.1).collect();
            assert!(got.is_sorted_by(|a, b| a < b), "world {world} got {got:?}");
            assert!(!all || got.len() == 4, "world {world} got {got:?}");
        }
    });
}

#[test]
fn parcels_to_a_key_keep_their_order() {
    check(|| {
        let log = Log::new();
        let mut groups = WorldGroups::new();
        start_worlds(&mut groups, 2, &log);
        let posters = [(0, 0..3), (1, 10..13), (0, 20..23)]
            .map(|(key, numbers)| post_on_thread(&groups, StableKey(key).into(), numbers));
        for poster in posters {
            assert_eq!(poster.join().unwrap().len(), 3);
        }
        groups.stop();
        let log = log.take();
        for (world, numbers) in [(0, 0..3), (1, 10..13), (0, 20..23)] {
            let of_one = log.iter().filter(|entry| numbers.contains(&entry.1));
            let expected = numbers.clone().map(|what| (world, what));
            assert!(of_one.copied().eq(expected), "{numbers:?} in {log:?}");
        }
    });
}
