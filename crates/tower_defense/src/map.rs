//! The map: a road from the left edge to the gate.

use core::ops::RangeInclusive;

use serde::{Deserialize, Serialize};

/// The number of cells from left to right.
pub const WIDTH: i16 = 26;
/// The number of cells from top to bottom.
pub const HEIGHT: i16 = 14;

/// A cell of the map.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cell {
    pub x: i16,
    pub y: i16,
}

/// A place on the map, in cells. The center of a cell is a whole number.
pub type Place = (f32, f32);

/// The road leads from corner to corner.
const CORNERS: [Cell; 10] = [
    cell(0, 2),
    cell(6, 2),
    cell(6, 9),
    cell(11, 9),
    cell(11, 3),
    cell(17, 3),
    cell(17, 11),
    cell(22, 11),
    cell(22, 6),
    cell(25, 6),
];

#[must_use]
pub const fn cell(x: i16, y: i16) -> Cell {
    Cell { x, y }
}

impl Cell {
    #[must_use]
    pub fn center(self) -> Place {
        (f32::from(self.x), f32::from(self.y))
    }

    #[must_use]
    pub fn is_road(self) -> bool {
        segments().any(|(from, to)| {
            between(from.x, to.x).contains(&self.x) && between(from.y, to.y).contains(&self.y)
        })
    }

    #[must_use]
    pub fn is_gate(self) -> bool {
        self == CORNERS[CORNERS.len() - 1]
    }

    /// Returns the cell next to this one, or the cell itself at the edge.
    #[must_use]
    pub fn step(self, x: i16, y: i16) -> Self {
        cell(
            (self.x + x).clamp(0, WIDTH - 1),
            (self.y + y).clamp(0, HEIGHT - 1),
        )
    }

    /// Returns all cells, row by row.
    pub fn all() -> impl Iterator<Item = Self> {
        (0..HEIGHT).flat_map(|y| (0..WIDTH).map(move |x| cell(x, y)))
    }
}

/// Returns the cell at a place.
#[must_use]
pub fn cell_at((x, y): Place) -> Cell {
    cell(x.round() as i16, y.round() as i16)
}

#[must_use]
pub fn distance((ax, ay): Place, (bx, by): Place) -> f32 {
    (ax - bx).hypot(ay - by)
}

/// Returns the length of the road in cells.
#[must_use]
pub fn road_length() -> f32 {
    segments().map(|(from, to)| length(from, to)).sum()
}

/// Returns the place after `walked` cells on the road.
#[must_use]
pub fn on_road(mut walked: f32) -> Place {
    for (from, to) in segments() {
        let length = length(from, to);
        if walked < length {
            let (from, to, part) = (from.center(), to.center(), walked / length);
            return (
                from.0 + (to.0 - from.0) * part,
                from.1 + (to.1 - from.1) * part,
            );
        }
        walked -= length;
    }
    CORNERS[CORNERS.len() - 1].center()
}

fn segments() -> impl Iterator<Item = (Cell, Cell)> {
    CORNERS.windows(2).map(|ends| (ends[0], ends[1]))
}

fn length(from: Cell, to: Cell) -> f32 {
    distance(from.center(), to.center())
}

fn between(a: i16, b: i16) -> RangeInclusive<i16> {
    a.min(b)..=a.max(b)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_walks_the_road_stays_on_it_and_arrives_at_the_gate() {
        let steps = (0..).map(|step| step as f32 * 0.25);
        for walked in steps.take_while(|&walked| walked < road_length()) {
            let place = on_road(walked);
            assert!(cell_at(place).is_road(), "{place:?} after {walked} cells");
        }
        assert!(cell_at(on_road(road_length())).is_gate());
        assert!(!cell(0, 0).is_road());
    }
}
