//! The file of a shard: what its zones own, and what is on its way, in a table of redb.

mod file;
pub(crate) mod rows;
#[cfg(feature = "simulated-disk")]
mod simulated;
#[cfg(test)]
mod tests;

use std::{collections::BTreeSet, path::Path};

use redb::{Database, ReadableDatabase, ReadableTable, TableDefinition, WriteTransaction};

pub(crate) use rows::{Change, Rows};
use rows::{ITEM, Place, STREAM, item_at};
#[cfg(feature = "simulated-disk")]
pub use simulated::SimulatedDisk;

use crate::{
    error::JournalError,
    ids::{JournalId, random},
};
use file::JournalFile;

/// The version of the format.
const VERSION: u64 = 2;

/// Found in a damaged file, too. See [`file::find_id`].
const ID_PREFIX: &str = "bevy_due journal ";

const META: TableDefinition<&str, &str> = TableDefinition::new("meta");
const ROWS: TableDefinition<Place, &[u8]> = TableDefinition::new("rows");

/// The file of a shard.
#[derive(Debug)]
pub(crate) struct Journal {
    file: JournalFile,
    id: JournalId,
    /// `None` after the disk was full: redb wants the file to be opened again.
    database: Option<Database>,
    stopped: Option<JournalError>,
}

/// Everything that a journal has.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Contents {
    pub(crate) rows: Rows,
    /// The shards of whose copies the file was made. Its entities may live elsewhere.
    pub(crate) restored: Vec<JournalId>,
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
    pub(crate) fn append(&mut self, changes: &[Change]) -> Result<(), JournalError> {
        if let Some(error) = &self.stopped {
            return Err(error.clone());
        }
        if changes.is_empty() {
            return Ok(());
        }
        let result = self.try_append(changes);
        if let Err(error) = &result {
            self.database = None;
            self.stopped = (!error.is_full()).then(|| error.clone());
        }
        result
    }

    fn try_append(&mut self, changes: &[Change]) -> Result<(), JournalError> {
        let database = match self.database.take() {
            Some(database) => database,
            None => self.file.database()?,
        };
        write(&database, changes).map_err(|error| self.file.error("write", error))?;
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
            let Contents { rows, restored } = read(database)?;
            let zones: BTreeSet<u64> = rows.keys().map(|place| place.0).collect();
            let mut changes = Vec::new();
            for (place, body) in rows {
                let (zone, kind, journal, peer) = place;
                match kind {
                    STREAM => {
                        changes.push(Change::remove(place));
                        if journal == self.id.0 {
                            changes.push(Change::Put((zone, kind, id.0, peer), body));
                        }
                    }
                    ITEM if !zones.contains(&item_at(place).0.0) => {
                        changes.push(Change::remove(place));
                    }
                    _ => {}
                }
            }
            let transaction = database.begin_write()?;
            apply(&transaction, &changes)?;
            {
                let mut meta = transaction.open_table(META)?;
                meta.insert("id", text_of(id).as_str())?;
                let before = restored.iter().chain([&self.id]);
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
        transaction.open_table(ROWS)?;
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

fn apply(transaction: &WriteTransaction, changes: &[Change]) -> Result<(), redb::Error> {
    let mut rows = transaction.open_table(ROWS)?;
    for change in changes {
        match change {
            Change::Put(place, body) => _ = rows.insert(place, &**body)?,
            Change::Remove(places) => rows.retain_in(places.clone(), |_, _| false)?,
        }
    }
    Ok(())
}

fn write(database: &Database, changes: &[Change]) -> Result<(), redb::Error> {
    let transaction = database.begin_write()?;
    apply(&transaction, changes)?;
    Ok(transaction.commit()?)
}

fn read(database: &Database) -> Result<Contents, redb::Error> {
    let transaction = database.begin_read()?;
    let restored = transaction.open_table(META)?.get("restored")?;
    let restored = restored.as_ref().map_or("", |ids| ids.value());
    let restored = restored.split_whitespace();
    let restored = restored.filter_map(|id| u128::from_str_radix(id, 16).ok());
    let mut rows = Rows::new();
    for row in transaction.open_table(ROWS)?.iter()? {
        let (place, body) = row?;
        rows.insert(place.value(), body.value().to_vec());
    }
    Ok(Contents {
        rows,
        restored: restored.map(JournalId).collect(),
    })
}
