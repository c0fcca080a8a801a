//! A handle to the groups of worlds of this process.

use alloc::{
    borrow::Cow,
    sync::{Arc, Weak},
    vec::Vec,
};
use std::collections::HashMap;

use bevy_app::App;
use bevy_ecs::resource::Resource;

use super::{
    hub::Hub,
    link::{Peer, PeerSettings},
    parcel::{Parcel, Refused},
    world_link::join,
    world_thread::{StartError, WorldThread},
};
use crate::{
    message::RefusalReason,
    sync::{Mutex, MutexGuard, PoisonError},
};

/// A handle to [`WorldGroups`](crate::worlds::WorldGroups), for threads and for systems of the worlds.
///
/// Each world of the groups has it as a resource. Clones refer to the same groups. A handle does not keep
/// the groups alive.
///
/// # Examples
///
/// A lobby that starts a world for each match. `start` waits until the world is built, so it runs on a
/// separate thread:
///
/// ```
/// use std::{sync::mpsc, thread};
/// use bevy_due::{
///     message::Packet,
///     prelude::*,
///     worlds::{GroupsHandle, WorldGroups},
/// };
/// use bevy_ecs::prelude::*;
///
/// const NEW_MATCH: u32 = 1;
///
/// let (tell, told) = mpsc::channel();
/// let mut groups = WorldGroups::new();
/// groups.start("lobby", 1, move |app| {
///     let tell = tell.clone();
///     app.add_plugins(DuePlugin::default());
///     let start = move |groups: Res<GroupsHandle>| {
///         let (groups, tell) = (groups.clone(), tell.clone());
///         thread::spawn(move || {
///             let started = groups.start("matches", 1, |app| _ = app.add_plugins(DuePlugin::default()));
///             tell.send((started.is_ok(), groups.running("matches")))
///         });
///     };
///     app.add_systems(bevy_app::Startup, start);
/// })?;
/// assert_eq!(told.recv()?, (true, 1));
/// # Ok::<(), BevyError>(())
/// ```
#[derive(Resource, Clone, Debug)]
pub struct GroupsHandle(Weak<Groups>);

/// What [`WorldGroups`](crate::worlds::WorldGroups) and its handles share.
#[derive(Default)]
pub(super) struct Groups {
    pub(super) hub: Arc<Hub>,
    threads: Mutex<Threads>,
}

#[derive(Default)]
struct Threads {
    /// In the order of their start.
    running: Vec<WorldThread>,
    /// The number of worlds that each group has ever had.
    started: HashMap<Cow<'static, str>, usize>,
    is_stopped: bool,
}

impl GroupsHandle {
    pub(super) fn new(groups: &Arc<Groups>) -> Self {
        Self(Arc::downgrade(groups))
    }

    /// Adds worlds to a group, as [`WorldGroups::start`](crate::worlds::WorldGroups::start) does.
    ///
    /// # Errors
    ///
    /// Returns [`StartError`] if a world can't be started, or if the groups have been stopped.
    pub fn start(
        &self,
        group: impl Into<Cow<'static, str>>,
        worlds: usize,
        build: impl Fn(&mut App) + Send + Sync + 'static,
    ) -> Result<(), StartError> {
        let groups = self.0.upgrade().ok_or(StartError::Stopped)?;
        groups.start(group.into(), worlds, build)
    }

    /// Makes the world of an app a member of a group, as [`WorldGroups::add`](crate::worlds::WorldGroups::add)
    /// does.
    ///
    /// # Errors
    ///
    /// Returns [`StartError::Stopped`] if the groups have been dropped.
    pub fn add(
        &self,
        group: impl Into<Cow<'static, str>>,
        app: &mut App,
    ) -> Result<(), StartError> {
        let groups = self.0.upgrade().ok_or(StartError::Stopped)?;
        groups.add(group.into(), app);
        Ok(())
    }

    /// Sends a parcel from outside all worlds, as [`WorldGroups::post`](crate::worlds::WorldGroups::post) does.
    ///
    /// # Errors
    ///
    /// Returns [`Refused`] with the parcel if it can't be sent.
    pub fn post(&self, parcel: Parcel) -> Result<(), Refused> {
        match self.0.upgrade() {
            Some(groups) => groups.hub.post(parcel),
            None => Err(parcel.refused(RefusalReason::UnknownGroup)),
        }
    }

    /// Returns the number of worlds of a group, as [`WorldGroups::running`](crate::worlds::WorldGroups::running)
    /// does.
    #[must_use]
    pub fn running(&self, group: &str) -> usize {
        let groups = self.0.upgrade();
        groups.map_or(0, |groups| groups.hub.running(group))
    }

    /// Adds another process, for the threads of a [`Link`](crate::worlds::link::Link).
    ///
    /// Connect each process once: one that is connected twice counts as two, and gets each parcel to
    /// [all](crate::message::Delivery::All) worlds twice. A peer that turns out to be this process never comes
    /// [up](crate::worlds::link::Liveness::Up).
    ///
    /// `name` stands for the process in [`PeerChanged`](crate::worlds::link::PeerChanged) and for the filter of
    /// [`WorldGroups::permit`](crate::worlds::WorldGroups::permit). If the groups have been dropped, the peer is
    /// closed.
    #[must_use]
    pub fn connect(&self, name: impl Into<Arc<str>>, settings: PeerSettings) -> Peer {
        let hub = match self.0.upgrade() {
            Some(groups) => groups.hub.clone(),
            None => Hub::closed(),
        };
        Peer::new(&hub, name.into(), settings)
    }
}

impl Groups {
    pub(super) fn start(
        self: &Arc<Self>,
        group: Cow<'static, str>,
        worlds: usize,
        build: impl Fn(&mut App) + Send + Sync + 'static,
    ) -> Result<(), StartError> {
        let handle = GroupsHandle::new(self);
        let build = move |app: &mut App| {
            app.insert_resource(handle.clone());
            build(app);
        };
        let build = Arc::new(build);
        for _ in 0..worlds {
            let nth = self.threads().next(group.clone())?;
            // Not under the lock: a world may start other worlds while it is built.
            let world = WorldThread::start(&self.hub, group.clone(), nth, build.clone());
            let mut threads = self.threads();
            if threads.is_stopped {
                drop(threads);
                drop(world.map(WorldThread::stop));
                return Err(StartError::Stopped);
            }
            threads.running.push(world?);
        }
        Ok(())
    }

    pub(super) fn add(self: &Arc<Self>, group: Cow<'static, str>, app: &mut App) {
        app.insert_resource(GroupsHandle::new(self));
        join(&self.hub, group, app);
    }

    /// Takes the threads of some worlds, in the order of their start.
    pub(super) fn take(&self, mut which: impl FnMut(&mut WorldThread) -> bool) -> Vec<WorldThread> {
        let mut threads = self.threads();
        let taken = threads.running.extract_if(.., |world| which(world));
        taken.collect()
    }

    /// Takes the thread that was started last.
    pub(super) fn take_last(&self) -> Option<WorldThread> {
        self.threads().running.pop()
    }

    /// Lets no more worlds start.
    pub(super) fn close(&self) {
        self.threads().is_stopped = true;
    }

    fn threads(&self) -> MutexGuard<'_, Threads> {
        self.threads.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Threads {
    /// Returns the index of the next world of a group.
    fn next(&mut self, group: Cow<'static, str>) -> Result<usize, StartError> {
        if self.is_stopped {
            return Err(StartError::Stopped);
        }
        let started = self.started.entry(group).or_default();
        *started += 1;
        Ok(*started - 1)
    }
}
