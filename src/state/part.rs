//! The components of the crate's state, as data.

use alloc::{boxed::Box, vec::Vec};
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
use crate::{
    clock::{Clock, OnClock, SpeedModifier, SpeedModifiers},
    message::MovedRequest,
    owner::{Owned, OwnedBy},
    pause::{Paused, PausedBy, Pauses, RunsWhilePaused},
    timer::{Cooldown, CrateTimer, DespawnAfter, Finished, Keyed, OpenRequest, Timer, TimerAction},
};

/// Defines [`Part`] and [`PartKind`] from the one list of the components.
macro_rules! parts {
    (
        values { $($value:ident,)* }
        unsaved { $($unsaved:ident,)* }
        marks { $($mark:ident,)* }
        boxed { $($boxed:ident,)* }
        special { $($special:ident,)* }
        lists { $($list:ident,)* }
    ) => {
        /// A component of an entity, as data, or something else that is known about the entity.
        #[derive(Clone, Debug)]
        #[cfg_attr(feature = "serialize", derive(serde::Serialize, serde::Deserialize))]
        pub(super) enum Part {
            $($value($value),)*
            $($mark,)*
            $($boxed(Box<$boxed>),)*
            $($special($special),)*
            /// The entities that refer to this one, in their order.
            $($list(Vec<Entity>),)*
            /// The time on the clock of the cooldown.
            #[cfg(feature = "serialize")]
            CooldownNow(Duration),
            /// A component of the game.
            #[cfg(feature = "serialize")]
            Component(Box<ComponentData>),
            // Formats that count the variants need these to be the last.
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
            $($boxed,)*
            $($special,)*
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
                $(Self::$boxed,)*
                $(Self::$special,)*
                $(Self::$list,)*
            ];

            fn register(self, world: &mut World) -> ComponentId {
                match self {
                    $(Self::$boxed => world.register_component::<$boxed>(),)*
                    $(Self::$special => world.register_component::<$special>(),)*
                    $(Self::$value => world.register_component::<$value>(),)*
                    $(Self::$unsaved => world.register_component::<$unsaved>(),)*
                    $(Self::$mark => world.register_component::<$mark>(),)*
                    $(Self::$list => world.register_component::<$list>(),)*
                    Self::Has(id) => id,
                }
            }

            /// Returns a copy of a component of this crate to go back to. The copy of all clocks says what a clock is.
            fn read(self, entity: EntityRef) -> Option<Part> {
                Some(match self {
                    Self::Clock => entity.get::<Clock>().map(|_| Part::Clock(Box::default()))?,
                    Self::Finished => Part::Finished(Box::new(entity.get::<Finished>()?.clone())),
                    Self::TimerAction => Part::TimerAction(entity.get::<TimerAction>()?.clone()),
                    Self::Timer => Part::Timer(entity.get::<Timer>()?.copy()),
                    Self::DespawnAfter => {
                        let DespawnAfter(timer) = entity.get()?;
                        Part::DespawnAfter(DespawnAfter(timer.copy()))
                    }
                    Self::OpenRequest => {
                        let OpenRequest(timer) = entity.get()?;
                        Part::OpenRequest(OpenRequest(timer.copy()))
                    }
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
                    $(Self::$boxed => _ = entity.remove::<$boxed>(),)*
                    $(Self::$special => _ = entity.remove::<$special>(),)*
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
                    $(Self::$boxed(_) => stringify!($boxed),)*
                    $(Self::$special(_) => stringify!($special),)*
                    $(Self::$value(_) => stringify!($value),)*
                    $(Self::$unsaved(_) => stringify!($unsaved),)*
                    $(Self::$mark => stringify!($mark),)*
                    $(Self::$list(_) => stringify!($list),)*
                    Self::CooldownNow(_) => "CooldownNow",
                    Self::Component(data) => &data.name,
                    Self::Has(_) => "Has",
                }
            }

            pub(super) fn kind(&self) -> Option<PartKind> {
                Some(match self {
                    $(Self::$boxed(_) => PartKind::$boxed,)*
                    $(Self::$special(_) => PartKind::$special,)*
                    $(Self::$value(_) => PartKind::$value,)*
                    $(Self::$unsaved(_) => PartKind::$unsaved,)*
                    $(Self::$mark => PartKind::$mark,)*
                    $(Self::$list(_) => PartKind::$list,)*
                    Self::Has(id) => PartKind::Has(*id),
                    #[cfg(feature = "serialize")]
                    Self::CooldownNow(_) | Self::Component(_) => return None,
                })
            }

            /// Inserts the component. A list follows from the entities in it. A snapshot copies components of the
            /// game elsewhere.
            pub(super) fn insert(self, entity: &mut EntityWorldMut) {
                match self {
                    $(Self::$boxed(value) => _ = entity.insert(*value),)*
                    $(Self::$special(value) => _ = entity.insert(value),)*
                    $(Self::$value(value) => _ = entity.insert(value),)*
                    $(Self::$unsaved(value) => _ = entity.insert(value),)*
                    $(Self::$mark => _ = entity.insert($mark),)*
                    $(Self::$list(_) => {})*
                    Self::Has(_) => {}
                    #[cfg(feature = "serialize")]
                    Self::CooldownNow(_) | Self::Component(_) => {}
                }
            }

            /// Returns `true` if two parts say the same. The copy of all clocks says what a clock is.
            pub(super) fn is_like(&self, other: &Self) -> bool {
                match (self, other) {
                    (Self::Clock(_), Self::Clock(_)) => true,
                    (Self::Finished(here), Self::Finished(there)) => here.is_same(there),
                    (Self::TimerAction(here), Self::TimerAction(there)) => here.is_same(there),
                    (Self::Timer(here), Self::Timer(there))
                    | (
                        Self::DespawnAfter(DespawnAfter(here)),
                        Self::DespawnAfter(DespawnAfter(there)),
                    )
                    | (
                        Self::OpenRequest(OpenRequest(here)),
                        Self::OpenRequest(OpenRequest(there)),
                    ) => here == there && here.loaded() == there.loaded(),
                    $((Self::$value(here), Self::$value(there)) => here == there,)*
                    $((Self::$unsaved(here), Self::$unsaved(there)) => here == there,)*
                    (Self::Has(here), Self::Has(there)) => here == there,
                    $((Self::$mark, Self::$mark) => true,)*
                    $((Self::$list(here), Self::$list(there)) => here == there,)*
                    _ => false,
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
                    $(Self::$boxed(value) => Component::map_entities(&mut **value, mapper),)*
                    $(Self::$special(value) => Component::map_entities(value, mapper),)*
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
    // They are large and rare.
    boxed {
        Clock,
        Finished,
    }
    // Their state is in a queue. A timer finds out whether it has finished.
    special {
        Timer,
        TimerAction,
        DespawnAfter,
        OpenRequest,
    }
    // They follow from the other side of the relationship, except for the order.
    lists {
        Owned,
        PausedBy,
        SpeedModifiers,
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
    pub(super) fn keep_place(&self, entity: &EntityWorldMut) {
        if let (Self::Timer(copy), Some(timer)) = (self, entity.get::<Timer>()) {
            copy.take_place_of(timer);
        }
        if let (Self::DespawnAfter(copy), Some(lifetime)) = (self, entity.get::<DespawnAfter>()) {
            copy.0.take_place_of(&lifetime.0);
        }
        if let (Self::OpenRequest(copy), Some(open)) = (self, entity.get::<OpenRequest>()) {
            copy.0.take_place_of(&open.0);
        }
    }

    /// Returns a copy that goes back to the place in the queue.
    pub(super) fn copied(&self) -> Self {
        match self {
            Self::Timer(timer) => Self::Timer(timer.copy()),
            Self::DespawnAfter(DespawnAfter(timer)) => {
                Self::DespawnAfter(DespawnAfter(timer.copy()))
            }
            Self::OpenRequest(OpenRequest(timer)) => Self::OpenRequest(OpenRequest(timer.copy())),
            part => part.clone(),
        }
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

    /// Returns the components of this crate on an entity, except for lists.
    #[cfg(feature = "serialize")]
    pub(super) fn of_crate(&self, entity: EntityRef) -> impl Iterator<Item = PartKind> {
        let present = self.kinds.iter();
        let present = present.filter(move |&&(_, id)| entity.contains_id(id));
        present.map(|&(kind, _)| kind).filter(|kind| {
            !matches!(
                kind,
                PartKind::Has(_) | PartKind::Owned | PartKind::PausedBy | PartKind::SpeedModifiers
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
