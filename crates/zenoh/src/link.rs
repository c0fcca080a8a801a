//! The link.

use core::{fmt, time::Duration};
use std::{
    sync::{Arc, mpsc},
    thread,
    time::Instant,
};

use bevy_due::worlds::{GroupsHandle, link::Link};
use bevy_due_peers::Peers;
use bevy_ecs::error::Result;
use zenoh::{
    Session, Wait,
    liveliness::LivelinessToken,
    pubsub::Subscriber,
    qos::CongestionControl,
    query::{Query, QueryTarget, Queryable},
    sample::{Sample, SampleKind},
};

use crate::{
    config::ZenohConfig,
    keys::{Keys, id_and_name, last},
    send::send,
};

/// How long a link that closes sends what is left, and how long it then waits for the engine.
const CLOSE_LIMIT: Duration = Duration::from_secs(2);

/// Joins the groups of worlds in all processes with the same [`cluster`](ZenohConfig::cluster). Pass it to
/// [`WorldGroups::join`](bevy_due::worlds::WorldGroups::join).
///
/// `join` returns an error if a setting can't be used, or if an address to listen at is taken. It does not
/// wait for other processes.
///
/// The processes find each other, and each connects to all others. There is no broker, and no multicast
/// unless you turn it on. A process that dies is [down](bevy_due::worlds::link::Liveness::Down) within
/// milliseconds, and one that hangs after [`down_after`](bevy_due::worlds::link::PeerSettings::down_after).
///
/// The end of the groups closes the link: it sends what is left for at most two seconds, and then closes
/// its connections.
///
/// # Examples
///
/// ```
/// use bevy_due::{prelude::*, worlds::WorldGroups};
/// use bevy_due_zenoh::{ZenohConfig, zenoh_link};
/// # use std::{net::TcpListener, thread};
///
/// # fn main() -> bevy_ecs::error::Result {
/// # let port = TcpListener::bind("127.0.0.1:0")?.local_addr()?.port();
/// # let address = format!("127.0.0.1:{port}");
/// // One process listens at a known address.
/// let mut chat = WorldGroups::new();
/// chat.start("chat", 1, |app| _ = app.add_plugins(DuePlugin::default()))?;
/// chat.join(zenoh_link(ZenohConfig {
///     listen: vec![address.clone()],
///     ..ZenohConfig::default()
/// }))?;
///
/// // Another, here in the same one, knows it.
/// let mut game = WorldGroups::new();
/// game.join(zenoh_link(ZenohConfig {
///     members: vec![address],
///     ..ZenohConfig::default()
/// }))?;
/// while game.running("chat") == 0 {
///     thread::yield_now();
/// }
/// # Ok(())
/// # }
/// ```
pub fn zenoh_link(config: ZenohConfig) -> impl Link {
    ZenohLink {
        config,
        engine: None,
    }
}

struct ZenohLink {
    config: ZenohConfig,
    engine: Option<Engine>,
}

/// The engine, while it runs.
struct Engine {
    session: Session,
    peers: Arc<Peers<Session>>,
    keys: Arc<Keys>,
    _declared: Declared,
}

/// What ends when it is dropped.
struct Declared {
    _batches: Subscriber<()>,
    _arrived: Queryable<()>,
    _token: LivelinessToken,
    _alive: Subscriber<()>,
}

impl Link for ZenohLink {
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

impl Engine {
    fn start(config: &ZenohConfig, groups: GroupsHandle) -> Result<Self> {
        let open = zenoh::open(config.to_zenoh()?).wait();
        let session = open.map_err(|error| CantOpen {
            listen: config.listen.clone(),
            error,
        })?;
        let keys = Arc::new(Keys::new(&config.cluster, session.zid()));
        let peers = Arc::new(Peers::new(groups, config.peers, session.clone()));
        let declared = declare(config, &session, &keys, &peers);
        let declared = declared.inspect_err(|_| peers.close())?;
        Ok(Self {
            session,
            peers,
            keys,
            _declared: declared,
        })
    }

    fn stop(self) {
        let start = Instant::now();
        while self.peers.is_sending() && start.elapsed() < CLOSE_LIMIT {
            thread::sleep(Duration::from_millis(1));
        }
        if let Err(error) = self.wait_for_arrival(CLOSE_LIMIT.saturating_sub(start.elapsed())) {
            tracing::debug!("does not know whether all has arrived: {error}");
        }
        self.peers.close();
        // The engine waits for a put that a process which hangs holds up.
        let (close, closed) = mpsc::channel::<()>();
        thread::spawn(move || {
            if let Err(error) = self.session.close().wait() {
                tracing::debug!("zenoh did not close: {error}");
            }
            drop(self);
            drop(close);
        });
        closed.recv_timeout(CLOSE_LIMIT).ok();
    }

    /// Waits until the other processes have received all batches. When a session closes, zenoh may drop
    /// what is on its way.
    fn wait_for_arrival(&self, limit: Duration) -> zenoh::Result<()> {
        let query = self.session.get(self.keys.all_arrived());
        // A query does not overtake batches of the same priority.
        let query = query
            .target(QueryTarget::All)
            .congestion_control(CongestionControl::Block);
        let replies = query.timeout(limit.max(Duration::from_millis(1))).wait()?;
        replies.iter().for_each(drop);
        Ok(())
    }
}

/// Lets this process be found, and finds the others.
fn declare(
    config: &ZenohConfig,
    session: &Session,
    keys: &Arc<Keys>,
    peers: &Arc<Peers<Session>>,
) -> zenoh::Result<Declared> {
    let receiver = peers.clone();
    // This runs on a thread of the engine that reads connections. It may: `Peer::receive` takes locks that
    // are held only for moments, and puts the parcels into the inboxes of worlds, which refuse what they
    // have no room for. A thread in between makes a round trip longer, and has nothing to wait for.
    let take = move |sample: Sample| {
        let from = last(sample.key_expr().as_str());
        receiver.receive(from, &sample.payload().to_bytes());
    };
    let batches = session.declare_subscriber(keys.to_me());
    // First, so that nobody sends before this process listens.
    let batches = batches.callback(take).wait()?;
    let key = keys.arrived();
    let arrived = session.declare_queryable(key.clone());
    let reply = move |query: Query| _ = query.reply(key.as_str(), []).wait();
    let arrived = arrived.callback(reply).wait()?;
    let name = config.name.as_ref().unwrap_or(&keys.me);
    let token = session
        .liveliness()
        .declare_token(keys.alive(name))
        .wait()?;
    let (finder, own) = (peers.clone(), keys.clone());
    let note = move |sample: Sample| {
        let Some((id, name)) = id_and_name(sample.key_expr().as_str()) else {
            return;
        };
        if id == own.me {
            return;
        }
        match sample.kind() {
            SampleKind::Put => {
                let key = own.to(id);
                finder.came(id, name, move |session, peer| {
                    if let Err(error) = send(session, key, peer) {
                        tracing::debug!("no longer sends to {peer}: {error}");
                    }
                });
            }
            SampleKind::Delete => _ = finder.went(id),
        }
    };
    let alive = session.liveliness().declare_subscriber(keys.all_alive());
    let alive = alive.history(true).callback(note).wait()?;
    Ok(Declared {
        _batches: batches,
        _arrived: arrived,
        _token: token,
        _alive: alive,
    })
}

/// The engine does not start.
#[derive(Debug)]
struct CantOpen {
    listen: Vec<String>,
    error: zenoh::Error,
}

impl fmt::Display for CantOpen {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { listen, error } = self;
        let error = without_places(&error.to_string());
        write!(
            f,
            "can't listen at {listen:?}: {error}: choose addresses of this machine that no other process \
             uses"
        )
    }
}

impl core::error::Error for CantOpen {}

/// Removes the lines of source code from an error of zenoh, such as " at /src/tcp.rs:61.".
fn without_places(error: &str) -> String {
    let mut parts = error.split(" at ");
    let mut text = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        match part.split_once(".rs:") {
            Some((path, line)) if !path.contains(' ') => {
                let is_line = |it: char| it.is_ascii_digit() || it == '.';
                text += line.trim_start_matches(is_line);
            }
            _ => text = text + " at " + part,
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_has_no_lines_of_source_code() {
        let error = "not at home: [in use at /a/b.rs:61.] at /a/c-1.2/d.rs:338.";
        assert_eq!(without_places(error), "not at home: [in use]");
    }
}
