//! The state of a timer or a cooldown as a component, for an inspector.

use core::{fmt, time::Duration};

use bevy_ecs::{
    entity_disabling::Disabled, lifecycle::HookContext, prelude::*, system::SystemState,
    world::DeferredWorld,
};
#[cfg(feature = "bevy_reflect")]
use bevy_reflect::{Reflect, std_traits::ReflectDefault};
#[cfg(all(feature = "bevy_reflect", feature = "serialize"))]
use bevy_reflect::{ReflectDeserialize, ReflectSerialize};

use super::{ArmedTimers, Cooldown, TimerStatus, on_world::try_with_timers};
use crate::clock::ClockId;

/// Shows the state of the [`Timer`](crate::Timer) or the [`Cooldown`] on its entity, for an inspector or
/// the remote protocol.
///
/// The fields are up to date from insertion on, and are refreshed in every frame after the timers
/// have fired, before [`DueSystems::Updates`](crate::DueSystems::Updates). A timer on the [fixed
/// clock](ClockId::Fixed) appears as it was after the last fixed step. If you insert this component
/// before the timer, the fields show the timer from the next frame on. In a system, prefer
/// [`ArmedTimers`], which is always up to date and needs no component.
///
/// A [`Cooldown`] is shown if the entity has no armed timer. It counts as a timer that fires whenever a
/// charge comes back: `remaining` is the time until the next charge, `count` the number of charges that are
/// available, and `left` the number of those that are missing. The cooldown must run on the [clock of its
/// entity](crate::OnClock).
///
/// Once the timer has ended or all charges are back, and as long as there is neither, the component is
/// equal to [`TimerProgress::default()`]: nothing remains.
///
/// Changing the fields does nothing. To pause the timer, insert [`Paused`](crate::Paused). To
/// change its speed, set the `speed` of its [`Clock`](crate::Clock). Both work by reflection.
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
/// use bevy_due::{Timer, TimerProgress, prelude::*};
/// use bevy_time::{TimePlugin, TimeUpdateStrategy};
///
/// let mut app = App::new();
/// app.add_plugins((TimePlugin, DuePlugin::default()))
///     .insert_resource(TimeUpdateStrategy::ManualDuration(Duration::from_millis(250)));
/// app.update(); // Bevy's first frame takes no time.
///
/// let spawner = app.world_mut().spawn((Timer::every(4.0), TimerProgress::default())).id();
/// for _ in 0..37 {
///     app.update();
/// }
/// let progress = app.world().get::<TimerProgress>(spawner).unwrap();
/// assert_eq!(progress.remaining, Duration::from_millis(2750));
/// assert_eq!(progress.count, 2);
/// assert_eq!(progress.to_string(), "1.25 s of 4 s, fired twice, on clock virtual");
/// ```
#[doc(alias("inspector", "debug", "status"))]
#[derive(Component, Clone, Debug, PartialEq)]
#[component(on_insert = on_insert)]
#[cfg_attr(
    feature = "bevy_reflect",
    derive(Reflect),
    type_path = "bevy_due",
    reflect(Component, Clone, Debug, Default, PartialEq)
)]
#[cfg_attr(
    feature = "serialize",
    derive(serde::Serialize, serde::Deserialize),
    serde(deny_unknown_fields)
)]
#[cfg_attr(
    all(feature = "bevy_reflect", feature = "serialize"),
    reflect(Serialize, Deserialize)
)]
#[non_exhaustive]
pub struct TimerProgress {
    /// The clock of the timer.
    #[entities]
    pub clock: ClockId,
    /// The time until the next deadline, on the clock, or zero if the timer is overdue.
    pub remaining: Duration,
    /// The time waited so far.
    pub elapsed: Duration,
    /// The length of the wait.
    pub wait: Duration,
    /// The number of firings, or of charges available.
    pub count: u64,
    /// The number of firings left, or of charges missing, or `None` if the timer fires forever.
    pub left: Option<u32>,
    /// Whether the entity of the timer or its owner pauses it. A stopped clock does not count.
    pub paused: bool,
}

impl TimerProgress {
    /// Returns the state of the timer on `entity`, or else of its cooldown.
    fn of(entity: Entity, cooldown: Option<&Cooldown>, timers: &ArmedTimers) -> Self {
        let timer = timers.get(entity).map(Self::from);
        let cooldown = || Self::of_cooldown(cooldown?, timers.cooldown_clock(entity)?);
        timer.or_else(cooldown).unwrap_or_default()
    }

    /// Returns the state of a cooldown with a missing charge.
    fn of_cooldown(cooldown: &Cooldown, (clock, now): (ClockId, Duration)) -> Option<Self> {
        let charges = cooldown.charges_at(now);
        let left = cooldown.max_charges() - charges;
        let (remaining, wait) = (cooldown.next_charge_in(now), cooldown.duration());
        (left > 0).then(|| Self {
            clock,
            remaining,
            elapsed: wait.saturating_sub(remaining),
            wait,
            count: charges.into(),
            left: Some(left),
            paused: false,
        })
    }
}

impl From<TimerStatus> for TimerProgress {
    fn from(timer: TimerStatus) -> Self {
        Self {
            clock: timer.clock,
            remaining: timer.remaining,
            elapsed: timer.elapsed,
            wait: timer.wait,
            count: timer.count,
            left: timer.left,
            paused: timer.paused,
        }
    }
}

/// The state of a timer that has ended, or of a cooldown with all charges.
impl Default for TimerProgress {
    fn default() -> Self {
        Self {
            clock: ClockId::Virtual,
            remaining: Duration::ZERO,
            elapsed: Duration::ZERO,
            wait: Duration::ZERO,
            count: 0,
            left: Some(0),
            paused: false,
        }
    }
}

impl fmt::Display for TimerProgress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.left == Some(0) {
            return f.write_str("done");
        }
        let (elapsed, wait) = (Seconds(self.elapsed), Seconds(self.wait));
        write!(f, "{elapsed} of {wait}, ")?;
        match self.count {
            0 => f.write_str("never fired")?,
            1 => f.write_str("fired once")?,
            2 => f.write_str("fired twice")?,
            count => write!(f, "fired {count} times")?,
        }
        write!(f, ", on clock {}", self.clock)?;
        if self.paused {
            f.write_str(", paused")?;
        }
        Ok(())
    }
}

/// A time in seconds, rounded down to milliseconds, without trailing zeros.
struct Seconds(Duration);

impl fmt::Display for Seconds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0.as_secs())?;
        let (mut digits, mut fraction) = (3, self.0.subsec_millis());
        while digits > 0 && fraction % 10 == 0 {
            (digits, fraction) = (digits - 1, fraction / 10);
        }
        if digits > 0 {
            write!(f, ".{fraction:0digits$}")?;
        }
        f.write_str(" s")
    }
}

/// Shows a new component once all components of its bundle have arrived.
fn on_insert(mut world: DeferredWorld, HookContext { entity, .. }: HookContext) {
    world.commands().queue(move |world: &mut World| {
        world.flush();
        let cooldown = world.get::<Cooldown>(entity).copied();
        let shown = try_with_timers(world, |timers| {
            TimerProgress::of(entity, cooldown.as_ref(), &timers)
        });
        if let Ok(shown) = shown
            && let Some(mut progress) = world.get_mut::<TimerProgress>(entity)
        {
            progress.set_if_neq(shown);
        }
    });
}

/// The components to refresh.
pub(crate) type Shown = QueryState<(), (With<TimerProgress>, Allow<Disabled>)>;

/// The parts of the world that a refresh uses.
pub(crate) type ShowParams = SystemState<(
    ArmedTimers<'static, 'static>,
    Query<
        'static,
        'static,
        (
            Entity,
            &'static mut TimerProgress,
            Option<&'static Cooldown>,
        ),
        Allow<Disabled>,
    >,
)>;

/// Refreshes the components. In a world without any, this is one look at an empty query.
pub(crate) fn show_progress(
    world: &mut World,
    shown: &mut Shown,
    params: &mut ShowParams,
) -> Result {
    if shown.query(world).is_empty() {
        return Ok(());
    }
    let (timers, mut shown) = params.get_mut(world)?;
    for (entity, mut progress, cooldown) in &mut shown {
        progress.set_if_neq(TimerProgress::of(entity, cooldown, &timers));
    }
    Ok(())
}
