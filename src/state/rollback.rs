//! Going back to an earlier state of all timers and messages, for rollback netcode.
//!
//! [`snapshot_timers`](crate::rollback::RollbackWorldExt::snapshot_timers) remembers the state of this crate, and
//! [`restore_timers`](crate::rollback::RollbackWorldExt::restore_timers) goes back to it. Both take time in proportion
//! to what has changed and to the number of clocks, cooldowns, registered components and
//! messages on their way, not to the number of timers. While a snapshot exists, the world notes the earlier state of
//! everything that changes.
//!
//! A game that restores a snapshot and plays the same inputs again gets the same firings: with the same
//! deadlines and counts, in the same order, also among equal deadlines, and with the same random
//! numbers. It also gets the same messages: a restore throws away all that are on their way, and sends those again
//! that were on their way at the snapshot. They need neither `Clone` nor a codec.
//!
//! | restored | not restored |
//! |---|---|
//! | [`Timer`](crate::Timer), [`DespawnAfter`](crate::DespawnAfter), [`TimerAction`](crate::TimerAction), and how far they have come | the values that closures have captured and changed, such as a [one-time command](crate::timer::TimedCommands) that has run: a warning says so when it is due again |
//! | cancellations not yet reported, and finished timers whose entities are about to despawn | Bevy's `Messages`, observers, [run conditions](crate::conditions) such as `every` |
//! | owners, keys, pauses, [`Disabled`](bevy_ecs::entity_disabling::Disabled) on their entities, [`Cooldown`](crate::Cooldown)s | your components, including a [`TimerKey`](crate::TimerKey), unless you have registered them |
//! | [`OnClock`](crate::OnClock) | what a system writes to a `Cooldown` with [`bypass_change_detection`](bevy_ecs::change_detection::DetectChangesMut::bypass_change_detection) |
//! | what [`insert_for`](crate::DueEntityCommandsExt::insert_for) has inserted since: it goes again | what it had inserted before, and what has gone since, unless you have registered the component |
//! | the order in which an owner got its entities | a place in that order that [`insert_related`](bevy_ecs::world::EntityWorldMut::insert_related) has changed |
//! | clocks with their fractions, speed modifiers, the four built-in clocks, [`run_clock_if`](crate::conditions::run_clock_if) | Bevy's `Time` |
//! | entities that existed. Those that have become [children](ChildOf) of newer entities lose these parents | Bevy's hierarchy, unless you have registered `ChildOf` |
//! | open requests: a reply finds them, also after a restore has spawned them again | [`MessageComponent`](crate::message::MessageComponent), [`UpdateComponent`](crate::UpdateComponent) and stable keys. Insert them again on an entity that was spawned again, unless a registered component requires them. They are called after all others of their kind. A callback that a registered component has brought along since goes with the component |
//! | messages on their way, and whose turn it is among the followers that are there | what other threads have sent since the last frame: it stays. What arrived from them in the frames that are rolled back is gone. Their [functions](crate::message::MessageSender::run), which run once. [`MessageStats`](crate::message::MessageStats) |
#![cfg_attr(
    feature = "serialize",
    doc = "| [components of yours](crate::save::SaveWorldExt::add_saved_component) that you have registered | what a system writes to them with [`bypass_change_detection`](bevy_ecs::change_detection::DetectChangesMut::bypass_change_detection), or behind a lock |",
    doc = "| | entities that have moved to or from another world: do not roll back past a [`take_entity`](crate::moving::MoveWorldExt::take_entity) or a [`put_entity`](crate::moving::MoveWorldExt::put_entity) |"
)]
//!
//! Copy Bevy's times with each snapshot: `Time<Virtual>`, `Time<Fixed>`, and, if timers run on
//! [`ClockId::Real`](crate::ClockId::Real), `Time<Real>`. Insert them again with it. The order of the
//! two steps does not matter. If you forget one, its clock jumps: its timers fire late and in a burst.
//!
//! Entities that despawned after the snapshot are spawned again, so queries may visit entities in
//! another order than before. A system whose result depends on that order must sort them itself.
//!
//! [`changed_since`](crate::rollback::RollbackWorldExt::changed_since) returns the entities that have changed since a
//! snapshot, to store them or to send them elsewhere.
//!
//! To store timers in a file, or to load them in another process, use the module `save` of the feature
//! `serialize`.
//!
//! # Examples
//!
//! Predict two frames, go back, and play them again:
//!
//! ```
//! use core::time::Duration;
//! use bevy_app::prelude::*;
//! use bevy_due::{Timer, prelude::*, rollback::RollbackWorldExt};
//! use bevy_ecs::{entity::EntityHashMap, prelude::*};
//! use bevy_time::prelude::*;
//! use bevy_time::{TimePlugin, TimeUpdateStrategy};
//!
//! #[derive(Resource, Default)]
//! struct Counts(Vec<u64>);
//!
//! let mut app = App::new();
//! app.add_plugins((TimePlugin, DuePlugin::default()))
//!     .insert_resource(TimeUpdateStrategy::ManualDuration(Duration::from_millis(250)))
//!     .init_resource::<Counts>()
//!     .add_observer(|fired: On<TimerFired>, mut counts: ResMut<Counts>| {
//!         counts.0.push(fired.count());
//!     });
//! app.update(); // Bevy's first frame takes no time.
//! app.world_mut().spawn(Timer::every(0.25));
//! app.update();
//!
//! let timers = app.world_mut().snapshot_timers();
//! let game_time = *app.world().resource::<Time<Virtual>>();
//! let fixed_time = *app.world().resource::<Time<Fixed>>();
//! app.update();
//! app.update();
//!
//! let mut entities = EntityHashMap::default();
//! app.world_mut().restore_timers(&timers, &mut entities);
//! app.insert_resource(game_time).insert_resource(fixed_time);
//! app.update();
//! app.update();
//! assert_eq!(app.world().resource::<Counts>().0, [1, 2, 3, 2, 3]);
//! ```

mod changed;
mod entities;
mod ext;
mod log;
mod names;
mod states;
mod unseen;
mod watch;

use alloc::{boxed::Box, vec::Vec};
use core::fmt;

use bevy_ecs::{change_detection::Tick, entity::EntityHashMap, prelude::*, world::WorldId};
use bevy_platform::sync::Arc;

use super::{
    component::{ComponentCopies, SavedComponents, insert_again},
    part::PartKind,
};
use crate::{
    clock::{Age, ClockKey, ClockTable, ClocksCopy, put_clocks_back},
    message::{MailCopy, MessageComponent},
    timer::{QueuesMark, RunDepth, TimerQueues, end_since, limited_by, settle_arrivals},
    update::{UpdateComponent, follow_default_clocks, leave_later_clocks},
};
use changed::changed_since;
use entities::{despawn, finished, name_requests, rename_clocks, respawn, spawned_since};
pub use ext::RollbackWorldExt;
use log::{Changes, Log, end_journals};
use names::Names;
use states::{differing, first, put_back, put_in_order};
use watch::{unwatch, watch};

/// The state of all timers, clocks and pauses of a world at one moment.
///
/// [`RollbackWorldExt::snapshot_timers`] takes it. Any number of
/// snapshots can exist at a time, and each can be restored any number of times.
///
/// While a snapshot exists, the world keeps one earlier state of each timer that has changed since.
/// Drop the snapshots that you no longer need. The next run frees their memory.
pub struct TimerSnapshot {
    mark: ChangeMark,
    /// The entities that existed, and whose timers had finished.
    finished: Vec<Entity>,
    mail: MailCopy,
    /// The registered components of the game, by type.
    components: Vec<Box<dyn ComponentCopies>>,
}

/// A moment from which on a world notes what changes.
///
/// [`RollbackWorldExt::mark_changes`] returns it, and [`changed_since`](RollbackWorldExt::changed_since) takes it. A
/// [`TimerSnapshot`] is one, too. A mark holds no copy of a component of the game or of a message, so it can't be
/// restored.
///
/// While a mark exists, the world keeps one earlier state of each timer that has changed since. Drop it when you no
/// longer need it.
pub struct ChangeMark {
    world: WorldId,
    /// Entities that were spawned at a later tick are new.
    tick: Tick,
    /// Exists as long as the mark. The log knows it.
    token: Arc<()>,
    queues: QueuesMark,
    clocks: ClocksCopy,
}

impl AsRef<Self> for ChangeMark {
    fn as_ref(&self) -> &Self {
        self
    }
}

impl AsRef<ChangeMark> for TimerSnapshot {
    fn as_ref(&self) -> &ChangeMark {
        &self.mark
    }
}

/// Takes a snapshot: marks the moment, and copies what a mark does not.
#[track_caller]
fn snapshot_timers(world: &mut World) -> TimerSnapshot {
    TimerSnapshot {
        mark: begin_mark(world, "take a snapshot"),
        finished: finished(world).collect(),
        mail: MailCopy::of(world),
        components: SavedComponents::copy(world),
    }
}

/// Begins a period of the log, and copies everything that has no journal.
#[track_caller]
fn begin_mark(world: &mut World, what: &str) -> ChangeMark {
    check(world, what);
    world.flush();
    settle_arrivals(world);
    let clocks = ClocksCopy::of(world);
    match world.contains_resource::<Log>() {
        true => end_journals(world),
        false => watch(world),
    }
    Log::forget_dropped(world);
    let token = world.resource_mut::<Log>().add_snapshot();
    Log::note_new_timers(world);
    ChangeMark {
        world: world.id(),
        token,
        queues: world.resource::<TimerQueues>().mark(),
        clocks,
        // Whatever is spawned from now on has a later tick.
        tick: world.increment_change_tick(),
    }
}

/// Goes back to a snapshot. Entities that have despawned since are spawned again, and added to
/// `entities`.
#[track_caller]
fn restore_timers(
    world: &mut World,
    snapshot: &TimerSnapshot,
    entities: &mut EntityHashMap<Entity>,
) {
    check(world, "restore timers");
    let mark = &snapshot.mark;
    check_world(world, mark);
    world.flush();
    end_journals(world);
    Log::forget_dropped(world);
    let log = world.resource::<Log>();
    let kinds = log.kinds.clone();
    let is_latest = log.is_latest(&mark.token);
    let changes = log.changes_since(&mark.token);
    let mut names = changes.names.clone();
    let states = &changes.states;
    let respawned = respawn(world, snapshot, (states, &mut names), entities);
    names.give(world, entities);
    let new = spawned_since(world, snapshot, (states, &names));
    let on_another_clock = differing(states, world, &kinds, PartKind::chooses_clock);
    let on_another_clock = on_another_clock.map(|entity| names.latest(entity));
    let on_another_clock: Vec<_> = on_another_clock.collect();
    let limited = new.iter().filter_map(|&timer| limited_by(world, timer));
    let limited: Vec<_> = limited.collect();
    let latest = |entity| names.latest(entity);
    let renamed: Option<&dyn Fn(Entity) -> Entity> = (!names.is_empty()).then_some(&latest);
    let begin = world.increment_change_tick();
    let (mut first_later, mut inserted) = (Age::MAX, Vec::new());
    // The hooks and observers of this crate do nothing in a world without these resources.
    world.resource_scope(|world, mut queues: Mut<TimerQueues>| {
        world.resource_scope(|world, mut table: Mut<ClockTable>| {
            queues.take_out(world, changes.first_timers(&names));
            let changed = || first(states, &names).map(|(entity, _)| entity);
            changed().for_each(|entity| queues.keys.leave(world, entity));
            // What they bring along is replaced by what was there.
            let mut put_since = Vec::new();
            for copies in &snapshot.components {
                copies.put_back(world, mark.tick, begin, renamed, &mut inserted);
                put_since.push(world.increment_change_tick());
            }
            // An observer of one may have written to another.
            for (copies, since) in snapshot.components.iter().zip(put_since) {
                copies.put_back(world, since, begin, renamed, &mut inserted);
            }
            put_back(states, world, &kinds, &names, &new, mark.tick);
            changed().for_each(|entity| queues.keys.join(world, entity));
            rename_clocks(world, &respawned, &names);
            let new_clocks = new.iter().filter_map(|&entity| table.key_of(entity));
            let new_clocks: Vec<_> = new_clocks.collect();
            despawn(world, snapshot, &names, new);
            put_in_order(states, world, &names);
            let timers = changes.first_timers(&names);
            queues.put_back(world, &mark.queues, timers, &mut &names);
            let mut clocks = mark.clocks.clone();
            if !names.is_empty() {
                clocks.map_entities(&mut &names);
            }
            first_later = put_clocks_back(world, &mut table, clocks);
            let is_gone = |&clock: &ClockKey| table.id(clock).is_none();
            for clock in new_clocks.into_iter().filter(is_gone) {
                queues.forget_clock(clock);
            }
        });
    });
    // Those of the crate and registered ones are as they were.
    let is_restored = |id| kinds.ids().any(|kind| kind == id);
    for (owner, key) in limited {
        end_since(world, (owner, &key), mark.tick, is_restored);
    }
    leave_later_clocks(world, first_later);
    for entity in on_another_clock {
        follow_default_clocks(&mut world.into(), entity);
    }
    inserted.sort_unstable();
    inserted.dedup();
    for entity in inserted {
        insert_again::<UpdateComponent>(world, entity, begin);
        insert_again::<MessageComponent>(world, entity, begin);
    }
    name_requests(world, &names);
    snapshot.mail.put_back(world, &latest);
    for (earlier, latest) in names.iter() {
        if world.entities().contains_spawned(latest) {
            entities.insert(earlier, latest);
        }
    }
    // The log changes them now, and would copy the shared part.
    drop(changes);
    end_journals(world);
    match is_latest {
        true => forget_changes(world, names),
        false => world.resource_mut::<Log>().append(Changes {
            names: respawned,
            ..Changes::default()
        }),
    }
}

/// Returns `true` while a snapshot exists, and until the run after that.
#[cfg(feature = "serialize")]
pub(super) fn is_watched(world: &World) -> bool {
    world.contains_resource::<Log>()
}

/// Forgets the snapshots that were dropped since the previous run.
pub(crate) fn forget_dropped_snapshots(world: &mut World) {
    if world.contains_resource::<Log>() && !Log::forget_dropped(world) {
        unwatch(world);
    }
}

impl fmt::Debug for TimerSnapshot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TimerSnapshot").finish_non_exhaustive()
    }
}

impl fmt::Debug for ChangeMark {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ChangeMark").finish_non_exhaustive()
    }
}

#[track_caller]
fn check(world: &World, what: &str) {
    assert!(
        world.contains_resource::<TimerQueues>(),
        "can't {what} in a world without `DuePlugin`, or while timers are restored: add the plugin to the \
         app, and call this after the restore"
    );
    assert!(
        !RunDepth::is_active(world),
        "can't {what} in a handler of a timer: call this between two frames, or in a system"
    );
}

#[track_caller]
fn check_world(world: &World, mark: &ChangeMark) {
    assert!(
        mark.world == world.id(),
        "the snapshot was taken in another world: use it there, or take one in this world"
    );
}

/// Begins the period of the latest snapshot anew, because its state has been restored.
fn forget_changes(world: &mut World, mut names: Names) {
    names.forget_between(|entity| world.entities().contains_spawned(entity));
    let mut log = world.resource_mut::<Log>();
    log.forget_latest();
    log.append(Changes {
        names,
        ..Changes::default()
    });
    Log::note_new_timers(world);
}

#[cfg(test)]
mod tests {
    extern crate std;

    use core::time::Duration;
    use std::collections::VecDeque;

    use bevy_app::prelude::*;
    use bevy_time::{TimePlugin, TimeUpdateStrategy};

    use super::*;
    use crate::{plugin::DuePlugin, timer::Timer};

    const FRAME: Duration = Duration::from_millis(50);

    /// Returns a world in which 25 of a thousand timers fire in each frame.
    fn app() -> App {
        let mut app = App::new();
        app.add_plugins((TimePlugin, DuePlugin::default()))
            .insert_resource(TimeUpdateStrategy::ManualDuration(FRAME));
        for nth in 0..1000 {
            let timer = Timer::every(40 * FRAME).first_after(nth % 40 * FRAME);
            app.world_mut().spawn(timer);
        }
        // The resource of the log keeps its entity.
        drop(app.world_mut().snapshot_timers());
        for _ in 0..3 {
            app.update();
        }
        app
    }

    fn entries(app: &App) -> usize {
        app.world().get_resource::<Log>().map_or(0, Log::len)
    }

    /// Plays a frame in which a few timers come and go.
    fn play(app: &mut App) {
        for nth in 1..5 {
            let timer = Timer::after(nth * FRAME).despawn_when_done();
            app.world_mut().spawn(timer);
        }
        app.update();
    }

    #[test]
    fn a_window_of_eight_frames_keeps_the_log_short() {
        let mut app = app();
        let entities = app.world().entities().count_spawned();
        let mut window = VecDeque::new();
        let mut most = 0;
        for frame in 0..300 {
            window.push_back(app.world_mut().snapshot_timers());
            if window.len() > 8 {
                window.pop_front();
            }
            play(&mut app);
            if frame % 3 == 0 {
                let mut names = EntityHashMap::default();
                let nth = frame % window.len();
                app.world_mut().restore_timers(&window[nth], &mut names);
            }
            if frame == 30 {
                most = entries(&app);
            }
            assert!(
                frame < 30 || entries(&app) <= 2 * most,
                "{} entries",
                entries(&app)
            );
        }
        assert!(
            most > 8 * 25,
            "the log should hold eight frames: {most} entries"
        );
        window.clear();
        for _ in 0..10 {
            app.update();
        }
        assert!(
            !app.world().contains_resource::<Log>(),
            "no snapshot exists"
        );
        let after = app.world().entities().count_spawned();
        assert_eq!(after, entities, "the observers should be gone");
    }

    #[test]
    fn snapshots_that_come_and_go_leave_the_log_of_an_old_one_as_it_is() {
        let mut app = app();
        let old = app.world_mut().snapshot_timers();
        let mut all = 0;
        for frame in 0..400 {
            drop(app.world_mut().snapshot_timers());
            app.update();
            if frame == 100 {
                all = entries(&app);
            }
        }
        assert_eq!(all, 1000, "all timers have fired since");
        assert_eq!(entries(&app), all);
        drop(old);
    }

    #[test]
    fn timers_that_come_and_go_leave_the_log_of_an_old_snapshot_as_it_is() {
        let mut app = app();
        let old = app.world_mut().snapshot_timers();
        let mut window = VecDeque::new();
        let mut most = 0;
        for frame in 0..300 {
            window.push_back(app.world_mut().snapshot_timers());
            if window.len() > 8 {
                window.pop_front();
            }
            play(&mut app);
            if frame % 3 == 0 {
                let nth = frame % window.len();
                app.world_mut()
                    .restore_timers(&window[nth], &mut EntityHashMap::default());
            }
            match frame {
                0..100 => most = most.max(entries(&app)),
                _ => assert!(entries(&app) <= most, "{} entries", entries(&app)),
            }
        }
        assert!(most > 1000, "all timers have fired since: {most} entries");
        drop(old);
    }

    #[test]
    fn a_snapshot_of_each_frame_keeps_one_frame() {
        let mut app = app();
        let mut snapshot = app.world_mut().snapshot_timers();
        for _ in 0..100 {
            app.update();
            let changed = app.world_mut().changed_since(&snapshot);
            assert_eq!(changed.len(), 25, "25 timers have fired");
            snapshot = app.world_mut().snapshot_timers();
            assert!(entries(&app) <= 25, "{} entries", entries(&app));
        }
        app.update();
        assert_eq!(entries(&app), 0, "the previous snapshot is forgotten");
        drop(snapshot);
    }

    #[test]
    fn a_snapshot_that_is_restored_again_and_again_keeps_the_log_short() {
        let mut app = app();
        let bomb = app.world_mut().spawn(Timer::after(FRAME)).id();
        let snapshot = app.world_mut().snapshot_timers();
        let mut name = bomb;
        for _ in 0..100 {
            app.world_mut().despawn(name);
            let mut names = EntityHashMap::default();
            app.world_mut().restore_timers(&snapshot, &mut names);
            name = names[&bomb];
            assert!(app.world().get::<Timer>(name).is_some());
            assert!(names.len() <= 2, "it has had the names {names:?}");
        }
        assert_eq!(entries(&app), 1, "only its latest name is kept");
    }

    #[test]
    fn the_journal_notes_what_changes_and_nothing_else() {
        let mut app = app();
        let snapshot = app.world_mut().snapshot_timers();
        app.update();
        drop(app.world_mut().snapshot_timers());
        assert_eq!(entries(&app), 25, "25 timers have fired");
        app.world_mut()
            .restore_timers(&snapshot, &mut EntityHashMap::default());
        assert_eq!(entries(&app), 0, "nothing has changed since the snapshot");
    }
}
