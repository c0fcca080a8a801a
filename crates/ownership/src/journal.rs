//! The file of a shard: what its zones own, and what is on its way, in tables of redb.

mod file;
mod record;
#[cfg(feature = "simulated-disk")]
mod simulated;
#[cfg(test)]
mod tests;

use std::{
    collections::{BTreeMap, BTreeSet},
    path::Path,
};

use bevy_due::worlds::StableKey;
use redb::{
    Database, ReadableDatabase, ReadableTable, StorageError, Table, TableDefinition, TableError,
    WriteTransaction,
};

pub(crate) use record::{Record, Recovered};
#[cfg(feature = "simulated-disk")]
pub use simulated::SimulatedDisk;

use crate::{
    error::JournalError,
    ids::{JournalId, Life, ZoneId, random},
};
use file::JournalFile;

/// The version of the tables.
const VERSION: u64 = 1;

/// Found in a damaged file, too. See [`file::find_id`].
const ID_PREFIX: &str = "bevy_due journal ";

const META: TableDefinition<&str, &str> = TableDefinition::new("meta");
/// The readings of the clocks, by zone.
const READINGS: TableDefinition<u64, &[u8]> = TableDefinition::new("readings");
/// The epoch and the stored form, by zone, key and birth.
const ENTITIES: TableDefinition<(u64, u64, u64), (u64, &[u8])> = TableDefinition::new("entities");
/// By the sending zone, the zone that gets it, and the number.
const ITEMS: TableDefinition<(u64, u64, u64), &[u8]> = TableDefinition::new("items");
/// What was acknowledged and taken, by the zone, and the journal and the zone of the peer.
const STREAMS: TableDefinition<(u64, u128, u64), (u64, u64)> = TableDefinition::new("streams");
const DEAD: TableDefinition<u128, ()> = TableDefinition::new("dead");

/// The file of a shard.
#[derive(Debug)]
pub(crate) struct Journal {
    file: JournalFile,
    id: JournalId,
    /// `None` after the disk was full: redb wants the file to be opened again.
    database: Option<Database>,
    stopped: Option<JournalError>,
}

/// Everything that a journal has: by zone, and the journals that will never be opened again.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Contents {
    pub(crate) zones: BTreeMap<StableKey, Recovered>,
    pub(crate) dead: BTreeSet<JournalId>,
    /// The shards of whose copies the file was made. Its entities may live elsewhere.
    pub(crate) restored: Vec<JournalId>,
}

impl Contents {
    fn zone(&mut self, key: u64) -> &mut Recovered {
        self.zones.entry(StableKey(key)).or_default()
    }
}

impl Journal {
    /// Creates a file. It appears under its name when it is whole.
    pub(crate) fn create(path: &Path) -> Result<(), JournalError> {
        JournalFile::create(path, |file| initialize(file).map(drop))
    }

    /// Opens a file, and checks each page of it.
    pub(crate) fn open(path: &Path) -> Result<Self, JournalError> {
        Self::of(JournalFile::open(path)?)
    }

    /// Opens a disk. An empty one gets a journal.
    #[cfg(feature = "simulated-disk")]
    pub(crate) fn open_simulated(disk: SimulatedDisk) -> Result<Self, JournalError> {
        let is_new = disk.is_empty();
        let file = JournalFile::simulated(disk);
        if is_new {
            initialize(&file)?;
        }
        Self::of(file)
    }

    fn of(file: JournalFile) -> Result<Self, JournalError> {
        let database = file.database()?;
        let id = read_id(&file, &database)?;
        Ok(Self {
            file,
            id,
            database: Some(database),
            stopped: None,
        })
    }

    pub(crate) fn id(&self) -> JournalId {
        self.id
    }

    /// Makes changes durable in their order, all or none, before it returns.
    ///
    /// After [`Full`](JournalError::Full), nothing has changed: make the same changes again later. After any other
    /// error they are made or not, and each later call returns the same error.
    pub(crate) fn append(&mut self, records: &[Record]) -> Result<(), JournalError> {
        if let Some(error) = &self.stopped {
            return Err(error.clone());
        }
        if records.is_empty() {
            return Ok(());
        }
        let result = self.try_append(records);
        if let Err(error) = &result {
            self.database = None;
            self.stopped = (!error.is_full()).then(|| error.clone());
        }
        result
    }

    fn try_append(&mut self, records: &[Record]) -> Result<(), JournalError> {
        let database = match self.database.take() {
            Some(database) => database,
            None => self.file.database()?,
        };
        write(&database, records).map_err(|error| self.file.error("write", error))?;
        self.database = Some(database);
        Ok(())
    }

    /// Gives the file a new id, without anything that was between its zones and others.
    pub(crate) fn restore(&mut self) -> Result<(), JournalError> {
        let Some(database) = &self.database else {
            return Ok(());
        };
        let id = random_id();
        let write = || -> Result<(), redb::Error> {
            let contents = read(database)?;
            let transaction = database.begin_write()?;
            let mut tables = Tables::open(&transaction)?;
            tables.streams.retain(|_, _| false)?;
            let is_here = |to| contents.zones.contains_key(&StableKey(to));
            tables.items.retain(|(_, to, _), _| is_here(to))?;
            for (zone, recovered) in &contents.zones {
                let streams = recovered.streams.iter();
                for (peer, numbers) in streams.filter(|(peer, _)| peer.journal == self.id) {
                    let stream = (zone.0, id.0, peer.zone.0);
                    tables.streams.insert(stream, *numbers)?;
                }
            }
            drop(tables);
            {
                let mut meta = transaction.open_table(META)?;
                meta.insert("id", text_of(id).as_str())?;
                let before = contents.restored.iter().chain([&self.id]);
                let before: Vec<_> = before.map(|id| format!("{:032x}", id.0)).collect();
                meta.insert("restored", before.join(" ").as_str())?;
            }
            Ok(transaction.commit()?)
        };
        write().map_err(|error| self.file.error("restore", error))?;
        self.id = id;
        Ok(())
    }

    /// Reads everything.
    pub(crate) fn read(&self) -> Result<Contents, JournalError> {
        let Some(database) = &self.database else {
            return Ok(Contents::default());
        };
        read(database).map_err(|error| self.file.error("read", error))
    }
}

/// Creates the tables in an empty file.
fn initialize(file: &JournalFile) -> Result<Database, JournalError> {
    let database = file.database()?;
    let id = random_id();
    let write = || -> Result<(), redb::Error> {
        let transaction = database.begin_write()?;
        {
            let mut meta = transaction.open_table(META)?;
            meta.insert("version", VERSION.to_string().as_str())?;
            meta.insert("id", text_of(id).as_str())?;
        }
        Tables::open(&transaction)?;
        Ok(transaction.commit()?)
    };
    write().map_err(|error| file.error("create", error))?;
    Ok(database)
}

fn random_id() -> JournalId {
    let [first, second] = [random(), random()].map(u128::from);
    JournalId(first << 64 | second)
}

/// Returns the text by which an id can be found in a damaged file.
fn text_of(JournalId(id): JournalId) -> String {
    format!("{ID_PREFIX}{id:032x}")
}

fn read_id(file: &JournalFile, database: &Database) -> Result<JournalId, JournalError> {
    let read = || -> Result<_, redb::Error> {
        let meta = database.begin_read()?.open_table(META)?;
        let get = |name| -> Result<_, redb::Error> {
            Ok(meta.get(name)?.map(|value| value.value().to_owned()))
        };
        Ok((get("version")?, get("id")?))
    };
    let (version, id) = read().map_err(|error| file.error("read", error))?;
    let version = version.unwrap_or_default();
    if version != VERSION.to_string() {
        return Err(file.newer(version));
    }
    let id = id.as_deref().and_then(|id| id.strip_prefix(ID_PREFIX));
    let id = id.and_then(|id| u128::from_str_radix(id, 16).ok());
    id.map(JournalId)
        .ok_or_else(|| file.damaged("it has no id".into()))
}

/// The tables that records change.
struct Tables<'a> {
    readings: Table<'a, u64, &'static [u8]>,
    entities: Table<'a, (u64, u64, u64), (u64, &'static [u8])>,
    items: Table<'a, (u64, u64, u64), &'static [u8]>,
    streams: Table<'a, (u64, u128, u64), (u64, u64)>,
    dead: Table<'a, u128, ()>,
}

impl<'a> Tables<'a> {
    fn open(transaction: &'a WriteTransaction) -> Result<Self, TableError> {
        Ok(Self {
            readings: transaction.open_table(READINGS)?,
            entities: transaction.open_table(ENTITIES)?,
            items: transaction.open_table(ITEMS)?,
            streams: transaction.open_table(STREAMS)?,
            dead: transaction.open_table(DEAD)?,
        })
    }

    fn apply(&mut self, record: &Record) -> Result<(), StorageError> {
        match record {
            Record::World { zone, body } => {
                self.readings.insert(zone.0, &**body)?;
            }
            Record::Entity {
                zone,
                life: Life { key, birth },
                epoch,
                body,
            } => {
                let entity = (zone.0, key.0, *birth);
                self.entities.insert(entity, (*epoch, &**body))?;
            }
            Record::Gone {
                zone,
                life: Life { key, birth },
                epoch,
            } => {
                let entity = (zone.0, key.0, *birth);
                let found = self.entities.get(entity)?;
                if found.is_some_and(|found| found.value().0 <= *epoch) {
                    self.entities.remove(entity)?;
                }
            }
            Record::Item {
                from,
                to,
                number,
                body,
            } => {
                self.items.insert((from.0, to.0, *number), &**body)?;
            }
            Record::Done { from, to, number } => {
                self.items.remove((from.0, to.0, *number))?;
            }
            Record::Stream {
                zone,
                peer,
                acked,
                taken,
            } => {
                let stream = (zone.0, peer.journal.0, peer.zone.0);
                self.streams.insert(stream, (*acked, *taken))?;
                let taken = (zone.0, peer.zone.0, 0)..=(zone.0, peer.zone.0, *acked);
                self.items.retain_in(taken, |_, _| false)?;
            }
            Record::Dead { zone, journal } => {
                self.dead.insert(journal.0, ())?;
                let streams = (zone.0, journal.0, 0)..=(zone.0, journal.0, u64::MAX);
                self.streams.retain_in(streams, |_, _| false)?;
            }
        }
        Ok(())
    }
}

fn write(database: &Database, records: &[Record]) -> Result<(), redb::Error> {
    let transaction = database.begin_write()?;
    let mut tables = Tables::open(&transaction)?;
    for record in records {
        tables.apply(record)?;
    }
    drop(tables);
    Ok(transaction.commit()?)
}

fn read(database: &Database) -> Result<Contents, redb::Error> {
    let transaction = database.begin_read()?;
    let mut contents = Contents::default();
    let restored = transaction.open_table(META)?.get("restored")?;
    let restored = restored.as_ref().map_or("", |ids| ids.value());
    let restored = restored.split_whitespace();
    let restored = restored.filter_map(|id| u128::from_str_radix(id, 16).ok());
    contents.restored = restored.map(JournalId).collect();
    for row in transaction.open_table(READINGS)?.iter()? {
        let (key, body) = row?;
        contents.zone(key.value()).readings = Some(body.value().to_vec());
    }
    for row in transaction.open_table(ENTITIES)?.iter()? {
        let (place, entity) = row?;
        let ((of, key, birth), (epoch, body)) = (place.value(), entity.value());
        let key = StableKey(key);
        let entities = &mut contents.zone(of).entities;
        entities.insert(Life { key, birth }, (epoch, body.to_vec()));
    }
    for row in transaction.open_table(ITEMS)?.iter()? {
        let (place, body) = row?;
        let (from, to, number) = place.value();
        let items = &mut contents.zone(from).items;
        items.insert((StableKey(to), number), body.value().to_vec());
    }
    for row in transaction.open_table(STREAMS)?.iter()? {
        let (place, progress) = row?;
        let (of, journal, peer) = place.value();
        let peer = ZoneId {
            journal: JournalId(journal),
            zone: StableKey(peer),
        };
        contents.zone(of).streams.insert(peer, progress.value());
    }
    for row in transaction.open_table(DEAD)?.iter()? {
        contents.dead.insert(JournalId(row?.0.value()));
    }
    Ok(contents)
}
