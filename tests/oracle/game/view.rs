//! The view of the app between two frames.

use core::{mem, time::Duration};

use bevy_due::{
    ArmedTimers, ClockId, Clocks, Owned,
    message::MessageStats,
    timer::{RunStats, TimerStatus},
};
use bevy_ecs::{prelude::*, system::SystemState};

use super::{Cast, Game, handlers};
use crate::{
    entry::{Id, Named, SOON, Status, View},
    op::KEYS,
    rules::Rules,
};

impl Game {
    /// Returns what there is to see, and what has happened since the last call. The status of the
    /// timers on the entities in `unsettled` is left out.
    pub(crate) fn view(&mut self, unsettled: &[Id]) -> View {
        let log = mem::take(&mut self.shared.record().log);
        let cast = &*self.shared.cast();
        let world = self.app.world_mut();
        let fired = drain(world, |fired| handlers::firing(cast, fired));
        let cancelled = drain(world, |cancelled| handlers::cancel(cast, cancelled));
        let exists = |&id: &Id| world.entities().contains_spawned(cast.entities[id]);
        let alive: Vec<Id> = (0..cast.entities.len()).filter(exists).collect();
        let settled = || alive.iter().filter(|id| !unsettled.contains(id));
        let mut state = SystemState::<(ArmedTimers, Clocks)>::new(world);
        let world = self.app.world();
        let (timers, clocks) = state.get(world).expect("the app has the plugin");
        let entity = |id: Id| cast.entities[id];
        let status = |&id: &Id| Some(status(cast, timers.get(entity(id))?));
        let life = |&id: &Id| Some((id, nanos(timers.lifetime(entity(id))?)));
        View {
            log,
            fired,
            cancelled,
            timers: settled().filter_map(status).collect(),
            lifetimes: settled().filter_map(life).collect(),
            armed: armed(cast, &timers),
            plans: match unsettled {
                [] => plans(self.rules, cast, &alive, &timers),
                _ => Vec::new(),
            },
            keyed: keyed(cast, &alive, &timers),
            clocks: clock_times(cast, &alive, &clocks),
            owned: owned(cast, &alive, world),
            children: children(cast, &alive, world),
            alive,
            runs: [timers.last_run(), timers.last_fixed_run()].map(stats),
            messages: messages(world),
        }
    }
}

fn drain<M: Message, T>(world: &mut World, see: impl Fn(&M) -> T) -> Vec<T> {
    let mut messages = world.resource_mut::<Messages<M>>();
    messages.drain().map(|message| see(&message)).collect()
}

fn nanos(time: Duration) -> u64 {
    time.as_nanos() as u64
}

fn stats(stats: RunStats) -> [u64; 3] {
    [stats.fired, stats.missed, stats.cancelled]
}

fn messages(world: &World) -> [u64; 3] {
    let stats = world.resource::<MessageStats>();
    [stats.delivered, stats.undeliverable, stats.late]
}

fn status(cast: &Cast, status: TimerStatus) -> Status {
    Status {
        entity: cast.id(status.entity),
        owner: cast.id(status.owner),
        clock: cast.named(status.clock),
        deadline: nanos(status.deadline),
        remaining: nanos(status.remaining),
        elapsed: nanos(status.elapsed),
        wait: nanos(status.wait),
        interval: status.interval.map(nanos),
        count: status.count,
        left: status.left,
        paused: status.paused,
    }
}

fn armed(cast: &Cast, timers: &ArmedTimers) -> Vec<Id> {
    let mut armed: Vec<Id> = timers.iter().map(|timer| cast.id(timer.entity)).collect();
    armed.sort_unstable();
    assert_eq!(
        armed.len(),
        timers.count(),
        "the count should be that of the list"
    );
    armed
}

fn plans(
    rules: Rules,
    cast: &Cast,
    alive: &[Id],
    timers: &ArmedTimers,
) -> Vec<(Named, Option<u64>, Vec<Id>)> {
    let plan = |(name, clock)| {
        let next = timers.next_deadline(clock).ok()?.map(nanos);
        let due = timers.due_within(clock, rules.span(SOON)).ok()?;
        let due = due.iter().map(|timer| cast.id(timer.entity)).collect();
        Some((name, next, due))
    };
    all_clocks(cast, alive).filter_map(plan).collect()
}

/// Returns the built-in clocks, and the entities that may carry a clock.
fn all_clocks(cast: &Cast, alive: &[Id]) -> impl Iterator<Item = (Named, ClockId)> {
    let built_in = [
        (Named::Real, ClockId::Real),
        (Named::Virtual, ClockId::Virtual),
        (Named::Frames, ClockId::Frames),
        (Named::Fixed, ClockId::Fixed),
    ];
    let own = |&id: &Id| (Named::Own(id), ClockId::Own(cast.entities[id]));
    built_in.into_iter().chain(alive.iter().map(own))
}

fn keyed(cast: &Cast, alive: &[Id], timers: &ArmedTimers) -> Vec<(Id, &'static str, Id)> {
    let keys = |&owner: &Id| KEYS.map(|key| (owner, key));
    let mut found: Vec<_> = alive.iter().flat_map(keys).collect();
    found.sort_unstable();
    let timer = |(owner, key)| {
        let timer = timers.keyed(cast.entities[owner], key)?;
        Some((owner, key, cast.id(timer.entity)))
    };
    found.into_iter().filter_map(timer).collect()
}

fn owned(cast: &Cast, alive: &[Id], world: &World) -> Vec<(Id, Vec<Id>)> {
    let owned = alive.iter().filter_map(|&owner| {
        let owned = world.get::<Owned>(cast.entities[owner])?;
        Some((owner, owned.iter().map(|entity| cast.id(entity)).collect()))
    });
    owned.collect()
}

fn children(cast: &Cast, alive: &[Id], world: &World) -> Vec<(Id, Id)> {
    let children = alive.iter().filter_map(|&child| {
        let ChildOf(parent) = world.get(cast.entities[child])?;
        Some((child, cast.id(*parent)))
    });
    children.collect()
}

fn clock_times(cast: &Cast, alive: &[Id], clocks: &Clocks) -> Vec<(Named, u64)> {
    let times = all_clocks(cast, alive)
        .filter_map(|(name, clock)| Some((name, nanos(clocks.now(clock).ok()?))));
    times.collect()
}
