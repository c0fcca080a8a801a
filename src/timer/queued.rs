//! A timer in the queue, and the arithmetic of one firing.

use alloc::boxed::Box;
use core::num::NonZeroU64;

use bevy_ecs::entity::Entity;

use super::{Kind, MissedTicks, Timer, random::RandomInterval};
use crate::clock::shift;

/// A timer in the queue. Together with the queue's own fields, it fills a cache line.
#[derive(Clone, Debug)]
pub(crate) struct ArmedTimer {
    pub(crate) entity: Entity,
    pub(crate) interval: Option<NonZeroU64>,
    /// `None` for most timers. All others take the slower way through a firing.
    rare: Option<Box<Rare>>,
    /// The number of firings: the low part.
    count: u32,
    /// The number of firings left, or zero if the timer never ends.
    left: u32,
    /// The number of firings so far in the current burst.
    pub(super) burst: u32,
    /// The number of firings: the high part.
    count_high: u8,
    /// The bits of the [`Mark`]s that are set.
    marks: u8,
    pub(super) missed_ticks: MissedTicks,
    pub(super) reaction: Reaction,
}

/// The state that few timers have.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Rare {
    /// The reading of the clock at the start of a pause. The pause moves the deadline.
    pub(super) paused_at: Option<u64>,
    /// The length of the wait for the next deadline, if the delay or the interval does not say it.
    pub(super) wait: Option<u64>,
    /// The intervals, if they are random.
    pub(super) random: Option<RandomInterval>,
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
    /// The request of the entity times out without an event: the deadline of an
    /// [`OpenRequest`](super::OpenRequest).
    TimeOut,
}

impl Reaction {
    /// Returns `true` if a firing triggers no event and writes no message.
    #[inline]
    pub(super) fn is_silent(self) -> bool {
        matches!(self, Self::EndLife | Self::TimeOut)
    }
}

/// Something that is true for a timer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum Mark {
    /// The timer belongs to another entity.
    Owned = 1 << 0,
    /// The timer was inserted after the last swap. If it gets another clock, its delay starts there.
    New = 1 << 1,
    /// The timer is on the list of the next swap.
    Listed = 1 << 2,
    /// The timer chose its clock, and stays there.
    Chosen = 1 << 3,
    /// The entity of the timer or its owner has an observer, of whatever event.
    Observed = 1 << 4,
}

/// Returns the deadline of a timer that was paused, and resumes now.
pub(super) fn resumed(deadline: u64, paused_at: u64, now: u64) -> u64 {
    shift(deadline, i128::from(now) - i128::from(paused_at))
}

impl ArmedTimer {
    #[inline(always)]
    pub(super) fn new(entity: Entity, kind: Kind, timer: &Timer) -> Self {
        let options = timer.options();
        Self {
            entity,
            interval: timer.interval.filter(|_| kind != Kind::Request),
            rare: None,
            count: 0,
            left: match kind {
                Kind::Request => 1,
                Kind::Timer | Kind::Lifetime => timer.max_firings().unwrap_or(0),
            },
            burst: 0,
            count_high: 0,
            marks: 0,
            missed_ticks: options.missed_ticks,
            reaction: match kind {
                Kind::Timer => Reaction::None,
                Kind::Request => Reaction::TimeOut,
                Kind::Lifetime => Reaction::EndLife,
            },
        }
    }

    #[inline]
    pub(super) fn kind(&self) -> Kind {
        match self.reaction {
            Reaction::TimeOut => Kind::Request,
            Reaction::EndLife => Kind::Lifetime,
            Reaction::None | Reaction::Act => Kind::Timer,
        }
    }

    pub(super) fn set_acts(&mut self, acts: bool) {
        self.reaction = match self.reaction {
            Reaction::None | Reaction::Act if acts => Reaction::Act,
            Reaction::None | Reaction::Act => Reaction::None,
            silent => silent,
        };
    }

    #[inline]
    pub(super) fn is(&self, mark: Mark) -> bool {
        self.marks & mark as u8 != 0
    }

    #[inline]
    pub(super) fn set(&mut self, mark: Mark, is_set: bool) {
        self.marks &= !(mark as u8);
        if is_set {
            self.marks |= mark as u8;
        }
    }

    pub(super) fn rare(&self) -> Option<&Rare> {
        self.rare.as_deref()
    }

    /// Changes the rare state. Its memory is given back once it says nothing.
    pub(super) fn change_rare<Out>(&mut self, change: impl FnOnce(&mut Rare) -> Out) -> Out {
        let mut rare = self.rare.take().unwrap_or_default();
        let out = change(&mut rare);
        self.rare = (*rare != Rare::default()).then_some(rare);
        out
    }

    pub(super) fn paused_at(&self) -> Option<u64> {
        self.rare()?.paused_at
    }

    /// Pauses the timer at a reading of its clock, or lets it go on. A pause goes on from its start.
    pub(super) fn set_paused(&mut self, is_paused: bool, now: u64) {
        if is_paused != self.is_paused() {
            self.change_rare(|rare| rare.paused_at = is_paused.then_some(now));
        }
    }

    /// Returns `true` if the timer is paused, so that it does not fire.
    pub(super) fn is_paused(&self) -> bool {
        self.paused_at().is_some()
    }

    pub(super) fn random(&self) -> Option<RandomInterval> {
        self.rare()?.random
    }

    /// Returns the deadline. For a paused timer, this is the deadline it would have if it resumed now.
    pub(super) fn deadline_at(&self, now: u64, deadline: u64) -> u64 {
        match self.paused_at() {
            Some(paused_at) => resumed(deadline, paused_at, now),
            None => deadline,
        }
    }

    /// Returns the length of the wait for the next deadline of a timer with this delay.
    pub(super) fn wait(&self, delay: u64) -> u64 {
        if let Some(wait) = self.rare().and_then(|rare| rare.wait) {
            return wait;
        }
        match self.interval {
            Some(interval) if self.count() > 0 => interval.get(),
            _ => delay,
        }
    }

    /// Returns the number of firings so far.
    pub(crate) fn count(&self) -> u64 {
        u64::from(self.count_high) << 32 | u64::from(self.count)
    }

    /// Returns the low and the high part of the number of firings so far.
    pub(super) fn count_halves(&self) -> (u32, u16) {
        (self.count, self.count_high.into())
    }

    /// Returns the number of firings left, or `None` if the timer fires forever.
    pub(crate) fn left(&self) -> Option<u32> {
        (self.left != 0).then_some(self.left)
    }

    /// Handles `deadline` if the timer fires at a fixed interval, again after `now`, and returns the next
    /// deadline. Otherwise does nothing.
    #[inline]
    pub(super) fn advance_on_time(&mut self, deadline: u64, now: u64) -> Option<u64> {
        let next = deadline.saturating_add(self.interval?.get());
        let is_plain = next > now
            && self.left != 1
            && self.count != u32::MAX
            && self.rare.is_none()
            && self.missed_ticks != MissedTicks::Delay;
        if !is_plain {
            return None;
        }
        self.count += 1;
        self.left = self.left.saturating_sub(1);
        self.burst = 0;
        Some(next)
    }

    /// Handles `deadline`, and the later deadlines up to `now` as [`MissedTicks`] requires. Returns the
    /// number of deadlines that are skipped, and the next deadline unless this was the last firing.
    ///
    /// A burst ends after `burst_limit` firings in one run. The remaining deadlines are skipped, up to `now`. In an
    /// exact frame, they are skipped up to its `end`, and all firings of the frame count: a handler may let the clock
    /// reach the next deadline, too.
    ///
    /// ```text
    /// deadlines    |    |    |    |    |    |    |    |
    /// now, limit 3                     ^
    /// firings                          123            |
    ///                                    └ missed: 2  └ next
    /// ```
    pub(super) fn advance(
        &mut self,
        deadline: u64,
        (now, end): (u64, Option<u64>),
        burst_limit: u32,
    ) -> (u64, Option<u64>) {
        if self.rare().is_some_and(|rare| rare.wait.is_some()) {
            self.change_rare(|rare| rare.wait = None);
        }
        let Some(interval) = self.count_firing() else {
            return (0, None);
        };
        let random = self.random();
        let step = match random {
            Some(random) => self.draw(random, interval),
            None => interval.get(),
        };
        let on_grid = deadline.saturating_add(step);
        // The number of deadlines after this one up to a time, and the next one after it.
        let skip = |until: u64| {
            let missed = match random {
                _ if on_grid > until => 0,
                // Without a grid, the deadlines that are skipped are not known.
                Some(random) => ((until - deadline) / random.average(interval)).max(1),
                None => (until - deadline) / interval,
            };
            let next = match random {
                Some(_) => until.saturating_add(step),
                None => deadline.saturating_add(interval.get().saturating_mul(missed + 1)),
            };
            (missed, next)
        };
        let (missed, next) = match self.missed_ticks {
            MissedTicks::Skip if on_grid <= now => skip(now),
            MissedTicks::Burst | MissedTicks::Skip => (0, on_grid),
            MissedTicks::Delay => (skip(now).0, now.saturating_add(step)),
        };
        let until = end.unwrap_or(now);
        let goes_on = next <= until;
        let burst = self.burst.saturating_add(1);
        self.burst = if goes_on || end.is_some() { burst } else { 0 };
        if !goes_on || burst < burst_limit {
            return (missed, Some(next));
        }
        if end.is_none() {
            self.burst = 0;
        }
        let (missed, next) = skip(until);
        (missed, Some(next))
    }

    /// Draws the next of the random intervals, of which this is the shortest.
    fn draw(&mut self, mut random: RandomInterval, shortest: NonZeroU64) -> u64 {
        let interval = random.draw(shortest);
        self.change_rare(|rare| {
            rare.wait = Some(interval);
            rare.random = Some(random);
        });
        interval
    }

    /// Sets the number of firings left, or lets the timer fire forever.
    pub(super) fn set_left(&mut self, left: Option<u32>) {
        self.left = left.unwrap_or(0);
    }

    /// Gives a periodic timer `times` firings again. Returns `false`, and does nothing, if the timer has no
    /// interval.
    pub(super) fn refresh(&mut self, times: Option<u32>) -> bool {
        if self.interval.is_some() {
            self.set_left(times);
        }
        self.interval.is_some()
    }

    /// Sets the interval, which is no longer random. The current wait stays what it is.
    pub(super) fn set_interval(&mut self, interval: Option<NonZeroU64>, delay: u64) {
        let wait = self.wait(delay);
        self.interval = interval;
        self.change_rare(|rare| rare.random = None);
        self.set_wait(wait, delay);
    }

    /// Sets the length of the wait for the next deadline of a timer with this delay.
    pub(super) fn set_wait(&mut self, wait: u64, delay: u64) {
        if self.wait(delay) != wait {
            self.change_rare(|rare| rare.wait = Some(wait));
        }
    }

    /// Starts the count over.
    pub(super) fn restart(&mut self, timer: &Timer) {
        self.interval = timer.interval;
        self.count = 0;
        self.count_high = 0;
        self.left = timer.max_firings().unwrap_or(0);
    }

    /// Sets the number of firings so far, at most 2^40 - 1.
    pub(super) fn set_count(&mut self, count: u64) {
        let count = count.min((1 << 40) - 1);
        self.count = count as u32;
        self.count_high = (count >> 32) as u8;
    }

    /// Counts a firing, and returns the interval to the next one unless this was the last.
    fn count_firing(&mut self) -> Option<NonZeroU64> {
        self.set_count(self.count() + 1);
        let ended = self.left == 1;
        self.left = self.left.saturating_sub(1);
        self.interval.filter(|_| !ended)
    }
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
                    let mut armed = ArmedTimer::new(entity, Kind::Timer, &timer);
                    armed.set_count(count);
                    if timer.missed_ticks() == MissedTicks::Burst {
                        armed.burst = burst;
                    }
                    let mut other = armed.clone();
                    for deadline in [1_000_000_000, 1_000_000_000 + now / 2] {
                        let before = format!("{armed:?}");
                        let next = armed.advance_on_time(deadline, now);
                        if next.is_none() {
                            assert_eq!(format!("{armed:?}"), before, "nothing should change");
                            break;
                        }
                        on_time += 1;
                        assert_eq!(other.advance(deadline, (now, None), 1000), (0, next));
                        assert_eq!(format!("{armed:?}"), format!("{other:?}"));
                    }
                }
            }
        }
        assert!(on_time > 5, "only {on_time} firings were on time");
    }

    #[test]
    fn firings_that_are_left_count_from_any_number() {
        let entity = World::new().spawn_empty().id();
        for count in [0, u64::from(u32::MAX) - 1, 1 << 32] {
            let mut armed = ArmedTimer::new(entity, Kind::Timer, &Timer::every(1.0));
            armed.set_count(count);
            armed.set_left(Some(3));
            let goes_on = [(); 3].map(|()| armed.count_firing().is_some());
            assert_eq!(goes_on, [true, true, false], "after {count} firings");
        }
    }

    #[test]
    fn a_count_goes_on_beyond_its_low_part_and_stops_at_its_maximum() {
        const MAX: u64 = (1 << 40) - 1;
        let entity = World::new().spawn_empty().id();
        let mut armed = ArmedTimer::new(entity, Kind::Timer, &Timer::every(1.0));
        for (count, next) in [(u64::from(u32::MAX), 1 << 32), (5, 6), (u64::MAX, MAX)] {
            armed.set_count(count);
            assert_eq!(armed.count(), count.min(MAX));
            armed.count_firing();
            assert_eq!(armed.count(), next);
        }
    }

    #[test]
    fn rare_state_that_says_nothing_takes_no_memory() {
        let entity = World::new().spawn_empty().id();
        let mut armed = ArmedTimer::new(entity, Kind::Timer, &Timer::every(1.0));
        armed.change_rare(|rare| rare.paused_at = Some(3));
        assert!(armed.is_paused());
        armed.change_rare(|rare| rare.paused_at = None);
        assert!(armed.rare().is_none());
    }
}
