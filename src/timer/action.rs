//! Actions that a timer runs when it fires.

#[cfg(feature = "serialize")]
mod data;

use alloc::{borrow::Cow, boxed::Box, vec::Vec};
use core::{any::type_name, fmt};

use bevy_ecs::{error::CommandOutput, lifecycle::HookContext, prelude::*, world::DeferredWorld};
use bevy_platform::sync::Arc;
#[cfg(feature = "bevy_reflect")]
use bevy_reflect::{Reflect, std_traits::ReflectDefault};
#[cfg(all(feature = "bevy_reflect", feature = "serialize"))]
use bevy_reflect::{ReflectDeserialize, ReflectSerialize};

use super::{
    TimerFired,
    handlers::{Call, Handler, Place, expect_handler, find_handler, share},
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
/// be saved: use [`named_with`](Self::named_with) instead, which hands the captured values to a
/// handler as bytes. The default action does nothing.
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
/// let torch = app.world_mut().spawn((Timer::after(0.1), ignite)).id();
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
    type_path = "bevy_due",
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
    Named {
        name: Cow<'static, str>,
        data: Box<[u8]>,
    },
    Call(&'static str, Arc<Call>),
}

impl TimerAction {
    /// Returns `true` if another action runs the same code with the same data.
    pub(crate) fn is_same(&self, other: &Self) -> bool {
        match (&self.0, &other.0) {
            (Kind::Nothing, Kind::Nothing)
            | (Kind::Despawn, Kind::Despawn)
            | (Kind::DespawnOwner, Kind::DespawnOwner) => true,
            (
                Kind::Named { name, data },
                Kind::Named {
                    name: other,
                    data: other_data,
                },
            ) => (name, data) == (other, other_data),
            (Kind::Call(_, call), Kind::Call(_, other)) => Arc::ptr_eq(call, other),
            _ => false,
        }
    }

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
        Self::named_with(name, Vec::new())
    }

    /// Runs a named handler, as [`named`](Self::named) does, and keeps data for it.
    ///
    /// The handler reads the data from the action on the timer's entity. The data is saved with the
    /// action. The crate does not look into it: encode it with the serde format of your choice.
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
    /// struct Health(u32);
    ///
    /// fn hurt(
    ///     In(fired): In<TimerFired>,
    ///     actions: Query<&TimerAction>,
    ///     mut health: Query<&mut Health>,
    /// ) -> Result {
    ///     let damage = actions.get(fired.entity())?.data();
    ///     let damage = u32::from_le_bytes(damage.try_into()?);
    ///     health.get_mut(fired.owner())?.0 -= damage;
    ///     Ok(())
    /// }
    ///
    /// let mut app = App::new();
    /// app.add_plugins((TimePlugin, DuePlugin::default())).insert_resource(
    ///     TimeUpdateStrategy::ManualDuration(core::time::Duration::from_millis(200)),
    /// );
    /// app.world_mut().add_timer_handler("hurt", hurt);
    /// let bite = TimerAction::named_with("hurt", 3_u32.to_le_bytes());
    /// let burn = TimerAction::named_with("hurt", 5_u32.to_le_bytes());
    /// let hero = app.world_mut().spawn(Health(100)).id();
    /// app.world_mut().spawn((OwnedBy(hero), Timer::after(0.1), bite));
    /// app.world_mut().spawn((OwnedBy(hero), Timer::after(0.2), burn));
    /// app.update(); // Bevy's first frame takes no time.
    /// app.update();
    /// assert_eq!(app.world().get::<Health>(hero).unwrap().0, 92);
    /// ```
    #[must_use]
    pub fn named_with(name: impl Into<Cow<'static, str>>, data: impl Into<Vec<u8>>) -> Self {
        let name = name.into();
        let data = data.into().into_boxed_slice();
        Self(Kind::Named { name, data })
    }

    /// Returns the data for a [named handler](Self::named_with). The data of any other action is
    /// empty.
    #[must_use]
    pub fn data(&self) -> &[u8] {
        match &self.0 {
            Kind::Named { data, .. } => data,
            Kind::Nothing | Kind::Despawn | Kind::DespawnOwner | Kind::Call(..) => &[],
        }
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
    /// let bleeding = (Timer::every(1.0).times(10), bleed);
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
        Self(Kind::Call(name, share(call)))
    }

    /// Returns the type of the closure, if the action is one.
    #[cfg(feature = "serialize")]
    pub(crate) fn closure(&self) -> Option<&'static str> {
        match &self.0 {
            Kind::Call(name, _) => Some(name),
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
            Kind::Call(name, call) => Ok(Handler {
                place: Place::Code(name),
                call: call.clone(),
            }),
            Kind::Named { name, .. } => find_handler(world, name),
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
            Kind::Named { name, data } if data.is_empty() => tuple.field(&name),
            Kind::Named { name, data } => tuple.field(&name).field(data),
            Kind::Call(name, _) => tuple.field(&format_args!("call {name}")),
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
    if let Some(TimerAction(Kind::Named { name, .. })) = world.get(entity) {
        let name = name.clone();
        expect_handler(world, entity, name);
    }
}

fn on_discard(mut world: DeferredWorld, HookContext { entity, .. }: HookContext) {
    change_armed(&mut world, entity, |timer| timer.set_acts(false));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_action_is_small() {
        let name_and_data = size_of::<Cow<'static, str>>() + size_of::<Box<[u8]>>();
        assert_eq!(size_of::<TimerAction>(), name_and_data);
    }
}
