//! The keys of entities, as a link to another process learns them.

use std::collections::HashSet;

use bevy_due::{Address, Link};
use bevy_ecs::error::{FallbackErrorHandler, ignore};

use super::*;

/// A link that checks how it is called.
#[derive(Clone)]
struct Recorder {
    keys: Arc<Mutex<HashSet<StableKey>>>,
    /// Whether a call is in progress.
    is_busy: Arc<Mutex<bool>>,
    receiver: ParcelReceiver,
}

impl Recorder {
    fn new(groups: &WorldGroups) -> Self {
        Self {
            keys: Arc::default(),
            is_busy: Arc::default(),
            receiver: groups.receiver(),
        }
    }

    fn note(&self, change: impl FnOnce(&mut HashSet<StableKey>) -> bool) {
        let was_busy = core::mem::replace(&mut *self.is_busy.lock().unwrap(), true);
        assert!(!was_busy, "one call at a time");
        // A link may call back, because no lock is held.
        let parcel = Parcel::new("nobody", Delivery::All, number(SAY, 0));
        self.receiver.receive(parcel).unwrap_err();
        assert!(
            change(&mut self.keys.lock().unwrap()),
            "each change once, in order"
        );
        *self.is_busy.lock().unwrap() = false;
    }
}

impl Link for Recorder {
    fn send(&self, parcel: Parcel) -> Result<(), Refused> {
        let reason = RefusalReason::UnknownKey;
        Err(Refused { parcel, reason })
    }

    fn bind(&self, address: &Address) {
        self.note(|keys| keys.insert(address.key));
    }

    fn unbind(&self, address: &Address) {
        self.note(|keys| keys.remove(&address.key));
    }
}

/// Builds a world with an entity of a key, which despawns in the first frame, and one that another
/// key replaces.
fn changing_keys(key: u64) -> impl Fn(&mut App) + Send + Sync + 'static {
    move |app| {
        app.add_plugins(DuePlugin::default()).insert_resource(NEVER);
        let world = app.world_mut();
        let goes = world.spawn(StableKey(key)).id();
        let changes = world.spawn(StableKey(key + 1)).id();
        app.add_systems(Startup, move |mut commands: Commands| {
            commands.entity(goes).despawn();
            commands.entity(changes).insert(StableKey(key + 2));
        });
    }
}

#[test]
fn a_link_learns_each_change_of_a_key_once_and_in_order() {
    check(|| {
        let mut groups = WorldGroups::new();
        let mut app = app(DuePlugin::default());
        app.world_mut().spawn(StableKey(1));
        groups.join("worlds", &mut app);
        let early = Recorder::new(&groups);
        groups.join_remote("others", early.clone());
        groups.start("worlds", 1, changing_keys(10)).unwrap();
        groups.start("worlds", 1, changing_keys(20)).unwrap();
        let late = Recorder::new(&groups);
        groups.join_remote("others", late.clone());
        groups.stop();
        for link in [early, late] {
            let keys = link.keys.lock().unwrap();
            assert_eq!(*keys, [StableKey(1)].into(), "the app is still there");
        }
        drop(app);
    });
}

#[test]
fn a_key_goes_back_to_the_world_that_stays() {
    check(|| {
        let log = Log::new();
        let mut groups = WorldGroups::new();
        start_worlds(&mut groups, 1, &log);
        let logged = log.clone();
        // Takes the key 0, and ends on the packet `EXIT`.
        let build = move |app: &mut App| {
            let log = logged.clone();
            let ears = MessageComponent::new()
                .on_packet(SAY, move |_: MessageContext, said: &Packet| {
                    log.push((1, read(said)));
                })
                .on_packet(EXIT, |mut me: MessageContext, _: &Packet| {
                    me.commands.write_message(AppExit::Success);
                });
            app.add_plugins(DuePlugin::default()).insert_resource(NEVER);
            // The warning about the shared key.
            app.insert_resource(FallbackErrorHandler(ignore));
            app.world_mut().spawn((StableKey(0), ears));
        };
        groups.start("worlds", 1, build).unwrap();
        let poster = post_on_thread(&groups, StableKey(0).into(), 0..3);
        let exit = Parcel::new("worlds", StableKey(0), number(EXIT, 0));
        groups.post(exit).unwrap();
        let mut reports = Vec::new();
        while reports.is_empty() {
            reports = groups.ended();
            thread::yield_now();
        }
        assert_eq!(reports[0].nth, 1);
        groups.post(say(StableKey(0), 9)).unwrap();
        let mut accepted = poster.join().unwrap();
        accepted.push(9);
        reports.extend(groups.stop());
        let log = log.take();
        assert!(log.contains(&(0, 9)), "{log:?}");
        let delivered = log.into_iter().map(|entry| entry.1);
        let arrived = sorted(delivered.chain(undelivered(&reports)));
        assert_eq!(arrived, sorted(accepted));
    });
}
