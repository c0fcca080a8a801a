//! Actions that a timer runs when it fires.

use alloc::borrow::Cow;
use core::{any::type_name, fmt};

use bevy_ecs::{error::CommandOutput, lifecycle::HookContext, prelude::*, world::DeferredWorld};
#[cfg(feature = "bevy_reflect")]
use bevy_reflect::{Reflect, std_traits::ReflectDefault};
#[cfg(all(feature = "bevy_reflect", feature = "serialize"))]
use bevy_reflect::{ReflectDeserialize, ReflectSerialize};

use super::{
    TimerFired,
    handlers::{Handler, Place, expect_handler, find_handler},
    lines::change_armed,
};
use crate::call::{call_with_world, to_result};

/// The action that the [`Timer`](crate::Timer) on this entity runs at every firing.
///
/// The action runs after the observers of [`TimerFired`]. It is skipped if an observer cancelled or
/// re-armed the timer. An action that an observer has just inserted runs from the next firing on.
///
/// Timers without an action pay nothing for the feature. Errors go to Bevy's error handler, with the
/// name of the code and the timer's entity. All timers continue unless that handler panics, as the
/// default handler does for errors of the usual severity.
///
/// [`despawn`](Self::despawn) and [`named`](Self::named) are data and can be saved. A closure can't
/// be saved. The default action does nothing.
///
/// # Examples
///
/// ```
/// use bevy_app::prelude::*;
/// use bevy_due::{Timer, prelude::*};
/// use bevy_ecs::prelude::*;
/// use bevy_time::{TimePlugin, TimeUpdateStrategy};
///
/// #[derive(Component)]
/// struct Burning;
///
/// let mut app = App::new();
/// app.add_plugins((TimePlugin, DuePlugin::default())).insert_resource(
///     TimeUpdateStrategy::ManualDuration(core::time::Duration::from_millis(200)),
/// );
/// let ignite = TimerAction::call(|world, fired| {
///     world.entity_mut(fired.entity()).insert(Burning);
/// });
/// let torch = app.world_mut().spawn((Timer::after_secs(0.1), ignite)).id();
/// app.update(); // Bevy's first frame takes no time.
/// app.update();
/// assert!(app.world().entity(torch).contains::<Burning>());
/// ```
#[doc(alias("callback", "handler"))]
#[derive(Component, Clone, Default)]
#[component(immutable, on_insert = on_insert, on_discard = on_discard)]
#[cfg_attr(
    feature = "bevy_reflect",
    derive(Reflect),
    reflect(opaque),
    reflect(Component, Clone, Debug, Default)
)]
#[cfg_attr(
    all(feature = "bevy_reflect", feature = "serialize"),
    reflect(Serialize, Deserialize)
)]
pub struct TimerAction(Kind);

#[derive(Clone, Default)]
enum Kind {
    #[default]
    Nothing,
    Despawn,
    DespawnOwner,
    Named(Cow<'static, str>),
    Call(Handler),
}

impl TimerAction {
    /// Despawns the timer's entity.
    #[must_use]
    pub fn despawn() -> Self {
        Self(Kind::Despawn)
    }

    /// Despawns the [owner](crate::OwnedBy) of the timer, and the timer with it.
    #[must_use]
    pub fn despawn_owner() -> Self {
        Self(Kind::DespawnOwner)
    }

    /// Runs the handler that is registered under this name with
    /// [`add_timer_handler`](crate::DueWorldExt::add_timer_handler).
    ///
    /// The name is data, so the action can be saved. If there is no such handler at the start of
    /// the next run, Bevy's error handler gets a warning. If there is none when the timer fires, it
    /// gets an error.
    #[must_use]
    pub fn named(name: impl Into<Cow<'static, str>>) -> Self {
        Self(Kind::Named(name.into()))
    }

    /// Calls a closure with the world and the [`TimerFired`].
    ///
    /// The closure may return a `Result`.
    ///
    /// # Examples
    ///
    /// ```
    /// use bevy_due::{Timer, TimerFired, prelude::*};
    /// use bevy_ecs::prelude::*;
    ///
    /// #[derive(Component)]
    /// struct Health(u32);
    ///
    /// let damage = 3;
    /// let bleed = TimerAction::call(move |world: &mut World, fired: TimerFired| -> Result {
    ///     let mut victim = world.get_entity_mut(fired.owner())?;
    ///     let mut health = victim.get_mut::<Health>().ok_or("nothing to hurt")?;
    ///     health.0 = health.0.saturating_sub(damage);
    ///     Ok(())
    /// });
    /// let bleeding = (Timer::every_secs(1.0).times(10), bleed);
    /// # World::new().spawn(bleeding);
    /// ```
    ///
    /// Some common actions:
    ///
    /// ```
    /// use bevy_due::prelude::*;
    /// use bevy_ecs::{prelude::*, system::SystemId};
    /// # #[derive(Component, Clone)]
    /// # struct Stunned;
    /// # #[derive(EntityEvent)]
    /// # struct Explode { entity: Entity }
    /// # #[derive(Message)]
    /// # struct Saved;
    /// # fn one_shot_system() -> SystemId<In<Entity>> { World::new().register_system(|_: In<Entity>| ()) }
    ///
    /// let wake = TimerAction::call(|world, fired| {
    ///     world.entity_mut(fired.owner()).remove::<Stunned>();
    /// });
    /// let explode = TimerAction::call(|world, fired| {
    ///     world.trigger(Explode { entity: fired.entity() });
    /// });
    /// let save = TimerAction::call(|world, _| {
    ///     world.write_message(Saved);
    /// });
    /// let system = one_shot_system();
    /// let run = TimerAction::call(move |world, fired| -> Result {
    ///     Ok(world.run_system_with(system, fired.entity())?)
    /// });
    /// # let _ = (wake, explode, save, run);
    /// ```
    #[must_use]
    pub fn call<F, Out>(closure: F) -> Self
    where
        F: Fn(&mut World, TimerFired) -> Out + Send + Sync + 'static,
        Out: CommandOutput,
    {
        Self::call_as(type_name::<F>(), move |world, fired| {
            to_result(closure(world, fired))
        })
    }

    /// Calls a closure that error reports and debug output call by this name.
    pub(super) fn call_as(
        name: &'static str,
        call: impl Fn(&mut World, TimerFired) -> Result + Send + Sync + 'static,
    ) -> Self {
        Self(Kind::Call(Handler::new(Place::Code(name), call)))
    }

    /// Returns the type of the closure, if the action is one.
    #[cfg(feature = "serialize")]
    pub(crate) fn closure(&self) -> Option<&'static str> {
        match &self.0 {
            Kind::Call(Handler {
                place: Place::Code(name),
                ..
            }) => Some(name),
            _ => None,
        }
    }

    /// Runs the action of the timer that fired, and reports its error, if any.
    pub(crate) fn act(world: &mut World, fired: &TimerFired) {
        let Some(action) = world.get::<Self>(fired.entity()) else {
            return;
        };
        let handler = match &action.0 {
            Kind::Nothing => return,
            Kind::Despawn => return despawn(world, fired.entity()),
            Kind::DespawnOwner => return despawn(world, fired.owner()),
            Kind::Call(handler) => Ok(handler.clone()),
            Kind::Named(name) => find_handler(world, name),
        };
        let entity = fired.entity();
        match handler {
            Ok(Handler { place, call }) => {
                call_with_world::<Self>(world, place, entity, |world| call(world, *fired));
            }
            Err(unknown) => {
                call_with_world::<Self>(world, "TimerAction", entity, |_| Err(unknown.into()));
            }
        }
    }
}

impl fmt::Debug for TimerAction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut tuple = f.debug_tuple("TimerAction");
        match &self.0 {
            Kind::Nothing => tuple.field(&format_args!("nothing")),
            Kind::Despawn => tuple.field(&format_args!("despawn")),
            Kind::DespawnOwner => tuple.field(&format_args!("despawn owner")),
            Kind::Named(name) => tuple.field(&name),
            Kind::Call(Handler { place, .. }) => tuple.field(&format_args!("call {place}")),
        };
        tuple.finish()
    }
}

/// Despawns an entity, unless it has despawned already.
fn despawn(world: &mut World, entity: Entity) {
    world.try_despawn(entity).ok();
    world.flush();
}

fn on_insert(mut world: DeferredWorld, HookContext { entity, .. }: HookContext) {
    change_armed(&mut world, entity, |timer| timer.set_acts(true));
    check_handler(&mut world, entity);
}

/// Checks that the handler of a named action exists.
pub(crate) fn check_handler(world: &mut DeferredWorld, entity: Entity) {
    if let Some(TimerAction(Kind::Named(name))) = world.get(entity) {
        let name = name.clone();
        expect_handler(world, entity, name);
    }
}

fn on_discard(mut world: DeferredWorld, HookContext { entity, .. }: HookContext) {
    change_armed(&mut world, entity, |timer| timer.set_acts(false));
}

/// The serialized form of a [`TimerAction`].
#[cfg(feature = "serialize")]
#[derive(serde::Serialize, serde::Deserialize)]
#[serde(rename = "TimerAction")]
enum ActionData {
    Nothing,
    Despawn,
    DespawnOwner,
    Named(Cow<'static, str>),
}

#[cfg(feature = "serialize")]
impl serde::Serialize for TimerAction {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let data = match &self.0 {
            Kind::Nothing => ActionData::Nothing,
            Kind::Despawn => ActionData::Despawn,
            Kind::DespawnOwner => ActionData::DespawnOwner,
            Kind::Named(name) => ActionData::Named(name.clone()),
            Kind::Call(_) => {
                return Err(serde::ser::Error::custom(alloc::format!(
                    "a closure can't be saved, use `TimerAction::named`: {self:?}"
                )));
            }
        };
        data.serialize(serializer)
    }
}

#[cfg(feature = "serialize")]
impl<'de> serde::Deserialize<'de> for TimerAction {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Ok(match ActionData::deserialize(deserializer)? {
            ActionData::Nothing => Self::default(),
            ActionData::Despawn => Self::despawn(),
            ActionData::DespawnOwner => Self::despawn_owner(),
            ActionData::Named(name) => Self::named(name),
        })
    }
}
