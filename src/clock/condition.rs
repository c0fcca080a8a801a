//! Clocks that run only under a condition.

use alloc::vec::Vec;

use bevy_ecs::{
    entity_disabling::Disabled,
    prelude::*,
    schedule::{ScheduleConfigs, SystemCondition},
    system::ScheduleSystem,
};

use super::{read::ReadClocks, table::ClockTable};

/// Lets time pass on the clocks of all entities with the component `C` only while a condition
/// holds.
///
/// Add the returned system to [`First`](bevy_app::First), or to
/// [`FixedFirst`](bevy_app::FixedFirst) for clocks driven by the fixed clock. Any run condition
/// will do, such as `in_state(GameState::Playing)`. The condition is checked once per frame, and
/// decides whether the time since the previous run counts. If the state changes in the middle of a
/// frame, the next check sees it.
///
/// The condition is independent of [`Clock::pause`](crate::Clock::pause) and of other conditions: a clock runs while
/// nothing stops it.
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
    condition.pipe(hold_clocks::<C>).before(ReadClocks)
}

/// The conditions of a world, by the order of their first checks: whether each holds no clock.
#[derive(Clone, Debug, Default)]
pub(super) struct Conditions(Vec<bool>);

/// The index of a condition.
pub(super) type Condition = usize;

impl Conditions {
    fn add(&mut self) -> Condition {
        self.0.push(true);
        self.0.len() - 1
    }

    fn is_idle(&self, condition: Condition) -> bool {
        self.0.get(condition).copied().unwrap_or_default()
    }

    fn set_idle(&mut self, condition: Condition, is_idle: bool) {
        if let Some(idle) = self.0.get_mut(condition) {
            *idle = is_idle;
        }
    }

    /// Returns these conditions, and the further ones of another table. The latter hold clocks, as
    /// far as is known.
    pub(super) fn and(mut self, other: &Self) -> Self {
        let known = self.0.len();
        self.0.extend(other.0.iter().skip(known).map(|_| false));
        self
    }
}

fn hold_clocks<C: Component>(
    In(runs): In<bool>,
    mut table: ResMut<ClockTable>,
    clocks: Query<(), (With<C>, Allow<Disabled>)>,
    mut condition: Local<Option<Condition>>,
) {
    let condition = *condition.get_or_insert_with(|| table.conditions.add());
    if runs && table.conditions.is_idle(condition) {
        return;
    }
    let is_held = |entity: Entity| !runs && clocks.contains(entity);
    let changed = table.rows.iter().filter_map(|(key, row)| {
        let is_held = is_held(row.entity?);
        let was_held = row.brakes.held_by.contains(&condition);
        (is_held != was_held).then_some((key, is_held))
    });
    for (key, is_held) in changed.collect::<Vec<_>>() {
        table.change(key, |row| match is_held {
            true => row.brakes.held_by.push(condition),
            false => row
                .brakes
                .held_by
                .retain(|&mut held_by| held_by != condition),
        });
    }
    table.conditions.set_idle(condition, runs);
}
