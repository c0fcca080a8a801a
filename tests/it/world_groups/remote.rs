//! Worlds in other processes: two or more groups that exchange only bytes.

mod announced;
mod attacks;
mod churn;
mod faults;
mod raw;
mod settings;
mod wire;

use bevy_due::worlds::link::{FromPeer, HasRoom, Link, Liveness, PeerChanged, PeerSettings};

use self::wire::*;
use super::*;

#[test]
fn a_world_of_another_process_is_a_member_like_a_thread() {
    let (hear, heard) = mpsc::channel();
    let [mut here, mut there] = [WorldGroups::new(), WorldGroups::new()];
    there
        .start_worlds("ears", 1, listener(hear.clone()))
        .unwrap();
    here.start_worlds("ears", 1, listener(hear)).unwrap();
    let wire = Wire::connect(&here, &there);
    wait_for_worlds(&here, "ears", 2);
    wait_for_worlds(&there, "ears", 2);
    here.post(say("ears", Delivery::All, 1)).unwrap();
    assert_eq!([next(&heard).1, next(&heard).1], [1, 1], "each of the two");
    for nth in 2..6 {
        here.post(say("ears", Delivery::InTurn, nth)).unwrap();
    }
    let in_turn = sorted((2..6).map(|_| next(&heard).1));
    assert_eq!(in_turn, [2, 3, 4, 5], "exactly one each");
    there.stop_group("ears");
    wait_for_worlds(&here, "ears", 1);
    drop(wire);
    end_well(&here.stop());
    end_well(&there.stop());
    assert_eq!(heard.iter().count(), 0, "nothing comes back");
}

#[test]
fn a_process_with_several_worlds_has_a_turn_for_each_and_one_copy_of_a_broadcast() {
    let (hear, heard) = mpsc::channel();
    let [mut here, mut there] = [WorldGroups::new(), WorldGroups::new()];
    // The worlds there have the numbers 0 to 2.
    let ears = Arc::new(listener(hear));
    let of_there = ears.clone();
    there
        .start_worlds("ears", 3, move |app| of_there(app))
        .unwrap();
    here.start_worlds("ears", 1, move |app| ears(app)).unwrap();
    let wire = Wire::connect(&here, &there);
    wait_for_worlds(&here, "ears", 4);
    let carried = Arc::new(AtomicUsize::new(0));
    let bytes = carried.clone();
    wire.ways[0].set(move |batch| {
        bytes.fetch_add(batch.len(), Ordering::Relaxed);
        1
    });

    const LARGE: usize = 100_000;
    let mut payload = vec![0; LARGE];
    payload[..4].copy_from_slice(&7_u32.to_le_bytes());
    let ask = Parcel::new("ears", Delivery::All, Packet::new(WAIT, payload));
    here.post(ask).unwrap();
    for nth in 0..8 {
        here.post(say("ears", Delivery::InTurn, nth)).unwrap();
    }
    let worlds = sorted((0..8).map(|_| next(&heard).0));
    assert_eq!(worlds, [0, 0, 1, 1, 2, 2, 3, 3]);
    let carried = carried.load(Ordering::Relaxed);
    assert!((LARGE..2 * LARGE).contains(&carried), "{carried}");
}

#[test]
fn a_request_to_another_process_gets_its_reply() {
    let [mut here, mut there] = [WorldGroups::new(), WorldGroups::new()];
    there.start_worlds("answerers", 2, answerer).unwrap();
    let _wire = Wire::connect(&here, &there);
    wait_for_worlds(&here, "answerers", 2);
    let (tell, told) = mpsc::channel();
    here.start_worlds("askers", 1, asker(tell)).unwrap();
    assert_eq!(next(&told), Ok(42));
    end_well(&here.stop());
    end_well(&there.stop());
}

/// Builds a world that doubles numbers.
fn answerer(app: &mut App) {
    app.world_mut().spawn(MessageComponent::new().on_packet(
        QUESTION,
        |mut me: MessageContext, asked: &Packet| -> Result {
            Ok(me.reply(number(ANSWER, 2 * read(asked)))?)
        },
    ));
}

/// The end of a request.
type Ended = Result<u32, NoAnswer>;

/// Builds a world that asks the "answerers" at its start, and tells how the request ends.
fn asker(tell: Sender<Ended>) -> impl Fn(&mut App) + Send + Sync + 'static {
    move |app| {
        let (answered, failed) = (tell.clone(), tell.clone());
        let asker = MessageComponent::new()
            .on_packet(ANSWER, move |_: MessageContext, said: &Packet| {
                answered.send(Ok(read(said))).ok();
            })
            .on(move |_: MessageContext, no_answer: &NoAnswer| {
                failed.send(Err(*no_answer)).ok();
            });
        app.world_mut().spawn((StableKey(7), asker));
        app.add_systems(
            Startup,
            |asker: Single<Entity, With<StableKey>>, mut commands: Commands| {
                let question = Parcel::new("answerers", Delivery::InTurn, number(QUESTION, 21));
                let until = Timer::after(3600.0);
                commands.entity(*asker).ask_world(question, until);
            },
        );
    }
}

const COUNTED: StableKey = StableKey(1);
const CUSTOMER: StableKey = StableKey(2);

/// Builds a world that doubles numbers. It sends each result to the customers twice, and then as
/// the reply to the request.
fn calculator(app: &mut App) {
    let answer = |mut me: MessageContext, question: &Packet| -> Result {
        let twice = 2 * read(question);
        me.commands.post(say("customers", Delivery::All, twice));
        me.commands.post(say("customers", COUNTED, twice));
        Ok(me.reply(number(ANSWER, twice))?)
    };
    app.world_mut()
        .spawn(MessageComponent::new().on_packet(QUESTION, answer));
}

/// Builds worlds that make ten requests, one after the other. They then report the sum of the
/// messages received and the sum of the replies.
fn customer(report: &Sender<[u32; 2]>) -> impl Fn(&mut App) + Send + Sync + 'static + use<> {
    #[derive(Component, Default)]
    struct Heard([u32; 2]);

    fn ask(customer: &mut EntityCommands, what: u32) {
        let question = Parcel::new("calculators", Delivery::InTurn, number(QUESTION, what));
        customer.ask_world(question, Timer::after(3600.0));
    }

    let report = report.clone();
    move |app| {
        let report = report.clone();
        let count = |mut me: MessageContext, said: &Packet| {
            me.entity.get_mut::<Heard>().unwrap().0[0] += read(said);
        };
        let counter = MessageComponent::new().on_packet(SAY, count);
        app.world_mut().spawn((COUNTED, Heard::default(), counter));
        let ask_next = move |mut me: MessageContext, answer: &Packet| {
            let mut heard = me.entity.get_mut::<Heard>().unwrap();
            heard.0[1] += read(answer);
            if read(answer) == 20 {
                let answers = heard.0[1];
                let report = report.clone();
                me.commands.queue(move |world: &mut World| {
                    let mut all = world.query::<(&StableKey, &Heard)>();
                    let mut all = all.iter(world);
                    let (_, said) = all.find(|(key, _)| **key == COUNTED).unwrap();
                    report.send([said.0[0], answers]).ok();
                });
            } else {
                let mut customer = me.commands.entity(me.entity.id());
                ask(&mut customer, read(answer) / 2 + 1);
            }
        };
        let customer = MessageComponent::new().on_packet(ANSWER, ask_next);
        app.world_mut()
            .spawn((CUSTOMER, Heard::default(), customer));
        let ask_first = |world: &mut World| {
            let mut all = world.query::<(Entity, &StableKey)>();
            let mut all = all.iter(world);
            let (customer, _) = all.find(|(_, key)| **key == CUSTOMER).unwrap();
            ask(&mut world.commands().entity(customer), 1);
        };
        app.add_systems(Startup, ask_first);
    }
}

/// The sums that a customer reports. Each result arrives twice before its reply, because the
/// messages of a sender stay in order.
const ALL_HEARD: [u32; 2] = [2 * 110, 110];

#[test]
fn worlds_joined_by_bytes_behave_like_threads() {
    let (report, reports) = mpsc::channel();
    let mut groups = WorldGroups::new();
    groups.start_worlds("calculators", 2, calculator).unwrap();
    groups
        .start_worlds("customers", 1, customer(&report))
        .unwrap();
    assert_eq!(next(&reports), ALL_HEARD);
    end_well(&groups.stop());

    let mut processes = [(); 3].map(|()| WorldGroups::new());
    let [a, b, c] = &mut processes;
    a.start_worlds("calculators", 1, calculator).unwrap();
    b.start_worlds("calculators", 1, calculator).unwrap();
    let _wires = [
        Wire::connect(a, b),
        Wire::connect(b, c),
        Wire::connect(a, c),
    ];
    wait_for_worlds(c, "calculators", 2);
    c.start_worlds("customers", 1, customer(&report)).unwrap();
    assert_eq!(next(&reports), ALL_HEARD);
    for process in processes {
        end_well(&process.stop());
    }
}

#[test]
fn a_parcel_for_a_key_goes_to_the_process_that_has_it() {
    let here = WorldGroups::new();
    let (hear, heard) = mpsc::channel();
    let spawn_ears = spawn_listener(hear);
    let mut others = [(); 2].map(|()| {
        let there = WorldGroups::new();
        let mut app = member(&there, "ears");
        spawn_ears(app.world_mut());
        (there, app)
    });
    let wires = others
        .each_ref()
        .map(|(there, _)| Wire::connect(&here, there));
    wait_for_worlds(&here, "ears", 2);
    for key in [0, 1] {
        wait_for_key(&here, "ears", key);
        here.post(say("ears", StableKey(key), 7)).unwrap();
        let (_, app) = &mut others[key as usize];
        let arrived = || {
            app.update();
            heard.try_recv().ok() == Some((key as usize, 7))
        };
        wait_until(arrived, "the parcel should have arrived");
    }
    // A key that goes away.
    let (_, second) = &mut others[1];
    let keys = second.world_mut().query::<(Entity, &StableKey)>();
    let (entity, _) = { keys }.single(second.world()).unwrap();
    second.world_mut().despawn(entity);
    let refused = || here.post(say("ears", StableKey(1), 8)).err();
    wait_until(|| refused().is_some(), "the key has gone");
    assert_eq!(refused().unwrap().reason, RefusalReason::UnknownKey);
    drop(wires);
}

#[test]
fn the_newest_claim_to_a_key_wins() {
    let processes = [(); 3].map(|()| WorldGroups::new());
    let [a, b, c] = &processes;
    let _wires = [
        Wire::connect(a, b),
        Wire::connect(b, c),
        Wire::connect(a, c),
    ];
    let owners = [b, c];
    let mut apps = owners.map(|groups| member(groups, "zones"));
    wait_for_worlds(a, "zones", 2);
    for turn in 0..6 {
        let [new, old] = [turn % 2, (turn + 1) % 2];
        if turn > 0 {
            // A claim is newer than those that its process knows.
            wait_until_delivered(owners[new], &mut apps[old]);
        }
        let heard = MessageComponent::new().on_packet(SAY, |_: MessageContext, _: &Packet| {});
        apps[new].world_mut().spawn((StableKey(5), heard));
        wait_until_delivered(a, &mut apps[new]);
    }
}

/// Waits until the parcels for a key go to a world.
fn wait_until_delivered(from: &WorldGroups, to: &mut App) {
    let before = to.world().resource::<MessageStats>().delivered;
    let arrived = || {
        from.post(say("zones", StableKey(5), 1)).ok();
        to.update();
        to.world().resource::<MessageStats>().delivered > before
    };
    wait_until(arrived, "the owner gets the parcels");
}

#[test]
fn a_parcel_follows_a_key_that_has_moved_meanwhile() {
    let (hear, heard) = mpsc::channel();
    let processes = [(); 3].map(|()| WorldGroups::new());
    let [a, b, c] = &processes;
    let wires = [
        Wire::connect(a, b),
        Wire::connect(b, c),
        Wire::connect(a, c),
    ];
    let [mut old, mut new] = [b, c].map(|groups| member(groups, "zones"));
    let hero = old.world_mut().spawn(StableKey(0)).id();
    for groups in [a, c] {
        wait_for_key(groups, "zones", 0);
    }
    {
        // The first process hears nothing of the move.
        let _held = [wires[0].ways[1].hold(), wires[2].ways[1].hold()];
        spawn_listener(hear)(new.world_mut());
        wait_until(
            || b.post(say("zones", StableKey(0), 1)).is_ok() && heard_one(&mut new, &heard),
            "the second process knows the new place",
        );
        old.world_mut().despawn(hero);
        a.post(say("zones", StableKey(0), 2)).unwrap();
        wait_until(|| heard_one(&mut new, &heard), "the parcel was passed on");
    }
}

fn heard_one(app: &mut App, heard: &Receiver<(usize, u32)>) -> bool {
    app.update();
    heard.try_recv().is_ok()
}

#[test]
fn parcels_of_a_sender_stay_in_order() {
    const PARCELS: u32 = 20_000;

    let (hear, heard) = mpsc::channel();
    let [here, mut there] = [WorldGroups::new(), WorldGroups::new()];
    there.start_worlds("ears", 1, listener(hear)).unwrap();
    let _wire = Wire::connect(&here, &there);
    wait_for_key(&here, "ears", 0);
    for nth in 0..PARCELS {
        let to = match nth % 3 {
            0 => StableKey(0).into(),
            1 => Delivery::InTurn,
            _ => Delivery::All,
        };
        here.post(say("ears", to, nth)).unwrap();
    }
    for nth in 0..PARCELS {
        assert_eq!(next(&heard).1, nth);
    }
}

#[test]
fn a_refusal_by_another_process_comes_back() {
    let [here, there] = [WorldGroups::new(), WorldGroups::new()];
    let mut app = member(&here, "main");
    record::<Refused>(&mut app);
    let mut far = member(&there, "ears");
    let entity = far.world_mut().spawn(StableKey(3)).id();
    let wire = Wire::connect(&here, &there);
    wait_for_key(&here, "ears", 3);
    {
        let _held = wire.ways[1].hold();
        far.world_mut().despawn(entity);
        app.world_mut()
            .commands()
            .post(say("ears", StableKey(3), 1));
        app.world_mut().flush();
    }
    let [refused] = &receive::<Refused>(&mut app)[..] else {
        panic!("one refusal");
    };
    assert_eq!(refused.reason, RefusalReason::UnknownKey);
    assert_eq!(refused.parcel, say("ears", StableKey(3), 1));
}

#[test]
fn a_full_world_elsewhere_tells_when_it_has_room() {
    let [here, there] = [WorldGroups::new(), WorldGroups::new()];
    let mut app = member(&here, "main");
    record::<Refused>(&mut app);
    record::<HasRoom>(&mut app);
    let mut far = App::new();
    let small = DuePlugin {
        inbox_capacity: 2,
        ..DuePlugin::default()
    };
    far.add_plugins((TimePlugin, small));
    record::<PeerChanged>(&mut far);
    there.add("ears", &mut far);
    let _wire = Wire::connect(&here, &there);
    wait_for_worlds(&here, "ears", 1);
    // The news that the other process has come takes room, too.
    receive::<PeerChanged>(&mut far);
    for nth in 0..3 {
        app.world_mut()
            .commands()
            .post(say("ears", Delivery::InTurn, nth));
    }
    app.world_mut().flush();
    let [refused] = &receive::<Refused>(&mut app)[..] else {
        panic!("one refusal");
    };
    assert_eq!(refused.reason, RefusalReason::Full);
    assert_eq!(refused.parcel, say("ears", Delivery::InTurn, 2));
    far.update();
    let group = "ears".into();
    assert_eq!(receive::<HasRoom>(&mut app), [HasRoom { group }]);
}

#[test]
fn a_full_queue_tells_when_it_has_room() {
    let [here, there] = [WorldGroups::new(), WorldGroups::new()];
    let mut app = member(&here, "main");
    record::<HasRoom>(&mut app);
    let _far = member(&there, "ears");
    let settings = PeerSettings {
        queue_bytes: 1000,
        parcel_bytes: 500,
        batch_bytes: 0,
        ..QUICK
    };
    let wire = Wire::with([&here, &there], ["a", "b"], settings);
    wait_for_worlds(&here, "ears", 1);
    let parcel = |bytes: usize| {
        let packet = Packet::new(SAY, vec![0; bytes]);
        Parcel::new("ears", Delivery::InTurn, packet)
    };
    let post = |app: &App, bytes| app.world().resource::<WorldLink>().post(parcel(bytes));
    let refused = post(&app, 501).unwrap_err();
    assert_eq!(refused.reason, RefusalReason::TooLarge);
    {
        let _held = wire.ways[0].hold();
        let refused = (0..10).find_map(|_| post(&app, 400).err());
        assert_eq!(refused.unwrap().reason, RefusalReason::Full);
    }
    let group = "ears".into();
    assert_eq!(receive::<HasRoom>(&mut app), [HasRoom { group }]);
    assert_eq!(post(&app, 400), Ok(()));
}

#[test]
fn a_world_learns_when_a_process_comes_is_silent_and_goes() {
    let [mut here, mut there] = [WorldGroups::new(), WorldGroups::new()];
    let mut app = member(&here, "main");
    record::<PeerChanged>(&mut app);
    there.start_worlds("answerers", 1, answerer).unwrap();
    let settings = PeerSettings {
        suspect_after: Duration::from_millis(300),
        down_after: Duration::from_millis(900),
        ..QUICK
    };
    let wire = Wire::with([&here, &there], ["a", "b"], settings);
    let mut next_change = || {
        let [PeerChanged { name, liveness }] = &receive::<PeerChanged>(&mut app)[..] else {
            panic!("one change at a time");
        };
        assert_eq!(&**name, "b");
        *liveness
    };
    assert_eq!(next_change(), Liveness::Up);
    wait_for_worlds(&here, "answerers", 1);
    let held = wire.ways[1].hold();
    assert_eq!(next_change(), Liveness::Suspect);
    assert_eq!(here.running("answerers"), 0);
    // A process that may be dead still gets what nobody else can take.
    let (tell, told) = mpsc::channel();
    here.start_worlds("askers", 1, asker(tell)).unwrap();
    drop(held);
    assert_eq!(next_change(), Liveness::Up);
    assert_eq!(here.running("answerers"), 1);
    assert_eq!(next(&told), Ok(42));
    let held = wire.ways[1].hold();
    assert_eq!(next_change(), Liveness::Suspect);
    assert_eq!(next_change(), Liveness::Down);
    let refused = here.post(say("answerers", Delivery::InTurn, 0));
    assert_eq!(refused.unwrap_err().reason, RefusalReason::UnknownGroup);
    drop(held);
    assert_eq!(next_change(), Liveness::Up, "it comes back");
    wait_for_worlds(&here, "answerers", 1);
}

#[test]
fn the_worlds_and_keys_of_a_process_that_is_up_are_known() {
    let there = WorldGroups::new();
    let mut far = member(&there, "ears");
    for key in 0..1000 {
        far.world_mut().spawn(StableKey(key));
    }
    for _ in 0..10 {
        let here = WorldGroups::new();
        let mut app = member(&here, "main");
        record::<PeerChanged>(&mut app);
        let _wire = Wire::connect(&here, &there);
        assert_eq!(receive::<PeerChanged>(&mut app)[0].liveness, Liveness::Up);
        assert_eq!(here.running("ears"), 1);
        for key in 0..1000 {
            let known = here.post(say("ears", StableKey(key), 0));
            known.expect("its keys are known");
        }
    }
}

#[test]
fn a_request_fails_at_once_when_its_process_goes() {
    let [mut here, mut there] = [WorldGroups::new(), WorldGroups::new()];
    let gate = Gate::new();
    let pass = gate.pass();
    let slow = move |app: &mut App| {
        let pass = pass.clone();
        let answers = MessageComponent::new()
            .on_packet(QUESTION, move |_: MessageContext, _: &Packet| pass());
        app.world_mut().spawn(answers);
    };
    there.start_worlds("answerers", 1, slow).unwrap();
    let wire = Wire::connect(&here, &there);
    wait_for_worlds(&here, "answerers", 1);
    let (tell, told) = mpsc::channel();
    here.start_worlds("askers", 1, asker(tell)).unwrap();
    gate.somebody_waits();
    wire.ends[0].disconnected();
    let lost = NoAnswer::Refused(RefusalReason::PeerLost);
    assert_eq!(next(&told), Err(lost));
    gate.open();
}

#[test]
fn parcels_that_wait_are_refused_when_their_process_goes() {
    let [here, there] = [WorldGroups::new(), WorldGroups::new()];
    let mut app = member(&here, "main");
    record::<Refused>(&mut app);
    let _far = member(&there, "ears");
    let wire = Wire::connect(&here, &there);
    wait_for_worlds(&here, "ears", 1);
    let _held = wire.ways[0].hold();
    // One batch may be on its way already.
    for nth in 0..1000 {
        app.world_mut()
            .commands()
            .post(say("ears", Delivery::InTurn, nth));
        app.world_mut().flush();
        thread::yield_now();
    }
    wire.ends[0].disconnected();
    let refused = receive::<Refused>(&mut app);
    assert!(!refused.is_empty());
    let first = read(&refused[0].parcel.packet);
    for (nth, refused) in (first..).zip(&refused) {
        assert_eq!(refused.reason, RefusalReason::PeerLost);
        assert_eq!(refused.parcel, say("ears", Delivery::InTurn, nth));
    }
    assert_eq!(first as usize + refused.len(), 1000);
}

#[test]
fn a_process_gets_only_what_it_is_permitted() {
    let [here, there] = [WorldGroups::new(), WorldGroups::new()];
    let mut app = member(&here, "main");
    record::<Refused>(&mut app);
    app.world_mut().spawn(StableKey(1));
    let _far = [member(&there, "ears"), member(&there, "accounts")];
    here.permit(|peer, what| match what {
        FromPeer::Worlds(group) => peer == "b" && group != "accounts",
        FromPeer::Key(address) => address.group != "main",
        _ => true,
    });
    there.permit(|peer, what| match what {
        FromPeer::Parcel(parcel) => peer == "a" && parcel.packet.id() != PANIC,
        _ => true,
    });
    let mut thief = member(&there, "main");
    thief.world_mut().spawn(StableKey(1));
    let _wire = Wire::connect(&here, &there);
    wait_for_worlds(&here, "ears", 1);
    assert_eq!(here.running("accounts"), 0);
    app.world_mut()
        .commands()
        .post(Parcel::new("ears", Delivery::All, number(PANIC, 0)));
    app.update();
    let [refused] = &receive::<Refused>(&mut app)[..] else {
        panic!("one refusal");
    };
    assert_eq!(refused.reason, RefusalReason::Forbidden);
    // The thief has not got the key.
    let before = app.world().resource::<MessageStats>().undeliverable;
    here.post(say("main", StableKey(1), 1)).unwrap();
    app.update();
    assert_eq!(
        app.world().resource::<MessageStats>().undeliverable,
        before + 1,
        "it went to this world, where nobody follows it"
    );
}

#[test]
fn the_end_of_the_groups_sends_what_waits_and_says_goodbye() {
    struct Closed(Sender<&'static str>);

    impl Link for Closed {
        fn open(&mut self, _: bevy_due::worlds::GroupsHandle) -> Result {
            self.0.send("opened")?;
            Ok(())
        }

        fn close(&mut self) {
            self.0.send("closed").ok();
        }
    }

    let (hear, heard) = mpsc::channel();
    let [mut here, mut there] = [WorldGroups::new(), WorldGroups::new()];
    there.start_worlds("ears", 1, listener(hear)).unwrap();
    let (tell, told) = mpsc::channel();
    here.join(Closed(tell)).unwrap();
    assert_eq!(told.try_recv(), Ok("opened"));
    let mut far = member(&there, "main");
    record::<PeerChanged>(&mut far);
    // Most parcels wait for room on the way.
    let settings = PeerSettings {
        window_bytes: 1000,
        batch_bytes: 100,
        ..QUICK
    };
    let wire = Wire::with([&here, &there], ["a", "b"], settings);
    wait_for_worlds(&here, "ears", 1);
    receive::<PeerChanged>(&mut far);
    for nth in 0..1000 {
        here.post(say("ears", Delivery::InTurn, nth)).unwrap();
    }
    here.stop();
    assert_eq!(told.try_recv(), Ok("closed"));
    for nth in 0..1000 {
        assert_eq!(next(&heard).1, nth);
    }
    let [gone] = &receive::<PeerChanged>(&mut far)[..] else {
        panic!("one change");
    };
    assert_eq!(gone.liveness, Liveness::Down);
    drop(wire);
}

#[test]
fn a_link_that_does_not_open_is_an_error() {
    struct Broken;

    impl Link for Broken {
        fn open(&mut self, _: bevy_due::worlds::GroupsHandle) -> Result {
            Err("no network".into())
        }

        fn close(&mut self) {
            panic!("it was never open");
        }
    }

    let mut groups = WorldGroups::new();
    let error = groups.join(Broken).unwrap_err();
    assert!(error.to_string().contains("no network"), "{error}");
}

#[test]
fn a_thread_of_a_link_ends_with_the_groups() {
    let groups = WorldGroups::new();
    let peer = groups.handle().connect("b", QUICK);
    let (tell, told) = mpsc::channel();
    let thread = thread::spawn(move || {
        while peer.next_batch().is_some() {
            tell.send(()).ok();
        }
        // The groups are closed just before they are dropped.
        let closed = || peer.receive(&[]) == Err(bevy_due::worlds::link::BatchError::Closed);
        wait_until(closed, "the groups are gone");
    });
    next(&told);
    drop(groups);
    thread.join().unwrap();
}

#[test]
fn a_world_starts_worlds_and_a_handle_outlives_the_groups() {
    use bevy_due::worlds::GroupsHandle;

    let (hear, heard) = mpsc::channel();
    let ears = Arc::new(listener(hear));
    let mut groups = WorldGroups::new();
    let build = move |app: &mut App| {
        let ears = ears.clone();
        let start = move |groups: Res<GroupsHandle>| -> Result {
            let ears = ears.clone();
            groups.start("ears", 2, move |app| {
                app.add_plugins(DuePlugin::default());
                ears(app);
            })?;
            groups.post(say("ears", Delivery::All, 5))?;
            Ok(())
        };
        app.add_systems(Startup, start);
    };
    groups.start_worlds("lobby", 1, build).unwrap();
    assert_eq!([next(&heard).1, next(&heard).1], [5, 5]);
    let handle = groups.handle();
    assert_eq!(handle.running("ears"), 2);
    let reports = groups.stop();
    assert_eq!(reports.len(), 3);
    end_well(&reports);
    assert_eq!(handle.running("ears"), 0);
    let refused = handle.post(say("ears", Delivery::All, 6)).unwrap_err();
    assert_eq!(refused.reason, RefusalReason::UnknownGroup);
    let stopped = handle.start("ears", 1, |_: &mut App| ());
    assert!(matches!(stopped, Err(StartError::Stopped)), "{stopped:?}");
    let stopped = handle.add("ears", &mut App::new());
    assert!(matches!(stopped, Err(StartError::Stopped)), "{stopped:?}");
}

#[test]
fn a_world_may_join_before_its_plugin_is_added() {
    let groups = WorldGroups::new();
    let mut app = App::new();
    groups.add("ears", &mut app);
    app.world_mut().spawn(StableKey(1));
    app.add_plugins((TimePlugin, DuePlugin::default()));
    let later = app.world_mut().spawn(StableKey(2)).id();
    for key in [1, 2] {
        let sent = groups.post(say("ears", StableKey(key), 0));
        assert!(sent.is_ok(), "key {key}: {sent:?}");
    }
    app.world_mut().despawn(later);
    assert!(groups.post(say("ears", StableKey(2), 0)).is_err());
}
