//! The state of a timer or a cooldown, as an answer and as a component.

use core::{fmt, time::Duration};

use bevy_ecs::{
    entity_disabling::Disabled, lifecycle::HookContext, prelude::*, world::DeferredWorld,
};
#[cfg(feature = "bevy_reflect")]
use bevy_reflect::prelude::*;

use super::{ArmedTimers, Cooldown, TimerQueues};
use crate::clock::ClockId;

/// The state of an armed or paused timer.
///
/// [`ArmedTimers`] returns it. It is also a component: on an entity with a [`Timer`](crate::Timer) or a [`Cooldown`],
/// it shows their state to an inspector or the remote protocol.
///
/// # The component
///
/// The fields are up to date from insertion on, and are refreshed in every frame after the timers
/// have fired, before [`DueSystems::Updates`](crate::DueSystems::Updates). A timer on the [fixed
/// clock](ClockId::Fixed) appears as it was after the last fixed step. If you insert this component
/// before the timer, the fields show the timer from the next frame on. In a system, prefer
/// [`ArmedTimers`], which is always up to date and needs no component.
///
/// A [`Cooldown`] is shown if the entity has no armed timer. It counts as a timer that fires whenever a
/// charge comes back: `remaining` is the time until the next charge, `count` the number of charges that are
/// available, and `left` the number of missing ones. The cooldown must run on the [clock of its
/// entity](crate::OnClock).
///
/// Once the timer has ended and all charges are back, the component equals [`TimerStatus::done`]. A state that came
/// from elsewhere, such as from a server that replicates it, stays on an entity that has neither. While a timer is
/// paused, the component keeps the `deadline` that it had when the pause began.
///
/// Changing the fields does nothing. To pause the timer, insert [`Paused`](crate::Paused). To
/// change its speed, insert its [`Clock`](crate::Clock) with another `speed`. Both work by reflection.
///
/// # Time complexity
///
/// *O*(*n*) per frame in the number of entities with this component. Other timers cost nothing.
///
/// # Examples
///
/// ```
/// use core::time::Duration;
/// use bevy_app::prelude::*;
/// use bevy_due::{Timer, prelude::*, timer::TimerStatus};
/// use bevy_time::{TimePlugin, TimeUpdateStrategy};
///
/// let mut app = App::new();
/// app.add_plugins((TimePlugin, DuePlugin::default()))
///     .insert_resource(TimeUpdateStrategy::ManualDuration(Duration::from_millis(250)));
/// app.update(); // Bevy's first frame takes no time.
///
/// let spawner = app.world_mut().spawn((Timer::every(4.0), TimerStatus::default())).id();
/// for _ in 0..37 {
///     app.update();
/// }
/// let status = app.world().get::<TimerStatus>(spawner).unwrap();
/// assert_eq!(status.remaining, Duration::from_millis(2750));
/// assert_eq!(status.count, 2);
/// assert_eq!(status.to_string(), "1.25 s of 4 s, fired twice, on clock virtual");
/// ```
#[doc(alias("inspector", "debug", "progress"))]
#[derive(Component, Clone, Copy, Debug, PartialEq, Eq)]
#[component(on_insert = on_insert)]
#[cfg_attr(
    feature = "bevy_reflect",
    derive(Reflect),
    type_path = "bevy_due::timer",
    reflect(Component, Clone, Debug, Default, PartialEq)
)]
#[cfg_attr(
    feature = "serialize",
    derive(serde::Serialize, serde::Deserialize),
    serde(deny_unknown_fields)
)]
#[non_exhaustive]
pub struct TimerStatus {
    /// The entity that carries the [`Timer`](crate::Timer).
    #[entities]
    pub entity: Entity,
    /// The owner of the timer, or its own entity if it has none.
    #[entities]
    pub owner: Entity,
    /// The clock of the timer.
    #[entities]
    pub clock: ClockId,
    /// The time until the deadline, on the clock, or zero if the timer is overdue.
    pub remaining: Duration,
    /// The time waited so far, counted from arming or from the last deadline.
    pub elapsed: Duration,
    /// The length of the wait.
    pub wait: Duration,
    /// The next deadline, as the clock shows it. For a paused timer, this is the deadline it would
    /// have if it resumed now.
    pub deadline: Duration,
    /// The time between two deadlines, the shortest if it is [random](crate::Timer::every_between), or
    /// `None` for a one-shot timer.
    pub interval: Option<Duration>,
    /// The number of firings, or of charges available.
    pub count: u64,
    /// The number of firings left, or of charges missing, or `None` if the timer fires forever.
    pub left: Option<u32>,
    /// Whether its entity or one of its owners pauses the timer. A stopped clock does not count.
    pub paused: bool,
    /// Whether the component shows a timer or a cooldown of this world.
    #[cfg_attr(feature = "serialize", serde(skip))]
    #[cfg_attr(feature = "bevy_reflect", reflect(ignore))]
    pub(super) is_shown: IsShown,
}

/// A mark that does not count when two states are compared.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct IsShown(bool);

impl PartialEq for IsShown {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl Eq for IsShown {}

impl TimerStatus {
    /// Returns the state of a timer that is not armed: nothing remains, and the
    /// [`fraction`](Self::fraction) is 1.
    ///
    /// # Examples
    ///
    /// ```
    /// use bevy_due::{ArmedTimers, timer::TimerStatus};
    /// use bevy_ecs::prelude::*;
    ///
    /// fn bar(entity: Entity, timers: ArmedTimers) -> f32 {
    ///     timers.get(entity).unwrap_or(TimerStatus::done(entity)).fraction()
    /// }
    /// # let _ = bar;
    /// ```
    #[must_use]
    pub fn done(entity: Entity) -> Self {
        Self {
            entity,
            owner: entity,
            clock: ClockId::Virtual,
            deadline: Duration::ZERO,
            remaining: Duration::ZERO,
            elapsed: Duration::ZERO,
            wait: Duration::ZERO,
            interval: None,
            count: 0,
            left: Some(0),
            paused: false,
            is_shown: IsShown(false),
        }
    }

    /// Returns the time until the last firing, on the clock, or `None` if the timer fires forever.
    ///
    /// Deadlines that a long frame skips do not count as firings, and random intervals count with
    /// their shortest length, so the time may turn out longer.
    #[must_use]
    pub fn total_remaining(&self) -> Option<Duration> {
        let further = self.left?.saturating_sub(1);
        let interval = self.interval.unwrap_or_default();
        let further = interval.saturating_mul(further);
        Some(self.remaining.saturating_add(further))
    }

    /// Returns the fraction of the wait that has passed, from 0 to 1, for a progress bar.
    #[must_use]
    pub fn fraction(&self) -> f32 {
        if self.wait.is_zero() {
            1.0
        } else {
            self.elapsed.div_duration_f32(self.wait)
        }
    }

    /// Returns the state of a cooldown with a missing charge.
    fn of_cooldown(cooldown: &Cooldown, entity: Entity, timers: &ArmedTimers) -> Option<Self> {
        let (owner, clock, now) = timers.cooldown_clock(entity)?;
        let count = cooldown.charges(now);
        let left = cooldown.max_charges() - count;
        let (remaining, wait) = (cooldown.next_charge_in(now), cooldown.duration());
        (left > 0).then(|| Self {
            owner,
            clock,
            remaining,
            elapsed: wait.saturating_sub(remaining),
            wait,
            deadline: now.saturating_add(remaining),
            interval: Some(wait),
            count: count.into(),
            left: Some(left),
            ..Self::done(entity)
        })
    }
}

/// The state of a timer that is not armed, on no entity. The component gets its entity when it is inserted.
impl Default for TimerStatus {
    fn default() -> Self {
        Self::done(Entity::PLACEHOLDER)
    }
}

impl fmt::Display for TimerStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.left == Some(0) {
            return f.write_str("done");
        }
        let secs = |time: Duration| time.as_millis() as f64 / 1000.0;
        write!(f, "{} s of {} s, ", secs(self.elapsed), secs(self.wait))?;
        match self.count {
            0 => f.write_str("never fired")?,
            1 => f.write_str("fired once")?,
            2 => f.write_str("fired twice")?,
            count => write!(f, "fired {count} times")?,
        }
        write!(f, ", on clock {}", self.clock)?;
        f.write_str(if self.paused { ", paused" } else { "" })
    }
}

/// Shows a new component once all components of its bundle have arrived.
fn on_insert(mut world: DeferredWorld, HookContext { entity, .. }: HookContext) {
    if world.contains_resource::<TimerQueues>() {
        world.commands().queue(move |world: &mut World| {
            // Pending commands may change the timer.
            world.flush();
            world.run_system_cached_with(refresh_one, entity)
        });
    }
}

/// The components to refresh.
pub(crate) type Shown = QueryState<(), (With<TimerStatus>, Allow<Disabled>)>;

/// Refreshes the components. In a world without any, this is one look at an empty query.
pub(crate) fn show_statuses(world: &mut World, shown: &mut Shown) -> Result {
    if !shown.query(world).is_empty() {
        world.run_system_cached(refresh_all)?;
    }
    Ok(())
}

type Statuses<'w, 's> =
    Query<'w, 's, (Entity, &'static mut TimerStatus, Option<&'static Cooldown>), Allow<Disabled>>;

fn refresh_all(mut statuses: Statuses, timers: ArmedTimers) {
    statuses.iter_mut().for_each(|it| refresh(it, &timers));
}

fn refresh_one(In(entity): In<Entity>, mut statuses: Statuses, timers: ArmedTimers) {
    if let Ok(it) = statuses.get_mut(entity) {
        refresh(it, &timers);
    }
}

/// Shows the state of the timer on an entity, or else of its cooldown. Without either, a state that never came from
/// here stays: a server may have sent it.
fn refresh(
    (entity, mut status, cooldown): (Entity, Mut<TimerStatus>, Option<&Cooldown>),
    timers: &ArmedTimers,
) {
    let cooldown = || TimerStatus::of_cooldown(cooldown?, entity, timers);
    let timer = timers.get(entity).or_else(cooldown);
    let is_new = status.entity == Entity::PLACEHOLDER;
    if timer.is_none() && !status.is_shown.0 && !is_new {
        return;
    }
    status.bypass_change_detection().is_shown = IsShown(timer.is_some());
    let mut now = timer.unwrap_or(TimerStatus::done(entity));
    now.is_shown = status.is_shown;
    if status.paused && now.paused {
        // It moves with the clock, and would mark the component as changed in every frame.
        now.deadline = status.deadline;
    }
    status.set_if_neq(now);
}
