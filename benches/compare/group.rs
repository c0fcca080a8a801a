//! Worlds on threads, compared with plain threads that have a channel each.

use core::time::Duration;
use std::{
    sync::mpsc::{self, Sender},
    thread,
    time::Instant,
};

use bevy_app::App;
use bevy_due::{
    LoopInterval, MessageContext, Packet, Parcel, ParcelEntityCommandsExt, StableKey, Timer,
    WorldGroups, prelude::*,
};
use bevy_ecs::prelude::*;

use crate::sides::{Done, Side, Table, timed};

const WORLDS: usize = 2;

/// An interval so long that a world runs only when a message arrives.
const NEVER: LoopInterval = LoopInterval::Every(Duration::from_secs(3600));

/// A world that sleeps while nothing is due.
const SLEEP: LoopInterval = LoopInterval::WhenDue(Duration::from_millis(10));

/// The time after which all threads of a contender sleep.
const PAUSE: Duration = Duration::from_millis(2);

const NUMBER: u32 = 1;
const ASK: u32 = 2;

/// Sends a packet to the worlds or threads of a contender.
type Post = Box<dyn FnMut(Packet)>;

pub fn compare(table: &mut Table) {
    for (name, delivery) in [
        ("group_broadcast", Delivery::All),
        ("group_exclusive", Delivery::InTurn),
    ] {
        table.line(
            (name, WORLDS, "crossbeam_channel"),
            None,
            |units| sums(delivery, units, worlds),
            |units| sums(delivery, units, channels),
        );
    }
    let rounds = |units| (units / 20) as u64;
    table.line(
        ("group_latency", WORLDS, "crossbeam_channel"),
        None,
        |units| {
            latency(rounds(units), |report| {
                asking_world(NEVER, rounds(units), report)
            })
        },
        |units| latency(rounds(units), |report| asking_thread(rounds(units), report)),
    );
    let requests = |units| (units / 500) as u64;
    table.line(
        ("group_wake", WORLDS, "crossbeam_channel"),
        None,
        |units| wake(requests(units), |report| asking_world(SLEEP, 1, report)),
        |units| wake(requests(units), |report| asking_thread(1, report)),
    );
}

fn number(number: u64) -> Packet {
    Packet::new(NUMBER, number.to_le_bytes())
}

fn read(packet: &Packet) -> u64 {
    let bytes = packet.payload().try_into();
    u64::from_le_bytes(bytes.expect("a packet of eight bytes"))
}

/// The number and the sum of the packets received so far.
#[derive(Component, Default)]
struct Sum {
    packets: u64,
    sum: u64,
}

impl Sum {
    /// Adds a packet. Returns the sum if the number of packets is a multiple of `every`.
    fn add(&mut self, packet: &Packet, every: u64) -> Option<u64> {
        self.packets += 1;
        self.sum += read(packet);
        self.packets.is_multiple_of(every).then_some(self.sum)
    }
}

/// Returns a side that sends `packets` packets per turn, and waits until the contender has summed
/// them up. A unit is a packet sent.
fn sums(
    delivery: Delivery<StableKey>,
    packets: usize,
    contender: fn(Delivery<StableKey>, u64, Sender<u64>) -> Post,
) -> Side {
    let packets_per_world = match delivery {
        Delivery::InTurn => packets / WORLDS,
        _ => packets,
    };
    let (report, reports) = mpsc::channel();
    let mut post = contender(delivery, packets_per_world as u64, report);
    let mut done = Done::default();
    Box::new(move || {
        let time = timed(|| {
            for n in 0..packets as u64 {
                post(number(n));
            }
            for _ in 0..WORLDS {
                done.checksum += reports.recv().expect("all that was sent");
            }
        });
        done.units += packets as u64;
        (time, done)
    })
}

fn worlds(delivery: Delivery<StableKey>, every: u64, report: Sender<u64>) -> Post {
    let mut groups = WorldGroups::new();
    let build = move |app: &mut App| {
        let report = report.clone();
        let add = move |mut me: MessageContext, packet: &Packet| {
            let sum = me.entity.get_mut::<Sum>();
            if let Some(sum) = sum.and_then(|mut sum| sum.add(packet, every)) {
                report.send(sum).ok();
            }
        };
        let due = DuePlugin {
            inbox_capacity: usize::MAX,
            ..DuePlugin::default()
        };
        app.add_plugins(due)
            .insert_resource(NEVER)
            .world_mut()
            .spawn((
                Sum::default(),
                MessageComponent::new().on_packet(NUMBER, add),
            ));
    };
    let started = groups.start("worlds", WORLDS, build);
    started.expect("two threads");
    Box::new(move |packet| {
        let posted = groups.post(Parcel::new("worlds", delivery, packet));
        posted.expect("worlds that run");
    })
}

fn channels(delivery: Delivery<StableKey>, every: u64, report: Sender<u64>) -> Post {
    let threads = [(); WORLDS].map(|()| {
        let (send, sent) = crossbeam_channel::unbounded();
        let report = report.clone();
        thread::spawn(move || {
            let mut sum = Sum::default();
            for packet in sent {
                if let Some(sum) = sum.add(&packet, every) {
                    report.send(sum).ok();
                }
            }
        });
        send
    });
    let mut turns = threads.clone().into_iter().cycle();
    Box::new(move |packet| {
        if delivery == Delivery::InTurn {
            let thread = turns.next().expect("a cycle");
            thread.send(packet).expect("a thread that runs");
        } else {
            for thread in &threads {
                thread.send(packet.clone()).expect("a thread that runs");
            }
        }
    })
}

/// Returns a side that makes `rounds` requests per turn, each after the reply to the last. A unit
/// is a request. The time of a turn is the median times `rounds`. A reply is the number in its
/// request plus one.
fn latency(rounds: u64, contender: impl FnOnce(Sender<Vec<Duration>>) -> Post) -> Side {
    let (report, reports) = mpsc::channel();
    let mut start = contender(report);
    let mut done = Done::default();
    Box::new(move || {
        start(number(0));
        let mut times: Vec<_> = reports.recv().expect("all answers");
        times.sort();
        done.units += times.len() as u64;
        let median = times[times.len() / 2];
        (median * rounds as u32, done)
    })
}

/// Returns a side that makes one request after another, each after a pause in which both threads fall
/// asleep. A unit is a request. The time of a turn is the median times the number of requests.
fn wake(requests: u64, contender: impl FnOnce(Sender<Vec<Duration>>) -> Post) -> Side {
    let (report, reports) = mpsc::channel();
    let mut start = contender(report);
    let mut done = Done::default();
    Box::new(move || {
        let mut times = Vec::new();
        for n in 0..requests {
            thread::sleep(PAUSE);
            start(number(n));
            times.extend(reports.recv().expect("an answer"));
        }
        times.sort();
        done.units += requests;
        (times[times.len() / 2] * requests as u32, done)
    })
}

fn asking_world(interval: LoopInterval, rounds: u64, report: Sender<Vec<Duration>>) -> Post {
    #[derive(Component)]
    struct Asked {
        at: Instant,
        times: Vec<Duration>,
    }

    fn ask(me: &mut MessageContext, packet: Packet) {
        let question = Packet::new(ASK, packet.payload());
        let parcel = Parcel::new("answering", Delivery::InTurn, question);
        let mut asker = me.commands.entity(me.entity.id());
        asker.ask_world(parcel, Timer::after_secs(3600.0));
        if let Some(mut asked) = me.entity.get_mut::<Asked>() {
            asked.at = Instant::now();
        }
    }

    let mut groups = WorldGroups::new();
    let build = move |app: &mut App| {
        let answer = |mut me: MessageContext, packet: &Packet| -> Result {
            Ok(me.reply(number(read(packet) + 1))?)
        };
        app.add_plugins(DuePlugin::default())
            .insert_resource(interval)
            .world_mut()
            .spawn(MessageComponent::new().on_packet(ASK, answer));
    };
    groups.start("answering", 1, build).expect("a thread");
    let build = move |app: &mut App| {
        let report = report.clone();
        let ask_next = move |mut me: MessageContext, answer: &Packet| {
            let is_answer = me.request().is_some();
            if let Some(mut asked) = me.entity.get_mut::<Asked>()
                && is_answer
            {
                let time = asked.at.elapsed();
                asked.times.push(time);
                if asked.times.len() as u64 == rounds {
                    report.send(core::mem::take(&mut asked.times)).ok();
                    return;
                }
            }
            ask(&mut me, answer.clone());
        };
        let asked = Asked {
            at: Instant::now(),
            times: Vec::new(),
        };
        let asker = MessageComponent::new().on_packet(NUMBER, ask_next);
        app.add_plugins(DuePlugin::default())
            .insert_resource(interval)
            .world_mut()
            .spawn((StableKey(1), asked, asker));
    };
    groups.start("asking", 1, build).expect("a thread");
    Box::new(move |packet| {
        let posted = groups.post(Parcel::new("asking", Delivery::All, packet));
        posted.expect("a world that runs");
    })
}

fn asking_thread(rounds: u64, report: Sender<Vec<Duration>>) -> Post {
    let (ask, asked) = crossbeam_channel::unbounded::<Packet>();
    let (answer, answered) = crossbeam_channel::unbounded();
    thread::spawn(move || {
        for packet in asked {
            answer.send(number(read(&packet) + 1)).ok();
        }
    });
    let (start, started) = crossbeam_channel::unbounded();
    thread::spawn(move || {
        for mut packet in started {
            let mut times = Vec::new();
            for _ in 0..rounds {
                let at = Instant::now();
                ask.send(packet).expect("a thread that runs");
                packet = answered.recv().expect("an answer");
                times.push(at.elapsed());
            }
            report.send(times).ok();
        }
    });
    Box::new(move |packet| start.send(packet).expect("a thread that runs"))
}
