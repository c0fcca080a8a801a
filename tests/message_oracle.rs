//! The delivery of messages against a list that is searched. In any script, entities spawn, despawn and
//! change what they follow, between frames and during them, and get packets by all three kinds of
//! delivery.

mod support;

use std::collections::{BTreeSet, VecDeque};

use bevy_app::App;
use bevy_due::{MessageContext, MessageStats, Packet, prelude::*};
use bevy_ecs::{entity_disabling::Disabled, prelude::*};
use proptest::prelude::*;
use support::*;

/// The number of places for entities.
const PLACES: usize = 5;

/// The ids of the packets.
const IDS: u32 = 3;

/// The most reactions in a run of the script, which ends it even if a packet leads to several others.
const MOST: usize = 200;

/// A change of the entity at a place.
#[derive(Clone, Debug)]
enum Op {
    /// Makes the entity follow these ids only. Spawns a new entity if it is gone.
    Follow(usize, BTreeSet<u32>),
    Remove(usize),
    Despawn(usize),
    Disable(usize),
    Enable(usize),
    /// Sends a packet with the index of the reaction of each receiver.
    Send(To, u32, u8),
}

#[derive(Clone, Copy, Debug)]
enum To {
    /// The last entity at the place.
    Place(usize),
    All,
    InTurn,
}

#[derive(Clone, Debug)]
enum Step {
    Do(Op),
    Frame,
}

/// The place and the serial number of each received message.
type Log = Vec<(usize, u64)>;

fn any_op() -> impl Strategy<Value = Op> {
    let place = 0..PLACES;
    let to = prop_oneof![
        2 => place.clone().prop_map(To::Place),
        1 => Just(To::All),
        2 => Just(To::InTurn),
    ];
    let ids = proptest::collection::btree_set(0..IDS, 0..=IDS as usize);
    prop_oneof![
        4 => (place.clone(), ids).prop_map(|(place, ids)| Op::Follow(place, ids)),
        1 => place.clone().prop_map(Op::Remove),
        1 => place.clone().prop_map(Op::Despawn),
        1 => place.clone().prop_map(Op::Disable),
        1 => place.prop_map(Op::Enable),
        8 => (to, 0..IDS, any::<u8>()).prop_map(|(to, id, then)| Op::Send(to, id, then)),
    ]
}

fn any_step() -> impl Strategy<Value = Step> {
    prop_oneof![4 => any_op().prop_map(Step::Do), 1 => Just(Step::Frame)]
}

/// A player of the steps: the game, or its model.
trait Player {
    fn follow(&mut self, place: usize, ids: &BTreeSet<u32>);
    fn remove(&mut self, place: usize);
    fn despawn(&mut self, place: usize);
    fn disable(&mut self, place: usize, disabled: bool);
    fn send(&mut self, to: To, id: u32, serial: u64, then: u8);
    fn script(&mut self) -> &mut Script;

    fn play(&mut self, op: &Op) {
        match *op {
            Op::Follow(place, ref ids) => self.follow(place, ids),
            Op::Remove(place) => self.remove(place),
            Op::Despawn(place) => self.despawn(place),
            Op::Disable(place) => self.disable(place, true),
            Op::Enable(place) => self.disable(place, false),
            Op::Send(to, id, then) => {
                let serial = self.script().next_serial();
                self.send(to, id, serial, then);
            }
        }
    }

    /// Logs a received message, and plays its reaction.
    fn receive(&mut self, place: usize, serial: u64, then: u8) {
        let script = self.script();
        script.log.push((place, serial));
        if let Some(op) = script.reaction(then) {
            self.play(&op);
        }
    }
}

/// The reactions, and the log of received messages.
#[derive(Clone, Default)]
struct Script {
    reactions: Vec<Op>,
    reacted: usize,
    serial: u64,
    log: Log,
}

impl Script {
    fn next_serial(&mut self) -> u64 {
        self.serial += 1;
        self.serial
    }

    fn reaction(&mut self, then: u8) -> Option<Op> {
        self.reacted += 1;
        let is_over = self.reacted > MOST;
        let op = self.reactions.get(usize::from(then))?;
        (!is_over).then(|| op.clone())
    }
}

#[derive(Resource)]
struct Game {
    entities: [Entity; PLACES],
    script: Script,
}

fn payload(serial: u64, then: u8) -> Vec<u8> {
    let mut payload = serial.to_le_bytes().to_vec();
    payload.push(then);
    payload
}

impl Player for World {
    fn follow(&mut self, place: usize, ids: &BTreeSet<u32>) {
        let mut component = MessageComponent::new();
        for &id in ids {
            component = component.on_packet(id, move |mut me: MessageContext, packet: &Packet| {
                let (then, serial) = packet.payload().split_last().unwrap();
                let (serial, then) = (u64::from_le_bytes(serial.try_into().unwrap()), *then);
                me.commands
                    .queue(move |world: &mut World| world.receive(place, serial, then));
            });
        }
        let entity = self.resource::<Game>().entities[place];
        if let Ok(mut entity) = self.get_entity_mut(entity) {
            entity.insert(component);
        } else {
            self.resource_mut::<Game>().entities[place] = Entity::PLACEHOLDER;
            let entity = self.spawn(component).id();
            self.resource_mut::<Game>().entities[place] = entity;
        }
    }

    fn remove(&mut self, place: usize) {
        let entity = self.resource::<Game>().entities[place];
        if let Ok(mut entity) = self.get_entity_mut(entity) {
            entity.remove::<MessageComponent>();
        }
    }

    fn despawn(&mut self, place: usize) {
        let entity = self.resource::<Game>().entities[place];
        self.try_despawn(entity).ok();
    }

    fn disable(&mut self, place: usize, disabled: bool) {
        let entity = self.resource::<Game>().entities[place];
        if let Ok(mut entity) = self.get_entity_mut(entity) {
            if disabled {
                entity.insert(Disabled);
            } else {
                entity.remove::<Disabled>();
            }
        }
    }

    fn send(&mut self, to: To, id: u32, serial: u64, then: u8) {
        let to = match to {
            To::Place(place) => Delivery::To(self.resource::<Game>().entities[place]),
            To::All => Delivery::All,
            To::InTurn => Delivery::InTurn,
        };
        self.commands()
            .send(to, Packet::new(id, payload(serial, then)));
        self.flush();
    }

    fn script(&mut self) -> &mut Script {
        &mut self.resource_mut::<Game>().into_inner().script
    }
}

/// A delivery that is obviously right.
#[derive(Default)]
struct Model {
    /// All entities ever spawned.
    entities: Vec<Listed>,
    /// The last entity at each place.
    places: [Option<usize>; PLACES],
    /// The number of components ever inserted.
    inserted: u64,
    sent: VecDeque<Sent>,
    /// The component whose turn it is, for each id.
    turns: [u64; IDS as usize],
    /// The entities that followed each id when the frame began, and have done so since.
    present: [BTreeSet<usize>; IDS as usize],
    /// The packet for all followers that is being delivered.
    broadcast: Option<Broadcast>,
    delivered: u64,
    undeliverable: u64,
    script: Script,
}

#[derive(Default)]
struct Listed {
    place: usize,
    is_gone: bool,
    is_disabled: bool,
    component: Option<Component>,
}

#[derive(Clone)]
struct Component {
    nth: u64,
    takes_part: bool,
    ids: BTreeSet<u32>,
}

/// The progress of a packet for all followers.
#[derive(Default)]
struct Broadcast {
    /// Components with a lower number have had their turn.
    from: u64,
    /// The entities whose component was replaced after its turn.
    done: BTreeSet<usize>,
}

#[derive(Clone)]
struct Sent {
    to: Whom,
    id: u32,
    serial: u64,
    then: u8,
}

#[derive(Clone)]
enum Whom {
    One(Option<usize>),
    All,
    /// The entities for which a packet for all followers has waited.
    Rest {
        waiting: Vec<usize>,
        is_delivered: bool,
    },
    InTurn,
}

impl Model {
    fn at(&mut self, place: usize) -> Option<&mut Listed> {
        let entity = &mut self.entities[self.places[place]?];
        (!entity.is_gone).then_some(entity)
    }

    /// The followers of an id, in order, from a component on.
    fn followers(&self, id: u32, from: u64) -> Vec<(u64, usize)> {
        let mut followers: Vec<_> = (0..self.entities.len())
            .filter_map(|entity| {
                let listed = &self.entities[entity];
                let component = listed.component.as_ref()?;
                let is_called = component.takes_part && !listed.is_disabled;
                let follows = component.ids.contains(&id) && component.nth >= from;
                (is_called && follows).then_some((component.nth, entity))
            })
            .collect();
        followers.sort_unstable();
        followers
    }

    /// The entities with a component that follows an id but does not take part yet, in order.
    fn new_followers(&self, id: u32) -> Vec<usize> {
        let mut new: Vec<_> = (0..self.entities.len())
            .filter_map(|entity| {
                let component = self.entities[entity].component.as_ref()?;
                let is_new = !component.takes_part && component.ids.contains(&id);
                is_new.then_some((component.nth, entity))
            })
            .collect();
        new.sort_unstable();
        new.into_iter().map(|(_, entity)| entity).collect()
    }

    /// Delivers a packet to one entity, or returns it if the component does not take part yet.
    fn call_one(&mut self, entity: Option<usize>, sent: &Sent) -> Outcome {
        let Some(entity) = entity else {
            return Outcome::Lost;
        };
        let listed = &self.entities[entity];
        match &listed.component {
            Some(_) if listed.is_disabled => Outcome::Lost,
            Some(component) if !component.takes_part => Outcome::Waits,
            Some(component) if component.ids.contains(&sent.id) => {
                self.call(entity, sent);
                Outcome::Delivered
            }
            _ => Outcome::Lost,
        }
    }

    /// Delivers a packet to all followers. Returns the entities for which it waits, and whether
    /// anyone got it.
    fn call_all(&mut self, sent: &Sent) -> (Vec<usize>, bool) {
        self.broadcast = Some(Broadcast::default());
        let mut is_delivered = false;
        loop {
            let from = self.broadcast.as_ref().unwrap().from;
            let Some(&(nth, entity)) = self.followers(sent.id, from).first() else {
                break;
            };
            is_delivered = true;
            self.broadcast.as_mut().unwrap().from = nth + 1;
            self.call(entity, sent);
        }
        // Followers that were passed over have had their turn, too.
        let Broadcast { done, .. } = self.broadcast.take().unwrap();
        let new = self.new_followers(sent.id);
        let present = &self.present[sent.id as usize];
        let is_owed = |entity: &usize| present.contains(entity) && !done.contains(entity);
        let owed: Vec<_> = new.iter().copied().filter(is_owed).collect();
        if owed.is_empty() && !is_delivered {
            return (new, false);
        }
        (owed, is_delivered)
    }

    fn call(&mut self, entity: usize, sent: &Sent) {
        self.delivered += 1;
        self.receive(self.entities[entity].place, sent.serial, sent.then);
    }

    fn frame(&mut self) {
        for entity in &mut self.entities {
            if let Some(component) = &mut entity.component {
                component.takes_part = true;
            }
        }
        for id in 0..IDS {
            let follows = |listed: &Listed| {
                let component = listed.component.as_ref();
                component.is_some_and(|component| component.ids.contains(&id))
            };
            let all = 0..self.entities.len();
            let present = all.filter(|&entity| follows(&self.entities[entity]));
            self.present[id as usize] = present.collect();
        }
        let mut waiting = VecDeque::new();
        for sent in core::mem::take(&mut self.sent) {
            match sent.to.clone() {
                Whom::One(entity) => match self.call_one(entity, &sent) {
                    Outcome::Delivered => {}
                    Outcome::Waits => waiting.push_back(sent),
                    Outcome::Lost => self.undeliverable += 1,
                },
                Whom::All => {
                    let (rest, is_delivered) = self.call_all(&sent);
                    self.wait(&mut waiting, rest, is_delivered, sent);
                }
                Whom::Rest {
                    waiting: entities,
                    mut is_delivered,
                } => {
                    let mut rest = Vec::new();
                    for entity in entities {
                        match self.call_one(Some(entity), &sent) {
                            Outcome::Delivered => is_delivered = true,
                            Outcome::Waits => rest.push(entity),
                            Outcome::Lost => {}
                        }
                    }
                    self.wait(&mut waiting, rest, is_delivered, sent);
                }
                Whom::InTurn => {
                    let turn = self.turns[sent.id as usize];
                    let from_turn = self.followers(sent.id, turn).first().copied();
                    let first = self.followers(sent.id, 0).first().copied();
                    if let Some((nth, entity)) = from_turn.or(first) {
                        self.turns[sent.id as usize] = nth + 1;
                        self.call(entity, &sent);
                    } else if !self.new_followers(sent.id).is_empty() {
                        waiting.push_back(sent);
                    } else {
                        self.undeliverable += 1;
                    }
                }
            }
        }
        // Held packets come first.
        waiting.append(&mut self.sent);
        self.sent = waiting;
    }

    /// Lets a packet for all followers wait for the rest of them. Counts it if nobody got it.
    fn wait(
        &mut self,
        queue: &mut VecDeque<Sent>,
        waiting: Vec<usize>,
        is_delivered: bool,
        sent: Sent,
    ) {
        if !waiting.is_empty() {
            let to = Whom::Rest {
                waiting,
                is_delivered,
            };
            queue.push_back(Sent { to, ..sent });
        } else if !is_delivered {
            self.undeliverable += 1;
        }
    }

    /// Removes the component of an entity. `new` are the ids that its new component follows.
    fn leave(&mut self, entity: usize, new: &BTreeSet<u32>) {
        let Some(old) = &self.entities[entity].component else {
            return;
        };
        if let Some(Broadcast { from, done }) = &mut self.broadcast
            && old.takes_part
            && old.nth < *from
        {
            done.insert(entity);
        }
        for id in (0..IDS).filter(|id| !new.contains(id)) {
            self.present[id as usize].remove(&entity);
        }
    }
}

/// What became of a packet for one entity.
enum Outcome {
    Delivered,
    /// The component takes part from the next frame on.
    Waits,
    Lost,
}

impl Player for Model {
    fn follow(&mut self, place: usize, ids: &BTreeSet<u32>) {
        self.inserted += 1;
        if let Some(entity) = self.places[place] {
            self.leave(entity, ids);
        }
        let component = Some(Component {
            nth: self.inserted,
            takes_part: false,
            ids: ids.clone(),
        });
        if let Some(listed) = self.at(place) {
            listed.component = component;
        } else {
            self.places[place] = Some(self.entities.len());
            self.entities.push(Listed {
                place,
                component,
                ..Listed::default()
            });
        }
    }

    fn remove(&mut self, place: usize) {
        if let Some(entity) = self.places[place] {
            self.leave(entity, &BTreeSet::new());
            self.entities[entity].component = None;
        }
    }

    fn despawn(&mut self, place: usize) {
        self.remove(place);
        if let Some(listed) = self.at(place) {
            listed.is_gone = true;
        }
    }

    fn disable(&mut self, place: usize, disabled: bool) {
        if let Some(listed) = self.at(place) {
            listed.is_disabled = disabled;
        }
    }

    fn send(&mut self, to: To, id: u32, serial: u64, then: u8) {
        let to = match to {
            To::Place(place) => Whom::One(self.places[place]),
            To::All => Whom::All,
            To::InTurn => Whom::InTurn,
        };
        self.sent.push_back(Sent {
            to,
            id,
            serial,
            then,
        });
    }

    fn script(&mut self) -> &mut Script {
        &mut self.script
    }
}

fn game(script: Script) -> App {
    let mut app = unobserved_app();
    app.insert_resource(Game {
        entities: [Entity::PLACEHOLDER; PLACES],
        script,
    });
    app
}

fn check(reactions: Vec<Op>, steps: Vec<Step>) {
    let script = Script {
        reactions,
        ..Script::default()
    };
    let mut app = game(script.clone());
    let mut model = Model {
        script,
        ..Model::default()
    };
    for step in steps.into_iter().chain([Step::Frame, Step::Frame]) {
        match step {
            Step::Do(op) => {
                app.world_mut().play(&op);
                model.play(&op);
            }
            Step::Frame => {
                advance_ms(&mut app, 10);
                model.frame();
                let script = app.world_mut().script();
                assert_eq!(script.log, model.script.log, "who has received what");
                script.log.clear();
                model.script.log.clear();
                let stats = *app.world().resource::<MessageStats>();
                let counts = (stats.delivered, stats.undeliverable, stats.late);
                assert_eq!(counts, (model.delivered, model.undeliverable, 0));
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..Default::default() })]

    #[test]
    fn any_script_is_delivered_like_the_list(
        reactions in proptest::collection::vec(any_op(), 0..200),
        steps in proptest::collection::vec(any_step(), 1..120),
    ) {
        check(reactions, steps);
    }
}
