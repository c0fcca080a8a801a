//! The growth of a figure.

/// A line through points: `y = base + slope * x`.
struct Line {
    base: f64,
    slope: f64,
}

impl Line {
    /// Returns the line with the least squares of the relative errors.
    fn fit(points: &[(f64, f64)]) -> Self {
        let sum = |term: fn(f64, f64) -> f64| -> f64 {
            let terms = points.iter().map(|&(x, y)| term(x, y) / (y * y));
            terms.sum()
        };
        let (one, x, y) = (sum(|_, _| 1.0), sum(|x, _| x), sum(|_, y| y));
        let (xx, xy) = (sum(|x, _| x * x), sum(|x, y| x * y));
        let slope = (one * xy - x * y) / (one * xx - x * x);
        let base = (y - slope * x) / one;
        Self { base, slope }
    }

    fn at(&self, x: f64) -> f64 {
        self.base + self.slope * x
    }
}

/// Prints the line through points, how far they are off, and its value at `far`.
pub(crate) fn print_line(what: &str, points: &[(f64, f64)], far: f64) {
    let line = Line::fit(points);
    let errors = points.iter().map(|&(x, y)| (line.at(x) / y - 1.0).abs());
    println!(
        "  {what} = {:.1} + {:.3} x, at most {:.1} % off; {:.0} at x = {far}",
        line.base,
        line.slope,
        100.0 * errors.fold(0.0, f64::max),
        line.at(far)
    );
}
