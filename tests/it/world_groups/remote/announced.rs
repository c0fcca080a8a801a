//! Worlds that announce one key only.

use std::collections::BTreeMap;

use super::{
    raw::{Frame, frames_of},
    *,
};

const GATE: StableKey = StableKey(100);

/// The keys that another process knows, and the number of changes that it was told.
#[derive(Clone, Default)]
struct Told(Arc<Mutex<(BTreeMap<u64, u64>, usize)>>);

impl Told {
    /// Listens to what the first end of a wire sends.
    fn on(wire: &Wire) -> Self {
        let told = Self::default();
        let listener = told.clone();
        wire.ways[0].set(move |batch| {
            let (keys, changes) = &mut *listener.0.lock().unwrap();
            for frame in frames_of(&batch[raw::EMPTY..]) {
                match frame {
                    Frame::Bound(address, epoch) => _ = keys.insert(address.key.0, epoch),
                    Frame::Unbound(address, _) => _ = keys.remove(&address.key.0),
                    _ => continue,
                }
                *changes += 1;
            }
            1
        });
        told
    }

    fn keys(&self) -> Vec<u64> {
        self.0.lock().unwrap().0.keys().copied().collect()
    }

    fn changes(&self) -> usize {
        self.0.lock().unwrap().1
    }
}

/// Waits until a process has got everything that another one has sent before.
fn settle(from: &WorldGroups, to: &mut App) {
    let nth = to.world().resource::<MessageStats>().undeliverable;
    from.post(say("others", Delivery::InTurn, 0)).unwrap();
    let has_come = || {
        to.update();
        to.world().resource::<MessageStats>().undeliverable > nth
    };
    wait_until(has_come, "the parcel arrives");
}

fn announce_only_the_gate(app: &App) {
    app.world().resource::<WorldLink>().announce_only(GATE);
}

#[test]
fn other_processes_learn_one_key_only() {
    let [here, there, late] = [(); 3].map(|()| WorldGroups::new());
    let mut zone = member(&here, "zones");
    let mut other = member(&there, "others");
    let wire = Wire::connect(&here, &there);
    let told = Told::on(&wire);
    wait_for_worlds(&here, "others", 1);
    let early = zone.world_mut().spawn(StableKey(1)).id();
    zone.world_mut().spawn(GATE);
    settle(&here, &mut other);
    assert_eq!(told.keys(), [1, 100]);

    announce_only_the_gate(&zone);
    settle(&here, &mut other);
    assert_eq!(told.keys(), [100]);

    let changes = told.changes();
    let gone = zone.world_mut().spawn(StableKey(2)).id();
    zone.world_mut().spawn(StableKey(3));
    zone.world_mut().despawn(gone);
    zone.world_mut().despawn(early);
    settle(&here, &mut other);
    assert_eq!(told.changes(), changes, "nothing is said of other keys");

    let refusal = |groups: &WorldGroups, key| {
        let posted = groups.post(say("zones", StableKey(key), 0));
        posted.err().map(|refused| refused.reason)
    };
    assert_eq!(refusal(&here, 3), None, "it is known in its process");
    assert_eq!(refusal(&here, 2), Some(RefusalReason::UnknownKey));
    assert_eq!(refusal(&there, 3), Some(RefusalReason::UnknownKey));
    assert_eq!(refusal(&there, 100), None);

    let _newcomer = member(&late, "others");
    let _wire = Wire::connect(&here, &late);
    wait_for_worlds(&late, "zones", 1);
    wait_until(|| refusal(&late, 100).is_none(), "it knows the gate");
    assert_eq!(refusal(&late, 3), Some(RefusalReason::UnknownKey));
    drop(zone);
    wait_until(|| told.keys().is_empty(), "the gate is gone");
    assert_eq!(told.changes(), changes + 1, "and nothing else");
}

#[test]
fn a_key_that_another_world_announces_stays_known() {
    let [here, there] = [(); 2].map(|()| WorldGroups::new());
    let mut open = member(&here, "zones");
    let mut zone = member(&here, "zones");
    let mut other = member(&there, "others");
    let wire = Wire::connect(&here, &there);
    let told = Told::on(&wire);
    wait_for_worlds(&here, "others", 1);
    announce_only_the_gate(&zone);
    open.world_mut().spawn(StableKey(1));
    zone.world_mut().spawn(StableKey(1));
    drop(zone);
    settle(&here, &mut other);
    assert_eq!((told.keys(), told.changes()), (vec![1], 1));
    drop(open);
    wait_until(|| told.keys().is_empty(), "the key is gone");
}

/// Asks a world of another process by an entity whose key that process does not know.
fn ask_from_a_zone(question: Parcel, permits: bool) -> Ended {
    let [here, there] = [(); 2].map(|()| WorldGroups::new());
    there.permit(move |_, what| permits || !matches!(what, FromPeer::Parcel(_)));
    let mut zone = member(&here, "zones");
    announce_only_the_gate(&zone);
    let mut other = member(&there, "others");
    answerer(&mut other);
    zone.world_mut().spawn(GATE);
    let (tell, told) = mpsc::channel();
    let failed = tell.clone();
    let ears = MessageComponent::new()
        .on_packet(ANSWER, move |_: MessageContext, said: &Packet| {
            tell.send(Ok(read(said))).ok();
        })
        .on(move |_: MessageContext, no_answer: &NoAnswer| {
            failed.send(Err(*no_answer)).ok();
        });
    let hero = zone.world_mut().spawn((StableKey(1), ears)).id();
    let _wire = Wire::connect(&here, &there);
    wait_for_worlds(&here, "others", 1);
    wait_for_worlds(&there, "zones", 1);
    let mut commands = zone.world_mut().commands();
    let until = Timer::after(3600.0);
    commands.entity(hero).ask_world(question, until);
    zone.world_mut().flush();
    let mut ended = None;
    let has_ended = || {
        other.update();
        zone.update();
        ended = told.try_recv().ok();
        ended.is_some()
    };
    wait_until(has_ended, "the request ends");
    ended.unwrap()
}

#[test]
fn a_reply_finds_an_asker_whose_key_is_not_announced() {
    for to in [Delivery::InTurn, Delivery::All] {
        let question = Parcel::new("others", to, number(QUESTION, 21));
        assert_eq!(ask_from_a_zone(question, true), Ok(42), "{to:?}");
    }
}

#[test]
fn a_refusal_finds_an_asker_whose_key_is_not_announced() {
    for to in [Delivery::InTurn, Delivery::All] {
        let question = Parcel::new("others", to, number(QUESTION, 21));
        let forbidden = NoAnswer::Refused(RefusalReason::Forbidden);
        assert_eq!(ask_from_a_zone(question, false), Err(forbidden), "{to:?}");
    }
}
