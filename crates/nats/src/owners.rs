//! The store decides which zone owns an entity.

use bevy_due::worlds::StableKey;
use bevy_due_ownership::{JournalId, Owner, OwnerStore, Unreachable, ZoneId};

use crate::store::NatsOwners;

/// The version of the form below.
const VERSION: u8 = 2;

/// The value of a key: the version, the number of the owner, the birth of the entity, the zone, and its journal.
fn encode(owner: Owner) -> Vec<u8> {
    let Owner { zone, epoch, birth } = owner;
    let mut bytes = vec![VERSION];
    bytes.extend(epoch.to_le_bytes());
    bytes.push(u8::from(birth.is_some()));
    bytes.extend(birth.unwrap_or_default().to_le_bytes());
    bytes.extend(zone.zone.0.to_le_bytes());
    bytes.extend(zone.journal.0.to_le_bytes());
    bytes
}

fn decode(key: StableKey, bytes: &[u8]) -> Result<Owner, Unreachable> {
    let split = || {
        let (&[VERSION], rest) = bytes.split_first_chunk()? else {
            return None;
        };
        let (epoch, rest) = rest.split_first_chunk()?;
        let (&is_alive, rest) = rest.split_first()?;
        let (birth, rest) = rest.split_first_chunk()?;
        let (zone, rest) = rest.split_first_chunk()?;
        let journal = rest.try_into().ok()?;
        Some(Owner {
            zone: ZoneId {
                journal: JournalId(u128::from_le_bytes(journal)),
                zone: StableKey(u64::from_le_bytes(*zone)),
            },
            epoch: u64::from_le_bytes(*epoch),
            birth: (is_alive != 0).then_some(u64::from_le_bytes(*birth)),
        })
    };
    split().ok_or_else(|| {
        Unreachable(format!(
            "the value of the key {} is not an owner that this release knows: use another bucket, or the release \
             that wrote it",
            key.0
        ))
    })
}

impl OwnerStore for NatsOwners {
    fn change(
        &mut self,
        key: StableKey,
        from: Option<Owner>,
        to: Owner,
    ) -> Result<Option<Owner>, Unreachable> {
        self.repeat(key.0, || {
            loop {
                let (revision, value) = self.last(key.0)?;
                let owner = value.map(|value| decode(key, &value)).transpose();
                match owner {
                    // If this fails, the change may have been made all the same: what is there decides.
                    Ok(owner) if owner != Some(to) && owner == from => {
                        if self.publish(key.0, revision, encode(to))? {
                            return Ok(Ok(Some(to)));
                        }
                    }
                    owner => return Ok(owner),
                }
            }
        })?
    }
}
