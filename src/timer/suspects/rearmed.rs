//! The timer that is re-armed in every frame.

use bevy_ecs::entity::Entity;

use crate::timer::{CancelReason, TimerCancelled, key_id::KeyId};

/// The number of frames in a row in which a timer must be re-armed before it is reported.
pub(super) const FRAMES: u64 = 600;

/// Watches one timer at a time, in constant memory.
///
/// A timer is reported if it was re-armed in [`FRAMES`] frames in a row, and then goes on like that
/// until its delay is over. A timer that is re-armed for a while, such as an idle timer during input, is
/// not reported.
#[derive(Clone, Debug, Default)]
pub(in crate::timer) struct RearmWatch(Option<Suspect>);

/// A timer that is re-armed, even if each time on a new entity.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::timer) enum Rearmed {
    Entity(Entity),
    Key(Entity, KeyId),
}

#[derive(Clone, Debug)]
struct Suspect {
    timer: Rearmed,
    /// The first frame and the last one of the row.
    first: u64,
    last: u64,
    /// The deadline of the timer after many frames, and the frame in which it was armed.
    deadline: Option<(u64, u64)>,
}

impl RearmWatch {
    /// Notes the cancellations that are written in a frame. A frame may have several runs.
    pub(in crate::timer) fn note(&mut self, frame: u64, cancelled: &[TimerCancelled]) {
        match &mut self.0 {
            Some(suspect) if suspect.last == frame => {}
            Some(suspect) if suspect.last + 1 == frame => {
                let mut rearmed = cancelled.iter().filter_map(rearmed);
                if rearmed.any(|timer| timer == suspect.timer) {
                    suspect.last = frame;
                }
            }
            _ => self.0 = pick(frame, cancelled).map(|timer| Suspect::new(timer, frame)),
        }
    }

    /// Returns the suspect if it has been re-armed in many frames in a row, up to this one.
    pub(in crate::timer) fn suspect(&self, frame: u64) -> Option<Rearmed> {
        let suspect = self.0.as_ref()?;
        let is_long = suspect.last == frame && frame - suspect.first + 1 >= FRAMES;
        is_long.then_some(suspect.timer)
    }

    /// Returns `true` if the suspect would have fired by `now`, had it not been re-armed.
    pub(super) fn is_overdue(&mut self, frame: u64, now: u64, deadline: u64) -> bool {
        let Some(suspect) = &mut self.0 else {
            return false;
        };
        let &mut (expected, since) = suspect.deadline.get_or_insert((deadline, frame));
        if now < expected {
            return false;
        }
        // A delay of a frame or two may end before the timer is re-armed.
        let is_long = frame - since >= 2;
        self.0 = None;
        is_long
    }
}

impl Suspect {
    fn new(timer: Rearmed, frame: u64) -> Self {
        Self {
            timer,
            first: frame,
            last: frame,
            deadline: None,
        }
    }
}

/// Returns the timer that another one has replaced, if that is why it was cancelled.
fn rearmed(cancelled: &TimerCancelled) -> Option<Rearmed> {
    // The crate replaces its own timers on purpose, for example in `insert_for`.
    let is_rearmed = cancelled.reason == CancelReason::Replaced && cancelled.is_announced;
    is_rearmed.then_some(match cancelled.key {
        Some(key) => Rearmed::Key(cancelled.owner, key),
        None => Rearmed::Entity(cancelled.entity),
    })
}

/// Picks one of the timers that were re-armed, each time another.
fn pick(frame: u64, cancelled: &[TimerCancelled]) -> Option<Rearmed> {
    let scrambled = frame.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32;
    let start = scrambled.checked_rem(cancelled.len() as u64)? as usize;
    let (before, after) = cancelled.split_at(start);
    after.iter().chain(before).find_map(rearmed)
}

#[cfg(test)]
mod tests {
    use std::vec::Vec;

    use bevy_ecs::world::World;

    use super::*;

    fn replaced(timers: &[Entity]) -> Vec<TimerCancelled> {
        let replaced = |&timer| TimerCancelled::new(timer, CancelReason::Replaced);
        timers.iter().map(replaced).collect()
    }

    fn timers() -> [Entity; 3] {
        let mut world = World::new();
        [(); 3].map(|()| world.spawn_empty().id())
    }

    #[test]
    fn a_timer_that_is_rearmed_in_every_frame_is_found_among_others() {
        let [always, odd, even] = timers();
        let mut watch = RearmWatch::default();
        let found = (0..3 * FRAMES).find(|&frame| {
            let other = if frame % 2 == 0 { even } else { odd };
            watch.note(frame, &replaced(&[other, always]));
            watch.suspect(frame) == Some(Rearmed::Entity(always))
        });
        assert!(found.is_some_and(|frame| frame + 1 >= FRAMES), "{found:?}");
    }

    #[test]
    fn a_key_is_the_same_timer_on_any_entity() {
        let [owner, one, two] = timers();
        let mut watch = RearmWatch::default();
        for frame in 0..FRAMES {
            let entity = if frame % 2 == 0 { one } else { two };
            let cancelled = TimerCancelled::new(entity, CancelReason::Replaced);
            let cancelled = cancelled.with_owner(owner).with_key("a key");
            watch.note(frame, &[cancelled]);
        }
        let key = KeyId::of("a key".into());
        assert_eq!(watch.suspect(FRAMES - 1), Some(Rearmed::Key(owner, key)));
    }

    #[test]
    fn a_frame_without_the_timer_ends_the_row() {
        let [timer, ..] = timers();
        let mut watch = RearmWatch::default();
        for frame in (0..2 * FRAMES).filter(|frame| frame % FRAMES != 0) {
            watch.note(frame, &replaced(&[timer]));
            watch.note(frame, &[]);
            assert_eq!(watch.suspect(frame), None, "frame {frame}");
        }
    }

    #[test]
    fn a_timer_that_is_removed_or_serves_a_feature_is_no_suspect() {
        let [timer, ..] = timers();
        let removed = TimerCancelled::new(timer, CancelReason::Removed);
        let mut hidden = TimerCancelled::new(timer, CancelReason::Replaced);
        hidden.is_announced = false;
        let mut watch = RearmWatch::default();
        for frame in 0..FRAMES {
            watch.note(frame, &[removed, hidden]);
        }
        assert_eq!(watch.suspect(FRAMES - 1), None);
    }

    #[test]
    fn a_suspect_is_overdue_once_its_delay_is_over() {
        let [timer, ..] = timers();
        let mut watch = RearmWatch::default();
        watch.note(0, &replaced(&[timer]));
        let overdue = (0..10).find(|&frame| watch.is_overdue(frame, frame, frame + 4));
        assert_eq!(overdue, Some(4));
    }

    #[test]
    fn a_timer_that_fires_before_it_is_rearmed_is_not_overdue() {
        let [timer, ..] = timers();
        for delay in [0, 1] {
            let mut watch = RearmWatch::default();
            for frame in 0..10 {
                watch.note(frame, &replaced(&[timer]));
                assert!(!watch.is_overdue(frame, frame, frame + delay));
            }
        }
    }
}
