//! The figures on the screen.

use core::time::Duration;

use bevy::{
    diagnostic::DiagnosticsStore, ecs::system::SystemParam, prelude::*,
    render::renderer::RenderAdapterInfo, sprite::Anchor,
};
use bevy_due::{Clocks, conditions::every_on, prelude::*};

use crate::{
    arena::{Arena, SIZE},
    mode::{Mode, Waiting},
    shots::Shot,
    stopwatch::{FRAME, median, time_of},
};

const LEFT: f32 = 48.0 - SIZE.x / 2.0;
const BAR: Vec2 = Vec2::new(360.0, 14.0);
const WHITE: Color = Color::srgb(0.95, 0.96, 1.0);
const GREY: Color = Color::srgb(0.55, 0.58, 0.68);

pub fn plugin(app: &mut App) {
    let refresh = every_on(Duration::from_millis(250), ClockId::Real);
    app.add_systems(Startup, build)
        .add_systems(Update, (write_lines, draw_bars).run_if(refresh));
}

/// A line of text that follows the figures.
#[derive(Component)]
pub struct Line(fn(&Figures) -> String);

/// Whose time a bar or its line shows.
#[derive(Component, Clone, Copy)]
struct Bar(Mode);

#[derive(SystemParam)]
pub struct Figures<'w, 's> {
    mode: Res<'w, State<Mode>>,
    arena: Single<'w, 's, Entity, With<Arena>>,
    clocks: Clocks<'w>,
    shots: Query<'w, 's, (), With<Shot>>,
    waiting: Query<'w, 's, (), With<Waiting>>,
    diagnostics: Res<'w, DiagnosticsStore>,
    adapter: Res<'w, RenderAdapterInfo>,
}

impl Figures<'_, '_> {
    fn timers(&self, mode: Mode) -> Option<f64> {
        median(&self.diagnostics, &time_of(mode))
    }

    fn color(&self, mode: Mode) -> Color {
        let is_running = *self.mode.get() == mode;
        match mode {
            _ if !is_running => GREY,
            Mode::Due => Color::srgb(0.35, 0.9, 0.65),
            Mode::Ticking => Color::srgb(1.0, 0.5, 0.35),
        }
    }

    fn frame(&self) -> Option<f64> {
        median(&self.diagnostics, &FRAME)
    }
}

fn build(mut commands: Commands) {
    let title = (Text2d::new("bevy_due"), TextColor(WHITE));
    commands.spawn((title, at(300.0, 52.0)));
    write(&mut commands, 218.0, WHITE, |figures| {
        format!("{} timed shots", thousands(figures.shots.count()))
    });
    write(&mut commands, 186.0, WHITE, |figures| {
        format!("{} more timers wait", thousands(figures.waiting.count()))
    });

    let heading = (Text2d::new("time in timers per frame"), TextColor(GREY));
    commands.spawn((heading, at(110.0, 20.0)));
    add_bar(&mut commands, 76.0, Mode::Due, |figures| {
        format!("bevy_due  {}", millis(figures.timers(Mode::Due)))
    });
    add_bar(&mut commands, 12.0, Mode::Ticking, |figures| {
        format!("ticking   {}", millis(figures.timers(Mode::Ticking)))
    });

    write(&mut commands, -78.0, GREY, |figures| {
        let fps = figures.frame().map_or(0.0, |millis| 1000.0 / millis);
        format!("frame     {}  {fps:.0} fps", millis(figures.frame()))
    });
    write(&mut commands, -142.0, GREY, |figures| {
        let name = &figures.adapter.name;
        let name = name.split(" (").next().unwrap_or(name);
        format!("drawn by  {name}")
    });
    write(&mut commands, -110.0, GREY, |figures| {
        let speed = figures.clocks.speed(*figures.arena).unwrap_or(0.0);
        format!("speed     {speed:9.1}")
    });
    let keys = "T      swap bevy_due for ticking\nSpace  slow motion";
    commands.spawn((Text2d::new(keys), TextColor(GREY), at(-250.0, 20.0)));
}

fn write(commands: &mut Commands, top: f32, color: Color, line: fn(&Figures) -> String) {
    let text = (Text2d::default(), TextColor(color), Line(line));
    commands.spawn((text, at(top, 24.0)));
}

fn add_bar(commands: &mut Commands, top: f32, mode: Mode, line: fn(&Figures) -> String) {
    let text = (Text2d::default(), TextColor(GREY), Line(line));
    commands.spawn((text, Bar(mode), at(top, 24.0)));
    let place = Transform::from_xyz(LEFT, top - 36.0, 1.0);
    let sprite = Sprite::from_color(GREY, BAR);
    commands.spawn((sprite, Bar(mode), Anchor::TOP_LEFT, place));
}

fn at(top: f32, size: f32) -> impl Bundle {
    (
        TextFont::from_font_size(size),
        Anchor::TOP_LEFT,
        Transform::from_xyz(LEFT, top, 1.0),
    )
}

fn write_lines(figures: Figures, mut lines: Query<(&Line, &mut Text2d)>) {
    for (line, mut text) in &mut lines {
        text.0 = line.0(&figures);
    }
}

/// The longer bar is full. The bars are bright as long as their mode runs.
fn draw_bars(
    figures: Figures,
    mut bars: Query<(&Bar, &mut Sprite)>,
    mut texts: Query<(&Bar, &mut TextColor)>,
) {
    let times = [Mode::Due, Mode::Ticking].map(|mode| figures.timers(mode).unwrap_or(0.0));
    let longest = times[0].max(times[1]).max(f64::MIN_POSITIVE);
    for (bar, mut sprite) in &mut bars {
        let time = figures.timers(bar.0).unwrap_or(0.0);
        let length = BAR.x * (time / longest) as f32;
        sprite.custom_size = Some(BAR.with_x(length.max(2.0)));
        sprite.color = figures.color(bar.0);
    }
    for (bar, mut color) in &mut texts {
        color.0 = figures.color(bar.0);
    }
}

fn millis(time: Option<f64>) -> String {
    time.map_or("not measured yet".into(), |time| format!("{time:6.2} ms"))
}

fn thousands(number: usize) -> String {
    let digits = number.to_string();
    let groups = digits.as_bytes().rchunks(3).rev();
    let groups = groups.map(|group| String::from_utf8_lossy(group));
    groups.collect::<Vec<_>>().join(",")
}

/// Prints all lines.
pub fn print(figures: Figures, lines: Query<&Line>) {
    for line in &lines {
        println!("{}", line.0(&figures));
    }
}
