//! The names by which other worlds know this world and its entities.

use bevy_ecs::{lifecycle::HookContext, prelude::*, world::DeferredWorld};
use bevy_platform::collections::HashMap;
#[cfg(feature = "worlds")]
use {
    alloc::borrow::Cow, bevy_platform::sync::Arc, core::hash::BuildHasher, std::hash::RandomState,
};

#[cfg(all(feature = "serialize", feature = "worlds"))]
use super::request::RemoteAsker;
use super::{mailbag::Mailbag, request::Request};
use crate::journal::Journal;
#[cfg(feature = "serialize")]
use crate::timer::OpenRequest;

/// The names by which other worlds know this world and its entities.
#[derive(Default)]
pub(crate) struct Directory {
    entities: HashMap<u64, Entity>,
    /// The requests that have moved to this world or were spawned again, by the name under which they were
    /// made.
    moved: HashMap<Request, Entity>,
    /// The entities whose keys have changed, if they are noted.
    pub(crate) rebound: Option<Journal<Entity, ()>>,
    /// The key with which this world makes the tokens of its requests, once another world may know one.
    #[cfg(feature = "worlds")]
    token_key: Option<RandomState>,
    /// The name of this world's group, and a function that is called for each key that is bound or
    /// unbound.
    #[cfg(feature = "worlds")]
    listener: Option<(Cow<'static, str>, Arc<KeyListener>)>,
}

impl Directory {
    /// Returns the entity with a key.
    pub(crate) fn entity(&self, key: u64) -> Option<Entity> {
        self.entities.get(&key).copied()
    }

    /// Returns a request as seen from this world: a request that was made here has an entity.
    pub(crate) fn resolve(&self, request: Request) -> Request {
        let made_here = match request.name() {
            Some((token, number)) if Some(token) == self.token(number) => {
                Entity::try_from_bits(number).map_or(request, Request::here)
            }
            _ => request,
        };
        let moved = self.moved.get(&request);
        let moved = moved.or_else(|| self.moved.get(&made_here));
        moved.map_or(made_here, |&moved| Request::here(moved))
    }

    /// Returns the token of a request of this world, if another world may know one.
    #[cfg(feature = "worlds")]
    fn token(&self, number: u64) -> Option<u64> {
        let key = self.token_key.as_ref()?;
        Some(key.hash_one(number))
    }

    #[cfg(not(feature = "worlds"))]
    fn token(&self, _: u64) -> Option<u64> {
        None
    }
}

/// Called with each key that is bound (`true`) or unbound (`false`).
#[cfg(feature = "worlds")]
pub(crate) type KeyListener = dyn Fn(u64, bool) + Send + Sync;

#[cfg(feature = "worlds")]
impl Directory {
    /// Lets other worlds know the requests of this world.
    #[cfg(feature = "serialize")]
    pub(crate) fn name_requests(&mut self) {
        self.token_key.get_or_insert_default();
    }

    /// Notes that the key of an entity changes.
    pub(crate) fn note(&mut self, entity: Entity) {
        if let Some(rebound) = &mut self.rebound {
            rebound.note(entity, || ());
        }
    }

    /// Returns the token and the number by which other worlds know a request. They can't guess the token
    /// of a request that was not put to them.
    pub(crate) fn name(&mut self, request: Entity) -> (u64, u64) {
        let key = self.token_key.get_or_insert_default();
        let number = request.to_bits();
        (key.hash_one(number), number)
    }

    /// Gives an entity a key, and returns the entity that had the key before, if any.
    pub(crate) fn bind(&mut self, key: u64, entity: Entity) -> Option<Entity> {
        let before = self.entities.insert(key, entity);
        self.tell(key, entity, true);
        before
    }

    /// Takes a key from an entity, if the entity still has it.
    pub(crate) fn unbind(&mut self, key: u64, entity: Entity) {
        if self.entity(key) == Some(entity) {
            self.tell(key, entity, false);
            self.entities.remove(&key);
        }
    }

    /// Tells other worlds that an entity with a key is here or not, if the entity has the key.
    pub(crate) fn tell(&self, key: u64, entity: Entity, is_here: bool) {
        if let Some((_, listener)) = self.listener.as_ref()
            && self.entity(key) == Some(entity)
        {
            listener(key, is_here);
        }
    }

    /// Returns `true` if there is a listener.
    pub(crate) fn is_heard(&self) -> bool {
        self.listener.is_some()
    }

    /// Sets the listener, and passes it all keys that are already bound.
    pub(crate) fn listen(&mut self, listener: Option<(Cow<'static, str>, Arc<KeyListener>)>) {
        if let Some((_, listener)) = &listener {
            for &key in self.entities.keys() {
                listener(key, true);
            }
        }
        self.listener = listener;
    }
}

#[cfg(all(feature = "serialize", feature = "worlds"))]
impl Directory {
    /// Returns how another world can reply to a request of the entity with this key.
    pub(crate) fn remote_asker(&self, key: u64, request: Request) -> Option<RemoteAsker> {
        let (group, _) = self.listener.as_ref()?;
        let number = request.entity()?.to_bits();
        Some(RemoteAsker {
            group: group.clone(),
            key,
            token: self.token(number)?,
            number,
        })
    }
}

/// Returns the name under which other worlds know the request of an entity, if they know any request
/// of this world.
#[cfg(feature = "serialize")]
pub(crate) fn name_of_request(world: &World, request: Entity) -> Option<(u64, u64)> {
    let moved = world.get::<MovedRequest>(request);
    let request = moved.map_or(Request::here(request), |moved| moved.0);
    request.name().or_else(|| {
        let number = request.entity()?.to_bits();
        let token = world.get_resource::<Mailbag>()?.directory.token(number)?;
        Some((token, number))
    })
}

/// Returns the entity of the request that has this name, if it is open in this world.
#[cfg(feature = "serialize")]
pub(crate) fn request_with_name(world: &World, (token, number): (u64, u64)) -> Option<Entity> {
    let mailbag = world.get_resource::<Mailbag>()?;
    let request = mailbag.directory.resolve(Request::elsewhere(token, number));
    let request = request.entity()?;
    world.get::<OpenRequest>(request).map(|_| request)
}

/// The name under which the request of an entity was made: in the world that it came from, or before a
/// restore spawned it again.
#[derive(Component, Clone, Copy, Debug, PartialEq, Eq)]
#[component(immutable, on_insert = on_insert, on_discard = on_discard)]
pub(crate) struct MovedRequest(Request);

impl MovedRequest {
    #[cfg(feature = "serialize")]
    pub(crate) fn elsewhere((token, number): (u64, u64)) -> Self {
        Self(Request::elsewhere(token, number))
    }

    /// Creates the name of a request that was made on an entity of this world.
    pub(crate) fn here(entity: Entity) -> Self {
        Self(Request::here(entity))
    }
}

fn on_insert(mut world: DeferredWorld, HookContext { entity, .. }: HookContext) {
    if let Some(&MovedRequest(name)) = world.get(entity)
        && let Some(mut mailbag) = world.get_resource_mut::<Mailbag>()
    {
        mailbag.directory.moved.insert(name, entity);
    }
}

fn on_discard(mut world: DeferredWorld, HookContext { entity, .. }: HookContext) {
    if let Some(&MovedRequest(name)) = world.get(entity)
        && let Some(mut mailbag) = world.get_resource_mut::<Mailbag>()
        && mailbag.directory.moved.get(&name) == Some(&entity)
    {
        mailbag.directory.moved.remove(&name);
    }
}
