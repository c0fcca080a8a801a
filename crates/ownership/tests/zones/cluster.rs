//! Shards on simulated disks, in one process, updated in turn.

use core::time::Duration;
use std::{collections::BTreeMap, thread, time::Instant};

use bevy_app::prelude::*;
use bevy_due::{
    DuePlugin, TimerFired,
    message::{MessageComponent, Packet},
    save::SaveWorldExt,
    worlds::{StableKey, WorldGroups},
};
use bevy_due_ownership::{
    Arrived, DurableEntityCommandsExt, JournalId, MailReturned, MoveFailed, Shard, SimulatedDisk,
    Zone,
};
use bevy_ecs::{entity_disabling::Disabled, error::FallbackErrorHandler, prelude::*};
use bevy_time::{TimePlugin, TimeUpdateStrategy};
use serde::{Deserialize, Serialize};

use crate::store::MemoryStore;

pub(crate) const FRAME: Duration = Duration::from_millis(16);
/// The packet that gives gold: its payload is the amount.
pub(crate) const GOLD: u32 = 1;
/// The packet that has the key of its sender, a number and an amount of gold.
pub(crate) const GIFT: u32 = 2;

/// What a durable entity has, and what has happened to it.
#[derive(Component, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Ledger {
    pub(crate) gold: u64,
    pub(crate) fired: u64,
    /// The number of the next letter to and from each entity.
    pub(crate) sent: BTreeMap<u64, u64>,
    pub(crate) heard: BTreeMap<u64, u64>,
    /// What was wrong.
    pub(crate) wrong: Vec<String>,
    /// The amounts that came, in order.
    pub(crate) letters: Vec<u8>,
}

/// What a game remembers of the moves and the mail that failed.
#[derive(Resource, Default)]
pub(crate) struct Failures {
    pub(crate) moves: Vec<(StableKey, String)>,
    pub(crate) mail: Vec<(StableKey, Packet)>,
}

/// A process.
pub(crate) struct Node {
    pub(crate) disk: SimulatedDisk,
    pub(crate) key: StableKey,
    /// Whether its build of the game knows the ledgers.
    pub(crate) knows_ledgers: bool,
    app: Option<App>,
    shard: Option<Shard>,
}

pub(crate) struct Cluster {
    groups: WorldGroups,
    store: Option<MemoryStore>,
    /// What else the game has.
    pub(crate) game: fn(&mut App),
    pub(crate) nodes: Vec<Node>,
}

impl Node {
    fn end(&mut self) {
        self.app = None;
        self.shard = None;
    }
}

impl Cluster {
    /// Starts zones with the keys 1001, 1002, ..
    pub(crate) fn new(zones: u64) -> Self {
        Self::with_store(zones, None)
    }

    pub(crate) fn with_store(zones: u64, store: Option<MemoryStore>) -> Self {
        let mut cluster = Self {
            groups: WorldGroups::new(),
            store,
            game: |_| {},
            nodes: Vec::new(),
        };
        for nth in 0..zones {
            let disk = SimulatedDisk::new(nth);
            let key = zone(nth);
            cluster.nodes.push(Node {
                disk,
                key,
                knows_ledgers: true,
                app: None,
                shard: None,
            });
            cluster.start(nth as usize);
        }
        cluster
    }

    /// Starts two zones that know each other, by a letter from an entity in the first to one in the second.
    pub(crate) fn acquainted(first: StableKey, second: StableKey) -> Self {
        let mut cluster = Self::new(2);
        cluster.spawn(0, first, ());
        cluster.spawn(1, second, ());
        cluster.update();
        cluster.acquaint(first, second);
        cluster
    }

    /// Lets an entity send another one a letter, so that their zones know each other.
    #[track_caller]
    pub(crate) fn acquaint(&mut self, from: StableKey, to: StableKey) {
        self.mail(from, to, 1);
        self.run_until("the letter", |cluster| {
            cluster.is_at_rest() && cluster.ledger(to).letters == [1]
        });
    }

    /// Starts three zones of which each has spoken with each.
    pub(crate) fn three(store: Option<MemoryStore>) -> Self {
        let mut cluster = Self::with_store(3, store);
        for nth in 0..3 {
            cluster.spawn(nth, StableKey(100 + nth as u64), ());
        }
        cluster.run(3);
        for from in 0..3 {
            for to in 0..3 {
                cluster.mail(StableKey(100 + from), StableKey(100 + to), 1);
            }
        }
        cluster.run_until("the letters", |cluster| {
            (0..3).all(|nth| cluster.ledger(StableKey(100 + nth)).gold == 3)
        });
        cluster.run_until("rest", Self::is_at_rest);
        cluster
    }

    /// Starts a process from what is on its disk.
    pub(crate) fn start(&mut self, nth: usize) {
        let Node {
            disk,
            key,
            knows_ledgers,
            ..
        } = &self.nodes[nth];
        let mut shard = Shard::open_simulated(disk.clone()).unwrap();
        if let Some(store) = &self.store {
            shard = shard.with_owners(store.clone()).unwrap();
        }
        let mut plugin = shard.zone(*key);
        if !knows_ledgers {
            plugin = plugin.allow_unloadable();
        }
        let mut app = App::new();
        if *knows_ledgers {
            app.world_mut().add_saved_component::<Ledger>("ledger");
        }
        app.add_plugins((TimePlugin, DuePlugin::default()))
            .add_plugins(plugin)
            .insert_resource(TimeUpdateStrategy::ManualDuration(FRAME))
            .init_resource::<Failures>()
            .insert_resource(FallbackErrorHandler(|error, context| {
                eprintln!("{context}: {error}");
            }))
            .add_observer(count)
            .add_observer(on_arrival)
            .add_observer(note_failed_move)
            .add_observer(note_returned_mail);
        (self.game)(&mut app);
        self.groups.add("zones", &mut app);
        app.update();
        self.nodes[nth].app = Some(app);
        self.nodes[nth].shard = Some(shard);
    }

    /// Ends a process. What its disk has not synced is lost.
    pub(crate) fn lose_power(&mut self, nth: usize, seed: u64) {
        let disk = self.nodes[nth].disk.after_power_loss(seed);
        self.nodes[nth].disk.crash_after(0);
        self.nodes[nth].end();
        self.nodes[nth].disk = disk;
    }

    /// Lets a process write everything, and ends it.
    pub(crate) fn stop(&mut self, nth: usize) {
        self.nodes[nth].end();
        self.nodes[nth].disk = self.nodes[nth].disk.after_kill();
    }

    /// Loses a process with its disk. Returns its journal.
    pub(crate) fn lose(&mut self, nth: usize) -> JournalId {
        let lost = self.shard(nth).journal_id();
        self.lose_power(nth, 0);
        lost
    }

    /// Starts a process with an empty disk.
    pub(crate) fn begin_anew(&mut self, nth: usize, seed: u64) {
        self.nodes[nth].disk = SimulatedDisk::new(seed);
        self.start(nth);
    }

    /// Loses a process, and starts it again from a copy of its disk. All others give the lost one up.
    pub(crate) fn restore(&mut self, nth: usize, copy: SimulatedDisk) {
        self.lose_power(nth, 0);
        let lost = Shard::restore_simulated(copy.clone()).unwrap();
        for other in (0..self.nodes.len()).filter(|&other| other != nth) {
            self.shard(other).reclaim(lost);
            self.update_one(other);
        }
        self.nodes[nth].disk = copy;
        self.start(nth);
    }

    /// Runs frames of each process.
    pub(crate) fn run(&mut self, frames: u32) {
        for _ in 0..frames {
            self.update();
        }
    }

    /// Runs frames until a store of owners has had the time to answer.
    pub(crate) fn wait_for_answers(&mut self) {
        for _ in 0..500 {
            self.update();
            thread::sleep(Duration::from_millis(1));
        }
    }

    /// Runs a frame of each process, and lets it become durable.
    pub(crate) fn update(&mut self) {
        self.update_worlds();
        self.wait();
    }

    /// Runs a frame of one process.
    pub(crate) fn update_one(&mut self, nth: usize) {
        let node = &mut self.nodes[nth];
        node.app.as_mut().unwrap().update();
        self.wait();
    }

    pub(crate) fn shard(&self, nth: usize) -> &Shard {
        self.nodes[nth].shard.as_ref().unwrap()
    }

    /// Returns `true` if a world has asked to end.
    pub(crate) fn has_ended(&self, nth: usize) -> bool {
        let app = self.nodes[nth].app.as_ref();
        app.is_some_and(|app| app.should_exit().is_some())
    }

    /// Waits for the disks.
    pub(crate) fn wait(&self) {
        for shard in self.nodes.iter().filter_map(|node| node.shard.as_ref()) {
            shard.wait().ok();
        }
    }

    /// Returns `true` if the disk of a process has failed.
    pub(crate) fn has_failed(&self, nth: usize) -> bool {
        let shard = self.nodes[nth].shard.as_ref();
        shard.is_some_and(|shard| shard.wait().is_err())
    }

    /// Runs a frame of each process.
    pub(crate) fn update_worlds(&mut self) {
        for node in &mut self.nodes {
            if let Some(app) = &mut node.app {
                app.update();
            }
        }
    }

    /// Runs frames until `is_done`.
    #[track_caller]
    pub(crate) fn run_until(&mut self, what: &str, mut is_done: impl FnMut(&mut Self) -> bool) {
        let start = Instant::now();
        while !is_done(self) {
            let is_late = start.elapsed() > Duration::from_secs(60);
            assert!(!is_late, "waited for {what}: {:#?}", self.zones());
            self.update();
        }
    }

    fn zones(&self) -> Vec<Option<&Zone>> {
        let nodes = self.nodes.iter();
        let zones = nodes.map(|node| Some(node.app.as_ref()?.world().resource::<Zone>()));
        zones.collect()
    }

    pub(crate) fn app(&mut self, nth: usize) -> &mut App {
        self.nodes[nth].app.as_mut().unwrap()
    }

    pub(crate) fn world(&mut self, nth: usize) -> &mut World {
        self.app(nth).world_mut()
    }

    /// Returns the node in which an entity lives.
    pub(crate) fn find(&self, key: StableKey) -> Option<usize> {
        let mut homes = self.nodes.iter().enumerate().filter(|(_, node)| {
            let world = node.app.as_ref().map(App::world);
            world.is_some_and(|world| world.resource::<Zone>().entity(key).is_some())
        });
        let home = homes.next();
        assert!(homes.next().is_none(), "{key:?} is in two zones");
        home.map(|(nth, _)| nth)
    }

    /// Returns `true` if an entity lives in a node.
    pub(crate) fn has(&self, nth: usize, key: StableKey) -> bool {
        let app = self.nodes[nth].app.as_ref().unwrap();
        app.world().resource::<Zone>().entity(key).is_some()
    }

    /// Returns the entity with a key in a node.
    pub(crate) fn entity(&mut self, nth: usize, key: StableKey) -> Entity {
        self.world(nth).resource::<Zone>().entity(key).unwrap()
    }

    pub(crate) fn ledger(&mut self, key: StableKey) -> Ledger {
        let nth = self
            .find(key)
            .unwrap_or_else(|| panic!("{key:?} is nowhere"));
        let entity = self.entity(nth, key);
        self.world(nth).get::<Ledger>(entity).unwrap().clone()
    }

    /// Returns the ledgers of the entities with the keys 1, 2, .., unless one is on its way.
    pub(crate) fn ledgers(&mut self, entities: u64) -> Option<Vec<Ledger>> {
        let mut keys = (1..=entities).map(StableKey);
        keys.try_fold(Vec::new(), |mut ledgers, key| {
            self.find(key)?;
            ledgers.push(self.ledger(key));
            Some(ledgers)
        })
    }

    pub(crate) fn spawn(&mut self, nth: usize, key: StableKey, bundle: impl Bundle) -> Entity {
        self.world(nth)
            .spawn((key, Ledger::default(), ears(), bundle))
            .id()
    }

    pub(crate) fn despawn(&mut self, nth: usize, key: StableKey) {
        let entity = self.entity(nth, key);
        self.world(nth).despawn(entity);
    }

    /// Disables an entity, so that its letters wait.
    pub(crate) fn disable(&mut self, nth: usize, key: StableKey) {
        let entity = self.entity(nth, key);
        self.world(nth).entity_mut(entity).insert(Disabled);
    }

    pub(crate) fn send_to(&mut self, key: StableKey, to: u64) {
        let nth = self.find(key).unwrap();
        let entity = self.entity(nth, key);
        self.world(nth).commands().entity(entity).move_to(zone(to));
    }

    /// Moves an entity.
    #[track_caller]
    pub(crate) fn move_to(&mut self, key: StableKey, to: u64) {
        self.send_to(key, to);
        self.run_until("the move", |cluster| cluster.find(key) == Some(to as usize));
    }

    /// Runs frames of the home of an entity until it is on its way to another one.
    pub(crate) fn let_leave(&mut self, key: StableKey, to: u64) {
        let from = self.find(key).unwrap();
        self.send_to(key, to);
        while self.has(from, key) {
            self.update_one(from);
        }
    }

    /// Runs frames of a node until an entity is there.
    pub(crate) fn let_arrive(&mut self, key: StableKey, nth: usize) {
        while !self.has(nth, key) {
            self.update_one(nth);
        }
    }

    pub(crate) fn mail(&mut self, from: StableKey, to: StableKey, gold: u8) {
        let nth = self.find(from).unwrap();
        let entity = self.entity(nth, from);
        let letter = Packet::new(GOLD, [gold]);
        self.world(nth).commands().entity(entity).mail(to, letter);
    }

    /// Returns `true` if nothing is on its way between the zones.
    pub(crate) fn is_at_rest(&mut self) -> bool {
        let mut running = self.nodes.iter().filter_map(|node| node.app.as_ref());
        running.all(|app| app.world().resource::<Zone>().on_the_way() == 0)
    }
}

pub(crate) fn zone(nth: u64) -> StableKey {
    StableKey(1001 + nth)
}

fn ears() -> MessageComponent {
    MessageComponent::new()
        .on_packet(GOLD, |mut me, packet: &Packet| {
            let mut ledger = me.entity.get_mut::<Ledger>().unwrap();
            let gold = packet.payload()[0];
            ledger.gold += u64::from(gold);
            ledger.letters.push(gold);
        })
        .on_packet(GIFT, |mut me, packet: &Packet| {
            let (from, number, gold): (u64, u64, u64) =
                postcard::from_bytes(packet.payload()).unwrap();
            let mut ledger = me.entity.get_mut::<Ledger>().unwrap();
            ledger.gold += gold;
            let next = ledger.heard.entry(from).or_default();
            let expected = core::mem::replace(next, number + 1);
            if number != expected {
                ledger
                    .wrong
                    .push(format!("letter {number} of {from} in place of {expected}"));
            }
        })
}

/// Sends gold from an entity to another, with a number.
pub(crate) fn give(world: &mut World, entity: Entity, from: StableKey, to: StableKey) {
    let mut ledger = world.get_mut::<Ledger>(entity).unwrap();
    let gold = ledger.gold.min(3);
    ledger.gold -= gold;
    let next = ledger.sent.entry(to.0).or_default();
    let letter = postcard::to_allocvec(&(from.0, *next, gold)).unwrap();
    *next += 1;
    let letter = Packet::new(GIFT, letter);
    world.commands().entity(entity).mail(to, letter);
}

/// Counts the firings of a durable entity.
pub(crate) fn count(fired: On<TimerFired>, mut ledgers: Query<&mut Ledger>) {
    if let Ok(mut ledger) = ledgers.get_mut(fired.owner()) {
        ledger.fired += 1;
        if ledger.fired != fired.count() {
            let wrong = format!("firing {} is number {}", fired.count(), ledger.fired);
            ledger.wrong.push(wrong);
        }
    }
}

fn on_arrival(arrived: On<Arrived>, mut commands: Commands) {
    commands.entity(arrived.entity).insert(ears());
}

fn note_failed_move(failed: On<MoveFailed>, keys: Query<&StableKey>, mut all: ResMut<Failures>) {
    let key = *keys.get(failed.entity).unwrap();
    all.moves.push((key, failed.reason.clone()));
}

fn note_returned_mail(returned: On<MailReturned>, mut all: ResMut<Failures>) {
    all.mail.push((returned.to, returned.letter.clone()));
}
