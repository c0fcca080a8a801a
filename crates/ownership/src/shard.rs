//! A process with a journal, and the zones in it.

use core::fmt;
use std::{
    collections::{BTreeMap, BTreeSet},
    io,
    path::Path,
    sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError},
};

use bevy_due::{message::MessageSender, worlds::StableKey};
use bevy_ecs::error::BevyError;

#[cfg(feature = "simulated-disk")]
use crate::journal::SimulatedDisk;
use crate::{
    committer::{Committer, Stall, Submitter},
    error::JournalError,
    ids::JournalId,
    journal::{Contents, Journal, Rows, rows},
    owners::{OwnerStore, Referee},
};

/// A process with a file, in which the [zones](Shard::zone) of this process live.
///
/// Clones share it. The file is closed when the last clone and the last zone are gone.
///
/// # Examples
///
/// A hero who survives the end of the process:
///
/// ```
/// use bevy_app::prelude::*;
/// use bevy_due::{
///     prelude::*,
///     save::SaveWorldExt,
///     worlds::{StableKey, WorldGroups},
/// };
/// use bevy_due_ownership::{Shard, Zone};
/// use bevy_ecs::prelude::*;
/// use bevy_time::TimePlugin;
/// use serde::{Deserialize, Serialize};
///
/// #[derive(Component, Clone, Serialize, Deserialize)]
/// struct Gold(u32);
///
/// const HERO: StableKey = StableKey(7);
///
/// # let file = std::env::temp_dir().join(format!("due_shard_{}.redb", std::process::id()));
/// let start = || {
///     let shard = Shard::open(&file)?;
///     let groups = WorldGroups::new();
///     let mut town = App::new();
///     town.add_plugins((TimePlugin, DuePlugin::default()));
///     town.add_plugins(shard.zone(StableKey(1)));
///     town.world_mut().add_saved_component::<Gold>("gold");
///     groups.add("zones", &mut town);
///     town.update();
///     Ok::<_, BevyError>((groups, town))
/// };
///
/// Shard::create(&file)?;
/// let (_groups, mut town) = start()?;
/// assert!(town.world().resource::<Zone>().entity(HERO).is_none());
/// town.world_mut().spawn((HERO, Gold(3)));
/// town.update();
/// drop((_groups, town));
///
/// let (_groups, town) = start()?;
/// let hero = town.world().resource::<Zone>().entity(HERO).unwrap();
/// assert_eq!(town.world().get::<Gold>(hero).unwrap().0, 3);
/// # drop((_groups, town));
/// # std::fs::remove_file(file).unwrap();
/// # Ok::<(), BevyError>(())
/// ```
#[derive(Clone, Debug)]
pub struct Shard(Arc<Inner>);

struct Inner {
    journal: JournalId,
    /// The shards of whose copies this one was made.
    restored: Vec<JournalId>,
    committer: Committer,
    referee: OnceLock<Referee>,
    zones: Mutex<Zones>,
}

#[derive(Default)]
struct Zones {
    /// What the journal had of zones that were not opened yet.
    unopened: Rows,
    /// The journals that nobody will open again.
    dead: BTreeSet<JournalId>,
    open: BTreeMap<StableKey, MessageSender>,
    /// The journals that this process has given up, in order.
    reclaimed: Vec<JournalId>,
}

impl Shard {
    /// Creates the file of a new shard. Do it once: [`open`](Self::open) fails without its file, so that a lost
    /// file is not taken for a new game.
    ///
    /// # Errors
    ///
    /// Returns [`Exists`](JournalError::Exists) if there is a file of that name, and the errors of the operating
    /// system.
    pub fn create(file: impl AsRef<Path>) -> Result<(), JournalError> {
        Journal::create(file.as_ref())
    }

    /// Opens the file of a shard, and checks each page of it. Logs the [id](Self::journal_id) of the shard.
    ///
    /// # Errors
    ///
    /// Returns [`Missing`](JournalError::Missing) without the file, [`InUse`](JournalError::InUse) if it is open
    /// already, and [`Damaged`](JournalError::Damaged) if it is not as it was written: nothing is ever skipped.
    pub fn open(file: impl AsRef<Path>) -> Result<Self, JournalError> {
        let file = file.as_ref();
        let journal = Journal::open(file)?;
        log::info!("{} is the shard {}", file.display(), journal.id());
        Self::new(journal)
    }

    /// Turns a copy of a lost shard's file into the file of a new shard, in place, and returns the id of the lost one. Then
    /// call [`reclaim`](Self::reclaim) with it in all other shards.
    ///
    /// Without this call, the others refuse an old copy, because its shard has forgotten what it has agreed with them.
    /// Make copies while no process has the file open, or with a snapshot of the file system.
    ///
    /// - What happened after the copy is lost. So letters of that time may be paid twice, or not at all.
    /// - An entity that lives elsewhere by now is dropped here, with a warning, as soon as its zone answers.
    /// - What was on its way between shards when the copy was made is gone.
    ///
    /// # Errors
    ///
    /// Returns the same errors as [`open`](Self::open).
    pub fn restore(copy: impl AsRef<Path>) -> Result<JournalId, JournalError> {
        restore(Journal::open(copy.as_ref())?)
    }

    /// Like [`restore`](Self::restore), with a disk in memory.
    ///
    /// # Errors
    ///
    /// Returns the same errors as [`restore`](Self::restore).
    #[cfg(feature = "simulated-disk")]
    pub fn restore_simulated(disk: SimulatedDisk) -> Result<JournalId, JournalError> {
        restore(Journal::open_simulated(disk)?)
    }

    /// Opens a disk in memory. An empty one gets a new shard.
    ///
    /// # Errors
    ///
    /// Returns the same errors as [`open`](Self::open).
    #[cfg(feature = "simulated-disk")]
    pub fn open_simulated(disk: SimulatedDisk) -> Result<Self, JournalError> {
        Self::new(Journal::open_simulated(disk)?)
    }

    fn new(journal: Journal) -> Result<Self, JournalError> {
        let Contents { rows, restored } = journal.read()?;
        let id = journal.id();
        let committer = Committer::start(journal)
            .map_err(|error| JournalError::io("the thread of the shard".into(), "start", error))?;
        let dead = rows.keys().filter(|place| place.1 == rows::DEAD);
        let dead = dead.map(|place| JournalId(place.2)).collect();
        let zones = Mutex::new(Zones {
            unopened: rows,
            dead,
            ..Zones::default()
        });
        Ok(Self(Arc::new(Inner {
            journal: id,
            restored,
            committer,
            referee: OnceLock::new(),
            zones,
        })))
    }

    /// Returns the keys of the entities in zones that were not opened, and how many entities and letters are on their
    /// way from there. A tool that checks files needs no world for that.
    #[must_use]
    pub fn unopened(&self) -> (Vec<StableKey>, usize) {
        let zones = self.zones();
        let places = || zones.unopened.keys().copied();
        let keys = places().filter(|place| place.1 == rows::ENTITY);
        let keys = keys.map(|place| rows::life_at(place).key).collect();
        (keys, places().filter(|place| place.1 == rows::ITEM).count())
    }

    /// Lets a store decide who owns an entity. Call it before the first zone opens.
    ///
    /// # Errors
    ///
    /// Returns the error of the operating system if it cannot create a thread.
    ///
    /// # Panics
    ///
    /// Panics if the shard has a store.
    pub fn with_owners(self, store: impl OwnerStore) -> io::Result<Self> {
        let is_first = self.0.referee.set(Referee::start(store)?).is_ok();
        assert!(is_first, "a shard can have one store of owners");
        Ok(self)
    }

    /// Returns the random number that the shard got when it was created.
    #[must_use]
    pub fn journal_id(&self) -> JournalId {
        self.0.journal
    }

    /// Waits until all frames of its zones so far are durable, and others can see them. Don't call this in a
    /// system.
    ///
    /// # Errors
    ///
    /// Returns the error that has stopped the journal.
    pub fn wait(&self) -> Result<(), JournalError> {
        self.0.committer.wait()
    }

    /// Returns since when the disk has no space, or has not answered for more than a second. Nothing leaves the zones
    /// meanwhile.
    #[must_use]
    pub fn stall(&self) -> Option<Stall> {
        self.0.committer.stall()
    }

    /// Takes back the entities that were on their way to a shard whose journal is lost for good, and never
    /// speaks with that journal again. All other shards that can be reached do the same.
    ///
    /// Call it only if nobody can start the lost shard any more.
    ///
    /// - What the lost shard owned is lost.
    /// - An entity that it had taken, but had not acknowledged, exists again as it left this shard. If it had
    ///   passed the entity on to a third shard, the entity is in two zones then. With a
    ///   [store of owners](Self::with_owners), it stays with the third shard.
    /// - A letter that it had acknowledged counts as delivered. All other letters on their way to it go to the entity that
    ///   has the key now, or come back. A letter that it took without acknowledging it may therefore arrive twice.
    ///   If only the lost shard had a letter, later ones of the same sender to the same entity wait until all other zones
    ///   have answered twice that they do not have it, which takes at least 30 seconds.
    pub fn reclaim(&self, journal: JournalId) {
        let mut zones = self.zones();
        zones.reclaimed.push(journal);
        for sender in zones.open.values() {
            // Wakes a world that sleeps. One that takes nothing is awake.
            sender.run(|_| {}).ok();
        }
    }

    /// Returns the journals that were given up after the first `known` ones.
    pub(crate) fn reclaimed_after(&self, known: usize) -> Vec<JournalId> {
        self.zones().reclaimed[known..].to_vec()
    }

    pub(crate) fn referee(&self) -> Option<Referee> {
        self.0.referee.get().cloned()
    }

    pub(crate) fn submitter(&self) -> Submitter {
        self.0.committer.submitter()
    }

    /// Returns the shards of whose copies this one was made.
    pub(crate) fn restored(&self) -> &[JournalId] {
        &self.0.restored
    }

    /// Opens a zone, and returns what the journal has of it, with the dead journals.
    pub(crate) fn open_zone(
        &self,
        key: StableKey,
        sender: MessageSender,
    ) -> Result<(Rows, BTreeSet<JournalId>), BevyError> {
        let mut zones = self.zones();
        if zones.open.contains_key(&key) {
            let key = key.0;
            return Err(format!(
                "zone {key} of this shard is open already, or its world has ended: a zone can be opened once in the life \
                 of a process"
            )
            .into());
        }
        zones.open.insert(key, sender);
        let rows = zones.unopened.extract_if(rows::of_zone(key), |_, _| true);
        Ok((rows.collect(), zones.dead.clone()))
    }

    fn zones(&self) -> MutexGuard<'_, Zones> {
        // No code panics while it holds the lock.
        self.0.zones.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Gives a copy another id, and returns that which it had.
fn restore(mut journal: Journal) -> Result<JournalId, JournalError> {
    let lost = journal.id();
    journal.restore()?;
    Ok(lost)
}

impl fmt::Debug for Inner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.journal.fmt(f)
    }
}
