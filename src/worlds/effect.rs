//! The effects of a world on others, held back until they may be seen.

use alloc::sync::Arc;
use core::{fmt, sync::atomic::Ordering::Relaxed};

use bevy_ecs::world::World;

use super::{
    address::Address,
    claim::MemberId,
    hub::Hub,
    news::{AwaitedFrom, fail_requests},
    parcel::{Parcel, Part, Refused, RequestId},
    refusal::report_refusal,
};
use crate::{
    message::{Directory, Request},
    sync::AtomicU64,
};

/// A world as a sender. It outlives the membership of its world, so that what the world has done last
/// still goes out.
#[derive(Clone)]
pub(super) struct Sender {
    pub(super) hub: Arc<Hub>,
    pub(super) world: MemberId,
    /// The number of parcels that the world has sent.
    sent: Arc<AtomicU64>,
}

impl Sender {
    pub(super) fn new(hub: Arc<Hub>, world: MemberId) -> Self {
        let sent = Arc::new(AtomicU64::new(0));
        Self { hub, world, sent }
    }

    /// Sends a parcel, and returns who has taken it, if another process has.
    pub(super) fn send(&self, parcel: Parcel) -> Result<Option<AwaitedFrom>, Refused> {
        let sequence = self.sent.fetch_add(1, Relaxed);
        self.hub.post_from(self.world, sequence, parcel)
    }

    /// Tells the hub that a key was bound or unbound.
    pub(super) fn set_key(&self, address: &Address, is_bound: bool) {
        match is_bound {
            true => self.hub.bind(address, self.world),
            false => self.hub.unbind(address, self.world),
        }
    }
}

/// Something that a world does to others, and that [`WorldLink::hold`](crate::worlds::WorldLink::hold) has held
/// back.
///
/// Dropping it means that it never happened.
pub struct Effect {
    pub(super) sender: Sender,
    pub(super) what: What,
}

/// An effect of a world on others.
pub(super) enum What {
    Parcel(Parcel),
    /// A key was bound or unbound.
    Key(Address, bool),
}

impl Effect {
    /// Returns the parcel that the world sends, if it does.
    #[must_use]
    pub fn parcel(&self) -> Option<&Parcel> {
        match &self.what {
            What::Parcel(parcel) => Some(parcel),
            What::Key(..) => None,
        }
    }

    /// Returns the address that an entity of the world gets (`true`) or loses, if one does.
    #[must_use]
    pub fn address(&self) -> Option<(&Address, bool)> {
        match &self.what {
            What::Parcel(_) => None,
            What::Key(address, is_bound) => Some((address, *is_bound)),
        }
    }

    /// Lets it happen. Release effects in the order in which they were held, from any thread. This does not
    /// wait.
    ///
    /// If a parcel is refused, its world learns of it as after
    /// [`post`](crate::worlds::ParcelCommandsExt::post).
    pub fn release(self) {
        let Self { sender, what } = self;
        let parcel = match what {
            What::Parcel(parcel) => parcel,
            What::Key(address, is_bound) => return sender.set_key(&address, is_bound),
        };
        let request = match &parcel.part {
            Part::Request { request, .. } => Some(*request),
            Part::Plain | Part::Reply(_) => None,
        };
        let hub = sender.hub.clone();
        match (sender.send(parcel), request) {
            (Ok(Some(taken_by)), Some(request)) => sender.hub.run(sender.world, move |world| {
                note_taken(world, &hub, request, taken_by);
            }),
            (Ok(_), _) => {}
            (Err(refused), _) => sender.hub.run(sender.world, move |world| {
                report_refusal(world, refused);
            }),
        }
    }
}

/// Notes who has taken a request. Its connection may have been lost since.
fn note_taken(world: &mut World, hub: &Hub, request: RequestId, taken_by: AwaitedFrom) {
    let directory = world.get_resource::<Directory>();
    let request = directory.map(|it| it.resolve(request.into()));
    let Some(entity) = request.and_then(Request::entity) else {
        return;
    };
    if let Ok(mut entity) = world.get_entity_mut(entity) {
        entity.insert(taken_by);
    }
    if let AwaitedFrom::One(session) = taken_by
        && !hub.is_connected(session)
    {
        fail_requests(world, session);
    }
}

impl fmt::Debug for Effect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut effect = f.debug_struct("Effect");
        match &self.what {
            What::Parcel(parcel) => effect.field("parcel", parcel),
            What::Key(address, is_bound) => {
                effect.field("key", address).field("is_bound", is_bound)
            }
        };
        effect.finish_non_exhaustive()
    }
}
