//! The map with everything on it.

use core::time::Duration;

use bevy_due::{ArmedTimers, Clocks, PausedBy, clock::SpeedModifiers, prelude::*};
use bevy_ecs::{prelude::*, system::SystemParam};
use ratatui::{
    buffer::Buffer,
    layout::Rect,
    style::{Color, Style},
    text::{Line, Span},
    widgets::Widget,
};

use super::{
    BLACK, BLUE, CELL, DIM, GOLD, GRASS, GREEN, ICE, LIT_GRASS, LIT_ROAD, PINK, RED, ROAD, TEXT,
    TUFT, WHITE, block,
};
use crate::{
    boss::Cast,
    castle::Castle,
    effects::Flash,
    enemies::{Arena, Enemy, EnemyKind},
    map::{Cell, cell_at, distance},
    towers::{Hand, Tower, TowerKind},
    waves::Waves,
};

#[derive(SystemParam)]
pub(super) struct Board<'w, 's> {
    castle: Res<'w, Castle>,
    hand: Res<'w, Hand>,
    timers: ArmedTimers<'w, 's>,
    clocks: Clocks<'w>,
    waves: Query<'w, 's, (Entity, &'static Waves)>,
    arenas: Query<'w, 's, Has<SpeedModifiers>, With<Arena>>,
    towers: Query<'w, 's, (&'static Tower, &'static Cooldown)>,
    enemies: Query<'w, 's, (Entity, &'static Enemy, Has<PausedBy>, Has<SpeedModifiers>)>,
    flashes: Query<'w, 's, &'static Flash>,
}

const KEYS: &str = " enter build · x sell · n wave · p menu · q quit ";

impl Widget for &Board<'_, '_> {
    fn render(self, area: Rect, buffer: &mut Buffer) {
        let title = self.title();
        let frame = block(&title).title(self.stock().right_aligned());
        let frame = match self.cast_bar() {
            Some(bar) => frame.title_bottom(bar.centered()),
            None => frame.title_bottom(Line::styled(KEYS, DIM).centered()),
        };
        let inside = frame.inner(area);
        frame.render(area, buffer);
        let mut set = |cell: Cell, text: &str, style: Style| {
            let (x, y) = (cell.x as u16 * CELL, cell.y as u16);
            buffer.set_string(inside.x + x, inside.y + y, text, style);
        };
        for cell in Cell::all() {
            let (text, color) = scenery(cell);
            set(cell, text, Style::new().fg(color).bg(self.ground(cell)));
        }
        for (tower, cooldown) in &self.towers {
            let (text, color) = self.tower(tower, cooldown);
            set(tower.cell, &text, Style::new().fg(BLACK).bg(color).bold());
        }
        for (entity, enemy, is_stunned, is_slow) in &self.enemies {
            let cell = cell_at(enemy.place());
            let health = match enemy.health == enemy.max_health {
                true => ' ',
                false => bar(enemy.health as f32 / enemy.max_health as f32),
            };
            let style = Style::new().fg(RED).bg(self.ground(cell));
            set(cell, &format!(" {health}"), style);
            let color = self.mood(entity, enemy, is_stunned, is_slow);
            let style = match enemy.kind {
                EnemyKind::Warlock => style.fg(BLACK).bg(color),
                _ => style.fg(color),
            };
            set(cell, sign(enemy.kind), style.bold());
        }
        for Flash(cell) in &self.flashes {
            set(*cell, "✶✶", Style::new().fg(WHITE).bg(RED));
        }
        set(self.hand.cell, "[]", Style::new().fg(WHITE).bold());
    }
}

impl Board<'_, '_> {
    fn title(&self) -> String {
        let Ok((entity, waves)) = self.waves.single() else {
            return String::new();
        };
        let next = self.timers.get(entity);
        let next = next.map_or(Duration::ZERO, |next| next.remaining);
        let secs = next.as_secs_f32();
        let is_slow = self.arenas.iter().any(|is_slow| is_slow);
        let pace = if is_slow { "· slow motion " } else { "" };
        format!(" wave {} · next in {secs:.1} s {pace}", waves.number)
    }

    fn stock(&self) -> Line<'static> {
        let Castle { gold, lives, kills } = *self.castle;
        Line::from(vec![
            Span::styled(format!(" ♥ {lives}"), RED),
            Span::styled(format!("  ◆ {gold}"), GOLD),
            Span::styled(format!("  ✝ {kills} "), TEXT),
        ])
    }

    fn cast_bar(&self) -> Option<Line<'static>> {
        let mut enemies = self.enemies.iter();
        let cast = enemies.find_map(|(entity, ..)| self.timers.keyed(entity, Cast))?;
        let filled = (cast.fraction() * 16.0) as usize;
        Some(Line::from(vec![
            Span::styled(" the warlock casts ", WHITE),
            Span::styled("█".repeat(filled), PINK),
            Span::styled("─".repeat(16 - filled), PINK),
            Span::styled(format!(" {:.1} s ", cast.remaining.as_secs_f32()), WHITE),
        ]))
    }

    /// Shows frost, and how far the tower in the hand would reach.
    fn ground(&self, cell: Cell) -> Color {
        let is_in = |center: Cell, kind: TowerKind| {
            distance(cell.center(), center.center()) <= kind.reach()
        };
        let mut towers = self.towers.iter();
        let is_frozen =
            towers.any(|(it, _)| it.kind == TowerKind::Frost && is_in(it.cell, it.kind));
        let is_lit = is_in(self.hand.cell, self.hand.kind);
        match (cell.is_road(), is_lit) {
            (true, _) if is_frozen => ICE,
            (true, true) => LIT_ROAD,
            (true, false) => ROAD,
            (false, true) => LIT_GRASS,
            (false, false) => GRASS,
        }
    }

    /// Shows the first letter of a tower and its charges, or how far it has reloaded.
    fn tower(&self, tower: &Tower, cooldown: &Cooldown) -> (String, Color) {
        let now = self.clocks.now(ClockId::Virtual).unwrap_or_default();
        let charge = match cooldown.charges(now) {
            0 => bar(cooldown.fraction(now)),
            charges if cooldown.max_charges() > 1 => ['·', ':', '⁝'][charges as usize - 1],
            _ => '█',
        };
        let (sign, color) = match tower.kind {
            TowerKind::Archer => ('A', GOLD),
            TowerKind::Venom => ('V', GREEN),
            TowerKind::Frost => return ("F*".to_owned(), BLUE),
            TowerKind::Bell => ('B', PINK),
        };
        (format!("{sign}{charge}"), color)
    }

    fn mood(&self, entity: Entity, enemy: &Enemy, is_stunned: bool, is_slow: bool) -> Color {
        if self.timers.keyed(entity, Cast).is_some() {
            PINK
        } else if is_stunned {
            GOLD
        } else if enemy.poison > 0 {
            GREEN
        } else if is_slow {
            BLUE
        } else {
            WHITE
        }
    }
}

fn sign(kind: EnemyKind) -> &'static str {
    match kind {
        EnemyKind::Runner => "●",
        EnemyKind::Brute => "■",
        EnemyKind::Warlock => "♛",
    }
}

fn scenery(cell: Cell) -> (&'static str, Color) {
    if cell.is_gate() {
        ("▐▌", WHITE)
    } else if !cell.is_road() && (cell.x * 7 + cell.y * 5) % 9 == 0 {
        ("\" ", TUFT)
    } else {
        ("  ", WHITE)
    }
}

/// Returns a bar of one character.
fn bar(fraction: f32) -> char {
    const BARS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
    let bar = (fraction * BARS.len() as f32) as usize;
    BARS[bar.min(BARS.len() - 1)]
}
