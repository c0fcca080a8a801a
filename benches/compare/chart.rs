//! A chart of the frame time by the number of timers.

use core::error::Error;
use std::path::Path;

use plotters::{prelude::*, style::text_anchor};

use crate::sides::Line;

const SIZE: (u32, u32) = (860, 440);
/// The right margin, which has the labels at the ends of the curves.
const LABEL_MARGIN: u32 = 250;
/// The least distance between two labels.
const LINE_HEIGHT: i32 = 17;
/// Readable on white and on black, like the colors of the curves.
const GREY: RGBColor = RGBColor(128, 128, 128);

struct Curve {
    name: String,
    color: RGBColor,
    dashed: bool,
    /// Numbers of timers, and nanoseconds per frame.
    points: Vec<(f64, f64)>,
}

/// Draws the times of frames in which no timer is due, and of frames with timers of 1 to 60 s.
pub fn draw(path: &Path, lines: &[Line]) -> Result<(), Box<dyn Error>> {
    let curves = curves(lines);
    let all = || curves.iter().flat_map(|curve| &curve.points);
    let (from, to) = all().fold((f64::MAX, 0.0), |(from, to), point| {
        (point.0.min(from), point.0.max(to))
    });
    let (least, most) = all().fold((f64::MAX, 0.0), |(least, most), point| {
        (point.1.min(least), point.1.max(most))
    });
    if from >= to {
        return Err(
            "a chart needs frame times of two sizes: let the filter select more `app` lines".into(),
        );
    }

    let root = SVGBackend::new(path, SIZE).into_drawing_area();
    let small = ("sans-serif", 13).into_font().color(&GREY);
    let mut chart = ChartBuilder::on(&root)
        .margin(12)
        .margin_top(32)
        .margin_right(LABEL_MARGIN)
        .x_label_area_size(42)
        .y_label_area_size(64)
        .build_cartesian_2d(
            (from..to).log_scale(),
            (decade(least)..decade(most) * 10.0).log_scale(),
        )?;
    chart
        .configure_mesh()
        .axis_style(GREY)
        .bold_line_style(GREY.mix(0.3))
        .light_line_style(TRANSPARENT)
        .label_style(small.clone())
        .axis_desc_style(small)
        .x_desc("timers")
        .y_desc("time per frame")
        .x_labels(4)
        .y_labels(6)
        .x_label_formatter(&|timers| thousands(*timers))
        .y_label_formatter(&|nanos| time(*nanos))
        .draw()?;

    for curve in &curves {
        let (points, style) = (curve.points.iter().copied(), curve.color.stroke_width(2));
        if curve.dashed {
            chart.draw_series(DashedLineSeries::new(points, 7, 5, style))?;
        } else {
            chart.draw_series(LineSeries::new(points, style))?;
        }
    }

    let mut ends: Vec<_> = curves
        .iter()
        .filter_map(|curve| Some((chart.backend_coord(curve.points.last()?), curve)))
        .collect();
    ends.sort_by_key(|((_, y), _)| -y);
    let mut lowest = i32::MAX;
    for ((x, y), curve) in ends {
        let y = y.min(lowest);
        lowest = y - LINE_HEIGHT;
        let style = ("sans-serif", 13).into_font().color(&curve.color);
        let anchor = text_anchor::Pos::new(text_anchor::HPos::Left, text_anchor::VPos::Center);
        root.draw_text(&curve.name, &style.pos(anchor), (x + 10, y))?;
    }
    root.present()?;
    Ok(())
}

/// Returns a curve per contender and workload. Our own times are in the line of every peer, and the last
/// line counts.
fn curves(lines: &[Line]) -> Vec<Curve> {
    let mut curves = Vec::new();
    for (workload, scenario, dashed) in [
        ("app_periodic_messages", "1 to 60 s", false),
        ("app_idle", "none due", true),
    ] {
        for (contender, name, color) in [
            (
                "bevy_timer",
                "ticking bevy_time::Timer",
                RGBColor(214, 82, 60),
            ),
            (
                "delayed_commands",
                "commands.delayed()",
                RGBColor(190, 130, 20),
            ),
            ("bevy_due", "bevy_due", RGBColor(40, 130, 230)),
            ("empty_app", "empty app", GREY),
        ] {
            let mut points: Vec<(f64, f64)> = Vec::new();
            for line in lines.iter().filter(|line| line.workload == workload) {
                let nanos = match contender {
                    "bevy_due" => line.ours_ns,
                    peer if peer == line.peer => line.peer_ns,
                    _ => continue,
                };
                points.retain(|point| point.0 < line.n as f64);
                points.push((line.n as f64, nanos));
            }
            if !points.is_empty() {
                curves.push(Curve {
                    name: format!("{name}, {scenario}"),
                    color,
                    dashed,
                    points,
                });
            }
        }
    }
    curves
}

/// Returns the greatest power of ten that is not above `n`.
fn decade(n: f64) -> f64 {
    10_f64.powf(n.log10().floor())
}

fn thousands(n: f64) -> String {
    match n {
        1e6.. => format!("{:.0} million", n / 1e6),
        1e3.. => format!("{:.0},000", n / 1e3),
        _ => format!("{n:.0}"),
    }
}

fn time(nanos: f64) -> String {
    match nanos {
        1e9.. => format!("{:.0} s", nanos / 1e9),
        1e6.. => format!("{:.0} ms", nanos / 1e6),
        1e3.. => format!("{:.0} µs", nanos / 1e3),
        _ => format!("{nanos:.0} ns"),
    }
}
