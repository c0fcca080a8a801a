//! Encounters: bosses as data.

#![allow(unreachable_pub, reason = "a module of a program")]

use core::{num::NonZeroU32, time::Duration};
use std::{fs, path::PathBuf};

use bevy_due::Timer;
use bevy_ecs::prelude::*;
use ron::{error::Position, extensions::Extensions};
use serde::{Deserialize, Deserializer, de::Error};

/// A boss, as read from a file.
#[derive(Resource, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Encounter {
    pub boss: String,
    pub abilities: Vec<Ability>,
    pub enraged: Option<Enraged>,
}

/// The abilities of the second phase, and when it starts.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Enraged {
    #[serde(deserialize_with = "delay")]
    pub after: Duration,
    pub abilities: Vec<Ability>,
}

#[derive(Component, Deserialize, Clone)]
#[serde(deny_unknown_fields)]
pub struct Ability {
    pub name: String,
    #[serde(deserialize_with = "delay")]
    pub first: Duration,
    #[serde(deserialize_with = "every")]
    pub every: Timer,
    /// The number of uses, or `None` for any number.
    pub times: Option<NonZeroU32>,
    pub effect: Effect,
}

#[derive(Deserialize, Clone, Copy)]
pub enum Effect {
    Hit(u32),
    Poison(u32),
    Cast {
        #[serde(deserialize_with = "delay")]
        time: Duration,
        damage: u32,
    },
}

/// Reads a number of seconds. The `try_` constructor checks it, and the error names the value and the
/// place in the file.
fn delay<'de, D: Deserializer<'de>>(data: D) -> Result<Duration, D::Error> {
    let timer = Timer::try_after(f64::deserialize(data)?);
    Ok(timer.map_err(D::Error::custom)?.delay())
}

/// Reads an interval in seconds, greater than zero.
fn every<'de, D: Deserializer<'de>>(data: D) -> Result<Timer, D::Error> {
    Timer::try_every(f64::deserialize(data)?).map_err(D::Error::custom)
}

impl Ability {
    pub fn timer(&self) -> Timer {
        let timer = self.every.clone().first_after(self.first);
        match self.times {
            Some(times) => timer.times(times.get()),
            None => timer,
        }
    }
}

impl Encounter {
    /// Reads the command line. Returns whether to run as fast as possible, and the encounter.
    pub fn from_command_line() -> Result<(bool, Self), Box<dyn core::error::Error>> {
        use lexopt::prelude::*;

        let mut fast = false;
        let mut file = PathBuf::from(concat!(
            env!("CARGO_MANIFEST_DIR"),
            "/examples/encounters/gorvath.ron"
        ));
        let mut arguments = lexopt::Parser::from_env();
        while let Some(argument) = arguments.next()? {
            match argument {
                Long("fast") => fast = true,
                Long("encounter") => file = arguments.value()?.into(),
                _ => return Err(argument.unexpected().into()),
            }
        }
        let name = file.display();
        let text = fs::read_to_string(&file).map_err(|error| format!("{name}: {error}"))?;
        let encounter = ron::Options::default()
            .with_default_extension(Extensions::IMPLICIT_SOME)
            .from_str(&text)
            .map_err(|error| {
                let Position { line, col } = error.span.start;
                let at = value_at(&text, line, col);
                format!("{name}:{line}:{col}: {}, at `{at}`", error.code)
            })?;
        Ok((fast, encounter))
    }
}

/// Returns the value at a place in the file.
fn value_at(text: &str, line: usize, col: usize) -> String {
    let line = text.lines().nth(line - 1).unwrap_or_default();
    let rest = line.chars().skip(col - 1).skip_while(|c| c.is_whitespace());
    rest.take_while(|&c| !",()[]".contains(c)).collect()
}
