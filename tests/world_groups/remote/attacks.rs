//! Processes and links that misbehave, and settings that nobody would choose.

use super::{raw::*, *};

#[test]
fn a_claim_with_the_last_epoch_does_not_stop_others() {
    let here = WorldGroups::new();
    let mut app = member(&here, "zones");
    let mut raw = Raw::connect(&here, QUICK);
    raw.send(&[bound("zones", 1, u64::MAX)]).unwrap();
    app.world_mut().spawn(StableKey(2));
    assert!(here.post(say("zones", StableKey(2), 0)).is_ok());
}

#[test]
fn a_parcel_that_was_passed_on_too_often_is_refused() {
    let here = WorldGroups::new();
    let _app = member(&here, "zones");
    let mut raw = Raw::connect(&here, QUICK);
    raw.send(&[bound("zones", 1, 9), parcel("zones", 1, 1, 255, &[])])
        .unwrap();
}

#[test]
fn processes_agree_on_claims_of_the_same_age() {
    let processes = [(); 2].map(|()| WorldGroups::new());
    let [a, b] = &processes;
    let mut apps = processes.each_ref().map(|groups| member(groups, "zones"));
    for app in &mut apps {
        app.world_mut().spawn(StableKey(5));
    }
    let _wire = Wire::connect(a, b);
    wait_for_worlds(a, "zones", 2);
    wait_for_worlds(b, "zones", 2);
    thread::sleep(Duration::from_millis(50));
    let taken = |apps: &mut [App; 2]| {
        let taken = apps.each_mut().map(|app| {
            app.update();
            app.world().resource::<MessageStats>().undeliverable
        });
        taken[0] + taken[1]
    };
    for from in [a, b] {
        let before = taken(&mut apps);
        from.post(say("zones", StableKey(5), 1)).unwrap();
        wait_until(|| taken(&mut apps) > before, "one of the two takes it");
    }
}

#[test]
fn a_key_that_is_bound_again_and_goes_is_forgotten() {
    let [here, there] = [WorldGroups::new(), WorldGroups::new()];
    let mut app = member(&there, "zones");
    let first = app.world_mut().spawn(StableKey(5)).id();
    let wire = Wire::connect(&here, &there);
    wait_for_key(&here, "zones", 5);
    {
        let _held = wire.ways[1].hold();
        // Occupies the thread that sends.
        app.world_mut().spawn(StableKey(6));
        thread::sleep(Duration::from_millis(50));
        let second = app.world_mut().spawn(StableKey(5)).id();
        app.world_mut().despawn(first);
        app.world_mut().despawn(second);
        app.world_mut().spawn(StableKey(7));
    }
    wait_for_key(&here, "zones", 7);
    assert!(here.post(say("zones", StableKey(5), 0)).is_err());
}

#[test]
fn a_peer_of_groups_that_are_gone_is_closed() {
    let groups = WorldGroups::new();
    let handle = groups.handle();
    drop(groups);
    assert_eq!(handle.connect("b", QUICK).next_batch(), None);
}

#[test]
fn a_filter_may_set_another_filter() {
    let here = Arc::new(WorldGroups::new());
    let groups = here.clone();
    here.permit(move |_, _| {
        groups.permit(|_, _| true);
        true
    });
    let (done, was_done) = mpsc::channel();
    let process = here.clone();
    thread::spawn(move || {
        let mut raw = Raw::connect(&process, QUICK);
        raw.send(&[worlds("ears", 1)]).unwrap();
        done.send(()).unwrap();
        // Only at the end of the test process.
        core::mem::forget(raw);
    });
    next(&was_done);
    assert_eq!(here.running("ears"), 1);
}
