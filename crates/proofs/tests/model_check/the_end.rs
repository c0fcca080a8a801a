//! Worlds that end: stopped, on their own, by a panic, or left behind.

use core::sync::atomic::{AtomicBool, Ordering};

use super::*;

#[test]
fn stopping_loses_no_accepted_parcel() {
    check(|| {
        let log = Log::new();
        let mut groups = WorldGroups::new();
        start_worlds(&mut groups, 2, &log);
        let posters = post_on_two_threads(&groups);
        let handle = groups.handle();
        let reports = groups.stop();
        let late = handle.post(say(Delivery::InTurn, 9)).unwrap_err();
        assert_eq!(late.reason, RefusalReason::UnknownGroup);
        assert_eq!(late.parcel, say(Delivery::InTurn, 9));
        let accepted = posters.map(|poster| poster.join().unwrap()).concat();
        assert_eq!(reports.len(), 2);
        assert_none_lost(accepted, &log, &reports);
    });
}

#[test]
fn worlds_that_post_to_each_other_stop() {
    check(|| {
        let log = Log::new();
        let mut groups = WorldGroups::new();
        for (here, there) in [("ping", "pong"), ("pong", "ping")] {
            let log = log.clone();
            let build = move |app: &mut App| {
                let log = log.clone();
                let ears = MessageComponent::new()
                    .on_packet(SAY, move |mut me: MessageContext, said: &Packet| {
                        log.push((0, read(said)));
                        let back = number(SAY, read(said) + 1);
                        me.commands.post(Parcel::new(there, Delivery::All, back));
                    })
                    .on(|_: MessageContext, refused: &Refused| {
                        assert_eq!(refused.reason, RefusalReason::UnknownGroup);
                    });
                app.add_plugins(DuePlugin::default()).insert_resource(NEVER);
                app.world_mut().spawn(ears);
            };
            groups.start(here, 1, build).unwrap();
        }
        groups
            .post(Parcel::new("ping", Delivery::All, number(SAY, 0)))
            .unwrap();
        let reports = groups.stop();
        // The last parcel may be refused. The refusal is a message, too.
        let letters = reports.iter().flat_map(|report| &report.undelivered);
        let left = letters.filter_map(|letter| letter.packet()).map(read);
        let all = log.take().into_iter().map(|entry| entry.1).chain(left);
        let all: Vec<_> = all.collect();
        assert!(all.iter().copied().eq(0..all.len() as u32), "{all:?}");
    });
}

#[test]
fn each_world_that_ends_is_reported_once() {
    check(|| {
        let log = Log::new();
        let mut groups = WorldGroups::new();
        start_worlds(&mut groups, 2, &log);
        let poster = post_on_thread(&groups, Delivery::InTurn, 0..3);
        let exit = Parcel::new("worlds", StableKey(1), number(EXIT, 0));
        groups.post(exit).unwrap();
        let mut reports = Vec::new();
        while reports.is_empty() {
            reports = groups.ended();
            thread::yield_now();
        }
        assert_eq!((reports[0].nth, reports.len()), (1, 1));
        assert_eq!(reports[0].exit, Some(AppExit::Success));
        assert_eq!(groups.running("worlds"), 1);
        reports.extend(groups.stop());
        assert_eq!(reports.len(), 2);
        let accepted = poster.join().unwrap();
        assert_none_lost(accepted, &log, &reports);
    });
}

#[test]
fn a_panic_loses_no_accepted_parcel() {
    check(|| {
        let log = Log::new();
        let mut groups = WorldGroups::new();
        let logged = log.clone();
        let build = move |app: &mut App| {
            let log = logged.clone();
            let ears = MessageComponent::new().on_packet(SAY, move |_, said: &Packet| {
                if read(said) == 2 {
                    // Not `panic!`, at which the checker would print the schedule.
                    std::panic::resume_unwind(Box::new("on purpose"));
                }
                log.push((0, read(said)));
            });
            app.add_plugins(DuePlugin::default()).insert_resource(NEVER);
            app.world_mut().spawn(ears);
        };
        groups.start("worlds", 1, build).unwrap();
        let posters = [0..3, 3..6].map(|numbers| post_on_thread(&groups, Delivery::All, numbers));
        let accepted = posters.map(|poster| poster.join().unwrap()).concat();
        assert!(accepted.contains(&2));
        let reports = groups.stop();
        assert_eq!(reports[0].panic.as_deref(), Some("on purpose"));
        assert_none_lost(accepted, &log, &reports);
    });
}

#[test]
fn stop_within_returns_though_a_world_hangs() {
    check(|| {
        let log = Log::new();
        let (open, opened) = shuttle::sync::mpsc::channel::<()>();
        let opened = Arc::new(shuttle::sync::Mutex::new(opened));
        let has_returned = Arc::new(AtomicBool::new(false));
        let mut groups = WorldGroups::new();
        start_worlds(&mut groups, 1, &log);
        let returned = has_returned.clone();
        let build = move |app: &mut App| {
            let (opened, returned) = (opened.clone(), returned.clone());
            let ears = MessageComponent::new().on_packet(SAY, move |_, _: &Packet| {
                opened.lock().unwrap().recv().unwrap_err();
                returned.store(true, Ordering::Relaxed);
            });
            app.add_plugins(DuePlugin::default()).insert_resource(NEVER);
            app.world_mut().spawn(ears);
        };
        groups.start("hang", 1, build).unwrap();
        groups
            .post(Parcel::new("hang", Delivery::All, number(SAY, 0)))
            .unwrap();
        let poster = post_on_thread(&groups, Delivery::InTurn, 0..2);
        let handle = groups.handle();
        let reports = groups.stop_within(Duration::from_secs(1));
        assert_eq!(reports.len(), 2);
        assert!(reports[0].is_left_behind, "it hangs until the gate opens");
        assert!(!has_returned.load(Ordering::Relaxed));
        for group in ["hang", "worlds"] {
            let late = Parcel::new(group, Delivery::All, number(SAY, 9));
            let late = handle.post(late).unwrap_err();
            assert_eq!(late.reason, RefusalReason::UnknownGroup);
        }
        let accepted = poster.join().unwrap();
        if !reports[1].is_left_behind {
            assert_none_lost(accepted, &log, &reports);
        }
        drop(open);
    });
}
