//! The picture, or a line without a terminal.

use std::collections::VecDeque;

use ratatui::{
    Frame,
    layout::{Constraint, Layout},
    style::{Color, Style},
    text::Line,
    widgets::{Block, BorderType, Paragraph, Row, Sparkline, Table},
};

use crate::{
    process::{ShardProcess, State},
    report::Report,
};

const DIM: Style = Style::new().fg(Color::DarkGray);
const RED: Style = Style::new().fg(Color::Red);
const GREEN: Style = Style::new().fg(Color::Green);
const GOLD: Style = Style::new().fg(Color::Yellow);

/// What all shards have done.
#[derive(Default)]
pub struct Totals {
    pub kills: u64,
    moves: u64,
    firings: u64,
    /// What has happened in this second, and in those before.
    now: (u64, u64),
    seconds: VecDeque<(u64, u64)>,
}

impl Totals {
    pub fn add(&mut self, report: &Report) {
        self.moves += report.moves;
        self.firings += report.firings;
        self.now.0 += report.moves;
        self.now.1 += report.firings;
    }

    pub fn end_second(&mut self) {
        self.seconds.push_back(core::mem::take(&mut self.now));
        if self.seconds.len() > 200 {
            self.seconds.pop_front();
        }
    }

    fn last_second(&self) -> (u64, u64) {
        self.seconds.back().copied().unwrap_or_default()
    }
}

/// Returns a line about the last second.
pub fn line(shards: &[ShardProcess], totals: &Totals, phase: &str) -> String {
    let (moves, firings) = totals.last_second();
    let shards = shards.iter().map(|shard| {
        let pid = shard.pid();
        match shard.state {
            State::Starts => format!("[{pid} starts]"),
            State::Runs(report) => format!(
                "[{pid} {} players, {} on the way, {} frames/s, {} % busy]",
                report.players,
                report.on_the_way,
                report.per_second(report.frames),
                busy(&report)
            ),
        }
    });
    let shards: Vec<_> = shards.collect();
    format!(
        "{phase}: {moves} moves/s, {firings} firings/s, {} kills {}",
        totals.kills,
        shards.join(" ")
    )
}

fn busy(report: &Report) -> u64 {
    100 * report.busy_micros / report.micros.max(1)
}

/// Draws the shards, the totals and the phase.
pub fn draw((shards, totals, phase): (&[ShardProcess], &Totals, String), frame: &mut Frame) {
    let rows = [
        Constraint::Length(shards.len() as u16 + 3),
        Constraint::Length(3),
        Constraint::Fill(1),
        Constraint::Length(2),
    ];
    let [zones, numbers, moves, help] = Layout::vertical(rows).areas(frame.area());
    frame.render_widget(table(shards), zones);
    frame.render_widget(sums(shards, totals, &phase), numbers);
    let width = usize::from(moves.width.saturating_sub(2));
    let skip = totals.seconds.len().saturating_sub(width);
    let seconds = totals.seconds.iter().skip(skip);
    let bars: Vec<u64> = seconds.map(|&(moves, _)| moves).collect();
    let bars = Sparkline::default().data(bars).style(GREEN);
    frame.render_widget(bars.block(block(" moves per second ")), moves);
    let help_text = vec![
        Line::styled(
            " 1, 2, 3: kill that shard, or `kill -9` its pid. It loses nothing.",
            DIM,
        ),
        Line::styled(" q: come to rest, and read the journals", DIM),
    ];
    frame.render_widget(Paragraph::new(help_text), help);
}

fn block(title: &str) -> Block<'_> {
    Block::bordered()
        .border_type(BorderType::Rounded)
        .border_style(DIM)
        .title(title)
}

fn table(shards: &[ShardProcess]) -> Table<'static> {
    let titles = [
        "zone",
        "pid",
        "players",
        "timers",
        "requests",
        "on the way",
        "frames/s",
        "busy",
    ];
    let row = |shard: &ShardProcess| {
        let name = (shard.number() + 1).to_string();
        let pid = shard.pid().to_string();
        match shard.state {
            State::Starts => Row::new([name, pid, "starts".into()]).style(RED),
            State::Runs(report) => Row::new([
                name,
                pid,
                report.players.to_string(),
                report.timers.to_string(),
                report.requests.to_string(),
                report.on_the_way.to_string(),
                report.per_second(report.frames).to_string(),
                format!("{} %", busy(&report)),
            ]),
        }
    };
    let widths = [4, 8, 7, 6, 8, 10, 8, 5].map(Constraint::Length);
    Table::new(shards.iter().map(row), widths)
        .header(Row::new(titles).style(DIM))
        .column_spacing(2)
        .block(block(" shards "))
}

fn sums(shards: &[ShardProcess], totals: &Totals, phase: &str) -> Paragraph<'static> {
    let reports = shards.iter().filter_map(|shard| match shard.state {
        State::Starts => None,
        State::Runs(report) => Some(report.players),
    });
    let here: u64 = reports.sum();
    let (moves, firings) = totals.last_second();
    let text = format!(
        " {here} players here, {moves} moves/s of {}, {firings} firings/s of {}, {} kills, {phase}",
        totals.moves, totals.firings, totals.kills
    );
    Paragraph::new(Line::styled(text, GOLD)).block(block(" all "))
}
