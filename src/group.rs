//! Groups of worlds, each on a thread of its own.

mod hub;
mod world_thread;

use alloc::{borrow::Cow, string::String, sync::Arc, vec::Vec};
use core::{fmt, time::Duration};
use std::{collections::HashMap, io};

use bevy_app::{App, AppExit};
use bevy_ecs::resource::Resource;

use crate::message::{Letter, Link, Parcel, Refused};
use hub::{Among, Hub};
use world_thread::WorldThread;

/// Worlds on threads of their own, in groups that have a name: `"logic"`, `"database"`, ..
///
/// Each world is a headless [`App`] with its own entities, timers, clocks and loop. They share
/// nothing; what they have to say to each other they send as [`Parcel`]s: to all worlds of a group,
/// to exactly one of them in turn, or to the one that has an entity of that
/// [`StableKey`](crate::StableKey). Who sends knows a group and a key, not a thread: a world in
/// another process can be a member just as well, with a [`Link`](crate::Link) of its own.
///
/// A world runs when something arrives for it, and otherwise as often as its [`LoopInterval`] says.
/// It has a [`TimePlugin`](bevy_time::TimePlugin) and a [`DuePlugin`](crate::DuePlugin), unless it
/// was given others. The systems of its main and fixed schedules run one after the other on its own
/// thread, so it may wait in one without holding up other worlds; give a schedule of it Bevy's
/// [`MultiThreadedExecutor`](bevy_ecs::schedule::MultiThreadedExecutor) where it should share the
/// threads of the process instead.
///
/// # The end
///
/// Worlds are [stopped](Self::stop) in the reverse order of their start, each after it has delivered
/// what was sent to it. One that sends itself an [`AppExit`] ends in the same way. One that panics
/// ends, too: the others go on, nothing is sent to it any more, and [`ended`](Self::ended) tells of
/// it. Dropping this stops all worlds.
///
/// # Time
///
/// Each world has its own. With `TimeUpdateStrategy::ManualDuration` one that is started here goes on
/// by a step for every arrival, too. To test several in step, [join](Self::join) apps, and update one
/// after the other.
///
/// # Examples
///
/// ```
/// use std::sync::mpsc;
/// use bevy_app::prelude::*;
/// use bevy_due::{Parcel, StableKey, Timer, WorldGroups, prelude::*};
/// use bevy_ecs::prelude::*;
///
/// const DOUBLE: u32 = 1;
/// const DOUBLED: u32 = 2;
///
/// /// A world that answers questions.
/// fn calculator(app: &mut App) {
///     app.world_mut().spawn(MessageComponent::new().on_packet(
///         DOUBLE,
///         |mut me: MessageContext, packet: &Packet| -> Result {
///             let doubled: Vec<u8> = packet.payload().iter().map(|n| 2 * n).collect();
///             Ok(me.reply(Packet::new(DOUBLED, doubled))?)
///         },
///     ));
/// }
///
/// # fn main() -> Result<(), bevy_due::StartError> {
/// let (answers, answered) = mpsc::channel();
/// let mut groups = WorldGroups::new();
/// groups.start("calculators", 2, calculator)?;
/// groups.start("customers", 1, move |app| {
///     let answers = answers.clone();
///     let customer = MessageComponent::new().on_packet(DOUBLED, move |_: MessageContext, packet: &Packet| {
///         answers.send(packet.payload().to_vec()).ok();
///     });
///     app.world_mut().spawn((StableKey(1), customer));
///     app.add_systems(Startup, |customer: Single<Entity, With<StableKey>>, mut commands: Commands| {
///         let question = Parcel::new("calculators", Delivery::InTurn, Packet::new(DOUBLE, [21]));
///         commands.entity(*customer).ask_world(question, Timer::after_secs(5.0));
///     });
/// })?;
/// assert_eq!(answered.recv().unwrap(), [42]);
///
/// for world in groups.stop() {
///     assert!(world.panic.is_none() && world.undelivered.is_empty());
/// }
/// # Ok(())
/// # }
/// ```
#[doc(alias("WorldGroup", "threads", "actors", "services"))]
#[derive(Resource, Debug, Default)]
pub struct WorldGroups {
    hub: Arc<Hub>,
    /// In the order of their start.
    threads: Vec<WorldThread>,
    /// How many of each group there have been.
    started: HashMap<Cow<'static, str>, usize>,
}

/// Takes what comes from other processes for the worlds of [`WorldGroups`]. A clone does the same.
#[derive(Clone, Debug)]
pub struct ParcelReceiver(Arc<Hub>);

impl ParcelReceiver {
    /// Gives a parcel to those of its group that are here. It does not wait for anything.
    ///
    /// # Errors
    ///
    /// [`Refused`] with the parcel, if they do not take it.
    pub fn receive(&self, parcel: Parcel) -> Result<(), Refused> {
        self.0.send(parcel, Among::Here)
    }
}

/// How often a world of [`WorldGroups`] runs when nothing arrives for it from other threads; sixty
/// times a second unless set otherwise.
///
/// Timers that are due, and what is sent within the world, wait for its next frame. With more than
/// 250 ms set `Time::<Virtual>::max_delta` higher, too, or the time of the game falls behind.
#[derive(Resource, Clone, Copy, Debug, PartialEq, Eq)]
pub struct LoopInterval(pub Duration);

impl Default for LoopInterval {
    fn default() -> Self {
        Self(Duration::from_secs(1) / 60)
    }
}

/// What has become of a world of [`WorldGroups`].
#[derive(Debug)]
#[non_exhaustive]
pub struct WorldReport {
    /// The group to which it belonged.
    pub group: Cow<'static, str>,
    /// Which one of the group it was, from zero on. No other has the same number, whoever has
    /// ended meanwhile.
    pub nth: usize,
    /// With what it ended by itself, if it did.
    pub exit: Option<AppExit>,
    /// What it said when it panicked, if it did.
    pub panic: Option<String>,
    /// What was sent to it, or in it, and has not been delivered. Neither what found nobody who
    /// follows it, nor questions that it has taken and not answered: who asked is told by its own
    /// timer.
    pub undelivered: Vec<Letter>,
}

/// A world that could not be started.
#[derive(Debug)]
#[non_exhaustive]
pub enum StartError {
    /// The system has no thread for it.
    NoThread(io::Error),
    /// What was to build it panicked. This is what it said.
    Panicked(String),
}

impl fmt::Display for StartError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoThread(error) => write!(f, "there is no thread for the world: {error}"),
            Self::Panicked(message) => write!(f, "building the world panicked: {message}"),
        }
    }
}

impl core::error::Error for StartError {
    fn source(&self) -> Option<&(dyn core::error::Error + 'static)> {
        match self {
            Self::NoThread(error) => Some(error),
            Self::Panicked(_) => None,
        }
    }
}

impl WorldGroups {
    /// Creates groups without worlds.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Starts so many worlds of a group, one after the other, and waits until each is built. They
    /// are added to those that are there.
    ///
    /// The plugins that a world has in any case are added after `build`. What needs `Time` or a clock
    /// belongs into its `Startup`, or `build` adds them first.
    ///
    /// # Errors
    ///
    /// [`StartError`] if there is no thread for one, or `build` panics. Those that have been started
    /// before it stay.
    pub fn start(
        &mut self,
        group: impl Into<Cow<'static, str>>,
        worlds: usize,
        build: impl Fn(&mut App) + Send + Sync + 'static,
    ) -> Result<(), StartError> {
        let group = group.into();
        let build = Arc::new(build);
        for _ in 0..worlds {
            let started = self.started.entry(group.clone()).or_default();
            let thread = WorldThread::start(&self.hub, group.clone(), *started, build.clone())?;
            *started += 1;
            self.threads.push(thread);
        }
        Ok(())
    }

    /// Makes the world of an app a member of a group that runs in its own way: the one with the
    /// window, say. It needs a [`DuePlugin`](crate::DuePlugin), leaves when it is dropped, and leaves
    /// the group for which it had a [`WorldLink`](crate::WorldLink) before.
    pub fn join(&self, group: impl Into<Cow<'static, str>>, app: &mut App) {
        self.hub.join(group.into(), app);
    }

    /// Makes a world of another process a member of a group: what is for it goes into this link, as
    /// what is for a thread goes to that. It is told of all [keys](crate::StableKey) here, so that
    /// answers find their way. What comes from there is for a [receiver](Self::receiver).
    pub fn join_remote(&self, group: impl Into<Cow<'static, str>>, link: impl Link) {
        self.hub.join_remote(group.into(), link);
    }

    /// Returns a handle that takes what comes from other processes.
    #[must_use]
    pub fn receiver(&self) -> ParcelReceiver {
        ParcelReceiver(self.hub.clone())
    }

    /// Sends a parcel from outside of all worlds.
    ///
    /// # Errors
    ///
    /// [`Refused`] with the parcel, if it can't be sent.
    pub fn post(&self, parcel: Parcel) -> Result<(), Refused> {
        self.hub.send(parcel, Among::All)
    }

    /// Returns how many worlds of a group run.
    #[must_use]
    pub fn running(&self, group: &str) -> usize {
        self.hub.members(group)
    }

    /// Returns what has become of the worlds that have ended by themselves since the last call.
    pub fn ended(&mut self) -> Vec<WorldReport> {
        let ended = self.threads.extract_if(.., |world| world.has_ended());
        ended.map(WorldThread::stop).collect()
    }

    /// Stops the worlds of a group, the last started first, and returns what has become of them.
    pub fn stop_group(&mut self, group: &str) -> Vec<WorldReport> {
        let of_group = self.threads.extract_if(.., |world| world.group == group);
        let of_group: Vec<_> = of_group.collect();
        of_group.into_iter().rev().map(WorldThread::stop).collect()
    }

    /// Stops all worlds, the last started first, and returns what has become of them in that order.
    ///
    /// Each delivers what has been sent to it. What that leads to in worlds that have stopped
    /// already is refused, and told to who sent it.
    pub fn stop(mut self) -> Vec<WorldReport> {
        self.stop_all()
    }

    fn stop_all(&mut self) -> Vec<WorldReport> {
        let mut reports = Vec::new();
        while let Some(world) = self.threads.pop() {
            reports.push(world.stop());
        }
        reports
    }
}

impl Drop for WorldGroups {
    fn drop(&mut self) {
        self.stop_all();
    }
}
