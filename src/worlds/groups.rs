//! Groups of worlds on threads.

use alloc::{borrow::Cow, boxed::Box, sync::Arc, vec::Vec};
use core::{fmt, panic::AssertUnwindSafe, time::Duration};
use std::{
    panic::{catch_unwind, resume_unwind},
    thread,
};

use bevy_app::App;
use bevy_ecs::{error::Result, resource::Resource};
use bevy_platform::cell::SyncCell;

use super::{
    handle::{Groups, GroupsHandle},
    link::{FromPeer, Link},
    parcel::{Parcel, Refused},
    world_thread::{StartError, WorldReport, WorldThread},
};

/// Runs worlds in named groups (`"logic"`, `"database"`, ..), each on its own thread.
///
/// Each world is a headless [`App`] with its own entities, timers, clocks and loop. Worlds share
/// nothing. They send each other [`Parcel`]s: to all worlds of a group, to exactly one world in
/// turn, or to the world that has the entity with a [`StableKey`](crate::worlds::StableKey). A sender knows
/// a group and a key, but not the thread. With a [link](crate::worlds::link), worlds in other processes are
/// members, too.
///
/// A world runs a frame when a message arrives, and otherwise once per
/// [`LoopInterval`](crate::worlds::LoopInterval). With [`LoopInterval::WhenDue`](crate::worlds::LoopInterval::WhenDue),
/// it sleeps while nothing is due. The systems of its main and fixed schedules run one after the other
/// on its own thread. They may block without holding up other worlds. To run a schedule on the threads
/// of the process instead, give it Bevy's
/// [`MultiThreadedExecutor`](bevy_ecs::schedule::MultiThreadedExecutor). A schedule that gets its first system after the
/// world was built has Bevy's default executor.
///
/// # The end
///
/// Worlds are [stopped](Self::stop) in the reverse order of their start. Each delivers the messages
/// sent to it before it ends. A world that writes an [`AppExit`](bevy_app::AppExit) ends in the
/// same way. A world that panics also ends, and the others continue. [`ended`](Self::ended) returns
/// the reports of worlds that ended in either way. Dropping the groups stops all worlds.
///
/// Both stopping and dropping wait until the worlds have ended, without a time limit. A system or
/// callback that blocks delays them, and one that never returns delays them forever.
/// [`stop_within`](Self::stop_within) leaves such a world behind. Call it before the groups are
/// dropped. A panic that drops the groups also waits.
///
/// # Time
///
/// Each world has its own time. With `TimeUpdateStrategy::ManualDuration`, a world on a thread also
/// advances by a step for every frame that an arrival causes. To test several worlds in lockstep,
/// [add](Self::add) apps and update them one after the other.
///
/// # Examples
///
/// ```
/// use std::sync::mpsc;
/// use bevy_app::prelude::*;
/// use bevy_due::{
///     Timer,
///     message::{Delivery, Packet},
///     prelude::*,
///     worlds::{Parcel, ParcelEntityCommandsExt, StableKey, WorldGroups},
/// };
/// use bevy_ecs::prelude::*;
///
/// const DOUBLE: u32 = 1;
/// const DOUBLED: u32 = 2;
///
/// /// A world that replies to requests.
/// fn calculator(app: &mut App) {
///     app.add_plugins(DuePlugin::default());
///     app.world_mut().spawn(MessageComponent::new().on_packet(
///         DOUBLE,
///         |mut me, packet: &Packet| -> Result {
///             let doubled: Vec<u8> = packet.payload().iter().map(|n| 2 * n).collect();
///             Ok(me.reply(Packet::new(DOUBLED, doubled))?)
///         },
///     ));
/// }
///
/// # fn main() -> Result<(), bevy_due::worlds::StartError> {
/// let (replies, replied) = mpsc::channel();
/// let mut groups = WorldGroups::new();
/// groups.start("calculators", 2, calculator)?;
/// groups.start("customers", 1, move |app| {
///     let replies = replies.clone();
///     app.add_plugins(DuePlugin::default());
///     let customer = MessageComponent::new().on_packet(DOUBLED, move |_, packet: &Packet| {
///         replies.send(packet.payload().to_vec()).ok();
///     });
///     app.world_mut().spawn((StableKey(1), customer));
///     app.add_systems(Startup, |customer: Single<Entity, With<StableKey>>, mut commands: Commands| {
///         let request = Parcel::new("calculators", Delivery::InTurn, Packet::new(DOUBLE, [21]));
///         commands.entity(*customer).ask_world(request, Timer::after(5.0));
///     });
/// })?;
/// assert_eq!(replied.recv().unwrap(), [42]);
///
/// for world in groups.stop() {
///     assert!(world.panic.is_none() && world.undelivered.is_empty());
/// }
/// # Ok(())
/// # }
/// ```
#[doc(alias("WorldGroup", "threads", "actors", "services"))]
#[derive(Resource)]
pub struct WorldGroups {
    groups: Arc<Groups>,
    /// In the order of joining.
    links: SyncCell<Vec<Box<dyn Link>>>,
}

impl Default for WorldGroups {
    fn default() -> Self {
        Self {
            groups: Arc::default(),
            links: SyncCell::new(Vec::new()),
        }
    }
}

impl WorldGroups {
    /// Creates a value without groups or worlds.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds worlds to a group: starts them one after the other, and waits until each is built.
    ///
    /// `build` must add a [`DuePlugin`](crate::DuePlugin). `start` adds a missing
    /// [`TimePlugin`](bevy_time::TimePlugin) after `build`. Code that needs `Time` belongs in a
    /// `Startup` system, unless `build` adds that plugin first.
    ///
    /// This waits for `build` without a time limit. Work that may block belongs in a `Startup`
    /// system, where it delays only its own world.
    ///
    /// # Errors
    ///
    /// Returns [`StartError`] if no thread can be created, if `build` panics, or if it adds no
    /// `DuePlugin`. Worlds that were started before keep running.
    pub fn start(
        &mut self,
        group: impl Into<Cow<'static, str>>,
        worlds: usize,
        build: impl Fn(&mut App) + Send + Sync + 'static,
    ) -> Result<(), StartError> {
        self.groups.start(group.into(), worlds, build)
    }

    /// Makes the world of an app a member of a group, for example the world with the window.
    ///
    /// You still run the app, which needs a [`DuePlugin`](crate::DuePlugin). It leaves the group
    /// when it is dropped. If it already has a [`WorldLink`](crate::worlds::WorldLink), it leaves the group
    /// of that link now.
    pub fn add(&self, group: impl Into<Cow<'static, str>>, app: &mut App) {
        self.groups.add(group.into(), app);
    }

    /// Joins the groups of other processes.
    ///
    /// The link finds those processes from now on. Their worlds are members of the groups with the same
    /// names here, as far as [`permit`](Self::permit) allows.
    ///
    /// # Errors
    ///
    /// Returns the error of the link if it does not open.
    pub fn join(&mut self, link: impl Link) -> Result {
        let mut link = Box::new(link);
        link.open(self.handle())?;
        self.links.get().push(link);
        Ok(())
    }

    /// Sets which parcels, keys and worlds of other processes are taken. The function gets the name of the
    /// process. Without it, all are taken. Call this before [`join`](Self::join): what was taken before
    /// stays.
    ///
    /// The function decides about replies, too. It can permit them all, because only a process that was
    /// asked can know the request.
    ///
    /// # Examples
    ///
    /// Game servers may send to "chat", but only this process runs "accounts":
    ///
    /// ```
    /// use bevy_due::worlds::{WorldGroups, link::FromPeer};
    ///
    /// let groups = WorldGroups::new();
    /// groups.permit(|_, what| match what {
    ///     FromPeer::Parcel(parcel) => parcel.group == "chat" || parcel.is_reply(),
    ///     FromPeer::Key(address) => address.group != "accounts",
    ///     FromPeer::Worlds(group) => group != "accounts",
    ///     _ => false,
    /// });
    /// ```
    pub fn permit(&self, permits: impl Fn(&str, FromPeer) -> bool + Send + Sync + 'static) {
        self.groups.hub.set_filter(Arc::new(permits));
    }

    /// Returns a handle to the groups, for other threads.
    #[must_use]
    pub fn handle(&self) -> GroupsHandle {
        GroupsHandle::new(&self.groups)
    }

    /// Sends a parcel from outside all worlds.
    ///
    /// If another process refuses the parcel later, this process does not learn of it. Post from a world to learn of it.
    ///
    /// # Errors
    ///
    /// Returns [`Refused`] with the parcel if it can't be sent.
    pub fn post(&self, parcel: Parcel) -> Result<(), Refused> {
        self.groups.hub.post(parcel)
    }

    /// Returns the number of worlds of a group, here and in other processes that are
    /// [up](crate::worlds::link::Liveness::Up).
    #[must_use]
    pub fn running(&self, group: &str) -> usize {
        self.groups.hub.running(group)
    }

    /// Returns the reports of the worlds that have ended by themselves since the last call.
    pub fn ended(&mut self) -> Vec<WorldReport> {
        let ended = self.groups.take(WorldThread::has_ended);
        ended.into_iter().map(WorldThread::stop).collect()
    }

    /// Stops the worlds of a group, the last started first, and returns their reports.
    ///
    /// Like [`stop`](Self::stop), this waits for each of these worlds, without a time limit.
    pub fn stop_group(&mut self, group: &str) -> Vec<WorldReport> {
        let of_group = self.take_group(group);
        of_group.into_iter().rev().map(WorldThread::stop).collect()
    }

    /// Stops the worlds of a group as [`stop_within`](Self::stop_within) does, and returns their
    /// reports.
    pub fn stop_group_within(&mut self, group: &str, limit: Duration) -> Vec<WorldReport> {
        let of_group = self.take_group(group).into_iter().rev();
        of_group.map(|world| world.stop_within(limit)).collect()
    }

    fn take_group(&mut self, group: &str) -> Vec<WorldThread> {
        self.groups.take(|world| world.group == group)
    }

    /// Stops all worlds, the last started first, and returns their reports in that order.
    ///
    /// Each world first delivers the messages sent to it. If it then sends a parcel to a stopped
    /// world, the parcel is refused.
    ///
    /// This waits for every world, without a time limit. A system or callback that blocks delays
    /// the stop, and one that never returns delays it forever. To bound the wait, use
    /// [`stop_within`](Self::stop_within).
    pub fn stop(mut self) -> Vec<WorldReport> {
        self.stop_all(WorldThread::stop)
    }

    /// Stops all worlds like [`stop`](Self::stop), but waits for each at most `limit`.
    ///
    /// A world that has not ended by then is left behind:
    /// [`is_left_behind`](WorldReport::is_left_behind) in its report is `true`. It leaves its group,
    /// and its thread continues until it returns or the process ends.
    ///
    /// # Examples
    ///
    /// ```
    /// use core::time::Duration;
    /// use bevy_due::{prelude::*, worlds::WorldGroups};
    ///
    /// let mut groups = WorldGroups::new();
    /// groups.start("logic", 2, |app| _ = app.add_plugins(DuePlugin::default()))?;
    /// let reports = groups.stop_within(Duration::from_secs(10));
    /// for world in reports.iter().filter(|world| world.is_left_behind) {
    ///     eprintln!("world {} of {:?} hangs", world.nth, world.group);
    /// }
    /// assert_eq!(reports.len(), 2);
    /// # Ok::<(), bevy_due::worlds::StartError>(())
    /// ```
    pub fn stop_within(mut self, limit: Duration) -> Vec<WorldReport> {
        self.stop_all(|world| world.stop_within(limit))
    }

    fn stop_all(&mut self, stop: impl Fn(WorldThread) -> WorldReport) -> Vec<WorldReport> {
        self.groups.close();
        let mut reports = Vec::new();
        while let Some(world) = self.groups.take_last() {
            reports.push(stop(world));
        }
        self.groups.hub.close();
        let mut panicked = None;
        for mut link in self.links.get().drain(..).rev() {
            let closed = catch_unwind(AssertUnwindSafe(|| link.close()));
            panicked = panicked.or(closed.err());
        }
        if let Some(panic) = panicked
            && !thread::panicking()
        {
            resume_unwind(panic);
        }
        reports
    }
}

impl Drop for WorldGroups {
    fn drop(&mut self) {
        self.stop_all(WorldThread::stop);
    }
}

impl fmt::Debug for WorldGroups {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WorldGroups").finish_non_exhaustive()
    }
}
