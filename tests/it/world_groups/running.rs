//! The threads and the frames of worlds.

use core::sync::atomic::AtomicBool;

use bevy_tasks::IoTaskPool;

use super::*;

#[test]
fn each_world_runs_its_systems_on_its_own_thread() {
    let (tell, told) = mpsc::channel::<ThreadId>();
    let mut groups = WorldGroups::new();
    let build = move |app: &mut App| {
        let here = thread::current().id();
        let tell = tell.clone();
        let compare = move || {
            assert_eq!(thread::current().id(), here);
            tell.send(here).ok();
        };
        app.add_systems(Startup, compare);
    };
    groups.start_worlds("worlds", 4, build).unwrap();
    end_well(&groups.stop());
    let threads: HashSet<_> = told.iter().chain([thread::current().id()]).collect();
    assert_eq!(threads.len(), 5);
}

#[test]
fn worlds_that_block_in_a_system_do_not_hold_up_others() {
    let (hear, heard) = mpsc::channel();
    let gate = Gate::new();
    let mut groups = WorldGroups::new();
    // More worlds than any thread pool has threads.
    let waiting = thread::available_parallelism().map_or(8, usize::from) + 2;
    let pass = gate.pass();
    let build = move |app: &mut App| {
        let pass = pass.clone();
        app.add_systems(Startup, pass);
    };
    groups.start_worlds("databases", waiting, build).unwrap();
    for _ in 0..waiting {
        gate.somebody_waits();
    }
    let build_ears = listener(hear);
    let build = move |app: &mut App| {
        build_ears(app);
        app.add_systems(Startup, |link: Res<WorldLink>| {
            link.post(say("ears", Delivery::All, 1)).unwrap();
        });
    };
    groups.start_worlds("ears", 1, build).unwrap();
    assert_eq!(next(&heard), (0, 1));
    for _ in 0..waiting {
        gate.open();
    }
    end_well(&groups.stop());
}

/// A schedule of which a game configures only the sets stays as it is.
#[test]
fn sets_keep_their_conditions_before_they_have_systems() {
    #[derive(SystemSet, Clone, Debug, PartialEq, Eq, Hash)]
    struct Never;

    let (tell, told) = mpsc::channel();
    let mut groups = WorldGroups::new();
    let build = move |app: &mut App| {
        let tell = tell.clone();
        app.configure_sets(Update, Never.run_if(|| false));
        let add = move |mut schedules: ResMut<Schedules>| {
            for (name, is_ready) in [("never", false), ("ready", true)] {
                let tell = tell.clone();
                let run = move || _ = tell.send(name);
                match is_ready {
                    true => schedules.add_systems(PostUpdate, run),
                    false => schedules.add_systems(Update, run.in_set(Never)),
                };
            }
        };
        app.add_systems(Startup, add);
    };
    groups.start_worlds("worlds", 1, build).unwrap();
    assert_eq!(told.recv(), Ok("ready"));
    end_well(&groups.stop());
    assert!(told.iter().all(|name| name == "ready"));
}

#[test]
fn a_system_can_iterate_in_parallel() {
    let (tell, told) = mpsc::channel();
    let mut groups = WorldGroups::new();
    let build = move |app: &mut App| {
        let tell = tell.clone();
        app.world_mut().spawn_batch((0..1_000).map(StableKey));
        let go_through = move |keys: Query<&StableKey>| {
            keys.par_iter().for_each(|key| _ = tell.send(key.0));
        };
        app.add_systems(Startup, go_through);
    };
    groups.start_worlds("worlds", 1, build).unwrap();
    end_well(&groups.stop());
    assert!(sorted(told).into_iter().eq(0..1_000));
}

#[test]
fn a_plugin_can_wait_for_a_task_of_its_thread() {
    /// A plugin that is ready after a local task has run.
    #[derive(Default)]
    struct WaitsForTask {
        is_begun: AtomicBool,
        is_done: Arc<AtomicBool>,
        polls: AtomicUsize,
    }

    impl Plugin for WaitsForTask {
        fn build(&self, _: &mut App) {}

        fn ready(&self, _: &App) -> bool {
            if !self.is_begun.swap(true, Ordering::Relaxed) {
                let is_done = self.is_done.clone();
                let task = async move { is_done.store(true, Ordering::Relaxed) };
                IoTaskPool::get().spawn_local(task).detach();
            }
            let polls = self.polls.fetch_add(1, Ordering::Relaxed);
            assert!(polls < 100_000, "the task should have run by now");
            self.is_done.load(Ordering::Relaxed)
        }
    }

    let mut groups = WorldGroups::new();
    let build = |app: &mut App| {
        app.add_plugins(WaitsForTask::default());
    };
    groups.start_worlds("worlds", 1, build).unwrap();
    end_well(&groups.stop());
}

#[test]
fn worlds_can_join_a_running_group() {
    let (hear, heard) = mpsc::channel();
    let mut groups = WorldGroups::new();
    let build = Arc::new(listener(hear));
    for worlds in 1..=2 {
        let build = build.clone();
        groups
            .start_worlds("ears", 1, move |app: &mut App| build(app))
            .unwrap();
        assert_eq!(groups.running("ears"), worlds);
        groups
            .post(say("ears", Delivery::All, worlds as u32))
            .unwrap();
    }
    drop(build);
    let reports = groups.stop();
    end_well(&reports);
    assert!(reports.iter().map(|report| report.nth).eq([1, 0]));
    assert_eq!(sorted(heard), [(0, 1), (0, 2), (1, 2)]);
}

#[test]
fn the_world_of_another_app_can_join() {
    #[derive(Resource, Default)]
    struct Heard(Vec<u32>);

    #[derive(Resource)]
    struct IsDone;

    let mut app = App::new();
    // A key inserted before the plugin is found, too.
    let ears = MessageComponent::new().on_packet(SAY, |mut me: MessageContext, said: &Packet| {
        let said = read(said);
        me.commands.queue(move |world: &mut World| {
            world.resource_mut::<Heard>().0.push(said);
        });
    });
    let done = MessageComponent::new().on_packet(ANSWER, |mut me: MessageContext, _: &Packet| {
        me.commands.insert_resource(IsDone);
    });
    let window = app.world_mut().spawn((StableKey(1), ears)).id();
    let asker = app.world_mut().spawn((StableKey(2), done)).id();
    app.init_resource::<Heard>()
        .add_plugins((TimePlugin, DuePlugin::default()));

    let mut groups = WorldGroups::new();
    groups.add("main", &mut app);
    assert_eq!(groups.running("main"), 1);
    assert_eq!(app.world().resource::<WorldLink>().group(), "main");
    let build = |app: &mut App| {
        let echo = |mut me: MessageContext, _: &Packet| {
            for to in [StableKey(1).into(), Delivery::All, Delivery::InTurn] {
                me.commands.post(say("main", to, 5));
            }
            me.reply(number(ANSWER, 0)).unwrap();
        };
        app.world_mut()
            .spawn(MessageComponent::new().on_packet(QUESTION, echo));
    };
    groups.start_worlds("workers", 1, build).unwrap();
    app.world_mut().commands().entity(asker).ask_world(
        Parcel::new("workers", Delivery::InTurn, number(QUESTION, 0)),
        Timer::after(3600.0),
    );
    let is_done = || {
        app.update();
        app.world().contains_resource::<IsDone>()
    };
    wait_until(is_done, "the worker should have answered");
    assert_eq!(app.world().resource::<Heard>().0, [5, 5, 5]);

    app.world_mut().despawn(window);
    let refused = groups.post(say("main", StableKey(1), 1)).unwrap_err();
    assert_eq!(refused.reason, RefusalReason::UnknownKey);
    drop(app);
    assert_eq!(groups.running("main"), 0);
    let refused = groups.post(say("main", Delivery::All, 1)).unwrap_err();
    assert_eq!(refused.reason, RefusalReason::UnknownGroup);
    end_well(&groups.stop());
}

#[test]
fn a_world_runs_when_a_parcel_arrives_and_not_before() {
    #[derive(Resource, Default)]
    struct Frames(u32);

    let (tell, told) = mpsc::channel();
    let mut groups = WorldGroups::new();
    let build = move |app: &mut App| {
        let tell = tell.clone();
        let ears =
            MessageComponent::new().on_packet(SAY, move |mut me: MessageContext, _: &Packet| {
                let tell = tell.clone();
                me.commands.queue(move |world: &mut World| {
                    tell.send(world.resource::<Frames>().0).ok();
                });
            });
        app.world_mut().spawn(ears);
        app.insert_resource(NEVER)
            .init_resource::<Frames>()
            .add_systems(First, |mut frames: ResMut<Frames>| frames.0 += 1);
    };
    groups.start_worlds("sleepers", 1, build).unwrap();
    groups.post(say("sleepers", Delivery::All, 0)).unwrap();
    let first = next(&told);
    assert!(first <= 2, "at once, or in the frame after the first");
    for nth in 1..=20 {
        groups.post(say("sleepers", Delivery::All, 0)).unwrap();
        // The frame of a message that was delivered between two frames follows later.
        let frames = next(&told) - first;
        assert!(
            frames <= nth,
            "at most one frame for each: {frames} for {nth}"
        );
    }
    end_well(&groups.stop());
}

#[test]
fn systems_see_what_callbacks_did_without_waiting_for_the_interval() {
    #[derive(Resource, Default)]
    struct Said(u32);

    let (tell, told) = mpsc::channel();
    let mut groups = WorldGroups::new();
    let build = move |app: &mut App| {
        let tell = tell.clone();
        let ears = |mut me: MessageContext, said: &Packet| {
            let said = read(said);
            me.commands.insert_resource(Said(said));
        };
        app.world_mut()
            .spawn(MessageComponent::new().on_packet(SAY, ears));
        app.insert_resource(NEVER)
            .init_resource::<Said>()
            .add_systems(Update, move |said: Res<Said>| {
                if said.is_changed() {
                    tell.send(said.0).ok();
                }
            });
    };
    groups.start_worlds("listeners", 1, build).unwrap();
    assert_eq!(next(&told), 0);
    for what in 1..1_000 {
        groups.post(say("listeners", Delivery::All, what)).unwrap();
        assert_eq!(next(&told), what);
    }
    end_well(&groups.stop());
}

#[test]
fn worlds_run_frames_during_an_endless_conversation() {
    let mut groups = WorldGroups::new();
    let mut told = Vec::new();
    for (here, there) in [("ping", "pong"), ("pong", "ping")] {
        let (tell, frames) = mpsc::channel();
        told.push(frames);
        let build = move |app: &mut App| {
            let tell = tell.clone();
            let hit = move |mut me: MessageContext, _: &Packet| {
                me.commands.post(say(there, Delivery::All, 0));
            };
            app.world_mut()
                .spawn(MessageComponent::new().on_packet(SAY, hit));
            app.insert_resource(NEVER)
                .add_systems(Update, move || _ = tell.send(()));
        };
        groups.start_worlds(here, 1, build).unwrap();
    }
    groups.post(say("ping", Delivery::All, 0)).unwrap();
    for frames in told {
        for _ in 0..50 {
            next(&frames);
        }
    }
    drop(groups);
}

#[test]
fn a_parcel_behind_new_callbacks_does_not_wait_for_the_interval() {
    for to in [StableKey(7).into(), Delivery::All, Delivery::InTurn] {
        let (hear, heard) = mpsc::channel();
        let gate = Gate::new();
        let pass = gate.pass();
        let build = move |app: &mut App| {
            let (hear, pass) = (hear.clone(), pass.clone());
            app.insert_resource(NEVER);
            // Both parcels arrive during the first frame.
            app.add_systems(Startup, pass);
            app.world_mut().spawn((StableKey(7), replacing(hear)));
        };
        let mut groups = WorldGroups::new();
        groups.start_worlds("ears", 1, build).unwrap();
        gate.somebody_waits();
        for what in [1, 2] {
            groups.post(say("ears", to, what)).unwrap();
        }
        gate.open();
        assert_eq!([next(&heard), next(&heard)], [1, 2], "{to:?}");
        end_well(&groups.stop());
    }
}

/// Reports each packet, and replaces itself.
fn replacing(hear: Sender<u32>) -> MessageComponent {
    MessageComponent::new().on_packet(SAY, move |mut me: MessageContext, said: &Packet| {
        hear.send(read(said)).ok();
        let new = replacing(hear.clone());
        me.commands.entity(me.entity.id()).insert(new);
    })
}

#[test]
fn word_of_a_refused_parcel_does_not_wait_for_the_interval() {
    let (hear, heard) = mpsc::channel();
    let build = move |app: &mut App| {
        app.insert_resource(NEVER);
        let (no_answers, refusals) = (hear.clone(), hear.clone());
        let asker = MessageComponent::new()
            .on_packet(GO, |mut me: MessageContext, _: &Packet| {
                let nobody = || Parcel::new("nobody", Delivery::All, number(QUESTION, 1));
                let asker = me.entity.id();
                me.commands.post(nobody());
                me.commands
                    .entity(asker)
                    .ask_world(nobody(), Timer::after(1.0));
            })
            .on(move |_, no_answer: &NoAnswer| no_answers.send(format!("{no_answer:?}")).unwrap())
            .on(move |_, refused: &Refused| refusals.send(format!("{}", refused.reason)).unwrap());
        app.world_mut().spawn((StableKey(7), asker));
    };
    let mut groups = WorldGroups::new();
    groups.start_worlds("askers", 1, build).unwrap();
    let go = Parcel::new("askers", StableKey(7), number(GO, 0));
    groups.post(go).unwrap();
    let told = [next(&heard), next(&heard)];
    assert_eq!(
        told,
        ["no world of this group runs", "Refused(UnknownGroup)"]
    );
    end_well(&groups.stop());
}

#[test]
fn a_world_that_is_refused_again_and_again_does_not_spin() {
    let (tell, told) = mpsc::channel();
    let build = move |app: &mut App| {
        app.insert_resource(NEVER);
        let nobody = || Parcel::new("nobody", Delivery::All, number(SAY, 1));
        let tell = tell.clone();
        let stubborn = MessageComponent::new()
            .on_packet(GO, move |mut me: MessageContext, _: &Packet| {
                me.commands.post(nobody());
            })
            .on(move |mut me: MessageContext, _: &Refused| {
                tell.send(()).ok();
                me.commands.post(nobody());
            });
        app.world_mut().spawn((StableKey(7), stubborn));
    };
    let mut groups = WorldGroups::new();
    groups.start_worlds("askers", 1, build).unwrap();
    let go = Parcel::new("askers", StableKey(7), number(GO, 0));
    groups.post(go).unwrap();
    next(&told);
    // The delivery at the end is the last.
    let reports = groups.stop();
    assert_eq!(told.try_iter().count(), 1);
    assert_eq!(reports[0].undelivered.len(), 1);
}

#[test]
fn a_world_runs_once_per_interval_by_itself() {
    for interval in [
        Duration::ZERO,
        Duration::from_micros(100),
        Duration::from_millis(1),
    ] {
        let (tell, told) = mpsc::channel();
        let mut groups = WorldGroups::new();
        let build = move |app: &mut App| {
            let tell = tell.clone();
            app.insert_resource(LoopInterval::Every(interval))
                .add_systems(Update, move || _ = tell.send(()));
        };
        groups.start_worlds("worlds", 1, build).unwrap();
        for _ in 0..20 {
            next(&told);
        }
        end_well(&groups.stop());
    }
}

#[test]
fn the_longest_interval_works() {
    let (hear, heard) = mpsc::channel();
    let mut groups = WorldGroups::new();
    let build_ears = listener(hear);
    let build = move |app: &mut App| {
        app.insert_resource(LoopInterval::Every(Duration::MAX));
        build_ears(app);
    };
    groups.start_worlds("ears", 1, build).unwrap();
    for what in 0..3 {
        groups.post(say("ears", Delivery::All, what)).unwrap();
        assert_eq!(next(&heard), (0, what));
    }
    end_well(&groups.stop());
}

#[test]
fn a_second_world_with_a_key_takes_it_over_with_a_warning() {
    static TOLD: Mutex<Vec<(Severity, String)>> = Mutex::new(Vec::new());

    fn record(error: BevyError, _: ErrorContext) {
        let told = (error.severity(), error.to_string());
        TOLD.lock().unwrap().push(told);
    }

    let groups = WorldGroups::new();
    let (hear, heard) = mpsc::channel();
    let [mut first, mut second] = [1, 2].map(|nth| {
        let mut app = App::new();
        app.add_plugins((TimePlugin, DuePlugin::default()));
        app.insert_resource(FallbackErrorHandler(record));
        groups.add("main", &mut app);
        let hear = hear.clone();
        let ears = move |_: MessageContext, _: &Packet| _ = hear.send(nth);
        let ears = MessageComponent::new().on_packet(SAY, ears);
        let entity = app.world_mut().spawn((StableKey(77), ears)).id();
        (app, entity)
    });
    let mut receiver = |groups: &WorldGroups| {
        groups.post(say("main", StableKey(77), 0)).unwrap();
        first.0.update();
        second.0.update();
        next(&heard)
    };
    assert_eq!(receiver(&groups), 2);
    let told = core::mem::take(&mut *TOLD.lock().unwrap());
    let [(severity, text)] = &told[..] else {
        panic!("{told:?}");
    };
    assert_eq!(*severity, Severity::Warning);
    assert!(text.contains("77") && text.contains("main"), "{text}");

    second.0.world_mut().despawn(second.1);
    let mut receiver = |groups: &WorldGroups| {
        groups.post(say("main", StableKey(77), 0)).unwrap();
        first.0.update();
        next(&heard)
    };
    assert_eq!(receiver(&groups), 1, "the first is still there");
    first.0.world_mut().despawn(first.1);
    let refused = groups.post(say("main", StableKey(77), 0)).unwrap_err();
    assert_eq!(refused.reason, RefusalReason::UnknownKey);
}

#[test]
fn a_second_entity_with_a_key_takes_it_over_with_a_warning() {
    static TOLD: Mutex<Vec<(Severity, String)>> = Mutex::new(Vec::new());

    fn record(error: BevyError, _: ErrorContext) {
        TOLD.lock()
            .unwrap()
            .push((error.severity(), error.to_string()));
    }

    let (hear, heard) = mpsc::channel();
    let ears = |nth| {
        let hear = hear.clone();
        MessageComponent::new().on_packet(SAY, move |_: MessageContext, _: &Packet| {
            hear.send(nth).ok();
        })
    };
    let mut app = App::new();
    app.add_plugins((TimePlugin, DuePlugin::default()));
    app.insert_resource(FallbackErrorHandler(record));
    let groups = WorldGroups::new();
    groups.add("main", &mut app);
    let first = app.world_mut().spawn((StableKey(77), ears(1))).id();
    let second = app.world_mut().spawn((StableKey(77), ears(2))).id();
    let told = core::mem::take(&mut *TOLD.lock().unwrap());
    let [(severity, text)] = &told[..] else {
        panic!("{told:?}");
    };
    assert_eq!(*severity, Severity::Warning);
    let said = [first.to_string(), second.to_string(), "77".into()];
    assert!(said.iter().all(|word| text.contains(word)), "{text}");

    groups.post(say("main", StableKey(77), 0)).unwrap();
    app.world_mut().despawn(first);
    groups.post(say("main", StableKey(77), 0)).unwrap();
    app.update();
    assert!(
        heard.try_iter().eq([2, 2]),
        "as when something is spawned anew before the old goes"
    );
}
