//! Clocks that run only under a condition.

use bevy_ecs::{
    entity_disabling::Disabled,
    prelude::*,
    schedule::{ScheduleConfigs, SystemCondition},
    system::ScheduleSystem,
};

use super::{Clock, shared::ClockTable, table::Held};

/// Lets time pass on the clocks of all entities with the component `C` only while a condition
/// holds.
///
/// Add the returned system to [`First`](bevy_app::First), or to
/// [`FixedFirst`](bevy_app::FixedFirst) for clocks driven by the fixed clock. Any run condition
/// will do, such as `in_state(GameState::Playing)`. The condition is checked once per frame, and
/// decides whether the time since the previous run counts. If the state changes in the middle of a
/// frame, the next check sees it.
///
/// The condition is independent of [`Clock::pause`] and of other conditions: a clock runs while
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
/// let clock = app.world().get::<Clock>(level).unwrap();
/// assert_eq!(clock.now(), Duration::from_millis(500));
/// ```
#[doc(alias("run_if", "in_state", "pause"))]
pub fn run_clock_if<C: Component, M>(
    condition: impl SystemCondition<M>,
) -> ScheduleConfigs<ScheduleSystem> {
    condition.pipe(hold_clocks::<C>).into_configs()
}

fn hold_clocks<C: Component>(
    In(runs): In<bool>,
    table: Res<ClockTable>,
    clocks: Query<Entity, (With<C>, With<Clock>, Allow<Disabled>)>,
    mut condition: Local<Option<u64>>,
) {
    let mut table = table.lock();
    let condition = *condition.get_or_insert_with(|| {
        table.conditions += 1;
        table.conditions
    });
    let held = table.held.remove(&condition).unwrap_or_default();
    if runs && held.is_empty() {
        return;
    }
    let mut holds = Held::default();
    if !runs {
        for clock in &clocks {
            if let Ok((key, row)) = table.find(clock.into()) {
                holds.insert(clock, (key, row.age));
            }
        }
    }
    let mut change = |from: &Held, to: &Held, by: i32| {
        for (clock, &(key, age)) in to {
            if from.get(clock) != Some(&(key, age)) && table.get_of_age(key, age).is_some() {
                table.change(key, |row| {
                    row.brakes.holds = row.brakes.holds.saturating_add_signed(by);
                });
            }
        }
    };
    change(&holds, &held, -1);
    change(&held, &holds, 1);
    table.held.insert(condition, holds);
}
