//! What can be done to timers from outside.

use alloc::{borrow::Cow, vec::Vec};
use core::{fmt, time::Duration};

use bevy_ecs::{bundle::Bundle, component::Component, entity::Entity, world::World};
#[cfg(feature = "bevy_reflect")]
use {
    bevy_ecs::reflect::ReflectComponent,
    bevy_reflect::{Reflect, std_traits::ReflectDefault},
};

use super::{Keyed, Timelines, Timer, TimerOf, Timers, keyed};
use crate::clock::saturating_nanos;

/// What can be done to the timers of a [`World`].
///
/// Systems use [`TimerEntityCommandsExt`](crate::TimerEntityCommandsExt).
pub trait TimerWorldExt {
    /// Spawns a timer of `owner` under a key, and cancels the earlier one of that key: see
    /// [`Keyed`]. Returns its entity, which is despawned already if there is no such owner.
    fn set_timer(
        &mut self,
        owner: Entity,
        key: impl Into<Cow<'static, str>>,
        timer: impl Bundle,
    ) -> Entity;

    /// Cancels the timer of `owner` that has this key, and says whether there was one.
    fn cancel_timer(&mut self, owner: Entity, key: &str) -> bool;

    /// Cancels all timers of `owner`: its own, and those that belong to it, but for those that
    /// [survive that](SurvivesCancelAll).
    fn cancel_timers(&mut self, owner: Entity);

    /// Cancels all timers of `owner`, also those that would survive.
    fn force_cancel_timers(&mut self, owner: Entity);

    /// Moves the deadline of the timer on this very `entity` to `deadline`, as its clock shows it.
    /// (The entity of one under a key is told by [`ArmedTimers::keyed`](crate::ArmedTimers::keyed).)
    /// It takes
    /// its place behind the others of that deadline, as if it had just been armed; what it has
    /// counted stays, and if it is paused, it stays so.
    ///
    /// A deadline already past fires in the next run, never inside this call.
    ///
    /// # Errors
    ///
    /// [`NoSuchTimer`] if `entity` has no armed timer.
    ///
    /// # Time complexity
    ///
    /// *O*(1), and *O*(log *n*) in the next run.
    ///
    /// # Examples
    ///
    /// ```
    /// use core::time::Duration;
    /// use bevy_app::prelude::*;
    /// use bevy_due::{Timer, prelude::*};
    /// use bevy_time::TimePlugin;
    ///
    /// let mut app = App::new();
    /// app.add_plugins((TimePlugin, DuePlugin));
    /// let bus = app.world_mut().spawn(Timer::after_secs(60.0)).id();
    /// assert!(app.world_mut().reschedule(bus, Duration::from_secs(90)).is_ok());
    ///
    /// let stop = app.world_mut().spawn_empty().id();
    /// let error = app.world_mut().reschedule(stop, Duration::ZERO).unwrap_err();
    /// assert_eq!(error, NoSuchTimer(stop));
    /// ```
    fn reschedule(&mut self, entity: Entity, deadline: Duration) -> Result<(), NoSuchTimer>;

    /// Puts the deadline of the timer on `entity` off by a while, as
    /// [`reschedule`](Self::reschedule) does.
    ///
    /// # Errors
    ///
    /// [`NoSuchTimer`] if `entity` has no armed timer.
    fn delay_by(&mut self, entity: Entity, by: Duration) -> Result<(), NoSuchTimer>;

    /// Puts the deadlines of all timers of `owner` off by a while: of its own, and of those that
    /// belong to it.
    fn delay_timers_by(&mut self, owner: Entity, by: Duration);
}

/// Keeps the timers of this entity when [all timers of their owner are
/// cancelled](TimerWorldExt::cancel_timers). They die with their owner all the same.
#[derive(Component, Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(
    feature = "bevy_reflect",
    derive(Reflect),
    reflect(Component, Clone, Debug, Default, PartialEq)
)]
#[cfg_attr(feature = "serialize", derive(serde::Serialize, serde::Deserialize))]
pub struct SurvivesCancelAll;

/// There is no armed timer on this entity.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NoSuchTimer(pub Entity);

impl fmt::Display for NoSuchTimer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "there is no armed timer on {}", self.0)
    }
}

impl core::error::Error for NoSuchTimer {}

impl TimerWorldExt for World {
    fn set_timer(
        &mut self,
        owner: Entity,
        key: impl Into<Cow<'static, str>>,
        timer: impl Bundle,
    ) -> Entity {
        let timer = self.spawn((TimerOf(owner), Keyed::new(key), timer)).id();
        self.flush();
        timer
    }

    fn cancel_timer(&mut self, owner: Entity, key: &str) -> bool {
        match keyed::find(self, owner, key) {
            Some(timer) => self.despawn(timer),
            None => false,
        }
    }

    fn cancel_timers(&mut self, owner: Entity) {
        cancel_all(self, owner, |world, timer| {
            world.get::<SurvivesCancelAll>(timer).is_none()
        });
    }

    fn force_cancel_timers(&mut self, owner: Entity) {
        cancel_all(self, owner, |_, _| true);
    }

    fn reschedule(&mut self, entity: Entity, deadline: Duration) -> Result<(), NoSuchTimer> {
        move_deadline(self, entity, Move::To(deadline))
    }

    fn delay_by(&mut self, entity: Entity, by: Duration) -> Result<(), NoSuchTimer> {
        move_deadline(self, entity, Move::By(saturating_nanos(by)))
    }

    fn delay_timers_by(&mut self, owner: Entity, by: Duration) {
        for timer in timers_of(self, owner) {
            // One that is not armed has no deadline to move.
            self.delay_by(timer, by).ok();
        }
    }
}

/// Returns the entities that carry timers of `owner`: itself, and those that belong to it.
fn timers_of(world: &World, owner: Entity) -> Vec<Entity> {
    let owned = world.get::<Timers>(owner).into_iter().flatten().copied();
    core::iter::once(owner).chain(owned).collect()
}

fn cancel_all(world: &mut World, owner: Entity, is_meant: impl Fn(&World, Entity) -> bool) {
    for timer in timers_of(world, owner) {
        if !is_meant(world, timer) {
            continue;
        }
        if timer != owner {
            world.try_despawn(timer).ok();
        } else if let Ok(mut owner) = world.get_entity_mut(owner) {
            owner.remove::<Timer>();
        }
    }
}

#[derive(Clone, Copy)]
enum Move {
    /// To what the clock shows.
    To(Duration),
    /// By so many nanoseconds.
    By(u64),
}

fn move_deadline(world: &mut World, entity: Entity, to: Move) -> Result<(), NoSuchTimer> {
    try_move_deadline(world, entity, to).ok_or(NoSuchTimer(entity))
}

fn try_move_deadline(world: &mut World, entity: Entity, to: Move) -> Option<()> {
    let timer = world.get::<Timer>(entity)?;
    let (clock, key) = timer.armed()?;
    let first_wait = timer.first_wait();
    let timelines = world.get_resource::<Timelines>()?;
    let reading = timelines.read_line_now(world, clock)?;
    let mut timelines = world.get_resource_mut::<Timelines>()?;
    let line = timelines.get_mut(clock)?;
    let wait = line.wait(key, first_wait)?;
    let before = line.deadline(key, reading.now)?;
    let (deadline, wait) = match to {
        Move::To(shown) => {
            let deadline = reading.passed(shown);
            (deadline, deadline.saturating_sub(reading.now))
        }
        Move::By(by) => (before.saturating_add(by), wait.saturating_add(by)),
    };
    line.reschedule(key, deadline, wait, reading.now);
    Some(())
}
