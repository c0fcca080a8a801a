//! A tower defence in the terminal.
//!
//! ```text
//! cargo run -p tower_defense                      play
//! cargo run -p tower_defense -- --script          watch a minute as text, without a terminal
//! cargo run -p tower_defense -- --svg FILE        record that minute as a picture
//! cargo run -p tower_defense -- --save FILE       save to this file
//! ```

use core::time::Duration;
use std::{
    env, fs,
    io::{IsTerminal, stdout},
    path::PathBuf,
};

use bevy_ecs::prelude::*;
use tower_defense::{
    menu::Menu,
    script,
    session::{Frame, Session},
    svg,
    terminal::Screen,
    view,
};

const FRAME: Duration = Duration::from_millis(33);

fn main() -> Result {
    let Options { mode, save } = Options::from_command_line()?;
    match mode {
        Mode::Play => play(save),
        Mode::Tell => {
            println!("A scripted minute. In a terminal, you play.");
            print!("{}", script::tell(save)?);
            Ok(())
        }
        Mode::Record(picture) => Ok(fs::write(picture, svg::record(save)?)?),
    }
}

fn play(save: PathBuf) -> Result {
    let mut screen = Screen::open()?;
    let mut session = Session::new(save, |_| {})?;
    while session.update()? != Frame::End {
        let mut drawn = Ok(());
        screen.draw(|frame| drawn = view::draw(session.world(), frame.buffer_mut()))?;
        drawn?;
        let world = session.world();
        let menu = world.query::<&Menu>().single(world).ok();
        for order in screen.orders(FRAME, menu)? {
            session.send(order);
        }
    }
    Ok(())
}

struct Options {
    mode: Mode,
    save: PathBuf,
}

enum Mode {
    Play,
    Tell,
    Record(PathBuf),
}

impl Options {
    fn from_command_line() -> Result<Self, lexopt::Error> {
        use lexopt::prelude::*;

        let mut mode = match stdout().is_terminal() {
            true => Mode::Play,
            false => Mode::Tell,
        };
        let mut save = env::temp_dir().join("tower_defense.ron");
        let mut arguments = lexopt::Parser::from_env();
        while let Some(argument) = arguments.next()? {
            match argument {
                Long("script") => mode = Mode::Tell,
                Long("svg") => mode = Mode::Record(arguments.value()?.into()),
                Long("save") => save = arguments.value()?.into(),
                _ => return Err(argument.unexpected()),
            }
        }
        Ok(Self { mode, save })
    }
}
