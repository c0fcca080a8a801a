//! A process with a journal, and the zones in it.

use core::fmt;
use std::{
    collections::{BTreeMap, BTreeSet},
    io,
    path::Path,
    sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError},
};

use bevy_due::{message::MessageSender, worlds::StableKey};

use crate::{
    committer::{Committer, Stall, Submitter},
    disk::Disk,
    error::JournalError,
    journal::{Journal, JournalId, JournalOptions, Place, Record},
    owners::{OwnerStore, Referee},
    plugin::ZonePlugin,
    zone::reclaim,
};

/// The frames of a world that may wait for the disk at once.
const FRAMES_IN_FLIGHT: u64 = 2;

/// A process with a journal, in which the [zones](Shard::zone) of this process live.
///
/// Clones share it. The journal is closed when the last clone and the last zone are gone.
///
/// # Examples
///
/// A hero who survives the end of the process:
///
/// ```
/// use bevy_app::prelude::*;
/// use bevy_due::{
///     prelude::*,
///     worlds::{StableKey, WorldGroups},
/// };
/// use bevy_due_ownership::{JournalOptions, Shard, Zone};
/// use bevy_ecs::prelude::*;
/// use bevy_time::TimePlugin;
/// use serde::{Deserialize, Serialize};
///
/// #[derive(Component, Serialize, Deserialize)]
/// struct Gold(u32);
///
/// const HERO: StableKey = StableKey(7);
///
/// # let directory = std::env::temp_dir().join(format!("due_shard_{}", std::process::id()));
/// let start = || {
///     let shard = Shard::open(&directory, JournalOptions::default())?;
///     let groups = WorldGroups::new();
///     let mut town = App::new();
///     town.add_plugins((TimePlugin, DuePlugin::default()));
///     town.add_plugins(shard.zone(StableKey(1)).component::<Gold>("gold"));
///     groups.add("zones", &mut town);
///     town.update();
///     Ok::<_, BevyError>((groups, town))
/// };
///
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
/// # std::fs::remove_dir_all(directory).unwrap();
/// # Ok::<(), BevyError>(())
/// ```
#[derive(Clone, Debug)]
pub struct Shard(Arc<Inner>);

struct Inner {
    journal: JournalId,
    committer: Committer,
    referee: OnceLock<Referee>,
    zones: Mutex<Zones>,
}

#[derive(Default)]
struct Zones {
    /// What the journal had of zones that were not opened yet.
    recovered: BTreeMap<StableKey, Recovered>,
    open: BTreeMap<StableKey, MessageSender>,
    /// The journals that will never be opened again.
    dead: BTreeSet<JournalId>,
}

/// What the journal has of a zone.
#[derive(Default)]
pub(crate) struct Recovered {
    pub(crate) readings: Option<Vec<u8>>,
    /// The key, the epoch and the stored form.
    pub(crate) entities: Vec<(StableKey, u64, Vec<u8>)>,
    /// How far the streams to and from other zones are.
    pub(crate) streams: Vec<(Place, u64, u64)>,
    /// By zone and number.
    pub(crate) items: BTreeMap<(StableKey, u64), Vec<u8>>,
}

impl Shard {
    /// Opens the journal in `directory`, or creates it.
    ///
    /// # Errors
    ///
    /// Returns the same errors as [`Journal::open`].
    pub fn open(
        directory: impl AsRef<Path>,
        options: JournalOptions,
    ) -> Result<Self, JournalError> {
        Self::new(Journal::open(directory, options)?)
    }

    /// Like [`open`](Self::open), on any disk.
    ///
    /// # Errors
    ///
    /// Returns the same errors as [`Journal::open_on`].
    pub fn open_on(disk: Box<dyn Disk>, options: JournalOptions) -> Result<Self, JournalError> {
        Self::new(Journal::open_on(disk, options)?)
    }

    fn new(mut journal: Journal) -> Result<Self, JournalError> {
        let mut zones = Zones::default();
        journal.visit_live(|record| zones.recover(record))?;
        let id = journal.id();
        let committer = Committer::start(journal)
            .map_err(|error| JournalError::io("the committer".into(), "start", error))?;
        let zones = Mutex::new(zones);
        Ok(Self(Arc::new(Inner {
            journal: id,
            committer,
            referee: OnceLock::new(),
            zones,
        })))
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

    /// Returns the plugin that makes a world a zone of this shard. Add it after
    /// [`DuePlugin`](bevy_due::DuePlugin).
    ///
    /// `key` is the key of the zone: other zones find it under this key, so no zone and no entity of the group
    /// may have the same. The world must be a member of a group, and each zone can be open once.
    #[must_use]
    pub fn zone(&self, key: StableKey) -> ZonePlugin {
        ZonePlugin::new(self.clone(), key)
    }

    /// Returns the random number that the journal got when it was created.
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

    /// Returns since when the disk has no space, if it has none. Nothing leaves the zones meanwhile.
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
    /// - Letters that it had taken, but had not acknowledged, count as delivered.
    pub fn reclaim(&self, journal: JournalId) {
        let mut zones = self.zones();
        zones.dead.insert(journal);
        for sender in zones.open.values() {
            sender.run(move |world| reclaim(world, journal)).ok();
        }
    }

    pub(crate) fn referee(&self) -> Option<Referee> {
        self.0.referee.get().cloned()
    }

    pub(crate) fn submitter(&self) -> Submitter {
        self.0.committer.submitter(FRAMES_IN_FLIGHT)
    }

    /// Opens a zone, and returns what the journal has of it, with the dead journals.
    pub(crate) fn open_zone(
        &self,
        key: StableKey,
        sender: MessageSender,
    ) -> Result<(Recovered, BTreeSet<JournalId>), ZoneInUse> {
        let mut zones = self.zones();
        if zones.open.contains_key(&key) {
            return Err(ZoneInUse(key));
        }
        zones.open.insert(key, sender);
        let recovered = zones.recovered.remove(&key).unwrap_or_default();
        Ok((recovered, zones.dead.clone()))
    }

    fn zones(&self) -> MutexGuard<'_, Zones> {
        // No code panics while it holds the lock.
        self.0.zones.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Zones {
    fn recover(&mut self, record: Record) {
        let recovered = &mut self.recovered;
        match record {
            Record::World { zone, body } => {
                recovered.entry(zone).or_default().readings = Some(body);
            }
            Record::Entity {
                key,
                epoch,
                zone,
                body,
            } => {
                let zone = recovered.entry(zone).or_default();
                zone.entities.push((key, epoch, body));
            }
            Record::Item {
                from,
                to,
                number,
                body,
            } => {
                let zone = recovered.entry(from).or_default();
                zone.items.insert((to, number), body);
            }
            Record::Stream {
                zone,
                peer,
                acked,
                taken,
            } => {
                let zone = recovered.entry(zone).or_default();
                zone.streams.push((peer, acked, taken));
            }
            Record::Dead { journal } => _ = self.dead.insert(journal),
            Record::Boot { .. } | Record::Gone { .. } | Record::Done { .. } => {}
        }
    }
}

impl fmt::Debug for Inner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Inner")
            .field("journal", &self.journal)
            .field("committer", &self.committer)
            .finish_non_exhaustive()
    }
}

/// A zone is open already.
#[derive(Debug)]
pub(crate) struct ZoneInUse(StableKey);

impl fmt::Display for ZoneInUse {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "zone {} of this shard is open already, or its world has ended: a zone can be opened once in the \
             life of a process",
            self.0.0
        )
    }
}

impl core::error::Error for ZoneInUse {}
