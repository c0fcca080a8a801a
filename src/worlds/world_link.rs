//! The link of a world to other worlds.

use alloc::{borrow::Cow, boxed::Box, sync::Arc};
use core::fmt;
use std::sync::OnceLock;

use bevy_app::App;
use bevy_ecs::{lifecycle::HookContext, prelude::*, world::DeferredWorld};

use super::{
    address::{Address, StableKey},
    claim::MemberId,
    effect::{Effect, Sender, What},
    hub::Hub,
    news::AwaitedFrom,
    parcel::{Parcel, Refused},
    refusal::report_refusal,
};
use crate::message::{Directory, KeyListener, MessageSender, RefusalReason};

/// The link of this world to others. A world that is a member of [`WorldGroups`](crate::worlds::WorldGroups) has
/// it, and leaves its group when it is removed.
#[derive(Resource)]
#[component(on_insert = on_insert, on_discard = on_discard)]
pub struct WorldLink {
    group: Cow<'static, str>,
    member: Arc<Membership>,
}

/// The membership of a world in a group.
struct Membership {
    group: Cow<'static, str>,
    sender: Sender,
    hold: OnceLock<Box<Hold>>,
}

/// Takes what a world does to others.
type Hold = dyn Fn(Effect) + Send + Sync;

/// Makes the world of an app a member of a group, and returns its id.
pub(super) fn join(hub: &Arc<Hub>, group: Cow<'static, str>, app: &mut App) -> MemberId {
    let sender = MessageSender::from_world(app.world_mut());
    let id = hub.add_world(group.clone(), sender);
    let member = Membership {
        group: group.clone(),
        sender: Sender::new(hub.clone(), id),
        hold: OnceLock::new(),
    };
    let member = Arc::new(member);
    app.insert_resource(WorldLink { group, member });
    id
}

impl WorldLink {
    /// Returns the name of this world's group.
    #[must_use]
    pub fn group(&self) -> &str {
        &self.group
    }

    /// Holds back from now on what this world does to others: the parcels that it sends, and the keys that
    /// its entities get and lose. `hold` gets them in order, at once, on the thread of the world. They
    /// happen when you [release](Effect::release) them.
    ///
    /// This is how a world that stores its state shows only what has been stored. Parcels between its own
    /// entities are not held.
    ///
    /// # Panics
    ///
    /// Panics if the world is held already.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::sync::mpsc;
    /// use bevy_app::prelude::*;
    /// use bevy_due::{
    ///     message::{Delivery, Packet},
    ///     prelude::*,
    ///     worlds::{Parcel, WorldGroups, WorldLink},
    /// };
    ///
    /// let groups = WorldGroups::new();
    /// let [mut bank, mut customer] = [App::new(), App::new()];
    /// for (name, app) in [("bank", &mut bank), ("customer", &mut customer)] {
    ///     app.add_plugins((bevy_time::TimePlugin, DuePlugin::default()));
    ///     groups.add(name, app);
    /// }
    /// let (hold, held) = mpsc::channel();
    /// let link = bank.world().resource::<WorldLink>();
    /// link.hold(move |effect| _ = hold.send(effect));
    ///
    /// link.post(Parcel::new("customer", Delivery::All, Packet::new(1, *b"paid")))?;
    /// let effect = held.recv()?;
    /// // Here the bank writes its books to the disk.
    /// effect.release();
    /// # Ok::<(), bevy_ecs::error::BevyError>(())
    /// ```
    pub fn hold(&self, hold: impl Fn(Effect) + Send + Sync + 'static) {
        let is_first = self.member.hold.set(Box::new(hold)).is_ok();
        assert!(is_first, "a world can be held only once");
    }

    /// Sends a parcel immediately. Never waits.
    ///
    /// # Errors
    ///
    /// Returns [`Refused`] with the parcel if it is refused at once. If another process refuses it later,
    /// this world learns of it as after [`post`](crate::worlds::ParcelCommandsExt::post).
    pub fn post(&self, parcel: Parcel) -> Result<(), Refused> {
        self.send(parcel).map(|_| ())
    }

    /// Sends a parcel, and returns who has taken it, if another process has.
    pub(super) fn send(&self, parcel: Parcel) -> Result<Option<AwaitedFrom>, Refused> {
        let Membership { sender, hold, .. } = &*self.member;
        let Some(hold) = hold.get() else {
            return sender.send(parcel);
        };
        hold(Effect {
            sender: sender.clone(),
            what: What::Parcel(parcel),
        });
        Ok(None)
    }

    pub(super) fn address(&self, key: StableKey) -> Address {
        Address {
            group: self.group.clone(),
            key,
        }
    }

    /// Returns the name of the group, and a listener that tells the hub which keys are bound and
    /// unbound.
    fn listener(&self) -> (Cow<'static, str>, Arc<KeyListener>) {
        let member = self.member.clone();
        let listener = move |key, is_bound| {
            let Membership {
                group,
                sender,
                hold,
            } = &*member;
            let address = Address {
                group: group.clone(),
                key: StableKey(key),
            };
            match hold.get() {
                Some(hold) => hold(Effect {
                    sender: sender.clone(),
                    what: What::Key(address, is_bound),
                }),
                None => sender.set_key(&address, is_bound),
            }
        };
        (self.group.clone(), Arc::new(listener))
    }
}

/// A world leaves its group when it is dropped, for any reason.
impl Drop for Membership {
    fn drop(&mut self) {
        let Sender { hub, world, .. } = &self.sender;
        hub.remove_world(self.group.clone(), *world);
    }
}

impl fmt::Debug for WorldLink {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WorldLink")
            .field("group", &self.group)
            .finish_non_exhaustive()
    }
}

/// Passes all keys of this world to the hub, those already bound and those bound later.
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

/// Sends a parcel from a world, and reports a refusal there. Returns who has taken the parcel, if
/// another process has.
pub(super) fn post(world: &mut World, parcel: Parcel) -> Option<AwaitedFrom> {
    let sent = match world.get_resource::<WorldLink>() {
        Some(link) => link.send(parcel),
        None => Err(parcel.refused(RefusalReason::NoLink)),
    };
    sent.unwrap_or_else(|refused| {
        report_refusal(world, refused);
        None
    })
}
