//! Loading clocks: they keep their settings and the time that they show, and start over.

use std::collections::BTreeMap;

use super::{
    clock::{Clock, Driver},
    clocks::{Clocks, Nth},
};
use crate::entry::{Id, NOWHERE, Named};

const FIXED: Nth = 3;

impl Clocks {
    /// All clocks start over at the start of time, with another shift. So they show the same time, of
    /// which the built-in ones know no fraction.
    pub(super) fn start_over(&mut self, new: Self) {
        let before = self.clone();
        self.times = new.times;
        for (nth, saved) in before.all.iter().enumerate() {
            let own = Clock::new(saved.name, saved.parent, saved.driver, saved.speed);
            let mut clock = new.all.get(nth).cloned().unwrap_or(own);
            clock.load(saved);
            clock.exists = saved.exists;
            let runs_on_this = |parent| before.find(parent).is_some();
            if clock.driver == Driver::Missing && clock.parent.is_some_and(runs_on_this) {
                clock.parent = Some(Named::Own(NOWHERE));
            }
            self.all[nth] = clock;
        }
        for nth in self.parents_first() {
            self.start_from_now(nth);
            self.all[nth].is_fixed = self.runs_on(nth, FIXED);
        }
    }

    /// Adds copies of clocks, which have these places here. They show the same time.
    pub(super) fn copy(
        &mut self,
        from: &Self,
        places: &BTreeMap<Nth, Nth>,
        name: impl Fn(Id) -> Id,
    ) {
        for &nth in places.keys() {
            let saved = &from.all[nth];
            let is_awaited = |parent| match parent {
                Named::Own(id) => ![id, NOWHERE].contains(&name(id)) && from.find(parent).is_none(),
                _ => false,
            };
            let (parent, driver) = match saved.driver {
                Driver::Clock(at) => {
                    let at = places.get(&at).copied().unwrap_or(at);
                    (saved.parent, Driver::Clock(at))
                }
                Driver::Hand => (None, Driver::Hand),
                _ if saved.parent.is_some_and(is_awaited) => (saved.parent, Driver::Missing),
                _ => (Some(Named::Own(NOWHERE)), Driver::Missing),
            };
            let mut clock = Clock::new(saved.name, parent, driver, saved.speed);
            clock.rename(&name);
            clock.load(saved);
            self.all.push(clock);
        }
        for &nth in places.values() {
            self.start_from_now(nth);
            self.all[nth].is_fixed = self.is_fixed_under(nth, places);
        }
    }

    /// A loaded clock advances with its driver from now on.
    fn start_from_now(&mut self, nth: Nth) {
        if let Driver::Clock(parent) = self.all[nth].driver {
            self.all[nth].seen = self.all[parent].now;
        }
    }

    /// A new clock is read with its parent. One without a parent is read in frames.
    fn is_fixed_under(&self, nth: Nth, places: &BTreeMap<Nth, Nth>) -> bool {
        match self.all[nth].driver {
            Driver::Clock(parent) if places.values().any(|&new| new == parent) => {
                self.is_fixed_under(parent, places)
            }
            Driver::Clock(parent) => self.all[parent].is_fixed,
            _ => false,
        }
    }
}
