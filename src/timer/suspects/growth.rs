//! The owner whose number of timers keeps growing.

use bevy_ecs::entity::Entity;

use crate::owner::FIRST_MARK;

/// The number of frames that each doubling must take. An owner that gets many timers at once does not
/// grow for long.
pub(super) const FRAMES: u64 = 60;

/// Beyond half a billion timers, nothing is noted.
const MARKS: usize = 20;

/// Remembers which owner last reached each mark, and in which frame. The first mark is [`FIRST_MARK`],
/// and each is twice the one before.
///
/// An owner is reported if it takes two marks after another, each after many frames. A steady growth
/// gets there, because each doubling takes longer than the last.
#[derive(Debug, Default)]
pub(super) struct GrowthWatch([Option<(Entity, u64)>; MARKS]);

impl GrowthWatch {
    /// Notes that an owner has reached a mark, and returns `true` if it keeps growing.
    pub(super) fn note(&mut self, owner: Entity, len: usize, frame: u64) -> bool {
        let Some(mark) = (len / FIRST_MARK).checked_ilog2() else {
            return false;
        };
        let mark = mark as usize;
        let Some(place) = self.0.get_mut(mark) else {
            return false;
        };
        *place = Some((owner, frame));
        let reached = |back: usize| {
            let (other, at) = self.0[mark.checked_sub(back)?]?;
            (other == owner).then_some(at)
        };
        let (Some(first), Some(second)) = (reached(2), reached(1)) else {
            return false;
        };
        second.saturating_sub(first) >= FRAMES && frame.saturating_sub(second) >= FRAMES
    }
}

#[cfg(test)]
mod tests {
    use std::vec::Vec;

    use bevy_ecs::world::World;

    use super::*;

    fn marks() -> impl Iterator<Item = usize> {
        (0..MARKS + 2).map(|mark| FIRST_MARK << mark)
    }

    fn owners<const N: usize>() -> [Entity; N] {
        let mut world = World::new();
        [(); N].map(|()| world.spawn_empty().id())
    }

    /// Lets an owner get `per_frame` timers in each frame, and returns the number that is reported.
    fn reported(per_frame: usize) -> Option<usize> {
        let ([owner], mut watch) = (owners(), GrowthWatch::default());
        marks().find(|&len| watch.note(owner, len, (len / per_frame) as u64))
    }

    #[test]
    fn steady_growth_is_reported_at_any_rate() {
        assert_eq!(reported(1), Some(2048));
        assert_eq!(reported(100), Some(32_768));
        assert_eq!(reported(100_000_000), None, "this is no steady growth");
    }

    #[test]
    fn many_timers_at_once_are_no_growth() {
        let ([owner], mut watch) = (owners(), GrowthWatch::default());
        for (frame, until) in [(0, 600), (1000, 5000), (2000, 5000)] {
            for len in marks().filter(|&len| len <= until) {
                assert!(!watch.note(owner, len, frame), "{len} in frame {frame}");
            }
        }
    }

    #[test]
    fn one_of_many_owners_that_grow_together_is_reported() {
        let (owners, mut watch) = (owners::<100>(), GrowthWatch::default());
        let mut reported: Vec<&Entity> = Vec::new();
        for len in marks().take(3) {
            let growing = owners.iter();
            reported.extend(growing.filter(|&&owner| watch.note(owner, len, len as u64)));
        }
        assert_eq!(reported, [&owners[99]]);
    }
}
