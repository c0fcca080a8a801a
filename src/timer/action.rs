//! Actions that a timer runs when it fires, and the handlers that some of them name.

use alloc::{borrow::Cow, boxed::Box, format, vec::Vec};
use core::{any::type_name, fmt, mem};

use bevy_ecs::{
    error::{CommandOutput, Severity},
    lifecycle::HookContext,
    prelude::*,
    world::DeferredWorld,
};
use bevy_platform::{collections::HashMap, sync::Arc};
#[cfg(feature = "bevy_reflect")]
use bevy_reflect::prelude::*;

use super::{TimerFired, TimerQueues, queues::change_armed};
use crate::call::{call_with_world, to_result};
#[cfg(feature = "serialize")]
use crate::report::unserializable;

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
#[cfg_attr(feature = "serialize", derive(serde::Deserialize), serde(transparent))]
#[cfg_attr(
    all(feature = "bevy_reflect", feature = "serialize"),
    reflect(Serialize, Deserialize)
)]
pub struct TimerAction(ActionKind);

#[derive(Clone, Default, PartialEq)]
#[cfg_attr(
    feature = "serialize",
    derive(serde::Serialize, serde::Deserialize),
    serde(rename = "TimerAction")
)]
enum ActionKind {
    #[default]
    Nothing,
    Despawn,
    DespawnOwner,
    Named {
        name: Cow<'static, str>,
        data: Box<[u8]>,
    },
    #[cfg_attr(feature = "serialize", serde(skip))]
    Call(Closure),
}

/// A closure or a function, and the name of its type.
#[derive(Clone)]
struct Closure {
    name: &'static str,
    call: Arc<Call>,
}

impl PartialEq for Closure {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.call, &other.call)
    }
}

/// Code that a timer calls. Clones of an action share it.
type Call = dyn Fn(&mut World, TimerFired) -> Result + Send + Sync;

impl TimerAction {
    /// Returns `true` if another action runs the same code with the same data.
    pub(crate) fn is_same(&self, other: &Self) -> bool {
        self.0 == other.0
    }

    /// Despawns the timer's entity.
    #[must_use]
    pub fn despawn() -> Self {
        Self(ActionKind::Despawn)
    }

    /// Despawns the [owner](crate::OwnedBy) of the timer, and the timer with it.
    #[must_use]
    pub fn despawn_owner() -> Self {
        Self(ActionKind::DespawnOwner)
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
        Self(ActionKind::Named { name, data })
    }

    /// Returns the data for a [named handler](Self::named_with). The data of any other action is
    /// empty.
    #[must_use]
    pub fn data(&self) -> &[u8] {
        match &self.0 {
            ActionKind::Named { data, .. } => data,
            _ => &[],
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
        let call = share(call);
        Self(ActionKind::Call(Closure { name, call }))
    }

    /// Returns the type of the closure, if the action is one.
    #[cfg(feature = "serialize")]
    pub(crate) fn closure(&self) -> Option<&'static str> {
        match &self.0 {
            ActionKind::Call(closure) => Some(closure.name),
            _ => None,
        }
    }

    /// Returns what the action of an entity does, whatever becomes of the component.
    pub(super) fn resolve(world: &World, entity: Entity) -> Option<Resolved> {
        Some(match &world.get::<Self>(entity)?.0 {
            ActionKind::Nothing => return None,
            ActionKind::Despawn => Resolved::Despawn,
            ActionKind::DespawnOwner => Resolved::DespawnOwner,
            ActionKind::Call(Closure { name, call }) => Resolved::Call(name, call.clone()),
            ActionKind::Named { name, .. } => match find_handler(world, name) {
                Ok((name, call)) => Resolved::Handler(name, call),
                Err(unknown) => Resolved::Unknown(unknown),
            },
        })
    }
}

/// What an action does.
pub(super) enum Resolved {
    Despawn,
    DespawnOwner,
    Call(&'static str, Arc<Call>),
    Handler(Arc<str>, Arc<Call>),
    Unknown(BevyError),
}

impl Resolved {
    pub(super) fn run(self, world: &mut World, fired: &TimerFired) {
        let entity = fired.entity();
        let mut call = |name: &dyn fmt::Display, call: Arc<Call>| {
            call_with_world::<TimerAction>(world, name, entity, |world| call(world, *fired));
        };
        match self {
            Self::Call(name, closure) => call(&name, closure),
            Self::Handler(name, handler) => {
                call(&format_args!("timer handler {name:?}"), handler);
            }
            Self::Despawn => despawn(world, entity),
            Self::DespawnOwner => despawn(world, fired.owner()),
            Self::Unknown(unknown) => report_unknown(world, entity, unknown),
        }
    }
}

impl fmt::Debug for TimerAction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut tuple = f.debug_tuple("TimerAction");
        match &self.0 {
            ActionKind::Nothing => tuple.field(&format_args!("nothing")),
            ActionKind::Despawn => tuple.field(&format_args!("despawn")),
            ActionKind::DespawnOwner => tuple.field(&format_args!("despawn owner")),
            ActionKind::Named { name, data } if data.is_empty() => tuple.field(&name),
            ActionKind::Named { name, data } => tuple.field(&name).field(data),
            ActionKind::Call(Closure { name, .. }) => tuple.field(&format_args!("call {name}")),
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

/// Notes the action of an entity if its handler is unknown. The handler may still be registered
/// until the next run.
pub(crate) fn check_handler(world: &mut DeferredWorld, entity: Entity) {
    if let Some(TimerAction(ActionKind::Named { name, .. })) = world.get(entity)
        && let handlers = world.get_resource::<TimerHandlers>()
        && handlers.is_none_or(|handlers| !handlers.0.contains_key(&**name))
        && let Some(mut queues) = world.get_resource_mut::<TimerQueues>()
    {
        queues.arming.unhandled.push(entity);
    }
}

fn on_discard(mut world: DeferredWorld, HookContext { entity, .. }: HookContext) {
    change_armed(&mut world, entity, |timer| timer.set_acts(false));
}

/// Moves a closure to where clones of an action share it.
fn share(call: impl Fn(&mut World, TimerFired) -> Result + Send + Sync + 'static) -> Arc<Call> {
    // Not `Arc::new`, which can't make an `Arc<dyn ..>` on platforms without atomics.
    let call: Box<Call> = Box::new(call);
    call.into()
}

/// The handlers of a world.
#[derive(Resource, Default)]
struct TimerHandlers(HashMap<Arc<str>, Arc<Call>>);

/// Returns the handler that is registered under this name.
fn find_handler(world: &World, name: &str) -> Result<(Arc<str>, Arc<Call>)> {
    let handlers = world.get_resource::<TimerHandlers>();
    let handler = handlers.and_then(|handlers| handlers.0.get_key_value(name));
    handler
        .map(|(name, call)| (name.clone(), call.clone()))
        .ok_or_else(|| {
            format!(
                "no timer handler is registered as {name:?}: call `add_timer_handler` at start-up"
            )
            .into()
        })
}

/// Warns of actions whose handlers are still unknown at the start of a run.
pub(super) fn report_unknown_handlers(world: &mut World) {
    let mut queues = world.resource_mut::<TimerQueues>();
    for entity in mem::take(&mut queues.arming.unhandled) {
        if let Some(TimerAction(ActionKind::Named { name, .. })) = world.get(entity)
            && let Err(unknown) = find_handler(world, name)
        {
            report_unknown(world, entity, unknown.with_severity(Severity::Warning));
        }
    }
}

fn report_unknown(world: &mut World, entity: Entity, unknown: BevyError) {
    call_with_world::<TimerAction>(world, "TimerAction", entity, |_| Err(unknown));
}

/// Registers a closure as a handler.
#[track_caller]
pub(crate) fn add_handler(
    world: &mut World,
    name: &str,
    handler: impl Fn(&mut World, TimerFired) -> Result + Send + Sync + 'static,
) {
    let mut handlers = world.get_resource_or_init::<TimerHandlers>();
    assert!(
        !handlers.0.contains_key(name),
        "a timer handler is already registered as {name:?}: choose another name"
    );
    handlers.0.insert(name.into(), share(handler));
}

#[cfg(feature = "serialize")]
impl serde::Serialize for TimerAction {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.closure() {
            Some(closure) => Err(unserializable(format_args!(
                "the action calls the closure {closure}, which can't be saved: register a handler \
                 with `add_timer_handler`, and use `TimerAction::named`, or `TimerAction::named_with` \
                 for the values that the closure captures"
            ))),
            None => self.0.serialize(serializer),
        }
    }
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
