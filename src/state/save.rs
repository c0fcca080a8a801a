//! Saving timers and messages on their way as data, and loading them.
//!
//! The state of a timer lives in a queue, where serde and reflection do not see it.
//! [`save_timers`](crate::save::SaveWorldExt::save_timers) reads the states of all timers of a world, and
//! [`save_entity`](crate::save::SaveWorldExt::save_entity) those of an entity and everything it owns, both with the
//! messages on their way, and the [components that your game has
//! registered](crate::save::SaveWorldExt::add_saved_component). The result is [`SavedTimers`], which serde writes in any
//! format. A [scene](#scenes) carries it as a component.
//!
//! A loaded world fires exactly as the saved one would have: in the same order, also among equal
//! deadlines, with the same counts, fractions and random numbers. Deadlines and
//! [`Cooldown`](crate::Cooldown)s keep their remaining time. A clock that lost its parent is loaded without one. One that
//! waits for its parent waits in the loaded world, too, if the parent is saved with it.
//!
//! # Messages
//!
//! A message is on its way from the call that sends it until its delivery. Loaded messages are delivered in
//! the order of sending, after those that the world has already. Their recipients are the loaded entities, the
//! followers that the loaded world has at the delivery, or the entity that has the stable key then. A request
//! between two saved entities completes exactly once: with the reply, which may be on its way, or with
//! [`NoAnswer`](crate::message::NoAnswer).
//!
//! Register a [codec](crate::message::MessageWorldExt::add_message_codec) for each type, under the same name in
//! each app. [Packets](crate::message::Packet) and `NoAnswer` need none. A message to all that some followers
//! have got, because you save in a callback, goes to each of the others. Insert the
//! [`MessageComponent`](crate::message::MessageComponent)s before the first frame after loading.
//!
//! # When to save
//!
//! Save between frames, in `Update`, or later in a frame. If you save in `First` or `PreUpdate`, the
//! fixed schedule has not caught up with the game clock, and the loaded world never catches up on that
//! frame. Register the [handlers](crate::DueWorldExt::add_timer_handler) of named actions before the
//! first frame after loading.
//!
//! # Scenes
//!
//! A `Timer` in a scene is a new timer, which waits for its full delay. To carry the states along, leave the components
//! of this crate out of the scene, and put [`SavedTimers`] into it, with the entities that they name. Load them when the
//! scene is there:
//!
//! ```
//! use bevy_due::save::SavedTimers;
//! use bevy_ecs::prelude::*;
//! use serde::{Deserialize, Serialize};
//!
//! /// Insert it before you extract the scene.
//! #[derive(Component, Serialize, Deserialize)]
//! struct SceneTimers {
//!     saved: SavedTimers,
//!     /// The entities of `saved`, in their order. The scene maps them.
//!     #[entities]
//!     entities: Vec<Entity>,
//! }
//!
//! fn before_saving(world: &mut World) -> Result {
//!     use bevy_due::save::SaveWorldExt;
//!
//!     let saved = world.save_timers()?;
//!     let entities = saved.entities().collect();
//!     world.spawn(SceneTimers { saved, entities });
//!     Ok(())
//! }
//!
//! fn after_loading(world: &mut World) -> Result {
//!     use bevy_due::save::SaveWorldExt;
//!     use bevy_ecs::entity::EntityHashMap;
//!
//!     let mut scenes = world.query::<(Entity, &SceneTimers)>();
//!     let (scene, _) = scenes.single(world)?;
//!     let Some(timers) = world.entity_mut(scene).take::<SceneTimers>() else { return Ok(()) };
//!     world.despawn(scene);
//!     // Entities that were not part of the scene are spawned.
//!     let names = timers.saved.entities().zip(timers.entities);
//!     let mut names: EntityHashMap<Entity> =
//!         names.filter(|&(_, entity)| world.get_entity(entity).is_ok()).collect();
//!     world.load_timers(&timers.saved, &mut names)?;
//!     Ok(())
//! }
//! # use bevy_app::prelude::*;
//! # use bevy_due::{Timer, prelude::*};
//! # use bevy_time::TimePlugin;
//! # let mut app = App::new();
//! # app.add_plugins((TimePlugin, DuePlugin::default()));
//! # app.world_mut().spawn(Timer::after(3.0));
//! # before_saving(app.world_mut()).unwrap();
//! # after_loading(app.world_mut()).unwrap();
//! ```
//!
//! Leave Bevy's `Time` resources out of the scene: they belong to the app that loads it.
//!
//! If the timer of a [`TimerKey`](crate::TimerKey) needs its component again, register the component. You can also
//! spawn an entity with it, and map the saved entity of the timer to that one.
//!
//! | saved | not saved |
//! |---|---|
//! | [`Timer`](crate::Timer), [`DespawnAfter`](crate::DespawnAfter), [`TimerAction`](crate::TimerAction) made of data | closures: [`TimerAction::call`](crate::TimerAction::call), and [`commands.after`](crate::DueCommandsExt::after), [`every`](crate::DueCommandsExt::every) and [`on_timer`](crate::DueCommandsExt::on_timer). To save an armed one is an error. |
//! | a [`Timer`](crate::Timer) that [`timer_fired`](crate::conditions::timer_fired) reads | the interval of the conditions [`every`](crate::conditions::every) and [`every_on`](crate::conditions::every_on), which starts over |
//! | owners, keys, pauses, [`Cooldown`](crate::Cooldown) components | a `Cooldown` inside a component, [`TimerStatus`](crate::timer::TimerStatus) |
//! | [components of yours](crate::save::SaveWorldExt::add_saved_component) that you have registered, with what they refer to | other components of yours, including a [`TimerKey`](crate::TimerKey) |
//! | clocks and speed modifiers, the four built-in clocks | Bevy's `Time` |
//! | open requests, and [messages](#messages) on their way with their senders and recipients | messages without a codec: to save one is an error. Functions from [`MessageSender::run`](crate::message::MessageSender::run), Bevy's `Messages`, whose turn it is, [`MessageComponent`](crate::message::MessageComponent), [`UpdateComponent`](crate::UpdateComponent), observers |

mod check;
mod collect;
mod error;
mod ext;
mod load;

use alloc::{boxed::Box, vec::Vec};

use bevy_ecs::{
    entity::{EntityHashSet, MapEntities},
    prelude::*,
};
#[cfg(feature = "bevy_reflect")]
use bevy_reflect::{Reflect, ReflectDeserialize, ReflectSerialize};
use serde::{Deserialize, Serialize};

use super::{
    Versioned,
    letter::LetterData,
    part::{MapEach, Part, TimerPart},
};
use crate::{
    clock::{ClockId, ClockState},
    owner::OwnedBy,
    pause::Pauses,
    timer::{Ended, WorldState},
};

pub(super) use check::{check_map, check_moved};
pub(super) use collect::save_entities;
use collect::{save_all, save_entity, save_timers};
pub(super) use error::list;
pub use error::{LoadError, SaveError, Unsavable, UnsavableComponent, UnsavableTimer};
pub use ext::SaveWorldExt;
pub(crate) use load::load_timers;
pub(super) use load::{load_checked, report_missing};

pub use super::{
    component::OlderComponent,
    letter::{UnsavableMail, UnsavableReason},
};

/// The timers of a world, or of an entity and everything it owns, and the messages on their way, as data.
///
/// [`SaveWorldExt::load_timers`] loads them. The serialized form
/// begins with its version. A version that this release does not know is an error.
///
/// # Examples
///
/// ```
/// use core::time::Duration;
/// use bevy_app::prelude::*;
/// use bevy_due::{
///     Timer,
///     prelude::*,
///     save::{SaveWorldExt, SavedTimers},
/// };
/// use bevy_ecs::{entity::EntityHashMap, prelude::*};
/// use bevy_time::{TimePlugin, TimeUpdateStrategy};
///
/// fn game() -> App {
///     let mut app = App::new();
///     app.add_plugins((TimePlugin, DuePlugin::default())).insert_resource(
///         TimeUpdateStrategy::ManualDuration(Duration::from_millis(250)),
///     );
///     app.update(); // Bevy's first frame takes no time.
///     app
/// }
///
/// let mut before = game();
/// let hero = before.world_mut().spawn(Timer::every(1.0)).id();
/// for _ in 0..6 {
///     before.update();
/// }
/// let saved = before.world_mut().save_timers()?;
/// let text = ron::to_string(&saved)?;
///
/// let mut after = game();
/// let saved: SavedTimers = ron::from_str(&text)?;
/// let mut entities = EntityHashMap::default();
/// after.world_mut().load_timers(&saved, &mut entities)?;
/// let timer = after.world_mut().with_timers(|timers| timers.get(entities[&hero]));
/// let timer = timer.unwrap();
/// assert_eq!(timer.remaining, Duration::from_millis(500));
/// assert_eq!(timer.count, 1);
/// # Ok::<(), BevyError>(())
/// ```
#[derive(Clone, Debug, Serialize, Deserialize)]
#[cfg_attr(
    feature = "bevy_reflect",
    derive(Reflect),
    type_path = "bevy_due::save",
    reflect(opaque, Clone, Debug, Serialize, Deserialize)
)]
#[serde(transparent)]
pub struct SavedTimers(Versioned<Content>);

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Content {
    /// The state that belongs to no entity, if all timers of the world were saved.
    world: Option<WorldState>,
    /// The messages on their way, in the order of delivery.
    #[serde(default)]
    mail: Vec<LetterData>,
    /// What the next run ends, in order, with the number of that run.
    #[serde(default)]
    ends: Vec<(usize, Ended)>,
    entities: Vec<SavedEntity>,
}

/// An entity and its components of this crate.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct SavedEntity {
    entity: Entity,
    /// Exactly as large as needed: there are many entities.
    parts: Box<[Part]>,
}

impl SavedEntity {
    fn has(&self, is_wanted: impl Fn(&Part) -> bool) -> bool {
        self.parts.iter().any(is_wanted)
    }

    /// Returns the entity's clock.
    fn own_clock(&self) -> Option<&ClockState> {
        self.parts.iter().find_map(|part| match part {
            Part::Clock(state) => Some(&**state),
            _ => None,
        })
    }
}

impl Part {
    /// Returns the entities that the part refers to, except for those that no longer exist. Those in a list
    /// refer to this one.
    fn references(&self) -> Vec<Entity> {
        let mut references = Vec::new();
        if self.list().is_none() {
            let mut note = MapEach(|entity| {
                references.push(entity);
                entity
            });
            self.clone().map_entities(&mut note);
        }
        references.retain(|&entity| entity != Entity::PLACEHOLDER);
        references
    }

    /// Returns the entity of the clock on which the part runs, if it runs on one.
    fn clock(&self) -> Option<Entity> {
        let clock = match self {
            Self::Clock(state) => state.parent()?,
            part => part.timer()?.1.state.as_ref()?.clock()?,
        };
        match clock {
            ClockId::Own(clock) if clock != Entity::PLACEHOLDER => Some(clock),
            _ => None,
        }
    }

    /// Returns an error if the part of an entity leads to an unknown one, or runs on one without a clock.
    fn missing(
        &self,
        entity: Entity,
        is_known: impl Fn(Entity) -> bool,
        is_clock: impl Fn(Entity) -> bool,
    ) -> Option<LoadError> {
        let component = || self.name().into();
        let mut known = self.target().into_iter().chain(self.references());
        if let Some(to) = known.find(|&to| !is_known(to)) {
            return Some(LoadError::UnknownEntity {
                entity,
                component: component(),
                to,
            });
        }
        let clock = self.clock().filter(|&clock| !is_clock(clock))?;
        Some(LoadError::NoClock {
            entity,
            component: component(),
            clock,
        })
    }

    /// Puts a clock or a timer on [`ClockId::Virtual`] if it runs on one of these clocks.
    fn leave_clock(&mut self, is_missing: impl Fn(Entity) -> bool) {
        let is_missing = |clock| matches!(clock, ClockId::Own(clock) if is_missing(clock));
        let is_missing = &is_missing;
        if let Self::Clock(state) = self
            && state.parent().is_some_and(is_missing)
        {
            state.leave_parent();
        }
        if let Some((_, TimerPart { settings, state })) = self.timer_mut() {
            settings.leave_clock(is_missing);
            if let Some(state) = state {
                state.leave_clock(is_missing);
            }
        }
    }

    /// Returns the entity without which the component can't exist, if any.
    fn target(&self) -> Option<Entity> {
        match self {
            Self::OwnedBy(OwnedBy(target)) | Self::Pauses(Pauses(target)) => Some(*target),
            Self::SpeedModifier(modifier) => Some(modifier.clock()),
            _ => None,
        }
    }

    /// Returns `true` if the part has no purpose without the entity's timer.
    fn serves_timer(&self) -> bool {
        matches!(
            self,
            Self::Timer(_) | Self::TimerAction(_) | Self::Keyed(_) | Self::CrateTimer(_)
        )
    }
}

impl SavedTimers {
    /// Returns the entities that were saved, as they were called in the saved world.
    pub fn entities(&self) -> impl Iterator<Item = Entity> {
        self.0.entities.iter().map(|saved| saved.entity)
    }

    /// Returns the messages that were on their way.
    pub(super) fn mail(&self) -> &[LetterData] {
        &self.0.mail
    }

    pub(super) fn set_mail(&mut self, mail: Vec<LetterData>) {
        self.0.mail = mail;
    }

    /// Drops what leads to unknown entities, and what runs on entities without a clock. Returns what that was.
    ///
    /// A timer or a clock whose clock is unknown continues on [`ClockId::Virtual`].
    pub(super) fn drop_missing(
        &mut self,
        is_known: impl Fn(Entity) -> bool,
        is_clock: impl Fn(Entity) -> bool,
    ) -> Vec<LoadError> {
        let mut missing = Vec::new();
        for SavedEntity { entity, parts } in &mut self.0.entities {
            let entity = *entity;
            let mut kept = core::mem::take(parts).into_vec();
            kept.retain_mut(|part| {
                let Some(error) = part.missing(entity, &is_known, &is_clock) else {
                    return true;
                };
                missing.push(error);
                part.leave_clock(|clock| !is_known(clock) || !is_clock(clock));
                part.map_entities(&mut MapEach(|to| match is_known(to) {
                    true => to,
                    false => Entity::PLACEHOLDER,
                }));
                let is_gone = |to| to == Entity::PLACEHOLDER;
                !part.target().is_some_and(is_gone) && !matches!(part, Part::OnClock(_))
            });
            *parts = kept.into_boxed_slice();
        }
        missing
    }

    /// Returns `true` if all timers of a world were saved, with the state that belongs to no entity.
    pub(crate) fn is_whole_world(&self) -> bool {
        self.0.world.is_some()
    }

    /// Returns the entities that are open requests.
    pub(crate) fn requests(&self) -> EntityHashSet {
        let requests = self.0.entities.iter();
        let requests = requests.filter(|saved| saved.has(|it| matches!(it, Part::OpenRequest(_))));
        requests.map(|saved| saved.entity).collect()
    }
}
