//! Wires between groups, as if they were in different processes, and what can go wrong on them.

use bevy_due::worlds::link::{Peer, PeerSettings};

use super::super::*;

/// Settings for tests: what takes seconds in a game takes a fraction of one.
pub(super) const QUICK: PeerSettings = PeerSettings {
    queue_bytes: 16 << 20,
    parcel_bytes: 1 << 20,
    window_bytes: 1 << 20,
    batch_bytes: 32 << 10,
    heartbeat: Duration::from_millis(10),
    suspect_after: Duration::from_secs(3600),
    down_after: Duration::from_secs(3600),
};

/// What happens to a batch on the wire: it arrives this often.
type Carry = Box<dyn FnMut(&mut Vec<u8>) -> usize + Send>;

/// One direction of a wire.
#[derive(Clone)]
pub(super) struct Way(Arc<Mutex<Carry>>);

/// A wire between two groups. Dropping it cuts it, and both ends notice.
pub(super) struct Wire {
    pub(super) ends: [Arc<Peer>; 2],
    /// The way from the first end to the second, and the way back.
    pub(super) ways: [Way; 2],
    threads: Vec<thread::JoinHandle<()>>,
}

impl Way {
    fn new() -> Self {
        Self(Arc::new(Mutex::new(Box::new(|_| 1))))
    }

    /// Changes what happens to the batches from now on.
    pub(super) fn set(&self, carry: impl FnMut(&mut Vec<u8>) -> usize + Send + 'static) {
        *self.0.lock().unwrap() = Box::new(carry);
    }

    /// Holds all batches until the guard is dropped.
    pub(super) fn hold(&self) -> impl Drop {
        self.0.lock().unwrap()
    }
}

impl Wire {
    /// Connects two groups under the names "a" and "b", and waits until both know it.
    pub(super) fn connect(a: &WorldGroups, b: &WorldGroups) -> Self {
        Self::with([a, b], ["a", "b"], QUICK)
    }

    pub(super) fn with(
        [a, b]: [&WorldGroups; 2],
        [name_a, name_b]: [&'static str; 2],
        settings: PeerSettings,
    ) -> Self {
        let ends = [
            a.handle().connect(name_b, settings),
            b.handle().connect(name_a, settings),
        ];
        let ends = ends.map(Arc::new);
        let ways = [Way::new(), Way::new()];
        let [one, other] = &ends;
        let carry = |from: &Arc<Peer>, to: &Arc<Peer>, way: &Way| {
            let (from, to, Way(way)) = (from.clone(), to.clone(), way.clone());
            thread::spawn(move || {
                while let Some(mut batch) = from.next_batch() {
                    let times = (way.lock().unwrap())(&mut batch);
                    for _ in 0..times {
                        to.receive(&batch).ok();
                    }
                }
            })
        };
        let threads = vec![carry(one, other, &ways[0]), carry(other, one, &ways[1])];
        Self {
            ends,
            ways,
            threads,
        }
    }
}

impl Drop for Wire {
    fn drop(&mut self) {
        for end in &self.ends {
            end.close();
        }
        for thread in self.threads.drain(..) {
            thread.join().ok();
        }
        for end in &self.ends {
            end.disconnected();
        }
    }
}

/// Waits until this many worlds of a group run, as far as `groups` knows.
pub(super) fn wait_for_worlds(groups: &WorldGroups, group: &str, worlds: usize) {
    let what = format!("{worlds} worlds of {group:?}");
    wait_until(|| groups.running(group) == worlds, &what);
}

/// Waits until a parcel to a key is taken.
pub(super) fn wait_for_key(groups: &WorldGroups, group: &'static str, key: u64) {
    let ping = || groups.post(Parcel::new(group, StableKey(key), number(WAIT, 0)));
    wait_until(|| ping().is_ok(), "the key is known");
}

/// A world in a group, as an app that the test runs.
pub(super) fn member(groups: &WorldGroups, group: &'static str) -> App {
    let mut app = App::new();
    app.add_plugins((TimePlugin, DuePlugin::default()));
    groups.add(group, &mut app);
    app
}

/// Messages of one type that a world has received.
#[derive(Resource)]
struct Received<M>(Vec<M>);

/// Records the messages of one type in a world.
pub(super) fn record<M: Message + Clone>(app: &mut App) {
    app.insert_resource(Received::<M>(Vec::new()));
    app.world_mut().spawn(
        MessageComponent::new().on(|mut me: MessageContext, message: &M| {
            let message = message.clone();
            let note = move |world: &mut World| world.resource_mut::<Received<M>>().0.push(message);
            me.commands.queue(note);
        }),
    );
    app.update();
}

/// Runs a frame of a world, and returns the messages that it has received.
pub(super) fn received<M: Message + Clone>(app: &mut App) -> Vec<M> {
    app.update();
    core::mem::take(&mut app.world_mut().resource_mut::<Received<M>>().0)
}

/// Runs a world until it has received a message, and returns all that it has received.
pub(super) fn receive<M: Message + Clone>(app: &mut App) -> Vec<M> {
    let mut all = Vec::new();
    wait_until(
        || {
            all = received(app);
            !all.is_empty()
        },
        "a message",
    );
    all
}
