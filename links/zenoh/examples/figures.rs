//! Measures round trips and throughput between two processes, beside bare zenoh in the same run:
//!
//! ```text
//! cargo run --release -p bevy_due_zenoh --example figures
//! ```

use core::{array, time::Duration};
use std::{
    env,
    net::TcpListener,
    process::{Child, Command, Stdio},
    sync::{
        Arc, Mutex,
        mpsc::{self, Receiver, Sender},
    },
    thread,
    time::Instant,
};

use bevy_app::prelude::*;
use bevy_due::{
    LoopInterval, MessageContext, Packet, Parcel, ParcelCommandsExt, ParcelEntityCommandsExt,
    StableKey, Timer, WorldGroups, prelude::*,
};
use bevy_due_zenoh::{ZenohConfig, zenoh_link};
use bevy_ecs::prelude::*;
use zenoh::{
    Config, Session, Wait,
    pubsub::{Publisher, Subscriber},
    qos::CongestionControl,
};

const ROUNDS: usize = 5;
const TRIPS: usize = 10_000;
const PARCELS: usize = 1_000_000;
const PAYLOAD: [u8; 64] = [7; 64];

const ASK: u32 = 1;
const REPLY: u32 = 2;
const GO: u32 = 3;
const COUNT: u32 = 4;
const DONE: u32 = 5;

fn main() -> Result {
    let arguments: Vec<String> = env::args().skip(1).collect();
    match &arguments[..] {
        [link, bare] => serve(link, bare),
        _ => measure(),
    }
}

/// The process that answers.
fn serve(link: &str, bare: &str) -> Result {
    let session = bare_session("listen/endpoints", bare)?;
    let echo = publisher(&session, "bare/pong", true)?;
    let _ping = session
        .declare_subscriber("bare/ping")
        .callback(move |sample| _ = echo.put(sample.payload().clone()).wait())
        .wait()?;
    let echo = by_thread(publisher(&session, "bare/pong", true)?);
    let (ask, asked) = mpsc::channel();
    thread::spawn(move || {
        asked.iter().for_each(|()| _ = echo.send(()));
    });
    let _ask = session
        .declare_subscriber("bare/ask")
        .callback(move |_| _ = ask.send(()))
        .wait()?;
    let done = publisher(&session, "bare/done", true)?;
    let mut counted = 0;
    let _count = session
        .declare_subscriber("bare/count")
        .callback_mut(move |_| {
            counted += 1;
            if counted == PARCELS {
                counted = 0;
                done.put([]).wait().ok();
            }
        })
        .wait()?;
    let mut groups = WorldGroups::new();
    groups.start("echo", 1, answerer)?;
    groups.start("sink", 1, sink)?;
    groups.join(zenoh_link(ZenohConfig {
        listen: vec![link.into()],
        ..ZenohConfig::default()
    }))?;
    loop {
        thread::park();
    }
}

fn measure() -> Result {
    let [link, bare] = array::from_fn(|_| {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        listener.local_addr().expect("a port").to_string()
    });
    let child = Command::new(env::current_exe()?)
        .args([&link, &bare])
        .stdin(Stdio::null())
        .spawn()?;
    let _child = KillOnDrop(child);
    thread::sleep(Duration::from_secs(1));
    let mut bare = Bare::connect(&bare)?;
    let worlds = Worlds::connect(link)?;

    let mut figures = [const { Vec::new() }; 6];
    for _ in 0..ROUNDS {
        figures[0].push(bare.round_trips()?);
        figures[1].push(bare.round_trips_of_threads()?);
        figures[2].push(worlds.round_trips("echo")?);
        figures[3].push(worlds.round_trips("local")?);
        figures[4].push(bare.throughput()?);
        figures[5].push(worlds.throughput()?);
    }
    let names = [
        "round trip, bare zenoh, µs",
        "the same with a thread that answers and two that send, µs",
        "round trip, `ask_world` between processes, µs",
        "round trip, `ask_world` between threads of one process, µs",
        "64-byte puts, bare zenoh, thousands per second",
        "64-byte parcels, thousands per second",
    ];
    println!("| | lowest | median | highest |\n|---|---|---|---|");
    for (name, values) in names.iter().zip(&mut figures) {
        values.sort_by(f64::total_cmp);
        let [low, median, high] = [values[0], values[ROUNDS / 2], values[ROUNDS - 1]];
        println!("| {name} | {low:.0} | {median:.0} | {high:.0} |");
    }
    let median = figures.map(|values| values[ROUNDS / 2]);
    println!();
    println!("round trip: {:.2} times bare zenoh", median[2] / median[0]);
    println!(
        "round trip: {:.2} times bare zenoh with threads",
        median[2] / median[1]
    );
    println!("throughput: {:.2} times bare zenoh", median[5] / median[4]);
    Ok(())
}

struct KillOnDrop(Child);

impl Drop for KillOnDrop {
    fn drop(&mut self) {
        self.0.kill().ok();
        self.0.wait().ok();
    }
}

/// Returns the median in microseconds.
fn median(mut trips: Vec<Duration>) -> f64 {
    trips.sort();
    trips[trips.len() / 2].as_secs_f64() * 1e6
}

fn thousands_per_second(start: Instant) -> f64 {
    PARCELS as f64 / start.elapsed().as_secs_f64() / 1e3
}

/// Bare zenoh.
struct Bare {
    session: Session,
    pongs: Receiver<()>,
    done: Receiver<()>,
    _subscribers: [Subscriber<()>; 2],
}

fn bare_session(path: &str, address: &str) -> Result<Session> {
    let mut config = Config::default();
    config.insert_json5("scouting/multicast/enabled", "false")?;
    config.insert_json5("listen/endpoints", "[]")?;
    config.insert_json5(path, &format!("['tcp/{address}']"))?;
    Ok(zenoh::open(config).wait()?)
}

fn publisher(session: &Session, key: &'static str, express: bool) -> Result<Publisher<'static>> {
    let publisher = session
        .declare_publisher(key)
        .congestion_control(CongestionControl::Block);
    Ok(publisher.express(express).wait()?)
}

/// Puts from a thread of its own, as a link does.
fn by_thread(publisher: Publisher<'static>) -> Sender<()> {
    let (put, puts) = mpsc::channel();
    thread::spawn(move || {
        let puts = puts.iter().map(|()| publisher.put(PAYLOAD).wait());
        puts.for_each(|put| put.unwrap_or_default());
    });
    put
}

impl Bare {
    fn connect(address: &str) -> Result<Self> {
        let session = bare_session("connect/endpoints", address)?;
        let listen = |key| {
            let (send, receive) = mpsc::channel();
            let subscriber = session.declare_subscriber(key);
            let subscriber = subscriber.callback(move |_| _ = send.send(())).wait();
            subscriber.map(|subscriber| (subscriber, receive))
        };
        let (of_pongs, pongs) = listen("bare/pong")?;
        let (of_done, done) = listen("bare/done")?;
        thread::sleep(Duration::from_secs(1));
        let _subscribers = [of_pongs, of_done];
        Ok(Self {
            session,
            pongs,
            done,
            _subscribers,
        })
    }

    fn round_trips(&mut self) -> Result<f64> {
        let ping = publisher(&self.session, "bare/ping", true)?;
        let trip = |_| {
            let start = Instant::now();
            ping.put(PAYLOAD).wait()?;
            self.pongs.recv()?;
            Ok(start.elapsed())
        };
        (0..TRIPS).map(trip).collect::<Result<_>>().map(median)
    }

    /// With a thread that answers and two that send, as between worlds.
    fn round_trips_of_threads(&mut self) -> Result<f64> {
        let ask = by_thread(publisher(&self.session, "bare/ask", true)?);
        let trip = |_| {
            let start = Instant::now();
            ask.send(())?;
            self.pongs.recv()?;
            Ok(start.elapsed())
        };
        (0..TRIPS).map(trip).collect::<Result<_>>().map(median)
    }

    fn throughput(&mut self) -> Result<f64> {
        let count = publisher(&self.session, "bare/count", false)?;
        let start = Instant::now();
        for _ in 0..PARCELS {
            count.put(PAYLOAD).wait()?;
        }
        self.done.recv()?;
        Ok(thousands_per_second(start))
    }
}

/// Worlds that are joined by the link.
struct Worlds {
    groups: WorldGroups,
    trips: Receiver<Vec<Duration>>,
    done: Receiver<()>,
}

impl Worlds {
    fn connect(address: String) -> Result<Self> {
        let (tell_trips, trips) = mpsc::channel();
        let (tell_done, done) = mpsc::channel();
        let mut groups = WorldGroups::new();
        groups.start("local", 1, answerer)?;
        groups.start("askers", 1, move |app| {
            asker(app, tell_trips.clone(), tell_done.clone());
        })?;
        groups.join(zenoh_link(ZenohConfig {
            members: vec![address],
            ..ZenohConfig::default()
        }))?;
        while groups.running("sink") == 0 {
            thread::yield_now();
        }
        Ok(Self {
            groups,
            trips,
            done,
        })
    }

    fn round_trips(&self, group: &str) -> Result<f64> {
        let go = Packet::new(GO, group.as_bytes());
        self.groups
            .post(Parcel::new("askers", Delivery::InTurn, go))?;
        Ok(median(self.trips.recv()?))
    }

    fn throughput(&self) -> Result<f64> {
        let start = Instant::now();
        let packet = Packet::new(COUNT, PAYLOAD);
        for _ in 0..PARCELS {
            let mut parcel = Parcel::new("sink", Delivery::InTurn, packet.clone());
            while let Err(refused) = self.groups.post(parcel) {
                // The queue is full.
                thread::sleep(Duration::from_micros(100));
                parcel = refused.parcel;
            }
        }
        self.done.recv()?;
        Ok(thousands_per_second(start))
    }
}

/// A world that runs a frame only when a message arrives.
fn add_due(app: &mut App) {
    let due = DuePlugin {
        inbox_capacity: 1 << 24,
        inbox_bytes: 1 << 30,
        ..DuePlugin::default()
    };
    app.add_plugins(due);
    app.insert_resource(LoopInterval::Every(Duration::from_secs(3600)));
}

fn answerer(app: &mut App) {
    add_due(app);
    let reply = |mut me: MessageContext, asked: &Packet| -> Result {
        Ok(me.reply(Packet::new(REPLY, asked.payload()))?)
    };
    app.world_mut()
        .spawn(MessageComponent::new().on_packet(ASK, reply));
}

fn sink(app: &mut App) {
    #[derive(Component)]
    struct Counted(usize);

    add_due(app);
    let count = |mut me: MessageContext, _: &Packet| {
        let Some(mut counted) = me.entity.get_mut::<Counted>() else {
            return;
        };
        counted.0 += 1;
        if counted.0 == PARCELS {
            counted.0 = 0;
            let done = Packet::new(DONE, []);
            me.commands
                .post(Parcel::new("askers", Delivery::InTurn, done));
        }
    };
    app.world_mut()
        .spawn((Counted(0), MessageComponent::new().on_packet(COUNT, count)));
}

/// The round trips of an entity that asks again after each reply.
#[derive(Component, Default)]
struct Trips {
    group: String,
    start: Option<Instant>,
    times: Vec<Duration>,
}

fn asker(app: &mut App, trips: Sender<Vec<Duration>>, done: Sender<()>) {
    add_due(app);
    let trips = Arc::new(Mutex::new(trips));
    let asker = MessageComponent::new()
        .on_packet(GO, |mut me: MessageContext, group: &Packet| {
            if let Some(mut trips) = me.entity.get_mut::<Trips>() {
                trips.group = String::from_utf8_lossy(group.payload()).into();
            }
            ask(me);
        })
        .on_packet(REPLY, move |mut me: MessageContext, _: &Packet| {
            let Some(mut all) = me.entity.get_mut::<Trips>() else {
                return;
            };
            if let Some(start) = all.start {
                all.times.push(start.elapsed());
            }
            if all.times.len() < TRIPS {
                ask(me);
            } else if let Ok(trips) = trips.lock() {
                trips.send(core::mem::take(&mut all.times)).ok();
            }
        })
        .on_packet(DONE, move |_: MessageContext, _: &Packet| _ = done.send(()));
    app.world_mut()
        .spawn((StableKey(1), Trips::default(), asker));
}

fn ask(mut me: MessageContext) {
    let Some(mut trips) = me.entity.get_mut::<Trips>() else {
        return;
    };
    trips.start = Some(Instant::now());
    let parcel = Parcel::new(
        trips.group.clone(),
        Delivery::InTurn,
        Packet::new(ASK, PAYLOAD),
    );
    let id = me.entity.id();
    me.commands
        .entity(id)
        .ask_world(parcel, Timer::after_secs(3600.0));
}
