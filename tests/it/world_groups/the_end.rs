//! Stops, panics, and undelivered messages.

use super::*;
use bevy_due::message::{MessageCommandsExt, MessageWorldExt};

/// Panics on the packet `PANIC`.
fn bomb() -> MessageComponent {
    MessageComponent::new().on_packet(PANIC, |_: MessageContext, said: &Packet| {
        panic!("handler {}", read(said));
    })
}

#[test]
fn a_world_that_panics_in_a_callback_is_reported_and_the_others_run() {
    let (hear, heard) = mpsc::channel();
    let mut groups = WorldGroups::new();
    let build_ears = listener(hear);
    let build = move |app: &mut App| {
        build_ears(app);
        app.world_mut().spawn(bomb());
    };
    groups.start_worlds("ears", 3, build).unwrap();
    assert_eq!(groups.running("ears"), 3);
    // The first turn.
    groups
        .post(Parcel::new("ears", Delivery::InTurn, number(PANIC, 8)))
        .unwrap();
    let reports = ended(&mut groups, 1);
    assert_eq!(reports.len(), 1);
    assert_eq!((&*reports[0].group, reports[0].nth), ("ears", 0));
    assert_eq!(reports[0].panic.as_deref(), Some("handler 8"));
    assert!(reports[0].exit.is_none() && reports[0].undelivered.is_empty());
    assert_eq!(groups.running("ears"), 2);

    for what in 0..4 {
        groups.post(say("ears", Delivery::InTurn, what)).unwrap();
    }
    groups.post(say("ears", Delivery::All, 4)).unwrap();
    end_well(&groups.stop());
    let turns = [(1, 0), (1, 2), (1, 4), (2, 1), (2, 3), (2, 4)];
    assert_eq!(sorted(heard), turns, "it goes round without the first");
}

#[test]
fn a_world_that_owns_its_groups_ends_the_others_and_itself() {
    for limit in [None, Some(TIMEOUT)] {
        /// Stops the groups when it is dropped, with a limit or without.
        #[derive(Resource)]
        struct Owner(Option<WorldGroups>, Option<Duration>, Sender<bool>);

        impl Drop for Owner {
            fn drop(&mut self) {
                let groups = self.0.take().unwrap();
                let reports = match self.1 {
                    Some(limit) => groups.stop_within(limit),
                    None => groups.stop(),
                };
                let left = reports.iter().map(|report| report.is_left_behind);
                left.for_each(|is_left| self.2.send(is_left).unwrap());
            }
        }

        let (give, given) = mpsc::channel();
        let given = Mutex::new(given);
        let (tell, told) = mpsc::channel();
        let mut groups = WorldGroups::new();
        groups.start_worlds("others", 2, |_| ()).unwrap();
        let own = move |world: &mut World| {
            let groups = given.lock().unwrap().recv().unwrap();
            world.insert_resource(Owner(Some(groups), limit, tell.clone()));
            world.write_message(AppExit::Success);
        };
        let own = Arc::new(own);
        let build = move |app: &mut App| {
            let own = own.clone();
            app.add_systems(Startup, move |world: &mut World| own(world));
        };
        groups.start_worlds("owner", 1, build).unwrap();
        let handle = groups.handle();
        give.send(groups).unwrap();
        let left: [_; 3] = core::array::from_fn(|_| told.recv_timeout(TIMEOUT));
        assert_eq!(
            left,
            [Ok(true), Ok(false), Ok(false)],
            "it does not wait for itself"
        );
        assert_eq!(handle.running("owner"), 0, "it has left");
    }
}

#[test]
fn a_world_that_panics_in_a_system_is_reported() {
    #[derive(Resource)]
    struct Armed;

    let mut groups = WorldGroups::new();
    let build = |app: &mut App| {
        let arm = MessageComponent::new().on_packet(PANIC, |mut me: MessageContext, _: &Packet| {
            me.commands.insert_resource(Armed);
        });
        app.world_mut().spawn(arm);
        app.add_systems(Update, |armed: Option<Res<Armed>>| {
            let what = "system";
            assert!(armed.is_none(), "in a {what}");
        });
    };
    groups.start_worlds("worlds", 2, build).unwrap();
    groups
        .post(Parcel::new("worlds", Delivery::InTurn, number(PANIC, 0)))
        .unwrap();
    let reports = ended(&mut groups, 1);
    assert_eq!(reports[0].panic.as_deref(), Some("in a system"));
    assert_eq!(groups.running("worlds"), 1);
    end_well(&groups.stop());
}

#[test]
fn a_world_whose_build_panics_is_not_started() {
    let (hear, heard) = mpsc::channel();
    let mut groups = WorldGroups::new();
    let build_ears = listener(hear);
    let build = move |app: &mut App| {
        build_ears(app);
        let world = app.world_mut();
        let mut keys = world.query::<&StableKey>();
        let key = keys.single(world).unwrap();
        assert_ne!(*key, StableKey(2), "no third one");
    };
    let error = groups.start_worlds("ears", 5, build).unwrap_err();
    let StartError::Panicked(said) = &error else {
        panic!("{error}");
    };
    assert!(said.contains("no third one"), "{said}");
    assert_eq!(groups.running("ears"), 2, "those before it stay");
    groups.post(say("ears", Delivery::All, 1)).unwrap();
    let reports = groups.stop();
    assert_eq!(reports.len(), 2);
    end_well(&reports);
    assert_eq!(sorted(heard), [(0, 1), (1, 1)]);
}

#[test]
fn a_world_whose_build_panics_is_dropped_before_the_error() {
    struct Resident(Arc<AtomicUsize>);

    impl Drop for Resident {
        fn drop(&mut self) {
            thread::sleep(Duration::from_millis(20));
            self.0.fetch_sub(1, Ordering::Relaxed);
        }
    }

    let residents = Arc::new(AtomicUsize::new(0));
    let counted = residents.clone();
    let mut groups = WorldGroups::new();
    let build = move |app: &mut App| {
        counted.fetch_add(1, Ordering::Relaxed);
        app.insert_non_send(Resident(counted.clone()));
        panic!("not here");
    };
    groups.start_worlds("worlds", 1, build).unwrap_err();
    assert_eq!(residents.load(Ordering::Relaxed), 0);
}

#[test]
fn undelivered_messages_are_handed_back_after_a_panic() {
    let (hear, heard) = mpsc::channel();
    let gate = Gate::new();
    let keeper = gate.keeper();
    let mut groups = WorldGroups::new();
    let build_ears = listener(hear);
    let build = move |app: &mut App| {
        build_ears(app);
        app.world_mut().spawn(keeper.clone());
        app.world_mut().spawn(bomb());
    };
    groups.start_worlds("ears", 1, build).unwrap();
    groups
        .post(Parcel::new("ears", Delivery::All, number(WAIT, 0)))
        .unwrap();
    gate.somebody_waits();
    // All of this has arrived when the next frame begins.
    groups.post(say("ears", Delivery::All, 1)).unwrap();
    groups
        .post(Parcel::new("ears", Delivery::All, number(PANIC, 0)))
        .unwrap();
    groups.post(say("ears", Delivery::All, 2)).unwrap();
    groups.post(say("ears", StableKey(0), 3)).unwrap();
    gate.open();
    let reports = ended(&mut groups, 1);
    let undelivered = reports[0].undelivered.iter();
    let undelivered: Vec<_> = undelivered.map(|letter| letter.packet().unwrap()).collect();
    // The first of these was still on its way to other entities.
    let left = [number(PANIC, 0), number(SAY, 2), number(SAY, 3)];
    assert!(undelivered.into_iter().eq(&left));
    assert_eq!(sorted(heard), [(0, 1)]);
}

#[test]
fn a_world_that_exits_delivers_its_messages_first() {
    let (hear, heard) = mpsc::channel();
    let gate = Gate::new();
    let pass = gate.pass();
    let mut groups = WorldGroups::new();
    let build_ears = listener(hear);
    let build = move |app: &mut App| {
        build_ears(app);
        let pass = pass.clone();
        app.add_systems(Last, move |mut exit: MessageWriter<AppExit>| {
            pass();
            exit.write(AppExit::from_code(3));
        });
    };
    groups.start_worlds("ears", 1, build).unwrap();
    groups.start_worlds("others", 1, |_: &mut App| {}).unwrap();
    gate.somebody_waits();
    groups.post(say("ears", Delivery::All, 1)).unwrap();
    gate.open();
    let reports = ended(&mut groups, 1);
    assert_eq!(reports[0].exit, Some(AppExit::from_code(3)));
    end_well(&reports);
    assert_eq!(sorted(heard), [(0, 1)]);
    assert_eq!((groups.running("ears"), groups.running("others")), (0, 1));
    end_well(&groups.stop());
}

#[test]
fn worlds_stop_in_the_reverse_order_of_their_start() {
    #[derive(Resource)]
    struct Resident(u32, Sender<u32>);

    impl Drop for Resident {
        fn drop(&mut self) {
            self.1.send(self.0).ok();
        }
    }

    let (drop, dropped) = mpsc::channel();
    let mut groups = WorldGroups::new();
    for (nth, group) in ["database", "logic", "database", "doors"]
        .into_iter()
        .enumerate()
    {
        let drop = drop.clone();
        let build = move |app: &mut App| {
            app.insert_resource(Resident(nth as u32, drop.clone()));
        };
        groups.start_worlds(group, 1, build).unwrap();
    }
    core::mem::drop(drop);
    let reports = groups.stop();
    end_well(&reports);
    let order = reports.iter().map(|report| (&*report.group, report.nth));
    let expected = [("doors", 0), ("database", 1), ("logic", 0), ("database", 0)];
    assert!(order.eq(expected), "{reports:?}");
    assert!(dropped.iter().eq([3, 2, 1, 0]));
}

#[test]
fn messages_sent_before_the_stop_and_their_consequences_are_delivered() {
    // Each world passes its messages on to the world that was started before it.
    let (hear, heard) = mpsc::channel();
    let mut groups = WorldGroups::new();
    let names = ["first", "second", "third"];
    groups.start_worlds(names[0], 1, listener(hear)).unwrap();
    for pair in names.windows(2) {
        let to = pair[0];
        let pass_on =
            MessageComponent::new().on_packet(SAY, move |mut me: MessageContext, said: &Packet| {
                me.commands.post(say(to, Delivery::All, read(said) + 1));
            });
        let build = move |app: &mut App| {
            app.insert_resource(NEVER)
                .world_mut()
                .spawn(pass_on.clone());
        };
        groups.start_worlds(pair[1], 1, build).unwrap();
    }
    for what in [10, 20, 30] {
        groups.post(say("third", Delivery::All, what)).unwrap();
    }
    end_well(&groups.stop());
    assert!(heard.iter().eq([(0, 12), (0, 22), (0, 32)]));
}

#[test]
fn messages_to_a_world_just_started_are_delivered_when_it_stops() {
    // The first frame may or may not have run by then.
    for _ in 0..50 {
        let (hear, heard) = mpsc::channel();
        let mut groups = WorldGroups::new();
        groups.start_worlds("ears", 1, listener(hear)).unwrap();
        groups.post(say("ears", Delivery::All, 1)).unwrap();
        groups.post(say("ears", StableKey(0), 2)).unwrap();
        end_well(&groups.stop());
        assert!(heard.iter().eq([(0, 1), (0, 2)]));
    }
}

#[test]
fn messages_to_an_entity_of_the_last_frame_are_delivered_at_the_end() {
    let (hear, heard) = mpsc::channel();
    let gate = Gate::new();
    let pass = gate.pass();
    let mut groups = WorldGroups::new();
    let spawn_ears = Mutex::new(Some(spawn_listener(hear)));
    let build = move |app: &mut App| {
        let pass = pass.clone();
        let spawn_ears = spawn_ears.lock().unwrap().take().unwrap();
        let last_frame = move |world: &mut World| {
            spawn_ears(world);
            pass();
            world.write_message(AppExit::Success);
        };
        app.add_systems(Update, last_frame);
    };
    groups.start_worlds("ears", 1, build).unwrap();
    gate.somebody_waits();
    groups.post(say("ears", Delivery::All, 1)).unwrap();
    groups.post(say("ears", StableKey(0), 2)).unwrap();
    gate.open();
    end_well(&ended(&mut groups, 1));
    assert!(heard.iter().eq([(0, 1), (0, 2)]));
}

#[test]
fn messages_sent_by_the_last_delivery_are_handed_back() {
    let mut groups = WorldGroups::new();
    let again = MessageComponent::new().on_packet(SAY, |mut me: MessageContext, said: &Packet| {
        let said = read(said);
        if said < 100 {
            me.commands.send(Delivery::All, number(SAY, said + 1));
        }
    });
    let build = move |app: &mut App| {
        app.insert_resource(NEVER).world_mut().spawn(again.clone());
    };
    let gate = Gate::new();
    let keeper = gate.keeper();
    let build = move |app: &mut App| {
        build(app);
        app.world_mut().spawn(keeper.clone());
    };
    groups.start_worlds("echo", 1, build).unwrap();
    groups
        .post(Parcel::new("echo", Delivery::All, number(WAIT, 0)))
        .unwrap();
    gate.somebody_waits();
    groups.post(say("echo", Delivery::All, 1)).unwrap();
    let stopped = thread::spawn(move || groups.stop());
    // The stop comes while the world is at the gate, or during the hour that it waits after that.
    gate.open();
    let reports = stopped.join().unwrap();
    let undelivered = reports[0].undelivered.iter();
    let undelivered: Vec<_> = undelivered
        .map(|letter| read(letter.packet().unwrap()))
        .collect();
    assert_eq!(undelivered.len(), 1, "{reports:?}");
}

#[test]
fn undelivered_messages_may_hold_the_link_of_another_world() {
    let (tell, told) = mpsc::channel();
    thread::spawn(move || {
        let groups = WorldGroups::new();
        for _ in 0..10 {
            let mut one = App::new();
            let mut other = App::new();
            for app in [&mut one, &mut other] {
                app.add_plugins((TimePlugin, DuePlugin::default()));
                groups.add("apps", app);
            }
            let link = other.world_mut().remove_resource::<WorldLink>();
            let sender = one.world_mut().message_sender();
            sender.run(move |_| drop(link)).ok().unwrap();
            drop((sender, other, one));
        }
        tell.send(groups.running("apps")).ok();
    });
    assert_eq!(next(&told), 0);
}

#[test]
fn dropping_the_groups_stops_all_worlds() {
    let (hear, heard) = mpsc::channel();
    let mut groups = WorldGroups::new();
    groups.start_worlds("ears", 2, listener(hear)).unwrap();
    groups.post(say("ears", Delivery::All, 1)).unwrap();
    drop(groups);
    assert_eq!(
        sorted(heard),
        [(0, 1), (1, 1)],
        "and nobody has the other end any more"
    );
}

#[test]
fn each_way_to_stop_waits_for_a_system_that_blocks() {
    let ways: [fn(WorldGroups); 3] = [
        |groups| _ = groups.stop(),
        |mut groups| _ = groups.stop_group("ears"),
        drop,
    ];
    for (nth, way) in ways.into_iter().enumerate() {
        let gate = Gate::new();
        let pass = gate.pass();
        let mut groups = WorldGroups::new();
        let build = move |app: &mut App| {
            app.add_systems(Startup, pass.clone());
        };
        groups.start_worlds("ears", 1, build).unwrap();
        gate.somebody_waits();
        let (stop, stopped) = mpsc::channel();
        thread::spawn(move || {
            way(groups);
            stop.send(()).ok();
        });
        let soon = stopped.recv_timeout(Duration::from_millis(50));
        assert!(soon.is_err(), "way {nth} should still wait");
        gate.open();
        next(&stopped);
    }
}

#[test]
fn a_world_that_hangs_can_be_left_behind() {
    let (hear, heard) = mpsc::channel();
    let gate = Gate::new();
    let pass = gate.pass();
    let mut groups = WorldGroups::new();
    groups.start_worlds("ears", 2, listener(hear)).unwrap();
    let worlds = AtomicUsize::new(0);
    let second_hangs = move |app: &mut App| {
        let pass = pass.clone();
        if worlds.fetch_add(1, Ordering::Relaxed) == 1 {
            app.add_systems(Startup, pass);
        }
    };
    groups.start_worlds("hangs", 3, second_hangs).unwrap();
    gate.somebody_waits();

    let reports = groups.stop_group_within("hangs", Duration::from_secs(1));
    let left: Vec<_> = reports
        .iter()
        .map(|report| (&*report.group, report.nth, report.is_left_behind))
        .collect();
    let expected = [("hangs", 2, false), ("hangs", 1, true), ("hangs", 0, false)];
    assert_eq!(left, expected);
    assert_eq!(groups.running("hangs"), 0, "it has left the group");
    let refused = groups.post(say("hangs", Delivery::All, 1)).unwrap_err();
    assert_eq!(refused.reason, RefusalReason::UnknownGroup);

    groups.post(say("ears", Delivery::All, 1)).unwrap();
    let reports = groups.stop_within(TIMEOUT);
    assert!(reports.iter().all(|report| !report.is_left_behind));
    end_well(&reports);
    assert_eq!(heard.iter().count(), 2, "the others deliver their messages");
    gate.open();
}

#[test]
fn a_world_that_was_left_behind_ends_when_it_returns() {
    struct OnDrop(Sender<()>);

    impl Drop for OnDrop {
        fn drop(&mut self) {
            self.0.send(()).ok();
        }
    }

    let gate = Gate::new();
    let (pass, (tell, told)) = (gate.pass(), mpsc::channel());
    let hangs = move |app: &mut App| {
        let (pass, on_drop) = (pass.clone(), OnDrop(tell.clone()));
        app.add_systems(Startup, move || {
            _ = &on_drop;
            pass();
        });
    };
    let mut groups = WorldGroups::new();
    groups.start_worlds("hangs", 1, hangs).unwrap();
    gate.somebody_waits();
    let reports = groups.stop_within(Duration::ZERO);
    assert!(reports[0].is_left_behind);
    assert!(told.try_recv().is_err(), "it still runs");
    gate.open();
    next(&told);
}

#[test]
fn a_world_that_was_left_behind_does_not_take_its_successor_along() {
    let gate = Gate::new();
    let (pass, (tell, told)) = (gate.pass(), mpsc::channel::<()>());
    let hangs = move |app: &mut App| {
        let (pass, tell) = (pass.clone(), tell.clone());
        app.add_systems(Startup, move |mut commands: Commands| {
            pass();
            commands.spawn(StableKey(0));
        });
        // Dropped after the link of the world has left the group.
        app.add_systems(Last, move || _ = &tell);
    };
    let mut groups = WorldGroups::new();
    groups.start_worlds("ears", 1, hangs).unwrap();
    gate.somebody_waits();
    assert!(groups.stop_group_within("ears", Duration::ZERO)[0].is_left_behind);
    let (hear, heard) = mpsc::channel();
    groups.start_worlds("ears", 1, listener(hear)).unwrap();
    gate.open();
    let has_ended = told.recv_timeout(TIMEOUT);
    assert_eq!(has_ended, Err(mpsc::RecvTimeoutError::Disconnected));
    assert_eq!(groups.running("ears"), 1);
    groups.post(say("ears", StableKey(0), 1)).unwrap();
    assert_eq!(next(&heard), (0, 1));
    end_well(&groups.stop());
}

#[test]
fn a_world_keeps_its_index_when_another_ends() {
    let mut groups = WorldGroups::new();
    let build = |app: &mut App| {
        app.world_mut().spawn(bomb());
    };
    groups.start_worlds("worlds", 2, build).unwrap();
    groups
        .post(Parcel::new("worlds", Delivery::InTurn, number(PANIC, 0)))
        .unwrap();
    assert_eq!(ended(&mut groups, 1)[0].nth, 0);
    groups.start_worlds("worlds", 1, build).unwrap();
    let reports = groups.stop();
    end_well(&reports);
    let numbers = reports.iter().map(|report| report.nth);
    assert!(numbers.eq([2, 1]), "{reports:?}");
}

#[test]
fn a_world_that_panics_during_its_stop_is_reported_with_its_messages() {
    let gate = Gate::new();
    let pass = gate.pass();
    let mut groups = WorldGroups::new();
    groups.start_worlds("first", 1, |_: &mut App| {}).unwrap();
    let build = move |app: &mut App| {
        let pass = pass.clone();
        let exit =
            MessageComponent::new().on_packet(GO, move |mut me: MessageContext, _: &Packet| {
                pass();
                me.commands.write_message(AppExit::Success);
            });
        app.world_mut().spawn(exit);
        app.world_mut().spawn(bomb());
    };
    groups.start_worlds("last", 1, build).unwrap();
    let go = Parcel::new("last", Delivery::All, number(GO, 0));
    groups.post(go).unwrap();
    gate.somebody_waits();
    // The world delivers the packet after its last frame.
    for id in [PANIC, SAY] {
        let parcel = Parcel::new("last", Delivery::All, number(id, 1));
        groups.post(parcel).unwrap();
    }
    gate.open();
    let reports = ended(&mut groups, 1);
    assert_eq!(reports[0].panic.as_deref(), Some("handler 1"));
    let left = reports[0].undelivered.iter();
    let left: Vec<_> = left.filter_map(|letter| letter.packet()).collect();
    assert_eq!(left, [&number(PANIC, 1), &number(SAY, 1)]);
    end_well(&groups.stop());
}

#[test]
fn a_world_that_panics_during_its_drop_is_reported() {
    #[derive(Resource)]
    struct Grumpy;

    impl Drop for Grumpy {
        fn drop(&mut self) {
            panic!("not yet");
        }
    }

    let mut groups = WorldGroups::new();
    let build = |app: &mut App| {
        app.insert_resource(Grumpy);
    };
    groups.start_worlds("worlds", 1, |_: &mut App| {}).unwrap();
    groups.start_worlds("worlds", 1, build).unwrap();
    let reports = groups.stop();
    assert_eq!(reports[0].panic.as_deref(), Some("not yet"));
    end_well(&reports[1..]);
}

#[test]
fn a_world_without_a_due_plugin_is_not_started() {
    let mut groups = WorldGroups::new();
    let error = groups.start("worlds", 1, |_: &mut App| {}).unwrap_err();
    assert!(matches!(error, StartError::NoPlugin));
    assert!(error.to_string().contains("no `DuePlugin`"), "{error}");
    assert_eq!(groups.running("worlds"), 0);
}

#[test]
fn a_group_can_have_any_name() {
    let mut groups = WorldGroups::new();
    for name in ["", "two words", "a\0b"] {
        groups.start_worlds(name, 1, |_| {}).unwrap();
        assert_eq!(groups.running(name), 1);
    }
    end_well(&groups.stop());
}
