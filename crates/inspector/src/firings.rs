//! The last firings, for a remote client.

use core::time::Duration;
use std::{borrow::Cow, collections::VecDeque};

use bevy_app::App;
use bevy_due::{ClockId, TimerFired};
use bevy_ecs::prelude::*;
use bevy_reflect::Reflect;

/// The number of firings to keep.
const KEPT: usize = 60;

/// The last firings, the newest first.
#[derive(Resource, Debug, Default, Reflect)]
#[reflect(Resource)]
#[type_path = "inspector"]
pub struct LastFirings {
    /// The number of all firings so far.
    pub total: u64,
    /// The firings.
    pub firings: VecDeque<Firing>,
}

/// A firing of a timer, which may be gone by now.
#[derive(Clone, Debug, Reflect)]
#[type_path = "inspector"]
pub struct Firing {
    /// The number of this firing among all of them, from one.
    pub number: u64,
    /// The key or the name of the timer.
    pub timer: String,
    /// The name of the owner, unless the timer owns itself.
    pub owner: Option<String>,
    /// The name of the clock.
    pub clock: String,
    /// The number of firings of this timer, including this one.
    pub count: u64,
    /// The deadline, as the clock shows it.
    pub deadline: Duration,
    /// The time from the deadline to the firing, on the clock.
    pub lateness: Duration,
}

pub(crate) fn plugin(app: &mut App) {
    app.register_type::<LastFirings>()
        .init_resource::<LastFirings>()
        .add_observer(note_firing);
}

/// Notes a firing at once: the timer may be gone at the end of the frame.
fn note_firing(fired: On<TimerFired>, names: Query<&Name>, mut last: ResMut<LastFirings>) {
    // An owner with an observer gets the same event again.
    if fired.event_target() != fired.entity() {
        return;
    }
    last.total += 1;
    last.firings.truncate(KEPT - 1);
    let name = |entity: Entity| match names.get(entity) {
        Ok(name) => name.to_string(),
        Err(_) => entity.to_string(),
    };
    let key = fired.key().map(Cow::into_owned);
    let is_owned = fired.owner() != fired.entity();
    let firing = Firing {
        number: last.total,
        timer: key.unwrap_or_else(|| name(fired.entity())),
        owner: is_owned.then(|| name(fired.owner())),
        clock: match fired.clock() {
            ClockId::Own(clock) => name(clock),
            clock => clock.to_string(),
        },
        count: fired.count(),
        deadline: fired.deadline(),
        lateness: fired.lateness(),
    };
    last.firings.push_front(firing);
}
