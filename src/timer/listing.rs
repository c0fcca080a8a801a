//! A readable table of timers.

use alloc::{format, string::ToString, vec::Vec};
use core::fmt;

use bevy_ecs::prelude::*;

use super::{ArmedTimers, TimerStatus};

impl fmt::Display for ArmedTimers<'_, '_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (clock, remaining, wait, fired) = ("clock", "remaining", "wait", "fired");
        write!(
            f,
            "{clock:<10} {remaining:>14} {wait:>14} {fired:>6}  timer"
        )?;
        let mut timers: Vec<TimerStatus> = self.iter().collect();
        let key = |clock| self.table.find(clock).map(|found| found.key).ok();
        timers.sort_by_key(|timer| (key(timer.clock), timer.remaining));
        timers.iter().try_for_each(|timer| self.write_row(f, timer))
    }
}

impl ArmedTimers<'_, '_> {
    fn write_row(&self, f: &mut fmt::Formatter<'_>, timer: &TimerStatus) -> fmt::Result {
        let clock = timer.clock.to_string();
        let (remaining, wait) = (
            format!("{:?}", timer.remaining),
            format!("{:?}", timer.wait),
        );
        let fired = timer.count;
        write!(f, "\n{clock:<10} {remaining:>14} {wait:>14} {fired:>6}  ")?;
        let is_owned = timer.owner != timer.entity;
        if let (true, Ok(key)) = (is_owned, self.keys.get(timer.entity)) {
            write!(f, "{:?} ", key.name())?;
        }
        self.write_name(f, timer.entity)?;
        if is_owned {
            f.write_str(" of ")?;
            self.write_name(f, timer.owner)?;
        }
        f.write_str(if timer.paused { ", paused" } else { "" })
    }

    fn write_name(&self, f: &mut fmt::Formatter<'_>, entity: Entity) -> fmt::Result {
        match self.names.get(entity) {
            Ok(name) => write!(f, "{name} ({entity})"),
            Err(_) => write!(f, "{entity}"),
        }
    }
}
