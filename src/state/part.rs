//! The components of the crate's state, as data.

#[cfg(feature = "serialize")]
use alloc::boxed::Box;
use alloc::vec::Vec;
#[cfg(feature = "serialize")]
use core::time::Duration;

use bevy_ecs::{
    component::ComponentId,
    entity::{EntityHashMap, MapEntities},
    entity_disabling::Disabled,
    prelude::*,
    relationship::RelationshipSourceCollection,
};

#[cfg(feature = "serialize")]
use super::component::ComponentData;
use super::component::SavedComponents;
#[cfg(feature = "serialize")]
use crate::{clock::ClockState, timer::TimerState};
use crate::{
    clock::{Clock, OnClock, SpeedModifier, SpeedModifiers},
    message::MovedRequest,
    owner::{Owned, OwnedBy},
    pause::{Paused, PausedBy, Pauses, RunsWhilePaused},
    timer::{Cooldown, CrateTimer, DespawnAfter, Keyed, Kind, OpenRequest, Timer, TimerAction},
};

/// Defines [`Part`] and [`PartKind`] from the one list of the components.
macro_rules! parts {
    (
        values { $($value:ident,)* }
        unsaved { $($unsaved:ident,)* }
        marks { $($mark:ident,)* }
        timers { $($timer:ident: $kind:ident,)* }
        lists { $($list:ident,)* }
    ) => {
        /// A component of an entity, as data, or something else that is known about the entity.
        #[derive(Clone, Debug)]
        #[cfg_attr(feature = "serialize", derive(serde::Serialize, serde::Deserialize))]
        pub(super) enum Part {
            $($value($value),)*
            $($mark,)*
            #[cfg(feature = "serialize")]
            Clock(Box<ClockState>),
            $($timer(TimerPart),)*
            TimerAction(TimerAction),
            /// The entities that refer to this one, in their order.
            $($list(Vec<Entity>),)*
            /// The time on the clock of the cooldown.
            #[cfg(feature = "serialize")]
            CooldownNow {
                now: Duration,
                /// Whether a condition held the clock or one above it.
                #[serde(default)]
                is_held: bool,
            },
            /// The places among the update callbacks and among the followers of messages.
            #[cfg(feature = "serialize")]
            Turns {
                update: Option<u64>,
                message: Option<u64>,
            },
            /// A component of the game.
            #[cfg(feature = "serialize")]
            Component(Box<ComponentData>),
            // Formats that count the variants need these to be the last.
            /// The entity has a clock. The copy of all clocks says what it is.
            #[cfg_attr(feature = "serialize", serde(skip))]
            HasClock,
            /// The entity has this component of the game.
            #[cfg_attr(feature = "serialize", serde(skip))]
            Has(ComponentId),
            $(#[cfg_attr(feature = "serialize", serde(skip))] $unsaved($unsaved),)*
        }

        /// A component that is a part.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub(super) enum PartKind {
            $($value,)*
            $($unsaved,)*
            $($mark,)*
            Clock,
            $($timer,)*
            TimerAction,
            $($list,)*
            /// A component of the game.
            Has(ComponentId),
        }

        impl PartKind {
            /// All kinds of this crate, in the order in which they are inserted.
            const ALL: &[Self] = &[
                $(Self::$value,)*
                $(Self::$unsaved,)*
                $(Self::$mark,)*
                Self::Clock,
                $(Self::$timer,)*
                Self::TimerAction,
                $(Self::$list,)*
            ];

            fn register(self, world: &mut World) -> ComponentId {
                match self {
                    Self::Clock => world.register_component::<Clock>(),
                    $(Self::$timer => world.register_component::<$timer>(),)*
                    Self::TimerAction => world.register_component::<TimerAction>(),
                    $(Self::$value => world.register_component::<$value>(),)*
                    $(Self::$unsaved => world.register_component::<$unsaved>(),)*
                    $(Self::$mark => world.register_component::<$mark>(),)*
                    $(Self::$list => world.register_component::<$list>(),)*
                    Self::Has(id) => id,
                }
            }

            /// Returns a copy of a component to go back to.
            fn read(self, entity: EntityRef) -> Option<Part> {
                Some(match self {
                    Self::Clock => entity.contains::<Clock>().then_some(Part::HasClock)?,
                    $(Self::$timer => Part::$timer(TimerPart::of(Kind::$kind.on(entity)?)),)*
                    Self::TimerAction => Part::TimerAction(entity.get::<TimerAction>()?.clone()),
                    $(Self::$value => Part::$value(entity.get::<$value>()?.clone()),)*
                    $(Self::$unsaved => Part::$unsaved(entity.get::<$unsaved>()?.clone()),)*
                    $(Self::$mark => entity.get::<$mark>().map(|_| Part::$mark)?,)*
                    $(Self::$list => Part::$list(entity.get::<$list>()?.iter().collect()),)*
                    Self::Has(id) => entity.contains_id(id).then_some(Part::Has(id))?,
                })
            }

            /// Removes the component. A list follows from the entities in it.
            pub(super) fn remove(self, entity: &mut EntityWorldMut) {
                match self {
                    Self::Clock => _ = entity.remove::<Clock>(),
                    $(Self::$timer => _ = entity.remove::<$timer>(),)*
                    Self::TimerAction => _ = entity.remove::<TimerAction>(),
                    $(Self::$value => _ = entity.remove::<$value>(),)*
                    $(Self::$unsaved => _ = entity.remove::<$unsaved>(),)*
                    $(Self::$mark => _ = entity.remove::<$mark>(),)*
                    $(Self::$list)|* => {}
                    Self::Has(id) => _ = entity.remove_by_id(id),
                }
            }
        }

        impl Part {
            /// Returns the name of the component.
            #[cfg(feature = "serialize")]
            pub(super) fn name(&self) -> &str {
                match self {
                    Self::Clock(_) | Self::HasClock => "Clock",
                    $(Self::$timer(_) => stringify!($timer),)*
                    Self::TimerAction(_) => "TimerAction",
                    $(Self::$value(_) => stringify!($value),)*
                    $(Self::$unsaved(_) => stringify!($unsaved),)*
                    $(Self::$mark => stringify!($mark),)*
                    $(Self::$list(_) => stringify!($list),)*
                    Self::CooldownNow { .. } => "CooldownNow",
                    Self::Turns { .. } => "Turns",
                    Self::Component(data) => &data.name,
                    Self::Has(_) => "Has",
                }
            }

            pub(super) fn kind(&self) -> Option<PartKind> {
                Some(match self {
                    Self::HasClock => PartKind::Clock,
                    $(Self::$timer(_) => PartKind::$timer,)*
                    Self::TimerAction(_) => PartKind::TimerAction,
                    $(Self::$value(_) => PartKind::$value,)*
                    $(Self::$unsaved(_) => PartKind::$unsaved,)*
                    $(Self::$mark => PartKind::$mark,)*
                    $(Self::$list(_) => PartKind::$list,)*
                    Self::Has(id) => PartKind::Has(*id),
                    #[cfg(feature = "serialize")]
                    Self::Clock(_) => PartKind::Clock,
                    #[cfg(feature = "serialize")]
                    Self::CooldownNow { .. } | Self::Turns { .. } | Self::Component(_) => return None,
                })
            }

            /// Inserts the component. A list follows from the entities in it. A snapshot copies components of the
            /// game elsewhere.
            pub(super) fn insert(self, entity: &mut EntityWorldMut) {
                match self {
                    Self::HasClock => _ = entity.insert(Clock::default()),
                    #[cfg(feature = "serialize")]
                    Self::Clock(state) => state.put(entity),
                    $(Self::$timer(timer) => Kind::$kind.insert(entity, timer.settings),)*
                    Self::TimerAction(action) => _ = entity.insert(action),
                    $(Self::$value(value) => _ = entity.insert(value),)*
                    $(Self::$unsaved(value) => _ = entity.insert(value),)*
                    $(Self::$mark => _ = entity.insert($mark),)*
                    $(Self::$list(_) => {})*
                    Self::Has(_) => {}
                    #[cfg(feature = "serialize")]
                    Self::CooldownNow { .. } | Self::Turns { .. } | Self::Component(_) => {}
                }
            }

            /// Returns `true` if two parts say the same. The copy of all clocks says what a clock is.
            pub(super) fn is_like(&self, other: &Self) -> bool {
                match (self, other) {
                    (Self::HasClock, Self::HasClock) => true,
                    $((Self::$timer(here), Self::$timer(there)) => here.settings == there.settings,)*
                    (Self::TimerAction(here), Self::TimerAction(there)) => here.is_same(there),
                    $((Self::$value(here), Self::$value(there)) => here == there,)*
                    $((Self::$unsaved(here), Self::$unsaved(there)) => here == there,)*
                    (Self::Has(here), Self::Has(there)) => here == there,
                    $((Self::$mark, Self::$mark) => true,)*
                    $((Self::$list(here), Self::$list(there)) => here == there,)*
                    _ => false,
                }
            }

            /// Returns the timer, the lifetime or the time-out, if the part is one.
            pub(super) fn timer_mut(&mut self) -> Option<(Kind, &mut TimerPart)> {
                match self {
                    $(Self::$timer(timer) => Some((Kind::$kind, timer)),)*
                    _ => None,
                }
            }

            /// Returns the timer, the lifetime or the time-out, if the part is one.
            pub(super) fn timer(&self) -> Option<(Kind, &TimerPart)> {
                match self {
                    $(Self::$timer(timer) => Some((Kind::$kind, timer)),)*
                    _ => None,
                }
            }

            /// Brings the entities of a list into this order, after all others.
            pub(super) fn put_in_order(&self, world: &mut World, target: Entity) {
                match self {
                    $(Self::$list(order) => put_in_order::<$list>(world, target, order),)*
                    _ => {}
                }
            }
        }

        impl MapEntities for Part {
            fn map_entities<M: EntityMapper>(&mut self, mapper: &mut M) {
                match self {
                    #[cfg(feature = "serialize")]
                    Self::Clock(state) => (**state).map_entities(mapper),
                    $(Self::$timer(timer) => timer.map_entities(mapper),)*
                    Self::TimerAction(value) => Component::map_entities(value, mapper),
                    $(Self::$value(value) => Component::map_entities(value, mapper),)*
                    $(Self::$unsaved(value) => Component::map_entities(value, mapper),)*
                    $(Self::$list(entities) => entities.map_entities(mapper),)*
                    _ => {}
                }
            }
        }
    };
}

parts! {
    // They are cloned, and compared with `==`.
    values {
        SpeedModifier,
        OnClock,
        OwnedBy,
        Keyed,
        Pauses,
        Cooldown,
        CrateTimer,
    }
    unsaved {
        MovedRequest,
    }
    marks {
        Paused,
        RunsWhilePaused,
        Disabled,
    }
    // Their state is in a queue.
    timers {
        Timer: Timer,
        DespawnAfter: Lifetime,
        OpenRequest: Request,
    }
    // They follow from the other side of the relationship, except for the order.
    lists {
        Owned,
        PausedBy,
        SpeedModifiers,
    }
}

/// A timer, a lifetime or a time-out, with its state if it comes from a save.
#[derive(Clone, Debug)]
#[cfg_attr(
    feature = "serialize",
    derive(serde::Serialize, serde::Deserialize),
    serde(deny_unknown_fields)
)]
pub(super) struct TimerPart {
    pub(super) settings: Timer,
    #[cfg(feature = "serialize")]
    pub(super) state: Option<Box<TimerState>>,
}

impl MapEntities for TimerPart {
    fn map_entities<M: EntityMapper>(&mut self, mapper: &mut M) {
        self.settings.map_entities(mapper);
        #[cfg(feature = "serialize")]
        if let Some(state) = &mut self.state {
            (**state).map_entities(mapper);
        }
    }
}

impl TimerPart {
    /// Returns a copy of a timer, with its place in the queue.
    fn of(timer: &Timer) -> Self {
        Self {
            settings: timer.copy(),
            #[cfg(feature = "serialize")]
            state: None,
        }
    }
}

impl PartKind {
    /// Returns `true` for what decides on which clock the timers and callbacks of an entity are.
    pub(super) fn chooses_clock(self) -> bool {
        matches!(self, Self::OnClock | Self::Clock | Self::SpeedModifier)
    }
}

impl Part {
    /// Returns the entities that refer to this one, if the part is a list.
    pub(super) fn list(&self) -> Option<&[Entity]> {
        match self {
            Self::Owned(list) | Self::PausedBy(list) | Self::SpeedModifiers(list) => Some(list),
            _ => None,
        }
    }

    /// Leaves an entity out of a list.
    pub(super) fn leave_out(&mut self, entity: Entity) {
        if let Self::Owned(list) | Self::PausedBy(list) | Self::SpeedModifiers(list) = self {
            list.retain(|&it| it != entity);
        }
    }

    /// Takes over the place in the queue from the component that this part replaces.
    pub(super) fn keep_place(&mut self, entity: &EntityWorldMut) {
        if let Some((kind, timer)) = self.timer_mut()
            && let Some(replaced) = kind.on(entity.into())
        {
            timer.settings.take_place_of(replaced);
        }
    }

    /// Returns a copy that goes back to the place in the queue.
    pub(super) fn copied(&self) -> Self {
        let mut copy = self.clone();
        if let (Some((_, copy)), Some((_, timer))) = (copy.timer_mut(), self.timer()) {
            copy.settings.take_place_of(&timer.settings);
        }
        copy
    }
}

/// Replaces each entity in a part with the one that the function returns.
pub(super) struct MapEach<F>(pub(super) F);

impl<F: FnMut(Entity) -> Entity> EntityMapper for MapEach<F> {
    fn get_mapped(&mut self, entity: Entity) -> Entity {
        self.0(entity)
    }

    fn set_mapped(&mut self, _: Entity, _: Entity) {}
}

/// The components that are parts, as a world calls them.
#[derive(Clone, Debug)]
pub(super) struct PartKinds {
    kinds: Vec<(PartKind, ComponentId)>,
    pub(super) components: SavedComponents,
}

impl PartKinds {
    pub(super) fn of(world: &mut World) -> Self {
        let components = world.get_resource::<SavedComponents>();
        let components = components.cloned().unwrap_or_default();
        let theirs = components
            .iter()
            .map(|component| PartKind::Has(component.id));
        let kinds = PartKind::ALL.iter().copied().chain(theirs);
        Self {
            kinds: kinds.map(|kind| (kind, kind.register(world))).collect(),
            components,
        }
    }

    pub(super) fn ids(&self) -> impl Iterator<Item = ComponentId> {
        self.kinds.iter().map(|&(_, id)| id)
    }

    /// Returns the components of this crate, and those of the game.
    pub(super) fn ours(&self) -> impl Iterator<Item = ComponentId> {
        let ours = self.kinds.iter();
        let ours = ours.filter(|&&(kind, _)| kind != PartKind::Disabled);
        ours.map(|&(_, id)| id)
    }

    /// Returns `true` if an entity has one of them.
    pub(super) fn has_any(&self, entity: EntityRef) -> bool {
        self.ours().any(|id| entity.contains_id(id))
    }

    /// Returns the components of an entity that are saved, except for lists.
    #[cfg(feature = "serialize")]
    pub(super) fn saved(&self, entity: EntityRef) -> impl Iterator<Item = PartKind> {
        let present = self.kinds.iter();
        let present = present.filter(move |&&(_, id)| entity.contains_id(id));
        present.map(|&(kind, _)| kind).filter(|kind| {
            !matches!(
                kind,
                PartKind::Owned | PartKind::PausedBy | PartKind::SpeedModifiers
            )
        })
    }

    /// Returns copies of those components of an entity that are wanted.
    pub(super) fn read(
        &self,
        entity: EntityRef,
        is_wanted: impl Fn(PartKind, ComponentId) -> bool,
    ) -> Vec<Part> {
        let parts = self.kinds.iter();
        let parts = parts.filter(|&&(_, id)| entity.contains_id(id));
        let parts = parts.filter(|&&(kind, id)| is_wanted(kind, id));
        parts.filter_map(|&(kind, _)| kind.read(entity)).collect()
    }
}

/// Returns `true` if a component is saved without being registered.
#[cfg(feature = "serialize")]
pub(super) fn is_part(world: &mut World, id: ComponentId) -> bool {
    let mut kinds = PartKind::ALL.iter();
    kinds.any(|kind| *kind != PartKind::Disabled && kind.register(world) == id)
}

fn put_in_order<T: RelationshipTarget>(world: &mut World, target: Entity, order: &[Entity]) {
    let Some(mut list) = world.get_mut::<T>(target) else {
        return;
    };
    if list.iter().eq(order.iter().copied()) {
        return;
    }
    let places: EntityHashMap<usize> = order.iter().copied().zip(1..).collect();
    let mut entities: Vec<Entity> = list.iter().collect();
    entities.sort_by_key(|entity| places.get(entity));
    let list = list.bypass_change_detection().collection_mut_risky();
    list.clear();
    list.extend_from_iter(entities);
}
