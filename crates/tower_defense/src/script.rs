//! A minute of the game that plays itself, in which everything happens. Time moves by hand, so it is
//! over in a moment, and each run is the same.

use core::{fmt::Write, time::Duration};
use std::path::PathBuf;

use bevy_app::prelude::*;
use bevy_ecs::prelude::*;
use bevy_time::TimeUpdateStrategy;

use crate::{
    castle::Castle,
    log::Log,
    map::cell,
    orders::Order::{self, *},
    session::{Frame, Session},
    spells::PlayerSpell::{Bolt, SlowMotion},
    towers::TowerKind::{Archer, Bell, Frost, Venom},
};

/// The frames per second.
pub const RATE: u32 = 20;

/// The seconds of real time at which orders are given.
const SCRIPT: &[(f32, &[Order])] = &[
    (1.0, &[Select(Archer), Point(cell(8, 4)), Build]),
    (1.5, &[Select(Venom), Point(cell(9, 7)), Build]),
    (2.0, &[Select(Frost), Point(cell(7, 8)), Build]),
    (2.5, &[Select(Venom), Point(cell(4, 4)), Build]),
    (12.0, &[Select(Archer), Point(cell(13, 5)), Build]),
    (16.0, &[Menu]),
    (17.0, &[Browse(1)]),
    (18.0, &[Browse(-1)]),
    (19.0, &[Confirm]),
    (22.0, &[Select(Bell), Point(cell(15, 5)), Build]),
    (24.0, &[Select(Archer), Point(cell(5, 7)), Build]),
    (29.0, &[Select(Venom), Point(cell(19, 10)), Build]),
    (33.0, &[Cast(SlowMotion)]),
    (38.5, &[Save]),
    (43.0, &[Load]),
    (44.5, &[Point(cell(6, 4)), Cast(Bolt)]),
    (54.5, &[Point(cell(6, 9)), Cast(Bolt)]),
    (60.0, &[Quit]),
];

/// Plays the script. After each frame, `see` gets the session.
///
/// # Errors
///
/// Fails if the game does.
pub fn play(file: PathBuf, mut see: impl FnMut(&mut Session, Frame) -> Result) -> Result {
    let mut session = Session::new(file, by_hand)?;
    let mut script = SCRIPT.iter().peekable();
    for frame in 0.. {
        let secs = frame as f32 / RATE as f32;
        while let Some((_, orders)) = script.next_if(|(at, _)| *at <= secs) {
            orders.iter().for_each(|&order| session.send(order));
        }
        let frame = session.update()?;
        see(&mut session, frame)?;
        if frame == Frame::End {
            break;
        }
    }
    Ok(())
}

/// Moves time by hand: each frame takes the same time.
pub fn by_hand(app: &mut App) {
    let frame = Duration::from_secs(1) / RATE;
    app.insert_resource(TimeUpdateStrategy::ManualDuration(frame));
}

/// Plays the script, and returns the log with a summary.
///
/// # Errors
///
/// Fails if the game does.
pub fn tell(file: PathBuf) -> Result<String> {
    let mut text = String::new();
    let mut told = 0;
    play(file, |session, frame| {
        let world = session.world();
        if frame == Frame::NewGame {
            told = 0;
        }
        let log = &world.resource::<Log>().0;
        for line in &log[told..] {
            writeln!(text, "{line}")?;
        }
        told = log.len();
        if frame == Frame::End {
            let Castle { gold, lives, kills } = world.resource();
            writeln!(
                text,
                "The castle has {lives} lives and {gold} gold, and {kills} enemies fell"
            )?;
        }
        Ok(())
    })?;
    Ok(text)
}
