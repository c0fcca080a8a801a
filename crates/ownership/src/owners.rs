//! Stores that decide which zone owns an entity.

use core::time::Duration;
use std::{io, sync::mpsc, thread};

use bevy_due::{
    message::{MessageSender, SendError},
    worlds::StableKey,
};
use bevy_ecs::world::World;
use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::{ids::ZoneId, report::report};

/// A store outside of the shards that decides which zone owns an entity.
///
/// Without one, the journals decide: an entity belongs to the zone to which the last owner has given it. That
/// needs nothing but the shards, and is what most games want. A store also knows the owner when a shard is
/// lost with its disk, so [`Shard::reclaim`](crate::Shard::reclaim) takes back only what nobody else has.
///
/// The calls may wait. They run on a thread of their own, and are repeated while the store is [unreachable](Unreachable),
/// of which the error handler of the world hears once for each call. Entities that are to move act on in their old zone
/// meanwhile. After two seconds their move fails.
///
/// A key belongs to one entity until the store hears that it has despawned. A second entity with the key can't move
/// meanwhile, and is reported after two seconds.
///
/// # Examples
///
/// A store in memory, for a test:
///
/// ```
/// use std::collections::HashMap;
/// use bevy_due::worlds::StableKey;
/// use bevy_due_ownership::{JournalId, Owner, OwnerStore, Unreachable, ZoneId};
///
/// #[derive(Default)]
/// struct InMemory(HashMap<StableKey, Owner>);
///
/// impl OwnerStore for InMemory {
///     fn change(
///         &mut self,
///         key: StableKey,
///         from: Option<Owner>,
///         to: Owner,
///     ) -> Result<Option<Owner>, Unreachable> {
///         if self.0.get(&key).copied() == from {
///             self.0.insert(key, to);
///         }
///         Ok(self.0.get(&key).copied())
///     }
/// }
///
/// const HERO: StableKey = StableKey(7);
/// let zone = |zone| ZoneId { journal: JournalId(1), zone: StableKey(zone) };
/// let first = Owner { zone: zone(1), epoch: 1, birth: Some(5) };
/// let second = Owner { zone: zone(2), epoch: 2, ..first };
///
/// let mut store = InMemory::default();
/// assert_eq!(store.change(HERO, None, first)?, Some(first));
/// assert_eq!(store.change(HERO, Some(first), second)?, Some(second));
/// // It was made before.
/// assert_eq!(store.change(HERO, Some(first), second)?, Some(second));
/// // Another zone was faster.
/// assert_eq!(store.change(HERO, None, first)?, Some(second));
/// # Ok::<(), Unreachable>(())
/// ```
pub trait OwnerStore: Send + 'static {
    /// Makes `to` the owner if `from` is, or if there is none and `from` is `None`. Returns the owner that there is then,
    /// which must be durable: `to` if this or an earlier call has made the change, and otherwise the current owner, if any.
    /// A call with `to` as `from` changes nothing, and asks for the owner.
    ///
    /// # Errors
    ///
    /// Returns an error if the store can't be reached. Perhaps it has made the change.
    fn change(
        &mut self,
        key: StableKey,
        from: Option<Owner>,
        to: Owner,
    ) -> Result<Option<Owner>, Unreachable>;
}

/// Who owns an entity.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Owner {
    /// The zone.
    pub zone: ZoneId,
    /// The number of the owner: one more with each owner.
    pub epoch: u64,
    /// Tells entities apart that have used the same key, one after another. `None` if the entity has despawned, and its
    /// key is free.
    pub birth: Option<u64>,
}

/// A store can't be reached, for this reason.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("the store of owners can't be reached: {0}")]
pub struct Unreachable(pub String);

/// How long a question waits before it is asked again.
const ASK_AGAIN: Duration = Duration::from_millis(100);

type Question = Box<dyn FnOnce(&mut dyn OwnerStore) + Send>;

/// The thread that asks a store.
#[derive(Clone, Debug)]
pub(crate) struct Referee(mpsc::Sender<Question>);

impl Referee {
    /// Starts the thread. It ends when all referees are gone.
    pub(crate) fn start(mut store: impl OwnerStore) -> io::Result<Self> {
        let (ask, questions) = mpsc::channel::<Question>();
        let thread = thread::Builder::new().name("due owners".into());
        thread.spawn(move || {
            for question in questions {
                question(&mut store);
            }
        })?;
        Ok(Self(ask))
    }

    /// Asks until the store answers, and tells the world. The first error is reported.
    pub(crate) fn ask<T: Send + 'static>(
        &self,
        world: MessageSender,
        question: impl Fn(&mut dyn OwnerStore) -> Result<T, Unreachable> + Send + 'static,
        answer: impl FnOnce(&mut World, T) + Send + 'static,
    ) {
        let question = move |store: &mut dyn OwnerStore| {
            let mut is_reported = false;
            while !world.is_closed() {
                match question(store) {
                    Ok(found) => {
                        return tell(&world, move |world| answer(world, found));
                    }
                    Err(error) if !is_reported => {
                        is_reported = true;
                        tell(&world, move |world| report(world, error.clone()));
                    }
                    Err(_) => {}
                }
                thread::sleep(ASK_AGAIN);
            }
        };
        // The thread ends only when this is dropped.
        self.0.send(Box::new(question)).ok();
    }
}

/// Runs a function in a world, as soon as its inbox has room.
fn tell(world: &MessageSender, mut call: impl FnOnce(&mut World) + Send + 'static) {
    while let Err(SendError::Full(refused)) = world.run(call) {
        call = refused;
        thread::sleep(ASK_AGAIN);
    }
}
