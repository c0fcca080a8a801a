//! The queue's copy of a timer, and the arithmetic of one firing.

use core::num::NonZeroU64;

use bevy_ecs::entity::Entity;

use super::{Kind, MissedTicks, Timer};

/// A timer in the queue. Together with the queue's own fields, it fills a cache line.
#[derive(Clone, Debug)]
pub(crate) struct ArmedTimer {
    pub(crate) entity: Entity,
    pub(crate) owner: Entity,
    pub(crate) interval: Option<NonZeroU64>,
    /// The number of firings: the low part.
    count: u32,
    /// The number of firings left, or zero if the timer never ends.
    left: u32,
    /// The number of firings so far in the current burst.
    pub(super) burst: u32,
    /// The number of firings: the high part. The top bits are [`MARKS`].
    count_high: u16,
    pub(super) missed_ticks: MissedTicks,
    pub(super) reaction: Reaction,
}

/// The reaction to a firing, beside its observers and its message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reaction {
    None,
    /// The [`TimerAction`](super::TimerAction) of the entity runs.
    Act,
    /// The entity despawns without an event: the end of a
    /// [`DespawnAfter`](super::DespawnAfter).
    EndLife,
}

/// Set if the timer draws its intervals.
const RANDOM: u16 = 1 << 15;

/// Set if the timer chooses its deadlines.
const SLACK: u16 = 1 << 14;

/// Set if the timer may wait for a later frame when it is due.
const DEFERRABLE: u16 = 1 << 13;

/// The bits of `count_high` that do not count.
const MARKS: u16 = RANDOM | SLACK | DEFERRABLE;

/// The result of one firing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Served {
    /// The number of deadlines that are skipped.
    pub(crate) missed: u64,
    /// The next deadline, or `None` if this was the last firing.
    pub(crate) next: Option<u64>,
}

impl ArmedTimer {
    pub(super) fn new(entity: Entity, owner: Entity, timer: &Timer, acts: bool) -> Self {
        Self {
            entity,
            owner,
            interval: timer.interval,
            count: 0,
            left: timer.max_firings().unwrap_or(0),
            burst: 0,
            count_high: mark(RANDOM, timer.interval_span().is_some())
                | mark(SLACK, timer.options().slack > 0)
                | mark(DEFERRABLE, timer.options().priority.is_some()),
            missed_ticks: timer.missed_ticks(),
            reaction: match acts {
                true => Reaction::Act,
                false => Reaction::None,
            },
        }
    }

    pub(super) fn lifetime(entity: Entity, owner: Entity) -> Self {
        Self {
            entity,
            owner,
            interval: None,
            count: 0,
            left: 1,
            burst: 0,
            count_high: 0,
            missed_ticks: MissedTicks::Burst,
            reaction: Reaction::EndLife,
        }
    }

    pub(super) fn kind(&self) -> Kind {
        match self.reaction {
            Reaction::EndLife => Kind::Lifetime,
            Reaction::None | Reaction::Act => Kind::Timer,
        }
    }

    pub(super) fn set_acts(&mut self, acts: bool) {
        self.reaction = match self.reaction {
            Reaction::EndLife => Reaction::EndLife,
            Reaction::None | Reaction::Act if acts => Reaction::Act,
            Reaction::None | Reaction::Act => Reaction::None,
        };
    }

    /// Returns the number of firings so far.
    pub(crate) fn count(&self) -> u64 {
        u64::from(self.count_high & !MARKS) << 32 | u64::from(self.count)
    }

    /// Returns `true` if the timer draws its intervals.
    pub(super) fn is_random(&self) -> bool {
        self.count_high & RANDOM != 0
    }

    /// Returns `true` if the timer chooses its deadlines.
    pub(super) fn has_slack(&self) -> bool {
        self.count_high & SLACK != 0
    }

    /// Returns `true` if the timer may wait for a later frame when it is due.
    pub(super) fn is_deferrable(&self) -> bool {
        self.count_high & DEFERRABLE != 0
    }

    /// Returns the low and the high part of the number of firings so far.
    pub(super) fn count_halves(&self) -> (u32, u16) {
        (self.count, self.count_high & !MARKS)
    }

    /// Returns the number of firings left, or `None` if the timer fires forever.
    pub(crate) fn left(&self) -> Option<u32> {
        (self.left != 0).then_some(self.left)
    }

    /// Handles `deadline` if the timer fires at a fixed interval, again after `now`, and returns the next
    /// deadline. Otherwise does nothing.
    #[inline]
    pub(super) fn fire_on_time(&mut self, deadline: u64, now: u64) -> Option<u64> {
        let next = deadline.saturating_add(self.interval?.get());
        let is_plain = next > now
            && self.left != 1
            && self.count != u32::MAX
            && self.count_high & MARKS == 0
            && self.missed_ticks != MissedTicks::Delay;
        if !is_plain {
            return None;
        }
        self.count += 1;
        self.left = self.left.saturating_sub(1);
        self.burst = 0;
        Some(next)
    }

    /// Handles `deadline`, and the later deadlines up to `now` as [`MissedTicks`] requires.
    ///
    /// A burst ends after `burst_limit` firings in one run. The remaining deadlines are skipped.
    ///
    /// ```text
    /// deadlines    |    |    |    |    |    |    |    |
    /// now, limit 3                     ^
    /// firings                          123            |
    ///                                    └ missed: 2  └ next
    /// ```
    pub(crate) fn fire(&mut self, deadline: u64, now: u64, burst_limit: u32) -> Served {
        let Some(interval) = self.count_firing() else {
            return Served {
                missed: 0,
                next: None,
            };
        };
        let mut missed = 0;
        let mut next = deadline.saturating_add(interval.get());
        if self.missed_ticks == MissedTicks::Burst {
            self.burst += 1;
            if next > now {
                self.burst = 0;
            } else if self.burst < burst_limit {
                return Served {
                    missed,
                    next: Some(next),
                };
            }
        }
        if next <= now {
            self.burst = 0;
            missed = (now - deadline) / interval;
            next = deadline.saturating_add(interval.get().saturating_mul(missed + 1));
        }
        if self.missed_ticks == MissedTicks::Delay {
            next = now.saturating_add(interval.get());
        }
        Served {
            missed,
            next: Some(next),
        }
    }

    /// Sets the number of firings left, or lets the timer fire forever.
    pub(super) fn set_left(&mut self, left: Option<u32>) {
        self.left = left.unwrap_or(0);
    }

    /// Sets the interval, which is no longer random.
    pub(super) fn set_interval(&mut self, interval: Option<NonZeroU64>) {
        self.interval = interval;
        self.set_random(false);
    }

    pub(super) fn set_random(&mut self, is_random: bool) {
        self.count_high = self.count_high & !RANDOM | mark(RANDOM, is_random);
    }

    /// Starts the count over.
    pub(super) fn restart(
        &mut self,
        interval: Option<NonZeroU64>,
        times: Option<u32>,
        random: bool,
    ) {
        self.interval = interval;
        self.count = 0;
        self.count_high &= MARKS;
        self.set_random(random);
        self.left = times.unwrap_or(0);
    }

    /// Sets the number of firings so far.
    pub(super) fn set_count(&mut self, count: u64) {
        let high = u16::try_from(count >> 32).map_or(!MARKS, |high| high.min(!MARKS));
        self.count = count as u32;
        self.count_high = self.count_high & MARKS | (high & !MARKS);
    }

    /// Counts a firing, and returns the interval to the next one unless this was the last.
    pub(super) fn count_firing(&mut self) -> Option<NonZeroU64> {
        let (count, overflows) = self.count.overflowing_add(1);
        self.count = count;
        if overflows && self.count_high & !MARKS != !MARKS {
            self.count_high += 1;
        }
        let ended = self.left == 1;
        self.left = self.left.saturating_sub(1);
        self.interval.filter(|_| !ended)
    }
}

fn mark(mark: u16, is_set: bool) -> u16 {
    if is_set { mark } else { 0 }
}

#[cfg(test)]
mod tests {
    use alloc::format;

    use bevy_ecs::world::World;

    use super::*;
    use crate::queue::NEVER;

    #[test]
    fn a_slot_of_the_queue_is_one_cache_line() {
        assert_eq!(size_of::<Option<ArmedTimer>>(), 40);
    }

    #[test]
    fn a_timer_on_time_fires_like_any_other() {
        let entity = World::new().spawn_empty().id();
        let once = Timer::after(1.0);
        let forever = Timer::every(1.0);
        let policies = [MissedTicks::Burst, MissedTicks::Delay, MissedTicks::Skip];
        let periodic = policies.map(|policy| forever.clone().with_missed_ticks(policy));
        let mut on_time = 0;
        for timer in periodic.into_iter().chain([once, forever.times(2)]) {
            for (count, burst) in [(0, 0), (7, 3), (u64::from(u32::MAX), 0)] {
                for now in [1_000_000_000, 1_999_999_999, 2_000_000_000, NEVER - 1] {
                    let mut armed = ArmedTimer::new(entity, entity, &timer, false);
                    armed.set_count(count);
                    if timer.missed_ticks() == MissedTicks::Burst {
                        armed.burst = burst;
                    }
                    let mut other = armed.clone();
                    for deadline in [1_000_000_000, 1_000_000_000 + now / 2] {
                        let before = format!("{armed:?}");
                        let next = armed.fire_on_time(deadline, now);
                        if next.is_none() {
                            assert_eq!(format!("{armed:?}"), before, "nothing should change");
                            break;
                        }
                        on_time += 1;
                        let expected = Served { missed: 0, next };
                        assert_eq!(other.fire(deadline, now, 1000), expected);
                        assert_eq!(format!("{armed:?}"), format!("{other:?}"));
                    }
                }
            }
        }
        assert!(on_time > 5, "only {on_time} firings were on time");
    }

    #[test]
    fn counts_continue_past_four_billion() {
        let entity = World::new().spawn_empty().id();
        for timer in [Timer::every(1.0), Timer::every_between(1.0..=2.0)] {
            let mut armed = ArmedTimer::new(entity, entity, &timer, false);
            armed.count = u32::MAX;
            armed.count_firing();
            assert_eq!(armed.count(), 1 << 32);
            assert_eq!(armed.is_random(), timer.interval_span().is_some());
        }
    }

    #[test]
    fn firings_that_are_left_count_from_any_number() {
        let entity = World::new().spawn_empty().id();
        for count in [0, u64::from(u32::MAX) - 1, 1 << 32] {
            let mut armed = ArmedTimer::new(entity, entity, &Timer::every(1.0), false);
            armed.set_count(count);
            armed.set_left(Some(3));
            let goes_on = [(); 3].map(|()| armed.count_firing().is_some());
            assert_eq!(goes_on, [true, true, false], "after {count} firings");
        }
    }

    #[test]
    fn setting_the_count_keeps_the_mark_of_random_intervals() {
        const MAX: u64 = (1 << 45) - 1;
        let entity = World::new().spawn_empty().id();
        for timer in [Timer::every(1.0), Timer::every_between(1.0..=2.0)] {
            let mut armed = ArmedTimer::new(entity, entity, &timer, false);
            let is_random = armed.is_random();
            for (count, kept) in [(1 << 40, 1 << 40), (5, 5), (u64::MAX, MAX)] {
                armed.set_count(count);
                assert_eq!((armed.count(), armed.is_random()), (kept, is_random));
            }
            armed.count_firing();
            assert_eq!(armed.count() >> 32, MAX >> 32, "the high part stays");
            assert_eq!(armed.is_random(), is_random);
        }
    }
}
