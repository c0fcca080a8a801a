//! Measures round trips and throughput between two processes, beside the bare client of NATS in the same
//! run. Starts a `nats-server`, two processes, and needs nothing else:
//!
//! ```text
//! cargo run --release -p bevy_due_nats --example nats_figures
//! ```

use core::time::Duration;
use std::{
    env,
    process::{Command, Stdio},
    sync::mpsc::{self, Receiver, Sender},
    thread,
    time::Instant,
};

use async_nats::{Client, ConnectOptions, SubscribeError, Subscriber};
use bevy_due::worlds::StableKey;
use bevy_due_link_testing::{
    figures::{
        self, KillOnDrop, PARCELS, PAYLOAD, ROUNDS, TRIPS, Worlds, median, print_table,
        thousands_per_second,
    },
    nats_server::NatsServer,
};
use bevy_due_nats::{NatsConfig, NatsOwners, NatsOwnersConfig, nats_link};
use bevy_due_ownership::{JournalId, Owner, OwnerStore, ZoneId};
use bevy_ecs::error::Result;
use futures_util::StreamExt;
use tokio::runtime::{Builder, Handle, Runtime};

fn main() -> Result {
    match env::args().nth(1) {
        Some(server) => serve(server),
        None => measure(),
    }
}

fn config(server: &str) -> NatsConfig {
    NatsConfig {
        servers: vec![server.into()],
        ..NatsConfig::default()
    }
}

/// The process that answers.
fn serve(server: String) -> Result {
    let _groups = figures::serve(nats_link(config(&server)))?;
    let runtime = Builder::new_current_thread().enable_all().build()?;
    // Otherwise the client drops messages that arrive faster than they are counted.
    let options = ConnectOptions::new().subscription_capacity(PARCELS);
    let client = runtime.block_on(options.connect(&server))?;
    let echo = client.clone();
    let echo = async move {
        let mut pings = echo.subscribe("bare.ping").await?;
        while let Some(ping) = pings.next().await {
            echo.publish("bare.pong", ping.payload).await?;
        }
        Ok::<_, async_nats::Error>(())
    };
    let counter = client.clone();
    let count = async move {
        let mut parcels = counter.subscribe("bare.count").await?;
        let mut counted = 0;
        while parcels.next().await.is_some() {
            counted += 1;
            if counted == PARCELS {
                counted = 0;
                counter.publish("bare.done", "".into()).await?;
            }
        }
        Ok::<_, async_nats::Error>(())
    };
    runtime.spawn(count);
    let reply = by_thread(runtime.handle(), &client, "bare.reply");
    let (ask, asked) = mpsc::channel();
    thread::spawn(move || asked.iter().for_each(|()| _ = reply.send(())));
    runtime.spawn(pass_on(client, "bare.ask", ask));
    Ok(runtime.block_on(echo)?)
}

fn measure() -> Result {
    let server = NatsServer::start(&["-js"]);
    let child = Command::new(env::current_exe()?)
        .arg(&server.address)
        .stdin(Stdio::null())
        .spawn()?;
    let _child = KillOnDrop(child);
    let worlds = Worlds::connect(nats_link(config(&server.address)))?;
    let mut bare = Bare::connect(&server.address)?;
    let threads = BareThreads::connect(&server.address)?;
    thread::sleep(Duration::from_secs(1));

    let mut measured = [const { Vec::new() }; 6];
    for _ in 0..ROUNDS {
        measured[0].push(bare.round_trips()?);
        measured[1].push(threads.round_trips()?);
        measured[2].push(worlds.round_trips("echo")?);
        measured[3].push(worlds.round_trips("local")?);
        measured[4].push(bare.throughput()?);
        measured[5].push(worlds.throughput()?);
    }
    let names = [
        "round trip, bare client, µs",
        "the same with a thread that answers and two that send, µs",
        "round trip, `ask_world` between processes, µs",
        "round trip, `ask_world` between threads of one process, µs",
        "64-byte messages, bare client, thousands per second",
        "64-byte parcels, thousands per second",
    ];
    let median = print_table(names, measured);
    let ratios = [
        ("round trip", median[2] / median[0]),
        ("with threads", median[2] / median[1]),
        ("throughput", median[5] / median[4]),
    ];
    for (name, ratio) in ratios {
        println!("{name}: {ratio:.2} times the bare client");
    }
    println!("change of an owner: {:.0} µs", changes(&server.address)?);
    Ok(())
}

/// Publishes from a thread of its own, as a link does.
fn by_thread(handle: &Handle, client: &Client, subject: &'static str) -> Sender<()> {
    let (handle, client) = (handle.clone(), client.clone());
    let (publish, publishes) = mpsc::channel();
    thread::spawn(move || {
        for () in publishes {
            let published = client.publish(subject, PAYLOAD[..].into());
            handle.block_on(published).expect("the client runs");
        }
    });
    publish
}

/// Tells a thread of each message.
async fn pass_on(
    client: Client,
    subject: &'static str,
    tell: Sender<()>,
) -> Result<(), SubscribeError> {
    let mut messages = client.subscribe(subject).await?;
    while messages.next().await.is_some() {
        tell.send(()).ok();
    }
    Ok(())
}

/// The bare client on a thread, and a thread that sends, as between worlds.
struct BareThreads {
    ask: Sender<()>,
    replies: Receiver<()>,
}

impl BareThreads {
    fn connect(server: &str) -> Result<Self> {
        let runtime = Builder::new_current_thread().enable_all().build()?;
        let client = runtime.block_on(async_nats::connect(server))?;
        let ask = by_thread(runtime.handle(), &client, "bare.ask");
        let (tell, replies) = mpsc::channel();
        thread::spawn(move || runtime.block_on(pass_on(client, "bare.reply", tell)));
        Ok(Self { ask, replies })
    }

    fn round_trips(&self) -> Result<f64> {
        let trip = |_| {
            let start = Instant::now();
            self.ask.send(())?;
            self.replies.recv()?;
            Ok(start.elapsed())
        };
        (0..TRIPS).map(trip).collect::<Result<_>>().map(median)
    }
}

/// The bare client.
struct Bare {
    runtime: Runtime,
    client: Client,
    pongs: Subscriber,
    done: Subscriber,
}

impl Bare {
    fn connect(server: &str) -> Result<Self> {
        let runtime = Builder::new_current_thread().enable_all().build()?;
        let (client, pongs, done) = runtime.block_on(async {
            let client = async_nats::connect(server).await?;
            let pongs = client.subscribe("bare.pong").await?;
            let done = client.subscribe("bare.done").await?;
            Ok::<_, async_nats::Error>((client, pongs, done))
        })?;
        Ok(Self {
            runtime,
            client,
            pongs,
            done,
        })
    }

    fn round_trips(&mut self) -> Result<f64> {
        let Self {
            runtime,
            client,
            pongs,
            ..
        } = self;
        let trips = runtime.block_on(async {
            let mut trips = Vec::new();
            while trips.len() < TRIPS {
                let start = Instant::now();
                client.publish("bare.ping", PAYLOAD[..].into()).await?;
                pongs.next().await.ok_or("the server has gone")?;
                trips.push(start.elapsed());
            }
            Ok::<_, async_nats::Error>(trips)
        });
        Ok(median(trips?))
    }

    fn throughput(&mut self) -> Result<f64> {
        let Self {
            runtime,
            client,
            done,
            ..
        } = self;
        let start = Instant::now();
        runtime.block_on(async {
            for _ in 0..PARCELS {
                client.publish("bare.count", PAYLOAD[..].into()).await?;
            }
            done.next().await.ok_or("the server has gone")?;
            Ok::<_, async_nats::Error>(())
        })?;
        Ok(thousands_per_second(start))
    }
}

/// Returns the median time of a change of an owner, in microseconds.
fn changes(server: &str) -> Result<f64> {
    let mut owners = NatsOwners::open(NatsOwnersConfig {
        servers: vec![server.into()],
        ..NatsOwnersConfig::default()
    })?;
    let zone = ZoneId {
        journal: JournalId(1),
        zone: StableKey(1),
    };
    let mut last = None;
    let change = |epoch| {
        let start = Instant::now();
        let next = Owner {
            zone,
            epoch,
            birth: Some(1),
        };
        owners.change(StableKey(1), last.replace(next), next)?;
        Ok(start.elapsed())
    };
    (1..=1000).map(change).collect::<Result<_>>().map(median)
}
