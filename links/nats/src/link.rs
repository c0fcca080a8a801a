//! The link.

use core::time::Duration;
use std::{sync::Arc, thread, time::Instant};

use async_nats::{
    Client, ConnectOptions, Event, Message, PublishError, StatusCode, SubscribeError, Subscriber,
};
use bevy_due::{GroupsHandle, link::Link};
use bevy_ecs::error::Result;
use futures_util::StreamExt;
use tokio::sync::{
    Semaphore,
    mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel},
};

use crate::{
    client::{ClientThread, connect},
    config::{NatsConfig, fit},
    members::Members,
    subjects::{ALL, Subjects, sender_of},
};

/// How long a link that closes sends what is left.
const CLOSE_LIMIT: Duration = Duration::from_secs(2);

/// How often a process introduces itself without a reason. This finds the others again after two servers
/// of a cluster have lost each other.
const INTRODUCTION: Duration = Duration::from_secs(2);

/// Joins the groups of worlds in all processes with the same [`cluster`](NatsConfig::cluster). Pass it to
/// [`WorldGroups::join`](bevy_due::WorldGroups::join).
///
/// `join` waits for the connection to a server. It returns an error if a setting can't be used, or if no
/// server can be reached. It does not wait for other processes. It may be called on any thread, also on one
/// of an async runtime.
///
/// The processes find each other by the server. A process that dies is
/// [down](bevy_due::link::Liveness::Down) with the next batch that another one sends to it, at the latest
/// after a [`heartbeat`](bevy_due::link::PeerSettings::heartbeat), because the server answers that nobody
/// listens. One that hangs is down after [`down_after`](bevy_due::link::PeerSettings::down_after). If the
/// server goes, all processes are down until it is back, or until the client has found another one.
///
/// The end of the groups closes the link: it sends what is left for at most two seconds, and then closes
/// its connection.
///
/// # Examples
///
/// ```no_run
/// use bevy_due::{WorldGroups, prelude::*};
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
    client: Client,
    members: Arc<Members>,
    thread: ClientThread,
}

impl Engine {
    fn start(config: &NatsConfig, groups: GroupsHandle) -> Result<Self> {
        let servers = config.check()?;
        let subjects = Subjects::new(&config.cluster);
        let name = config.name.clone().unwrap_or_else(|| subjects.me.clone());
        let (tell, events) = unbounded_channel();
        let options = options(config, &name, tell);
        let thread = ClientThread::start()?;
        let client = thread.wait(connect(servers, options))?;
        let settings = fit(config.peers, client.max_payload());
        let handle = thread.handle.clone();
        let members = Members::new(groups, settings, subjects, client.clone(), handle);
        let members = Arc::new(members);
        // First, so that nobody sends before this process listens.
        let patterns = listen(client.clone(), members.subjects.clone());
        let (batches, introductions) = thread.wait(patterns)?;
        thread.handle.spawn(receive(
            batches,
            members.clone(),
            client.clone(),
            name.clone(),
        ));
        for introductions in introductions {
            let find = find(introductions, members.clone(), client.clone(), name.clone());
            thread.handle.spawn(find);
        }
        let repeat = repeat_introduction(members.clone(), client.clone(), name.clone());
        thread.handle.spawn(repeat);
        thread
            .handle
            .spawn(watch(events, members.clone(), client.clone(), name));
        Ok(Self {
            client,
            members,
            thread,
        })
    }

    fn stop(self) {
        let start = Instant::now();
        while self.members.is_sending() && start.elapsed() < CLOSE_LIMIT {
            thread::sleep(Duration::from_millis(1));
        }
        // The reply that nobody listens comes after the server has read all batches. If the connection was
        // closed before, what is on its way could be lost.
        let last = self.client.clone();
        let nobody = self.members.subjects.nobody();
        let left = CLOSE_LIMIT.saturating_sub(start.elapsed());
        let left = left.max(Duration::from_millis(1));
        let reply =
            async move { tokio::time::timeout(left, last.request(nobody, "".into())).await };
        if self.thread.wait(reply).is_err() {
            tracing::debug!("does not know whether the server has got all batches");
        }
        self.members.close();
    }
}

fn options(config: &NatsConfig, name: &str, tell: UnboundedSender<Event>) -> ConnectOptions {
    let delay = |attempt: usize| {
        let doubled = 10_u64 << attempt.min(7);
        Duration::from_millis(if attempt < 2 { 0 } else { doubled.min(1000) })
    };
    // The client gives up a server that does not answer two pings until the third is due.
    let ping = config.peers.down_after / 3;
    let options = config.options.clone().name(name).no_echo();
    options
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
async fn listen(
    client: Client,
    subjects: Subjects,
) -> Result<(Subscriber, [Subscriber; 2]), SubscribeError> {
    let batches = client.subscribe(subjects.to_me()).await?;
    let [all, me] = subjects.introductions();
    let introductions = [client.subscribe(all).await?, client.subscribe(me).await?];
    Ok((batches, introductions))
}

/// Takes batches, and the replies of the server to those that found nobody.
///
/// This runs on the thread that reads the connection. It may: `Peer::receive` takes locks that are held only
/// for moments, and puts the parcels into the inboxes of worlds, which refuse what they have no room for.
async fn receive(mut batches: Subscriber, members: Arc<Members>, client: Client, name: String) {
    while let Some(message) = batches.next().await {
        let id = sender_of(&message.subject);
        if message.status != Some(StatusCode::NO_RESPONDERS) {
            members.receive(id, &message.payload);
        } else if members.went(id) {
            // It may be back already, and the server has delivered its introduction before this.
            introduce(&client, &members.subjects, &name, id).await;
        }
    }
}

/// Finds the processes that introduce themselves.
async fn find(mut introductions: Subscriber, members: Arc<Members>, client: Client, name: String) {
    let subjects = &members.subjects;
    while let Some(message) = introductions.next().await {
        let Some((id, theirs)) = introduction(&message) else {
            continue;
        };
        if id == subjects.me {
            continue;
        }
        members.came(id, theirs);
        if message.reply.is_some() {
            let answer = client.publish(subjects.here(id), name.clone().into());
            answer.await.unwrap_or_else(closed);
        }
    }
}

/// Returns the id and the name of a process that introduces itself.
fn introduction(message: &Message) -> Option<(&str, &str)> {
    // The server replies if nobody listens.
    if message.status.is_some() || message.payload.is_empty() {
        return None;
    }
    let name = str::from_utf8(&message.payload).ok()?;
    Some((sender_of(&message.subject), name))
}

/// Tells others the name of this process, and asks for theirs.
async fn introduce(client: &Client, subjects: &Subjects, name: &str, to: &str) {
    let name = name.to_owned().into();
    let introduction = client.publish_with_reply(subjects.here(to), subjects.answer(), name);
    introduction.await.unwrap_or_else(closed);
}

/// Introduces this process again and again.
async fn repeat_introduction(members: Arc<Members>, client: Client, name: String) {
    loop {
        tokio::time::sleep(INTRODUCTION).await;
        let introduction = client.publish(members.subjects.here(ALL), name.clone().into());
        introduction.await.unwrap_or_else(closed);
    }
}

/// Follows the connection with the server.
async fn watch(
    mut events: UnboundedReceiver<Event>,
    members: Arc<Members>,
    client: Client,
    name: String,
) {
    while let Some(event) = events.recv().await {
        match event {
            // The client has listened again before it sends this.
            Event::Connected => introduce(&client, &members.subjects, &name, ALL).await,
            Event::Disconnected => {
                tracing::warn!("the connection with the NATS server is lost");
                members.disconnected();
            }
            Event::ServerError(error) => tracing::warn!("the NATS server reports: {error}"),
            Event::ClientError(error) => tracing::warn!("can't reach the NATS server: {error}"),
            event => tracing::info!("the connection with the NATS server: {event}"),
        }
    }
}

/// A publish fails when the client has ended.
fn closed(error: PublishError) {
    tracing::debug!("can't send to the other processes: {error}");
}
