//! Clocks: time lines with a speed, a pause and a reading.

mod agenda;
mod built_in;
mod changed;
mod changes;
mod condition;
mod copy;
#[cfg(feature = "serialize")]
mod data;
#[cfg(feature = "bevy_reflect")]
mod fields;
mod find;
mod game_time;
mod hooks;
mod id;
mod load;
mod loading;
mod modifier;
#[cfg(test)]
mod oracle;
mod packed;
mod parents;
mod reading;
mod readings;
#[cfg(feature = "bevy_reflect")]
mod reflection;
mod row;
mod set_back;
mod shared;
mod speed;
mod state;
mod table;
#[cfg(feature = "serialize")]
mod time_passed;
mod times;
mod visits;

use core::{fmt, time::Duration};

use bevy_ecs::{entity::MapEntities, prelude::*};

pub(crate) use built_in::BuiltInClocks;
#[cfg(feature = "serialize")]
pub(crate) use built_in::{load_built_in, load_clock, save_built_in};
pub(crate) use changed::ChangedClocks;
pub use condition::run_clock_if;
pub(crate) use copy::{ClocksCopy, put_clocks_back};
#[cfg(feature = "bevy_reflect")]
use fields::Fields;
pub use find::{Clocks, ClocksMut, OnClock};
pub(crate) use find::{add_missing_clock, clock_of, clock_on, find_clock};
pub(crate) use game_time::{BevyElapsed, GameTime};
pub(crate) use hooks::{
    add_clock, adopt_overwritten, on_disable_clock, on_enable_clock, report_orphans, warn,
};
pub use id::{ClockId, InvalidParent, NoSuchClock};
use load::Saved;
pub use modifier::{SpeedModifier, SpeedModifiers};
pub(crate) use modifier::{on_modify_speed, on_restore_speed};
pub(crate) use packed::PackedClockId;
pub(crate) use reading::{Reading, saturating_nanos, shift};

pub(crate) use row::{Age, Cadence, ClockKey, FRAME};
use shared::Handle;
pub(crate) use shared::{ClockTable, FoundClock, Scope, Tick, Watch};
pub use speed::InvalidSpeed;
use state::ClockState;
pub(crate) use table::built_in_id;
#[cfg(feature = "serialize")]
pub use time_passed::TimePassed;

/// A time line with its own speed and pause, driven by a parent clock.
///
/// Spawn one, then put timers on it. Use [`Timer::on`](crate::Timer::on) for a single timer, or
/// [`OnClock`] for everything on an entity. Timers on the clock's own entity use that clock by
/// default, if it is there in the first run after they are inserted. A clock that comes later does not
/// move them: spawn a unit that may be slowed together with its clock. Setting the speed or pausing is
/// a single write, no matter how many timers are on the clock.
///
/// A clock starts at zero. It is read once per run, and shows the same time throughout that run.
///
/// There are four built-in clocks, and they are not entities. [`Clocks`] and [`ClocksMut`] find
/// them. Their speed, pause and shift affect only their timers, not Bevy's `Time`. To pause the
/// game, pause `Time<Virtual>`: its clock stops with it, and timers on [`ClockId::Real`] still
/// fire.
///
/// While a clock is paused or its speed is zero, nothing on it fires, not even an overdue timer.
/// When a clock is despawned or removed, its timers are cancelled with
/// [`CancelReason::ClockGone`](crate::CancelReason::ClockGone), in the order in which they were
/// armed. A clock stops when its parent despawns, until it
/// [gets another parent](Self::set_parent). The clock of a disabled entity counts as paused.
///
/// # Replacing a clock
///
/// A clock that replaces another one, inserted over it or assigned in place, brings its speed, its
/// pause and its parent. The time, the timers and the callbacks of the entity stay. An insertion
/// takes effect immediately, an assignment in the next run. If the new parent is missing or would
/// make a cycle, the clock keeps its parent, and Bevy's error handler gets a warning with
/// [`InvalidParent`]. Only a clock that is inserted where there is none brings its own time, for
/// instance a loaded one. A clone of a clock shows the time at which it was cloned. If you
/// [swap](core::mem::swap) two clocks, they exchange their settings in the first run after either
/// of them is next written to, or read by reflection.
///
/// # Loading
///
/// A serialized clock holds its time with the fraction of a nanosecond, its settings, and its place
/// in the order in which clocks run. Clocks that are loaded between two runs may arrive in any
/// order, also before their parents. They run in the order of the saved world, after the clocks that
/// exist already. A clone has no such place: it counts as new.
///
/// # Reflection
///
/// With the feature `bevy_reflect`, a clock is a struct with the fields `parent`, `speed`, `paused`
/// and `now`, for an inspector or the remote protocol. A field that is set takes effect in the next
/// run, as an assignment does. Setting `now` is [`set_now`](Self::set_now). An invalid speed or
/// parent leaves the clock as it was, and Bevy's error handler gets a warning with [`InvalidSpeed`]
/// or [`InvalidParent`]. A clock that is applied as a whole replaces this one. To serialize a clock,
/// reflection uses serde.
///
/// # Running only sometimes
///
/// [`run_clock_if`](crate::conditions::run_clock_if) makes clocks run only in a state, or under any
/// other condition. To slow a clock down for a while, use a [`SpeedModifier`].
///
/// # Time complexity
///
/// A clock costs nothing while no timer on it is due and no callback runs on it. A change is
/// *O*(*d* log *c*) in the number of clocks above it, and of clocks beside them, no matter how many
/// timers or clocks depend on it. Moving a clock between frames and the fixed schedule is *O*(*n*)
/// in the number of its descendants, and of all callbacks.
///
/// # Examples
///
/// ```
/// use core::time::Duration;
/// use bevy_app::prelude::*;
/// use bevy_due::{Timer, prelude::*};
/// use bevy_ecs::prelude::*;
/// use bevy_time::{TimePlugin, TimeUpdateStrategy};
///
/// #[derive(Resource, Default)]
/// struct Bites(u32);
///
/// let mut app = App::new();
/// app.add_plugins((TimePlugin, DuePlugin::default()))
///     .init_resource::<Bites>()
///     .insert_resource(TimeUpdateStrategy::ManualDuration(Duration::from_millis(250)))
///     .add_observer(|_: On<TimerFired>, mut bites: ResMut<Bites>| bites.0 += 1);
/// app.update(); // Bevy's first frame takes no time.
///
/// let arena = app.world_mut().spawn(Clock::new()).id();
/// app.world_mut().spawn(Timer::every(1.0).on(arena));
/// for _ in 0..40 {
///     app.update();
/// }
/// assert_eq!(app.world().resource::<Bites>().0, 10);
///
/// app.world_mut().get_mut::<Clock>(arena).unwrap().set_speed(0.25);
/// for _ in 0..40 {
///     app.update();
/// }
/// assert_eq!(app.world().resource::<Bites>().0, 12);
/// ```
#[doc(alias("time_scale", "slow_motion"))]
#[derive(Component)]
#[component(map_entities, on_insert = hooks::on_insert, on_remove = hooks::on_remove)]
#[cfg_attr(
    feature = "bevy_reflect",
    derive(bevy_reflect::TypePath),
    type_path = "bevy_due"
)]
pub struct Clock {
    place: Place,
    #[cfg(feature = "bevy_reflect")]
    fields: Fields,
}

/// Where the state of a clock is.
enum Place {
    /// Here: the clock is a value that is not in a world with the plugin.
    Value(ClockState, Saved),
    /// In the table.
    Table(Handle),
}

impl Clock {
    /// Creates a clock driven by game time, [`ClockId::Virtual`].
    #[must_use]
    pub fn new() -> Self {
        Self::of(ClockId::Virtual)
    }

    /// Creates a clock driven by another one.
    ///
    /// Timers on a clock driven by the fixed clock fire in the fixed schedule. The parent may be
    /// inserted after this clock. If it does not exist by the next run, this clock stands still,
    /// and Bevy's error handler gets a warning with [`NoSuchClock`].
    #[must_use]
    pub fn of(parent: impl Into<ClockId>) -> Self {
        ClockState::new(parent.into()).into()
    }

    /// Sets the speed, as in [`set_speed`](Self::set_speed).
    ///
    /// # Panics
    ///
    /// Panics if `ratio` is negative, infinite or not a number.
    #[must_use]
    #[track_caller]
    pub fn with_speed(mut self, ratio: f64) -> Self {
        self.set_speed(ratio);
        self
    }

    /// Sets the time that the clock shows initially.
    #[must_use]
    pub fn with_now(mut self, now: Duration) -> Self {
        self.set_now(now);
        self
    }

    /// Returns the clock that drives this one.
    #[must_use]
    pub fn parent(&self) -> ClockId {
        self.state().parent
    }

    /// Puts the clock on another parent, from now on.
    ///
    /// The clock keeps its time, its timers and its callbacks. On a parent that is driven by the
    /// [fixed clock](ClockId::Fixed), they run in the fixed schedule from their next run on. A
    /// callback that changes its schedule is called after the others of its priority.
    ///
    /// # Errors
    ///
    /// Returns [`InvalidParent`], and keeps the parent, if there is no such clock, or if the clock
    /// would drive itself. A clock that is not in a world yet accepts any parent.
    ///
    /// # Examples
    ///
    /// ```
    /// # use bevy_app::prelude::*;
    /// # use bevy_due::{ClockId, InvalidParent, prelude::*};
    /// # use bevy_time::TimePlugin;
    /// # let mut app = App::new();
    /// # app.add_plugins((TimePlugin, DuePlugin::default()));
    /// # let world = app.world_mut();
    /// let arena = world.spawn(Clock::new()).id();
    /// let spell = world.spawn(Clock::of(arena)).id();
    ///
    /// let mut clock = world.get_mut::<Clock>(arena).unwrap();
    /// let cycle = InvalidParent::Cycle(vec![arena, spell]);
    /// assert_eq!(clock.set_parent(spell), Err(cycle));
    /// assert_eq!(clock.parent(), ClockId::Virtual);
    /// assert_eq!(clock.set_parent(ClockId::Real), Ok(()));
    /// ```
    pub fn set_parent(&mut self, parent: impl Into<ClockId>) -> Result<(), InvalidParent> {
        self.settle();
        self.place.set_parent(parent.into())
    }

    /// Sets how many seconds pass on this clock per second on its parent, from now on.
    ///
    /// Speeds do not drift: fractions of a nanosecond carry over to the next run.
    ///
    /// # Panics
    ///
    /// Panics if `ratio` is negative, infinite or not a number. Use
    /// [`try_set_speed`](Self::try_set_speed) for a speed that comes from data.
    #[track_caller]
    pub fn set_speed(&mut self, ratio: f64) {
        if let Err(error) = self.try_set_speed(ratio) {
            panic!("{error}");
        }
    }

    /// Sets the speed, or returns an error if it is invalid.
    ///
    /// # Errors
    ///
    /// Returns [`InvalidSpeed`], and keeps the speed, if `ratio` is negative, infinite or not a
    /// number.
    ///
    /// # Examples
    ///
    /// ```
    /// # use bevy_due::{Clock, InvalidSpeed};
    /// let mut clock = Clock::new().with_speed(0.5);
    /// assert_eq!(clock.try_set_speed(-1.0), Err(InvalidSpeed(-1.0)));
    /// assert_eq!(clock.speed(), 0.5);
    /// ```
    pub fn try_set_speed(&mut self, ratio: f64) -> Result<(), InvalidSpeed> {
        let speed = ratio.try_into()?;
        self.change(|state| state.speed = speed);
        Ok(())
    }

    /// Returns the speed. A pause or a [`SpeedModifier`] does not change it.
    #[must_use]
    pub fn speed(&self) -> f64 {
        self.state().speed.ratio()
    }

    /// Stops the clock immediately.
    ///
    /// From now on, nothing on this clock fires, not even later in this run.
    pub fn pause(&mut self) {
        self.change(|state| state.paused = true);
    }

    /// Starts the clock again.
    ///
    /// Every timer keeps its remaining time.
    pub fn unpause(&mut self) {
        self.change(|state| state.paused = false);
    }

    /// Returns `true` if this clock itself is paused.
    ///
    /// A pause of its parent or of Bevy's `Time` does not count.
    #[must_use]
    pub fn is_paused(&self) -> bool {
        self.state().paused
    }

    /// Returns the time that the clock shows, on the same time line as
    /// [`TimerFired::deadline`](crate::TimerFired::deadline).
    #[must_use]
    pub fn now(&self) -> Duration {
        self.state().shown()
    }

    /// Advances the clock, as a long frame would.
    ///
    /// Timers that become due fire in the next run, in order.
    ///
    /// Use this to test a weekly job in a second. In contrast, [`set_now`](Self::set_now) moves the
    /// clock together with all deadlines. [`fast_forward`](crate::DueWorldExt::fast_forward) has a
    /// separate run for each deadline on the way.
    #[doc(alias = "adjust")]
    pub fn advance_by(&mut self, by: Duration) {
        self.change(|state| state.advance(saturating_nanos(by)));
    }

    /// Sets the time that the clock shows.
    ///
    /// Deadlines move with the clock, so every timer keeps its remaining time. The cost does not
    /// depend on the number of timers.
    ///
    /// # Examples
    ///
    /// ```
    /// # use core::time::Duration;
    /// # use bevy_due::Clock;
    /// const WEEK: Duration = Duration::from_secs(7 * 24 * 3600);
    ///
    /// let mut clock = Clock::new();
    /// clock.set_now(WEEK - Duration::from_secs(1));
    /// assert_eq!(clock.now().as_secs(), 604_799);
    /// ```
    #[doc(alias("adjust", "shift"))]
    pub fn set_now(&mut self, now: Duration) {
        self.change(|state| state.set_shown(now));
    }

    fn state(&self) -> ClockState {
        let state = self.place.state();
        #[cfg(feature = "bevy_reflect")]
        let state = self.fields.applied_to(state);
        state
    }

    /// Returns the state to save, and everything else that is saved. A clock that has no parent any
    /// more, or not yet, is saved without one.
    fn saved_state(&self) -> (ClockState, Saved) {
        let mut state = self.state();
        match &self.place {
            Place::Value(_, saved) => (state, *saved),
            Place::Table(handle) => {
                if handle.has_lost_parent() {
                    state.parent = Entity::PLACEHOLDER.into();
                }
                (state, handle.saved())
            }
        }
    }

    /// Returns a copy with the same place in the order, as a saved clock has it.
    pub(crate) fn detached(&self) -> Self {
        let (state, saved) = self.saved_state();
        Place::Value(state, saved).into()
    }

    fn change(&mut self, change: impl FnOnce(&mut ClockState)) {
        self.settle();
        self.place.change(change);
    }

    /// Takes over the changes made by reflection.
    fn settle(&mut self) {
        #[cfg(feature = "bevy_reflect")]
        {
            let changes = self.fields.take_changes();
            match changes.speed.map(speed::Speed::try_from) {
                Some(Ok(speed)) => self.place.change(|state| state.speed = speed),
                Some(Err(error)) => self.fields.refuse(error),
                None => {}
            }
            if let Some(paused) = changes.paused {
                self.place.change(|state| state.paused = paused);
            }
            if let Some(now) = changes.now {
                self.place.change(|state| state.set_shown(now));
            }
            if let Some(parent) = changes.parent
                && let Err(error) = self.place.set_parent(parent)
            {
                self.fields.refuse(error);
            }
        }
    }

    /// Lets the next run look at this component.
    #[cfg(feature = "bevy_reflect")]
    fn note(&self) {
        if let Place::Table(handle) = &self.place {
            handle.note();
        }
    }
}

impl Place {
    fn state(&self) -> ClockState {
        match self {
            Self::Value(state, _) => *state,
            // A handle that outlives its clock was taken out of the world in place.
            Self::Table(handle) => handle.state().unwrap_or(ClockState::new(ClockId::Virtual)),
        }
    }

    fn change(&mut self, change: impl FnOnce(&mut ClockState)) {
        match self {
            Self::Value(state, _) => change(state),
            Self::Table(handle) => handle.change(change),
        }
    }

    fn set_parent(&mut self, parent: ClockId) -> Result<(), InvalidParent> {
        match self {
            Self::Value(state, _) => {
                state.parent = parent;
                Ok(())
            }
            Self::Table(handle) => handle.set_parent(parent),
        }
    }
}

impl From<Place> for Clock {
    fn from(place: Place) -> Self {
        Self {
            place,
            #[cfg(feature = "bevy_reflect")]
            fields: Fields::default(),
        }
    }
}

impl From<ClockState> for Clock {
    fn from(state: ClockState) -> Self {
        Place::Value(state, Saved::default()).into()
    }
}

impl From<Handle> for Clock {
    fn from(handle: Handle) -> Self {
        Place::Table(handle).into()
    }
}

/// A copy counts as a new clock, which has no place in the order. The copy of a loaded clock that has
/// not been inserted yet keeps its place.
impl Clone for Clock {
    fn clone(&self) -> Self {
        match &self.place {
            Place::Value(..) => self.detached(),
            Place::Table(_) => self.state().into(),
        }
    }
}

impl fmt::Debug for Clock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = self.state();
        f.debug_struct("Clock")
            .field("parent", &state.parent)
            .field("speed", &state.speed)
            .field("paused", &state.paused)
            .field("now", &state.shown())
            .finish()
    }
}

impl MapEntities for Clock {
    fn map_entities<M: EntityMapper>(&mut self, mapper: &mut M) {
        #[cfg(feature = "bevy_reflect")]
        if let Some(parent) = self.fields.parent_mut() {
            return parent.map_entities(mapper);
        }
        let before = self.parent();
        let mut parent = before;
        // No lock is held here: the mapper may read clocks.
        parent.map_entities(mapper);
        if parent != before {
            // An invalid parent leaves the clock on the one it has.
            self.set_parent(parent).ok();
        }
    }
}

/// Two clocks are equal if they show the same time and advance in the same way.
impl PartialEq for Clock {
    fn eq(&self, other: &Self) -> bool {
        self.state() == other.state()
    }
}

impl Default for Clock {
    fn default() -> Self {
        Self::new()
    }
}
