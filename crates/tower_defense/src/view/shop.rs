//! The shop: towers with prices, and spells with charges.

use bevy_due::{Clocks, prelude::*};
use bevy_ecs::{prelude::*, system::SystemParam};
use ratatui::{
    buffer::Buffer,
    layout::Rect,
    text::{Line, Span},
    widgets::{Paragraph, Widget},
};

use super::{BLUE, DIM, GOLD, TEXT, WHITE, block};
use crate::{
    castle::Castle,
    spells::PlayerSpell,
    towers::{Hand, TowerKind},
};

#[derive(SystemParam)]
pub(super) struct Shop<'w, 's> {
    castle: Res<'w, Castle>,
    hand: Res<'w, Hand>,
    clocks: Clocks<'w>,
    spells: Query<'w, 's, (&'static PlayerSpell, &'static Cooldown)>,
}

impl Widget for &Shop<'_, '_> {
    fn render(self, area: Rect, buffer: &mut Buffer) {
        let towers = TowerKind::ALL.into_iter().enumerate();
        let towers = towers.map(|(number, kind)| self.tower(number + 1, kind));
        let spells = self.spells.iter();
        let spells = spells.map(|(&spell, cooldown)| self.spell(spell, cooldown));
        let lines: Vec<Line> = towers.chain(spells).collect();
        Paragraph::new(lines)
            .block(block(" shop "))
            .render(area, buffer);
    }
}

impl Shop<'_, '_> {
    fn tower(&self, number: usize, kind: TowerKind) -> Line<'static> {
        let is_chosen = kind == self.hand.kind;
        let color = match self.castle.gold >= kind.price() {
            true if is_chosen => WHITE,
            true => TEXT,
            false => DIM,
        };
        let mark = if is_chosen { "▶" } else { " " };
        Line::from(vec![
            Span::styled(format!("{mark}{number} {:<9}", kind.name()), color),
            Span::styled(format!("◆ {:>2}", kind.price()), GOLD),
        ])
    }

    fn spell(&self, spell: PlayerSpell, cooldown: &Cooldown) -> Line<'static> {
        let key = match spell {
            PlayerSpell::Bolt => 'b',
            PlayerSpell::SlowMotion => 't',
        };
        let now = self.clocks.now(ClockId::Virtual).unwrap_or_default();
        let charges = match cooldown.charges(now) {
            0 => format!("{:.0} s", cooldown.remaining(now).as_secs_f32().ceil()),
            charges => "●".repeat(charges as usize),
        };
        Line::from(vec![
            Span::styled(format!(" {key} {:<12}", spell.name()), TEXT),
            Span::styled(charges, BLUE),
        ])
    }
}
