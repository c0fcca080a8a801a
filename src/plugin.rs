//! The plugin: everything that happens in a frame, in order.

use alloc::vec::Vec;
use core::num::NonZeroU32;

use bevy_app::{FixedMain, prelude::*};
use bevy_ecs::{
    entity_disabling::Disabled,
    event::EntityComponentsTrigger,
    observer::{IntoObserver, ObservedBy},
    prelude::*,
    system::{SystemParam, SystemState},
    world::DeferredWorld,
};
use bevy_time::{Time, TimeSystems, Virtual, time_system};

use crate::{
    clock::{
        Cadence, Clock, ClockTable, OnClock, SpeedModifier, SpeedModifiers, add_clock,
        add_missing_clock, bevy_time, clock_of, follow_on_clock, is_game_stopped, on_modify_speed,
        read_clocks,
    },
    message::{Inbox, Mailbag, MessageStats, deliver_messages, follow, report_time_out},
    owner::{Owned, owner_of},
    pause::{Paused, PausedBy, Pauses, RunsWhilePaused},
    rollback::forget_dropped_snapshots,
    timer::{
        FireParams, Kind, OpenRequest, OwnedTimerCancelled, OwnedTimerFired, Shown, TimerCancelled,
        TimerFired, TimerQueues, add_modified_clocks, add_timer, cancel_timers_of_clock,
        check_component, check_handler, end_broken_run, follow_clocks_later, follow_observers,
        pause_or_resume, run_timers, show_statuses, take_key,
    },
    update::{
        UpdateRosters, UpdateState, enroll, follow_clocks, follow_default_clocks, run_updates,
    },
};

/// Runs the [`Timer`](crate::Timer)s, [`UpdateComponent`](crate::UpdateComponent)s and
/// [`MessageComponent`](crate::message::MessageComponent)s of an [`App`].
///
/// The plugin needs Bevy's clock: add it alongside `DefaultPlugins`, `MinimalPlugins` or a bare
/// [`TimePlugin`](bevy_time::TimePlugin), before or after. Components inserted earlier join when
/// the plugin is added, in no particular order.
///
/// You may despawn every entity that does not hold a resource; the plugin keeps working. Its observers are on
/// entities with resources, and the built-in clocks are not entities.
///
/// [`World::clear_entities`] is not allowed: Bevy then runs observers that it has despawned, and may crash. For the
/// same reason, a call of [`World::despawn_all`] must leave out the observers of your game, with
/// [`Without<Observer>`](Observer).
///
/// # The run
///
/// A *run* is one pass through the last three sets of [`DueSystems`]: one per frame in [`PreUpdate`],
/// and one per step of the fixed schedule in [`FixedPreUpdate`] for the [fixed
/// clock](crate::ClockId::Fixed) and its descendants. Each frame and each step reads the clocks once,
/// before the run. A run first adds the timers and update components that were inserted since the last
/// run. Then it fires the timers that are due, and calls the update callbacks. Last it delivers the
/// messages. A fixed step delivers no messages.
///
/// With [exact frames](Self::exact_frames), timers are added and fire at each instant of the frame at which something is
/// due. So what fires "in the next run" fires at the next instant at which it is due, which may be in the same frame. The
/// callbacks are called once, at the end of the frame.
///
/// # Promises
///
/// 1. **Order.** All timers due on a clock in a run fire by (deadline, sequence). Equal deadlines
///    fire in the order in which the timers were armed, and then end the lifetimes of the same deadline. The
///    repeats of different timers interleave as they would have in real time. A timer keeps its sequence through all
///    repeats and through a pause; re-arming, rescheduling and a move to another clock give it a new one. The clocks run
///    one after the other: real, virtual, frames, then your own by age. Clocks that are loaded together keep their order.
///    The fixed clock has its own schedule.
/// 2. **Never early.** A timer never fires before its deadline. `deadline == now` fires.
/// 3. **Cancel is immediate.** A timer stops firing as soon as it is removed, replaced, despawned
///    or paused. This holds later in the same run and between two of its repeats. A pause reaches
///    everything that its entity owns, except for what
///    [runs while it is paused](crate::timer::RunsWhilePaused).
/// 4. **Adds are deferred.** A timer that is armed during a run fires in the next run at the
///    earliest.
/// 5. **Handlers may do anything**: arm, re-arm, cancel, pause, despawn themselves, their owner,
///    their clock or others. If a handler of the last firing inserts a new `Timer` on the entity,
///    the new one stays.
/// 6. **No drift.** The k-th deadline of a periodic timer is first + k × interval, exactly. A clock
///    of any speed carries over fractions of a nanosecond. [`MissedTicks::Delay`](crate::MissedTicks::Delay)
///    starts a new grid. With [slack](crate::Timer::slack), this holds for the start of each
///    window.
/// 7. **Long frames** follow the timer's [`MissedTicks`](crate::MissedTicks). A burst ends at the
///    [`burst_limit`](Self::burst_limit). The remaining deadlines are skipped and counted in
///    [`TimerFired::missed`], and the timer stays on its grid. (Bevy itself shortens frames to
///    `Time::<Virtual>::max_delta`, 250 ms by default. Time cut off there is lost for every timer.)
/// 8. **Deterministic.** Equal inputs give equal firings in the same order. With
///    [exact frames](Self::exact_frames), this holds whatever the lengths of the frames.
/// 9. **Extreme values are safe.** Zero delays, the longest `Duration` and clock jumps of a
///    thousand years cause no panic, no overflow and no wrong order. Deadlines saturate.
/// 10. **Bad input is a clear error** that names the value: [`InvalidTimer`](crate::timer::InvalidTimer),
///     [`ClockError`](crate::clock::ClockError).
///
/// `docs/proofs.md` in the repository says how each promise is tested.
///
/// # Effects
///
/// - A pause reaches everything that its target [owns](crate::OwnedBy), at any depth, except for what
///   [runs while its owner is paused](crate::timer::RunsWhilePaused). Children of Bevy's hierarchy are not owned.
/// - A stun by [`pause_for`](crate::DueEntityCommandsExt::pause_for) and a marker by
///   [`insert_for`](crate::DueEntityCommandsExt::insert_for) last as long as they say, whatever stuns or slows their
///   target. Both count on the parent of the target's own clock.
/// - An effect ends exactly at its deadline, whatever carries it. If a timer's entity is about to despawn, its
///   [`Pauses`](crate::timer::Pauses) and [`SpeedModifier`](crate::clock::SpeedModifier) are removed right after the
///   handlers of its last firing. The entity stays until the next run.
/// - A slow changes the speed of the target's own clock, and of what the target owns directly, unless that chose another
///   clock. A target without a clock gets one.
///
/// The recipe [stun](crate::guide::cookbook::stun#where-an-effect-belongs) lists which effect belongs where.
///
/// # Callbacks
///
/// The promises above also hold for callbacks, where they apply. `UpdateComponent`s are called by
/// priority, then in the order in which they were inserted. Messages are delivered in the order of
/// sending. An update component that is inserted during a run takes part in the next one. A message
/// component gets every message whose delivery begins after it was inserted. A message that is sent during
/// the delivery waits for the next one, so callbacks cannot loop in place. A component that is removed is
/// not called again. Callbacks may do anything through commands. Equal inputs give equal calls,
/// except for messages from other threads. Every [request](crate::message::MessageEntityCommandsExt::ask)
/// completes exactly once: with a reply or with [`NoAnswer`](crate::message::NoAnswer). No sent message is
/// lost if you [close the inbox](crate::message::MessageWorldExt::close_inbox) at the end.
///
/// # Panics
///
/// The app panics in its first frame if there is no `Time<Virtual>`. Adding the plugin twice also panics.
///
/// # Examples
///
/// ```
/// use bevy_app::prelude::*;
/// use bevy_due::prelude::*;
/// use bevy_time::TimePlugin;
///
/// let mut app = App::new();
/// app.add_plugins((TimePlugin, DuePlugin::default()));
/// app.update();
/// ```
#[derive(Clone, Copy, Debug)]
pub struct DuePlugin {
    /// The maximum number of firings of one timer in one run, 1,000 by default.
    ///
    /// In a long frame, a periodic timer fires once for every deadline that has passed. At this
    /// limit, the run skips the rest, and [`TimerFired::missed`] of the last firing counts them.
    /// The timer continues with the next deadline on its grid. A timer that ends at the limit
    /// misses nothing.
    ///
    /// # Examples
    ///
    /// ```
    /// use core::{num::NonZeroU32, time::Duration};
    /// use bevy_app::prelude::*;
    /// use bevy_due::{Timer, prelude::*};
    /// use bevy_ecs::prelude::*;
    /// use bevy_time::{TimePlugin, TimeUpdateStrategy};
    ///
    /// #[derive(Resource, Default)]
    /// struct Missed(Vec<u64>);
    ///
    /// let burst_limit = NonZeroU32::new(3).unwrap();
    /// let mut app = App::new();
    /// app.add_plugins((TimePlugin, DuePlugin { burst_limit, ..DuePlugin::default() }))
    ///     .insert_resource(TimeUpdateStrategy::ManualDuration(Duration::from_millis(250)))
    ///     .init_resource::<Missed>()
    ///     .add_observer(|fired: On<TimerFired>, mut missed: ResMut<Missed>| {
    ///         missed.0.push(fired.missed());
    ///     });
    /// app.world_mut().spawn(Timer::every(0.05));
    ///
    /// app.update(); // Bevy's first frame takes no time.
    /// app.update();
    /// assert_eq!(app.world().resource::<Missed>().0, [0, 0, 2], "five deadlines, three firings");
    /// ```
    pub burst_limit: NonZeroU32,
    /// Whether a frame goes through its deadlines one after the other, `false` by default.
    ///
    /// By default, all clocks show the end of the frame while its timers fire. What a handler starts, pauses or slows
    /// counts from there, up to a frame later than the deadline. With exact frames, each handler finds the clocks at
    /// its deadline, and what it arms may fire later in the same frame. Then equal inputs give equal games, whatever
    /// the lengths of the frames. The [guide](crate::guide::long_frames) says when to choose which, and what still
    /// happens once per frame: systems, callbacks, messages and fixed steps.
    ///
    /// The clocks then show the end of the previous frame until the timers run. Bevy has counted the frame before: a
    /// handler that pauses `Time<Virtual>` stops its clock at the deadline, and the rest of the frame passes after the
    /// pause. A chain of handlers that arm timers, like a burst, ends at the [`burst_limit`](Self::burst_limit): the
    /// next timer waits for the next frame. The entity of a finished timer that despawns is gone before the next
    /// deadline of the frame, so systems that read its message no longer find it.
    ///
    /// # Examples
    ///
    /// ```
    /// use core::time::Duration;
    /// use bevy_app::prelude::*;
    /// use bevy_due::{ClocksMut, Timer, prelude::*};
    /// use bevy_ecs::prelude::*;
    /// use bevy_time::{Time, TimePlugin, TimeUpdateStrategy, Virtual};
    ///
    /// let mut app = App::new();
    /// app.add_plugins((TimePlugin, DuePlugin { exact_frames: true, ..DuePlugin::default() }))
    ///     .insert_resource(TimeUpdateStrategy::ManualDuration(Duration::from_secs(10)));
    /// app.world_mut().resource_mut::<Time<Virtual>>().set_max_delta(Duration::MAX);
    /// app.update(); // Bevy's first frame takes no time.
    ///
    /// let sun = app.world_mut().spawn(Clock::new()).id();
    /// app.world_mut().spawn(Timer::after(4)).observe(
    ///     move |_dusk: On<TimerFired>, mut clocks: ClocksMut| -> Result {
    ///         clocks.get_mut(sun)?.pause();
    ///         Ok(())
    ///     },
    /// );
    /// app.update(); // One frame of ten seconds.
    /// assert_eq!(app.world().clock_now(sun), Ok(Duration::from_secs(4)));
    /// ```
    pub exact_frames: bool,
    /// The seed of [random delays](crate::Timer::with_jitter), zero by default.
    pub delay_seed: u64,
    /// The number of messages that other threads can send to this world between two runs, 65,536 by
    /// default.
    pub inbox_capacity: usize,
    /// The number of bytes in [packets](crate::message::Packet) that other threads and worlds can send to
    /// this world between two runs, 64 MiB by default.
    ///
    /// A packet that is larger can arrive if no other packet waits. Messages that are not packets
    /// have no known size, and only count in [`inbox_capacity`](Self::inbox_capacity).
    pub inbox_bytes: usize,
    /// The number of messages that can wait in this world before it refuses the next one, 1,048,576
    /// by default.
    ///
    /// The bound stops a storm in which each message leads to several others. Messages that have
    /// been accepted are not lost. Replies, time-outs and messages from other threads count, but
    /// are never refused. (For the latter, see [`inbox_capacity`](Self::inbox_capacity).) Messages
    /// from Bevy's writers do not count. An [`Outbox`](crate::message::Outbox) in use may hold room for
    /// up to 63 messages that it has not sent yet.
    ///
    /// # Examples
    ///
    /// ```
    /// use bevy_app::prelude::*;
    /// use bevy_due::{
    ///     message::{Delivery, MessageWorldExt, SendError},
    ///     prelude::*,
    /// };
    /// use bevy_ecs::prelude::*;
    /// use bevy_time::TimePlugin;
    ///
    /// #[derive(Message, Debug, PartialEq)]
    /// struct Hit(u32);
    ///
    /// let mut app = App::new();
    /// app.add_plugins((TimePlugin, DuePlugin { mailbox_capacity: 1, ..DuePlugin::default() }));
    /// let world = app.world_mut();
    /// assert_eq!(world.send(Delivery::All, Hit(1)), Ok(()));
    /// assert_eq!(world.send(Delivery::All, Hit(2)), Err(SendError::Full(Hit(2))));
    /// app.update();
    /// assert_eq!(app.world_mut().send(Delivery::All, Hit(2)), Ok(()));
    /// ```
    pub mailbox_capacity: usize,
}

impl Default for DuePlugin {
    fn default() -> Self {
        Self {
            burst_limit: const { NonZeroU32::new(1000).expect("not zero") },
            exact_frames: false,
            delay_seed: 0,
            inbox_capacity: 1 << 16,
            inbox_bytes: 64 << 20,
            mailbox_capacity: 1 << 20,
        }
    }
}

/// The reading of the clocks, and the stages of a run, in order.
///
/// The stages run in [`PreUpdate`], before the fixed schedule and before [`Update`] of the same frame.
/// Timers and callbacks of the [fixed clock](crate::ClockId::Fixed) and its descendants run in
/// [`FixedPreUpdate`]. Order your own systems against these sets.
#[derive(SystemSet, Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum DueSystems {
    /// Reads the clocks: in [`First`] as the last of [`TimeSystems`], and in [`FixedMain`] before
    /// [`FixedFirst`].
    Clocks,
    /// Adds the timers and update components inserted since the last run, and fires due timers.
    Timers,
    /// Calls the [`UpdateComponent`](crate::UpdateComponent)s.
    Updates,
    /// Delivers messages to the [`MessageComponent`](crate::message::MessageComponent)s.
    Messages,
}

impl Plugin for DuePlugin {
    fn build(&self, app: &mut App) {
        #[cfg(feature = "bevy_reflect")]
        register_types(app);
        self.insert_resources(app.world_mut());

        app.add_message::<TimerFired>()
            .add_message::<TimerCancelled>()
            .add_systems(
                First,
                read_frame_clocks
                    .in_set(DueSystems::Clocks)
                    .in_set(TimeSystems)
                    .after(time_system),
            )
            .add_systems(
                FixedMain,
                read_fixed_clocks
                    .in_set(DueSystems::Clocks)
                    .before(FixedMain::run_fixed_main),
            )
            .add_systems(
                PreUpdate,
                (
                    run_frame_timers.in_set(DueSystems::Timers),
                    run_frame_updates.in_set(DueSystems::Updates),
                    deliver_messages.in_set(DueSystems::Messages),
                )
                    .chain(),
            )
            .add_systems(
                FixedPreUpdate,
                (
                    run_fixed_timers.in_set(DueSystems::Timers),
                    run_fixed_updates.in_set(DueSystems::Updates),
                )
                    .chain(),
            );

        add_existing(app.world_mut());
    }
}

impl DuePlugin {
    fn insert_resources(&self, world: &mut World) {
        // When a request is complete, its time-out leaves the queue first, so it need not follow its owner.
        world.register_component::<OpenRequest>();
        // An entity that despawns takes these along, in the order in which they were registered.
        world.register_component::<PausedBy>();
        world.register_component::<Owned>();
        world.register_component::<SpeedModifiers>();
        let clocks = ClockTable::new(self.exact_frames, |clock| bevy_time(world, clock).0);
        let queues = TimerQueues::new(world, self.delay_seed, self.burst_limit, report_time_out);
        let updates = UpdateRosters::new(world);
        // An observer shares the entity of a resource, any one: this takes less memory, and a game that despawns every
        // entity without a resource spares the observer.
        world.spawn((clocks, on_add.into_observer()));
        world.spawn((queues, on_remove.into_observer()));
        world.spawn((updates, follow_clock_choice.into_observer()));
        let mailbag = Mailbag::new(self.mailbox_capacity);
        world.spawn((mailbag, on_modify_speed.into_observer()));
        register_events(world);
        world.init_resource::<MessageStats>();
        // A sender may have created the inbox already.
        let inbox = world.get_resource_or_init::<Inbox>();
        inbox.set_capacity(self.inbox_capacity, self.inbox_bytes);
    }
}

/// The components that decide whether the timers of their entity run, and on which clock.
type Watched = (
    Paused,
    PausedBy,
    Disabled,
    RunsWhilePaused,
    Pauses,
    Clock,
    OnClock,
    SpeedModifier,
    ObservedBy,
);

/// Pauses the timers of an entity when it is paused or disabled, and resumes them when it runs
/// while it is paused from now on. A new clock takes over what is on it by default.
fn on_add(added: On<Add<Watched>>, mut world: DeferredWorld) {
    let entity = added.entity;
    note_disabled(&mut world, entity, added.trigger(), true);
    if changes::<ObservedBy>(&world, added.trigger()) {
        follow_observers(&mut world, entity);
        if added.trigger().components.len() == 1 {
            return;
        }
    }
    if changes::<Clock>(&world, added.trigger()) {
        // The hook that adds the clock has not run yet.
        add_missing_clock(&mut world, entity.into());
        follow_clocks_later(&mut world, entity);
        follow_default_clocks(&mut world, entity);
    }
    pause_or_resume(&mut world, entity);
}

/// Moves what is on an entity by default when an [`OnClock`] puts it on another clock. What is on the entity of a speed
/// modifier is on the parent of the clock that it modifies.
fn follow_clock_choice(inserted: On<Insert<(OnClock, SpeedModifier)>>, mut world: DeferredWorld) {
    let entity = inserted.entity;
    if let Some(&OnClock(clock)) = world.get(entity) {
        follow_on_clock(&mut world, entity, clock);
    }
    follow_clocks_later(&mut world, entity);
    follow_default_clocks(&mut world, entity);
}

/// Resumes the timers of an entity when it is no longer paused or disabled, and pauses those of
/// a paused entity that no longer runs while it is paused. The timers of a clock end with it.
fn on_remove(removed: On<Remove<Watched>>, mut world: DeferredWorld) {
    let entity = removed.entity;
    let is_enabled = note_disabled(&mut world, entity, removed.trigger(), false);
    if is_enabled && let Some(mut mailbag) = world.get_resource_mut::<Mailbag>() {
        mailbag.followers.retry_disabled();
    }
    if changes::<Clock>(&world, removed.trigger()) {
        let is_despawned = removed.trigger().new_archetype.is_none();
        cancel_timers_of_clock(&mut world, entity, is_despawned);
    }
    let is_there = removed.trigger().new_archetype.is_some();
    let leaves_clock = is_there && changes::<OnClock>(&world, removed.trigger());
    let leaves_parent = is_there && changes::<SpeedModifier>(&world, removed.trigger());
    // A component that is being removed is still there.
    let mut commands = world.commands();
    if leaves_clock || leaves_parent {
        commands.queue(move |world: &mut World| {
            if leaves_clock {
                leave_on_clock(world, entity);
            }
            follow_clocks_later(&mut world.into(), entity);
            follow_default_clocks(&mut world.into(), entity);
        });
    }
    commands.queue(move |world: &mut World| pause_or_resume(&mut world.into(), entity));
}

/// Puts the clock of an entity on the clock of the owner, or on the game clock, unless it chose its parent.
fn leave_on_clock(world: &mut World, entity: Entity) {
    let Ok(left) = world.get_entity(entity) else {
        return;
    };
    let owner = Some(owner_of(left)).filter(|&owner| owner != entity);
    let owner = owner.and_then(|owner| world.get_entity(owner).ok());
    let clock = owner.map(|owner| clock_of(world, owner, owner.id(), None));
    if !left.contains::<OnClock>() {
        follow_on_clock(&mut world.into(), entity, clock.unwrap_or_default());
    }
}

/// Lets the clock of an entity follow [`Disabled`]. Returns `true` if this is what has changed.
fn note_disabled(
    world: &mut DeferredWorld,
    entity: Entity,
    changed: &EntityComponentsTrigger,
    is_disabled: bool,
) -> bool {
    let has_changed = changes::<Disabled>(world, changed);
    if has_changed && let Some(mut clocks) = world.get_resource_mut::<ClockTable>() {
        clocks.set_disabled(entity, is_disabled);
    }
    has_changed
}

fn changes<C: Component>(world: &World, changed: &EntityComponentsTrigger) -> bool {
    let component = world.component_id::<C>();
    component.is_some_and(|component| changed.components.contains(&component))
}

/// Registers the events of timers. Bevy takes a lock to look for an event that is not registered.
fn register_events(world: &mut World) {
    world.register_event_key::<TimerFired>();
    world.register_event_key::<TimerCancelled>();
    world.register_event_key::<OwnedTimerFired>();
    world.register_event_key::<OwnedTimerCancelled>();
}

#[cfg(feature = "bevy_reflect")]
fn register_types(app: &mut App) {
    app.register_type::<crate::Timer>()
        .register_type::<crate::OwnedBy>()
        .register_type::<crate::Owned>()
        .register_type::<crate::Paused>()
        .register_type::<crate::timer::Pauses>()
        .register_type::<crate::timer::RunsWhilePaused>()
        .register_type::<crate::PausedBy>()
        .register_type::<crate::timer::Keyed>()
        .register_type::<crate::TimerAction>()
        .register_type::<crate::DespawnAfter>()
        .register_type::<crate::timer::CrateTimer>()
        .register_type::<crate::timer::OpenRequest>()
        .register_type::<crate::Cooldown>()
        .register_type::<crate::Clock>()
        .register_type::<crate::OnClock>()
        .register_type::<crate::clock::SpeedModifier>()
        .register_type::<crate::clock::SpeedModifiers>()
        .register_type::<crate::ClockId>()
        .register_type::<crate::MissedTicks>()
        .register_type::<crate::timer::TimerStatus>()
        .register_type::<TimerFired>()
        .register_type::<TimerCancelled>()
        .register_type::<crate::UpdateComponent>()
        .register_type::<crate::message::MessageComponent>()
        .register_type::<MessageStats>();
    #[cfg(feature = "worlds")]
    app.register_type::<crate::worlds::StableKey>();
    #[cfg(feature = "serialize")]
    app.register_type::<crate::save::SavedTimers>();
}

fn read_frame_clocks(world: &mut World, _: Local<RequireTime>) {
    #[cfg(feature = "worlds")]
    crate::worlds::restore_max_delta(world);
    end_broken_run(world);
    read_clocks(world, Cadence::Frame, add_modified_clocks);
}

fn read_fixed_clocks(world: &mut World) {
    end_broken_run(world);
    read_clocks(world, Cadence::FixedStep, add_modified_clocks);
}

/// What a run begins with.
#[derive(SystemParam)]
struct RunParams<'w> {
    clocks: ResMut<'w, ClockTable>,
    timers: ResMut<'w, TimerQueues>,
    updates: ResMut<'w, UpdateRosters>,
    game: Option<Res<'w, Time<Virtual>>>,
}

type RunState = SystemState<RunParams<'static>>;

fn run_frame_timers(
    world: &mut World,
    run: &mut RunState,
    mut fire: Local<Option<FireParams>>,
    shown: &mut Shown,
) -> Result {
    run_due(world, Cadence::Frame, run, &mut fire)?;
    show_statuses(world, shown)
}

fn run_fixed_timers(
    world: &mut World,
    run: &mut RunState,
    mut fire: Local<Option<FireParams>>,
) -> Result {
    run_due(world, Cadence::FixedStep, run, &mut fire)
}

/// Lets new callbacks take part, and fires the timers that are due. Most often, there is nothing to do.
fn run_due(
    world: &mut World,
    cadence: Cadence,
    run: &mut RunState,
    fire: &mut Option<FireParams>,
) -> Result {
    forget_dropped_snapshots(world);
    let mut params = run.get_mut(world)?;
    if params.clocks.take_moved() {
        follow_clocks(world);
        params = run.get_mut(world)?;
    }
    params.updates.begin(cadence);
    if params.timers.begin_idle(&params.clocks, cadence) {
        // A handler may run this schedule, in the middle of the frame.
        if params.clocks.is_in_frame(cadence) && !params.timers.is_running() {
            let is_game_stopped = params.game.is_some_and(|game| is_game_stopped(&game));
            params.clocks.end_frame(cadence, is_game_stopped);
        }
        return Ok(());
    }
    let fire = fire.get_or_insert_with(|| FireParams::new(world));
    run_timers(world, cadence, fire)
}

fn run_frame_updates(world: &mut World, mut state: Local<UpdateState>) -> Result {
    run_updates(world, Cadence::Frame, &mut state)
}

fn run_fixed_updates(world: &mut World, mut state: Local<UpdateState>) -> Result {
    run_updates(world, Cadence::FixedStep, &mut state)
}

/// Panics in the first frame if there is no `Time<Virtual>`. A system in `PreStartup` would add a schedule to each
/// world.
struct RequireTime;

impl FromWorld for RequireTime {
    fn from_world(world: &mut World) -> Self {
        assert!(
            world.contains_resource::<Time<Virtual>>(),
            "`DuePlugin` needs `Time<Virtual>`: add `bevy_time::TimePlugin` to the app \
             (it is part of `MinimalPlugins` and `DefaultPlugins`)"
        );
        Self
    }
}

/// Adds the components that were inserted before the plugin was added.
fn add_existing(world: &mut World) {
    #[cfg(feature = "worlds")]
    crate::worlds::connect(world);
    // A query would leave out disabled entities.
    let entities: Vec<Entity> = world.iter_entities().map(|entity| entity.id()).collect();
    for &entity in &entities {
        if world.get::<Clock>(entity).is_some() {
            add_clock(&mut world.into(), entity);
        }
    }
    for entity in entities {
        take_key(&mut world.into(), entity);
        check_handler(&mut world.into(), entity);
        check_component(&mut world.into(), entity);
        for kind in Kind::ALL {
            if kind.get(world, entity).is_some() {
                add_timer(&mut world.into(), entity, kind);
            }
        }
        enroll(world.into(), entity);
        follow(world.into(), entity);
        #[cfg(feature = "worlds")]
        crate::worlds::bind(world.into(), entity);
    }
}
