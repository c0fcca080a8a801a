//! The keys of entities, as another process learns them.

use bevy_due::worlds::link::{Peer, PeerSettings};
use bevy_ecs::error::{FallbackErrorHandler, ignore};

use super::*;

/// A wire between two groups. Its threads end when both ends are closed.
struct Wire([Arc<Peer>; 2]);

impl Wire {
    fn connect(a: &WorldGroups, b: &WorldGroups) -> Self {
        let settings = PeerSettings {
            suspect_after: Duration::MAX,
            down_after: Duration::MAX,
            ..PeerSettings::default()
        };
        let ends = [(a, "b"), (b, "a")];
        let ends = ends.map(|(groups, name)| Arc::new(groups.handle().connect(name, settings)));
        let [one, other] = &ends;
        for (from, to) in [(one, other), (other, one)] {
            let (from, to) = (from.clone(), to.clone());
            thread::spawn(move || {
                while let Some(batch) = from.next_batch() {
                    to.receive(&batch).ok();
                }
            });
        }
        Self(ends)
    }
}

impl Drop for Wire {
    fn drop(&mut self) {
        for end in &self.0 {
            end.close();
        }
    }
}

/// Waits until a group knows a key, or no longer knows it.
fn wait_for_key(groups: &WorldGroups, key: u64, is_known: bool) {
    while groups.post(say(StableKey(key), 0)).is_ok() != is_known {
        thread::yield_now();
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
fn another_process_learns_the_keys_here() {
    check(|| {
        let mut groups = WorldGroups::new();
        let mut app = app(DuePlugin::default());
        app.world_mut().spawn(StableKey(1));
        groups.add("worlds", &mut app);
        let other = WorldGroups::new();
        let _wire = Wire::connect(&groups, &other);
        groups.start("worlds", 1, changing_keys(10)).unwrap();
        for (key, is_known) in [(1, true), (12, true), (10, false), (11, false)] {
            wait_for_key(&other, key, is_known);
        }
        groups.stop_group("worlds");
        for (key, is_known) in [(12, false), (1, true)] {
            wait_for_key(&other, key, is_known);
        }
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
