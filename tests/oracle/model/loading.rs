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
        self.waiting.clear();
        for (nth, saved) in before.all.iter().enumerate() {
            let own = Clock::new(saved.name, saved.parent, saved.driver, saved.speed);
            let mut clock = new.all.get(nth).cloned().unwrap_or(own);
            clock.load(saved);
            clock.exists = saved.exists;
            if clock.driver == Driver::Nothing {
                clock.parent = Named::Own(NOWHERE);
            }
            self.all[nth] = clock;
        }
        for nth in self.parents_first(0..before.all.len()) {
            self.fall_behind(nth, before.unseen(nth));
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
            let (parent, driver) = match saved.driver {
                Driver::Clock(at) => {
                    let at = places.get(&at).copied().unwrap_or(at);
                    (saved.parent, Driver::Clock(at))
                }
                _ => (Named::Own(NOWHERE), Driver::Nothing),
            };
            let mut clock = Clock::new(saved.name, parent, driver, saved.speed);
            clock.name.rename(&name);
            clock.parent.rename(&name);
            clock.load(saved);
            self.all.push(clock);
        }
        for before in from.parents_first(places.keys().copied()) {
            let nth = places[&before];
            self.fall_behind(nth, from.unseen(before));
            self.all[nth].is_fixed = self.is_fixed_under(nth, places);
        }
    }

    /// Returns how far the driver of a clock has advanced since the clock was read.
    fn unseen(&self, nth: Nth) -> i128 {
        match self.all[nth].driver {
            Driver::Clock(parent) => {
                let unseen = i128::from(self.live(parent).now) - self.all[nth].seen;
                unseen.max(0)
            }
            _ => 0,
        }
    }

    /// A loaded clock advances with its next reading by what it has not seen.
    fn fall_behind(&mut self, nth: Nth, unseen: i128) {
        if let Driver::Clock(parent) = self.all[nth].driver {
            self.all[nth].seen = i128::from(self.live(parent).now) - unseen;
        }
    }

    /// Returns clocks in another order: each after those that drive it.
    fn parents_first(&self, clocks: impl Iterator<Item = Nth>) -> Vec<Nth> {
        let mut clocks: Vec<Nth> = clocks.collect();
        clocks.sort_by_key(|&nth| {
            (0..self.all.len())
                .filter(|&at| self.runs_on(nth, at))
                .count()
        });
        clocks
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
