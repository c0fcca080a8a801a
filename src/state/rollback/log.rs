//! The log of all changes since the oldest snapshot.

use alloc::vec::Vec;
use core::mem;

use bevy_ecs::{component::ComponentId, prelude::*, world::DeferredWorld};
use bevy_platform::sync::{Arc, Weak};

use super::{
    names::Names,
    states::{States, first_of, is_ours},
    unseen::Unseen,
};
use crate::{
    journal::Journal,
    message::Mailbag,
    state::part::{PartKind, PartKinds},
    timer::{Kind, QueuedTimer, TimerJournal, TimerName, TimerQueues},
};

/// The changes since the oldest snapshot that exists. A world without snapshots has no log.
///
/// ```text
/// snapshots   1          2        3
///             │ changes  │ chan…  │ journals of the present
/// ```
///
/// To go back to a snapshot, each entry gets the first value that was noted since. That is a change
/// like any other, so later snapshots can be restored afterwards.
#[derive(Resource)]
pub(super) struct Log {
    /// From the oldest snapshot to the latest one.
    periods: Vec<Period>,
    /// The journal of the entities. That of the timers is with them.
    states: States,
    unseen: Unseen,
    pub(super) kinds: PartKinds,
}

/// A snapshot, and the changes until the next one.
struct Period {
    /// The snapshot holds the token.
    snapshot: Weak<()>,
    /// A restore shares them. If an observer panics in it, they are still here for the next one.
    changes: Arc<Changes>,
}

/// Everything that has changed, as it was.
#[derive(Clone, Default)]
pub(super) struct Changes {
    pub(super) timers: TimerJournal,
    pub(super) states: States,
    /// The entities that were spawned again.
    pub(super) names: Names,
    /// The entities whose stable keys have changed. A restore leaves stable keys as they are.
    pub(super) rebound: Journal<Entity, ()>,
}

impl Changes {
    /// Adds the changes that came after these.
    fn append(&mut self, later: Self) {
        self.timers.append(later.timers);
        self.states.append(later.states);
        self.names.append(later.names);
        self.rebound.append(later.rebound);
    }

    /// Returns what each timer was at first, with the latest name of its entity.
    pub(super) fn first_timers<'a>(
        &'a self,
        names: &'a Names,
    ) -> impl Iterator<Item = (TimerName, &'a Option<QueuedTimer>)> {
        let earlier = |(entity, kind)| Some((names.earlier(entity)?, kind));
        let first = self.timers.under_first_names(earlier);
        first.map(|((entity, kind), timer)| ((names.latest(entity), kind), timer))
    }

    /// Returns the entities that have changed, some more than once.
    fn entities(&self) -> impl Iterator<Item = Entity> {
        let timers = self.timers.iter().map(|((entity, _), _)| entity);
        let states = self.states.iter().map(|(entity, _)| entity);
        let renamed = self.names.iter().map(|(_, latest)| latest);
        timers.chain(states).chain(renamed)
    }

    /// Returns `true` if an entity that is gone had a component of this crate or a registered one at first.
    fn had(&self, latest: Entity) -> bool {
        first_of(&self.states, &self.names, latest).is_some_and(is_ours)
    }

    fn mentions(&self, entity: Entity) -> bool {
        self.states.contains(entity)
            || has_timer(&self.timers, entity)
            || self.names.contains(entity)
    }

    /// Forgets an entity with these names.
    fn forget(&mut self, names: &[Entity]) {
        for &name in names {
            self.states.forget(name);
            self.names.forget(name);
            for kind in Kind::ALL {
                self.timers.forget((name, kind));
            }
        }
    }

    #[cfg(test)]
    fn len(&self) -> usize {
        self.timers.len() + self.states.len() + self.names.iter().count()
    }
}

fn has_timer(timers: &TimerJournal, entity: Entity) -> bool {
    let mut kinds = Kind::ALL.into_iter();
    kinds.any(|kind| timers.contains((entity, kind)))
}

impl Period {
    fn is_of(&self, snapshot: &Arc<()>) -> bool {
        self.snapshot.as_ptr() == Arc::as_ptr(snapshot)
    }

    fn exists(&self) -> bool {
        self.snapshot.strong_count() > 0
    }
}

impl Log {
    pub(super) fn new(world: &mut World) -> Self {
        Self {
            periods: Vec::new(),
            states: States::default(),
            unseen: Unseen::of(world),
            kinds: PartKinds::of(world),
        }
    }

    /// Notes an entity before it changes: the components that were there, and each list without the entity
    /// that has joined it.
    pub(super) fn note(
        world: &mut DeferredWorld,
        entity: Entity,
        was_there: impl Fn(ComponentId) -> bool,
        joined: impl Fn(PartKind) -> Option<Entity>,
    ) {
        let log = world.get_resource::<Self>();
        let Some(log) = log.filter(|log| !log.states.contains(entity)) else {
            return;
        };
        let Ok(changed) = world.get_entity(entity) else {
            return;
        };
        let mut parts = log.kinds.read(changed, |_, id| was_there(id));
        log.unseen.put_into(entity, &mut parts);
        for part in &mut parts {
            if let Some(joined) = part.kind().and_then(&joined) {
                part.leave_out(joined);
            }
        }
        if let Some(mut log) = world.get_resource_mut::<Self>() {
            log.states.note(entity, || Arc::new(parts));
        }
    }

    /// Notes the entities with new timers: the next run writes to them unseen.
    pub(super) fn note_new_timers(world: &mut World) {
        let unsettled = world.resource::<TimerQueues>().new_timers();
        let entities: Vec<Entity> = unsettled.map(|(entity, _)| entity).collect();
        Self::note_all(world, entities);
    }

    /// Notes the entities that systems have written to unseen, as they were before.
    fn note_written(world: &mut World) {
        let written = world.resource::<Self>().unseen.written(world);
        Self::note_all(world, written.iter().copied());
        world.resource_scope(|world, mut log: Mut<Self>| log.unseen.look(world, &written));
    }

    fn note_all(world: &mut World, entities: impl IntoIterator<Item = Entity>) {
        for entity in entities {
            Self::note(&mut world.into(), entity, |_| true, |_| None);
        }
    }

    /// Begins the period of a new snapshot.
    pub(super) fn add_snapshot(&mut self) -> Arc<()> {
        let token = Arc::new(());
        self.periods.push(Period {
            snapshot: Arc::downgrade(&token),
            changes: Arc::default(),
        });
        token
    }

    /// Forgets the snapshots that were dropped. Their changes belong to the snapshots before them.
    /// Returns `false` if no snapshot is left.
    pub(super) fn forget_dropped(world: &mut World) -> bool {
        let mut log = world.resource_mut::<Self>();
        if !log.periods.iter().all(Period::exists) {
            let mut joined = Vec::new();
            for period in mem::take(&mut log.periods) {
                if period.exists() {
                    log.periods.push(period);
                } else if let Some(nth) = log.periods.len().checked_sub(1) {
                    let changes = Arc::unwrap_or_clone(period.changes);
                    joined.extend(changes.entities().map(|entity| (nth, entity)));
                    Arc::make_mut(&mut log.periods[nth].changes).append(changes);
                }
            }
            world.resource_scope(|world, mut log: Mut<Self>| log.forget_gone(world, joined));
        }
        !world.resource::<Self>().periods.is_empty()
    }

    /// Forgets those of the entities that came after the snapshot of their period and are gone, unless a later
    /// snapshot knows them.
    fn forget_gone(&mut self, world: &World, joined: Vec<(usize, Entity)>) {
        let present = world.resource::<TimerQueues>().journal.as_ref();
        for (nth, entity) in joined {
            let changes = &self.periods[nth].changes;
            let latest = changes.names.latest(entity);
            if world.entities().contains_spawned(latest) || changes.had(latest) {
                continue;
            }
            let names: Vec<Entity> = changes.names.up_to(latest).collect();
            let is_known = names.iter().any(|&name| {
                let mut later = self.periods[nth + 1..].iter();
                later.any(|period| period.changes.mentions(name))
                    || self.states.contains(name)
                    || present.is_some_and(|timers| has_timer(timers, name))
            });
            if !is_known {
                Arc::make_mut(&mut self.periods[nth].changes).forget(&names);
            }
        }
    }

    /// Adds changes to the latest period.
    pub(super) fn append(&mut self, changes: Changes) {
        if let Some(latest) = self.periods.last_mut() {
            Arc::make_mut(&mut latest.changes).append(changes);
        }
    }

    /// Returns `true` if there is no later snapshot.
    pub(super) fn is_latest(&self, snapshot: &Arc<()>) -> bool {
        let latest = self.periods.last();
        latest.is_some_and(|latest| latest.is_of(snapshot))
    }

    /// Forgets the changes since the latest snapshot that a restore has put back.
    pub(super) fn forget_latest(&mut self) {
        if let Some(latest) = self.periods.last_mut() {
            latest.changes = Arc::new(Changes {
                rebound: latest.changes.rebound.clone(),
                ..Changes::default()
            });
        }
    }

    /// Returns the changes since a snapshot.
    pub(super) fn changes_since(&self, snapshot: &Arc<()>) -> Arc<Changes> {
        let mut periods = self.periods.iter();
        let nth = periods.position(|period| period.is_of(snapshot));
        match &self.periods[nth.expect("the snapshot exists")..] {
            [latest] => latest.changes.clone(),
            periods => {
                let mut all = Changes::default();
                for period in periods {
                    all.append(Changes::clone(&period.changes));
                }
                Arc::new(all)
            }
        }
    }

    /// Returns the number of entries.
    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.periods.iter().map(|period| period.changes.len()).sum()
    }
}

/// Moves the journals of the present into the latest period.
pub(super) fn end_journals(world: &mut World) {
    Log::note_written(world);
    let mut queues = world.resource_mut::<TimerQueues>();
    let timers = queues.journal.as_mut().map(Journal::take);
    let mailbag = world.get_resource_mut::<Mailbag>();
    let rebound =
        mailbag.and_then(|mut mailbag| mailbag.directory.rebound.as_mut().map(Journal::take));
    let mut log = world.resource_mut::<Log>();
    let states = mem::take(&mut log.states);
    log.append(Changes {
        timers: timers.unwrap_or_default(),
        states,
        names: Names::default(),
        rebound: rebound.unwrap_or_default(),
    });
}
