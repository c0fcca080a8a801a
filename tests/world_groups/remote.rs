//! Two processes that exchange nothing but frames on a wire. Each has its own groups, and those of the
//! other as members.

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

/// The receiving end of a wire. Returns the keys that are known there.
fn listen(wire: Receiver<Frame>, worlds: ParcelReceiver) -> Arc<Mutex<HashSet<u64>>> {
    let keys = Arc::new(Mutex::new(HashSet::new()));
    let known = keys.clone();
    thread::spawn(move || {
        for frame in wire {
            match frame {
                // A real wire would write and read text.
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

/// Joins two processes with wires both ways. Each knows a group of the other.
fn joined(here: &WorldGroups, at: &'static str, there: &WorldGroups, of: &'static str) {
    for (from, to, group) in [(here, there, of), (there, here, at)] {
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
    joined(&here, "nobody", &there, "ears");
    here.post(say("ears", Delivery::All, 1)).unwrap();
    assert_eq!([next(&heard).1, next(&heard).1], [1, 1], "each of the two");
    for nth in 2..6 {
        here.post(say("ears", Delivery::InTurn, nth)).unwrap();
    }
    let in_turn = sorted((2..6).map(|_| next(&heard).1));
    assert_eq!(in_turn, [2, 3, 4, 5], "exactly one each");
    // The key is not here.
    let other = there.running("ears") + here.running("ears");
    assert_eq!(other, 3, "one there, one here and the way there");
    end_well(&here.stop());
    end_well(&there.stop());
    assert_eq!(heard.iter().count(), 0, "nothing comes back");
}

#[test]
fn a_request_to_another_process_gets_its_reply() {
    let [mut here, mut there] = [WorldGroups::new(), WorldGroups::new()];
    joined(&here, "askers", &there, "answerers");
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
    let known = |all: &[u64]| {
        let keys = keys.clone();
        let all: HashSet<_> = all.iter().copied().collect();
        wait_until(move || *keys.lock().unwrap() == all, "the keys are known");
    };
    known(&[1, 2]);
    here.stop_group("askers");
    known(&[2]);
    here.stop();
    known(&[]);
}

#[test]
fn a_link_may_call_back_into_the_groups() {
    /// Hands every parcel back to the worlds here.
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
