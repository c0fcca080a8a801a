//! Streams over a network that loses, repeats and reorders, between zones that crash.

use bevy_due::message::Packet;
use proptest::prelude::*;

use super::*;
use crate::{
    ids::{JournalId, Life},
    item::{Batch, decode},
};

const HERE: StableKey = StableKey(1);
const THERE: StableKey = StableKey(2);

/// A zone, and what its journal has.
struct End {
    streams: Streams,
    journal: Vec<Change>,
    /// The items that it has taken, and how many of them are durable.
    taken: Vec<u32>,
    durable: usize,
}

fn place(zone: StableKey) -> ZoneId {
    ZoneId {
        journal: JournalId(zone.0.into()),
        zone,
    }
}

fn item(id: u32) -> Item {
    Item::Letters(Batch {
        id: Some(1),
        from: Life {
            key: HERE,
            birth: 1,
        },
        to: THERE,
        letters: vec![Packet::new(id, [])],
    })
}

fn id(item: &Item) -> u32 {
    match item {
        Item::Letters(batch) => batch.letters[0].id(),
        _ => unreachable!(),
    }
}

impl End {
    fn new(zone: StableKey) -> Self {
        Self {
            streams: Streams::new(place(zone)),
            journal: Vec::new(),
            taken: Vec::new(),
            durable: 0,
        }
    }

    /// Ends a frame, and returns what the zone says once the frame is durable.
    fn commit(&mut self, now: Duration) -> Vec<Message> {
        self.journal.extend(self.streams.changes().unwrap());
        self.durable = self.taken.len();
        let messages = self
            .streams
            .messages(now, now, &BTreeSet::new())
            .into_iter();
        messages.map(|(_, message)| message).collect()
    }

    /// Loses what is not durable.
    fn crash(&mut self) {
        self.taken.truncate(self.durable);
        self.streams = Streams::new(self.streams.me);
        let mut stored = BTreeMap::new();
        for change in &self.journal {
            match change {
                Change::Put(place, body) => _ = stored.insert(*place, body),
                Change::Remove(places) => stored.retain(|place, _| !places.contains(place)),
            }
        }
        for (place, body) in stored {
            if place.1 == rows::STREAM {
                let numbers = decode(body).unwrap();
                self.streams.restore(rows::peer_at(place), numbers);
            } else {
                let item = decode(body).unwrap();
                self.streams.restore_item(rows::item_at(place).0, item);
            }
        }
    }

    fn hear(&mut self, message: Message, now: Duration) {
        match message {
            Message::Items(items) => {
                let new = self.streams.receive(items).unwrap();
                self.taken.extend(new.iter().map(id));
            }
            Message::Ack {
                from,
                number,
                session,
            } => {
                let answer = (number, session);
                self.streams.acknowledge(from, answer, now).unwrap();
            }
            _ => unreachable!(),
        }
    }
}

#[derive(Clone, Debug)]
enum Step {
    Push,
    Commit {
        sender: bool,
    },
    Crash {
        sender: bool,
    },
    /// Delivers the message at this place of those on their way.
    Deliver {
        nth: usize,
        again: bool,
    },
    Lose {
        nth: usize,
    },
    Wait,
}

fn step() -> impl Strategy<Value = Step> {
    let sender = any::<bool>();
    prop_oneof![
        3 => Just(Step::Push),
        4 => sender.prop_map(|sender| Step::Commit { sender }),
        1 => sender.prop_map(|sender| Step::Crash { sender }),
        6 => (any::<usize>(), any::<bool>()).prop_map(|(nth, again)| Step::Deliver { nth, again }),
        1 => any::<usize>().prop_map(|nth| Step::Lose { nth }),
        2 => Just(Step::Wait),
    ]
}

proptest! {
    #[test]
    fn each_item_is_taken_once_and_in_order(steps in prop::collection::vec(step(), 0..200)) {
        let mut ends = [End::new(HERE), End::new(THERE)];
        let mut network: Vec<(usize, Message)> = Vec::new();
        let (mut pushed, mut next, mut now) = (0, 0, Duration::ZERO);
        let calm = [Step::Commit { sender: true }, Step::Commit { sender: false }, Step::Wait]
            .into_iter()
            .cycle()
            .take(300);
        let count = steps.len();
        for (nth, step) in steps.into_iter().chain(calm).enumerate() {
            match step {
                Step::Push => {
                    ends[0].streams.push(THERE, item(next));
                    next += 1;
                }
                Step::Commit { sender } => {
                    let end = usize::from(!sender);
                    let said = ends[end].commit(now);
                    network.extend(said.into_iter().map(|message| (1 - end, message)));
                    if sender {
                        pushed = next;
                    }
                }
                Step::Crash { sender } => {
                    ends[usize::from(!sender)].crash();
                    if sender {
                        next = pushed;
                    }
                }
                Step::Deliver { nth, again } => {
                    if !network.is_empty() {
                        let nth = nth % network.len();
                        let (to, message) = network[nth].clone();
                        ends[to].hear(message, now);
                        if !again {
                            network.swap_remove(nth);
                        }
                    }
                }
                Step::Lose { nth } => {
                    if !network.is_empty() {
                        network.swap_remove(nth % network.len());
                    }
                }
                Step::Wait => now += RETRY,
            }
            if nth >= count {
                for (to, message) in network.drain(..) {
                    ends[to].hear(message, now);
                }
            }
            prop_assert!(ends[1].taken.iter().copied().eq(0..ends[1].taken.len() as u32));
            prop_assert!(ends[1].durable as u32 <= pushed);
        }
        prop_assert_eq!(ends[1].durable as u32, pushed);
        prop_assert_eq!(ends[0].streams.len(), 0);
    }
}
