//! What a timer does by itself when it fires.

use alloc::{borrow::Cow, boxed::Box, format};
use core::{any::type_name, fmt};

use bevy_app::App;
#[cfg(feature = "bevy_reflect")]
use bevy_ecs::reflect::ReflectComponent;
use bevy_ecs::{
    bundle::Bundle,
    component::Component,
    entity::Entity,
    error::{BevyError, CommandOutput},
    event::Event,
    lifecycle::HookContext,
    message::Message,
    resource::Resource,
    system::{In, IntoSystem, SystemId},
    world::{DeferredWorld, World},
};
use bevy_platform::{collections::HashMap, sync::Arc};
#[cfg(feature = "bevy_reflect")]
use bevy_reflect::Reflect;
#[cfg(all(feature = "bevy_reflect", feature = "serialize"))]
use bevy_reflect::{ReflectDeserialize, ReflectSerialize};

use super::{TimerFired, hooks::change_armed};
use crate::call::{call_with_world, run_system, to_result};

/// What the [`Timer`](crate::Timer) on this entity does by itself at every firing, after the observers of
/// [`TimerFired`] have run. If one of those has cancelled or re-armed the timer, it is left out. One
/// that they have only just inserted begins with the next firing.
///
/// It is a component beside the timer, so timers without one pay nothing for it. Data actions
/// concern the timer's entity, or [its owner](Self::on_owner). Where whom they concern has been
/// despawned, nothing happens.
///
/// An action that fails is told to Bevy's error handler. Neither the timer nor the others that are
/// due stop for it.
///
/// # Examples
///
/// ```
/// use bevy_app::prelude::*;
/// use bevy_due::{Timer, prelude::*};
/// use bevy_ecs::prelude::*;
/// use bevy_time::{TimePlugin, TimeUpdateStrategy};
///
/// #[derive(Component, Clone)]
/// struct Burning;
///
/// let mut app = App::new();
/// app.add_plugins((TimePlugin, DuePlugin)).insert_resource(
///     TimeUpdateStrategy::ManualDuration(core::time::Duration::from_millis(200)),
/// );
/// let torch = app
///     .world_mut()
///     .spawn((Timer::after_secs(0.1), TimerAction::insert(Burning)))
///     .id();
/// app.update(); // Bevy's first frame takes no time.
/// app.update();
/// assert!(app.world().entity(torch).contains::<Burning>());
/// ```
#[doc(alias("callback", "handler"))]
#[derive(Component, Clone)]
#[component(immutable, on_insert = on_insert, on_discard = on_discard)]
#[cfg_attr(
    feature = "bevy_reflect",
    derive(Reflect),
    reflect(opaque),
    reflect(Component, Clone, Debug)
)]
#[cfg_attr(
    all(feature = "bevy_reflect", feature = "serialize"),
    reflect(Serialize, Deserialize)
)]
pub struct TimerAction {
    what: What,
    on_owner: bool,
}

#[derive(Clone)]
enum What {
    Despawn,
    Named(Cow<'static, str>),
    Do {
        /// What it does, and to what type.
        name: (&'static str, &'static str),
        run: Arc<Run>,
    },
}

/// Is given the world, the firing, and the entity that it concerns.
type Run = dyn Fn(&mut World, &TimerFired, Entity) -> Result<(), BevyError> + Send + Sync;

impl TimerAction {
    /// Despawns the entity.
    #[must_use]
    pub fn despawn() -> Self {
        Self::new(What::Despawn)
    }

    /// Inserts a clone of `bundle`.
    #[must_use]
    pub fn insert<B: Bundle + Clone>(bundle: B) -> Self {
        Self::doing::<B>("insert", move |world, _, target| {
            if let Ok(mut target) = world.get_entity_mut(target) {
                target.insert(bundle.clone());
            }
            Ok(())
        })
    }

    /// Removes the components of `B`.
    ///
    /// # Examples
    ///
    /// ```
    /// use bevy_due::{Timer, prelude::*};
    /// use bevy_ecs::prelude::*;
    ///
    /// #[derive(Component)]
    /// struct Stunned;
    ///
    /// fn stun(monster: Entity, mut commands: Commands) {
    ///     commands.entity(monster).insert(Stunned);
    ///     commands.entity(monster).set_timer(
    ///         "stun",
    ///         (Timer::after_secs(2.0), TimerAction::remove::<Stunned>().on_owner()),
    ///     );
    /// }
    /// # let _ = stun;
    /// ```
    #[must_use]
    pub fn remove<B: Bundle>() -> Self {
        Self::doing::<B>("remove", |world, _, target| {
            if let Ok(mut target) = world.get_entity_mut(target) {
                target.remove::<B>();
            }
            Ok(())
        })
    }

    /// Triggers a clone of `event`.
    #[must_use]
    pub fn trigger<E>(event: E) -> Self
    where
        E: for<'a> Event<Trigger<'a>: Default> + Clone,
    {
        Self::doing::<E>("trigger", move |world, _, _| {
            world.trigger(event.clone());
            Ok(())
        })
    }

    /// Triggers an event that is about the entity.
    ///
    /// # Examples
    ///
    /// ```
    /// use bevy_due::{Timer, prelude::*};
    /// use bevy_ecs::prelude::*;
    ///
    /// #[derive(EntityEvent)]
    /// struct Explode {
    ///     entity: Entity,
    /// }
    ///
    /// fn light_a_bomb(mut commands: Commands) {
    ///     let explode = TimerAction::trigger_on(|entity| Explode { entity });
    ///     commands.spawn((Timer::after_secs(3.0), explode));
    /// }
    /// # bevy_ecs::system::assert_is_system(light_a_bomb);
    /// ```
    #[must_use]
    pub fn trigger_on<E>(event: fn(Entity) -> E) -> Self
    where
        E: for<'a> Event<Trigger<'a>: Default>,
    {
        Self::doing::<E>("trigger", move |world, _, target| {
            world.trigger(event(target));
            Ok(())
        })
    }

    /// Writes a clone of `message`. That nobody has added the message to the app is an error.
    #[must_use]
    pub fn write<M: Message + Clone>(message: M) -> Self {
        Self::doing::<M>("write", move |world, _, _| write(world, message.clone()))
    }

    /// Writes a message that is about the entity. That nobody has added the message to the app is
    /// an error.
    #[must_use]
    pub fn write_about<M: Message>(message: fn(Entity) -> M) -> Self {
        Self::doing::<M>("write", move |world, _, target| {
            write(world, message(target))
        })
    }

    /// Calls a closure. It can't be saved: see [`named`](Self::named).
    ///
    /// # Examples
    ///
    /// ```
    /// use bevy_due::{Timer, prelude::*};
    /// use bevy_ecs::prelude::*;
    ///
    /// #[derive(Component)]
    /// struct Health(u32);
    ///
    /// let damage = 3;
    /// let bleed = TimerAction::call(move |world: &mut World, fired: TimerFired| -> Result {
    ///     let mut victim = world.get_entity_mut(fired.owner)?;
    ///     let mut health = victim.get_mut::<Health>().ok_or("nothing to hurt")?;
    ///     health.0 = health.0.saturating_sub(damage);
    ///     Ok(())
    /// });
    /// let bleeding = (Timer::every_secs(1.0).times(10), bleed);
    /// # World::new().spawn(bleeding);
    /// ```
    #[must_use]
    pub fn call<F, Out>(closure: F) -> Self
    where
        F: Fn(&mut World, TimerFired) -> Out + Send + Sync + 'static,
        Out: CommandOutput,
    {
        Self::doing::<F>("call", move |world, fired, _| {
            to_result(closure(world, *fired))
        })
    }

    /// Runs a one-shot system, which is given the [`TimerFired`]. It can't be saved: see
    /// [`named`](Self::named).
    #[must_use]
    pub fn system(system: SystemId<In<TimerFired>>) -> Self {
        Self::doing::<SystemId>("run", move |world, fired, _| {
            run_system(world, system, *fired)
        })
    }

    /// Runs the handler that is registered by that name: see
    /// [`add_timer_handler`](TimerAppExt::add_timer_handler). It is code that a saved timer can
    /// name. That there is none of that name when the timer fires is an error.
    #[must_use]
    pub fn named(name: impl Into<Cow<'static, str>>) -> Self {
        Self::new(What::Named(name.into()))
    }

    /// Concerns the owner of the timer instead of its own entity.
    #[must_use]
    pub fn on_owner(mut self) -> Self {
        self.on_owner = true;
        self
    }

    fn new(what: What) -> Self {
        Self {
            what,
            on_owner: false,
        }
    }

    pub(crate) fn doing<T>(
        verb: &'static str,
        run: impl Fn(&mut World, &TimerFired, Entity) -> Result<(), BevyError> + Send + Sync + 'static,
    ) -> Self {
        Self::new(What::Do {
            name: (verb, type_name::<T>()),
            run: shared(run),
        })
    }

    /// Does what is to be done beside the timer that has fired, and tells Bevy's error handler if
    /// that fails.
    pub(crate) fn act(world: &mut World, fired: &TimerFired) {
        let Some(action) = world.get::<Self>(fired.entity) else {
            return;
        };
        let target = if action.on_owner {
            fired.owner
        } else {
            fired.entity
        };
        let run = match &action.what {
            What::Despawn => {
                world.try_despawn(target).ok();
                return world.flush();
            }
            What::Do { run, .. } => Ok(run.clone()),
            What::Named(name) => {
                let handlers = world.get_resource::<TimerHandlers>();
                let handler = handlers.and_then(|handlers| handlers.0.get(name));
                handler.cloned().ok_or_else(|| UnknownHandler(name.clone()))
            }
        };
        call_with_world::<Self>(world, fired.entity, |world| run?(world, fired, target));
    }
}

impl fmt::Debug for TimerAction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut tuple = f.debug_tuple("TimerAction");
        match &self.what {
            What::Despawn => tuple.field(&format_args!("despawn")),
            What::Named(name) => tuple.field(&name),
            What::Do {
                name: (verb, of), ..
            } => tuple.field(&format_args!("{verb} {of}")),
        };
        if self.on_owner {
            tuple.field(&format_args!("on owner"));
        }
        tuple.finish()
    }
}

/// There is no handler of that name: see [`TimerAction::named`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownHandler(pub Cow<'static, str>);

impl fmt::Display for UnknownHandler {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "no timer handler is registered by the name {:?}", self.0)
    }
}

impl core::error::Error for UnknownHandler {}

/// The handlers of an app, by name.
#[derive(Resource, Default)]
struct TimerHandlers(HashMap<Cow<'static, str>, Arc<Run>>);

/// What an [`App`] is told about timers.
pub trait TimerAppExt {
    /// Registers a system by a name that timers can refer to: see [`TimerAction::named`].
    ///
    /// It is given the [`TimerFired`], and may return a `Result`.
    ///
    /// # Panics
    ///
    /// Panics if the name is taken.
    ///
    /// # Examples
    ///
    /// ```
    /// use bevy_app::prelude::*;
    /// use bevy_due::{Timer, prelude::*};
    /// use bevy_ecs::prelude::*;
    /// use bevy_time::TimePlugin;
    ///
    /// fn grow(In(fired): In<TimerFired>, mut commands: Commands) {
    ///     commands.entity(fired.owner).log_components();
    /// }
    ///
    /// let mut app = App::new();
    /// app.add_plugins((TimePlugin, DuePlugin)).add_timer_handler("grow", grow);
    /// app.world_mut().spawn((Timer::every_secs(60.0), TimerAction::named("grow")));
    /// ```
    fn add_timer_handler<M>(
        &mut self,
        name: impl Into<Cow<'static, str>>,
        handler: impl IntoSystem<In<TimerFired>, (), M> + 'static,
    ) -> &mut Self;
}

impl TimerAppExt for App {
    fn add_timer_handler<M>(
        &mut self,
        name: impl Into<Cow<'static, str>>,
        handler: impl IntoSystem<In<TimerFired>, (), M> + 'static,
    ) -> &mut Self {
        let name = name.into();
        let world = self.world_mut();
        let handlers = world.get_resource_or_init::<TimerHandlers>();
        assert!(
            !handlers.0.contains_key(&name),
            "a timer handler is registered by the name {name:?} already"
        );
        let system = world.register_system(handler);
        let run = shared(move |world, fired, _| run_system(world, system, *fired));
        let mut handlers = world.resource_mut::<TimerHandlers>();
        handlers.0.insert(name, run);
        self
    }
}

/// Not `Arc::new`, which makes no `Arc<dyn ..>` on platforms without atomics.
fn shared(
    run: impl Fn(&mut World, &TimerFired, Entity) -> Result<(), BevyError> + Send + Sync + 'static,
) -> Arc<Run> {
    let run: Box<Run> = Box::new(run);
    run.into()
}

fn write<M: Message>(world: &mut World, message: M) -> Result<(), BevyError> {
    match world.get_resource_mut::<bevy_ecs::message::Messages<M>>() {
        Some(mut messages) => {
            messages.write(message);
            Ok(())
        }
        None => Err(format!("the message {} is not added to the app", type_name::<M>()).into()),
    }
}

fn on_insert(mut world: DeferredWorld, HookContext { entity, .. }: HookContext) {
    // Firing needs no look-up where there is no action.
    change_armed(&mut world, entity, |timer| timer.acts = true);
}

fn on_discard(mut world: DeferredWorld, HookContext { entity, .. }: HookContext) {
    change_armed(&mut world, entity, |timer| timer.acts = false);
}

/// A [`TimerAction`] as it is written to a file.
#[cfg(feature = "serialize")]
#[derive(serde::Serialize, serde::Deserialize)]
#[serde(rename = "TimerAction")]
enum ActionData {
    Despawn,
    DespawnOwner,
    Named(Cow<'static, str>),
}

#[cfg(feature = "serialize")]
impl serde::Serialize for TimerAction {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let data = match &self.what {
            What::Despawn if self.on_owner => ActionData::DespawnOwner,
            What::Despawn => ActionData::Despawn,
            What::Named(name) => ActionData::Named(name.clone()),
            What::Do { .. } => {
                return Err(serde::ser::Error::custom(format!(
                    "it can't be saved, use a named handler: {self:?}"
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
            ActionData::Despawn => Self::despawn(),
            ActionData::DespawnOwner => Self::despawn().on_owner(),
            ActionData::Named(name) => Self::named(name),
        })
    }
}
