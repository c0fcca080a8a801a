//! A timer that fires sixty times a second for years, on the queue alone.

use bevy_due::queue::TimerQueue;

use super::{Dice, grid::Grid};

/// The intervals: a sixtieth of a second, rounded, and two sparse ones.
const INTERVALS: [u64; 3] = [16_666_667, 3_600_000_000_001, 86_400_000_000_007];

/// Runs the queue for a simulated time, in uneven frames, and returns the number of firings.
pub fn sixty_hertz_queue(seconds: u64) -> u64 {
    let end = u128::from(seconds) * 1_000_000_000;
    let mut queue = TimerQueue::new();
    let mut grids = Vec::new();
    for (nth, interval) in INTERVALS.into_iter().enumerate() {
        let first = 1_000_003 * nth as u64 + interval / 3;
        grids.push(Grid::new(first, interval));
        queue.insert(first, nth);
    }
    let mut dice = Dice(seconds);
    let (mut now, mut firings) = (0, 0);
    while u128::from(now) < end {
        // A frame of up to 40 ms, and now and then a long one.
        now += match dice.roll(1000) {
            0 => 1_000_000_000 + dice.roll(9_000_000_000),
            _ => dice.roll(40_000_000),
        };
        let mut last = 0;
        while let Some(due) = queue.pop_due(now) {
            let nth = *due;
            let grid = &mut grids[nth];
            let deadline = due.deadline();
            assert_eq!(u128::from(deadline), grid.next(), "timer {nth}, {grid:?}");
            assert!(
                last <= deadline && deadline <= now,
                "{last} {deadline} {now}"
            );
            last = deadline;
            grid.count += 1;
            firings += 1;
            due.rearm(deadline + INTERVALS[nth]);
        }
    }
    for grid in &grids {
        grid.check_all_served(now.into());
    }
    firings
}
