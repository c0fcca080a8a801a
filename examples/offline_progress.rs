//! A farmer comes back after eight hours. Everything that should have happened in the meantime
//! happens now, in a moment and in the same order.
//!
//! ```text
//! cargo run --example offline_progress
//! ```

use core::{fmt::Display, time::Duration};
use std::collections::BTreeMap;

use bevy_app::prelude::*;
use bevy_due::{Clocks, ClocksMut, Timer, prelude::*};
use bevy_ecs::{prelude::*, system::SystemParam};
use bevy_time::TimePlugin;
use indicatif::ProgressBar;

const HOUR: Duration = Duration::from_hours(1);
/// The time since the player left.
const AWAY: Duration = Duration::from_hours(8);
const WEEK: Duration = Duration::from_hours(7 * 24);
/// The calendar starts on a Monday.
const SATURDAY: Duration = Duration::from_hours(5 * 24);
/// The player left on Saturday at two.
const START: Duration = Duration::from_hours(5 * 24 + 2);

fn main() {
    App::new()
        .add_plugins((TimePlugin, DuePlugin::default()))
        .insert_resource(Progress(ProgressBar::new(AWAY.as_secs())))
        .add_systems(Startup, (load_farm, catch_up).chain())
        .add_observer(show_progress)
        .update();
}

#[derive(Component, Default)]
struct Farm {
    barn: BTreeMap<&'static str, u32>,
    coins: u32,
}

/// The harvest whenever the timer fires: a name and a number of pieces.
#[derive(Component)]
struct Crop(&'static str, u32);

#[derive(Component)]
struct Fields;

/// Builds the farm as the player left it. A game would load it from a file.
fn load_farm(mut commands: Commands) {
    // The farm carries its calendar, a clock, and its timers use it.
    let calendar = Clock::new().with_now(START);
    let farm = commands.spawn((Farm::default(), calendar)).id();
    // Everything on the fields grows twice as fast until the manure is used up.
    let fields = Clock::of(farm).with_speed(2.0);
    let fields = commands.spawn((Fields, fields)).id();

    let carrots = (Crop("carrots", 10), Timer::every(2 * HOUR).on(fields));
    let pumpkins = (Crop("pumpkins", 3), Timer::after(7 * HOUR).on(fields));
    let manure = Timer::after(3 * HOUR);
    let market = Timer::every(WEEK).first_at(SATURDAY + 8 * HOUR);
    let farm = OwnedBy(farm);
    commands.spawn((farm, carrots)).observe(harvest);
    commands.spawn((farm, pumpkins)).observe(harvest);
    commands.spawn((farm, manure)).observe(use_up_manure);
    commands.spawn((farm, market)).observe(sell);
}

fn harvest(
    fired: On<TimerFired>,
    crops: Query<&Crop>,
    mut farm: Single<&mut Farm>,
    calendar: Calendar,
) -> Result {
    let &Crop(name, pieces) = crops.get(fired.entity())?;
    *farm.barn.entry(name).or_default() += pieces;
    calendar.print(format_args!("{pieces} {name} are harvested"));
    Ok(())
}

fn sell(_: On<TimerFired>, mut farm: Single<&mut Farm>, calendar: Calendar) {
    let sold: u32 = farm.barn.values().sum();
    farm.barn.clear();
    farm.coins += 2 * sold;
    calendar.print(format_args!("The market pays for {sold} pieces"));
}

fn use_up_manure(
    _: On<TimerFired>,
    fields: Single<Entity, With<Fields>>,
    calendar: Calendar,
    mut clocks: ClocksMut,
) -> Result {
    calendar.print("The manure is used up");
    clocks.get_mut(*fields)?.set_speed(1.0);
    Ok(())
}

/// The progress of the fast-forward, in seconds on the farm. A terminal shows it, a pipe does not.
#[derive(Resource)]
struct Progress(ProgressBar);

/// A fast-forward of a year takes a while, and each firing shows how far it has come.
fn show_progress(
    _: On<TimerFired>,
    farm: Single<Entity, With<Farm>>,
    clocks: Clocks,
    progress: Res<Progress>,
) -> Result {
    let passed = clocks.now(*farm)?.saturating_sub(START);
    progress.0.set_position(passed.as_secs());
    Ok(())
}

/// Fast-forwards the farm by the time since the player left.
fn catch_up(world: &mut World, farms: &mut QueryState<Entity, With<Farm>>) -> Result {
    let farm = farms.single(world)?;
    let stats = world.fast_forward(farm, AWAY)?;
    world.resource::<Progress>().0.finish_and_clear();

    let Farm { barn, coins } = world.get::<Farm>(farm).ok_or("no farm")?;
    println!(
        "You were away for {} hours. {} timers fired.",
        AWAY.as_secs() / HOUR.as_secs(),
        stats.fired
    );
    println!("You have {coins} coins, and the barn holds {barn:?}.");
    Ok(())
}

/// Prints a line with the day and time on the farm, above the progress.
#[derive(SystemParam)]
struct Calendar<'w, 's> {
    farm: Single<'w, 's, Entity, With<Farm>>,
    clocks: Clocks<'w>,
    progress: Res<'w, Progress>,
}

impl Calendar<'_, '_> {
    fn print(&self, line: impl Display) {
        let now = self.clocks.now(*self.farm).unwrap_or_default();
        let minutes = now.as_secs() / 60;
        let (days, hour, minute) = (minutes / 60 / 24, minutes / 60 % 24, minutes % 60);
        let day = ["Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"][days as usize % 7];
        let print = || println!("{day} {hour:02}:{minute:02}  {line}");
        self.progress.0.suspend(print);
    }
}
