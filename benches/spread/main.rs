//! Measures how evenly the frames of ten seconds are loaded.
//!
//! ```text
//! cargo bench -p bevy_due_benches --bench spread -- [--chart FILE]
//! ```
//!
//! A thousand AIs are spawned together. Each thinks every second, for 20 µs, with and without slack.
//! `effects` has half a million effects that tick, end and are renewed.
//!
//! Prints CSV: `load,firings,mean_us,median_us,worst_us,late_ms`, with the time of all frames and the
//! longest lateness. `--chart FILE` draws the frames of the AIs in the last two seconds.

#![allow(missing_docs, reason = "a program")]

mod effects;

use core::{error::Error, hint, time::Duration};
use std::{env, path::Path, time::Instant};

use bevy_app::App;
use bevy_due::{Timer, prelude::*};
use bevy_ecs::{prelude::*, schedule::SingleThreadedExecutor};
use bevy_time::{TimePlugin, TimeUpdateStrategy};
use plotters::prelude::*;

const AIS: usize = 1000;
const THOUGHT: Duration = Duration::from_micros(20);
const FRAMES_PER_SECOND: u32 = 64;
const SECONDS: u32 = 10;
/// Readable on white and on black.
const GREY: RGBColor = RGBColor(128, 128, 128);

/// An app, and the time of each of its frames.
struct Load {
    name: &'static str,
    app: App,
    frames: Vec<Duration>,
}

#[derive(Resource, Default)]
struct Thoughts {
    number: usize,
    latest: Duration,
}

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = env::args().skip(1);
    let mut chart = None;
    while let Some(argument) = arguments.next() {
        match argument.as_str() {
            "--chart" => chart = Some(arguments.next().ok_or("--chart needs a path")?),
            // Cargo's own options.
            "--bench" | "--test" => {}
            unknown => return Err(format!("unknown option {unknown}: use --chart FILE").into()),
        }
    }
    let every = || Timer::every(1.0);
    let mut loads = [
        Load::new("as they come", every()),
        Load::new("slack(1 s)", every().slack(Duration::from_secs(1))),
    ];
    for _ in 0..SECONDS * FRAMES_PER_SECOND {
        // The apps take turns, so that a slow moment of the machine meets all of them.
        loads.iter_mut().for_each(Load::run_frame);
    }
    println!("load,firings,mean_us,median_us,worst_us,late_ms");
    loads.iter().for_each(Load::print);
    effects::measure();
    match chart {
        Some(path) => draw(path.as_ref(), &loads),
        None => Ok(()),
    }
}

impl Load {
    fn new(name: &'static str, timer: Timer) -> Self {
        let mut app = App::new();
        let frame = TimeUpdateStrategy::ManualDuration(Duration::from_secs(1) / FRAMES_PER_SECOND);
        app.add_plugins((TimePlugin, DuePlugin::default()))
            .insert_resource(frame)
            .init_resource::<Thoughts>()
            .add_observer(think);
        app.update();
        for (_, schedule) in app.world_mut().resource_mut::<Schedules>().iter_mut() {
            schedule.set_executor(SingleThreadedExecutor::new());
        }
        app.world_mut().spawn_batch(vec![timer; AIS]);
        Self {
            name,
            app,
            frames: Vec::new(),
        }
    }

    fn run_frame(&mut self) {
        let start = Instant::now();
        self.app.update();
        self.frames.push(start.elapsed());
    }

    fn print(&self) {
        let thoughts = self.app.world().resource::<Thoughts>();
        print_line(self.name, thoughts.number, &self.frames, thoughts.latest);
        // Each thinks once per second, and the last second may not be over.
        let fewest = AIS * (SECONDS as usize - 1);
        assert!(thoughts.number >= fewest, "{}: some AIs starve", self.name);
    }
}

fn print_line(load: &str, firings: usize, frames: &[Duration], latest: Duration) {
    let mut frames = frames.to_vec();
    frames.sort_unstable();
    let mean = frames.iter().sum::<Duration>() / frames.len() as u32;
    let (median, worst) = (frames[frames.len() / 2], frames[frames.len() - 1]);
    let [mean, median, worst] = [mean, median, worst].map(|time| time.as_micros());
    let late = latest.as_millis();
    println!("{load},{firings},{mean},{median},{worst},{late}");
}

fn think(fired: On<TimerFired>, mut thoughts: ResMut<Thoughts>) {
    let start = Instant::now();
    while start.elapsed() < THOUGHT {
        hint::spin_loop();
    }
    thoughts.number += 1;
    thoughts.latest = thoughts.latest.max(fired.lateness());
}

/// Draws the time of the frames of the last two seconds, one below the other.
fn draw(path: &Path, loads: &[Load]) -> Result<(), Box<dyn Error>> {
    let root = SVGBackend::new(path, (860, 294)).into_drawing_area();
    let font = || ("sans-serif", 13).into_font();
    let areas = root.split_evenly((loads.len(), 1));
    let colors = [RGBColor(214, 82, 60), RGBColor(40, 130, 230)];
    let shown = (2 * FRAMES_PER_SECOND) as usize;
    let last = |load: &Load| load.frames[load.frames.len() - shown..].to_vec();
    let millis = |time: &Duration| time.as_secs_f64() * 1000.0;
    for ((area, load), color) in areas.iter().zip(loads).zip(colors) {
        let frames = last(load);
        let most = frames.iter().map(millis).fold(0.0, f64::max);
        let caption = format!("{}: at most {most:.1} ms", load.name);
        let mut chart = ChartBuilder::on(area)
            .margin(10)
            .margin_right(24)
            .caption(caption, font().color(&color))
            .x_label_area_size(24)
            .y_label_area_size(56)
            .build_cartesian_2d(0.0..2.0, 0.0..24.0)?;
        chart
            .configure_mesh()
            .axis_style(GREY)
            .bold_line_style(GREY.mix(0.3))
            .light_line_style(TRANSPARENT)
            .label_style(font().color(&GREY))
            .x_labels(5)
            .y_labels(3)
            .x_label_formatter(&|secs| format!("{secs:.1} s"))
            .y_label_formatter(&|millis| format!("{millis:.0} ms"))
            .draw()?;
        let frames = frames.iter().map(millis).enumerate();
        let width = 1.0 / f64::from(FRAMES_PER_SECOND);
        chart.draw_series(frames.map(|(nth, millis)| {
            let x = nth as f64 * width;
            Rectangle::new([(x, 0.0), (x + 0.8 * width, millis)], color.filled())
        }))?;
    }
    root.present()?;
    Ok(())
}
