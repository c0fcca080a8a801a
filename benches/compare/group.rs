//! Worlds on threads, compared with plain threads that have a channel each.

use core::time::Duration;
use std::{
    sync::{
        LazyLock,
        mpsc::{self, Sender},
    },
    thread,
    time::Instant,
};

use bevy_app::App;
use bevy_due::{
    Timer,
    message::{Delivery, MessageContext, Packet},
    prelude::*,
    worlds::{LoopInterval, Parcel, ParcelEntityCommandsExt, StableKey, WorldGroups},
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

/// The time before a reply to a thread that sleeps. It is far longer than a thread spins before it
/// sleeps.
const REPLY_PAUSE: Duration = Duration::from_micros(100);

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
                asking_world(NEVER, Duration::ZERO, rounds(units), report)
            })
        },
        |units| {
            latency(rounds(units), |report| {
                asking_thread(Duration::ZERO, rounds(units), report)
            })
        },
    );
    let requests = |units| (units / 500) as u64;
    table.line(
        ("group_wake", WORLDS, "crossbeam_channel"),
        None,
        |units| {
            wake(requests(units), |report| {
                asking_world(SLEEP, REPLY_PAUSE, 1, report)
            })
        },
        |units| {
            wake(requests(units), |report| {
                asking_thread(REPLY_PAUSE, 1, report)
            })
        },
    );
}

fn number(number: u64) -> Packet {
    Packet::new(NUMBER, number.to_le_bytes())
}

/// Returns the nanoseconds since the first call.
fn now() -> u64 {
    static START: LazyLock<Instant> = LazyLock::new(Instant::now);
    START.elapsed().as_nanos() as u64
}

/// Returns the reply to a request, whose number is the time at which it was sent. The number of the
/// reply is the same time, moved on by the pause before the reply.
fn answer_after(pause: Duration, request: &Packet) -> Packet {
    let taken = now() - read(request);
    thread::sleep(pause);
    number(now() - taken)
}

/// Returns the time that a request and its reply have taken, without the pause between the two.
fn time_of(reply: &Packet) -> Duration {
    Duration::from_nanos(now() - read(reply))
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
/// is a request. The time of a turn is the median times `rounds`.
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
///
/// The contender also pauses before each reply. Otherwise the asking thread of the channel does not
/// sleep: crossbeam spins for about as long as the answering thread takes to wake up.
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

/// Starts a world that asks, and a world that replies after a pause.
fn asking_world(
    interval: LoopInterval,
    pause: Duration,
    rounds: u64,
    report: Sender<Vec<Duration>>,
) -> Post {
    /// The times of the requests so far.
    #[derive(Component)]
    struct Times(Vec<Duration>);

    fn ask(me: &mut MessageContext) {
        let question = Packet::new(ASK, now().to_le_bytes());
        let parcel = Parcel::new("answering", Delivery::InTurn, question);
        let mut asker = me.commands.entity(me.entity.id());
        asker.ask_world(parcel, Timer::after(3600.0));
    }

    let mut groups = WorldGroups::new();
    let build = move |app: &mut App| {
        let answer = move |mut me: MessageContext, request: &Packet| -> Result {
            Ok(me.reply(answer_after(pause, request))?)
        };
        app.add_plugins(DuePlugin::default())
            .insert_resource(interval)
            .world_mut()
            .spawn(MessageComponent::new().on_packet(ASK, answer));
    };
    groups.start("answering", 1, build).expect("a thread");
    let build = move |app: &mut App| {
        let report = report.clone();
        let ask_next = move |mut me: MessageContext, packet: &Packet| {
            let is_reply = me.request().is_some();
            if let Some(mut times) = me.entity.get_mut::<Times>()
                && is_reply
            {
                times.0.push(time_of(packet));
                if times.0.len() as u64 == rounds {
                    report.send(core::mem::take(&mut times.0)).ok();
                    return;
                }
            }
            ask(&mut me);
        };
        let asker = MessageComponent::new().on_packet(NUMBER, ask_next);
        app.add_plugins(DuePlugin::default())
            .insert_resource(interval)
            .world_mut()
            .spawn((StableKey(1), Times(Vec::new()), asker));
    };
    groups.start("asking", 1, build).expect("a thread");
    Box::new(move |packet| {
        let posted = groups.post(Parcel::new("asking", Delivery::All, packet));
        posted.expect("a world that runs");
    })
}

/// Starts a thread that asks, and a thread that replies after a pause.
fn asking_thread(pause: Duration, rounds: u64, report: Sender<Vec<Duration>>) -> Post {
    let (ask, asked) = crossbeam_channel::unbounded::<Packet>();
    let (answer, answered) = crossbeam_channel::unbounded::<Packet>();
    thread::spawn(move || {
        for request in asked {
            answer.send(answer_after(pause, &request)).ok();
        }
    });
    let (start, started) = crossbeam_channel::unbounded();
    thread::spawn(move || {
        for _ in started {
            let times = (0..rounds).map(|_| {
                ask.send(number(now())).expect("a thread that runs");
                time_of(&answered.recv().expect("a reply"))
            });
            report.send(times.collect()).ok();
        }
    });
    Box::new(move |packet| start.send(packet).expect("a thread that runs"))
}
