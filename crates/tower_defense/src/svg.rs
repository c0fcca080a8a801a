//! Records a part of the script as an animated picture: one frame in full, and of the others what differs.

use core::{
    fmt::Write,
    ops::{Range, RangeInclusive},
};
use std::{
    collections::{BTreeMap, BTreeSet},
    path::PathBuf,
};

use bevy_ecs::prelude::*;
use ratatui::{
    buffer::Buffer,
    layout::Rect,
    style::{Color, Modifier},
};

use crate::{
    script,
    view::{self, NIGHT},
};

/// The size of a character in pixels.
const CHAR: (u16, u16) = (8, 16);
/// Characters that are drawn as rectangles.
const BARS: RangeInclusive<char> = '▁'..='█';
/// The frames of the script to show.
const SHOWN: Range<usize> = 28 * script::RATE as usize..46 * script::RATE as usize;
/// Shows each nth frame.
const STEP: usize = 12;
/// The seconds per picture. The game is a little faster than in the terminal.
const SECS: f32 = 0.5;
/// The number of the picture that a viewer without animation shows.
const POSTER: usize = 20;

/// Plays the script, and returns the picture.
///
/// # Errors
///
/// Fails if the game does.
pub fn record(file: PathBuf) -> Result<String> {
    let mut pictures = Vec::new();
    let mut frame = 0;
    script::play(file, |session, _| {
        if SHOWN.contains(&frame) && frame % STEP == 0 {
            let mut buffer = Buffer::empty(Rect::new(0, 0, view::SIZE.0, view::SIZE.1));
            view::draw(session.world(), &mut buffer)?;
            pictures.push(buffer);
        }
        frame += 1;
        Ok(())
    })?;
    film(&pictures)
}

/// Cells of a row that look alike, from `x` on.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Run {
    y: u16,
    x: u16,
    ground: u8,
    color: u8,
    is_bold: bool,
    text: String,
}

/// Runs by the number of the first picture that shows them, and the number of pictures that do.
type Scenes = BTreeMap<(usize, usize), Vec<Run>>;

/// Returns pictures of the same size as one animated picture.
fn film(pictures: &[Buffer]) -> Result<String> {
    let poster = &pictures[POSTER.min(pictures.len() - 1)];
    let (width, height) = (poster.area.width * CHAR.0, poster.area.height * CHAR.1);
    let scenes = scenes(pictures, poster);
    let mut svg = String::new();
    writeln!(
        svg,
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" \
         font-family=\"DejaVu Sans Mono,Menlo,Consolas,monospace\" font-size=\"13.3\">\n\
         <style>{}{}</style>\n<rect width=\"{width}\" height=\"{height}\" rx=\"6\" fill=\"{}\"/>",
        colors(pictures),
        animations(&scenes, pictures.len()),
        hex(index(NIGHT)),
    )?;
    draw(&mut svg, &runs(poster, &Buffer::empty(poster.area)))?;
    for ((first, length), runs) in &scenes {
        let delay = *first as f32 * SECS;
        write!(
            svg,
            "\n<g class=\"f f{length}\" style=\"animation-delay:{delay}s\">"
        )?;
        draw(&mut svg, runs)?;
        svg += "</g>";
    }
    svg += "\n</svg>\n";
    Ok(svg)
}

/// Collects what differs from the poster, each run for as long as it stays.
fn scenes(pictures: &[Buffer], poster: &Buffer) -> Scenes {
    let mut scenes = Scenes::new();
    let mut shown: BTreeMap<Run, usize> = BTreeMap::new();
    let different = pictures.iter().map(|picture| runs(picture, poster));
    for (number, runs) in different.chain([Vec::new()]).enumerate() {
        for (run, first) in shown.extract_if(.., |run, _| !runs.contains(run)) {
            scenes.entry((first, number - first)).or_default().push(run);
        }
        for run in runs {
            shown.entry(run).or_insert(number);
        }
    }
    scenes
}

/// Returns the cells of a picture that are different in another one.
fn runs(picture: &Buffer, other: &Buffer) -> Vec<Run> {
    let row = |y: u16| {
        let is_different = move |x: &u16| picture[(*x, y)] != other[(*x, y)];
        let cells: Vec<u16> = (0..picture.area.width).filter(is_different).collect();
        let style = |x: u16| picture[(x, y)].style();
        let alike = cells.chunk_by(|&a, &b| a + 1 == b && style(a) == style(b));
        let runs = alike.map(|cells| Run::new(picture, cells, y));
        runs.collect::<Vec<_>>()
    };
    (0..picture.area.height).flat_map(row).collect()
}

impl Run {
    fn new(picture: &Buffer, cells: &[u16], y: u16) -> Self {
        let x = cells[0];
        let first = &picture[(x, y)];
        let symbols = cells.iter().map(|&x| picture[(x, y)].symbol());
        Self {
            y,
            x,
            ground: index(first.bg),
            color: index(first.fg),
            is_bold: first.modifier.contains(Modifier::BOLD),
            text: symbols.collect(),
        }
    }

    /// Returns the bars in the run, each with its height in eighths. Fonts do not agree on them.
    fn bars(&self) -> impl Iterator<Item = (u16, u16)> {
        let chars = (self.x..).zip(self.text.chars());
        chars
            .filter(|(_, char)| BARS.contains(char))
            .map(|(x, char)| (x, char as u16 - '▁' as u16 + 1))
    }

    /// Writes the words of the run.
    fn write(&self, svg: &mut String) -> Result {
        let chars: Vec<(u16, char)> = (self.x..).zip(self.text.chars()).collect();
        let is_space = |char: char| char == ' ' || BARS.contains(&char);
        for word in chars
            .split(|(_, char)| is_space(*char))
            .filter(|word| !word.is_empty())
        {
            let (left, base) = (word[0].0 * CHAR.0, self.y * CHAR.1 + 12);
            let bold = if self.is_bold { " b" } else { "" };
            write!(
                svg,
                "<text class=\"c{}{bold}\" x=\"{left}\" y=\"{base}\"",
                self.color
            )?;
            if word.len() > 1 {
                write!(svg, " textLength=\"{}\"", word.len() as u16 * CHAR.0)?;
            }
            let text: String = word.iter().map(|(_, char)| char).collect();
            write!(
                svg,
                ">{}</text>",
                text.replace('&', "&amp;").replace('<', "&lt;")
            )?;
        }
        Ok(())
    }
}

/// Draws the ground, then the bars, then the words.
fn draw(svg: &mut String, runs: &[Run]) -> Result {
    let mut ground: BTreeMap<u8, String> = BTreeMap::new();
    let mut bars: BTreeMap<u8, String> = BTreeMap::new();
    for run in runs {
        let chars = run.text.chars().count() as u16;
        fill(
            ground.entry(run.ground).or_default(),
            (run.x, run.y),
            chars,
            8,
        )?;
        for (x, eighths) in run.bars() {
            fill(bars.entry(run.color).or_default(), (x, run.y), 1, eighths)?;
        }
    }
    for (color, path) in ground.iter().chain(&bars) {
        write!(svg, "<path class=\"c{color}\" d=\"{path}\"/>")?;
    }
    runs.iter().try_for_each(|run| run.write(svg))
}

/// Adds the lower part of some characters to a path.
fn fill(path: &mut String, (x, y): (u16, u16), chars: u16, eighths: u16) -> Result {
    let (width, height) = (chars * CHAR.0, eighths * CHAR.1 / 8);
    let (left, top) = (x * CHAR.0, (y + 1) * CHAR.1 - height);
    Ok(write!(path, "M{left} {top}h{width}v{height}h-{width}z")?)
}

/// Returns a rule for each length of a scene.
fn animations(scenes: &Scenes, pictures: usize) -> String {
    let secs = pictures as f32 * SECS;
    let lengths: BTreeSet<usize> = scenes.keys().map(|(_, length)| *length).collect();
    let rules = lengths.into_iter().map(|length| {
        let shown = 100.0 * length as f32 / pictures as f32;
        format!(
            ".f{length}{{animation-name:f{length}}}\
             @keyframes f{length}{{0%{{visibility:visible}}{shown:.2}%,to{{visibility:hidden}}}}"
        )
    });
    let all = format!(
        "path{{shape-rendering:crispEdges}}.b{{font-weight:bold}}\
         .f{{visibility:hidden;animation:{secs}s step-end infinite}}"
    );
    [all].into_iter().chain(rules).collect()
}

/// Returns a rule for each color of the pictures.
fn colors(pictures: &[Buffer]) -> String {
    let cells = pictures.iter().flat_map(|picture| &picture.content);
    let colors: BTreeSet<u8> = cells
        .flat_map(|cell| [index(cell.fg), index(cell.bg)])
        .collect();
    let rule = |color| format!(".c{color}{{fill:{}}}", hex(color));
    colors.into_iter().map(rule).collect()
}

fn index(color: Color) -> u8 {
    match color {
        Color::Indexed(index) => index,
        _ => 255,
    }
}

/// Returns a color of the terminal's palette: a cube of six shades each, then 24 grays.
fn hex(index: u8) -> String {
    let shade = |level: u8| if level == 0 { 0 } else { 55 + level * 40 };
    let (red, green, blue) = match index {
        232.. => {
            let gray = 8 + (index - 232) * 10;
            (gray, gray, gray)
        }
        _ => {
            let cube = index.saturating_sub(16);
            (shade(cube / 36), shade(cube / 6 % 6), shade(cube % 6))
        }
    };
    format!("#{red:02x}{green:02x}{blue:02x}")
}
