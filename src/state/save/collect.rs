//! Collecting the timers of a world.

use alloc::{borrow::ToOwned, boxed::Box, vec::Vec};

use bevy_ecs::{
    archetype::{Archetype, ArchetypeEntity},
    component::ComponentId,
    entity::{EntityHashMap, EntityHashSet, MapEntities},
    prelude::*,
};

use super::{
    Content, SaveError, SavedEntity, SavedTimers, Unsavable, UnsavableComponent, UnsavableTimer,
};
use crate::{
    clock::{Clock, ClockId, ClockTable, OnClock, SpeedModifiers, clock_of},
    message::{Inbox, turn_of, visit_letters},
    owner::{Owned, owner_of},
    pause::{PausedBy, Pauses},
    state::{
        Versioned, is_free,
        letter::{LetterData, MailData, mail_of},
        part::{MapEach, Part, PartKind, PartKinds},
    },
    timer::{self, Ended, Keyed, StateReader, TimerAction, WorldState},
    update::UpdateComponent,
};

/// Saves all timers of a world and all messages on their way, and returns those that are not data separately.
pub(crate) fn save_all(world: &mut World) -> (SavedTimers, Vec<Unsavable>) {
    world.flush();
    Inbox::move_to_mailbag(world);
    timer::settle_arrivals(world);
    let mut mail = MailData::default();
    visit_letters(world, |_, letter| {
        mail.add(world, letter, &|entity| existing(world, entity));
    });
    let kinds = PartKinds::of(world);
    let ids: Vec<ComponentId> = kinds.ours().collect();
    let has_part = |archetype: &&Archetype| ids.iter().any(|&id| archetype.contains(id));
    let archetypes = world.archetypes().iter().filter(has_part);
    let entities = archetypes.flat_map(Archetype::entities);
    let mut collector = Collector::new(world, &kinds);
    // Their components may be gone already.
    let ended = collector.ends.iter().map(|(_, end)| end.entity);
    let mut entities: Vec<Entity> = entities.map(ArchetypeEntity::id).chain(ended).collect();
    let in_mail = mail.letters.iter().flat_map(LetterData::entities);
    collector.in_mail.extend(in_mail);
    entities.extend(&collector.in_mail);
    entities.sort_unstable();
    entities.dedup();
    collector.entities.reserve_exact(entities.len());
    entities.iter().for_each(|&entity| collector.add(entity));
    let mut bare = core::mem::take(&mut collector.missing_clocks);
    bare.extend(&collector.in_components);
    bare.sort_unstable();
    bare.dedup();
    let new = bare
        .iter()
        .filter(|&bare| entities.binary_search(bare).is_err());
    new.for_each(|&bare| collector.add(bare));
    with_mail(collector.finish(WorldState::read(world)), mail)
}

/// Adds messages to saved timers, and to what can't be saved.
fn with_mail(
    (mut saved, mut unsavable): (SavedTimers, Vec<Unsavable>),
    mail: MailData,
) -> (SavedTimers, Vec<Unsavable>) {
    saved.set_mail(mail.letters);
    unsavable.extend(mail.unsavable.into_iter().map(Unsavable::Message));
    (saved, unsavable)
}

/// Saves all timers of a world and all messages on their way.
pub(crate) fn save_timers(world: &mut World) -> Result<SavedTimers, SaveError> {
    check_plugin(world)?;
    all_or_error(save_all(world))
}

/// Saves an entity, everything it owns, and the messages on their way to these.
pub(crate) fn save_entity(world: &mut World, entity: Entity) -> Result<SavedTimers, SaveError> {
    Inbox::move_to_mailbag(world);
    let saved = save_entities(world, &[entity]);
    let mail = mail_of(world, &saved, &|entity| existing(world, entity));
    match saved.into_iter().zip(mail).next() {
        Some((saved, mail)) => all_or_error(with_mail((saved?, Vec::new()), mail)),
        None => Err(SaveError::NoSuchEntity(entity)),
    }
}

/// Saves each of some entities with everything it owns, without the messages on their way.
pub(crate) fn save_entities(
    world: &mut World,
    entities: &[Entity],
) -> Vec<Result<SavedTimers, SaveError>> {
    world.flush();
    timer::settle_arrivals(world);
    let kinds = PartKinds::of(world);
    let mut collector = Collector::new(world, &kinds);
    let saved = entities.iter().map(|&entity| {
        check_plugin(world)?;
        if world.get_entity(entity).is_err() {
            return Err(SaveError::NoSuchEntity(entity));
        }
        for member in dependents(world, entity) {
            collector.add(member.id());
        }
        all_or_error(collector.finish(None))
    });
    saved.collect()
}

fn check_plugin(world: &World) -> Result<(), SaveError> {
    match world.contains_resource::<ClockTable>() {
        true => Ok(()),
        false => Err(SaveError::NoPlugin),
    }
}

fn all_or_error(
    (saved, unsavable): (SavedTimers, Vec<Unsavable>),
) -> Result<SavedTimers, SaveError> {
    match unsavable.is_empty() {
        true => Ok(saved),
        false => Err(SaveError::Unsavable(unsavable)),
    }
}

/// Returns an entity and everything that depends on it: what it owns, and those pauses and speed modifiers of all of
/// these that belong to nobody else, with the entities that they own. Each entity depends on at most one, so that it is
/// saved once.
fn dependents(world: &World, entity: Entity) -> Vec<EntityRef<'_>> {
    let mut found: Vec<EntityRef> = world.get_entity(entity).into_iter().collect();
    let mut seen: EntityHashSet = [entity].into_iter().collect();
    let mut next = 0;
    while let Some(&entity) = found.get(next) {
        next += 1;
        let owned = entity.get::<Owned>().into_iter().flat_map(Owned::iter);
        let pauses = entity
            .get::<PausedBy>()
            .into_iter()
            .flat_map(PausedBy::iter);
        let modifiers = entity.get::<SpeedModifiers>().into_iter();
        let modifiers = modifiers.flat_map(RelationshipTarget::iter);
        // One that pauses another entity is saved with that one.
        let modifiers = modifiers.filter(|&it| world.get::<Pauses>(it).is_none());
        let free = pauses.chain(modifiers).filter(|&it| is_free(world, it));
        let new = owned.chain(free).filter(|&it| seen.insert(it));
        found.extend(new.filter_map(|entity| world.get_entity(entity).ok()));
    }
    found
}

/// Returns an entity, or one that never exists if it is gone.
fn existing(world: &World, entity: Entity) -> Entity {
    match world.entities().contains_spawned(entity) {
        true => entity,
        false => Entity::PLACEHOLDER,
    }
}

/// Saves entities.
struct Collector<'w> {
    world: &'w World,
    kinds: &'w PartKinds,
    states: Option<StateReader<'w>>,
    /// What the next run ends.
    ends: Vec<(usize, Ended)>,
    /// Their places, by entity.
    ends_of: EntityHashMap<Vec<usize>>,
    /// The entities to which messages on their way refer.
    in_mail: EntityHashSet,
    /// The entities to which components of the game refer.
    in_components: EntityHashSet,
    /// The entities on which timers wait for a clock.
    missing_clocks: Vec<Entity>,
    entities: Vec<SavedEntity>,
    unsavable: Vec<Unsavable>,
}

impl<'w> Collector<'w> {
    fn new(world: &'w World, kinds: &'w PartKinds) -> Self {
        let states = StateReader::new(world);
        let ends = states.iter().flat_map(StateReader::ends);
        let ends = ends.filter(|(_, end)| world.get_entity(end.entity).is_ok());
        let ends: Vec<_> = ends.collect();
        let mut ends_of = EntityHashMap::<Vec<usize>>::default();
        for (nth, (_, end)) in ends.iter().enumerate() {
            ends_of.entry(end.entity).or_default().push(nth);
        }
        Self {
            world,
            kinds,
            ends,
            ends_of,
            states,
            in_mail: EntityHashSet::default(),
            in_components: EntityHashSet::default(),
            missing_clocks: Vec::new(),
            entities: Vec::new(),
            unsavable: Vec::new(),
        }
    }

    fn add(&mut self, entity: Entity) {
        let (Ok(entity), Some(states)) = (self.world.get_entity(entity), &mut self.states) else {
            return;
        };
        let mut parts: Vec<Part> = Vec::new();
        let is_saved = |kind| !matches!(kind, PartKind::MovedRequest | PartKind::Has(_));
        for mut part in self.kinds.read(entity, |kind, _| is_saved(kind)) {
            if let Some((kind, timer)) = part.timer_mut() {
                timer.state = states.read(entity, kind).map(Box::new);
                parts.extend(timer.state.is_some().then_some(part));
                continue;
            }
            parts.extend(match part {
                Part::HasClock => {
                    let state = states.times.read_of(entity);
                    state.map(|state| Part::Clock(Box::new(state)))
                }
                // An entity that is not saved with it may pause it.
                Part::PausedBy(list) => Some(Part::PausedBy(list)),
                part if part.list().is_some_and(|list| list.len() < 2) => None,
                part => Some(part),
            });
            if let Some(Part::Cooldown(_)) = parts.last() {
                let clock = clock_of(self.world, entity, owner_of(entity), None);
                let (now, is_held) = states.times.now(clock);
                parts.push(Part::CooldownNow { now, is_held });
            }
        }
        if let Some(closure) = entity.get().and_then(TimerAction::closure) {
            if parts.iter().any(|part| matches!(part, Part::Timer(_))) {
                self.unsavable.push(Unsavable::Timer(UnsavableTimer {
                    entity: entity.id(),
                    owner: owner_of(entity),
                    key: entity.get().cloned().map(Keyed::into),
                    closure: closure.to_owned(),
                }));
            }
            parts.retain(|part| !part.serves_timer());
        }
        let clocks = parts.iter().filter_map(|part| match part {
            Part::OnClock(OnClock(ClockId::Own(clock))) => Some(*clock),
            part => part.clock(),
        });
        let missing = clocks.filter(|&clock| {
            let clock = self.world.get_entity(clock);
            clock.is_ok_and(|clock| !clock.contains::<Clock>())
        });
        self.missing_clocks.extend(missing);
        for part in &mut parts {
            part.map_entities(&mut MapEach(|entity| existing(self.world, entity)));
        }
        for component in self.kinds.components.iter() {
            let mut references = Vec::new();
            let mut refer = MapEach(|entity| {
                let entity = existing(self.world, entity);
                references.push(entity);
                entity
            });
            match component.save(entity, &mut refer) {
                None => {}
                Some(Ok(data)) => {
                    references.retain(|&entity| entity != Entity::PLACEHOLDER);
                    self.in_components.extend(references);
                    parts.push(Part::Component(Box::new(data)));
                }
                Some(Err(error)) => self
                    .unsavable
                    .push(Unsavable::Component(UnsavableComponent {
                        entity: entity.id(),
                        component: component.name.clone(),
                        error,
                    })),
            }
        }
        if parts.iter().any(|part| matches!(part, Part::Component(_))) {
            let update = entity.get().and_then(UpdateComponent::turn);
            let message = turn_of(self.world, entity);
            let is_called = update.or(message).is_some();
            parts.extend(is_called.then_some(Part::Turns { update, message }));
        }
        let entity = entity.id();
        let parts = parts.into_boxed_slice();
        self.entities.push(SavedEntity { entity, parts });
    }

    /// Returns the entities since the last call.
    fn finish(&mut self, world: Option<WorldState>) -> (SavedTimers, Vec<Unsavable>) {
        let mut entities = core::mem::take(&mut self.entities);
        let unsavable = core::mem::take(&mut self.unsavable);
        if !unsavable.is_empty() {
            let referred = self.in_mail.union(&self.in_components);
            drop_remains(&mut entities, &unsavable, referred.copied());
        }
        let saved: EntityHashSet = entities.iter().map(|saved| saved.entity).collect();
        for part in entities.iter_mut().flat_map(|saved| &mut saved.parts) {
            if let Part::Clock(state) = part
                && let Some(ClockId::Own(parent)) = state.parent()
                && !saved.contains(&parent)
                && self.world.get::<Clock>(parent).is_none()
            {
                // It waits for a clock on an entity that is not saved with it.
                state.lose_parent();
            }
        }
        let ends = saved.iter().filter_map(|entity| self.ends_of.get(entity));
        let mut ends: Vec<usize> = ends.flatten().copied().collect();
        ends.sort_unstable();
        let content = Content {
            world,
            mail: Vec::new(),
            ends: ends.into_iter().map(|nth| self.ends[nth]).collect(),
            entities,
        };
        (SavedTimers(Versioned::V2(content)), unsavable)
    }
}

/// Drops the entities of timers and components that were left out, unless something else needs them.
fn drop_remains(
    entities: &mut Vec<SavedEntity>,
    unsavable: &[Unsavable],
    referred: impl Iterator<Item = Entity>,
) {
    let left_out = unsavable.iter().filter_map(|unsavable| match unsavable {
        Unsavable::Timer(timer) => Some(timer.entity),
        Unsavable::Component(component) => Some(component.entity),
        Unsavable::Message(_) => None,
    });
    let left_out: EntityHashSet = left_out.collect();
    let parts = entities.iter().flat_map(|saved| &saved.parts);
    let referred: EntityHashSet = parts.flat_map(Part::references).chain(referred).collect();
    entities.retain(|SavedEntity { entity, parts }| {
        let is_bare = parts.iter().all(|part| matches!(part, Part::OwnedBy(_)));
        !(left_out.contains(entity) && is_bare) || referred.contains(entity)
    });
}
