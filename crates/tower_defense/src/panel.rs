//! The panel: the timers of the game, as `bevy_due` sees them.

use core::time::Duration;

use bevy_diagnostic::{DiagnosticPath, DiagnosticsStore};
use bevy_due::{
    ArmedTimers, DueDiagnosticsPlugin,
    clock::SpeedModifier,
    prelude::*,
    timer::{Keyed, Pauses, TimerStatus},
};
use bevy_ecs::{prelude::*, system::SystemParam};
use ratatui::{
    buffer::Buffer,
    layout::{Constraint, Layout, Rect},
    style::{Color, Style},
    text::{Line, Span},
    widgets::{Paragraph, Sparkline, Widget},
};

use crate::{
    boss::{Cast, Spell},
    effects::Poison,
    enemies::Enemy,
    menu::Menu,
    view::{BLUE, DIM, GOLD, GREEN, PINK, TEXT, WHITE, block},
    waves::Waves,
};

/// What the panel shows.
#[derive(SystemParam)]
pub struct Panel<'w, 's> {
    timers: ArmedTimers<'w, 's>,
    diagnostics: Res<'w, DiagnosticsStore>,
    keys: Query<'w, 's, &'static Keyed>,
    lifetimes: Query<'w, 's, (Entity, &'static DespawnAfter)>,
    pauses: Query<'w, 's, &'static Pauses>,
    slows: Query<'w, 's, &'static SpeedModifier>,
    enemies: Query<'w, 's, &'static Enemy>,
    waves: Query<'w, 's, &'static Waves>,
    menus: Query<'w, 's, &'static Menu>,
}

/// A row of the list of deadlines.
struct Deadline {
    remaining: Duration,
    fraction: f32,
    what: String,
    whose: String,
    color: Color,
    is_paused: bool,
}

impl Widget for &Panel<'_, '_> {
    fn render(self, area: Rect, buffer: &mut Buffer) {
        let frame = block(" bevy_due ");
        let rows = [
            Constraint::Length(5),
            Constraint::Length(3),
            Constraint::Length(1),
            Constraint::Fill(1),
        ];
        let [numbers, cost, title, list] = Layout::vertical(rows).areas(frame.inner(area));
        frame.render(area, buffer);
        self.numbers().render(numbers, buffer);
        self.cost(usize::from(cost.width)).render(cost, buffer);
        Line::styled(" next deadlines", DIM).render(title, buffer);
        self.list(usize::from(list.height)).render(list, buffer);
    }
}

impl Panel<'_, '_> {
    fn numbers(&self) -> Paragraph<'static> {
        let latest = |path| self.history(path).last().copied().unwrap_or_default();
        let row = |name: &'static str, value: String| {
            Line::from(vec![
                Span::styled(format!(" {name:<9}"), DIM),
                Span::styled(format!("{value:>12}"), TEXT),
            ])
        };
        let micros = latest(DueDiagnosticsPlugin::TIME) * 1000.0;
        let lateness = latest(DueDiagnosticsPlugin::LATENESS);
        Paragraph::new(vec![
            row("armed", self.timers.count().to_string()),
            row("due", latest(DueDiagnosticsPlugin::DUE).to_string()),
            row(
                "cancelled",
                latest(DueDiagnosticsPlugin::CANCELLED).to_string(),
            ),
            row("late", format!("{lateness:.1} ms")),
            row("cost", format!("{micros:.0} µs/frame")),
        ])
    }

    /// Returns the cost of the last frames as bars.
    fn cost(&self, width: usize) -> Sparkline<'static> {
        let millis = self.history(DueDiagnosticsPlugin::TIME);
        let last = &millis[millis.len().saturating_sub(width)..];
        let bars: Vec<u64> = last.iter().map(|millis| (millis * 1000.0) as u64).collect();
        // An outlier would flatten all others.
        let mut sorted = bars.clone();
        sorted.sort_unstable();
        let usual = sorted.get(sorted.len() / 2).copied().unwrap_or_default();
        Sparkline::default()
            .data(bars)
            .max(usual * 3)
            .style(Style::new().fg(BLUE))
    }

    fn history(&self, path: DiagnosticPath) -> Vec<f64> {
        let diagnostic = self.diagnostics.get(&path);
        let values = diagnostic
            .into_iter()
            .flat_map(|diagnostic| diagnostic.values());
        values.copied().collect()
    }

    fn list(&self, height: usize) -> Paragraph<'static> {
        let timers = self.timers.iter().map(|timer| self.timer(&timer));
        let lifetimes = self.lifetimes.iter();
        let lifetimes = lifetimes.filter_map(|(entity, life)| self.lifetime(entity, life));
        let mut deadlines: Vec<Deadline> = timers.chain(lifetimes).collect();
        deadlines.sort_by_key(|deadline| (deadline.is_paused, deadline.remaining));
        deadlines.truncate(height);
        Paragraph::new(deadlines.iter().map(Deadline::line).collect::<Vec<_>>())
    }

    fn timer(&self, timer: &TimerStatus) -> Deadline {
        let key = self.keys.get(timer.entity).map_or("wave", |key| key.name());
        let (what, color) = match key {
            _ if self.menus.contains(timer.entity) => ("blink", WHITE),
            Poison::NAME => (Poison::NAME, GREEN),
            Spell::NAME => (Spell::NAME, PINK),
            Cast::NAME => (Cast::NAME, PINK),
            key => (key, GOLD),
        };
        Deadline {
            remaining: timer.remaining,
            fraction: timer.fraction(),
            what: what.to_owned(),
            whose: self.name(timer.owner),
            color,
            is_paused: timer.paused,
        }
    }

    /// Returns the end of a stun or a slow. Flashes are left out.
    fn lifetime(&self, entity: Entity, lifetime: &DespawnAfter) -> Option<Deadline> {
        let (what, whose) = match (self.pauses.get(entity), self.slows.get(entity)) {
            (Ok(&Pauses(target)), _) => ("stun", target),
            (_, Ok(slow)) => ("slow", slow.clock()),
            _ => return None,
        };
        let remaining = self.timers.lifetime(entity)?;
        Some(Deadline {
            remaining,
            fraction: 1.0 - remaining.div_duration_f32(lifetime.delay()),
            what: what.to_owned(),
            whose: self.name(whose),
            color: WHITE,
            is_paused: false,
        })
    }

    fn name(&self, entity: Entity) -> String {
        if let Ok(enemy) = self.enemies.get(entity) {
            return enemy.kind.name().to_owned();
        }
        if let Ok(waves) = self.waves.get(entity) {
            return format!("wave {}", waves.number);
        }
        match self.menus.contains(entity) {
            true => "menu".to_owned(),
            false => "arena".to_owned(),
        }
    }
}

impl Deadline {
    fn line(&self) -> Line<'static> {
        let filled = (self.fraction * 4.0).round() as usize;
        let Self { what, whose, .. } = self;
        let color = if self.is_paused { DIM } else { self.color };
        Line::from(vec![
            Span::styled(format!("{:4.1} ", self.remaining.as_secs_f32()), TEXT),
            Span::styled("━".repeat(filled), color),
            Span::styled("─".repeat(4 - filled), DIM),
            Span::styled(format!(" {what:<6}"), color),
            Span::styled(format!(" {whose}"), DIM),
        ])
    }
}
