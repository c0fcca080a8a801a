//! The link.

use core::time::Duration;
use std::{sync::Arc, thread, time::Instant};

use async_nats::{ConnectOptions, Event, SubscribeError, Subscriber};
use bevy_due::worlds::{GroupsHandle, link::Link};
use bevy_due_peers::Peers;
use bevy_ecs::error::Result;
use tokio::sync::{
    Semaphore,
    mpsc::{UnboundedSender, unbounded_channel},
};

use crate::{
    client::{ClientThread, connect},
    config::{NatsConfig, fit},
    connection::Connection,
    process::Process,
    subjects::Subjects,
};

/// How long a link that closes sends what is left.
const CLOSE_LIMIT: Duration = Duration::from_secs(2);

/// Joins the groups of worlds in all processes with the same [`cluster`](NatsConfig::cluster). Pass it to
/// [`WorldGroups::join`](bevy_due::worlds::WorldGroups::join).
///
/// `join` waits for the connection to a server. It returns an error if a setting can't be used, or if no
/// server can be reached, unless [`waits_for_server`](NatsConfig::waits_for_server) is set. It does not wait for other processes. It may be called on any thread, also on one
/// of an async runtime.
///
/// The processes find each other by the server. A process that dies is
/// [down](bevy_due::worlds::link::Liveness::Down) with the next batch that another one sends to it, at the latest
/// after a [`heartbeat`](bevy_due::worlds::link::PeerSettings::heartbeat), because the server answers that nobody
/// listens. One that hangs is down after [`down_after`](bevy_due::worlds::link::PeerSettings::down_after). If the
/// server goes, all processes are down until it is back, or until the client has found another one.
///
/// The end of the groups closes the link: it sends what is left for at most two seconds, and then closes
/// its connection.
///
/// # Examples
///
/// ```no_run
/// use bevy_due::{prelude::*, worlds::WorldGroups};
/// use bevy_due_nats::{NatsConfig, nats_link};
///
/// # fn main() -> bevy_ecs::error::Result {
/// let mut groups = WorldGroups::new();
/// groups.start("chat", 1, |app| _ = app.add_plugins(DuePlugin::default()))?;
/// groups.join(nats_link(NatsConfig {
///     servers: vec!["10.0.0.1:4222".into()],
///     ..NatsConfig::default()
/// }))?;
/// # Ok(())
/// # }
/// ```
pub fn nats_link(config: NatsConfig) -> impl Link {
    NatsLink {
        config,
        engine: None,
    }
}

struct NatsLink {
    config: NatsConfig,
    engine: Option<Engine>,
}

impl Link for NatsLink {
    fn open(&mut self, groups: GroupsHandle) -> Result {
        self.engine = Some(Engine::start(&self.config, groups)?);
        Ok(())
    }

    fn close(&mut self) {
        if let Some(engine) = self.engine.take() {
            engine.stop();
        }
    }
}

/// The client, while it runs.
struct Engine {
    process: Arc<Process>,
    thread: ClientThread,
}

impl Engine {
    fn start(config: &NatsConfig, groups: GroupsHandle) -> Result<Self> {
        let Connection { servers, options } = config.check()?;
        let subjects = Subjects::new(&config.cluster);
        let name = config.name.clone().unwrap_or_else(|| subjects.me.clone());
        let (tell, events) = unbounded_channel();
        let options = for_link(options, config, &name, tell);
        let thread = ClientThread::start()?;
        let client = thread.wait(connect(Connection { servers, options }))?;
        let settings = fit(config.peers, client.max_payload());
        let process = Arc::new(Process {
            name,
            peers: Peers::new(groups, settings, client.clone()),
            subjects,
            client,
        });
        // First, so that nobody sends before this process listens.
        let (batches, introductions) = thread.wait(listen(process.clone()))?;
        thread.handle.spawn(process.clone().receive(batches));
        for introductions in introductions {
            thread.handle.spawn(process.clone().find(introductions));
        }
        thread.handle.spawn(process.clone().repeat_introduction());
        thread.handle.spawn(process.clone().watch(events));
        Ok(Self { process, thread })
    }

    fn stop(self) {
        let Process {
            peers,
            subjects,
            client,
            ..
        } = &*self.process;
        let start = Instant::now();
        while peers.is_sending() && start.elapsed() < CLOSE_LIMIT {
            thread::sleep(Duration::from_millis(1));
        }
        // The reply that nobody listens comes after the server has read all batches. If the connection was
        // closed before, what is on its way could be lost.
        let (client, nobody) = (client.clone(), subjects.nobody());
        let left = CLOSE_LIMIT.saturating_sub(start.elapsed());
        let left = left.max(Duration::from_millis(1));
        let reply =
            async move { tokio::time::timeout(left, client.request(nobody, "".into())).await };
        if self.thread.wait(reply).is_err() {
            tracing::debug!("does not know whether the server has got all batches");
        }
        peers.close();
    }
}

/// Adds what the link chooses.
fn for_link(
    options: ConnectOptions,
    config: &NatsConfig,
    name: &str,
    tell: UnboundedSender<Event>,
) -> ConnectOptions {
    let delay = |attempt: usize| {
        let doubled = 10_u64 << attempt.min(7);
        Duration::from_millis(if attempt < 2 { 0 } else { doubled.min(1000) })
    };
    // The client gives up a server that does not answer two pings until the third is due.
    let ping = config.peers.down_after / 3;
    options
        .name(name)
        .no_echo()
        .ping_interval(ping)
        .reconnect_delay_callback(delay)
        // The client drops messages for which a subscription has no room, so it must have room for all. The
        // windows of the processes bound what is on its way, and the tasks that read it and that take it run
        // on one thread by turns.
        .subscription_capacity(Semaphore::MAX_PERMITS)
        .event_callback(move |event| {
            tell.send(event).ok();
            core::future::ready(())
        })
}

/// Listens to batches and introductions.
async fn listen(process: Arc<Process>) -> Result<(Subscriber, [Subscriber; 2]), SubscribeError> {
    let Process {
        subjects, client, ..
    } = &*process;
    let batches = client.subscribe(subjects.to_me()).await?;
    let [all, me] = subjects.introductions();
    let introductions = [client.subscribe(all).await?, client.subscribe(me).await?];
    Ok((batches, introductions))
}
