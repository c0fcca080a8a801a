//! A process of the cluster.

use core::time::Duration;

use bevy_app::prelude::*;
use bevy_due::{
    DuePlugin,
    worlds::{StableKey, WorldGroups},
};
use bevy_time::{TimePlugin, TimeUpdateStrategy};

pub(crate) const GROUP: &str = "zones";
pub(crate) const FRAME: Duration = Duration::from_millis(16);

/// A process of the cluster, with one world.
pub(crate) struct Process {
    pub(crate) groups: WorldGroups,
    pub(crate) app: App,
}

impl Process {
    /// Starts a process whose entities have `count` keys from `first` on.
    pub(crate) fn with_keys(first: u64, count: u64) -> Self {
        Self::start(|app| {
            let keys = (first..first + count).map(StableKey);
            app.world_mut().spawn_batch(keys);
        })
    }

    /// Starts a process with a world.
    pub(crate) fn start(build: impl FnOnce(&mut App)) -> Self {
        let groups = WorldGroups::new();
        let mut app = App::new();
        app.add_plugins((TimePlugin, DuePlugin::default()))
            .insert_resource(TimeUpdateStrategy::ManualDuration(FRAME));
        build(&mut app);
        groups.add(GROUP, &mut app);
        app.update();
        Self { groups, app }
    }
}
