//! Measures round trips and throughput between two processes, beside bare zenoh in the same run:
//!
//! ```text
//! cargo run --release -p bevy_due_zenoh --example figures
//! ```

use core::time::Duration;
use std::{
    env,
    process::{Command, Stdio},
    sync::mpsc::{self, Receiver, Sender},
    thread,
    time::Instant,
};

use bevy_due_link_testing::{
    addresses,
    figures::{
        self, KillOnDrop, PARCELS, PAYLOAD, ROUNDS, TRIPS, Worlds, median, print_table,
        thousands_per_second,
    },
};
use bevy_due_zenoh::{ZenohConfig, zenoh_link};
use bevy_ecs::error::Result;
use zenoh::{
    Config, Session, Wait,
    pubsub::{Publisher, Subscriber},
    qos::CongestionControl,
};

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
    let _groups = figures::serve(zenoh_link(ZenohConfig {
        listen: vec![link.into()],
        ..ZenohConfig::default()
    }))?;
    loop {
        thread::park();
    }
}

fn measure() -> Result {
    let [link, bare] = addresses();
    let child = Command::new(env::current_exe()?)
        .args([&link, &bare])
        .stdin(Stdio::null())
        .spawn()?;
    let _child = KillOnDrop(child);
    thread::sleep(Duration::from_secs(1));
    let mut bare = Bare::connect(&bare)?;
    let worlds = Worlds::connect(zenoh_link(ZenohConfig {
        members: vec![link],
        ..ZenohConfig::default()
    }))?;

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
    let median = print_table(names, figures);
    println!("round trip: {:.2} times bare zenoh", median[2] / median[0]);
    println!(
        "round trip: {:.2} times bare zenoh with threads",
        median[2] / median[1]
    );
    println!("throughput: {:.2} times bare zenoh", median[5] / median[4]);
    Ok(())
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
