//! The link of a world to other worlds.

use alloc::{borrow::Cow, boxed::Box, sync::Arc};
use core::{fmt, sync::atomic::Ordering::Relaxed};
use std::sync::OnceLock;

use bevy_app::App;
use bevy_ecs::{lifecycle::HookContext, prelude::*, world::DeferredWorld};

use super::{
    address::{Address, StableKey},
    hub::Hub,
    members::MemberId,
    news::{AwaitedFrom, fail_requests, report_refusal},
    parcel::{Parcel, Refused},
};
use crate::{
    message::{KeyListener, Mailbag, MessageSender, RefusalReason, Request},
    sync::AtomicU64,
};

/// The link of this world to others. A world that is a member of [`WorldGroups`](crate::worlds::WorldGroups) has
/// it, and leaves its group when it is removed.
#[derive(Resource)]
#[component(on_insert = on_insert, on_discard = on_discard)]
pub struct WorldLink {
    pub(super) group: Cow<'static, str>,
    sender: Sender,
    hold: Arc<OnceLock<Box<Hold>>>,
}

/// Takes what a world does to others.
type Hold = dyn Fn(Effect) + Send + Sync;

/// A world as a sender. It outlives the membership of its world, so that what the world has done last
/// still goes out.
#[derive(Clone)]
struct Sender {
    hub: Arc<Hub>,
    world: MemberId,
    /// The number of parcels that the world has sent.
    sent: Arc<AtomicU64>,
}

/// Something that a world does to others, and that [`WorldLink::hold`](crate::worlds::WorldLink::hold) has held
/// back.
///
/// Dropping it means that it never happened.
pub struct Effect {
    sender: Sender,
    what: What,
}

/// An effect of a world on others.
enum What {
    Parcel(Parcel),
    /// A key was bound or unbound.
    Key(Address, bool),
}

/// Makes the world of an app a member of a group, and returns its id.
pub(super) fn join(hub: &Arc<Hub>, group: Cow<'static, str>, app: &mut App) -> MemberId {
    let sender = MessageSender::from_world(app.world_mut());
    let id = hub.add_world(group.clone(), sender);
    app.insert_resource(WorldLink {
        group,
        sender: Sender {
            hub: hub.clone(),
            world: id,
            sent: Arc::default(),
        },
        hold: Arc::default(),
    });
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
        let is_first = self.hold.set(Box::new(hold)).is_ok();
        assert!(is_first, "a world can be held only once");
    }

    /// Announces only `key` to other processes, from now on. Worlds of this process reach all its entities, as
    /// before.
    ///
    /// A world with many entities costs other processes nothing this way. They refuse a parcel to any other key with [`RefusalReason::UnknownKey`]. If an entity of this world makes a request to another process,
    /// the reply comes by `key`, and goes to the entity if it is still in this world.
    pub fn announce_only(&self, key: StableKey) {
        let Self { group, sender, .. } = self;
        let group = group.clone();
        let only = Address { group, key };
        sender.hub.announce_only(&only, sender.world);
    }

    /// Sends a parcel immediately. Never waits.
    ///
    /// # Errors
    ///
    /// Returns [`Refused`] with the parcel if it is refused at once. If another process refuses it later,
    /// this world learns of it as after [`post`](crate::worlds::ParcelCommandsExt::post).
    pub fn post(&self, parcel: Parcel) -> Result<(), Refused> {
        self.sender
            .act(What::Parcel(parcel), &self.hold)
            .map(|_| ())
    }

    /// Returns the name of the group, and a listener that tells the hub which keys are bound and
    /// unbound.
    fn listener(&self) -> (Cow<'static, str>, Arc<KeyListener>) {
        let Self {
            group,
            sender,
            hold,
        } = self;
        let (sender, hold, name) = (sender.clone(), hold.clone(), group.clone());
        let listener = move |key, is_bound| {
            let group = name.clone();
            let key = StableKey(key);
            let what = What::Key(Address { group, key }, is_bound);
            // Only a parcel can be refused.
            sender.act(what, &hold).ok();
        };
        (group.clone(), Arc::new(listener))
    }
}

impl Sender {
    /// Does something to other worlds, unless it is held back. Returns who has taken a parcel, if another
    /// process has.
    fn act(&self, what: What, hold: &OnceLock<Box<Hold>>) -> Result<Option<AwaitedFrom>, Refused> {
        let Some(hold) = hold.get() else {
            return self.release(what);
        };
        let sender = self.clone();
        hold(Effect { sender, what });
        Ok(None)
    }

    fn release(&self, what: What) -> Result<Option<AwaitedFrom>, Refused> {
        match what {
            What::Parcel(parcel) => {
                let sequence = self.sent.fetch_add(1, Relaxed);
                return self.hub.post_from(self.world, sequence, parcel);
            }
            What::Key(address, true) => self.hub.bind(&address, self.world),
            What::Key(address, false) => self.hub.unbind(&address, self.world),
        }
        Ok(None)
    }
}

/// A world leaves its group when its link is dropped, for any reason.
impl Drop for WorldLink {
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
    if let Some(mut mailbag) = world.get_resource_mut::<Mailbag>() {
        mailbag.directory.listen(listener);
    }
}

/// Passes the keys of this world to a link that was inserted before the plugin.
pub(crate) fn connect(world: &mut World) {
    let listener = world.get_resource().map(WorldLink::listener);
    if let Some(mut mailbag) = world.get_resource_mut::<Mailbag>()
        && !mailbag.directory.is_heard()
    {
        mailbag.directory.listen(listener);
    }
}

fn on_discard(mut world: DeferredWorld, _: HookContext) {
    if let Some(mut mailbag) = world.get_resource_mut::<Mailbag>() {
        mailbag.directory.listen(None);
    }
}

/// Sends a parcel from a world, and reports a refusal there. Returns who has taken the parcel, if
/// another process has.
pub(super) fn post(world: &mut World, parcel: Parcel) -> Option<AwaitedFrom> {
    let sent = match world.get_resource::<WorldLink>() {
        Some(link) => link.sender.act(What::Parcel(parcel), &link.hold),
        None => Err(parcel.refused(RefusalReason::NoLink)),
    };
    sent.unwrap_or_else(|refused| {
        report_refusal(world, refused);
        None
    })
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
        let request = match &what {
            What::Parcel(parcel) => parcel.request(),
            What::Key(..) => None,
        };
        let hub = sender.hub.clone();
        match (sender.release(what), request) {
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
fn note_taken(world: &mut World, hub: &Hub, request: Request, taken_by: AwaitedFrom) {
    let mailbag = world.get_resource::<Mailbag>();
    let request = mailbag.map(|it| it.directory.resolve(request));
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
