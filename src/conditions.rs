//! Run conditions: systems that run when a timer fires or at an interval, and clocks that run only
//! under a condition.
//!
//! With a condition, a system keeps its place in [`Update`](bevy_app::Update), its order and its
//! parameters. It runs at most once per frame, however many timers fired in it.

use core::time::Duration;

use bevy_ecs::{
    archetype::Archetypes,
    component::Components,
    entity::Entities,
    prelude::*,
    schedule::{ScheduleConfigs, SystemCondition},
    system::ScheduleSystem,
};

use crate::{
    clock::{ClockId, ClockTable, Clocks},
    plugin::DueSystems,
    timer::{IntoDuration, Timer, TimerFired},
};

/// A run condition: a timer has fired on an entity with the component `M`.
///
/// It holds once for all firings since it was last checked. A firing is forgotten after two frames.
/// The timer's entity must still have the component. Do not combine it with [`TimerAction::despawn`]: the
/// entity is gone before the check. With [exact frames](crate::DuePlugin::exact_frames), the same is true of an owned
/// timer that has finished, such as a keyed one.
///
/// To handle each firing, read the [`TimerFired`] messages instead. Combine two of these conditions
/// with Bevy's `or_eager`: `or_else` does not check the second one if the first one holds, so the
/// second one holds in the next frame.
///
/// [`TimerAction::despawn`]: crate::TimerAction::despawn
///
/// # Examples
///
/// ```
/// use core::time::Duration;
/// use bevy_app::prelude::*;
/// use bevy_due::{Timer, conditions::timer_fired, prelude::*};
/// use bevy_ecs::prelude::*;
/// use bevy_time::{TimePlugin, TimeUpdateStrategy};
///
/// #[derive(Component)]
/// struct Waves;
/// #[derive(Component)]
/// struct Enemy;
///
/// fn spawn_enemies(mut commands: Commands) {
///     commands.spawn(Enemy);
/// }
///
/// let mut app = App::new();
/// app.add_plugins((TimePlugin, DuePlugin::default()))
///     .insert_resource(TimeUpdateStrategy::ManualDuration(Duration::from_millis(250)))
///     .add_systems(Update, spawn_enemies.run_if(timer_fired::<Waves>));
/// app.world_mut().spawn((Waves, Timer::every(0.5)));
///
/// for _ in 0..9 {
///     app.update(); // The first frame takes no time, so two seconds pass.
/// }
/// let mut enemies = app.world_mut().query::<&Enemy>();
/// assert_eq!(enemies.iter(app.world()).count(), 4);
/// ```
pub fn timer_fired<M: Component>(
    mut fired: MessageReader<TimerFired>,
    marked: Query<(), With<M>>,
) -> bool {
    // Reads all messages, so that none is left for the next frame.
    let fired = fired.read();
    fired.fold(false, |any, fired| any | marked.contains(fired.entity()))
}

/// A run condition: another `interval` of game time has passed.
///
/// Use it like Bevy's `on_timer`. It does not drift, and it follows the pause and the speed of the
/// game. See [`every_on`] for other clocks.
///
/// The first interval starts when the condition is first checked. Bevy's `on_timer` also counts the frame before that
/// check, so it holds up to a frame earlier. The k-th deadline is start + k × interval, exactly. If several deadlines
/// have passed in a frame, the condition holds once for all of them. If the clock is set, such as by a load, the
/// interval starts over.
///
/// # Panics
///
/// Panics if `interval` is zero, or a negative, infinite or invalid number.
///
/// # Examples
///
/// ```
/// use core::time::Duration;
/// use bevy_app::prelude::*;
/// use bevy_due::{DuePlugin, conditions::every};
/// use bevy_ecs::prelude::*;
/// use bevy_time::{TimePlugin, TimeUpdateStrategy};
///
/// #[derive(Resource, Default)]
/// struct Gold(u32);
///
/// fn mine(mut gold: ResMut<Gold>) {
///     gold.0 += 1;
/// }
///
/// let mut app = App::new();
/// app.add_plugins((TimePlugin, DuePlugin::default()))
///     .init_resource::<Gold>()
///     .insert_resource(TimeUpdateStrategy::ManualDuration(Duration::from_millis(250)))
///     .add_systems(Update, mine.run_if(every(1.0)));
///
/// for _ in 0..9 {
///     app.update(); // The first frame takes no time, so two seconds pass.
/// }
/// assert_eq!(app.world().resource::<Gold>().0, 2);
/// ```
#[doc(alias = "on_timer")]
#[track_caller]
pub fn every(interval: impl IntoDuration) -> impl FnMut(Clocks) -> bool + Clone {
    every_on(interval, ClockId::Virtual)
}

/// A run condition: another `interval` has passed on a clock.
///
/// The condition counts as [`every`] does, on any clock. It does not hold while there is no such clock.
///
/// In the fixed schedule, use [`ClockId::Fixed`].
///
/// # Panics
///
/// Panics if `interval` is zero, or a negative, infinite or invalid number.
///
/// # Examples
///
/// ```
/// use bevy_app::prelude::*;
/// use bevy_due::{ClockId, conditions::every_on};
/// use bevy_ecs::prelude::*;
///
/// fn save() {}
///
/// # let mut app = App::new();
/// // Saves every five minutes, even while the game is paused.
/// app.add_systems(Update, save.run_if(every_on(300, ClockId::Real)));
/// ```
#[track_caller]
pub fn every_on(
    interval: impl IntoDuration,
    clock: impl Into<ClockId>,
) -> impl FnMut(Clocks) -> bool + Clone {
    let interval = Timer::every(interval).delay();
    let clock = clock.into();
    let (mut next, mut zero) = (None, None);
    move |clocks: Clocks| {
        clocks.reading(clock).is_ok_and(|reading| {
            // A load or `Clock::set_now` has set the clock.
            if zero.replace(reading.offset) != Some(reading.offset) {
                next = None;
            }
            reach(&mut next, interval, reading.shown(reading.now))
        })
    }
}

/// Lets time pass on the clocks of all entities with the component `C` only while a condition
/// holds.
///
/// Add the returned system to [`First`](bevy_app::First), or to
/// [`FixedMain`](bevy_app::FixedMain) for clocks driven by the fixed clock. Any run condition
/// will do, such as `in_state(GameState::Playing)`. The condition is checked once per frame, and
/// decides whether the time since the previous run counts. If the state changes in the middle of a
/// frame, the next check sees it.
///
/// The condition is independent of [`ClockMut::pause`](crate::clock::ClockMut::pause) and of other
/// conditions: a clock runs while nothing stops it.
///
/// # Time complexity
///
/// Per frame, *O*(1) while the condition holds, and *O*(*n*) in the number of the clocks while it
/// does not.
///
/// # Examples
///
/// ```
/// use bevy_app::prelude::*;
/// use bevy_due::{conditions::run_clock_if, prelude::*};
/// use bevy_ecs::prelude::*;
/// use bevy_time::{TimePlugin, TimeUpdateStrategy};
/// use core::time::Duration;
///
/// #[derive(Component)]
/// struct Level;
/// #[derive(Resource, PartialEq)]
/// struct IsBuilding(bool);
///
/// let mut app = App::new();
/// app.add_plugins((TimePlugin, DuePlugin::default()))
///     .insert_resource(TimeUpdateStrategy::ManualDuration(Duration::from_millis(250)))
///     .insert_resource(IsBuilding(false))
///     .add_systems(First, run_clock_if::<Level, _>(resource_equals(IsBuilding(false))));
/// app.update(); // Bevy's first frame takes no time.
///
/// let level = app.world_mut().spawn((Level, Clock::new())).id();
/// for is_building in [false, true, true, false] {
///     app.insert_resource(IsBuilding(is_building));
///     app.update();
/// }
/// assert_eq!(app.world().clock_now(level), Ok(Duration::from_millis(500)));
/// ```
#[doc(alias("run_if", "in_state", "pause"))]
pub fn run_clock_if<C: Component, M>(
    condition: impl SystemCondition<M>,
) -> ScheduleConfigs<ScheduleSystem> {
    condition.pipe(hold_clocks::<C>).before(DueSystems::Clocks)
}

fn hold_clocks<C: Component>(
    In(runs): In<bool>,
    mut table: ResMut<ClockTable>,
    (entities, archetypes, components): (&Entities, &Archetypes, &Components),
    mut condition: Local<Option<usize>>,
) {
    let condition = *condition.get_or_insert_with(|| table.add_condition());
    // A query would not find an entity that a component of the game disables.
    let marker = components.component_id::<C>();
    let is_marked = |entity| {
        let location = entities.get_spawned(entity).ok()?;
        Some(archetypes.get(location.archetype_id)?.contains(marker?))
    };
    table.hold(condition, !runs, |entity| is_marked(entity) == Some(true));
}

/// Returns `true` if the `next` deadline has been reached, and moves on to the first one after `now`. The
/// deadlines are one `interval` apart.
fn reach(next: &mut Option<Duration>, interval: Duration, now: Duration) -> bool {
    let soonest = now.saturating_add(interval);
    let due = next.filter(|&next| next <= soonest).unwrap_or(soonest);
    let Some(late) = now.checked_sub(due) else {
        *next = Some(due);
        return false;
    };
    let until_next = interval.as_nanos() - late.as_nanos() % interval.as_nanos();
    *next = Some(now.saturating_add(Duration::from_nanos_u128(until_next)));
    true
}
