//! The options of the command line.

use std::path::PathBuf;

use bevy::prelude::*;
use lexopt::prelude::*;

pub const USAGE: &str = "usage: window [--waiting N] [--screenshot FILE.png]";

#[derive(Resource)]
pub struct Options {
    /// The number of timers that wait for an hour.
    pub waiting: u32,
    /// Measures both modes, saves a picture, and exits.
    pub screenshot: Option<PathBuf>,
}

pub fn from_arguments() -> Result<Options, lexopt::Error> {
    let mut options = Options {
        waiting: 1_000_000,
        screenshot: None,
    };
    let mut arguments = lexopt::Parser::from_env();
    while let Some(argument) = arguments.next()? {
        match argument {
            Long("waiting") => options.waiting = arguments.value()?.parse()?,
            Long("screenshot") => options.screenshot = Some(arguments.value()?.into()),
            argument => return Err(argument.unexpected()),
        }
    }
    Ok(options)
}
