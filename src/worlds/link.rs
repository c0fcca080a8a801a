//! The link of a world to other worlds.

use alloc::{borrow::Cow, sync::Arc};
use core::fmt;

use bevy_ecs::{lifecycle::HookContext, prelude::*, world::DeferredWorld};

use super::{
    address::{Address, StableKey},
    parcel::{Parcel, Part, Refused},
};
use crate::{
    call::report,
    message::{
        Directory, Followers, KeyListener, Letter, NoAnswer, Recipient, RefusalReason, Topic,
        asker_of, give_up, send_urgent,
    },
};

/// Carries parcels between worlds: on threads of one process ([`WorldGroups`](crate::WorldGroups)),
/// or between processes with a messaging engine of your choice.
///
/// A link is the sending end. At the receiving end, pass each parcel that arrives to the
/// [`MessageSender::receive`](crate::MessageSender::receive) of the receiving world. A world that
/// ends drops its link.
///
/// No lock of this crate is held while a method is called, so a link may call back into
/// [`WorldGroups`](crate::WorldGroups), and a slow link does not hold up other worlds.
///
/// [`WorldGroups`](crate::WorldGroups) calls `bind` and `unbind` of a link one at a time, in the
/// order in which the keys change. The thread that makes such a call also passes on the changes that
/// other threads make meanwhile. A parcel does not wait for these calls, and may come first.
pub trait Link: Send + Sync + 'static {
    /// Takes a parcel for a group of worlds, without waiting.
    ///
    /// # Errors
    ///
    /// Returns [`Refused`] with the parcel if the link can't carry it. Success does not mean that
    /// the parcel will arrive.
    fn send(&self, parcel: Parcel) -> Result<(), Refused>;

    /// Tells the link that this side has the entity with this address.
    fn bind(&self, address: &Address);

    /// Tells the link that this side no longer has the entity with this address.
    fn unbind(&self, address: &Address);
}

/// The link of this world to others. Inserting it makes the world a member of a group.
#[derive(Resource)]
#[component(on_insert = on_insert, on_discard = on_discard)]
pub struct WorldLink {
    group: Cow<'static, str>,
    link: Arc<dyn Link>,
}

impl WorldLink {
    /// Creates a link that makes its world a member of `group`.
    #[must_use]
    pub fn new(group: impl Into<Cow<'static, str>>, link: impl Link) -> Self {
        Self {
            group: group.into(),
            link: Arc::new(link),
        }
    }

    /// Returns the name of this world's group.
    #[must_use]
    pub fn group(&self) -> &str {
        &self.group
    }

    /// Sends a parcel immediately.
    ///
    /// # Errors
    ///
    /// Returns [`Refused`] with the parcel if the link does not take it.
    pub fn post(&self, parcel: Parcel) -> Result<(), Refused> {
        self.link.send(parcel)
    }

    pub(super) fn address(&self, key: StableKey) -> Address {
        Address {
            group: self.group.clone(),
            key,
        }
    }

    /// Returns the name of the group, and a listener that tells the link which keys are bound and
    /// unbound.
    fn listener(&self) -> (Cow<'static, str>, Arc<KeyListener>) {
        let (group, link) = (self.group.clone(), self.link.clone());
        let listener = move |key, is_bound| {
            let address = Address {
                group: group.clone(),
                key: StableKey(key),
            };
            if is_bound {
                link.bind(&address);
            } else {
                link.unbind(&address);
            }
        };
        (self.group.clone(), Arc::new(listener))
    }
}

impl fmt::Debug for WorldLink {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WorldLink")
            .field("group", &self.group)
            .finish_non_exhaustive()
    }
}

/// Passes all keys of this world to the link, those already bound and those bound later.
fn on_insert(mut world: DeferredWorld, HookContext { entity, .. }: HookContext) {
    let listener = world.get(entity).map(WorldLink::listener);
    if let Some(mut directory) = world.get_resource_mut::<Directory>() {
        directory.listen(listener);
    }
}

/// Passes the keys of this world to a link that was inserted before the plugin.
pub(crate) fn connect(world: &mut World) {
    let listener = world.get_resource().map(WorldLink::listener);
    if let Some(mut directory) = world.get_resource_mut::<Directory>()
        && !directory.is_heard()
    {
        directory.listen(listener);
    }
}

fn on_discard(mut world: DeferredWorld, _: HookContext) {
    if let Some(mut directory) = world.get_resource_mut::<Directory>() {
        directory.listen(None);
    }
}

/// Sends a parcel from a world, and reports a refusal there.
pub(super) fn post(world: &mut World, parcel: Parcel) {
    let sent = match world.get_resource::<WorldLink>() {
        Some(link) => link.post(parcel),
        None => Err(parcel.refused(RefusalReason::NoLink)),
    };
    if let Err(refused) = sent {
        report_refusal(world, refused);
    }
}

/// Reports a refusal to the entity that made the request, or else to all followers of [`Refused`].
fn report_refusal(world: &mut World, refused: Refused) {
    if let Part::Request { request, .. } = refused.parcel.part
        && let Some(directory) = world.get_resource::<Directory>()
        && let request = directory.resolve(request.into())
        && let Some(asker) = asker_of(world, request)
    {
        // Worlds that have taken the parcel may still reply.
        if refused.reason != RefusalReason::InPart {
            give_up(world, asker, request, NoAnswer::Refused(refused.reason));
        }
        return;
    }
    let followers = world.get_resource::<Followers>();
    if followers.is_some_and(|followers| followers.is_followed(Topic::of::<Refused>())) {
        send_urgent(world, Letter::plain(Recipient::All, refused));
    } else {
        report::<Parcel>(world, BevyError::warning(refused));
    }
}
