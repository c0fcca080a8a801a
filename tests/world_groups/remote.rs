//! Two processes that exchange only frames on a wire. Each has its own groups, with the other
//! process as a member.

use core::sync::atomic::AtomicBool;
use std::{collections::BTreeSet, sync::OnceLock};

use bevy_due::{Address, Link, ParcelReceiver};

use super::*;

/// A frame on the wire.
enum Frame {
    Parcel(Parcel),
    Bind(Address),
    Unbind(Address),
}

/// The sending end of a wire.
struct Wire(Sender<Frame>);

impl Link for Wire {
    fn send(&self, parcel: Parcel) -> Result<(), Refused> {
        self.0.send(Frame::Parcel(parcel)).map_err(|error| {
            let Frame::Parcel(parcel) = error.0 else {
                unreachable!("it was a parcel");
            };
            Refused {
                parcel,
                reason: RefusalReason::UnknownGroup,
            }
        })
    }

    fn bind(&self, address: &Address) {
        self.0.send(Frame::Bind(address.clone())).ok();
    }

    fn unbind(&self, address: &Address) {
        self.0.send(Frame::Unbind(address.clone())).ok();
    }
}

/// Runs the receiving end of a wire. Returns the keys that are bound at the sending end.
fn listen(wire: Receiver<Frame>, worlds: ParcelReceiver) -> Arc<Mutex<HashSet<u64>>> {
    let keys = Arc::new(Mutex::new(HashSet::new()));
    let known = keys.clone();
    thread::spawn(move || {
        for frame in wire {
            match frame {
                // A real wire carries text, so the parcel is serialized.
                #[cfg(feature = "serialize")]
                Frame::Parcel(parcel) => {
                    let text = ron::to_string(&parcel).unwrap();
                    worlds.receive(ron::from_str(&text).unwrap()).ok();
                }
                #[cfg(not(feature = "serialize"))]
                Frame::Parcel(parcel) => worlds.receive(parcel).unwrap_or_default(),
                Frame::Bind(address) => _ = known.lock().unwrap().insert(address.key.0),
                Frame::Unbind(address) => _ = known.lock().unwrap().remove(&address.key.0),
            }
        }
    });
    keys
}

/// Connects two processes with a wire each way. Each can send to one group of the other.
fn connect(
    here: &WorldGroups,
    group_here: &'static str,
    there: &WorldGroups,
    group_there: &'static str,
) {
    for (from, to, group) in [(here, there, group_there), (there, here, group_here)] {
        let (send, receive) = mpsc::channel();
        listen(receive, to.receiver());
        from.join_remote(group, Wire(send));
    }
}

#[test]
fn a_world_of_another_process_is_a_member_like_a_thread() {
    let (hear, heard) = mpsc::channel();
    let [mut here, mut there] = [WorldGroups::new(), WorldGroups::new()];
    there
        .start_worlds("ears", 1, listener(hear.clone()))
        .unwrap();
    here.start_worlds("ears", 1, listener(hear)).unwrap();
    connect(&here, "nobody", &there, "ears");
    here.post(say("ears", Delivery::All, 1)).unwrap();
    assert_eq!([next(&heard).1, next(&heard).1], [1, 1], "each of the two");
    for nth in 2..6 {
        here.post(say("ears", Delivery::InTurn, nth)).unwrap();
    }
    let in_turn = sorted((2..6).map(|_| next(&heard).1));
    assert_eq!(in_turn, [2, 3, 4, 5], "exactly one each");
    let members = there.running("ears") + here.running("ears");
    assert_eq!(members, 3, "one there, one here and the way there");
    end_well(&here.stop());
    end_well(&there.stop());
    assert_eq!(heard.iter().count(), 0, "nothing comes back");
}

#[test]
fn a_request_to_another_process_gets_its_reply() {
    let [mut here, mut there] = [WorldGroups::new(), WorldGroups::new()];
    connect(&here, "askers", &there, "answerers");
    let answer = |app: &mut App| {
        app.world_mut().spawn(MessageComponent::new().on_packet(
            QUESTION,
            |mut me: MessageContext, asked: &Packet| -> Result {
                Ok(me.reply(number(ANSWER, 2 * read(asked)))?)
            },
        ));
    };
    there.start_worlds("answerers", 2, answer).unwrap();
    let (tell, told) = mpsc::channel();
    let ask = move |app: &mut App| {
        let tell = tell.clone();
        let asker =
            MessageComponent::new().on_packet(ANSWER, move |_: MessageContext, said: &Packet| {
                tell.send(read(said)).ok();
            });
        app.world_mut().spawn((StableKey(7), asker));
        app.add_systems(
            Startup,
            |asker: Single<Entity, With<StableKey>>, mut commands: Commands| {
                let question = Parcel::new("answerers", Delivery::InTurn, number(QUESTION, 21));
                let until = Timer::after_secs(60.0);
                commands.entity(*asker).ask_world(question, until);
            },
        );
    };
    here.start_worlds("askers", 1, ask).unwrap();
    assert_eq!(next(&told), 42);
    end_well(&here.stop());
    end_well(&there.stop());
}

#[test]
fn another_process_learns_the_keys_here() {
    let mut here = WorldGroups::new();
    let early = |app: &mut App| _ = app.world_mut().spawn(StableKey(1));
    here.start_worlds("askers", 1, early).unwrap();
    let (send, receive) = mpsc::channel();
    let keys = listen(receive, WorldGroups::new().receiver());
    here.join_remote("elsewhere", Wire(send));
    let late = |app: &mut App| _ = app.world_mut().spawn(StableKey(2));
    here.start_worlds("others", 1, late).unwrap();
    let wait_for_keys = |all: &[u64]| {
        let keys = keys.clone();
        let all: HashSet<_> = all.iter().copied().collect();
        wait_until(move || *keys.lock().unwrap() == all, "the keys are known");
    };
    wait_for_keys(&[1, 2]);
    here.stop_group("askers");
    wait_for_keys(&[2]);
    here.stop();
    wait_for_keys(&[]);
}

#[test]
fn a_link_may_call_back_into_the_groups() {
    /// A link that hands every parcel back to the groups it comes from.
    struct Loop(ParcelReceiver);

    impl Link for Loop {
        fn send(&self, parcel: Parcel) -> Result<(), Refused> {
            self.0.receive(parcel)
        }

        fn bind(&self, _: &Address) {}

        fn unbind(&self, _: &Address) {}
    }

    let (hear, heard) = mpsc::channel();
    let mut groups = WorldGroups::new();
    groups.join_remote("ears", Loop(groups.receiver()));
    groups.start_worlds("ears", 1, listener(hear)).unwrap();
    let deliveries = [Delivery::InTurn, Delivery::All, StableKey(0).into()];
    let expected = [1, 2, 1];
    for (what, (to, times)) in (0..).zip(deliveries.into_iter().zip(expected)) {
        groups.post(say("ears", to, what)).unwrap();
        for _ in 0..times {
            assert_eq!(next(&heard), (0, what), "{to:?}");
        }
    }
    end_well(&groups.stop());
}

/// A link that hands its parcels to groups in this process.
struct DirectLink {
    worlds: ParcelReceiver,
    /// Whether the link returns refusals to the sender. A link over a wire never learns of them.
    passes_refusals: bool,
}

impl Link for DirectLink {
    fn send(&self, parcel: Parcel) -> Result<(), Refused> {
        let received = self.worlds.receive(parcel);
        received.or_else(|refused| match self.passes_refusals {
            true => Err(refused),
            false => Ok(()),
        })
    }

    fn bind(&self, _: &Address) {}

    fn unbind(&self, _: &Address) {}
}

#[test]
fn a_parcel_that_a_link_hands_back_to_a_group_without_worlds_is_refused() {
    for to in [Delivery::InTurn, Delivery::All] {
        let (tell, told) = mpsc::channel();
        thread::spawn(move || {
            let groups = WorldGroups::new();
            let link = DirectLink {
                worlds: groups.receiver(),
                passes_refusals: true,
            };
            groups.join_remote("ears", link);
            tell.send(groups.post(say("ears", to, 1))).ok();
        });
        let refused = next(&told).unwrap_err();
        assert_eq!(refused.reason, RefusalReason::UnknownGroup, "{to:?}");
    }
}

#[test]
fn a_link_may_add_a_link_while_it_takes_a_parcel() {
    struct LinkAdder(OnceLock<Arc<WorldGroups>>);

    impl Link for LinkAdder {
        fn send(&self, _: Parcel) -> Result<(), Refused> {
            let groups = self.0.get().expect("should be set before the first parcel");
            groups.join_remote("elsewhere", KeyRecorder::new(|_, _| ()).0);
            Ok(())
        }

        fn bind(&self, _: &Address) {}

        fn unbind(&self, _: &Address) {}
    }

    for to in [Delivery::InTurn, Delivery::All, StableKey(0).into()] {
        let (tell, told) = mpsc::channel();
        thread::spawn(move || {
            let groups = Arc::new(WorldGroups::new());
            groups.join_remote("ears", LinkAdder(groups.clone().into()));
            let posted = groups.post(say("ears", to, 1));
            tell.send((posted, groups.running("elsewhere"))).ok();
        });
        assert_eq!(next(&told), (Ok(()), 1), "{to:?}");
    }
}

#[test]
fn two_groups_whose_links_call_each_other_do_not_lock_up() {
    const TIMES: u64 = 20_000;

    let groups = [(); 2].map(|()| Arc::new(WorldGroups::new()));
    let [a, b] = &groups;
    for (from, to, group) in [(a, b, "b"), (b, a, "a"), (a, a, "a")] {
        let link = DirectLink {
            worlds: to.receiver(),
            passes_refusals: true,
        };
        from.join_remote(group, link);
    }
    let (tell, told) = mpsc::channel();
    for (here, own, other) in [(a, "a", "b"), (b, "b", "a")] {
        let (groups, tell_bound) = (here.clone(), tell.clone());
        thread::spawn(move || {
            let mut app = App::new();
            app.add_plugins((TimePlugin, DuePlugin::default()));
            groups.join(own, &mut app);
            for key in 0..TIMES {
                let entity = app.world_mut().spawn(StableKey(key)).id();
                app.world_mut().despawn(entity);
            }
            tell_bound.send(()).ok();
        });
        for to in [Delivery::All, Delivery::InTurn, StableKey(1).into()] {
            let (groups, tell_posted) = (here.clone(), tell.clone());
            thread::spawn(move || {
                for _ in 0..TIMES {
                    for group in [own, other] {
                        groups.post(say(group, to, 1)).ok();
                    }
                }
                tell_posted.send(()).ok();
            });
        }
    }
    for _ in 0..8 {
        let end = told.recv_timeout(6 * TIMEOUT);
        end.expect("all threads should have come to their end");
    }
}

#[test]
fn a_slow_link_does_not_hold_up_other_worlds() {
    struct SlowLink {
        send: Box<dyn Fn() + Send + Sync>,
        bind: Box<dyn Fn() + Send + Sync>,
    }

    impl Link for SlowLink {
        fn send(&self, _: Parcel) -> Result<(), Refused> {
            (self.send)();
            Ok(())
        }

        fn bind(&self, _: &Address) {
            (self.bind)();
        }

        fn unbind(&self, _: &Address) {}
    }

    let groups = Arc::new(WorldGroups::new());
    let (hear, heard) = mpsc::channel();
    let (sends, binds) = (Gate::new(), Gate::new());
    let link = SlowLink {
        send: Box::new(sends.pass()),
        bind: Box::new(binds.pass()),
    };
    groups.join_remote("slow", link);
    for to in [Delivery::InTurn, Delivery::All, StableKey(9).into()] {
        let mut app = App::new();
        app.add_plugins((TimePlugin, DuePlugin::default()));
        groups.join("ears", &mut app);
        let slow = groups.clone();
        let sending = thread::spawn(move || slow.post(say("slow", to, 0)));
        sends.somebody_waits();
        let joined = groups.clone();
        let binding = thread::spawn(move || {
            let mut other = App::new();
            other.add_plugins((TimePlugin, DuePlugin::default()));
            joined.join("others", &mut other);
            other.world_mut().spawn(StableKey(8));
        });
        // The link is in both calls at once, and all others go on.
        binds.somebody_waits();
        spawn_listener(hear.clone())(app.world_mut());
        groups.post(say("ears", Delivery::InTurn, 1)).unwrap();
        groups.post(say("ears", Delivery::All, 2)).unwrap();
        groups.post(say("ears", StableKey(0), 3)).unwrap();
        app.update();
        assert_eq!(heard.try_iter().count(), 3, "{to:?}");
        sends.open();
        assert_eq!(sending.join().unwrap(), Ok(()), "{to:?}");
        binds.open();
        // The thread that has just told the link of one key tells it of the other, too.
        binds.somebody_waits();
        binds.open();
        binding.join().unwrap();
    }
}

/// Sends a parcel to a key of the second of two other processes, and returns all arrivals.
fn send_to_the_second(passes_refusals: bool) -> Vec<(usize, u32)> {
    let here = WorldGroups::new();
    let (hear, heard) = mpsc::channel();
    let spawn_ears = spawn_listener(hear);
    let others = [(); 2].map(|()| {
        let mut app = App::new();
        app.add_plugins((TimePlugin, DuePlugin::default()));
        let there = WorldGroups::new();
        there.join("ears", &mut app);
        spawn_ears(app.world_mut());
        let link = DirectLink {
            worlds: there.receiver(),
            passes_refusals,
        };
        here.join_remote("ears", link);
        app
    });
    drop(spawn_ears);
    here.post(say("ears", StableKey(1), 7)).unwrap();
    for mut app in others {
        app.update();
        app.update();
    }
    heard.iter().collect()
}

#[test]
fn a_parcel_for_a_key_goes_to_the_next_link_after_a_refusal() {
    assert_eq!(send_to_the_second(true), [(1, 7)]);
}

#[test]
#[ignore = "the groups do not know the keys of other processes, so the first link takes the parcel"]
fn a_parcel_for_a_key_goes_to_the_right_process_without_refusals() {
    assert_eq!(send_to_the_second(false), [(1, 7)]);
}

/// A link that records the keys that are bound.
struct KeyRecorder<F> {
    keys: Arc<Mutex<BTreeSet<u64>>>,
    /// Runs before each change, with `true` for a bind and with the key.
    before: F,
}

impl<F: Fn(bool, u64)> KeyRecorder<F> {
    /// Creates a link, and returns it with the keys that it records.
    fn new(before: F) -> (Self, Arc<Mutex<BTreeSet<u64>>>) {
        let keys = Arc::<Mutex<BTreeSet<u64>>>::default();
        let known = keys.clone();
        (Self { keys, before }, known)
    }
}

impl<F: Fn(bool, u64) + Send + Sync + 'static> Link for KeyRecorder<F> {
    fn send(&self, _: Parcel) -> Result<(), Refused> {
        Ok(())
    }

    fn bind(&self, address: &Address) {
        (self.before)(true, address.key.0);
        self.keys.lock().unwrap().insert(address.key.0);
    }

    fn unbind(&self, address: &Address) {
        (self.before)(false, address.key.0);
        self.keys.lock().unwrap().remove(&address.key.0);
    }
}

/// Lets the test act in the middle of a call to a link.
struct Interrupt {
    key: Receiver<u64>,
    done: Sender<()>,
}

impl Interrupt {
    /// Creates a callback that blocks the first bind (or unbind) until [`run`](Self::run) is done.
    /// It blocks for at most a second, because the action may itself have to wait for the link.
    fn first_call(bind: bool) -> (Self, impl Fn(bool, u64) + Send + Sync + 'static) {
        let (tell, key) = mpsc::channel();
        let (done, is_done) = mpsc::channel();
        let (is_first, is_done) = (AtomicBool::new(true), Mutex::new(is_done));
        let wait = move |is_bind, key| {
            if is_bind == bind && is_first.swap(false, Ordering::Relaxed) {
                tell.send(key).ok();
                let is_done = is_done.lock().unwrap();
                is_done.recv_timeout(Duration::from_secs(1)).ok();
            }
        };
        (Self { key, done }, wait)
    }

    /// Waits for the call, and runs an action with its key.
    fn run(&self, action: impl FnOnce(u64)) {
        action(next(&self.key));
        self.done.send(()).ok();
    }
}

#[test]
fn a_link_knows_a_key_that_moves_to_another_world() {
    let mut groups = WorldGroups::new();
    let build = |app: &mut App| {
        let leaves = MessageComponent::new().on_packet(GO, |mut me: MessageContext, _: &Packet| {
            me.commands.entity(me.entity.id()).despawn();
        });
        app.world_mut().spawn((StableKey(1), leaves));
    };
    groups.start_worlds("ears", 1, build).unwrap();
    let mut other = App::new();
    other.add_plugins((TimePlugin, DuePlugin::default()));
    groups.join("ears", &mut other);
    let (interrupt, wait) = Interrupt::first_call(false);
    groups.join_remote("elsewhere", KeyRecorder::new(wait).0);
    let (link, known) = KeyRecorder::new(|_, _| ());
    groups.join_remote("elsewhere", link);

    let go = Parcel::new("ears", StableKey(1), number(GO, 0));
    groups.post(go).unwrap();
    interrupt.run(|key| _ = other.world_mut().spawn(StableKey(key)));
    groups.stop_group("ears");
    let known = known.lock().unwrap().clone();
    assert_eq!(known, [1].into(), "the other world has the key");
}

#[test]
fn a_new_link_forgets_a_key_that_is_unbound_while_it_joins() {
    let groups = WorldGroups::new();
    let mut app = App::new();
    app.add_plugins((TimePlugin, DuePlugin::default()));
    groups.join("ears", &mut app);
    let keys = [1, 2].map(|key| app.world_mut().spawn(StableKey(key)).id());
    let (interrupt, wait) = Interrupt::first_call(true);
    let (link, known) = KeyRecorder::new(wait);
    let mut stays = 0;
    thread::scope(|scope| {
        scope.spawn(|| groups.join_remote("elsewhere", link));
        interrupt.run(|key| {
            stays = key;
            let other = 3 - key;
            app.world_mut().despawn(keys[other as usize - 1]);
        });
    });
    let known = known.lock().unwrap().clone();
    assert_eq!(known, [stays].into(), "the other key is unbound");
}

#[test]
fn a_world_may_join_before_its_plugin_is_added() {
    let groups = WorldGroups::new();
    let mut app = App::new();
    groups.join("ears", &mut app);
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

#[test]
fn a_link_learns_each_key_once_in_every_order_of_link_plugin_and_keys() {
    for (link_at, key_at) in [(0, 0), (0, 1), (1, 0), (1, 1)] {
        let (send, frames) = mpsc::channel();
        let mut link = Some(WorldLink::new("ears", Wire(send)));
        let mut app = App::new();
        for step in 0..2 {
            if step == link_at {
                app.world_mut().insert_resource(link.take().unwrap());
            }
            if step == key_at {
                app.world_mut().spawn(StableKey(7));
            }
            if step == 0 {
                app.add_plugins((TimePlugin, DuePlugin::default()));
            }
        }
        let bound = frames.try_iter().map(|frame| match frame {
            Frame::Bind(address) => (address.group, address.key.0),
            _ => unreachable!("nothing else happens"),
        });
        let bound: Vec<_> = bound.collect();
        assert_eq!(bound, [("ears".into(), 7)], "{link_at} {key_at}");
    }
}
