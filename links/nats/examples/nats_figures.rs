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
    thread,
    time::Instant,
};

use async_nats::{Client, ConnectOptions, Subscriber};
use bevy_due_link_testing::{
    figures::{
        self, KillOnDrop, PARCELS, PAYLOAD, ROUNDS, TRIPS, Worlds, median, print_table,
        thousands_per_second,
    },
    nats_server::NatsServer,
};
use bevy_due_nats::{NatsConfig, OwnerStore, OwnerStoreConfig, nats_link};
use bevy_ecs::error::Result;
use futures_util::StreamExt;
use tokio::runtime::{Builder, Runtime};

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
    let count = async move {
        let mut parcels = client.subscribe("bare.count").await?;
        let mut counted = 0;
        while parcels.next().await.is_some() {
            counted += 1;
            if counted == PARCELS {
                counted = 0;
                client.publish("bare.done", "".into()).await?;
            }
        }
        Ok::<_, async_nats::Error>(())
    };
    runtime.spawn(count);
    Ok(runtime.block_on(echo)?)
}

fn measure() -> Result {
    let Some(server) = NatsServer::start(&["-js"]) else {
        return Ok(());
    };
    let child = Command::new(env::current_exe()?)
        .arg(&server.address)
        .stdin(Stdio::null())
        .spawn()?;
    let _child = KillOnDrop(child);
    let worlds = Worlds::connect(nats_link(config(&server.address)))?;
    let mut bare = Bare::connect(&server.address)?;
    thread::sleep(Duration::from_secs(1));

    let mut measured = [const { Vec::new() }; 5];
    for _ in 0..ROUNDS {
        measured[0].push(bare.round_trips()?);
        measured[1].push(worlds.round_trips("echo")?);
        measured[2].push(worlds.round_trips("local")?);
        measured[3].push(bare.throughput()?);
        measured[4].push(worlds.throughput()?);
    }
    let names = [
        "round trip, bare client, µs",
        "round trip, `ask_world` between processes, µs",
        "round trip, `ask_world` between threads of one process, µs",
        "64-byte messages, bare client, thousands per second",
        "64-byte parcels, thousands per second",
    ];
    let median = print_table(names, measured);
    println!(
        "round trip: {:.2} times the bare client",
        median[1] / median[0]
    );
    println!(
        "throughput: {:.2} times the bare client",
        median[4] / median[3]
    );
    println!(
        "change of an `OwnerStore`: {:.0} µs",
        swaps(&server.address)?
    );
    Ok(())
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

/// Returns the median time of a change in the store, in microseconds.
fn swaps(server: &str) -> Result<f64> {
    let store = OwnerStore::open(OwnerStoreConfig {
        servers: vec![server.into()],
        ..OwnerStoreConfig::default()
    })?;
    let mut revision = None;
    let swap = |_| {
        let start = Instant::now();
        revision = Some(store.compare_and_swap(1, revision, &PAYLOAD)??);
        Ok(start.elapsed())
    };
    (0..1000).map(swap).collect::<Result<_>>().map(median)
}
