//! What a process tells another one of its zone: the key of the zone, and of no entity.

use core::time::Duration;
use std::time::Instant;

use bevy_app::prelude::*;
use bevy_due::{
    DuePlugin, Timer,
    message::{Delivery, MessageComponent, MessageContext, Packet, RefusalReason},
    save::SaveWorldExt,
    worlds::{
        Parcel, ParcelEntityCommandsExt, StableKey, WorldGroups,
        link::{Peer, PeerSettings},
    },
};
use bevy_due_ownership::{DurableEntityCommandsExt, Shard, SimulatedDisk, Zone};
use bevy_ecs::prelude::*;
use bevy_time::{TimePlugin, TimeUpdateStrategy};
use serde::{Deserialize, Serialize};

use crate::cluster::{FRAME, GOLD, zone};

#[derive(Component, Clone, Default, Serialize, Deserialize)]
struct Gold(u64);

const ASK: u32 = 3;
/// The length of a batch without frames. It ends with the number of frames.
const HEAD: usize = 45;

/// A process with a zone.
struct Process {
    groups: WorldGroups,
    app: App,
    shard: Shard,
}

fn entity(nth: u64) -> StableKey {
    StableKey(5000 + nth)
}

fn ears() -> MessageComponent {
    MessageComponent::new().on_packet(GOLD, |mut me, packet: &Packet| {
        me.entity.get_mut::<Gold>().unwrap().0 += u64::from(packet.payload()[0]);
    })
}

impl Process {
    /// Starts a process whose entities exist before the zone is open.
    fn start(nth: u64, entities: u64) -> Self {
        let shard = Shard::open_simulated(SimulatedDisk::new(nth)).unwrap();
        let mut app = App::new();
        app.add_plugins((TimePlugin, DuePlugin::default()))
            .add_plugins(shard.zone(zone(nth)))
            .insert_resource(TimeUpdateStrategy::ManualDuration(FRAME));
        app.world_mut().add_saved_component::<Gold>("gold");
        let mut process = Self {
            groups: WorldGroups::new(),
            app,
            shard,
        };
        process.spawn(0..entities);
        process.groups.add("zones", &mut process.app);
        process.update();
        process
    }

    fn spawn(&mut self, entities: core::ops::Range<u64>) {
        for nth in entities {
            self.app.world_mut().spawn((entity(nth), Gold(0), ears()));
        }
    }

    fn update(&mut self) {
        self.app.update();
        self.shard.wait().unwrap();
    }

    fn with(&mut self, key: StableKey, act: impl FnOnce(&mut EntityCommands)) {
        let world = self.app.world_mut();
        let entity = world.resource::<Zone>().entity(key).unwrap();
        act(&mut world.commands().entity(entity));
        world.flush();
    }

    fn gold(&self, key: StableKey) -> Option<u64> {
        let world = self.app.world();
        Some(world.get::<Gold>(world.resource::<Zone>().entity(key)?)?.0)
    }

    /// Returns why a parcel to a key is refused.
    fn refusal(&self, key: StableKey) -> Option<RefusalReason> {
        let parcel = Parcel::new("zones", Delivery::To(key), Packet::new(GOLD, [5]));
        Some(self.groups.post(parcel).err()?.reason)
    }
}

/// Two processes, whose links carry batches only in `settle`.
struct Pair {
    processes: [Process; 2],
    ends: [Peer; 2],
}

impl Pair {
    fn start(entities: u64) -> Self {
        let processes = [(0, entities), (1, 0)].map(|(nth, count)| Process::start(nth, count));
        let settings = PeerSettings {
            heartbeat: Duration::from_millis(1),
            ..PeerSettings::default()
        };
        let connect = |to: &Process| to.groups.handle().connect("other", settings);
        let ends = [connect(&processes[0]), connect(&processes[1])];
        Self { processes, ends }
    }

    /// Carries batches until both sides have nothing to say. Returns the number of frames that the first has sent, and
    /// their bytes.
    fn settle(&self) -> (u32, usize) {
        let (mut sent, mut quiet) = ((0, 0), 0);
        while quiet < 10 {
            quiet += 1;
            for (nth, to) in [(0, 1), (1, 0)] {
                let batch = self.ends[nth].next_batch().unwrap();
                self.ends[to].receive(&batch).unwrap();
                let (head, content) = batch.split_at(HEAD);
                let frames = u32::from_le_bytes(head[HEAD - 4..].try_into().unwrap());
                if frames > 0 {
                    quiet = 0;
                }
                if nth == 0 {
                    sent = (sent.0 + frames, sent.1 + content.len());
                }
            }
        }
        sent
    }

    fn run_until(&mut self, what: &str, is_so: impl Fn(&[Process; 2]) -> bool) {
        let start = Instant::now();
        while !is_so(&self.processes) {
            let is_late = start.elapsed() > Duration::from_secs(60);
            assert!(!is_late, "waited for {what}");
            self.processes.iter_mut().for_each(Process::update);
            self.settle();
        }
    }
}

#[test]
fn entities_of_a_zone_are_announced_to_no_other_process() {
    let mut pair = Pair::start(500);
    let (frames, bytes) = pair.settle();
    assert_eq!(
        frames, 3,
        "its world, the key of the zone, and that this is all"
    );
    assert!(bytes < 30, "{bytes}");

    let [here, _] = &mut pair.processes;
    here.spawn(500..1000);
    here.update();
    for nth in 0..600 {
        here.with(entity(nth), |entity| entity.despawn());
    }
    here.update();
    assert_eq!(
        pair.settle(),
        (0, 0),
        "nothing is told of what comes and goes"
    );
}

#[test]
fn a_parcel_reaches_an_entity_within_its_process_and_is_refused_elsewhere() {
    let mut pair = Pair::start(2);
    pair.settle();
    let [here, there] = &mut pair.processes;
    assert_eq!(there.refusal(zone(0)), None, "a zone is known");
    assert_eq!(there.refusal(entity(1)), Some(RefusalReason::UnknownKey));
    assert_eq!(here.refusal(entity(1)), None);
    here.update();
    assert_eq!(here.gold(entity(1)), Some(5));
}

#[test]
fn an_entity_asks_a_zone_of_another_process() {
    let mut pair = Pair::start(1);
    pair.settle();
    // As the docs of `ZonePlugin` say.
    let world = pair.processes[1].app.world_mut();
    let mut keys = world.query::<(Entity, &StableKey, &MessageComponent)>();
    let mut keys = keys.iter(world);
    let (gate, _, callbacks) = keys.find(|(_, key, _)| **key == zone(1)).unwrap();
    let answer = |mut me: MessageContext, _: &Packet| me.reply(Packet::new(GOLD, [3]));
    let callbacks = callbacks.clone().on_packet(ASK, answer);
    world.entity_mut(gate).insert(callbacks);
    pair.processes[0].with(entity(0), |asker| {
        let ask = Parcel::new("zones", zone(1), Packet::new(ASK, []));
        asker.ask_world(ask, Timer::after(3600.0));
    });
    pair.run_until("the reply", |[here, _]| here.gold(entity(0)) == Some(3));
}

#[test]
fn moves_and_letters_need_no_key_of_an_entity() {
    let mut pair = Pair::start(2);
    pair.settle();
    pair.processes[0].with(entity(0), |entity| _ = entity.move_to(zone(1)));
    pair.run_until("the move", |[_, there]| there.gold(entity(0)).is_some());
    pair.processes[1].with(entity(0), |entity| _ = entity.insert(ears()));
    let refusal = pair.processes[0].refusal(entity(0));
    assert_eq!(refusal, Some(RefusalReason::UnknownKey), "it has left");
    let letter = Packet::new(GOLD, [7]);
    pair.processes[0].with(entity(1), |sender| _ = sender.mail(entity(0), letter));
    pair.run_until("the letter", |[_, there]| there.gold(entity(0)) == Some(7));
}
