//! A session: one game after the other. A loaded or restarted game is a new app, so nothing of the old
//! one is left.

use core::mem;
use std::{fs, path::PathBuf};

use bevy_app::prelude::*;
use bevy_ecs::{message::MessageCursor, prelude::*};

use crate::{GamePlugin, log::tell, orders::Order, save, spells, waves};

/// Games, and the file in which they are saved.
#[derive(Debug)]
pub struct Session {
    app: App,
    orders: MessageCursor<Order>,
    set_up: fn(&mut App),
    file: PathBuf,
}

/// What a frame of a session has led to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Frame {
    SameGame,
    NewGame,
    End,
}

impl Session {
    /// Starts a game. `set_up` adds to each new app what the rules do not know: how time passes.
    ///
    /// # Errors
    ///
    /// Fails if the game cannot start.
    pub fn new(file: PathBuf, set_up: fn(&mut App)) -> Result<Self> {
        let mut session = Self {
            app: new_app(set_up),
            orders: MessageCursor::default(),
            set_up,
            file,
        };
        session.start()?;
        Ok(session)
    }

    pub fn world(&mut self) -> &mut World {
        self.app.world_mut()
    }

    pub fn send(&mut self, order: Order) {
        self.world().write_message(order);
    }

    /// Runs a frame of the game, and then the orders that are about the game as a whole.
    ///
    /// # Errors
    ///
    /// Fails if a game cannot start.
    pub fn update(&mut self) -> Result<Frame> {
        self.app.update();
        let orders = self.app.world().resource::<Messages<Order>>();
        let orders: Vec<Order> = self.orders.read(orders).copied().collect();
        let mut frame = Frame::SameGame;
        for order in orders {
            match order {
                Order::Save => {
                    let result = self.save();
                    self.tell("The game is saved", result)?;
                }
                Order::Load => {
                    let result = self.load();
                    if result.is_ok() {
                        frame = Frame::NewGame;
                    }
                    self.tell("The game is loaded", result)?;
                }
                Order::Restart => {
                    self.replace(new_app(self.set_up));
                    self.start()?;
                    frame = Frame::NewGame;
                }
                Order::Quit => return Ok(Frame::End),
                _ => {}
            }
        }
        Ok(frame)
    }

    fn start(&mut self) -> Result {
        let world = self.app.world_mut();
        world.run_system_cached(spells::learn)?;
        Ok(world.run_system_cached(waves::start)?)
    }

    fn save(&mut self) -> Result {
        let game = save::save(self.app.world_mut())?;
        Ok(fs::write(&self.file, game)?)
    }

    /// Loads a game into a new app. If this fails, the old one goes on.
    fn load(&mut self) -> Result {
        let game = fs::read_to_string(&self.file)?;
        let mut app = new_app(self.set_up);
        save::load(app.world_mut(), &game)?;
        self.replace(app);
        Ok(())
    }

    fn replace(&mut self, app: App) {
        self.orders = MessageCursor::default();
        drop(mem::replace(&mut self.app, app));
    }

    /// Tells the player how it went.
    fn tell(&mut self, done: &str, result: Result) -> Result {
        let line = match result {
            Ok(()) => done.to_owned(),
            Err(error) => format!("Failed: {error}"),
        };
        Ok(self.world().run_system_cached_with(tell, line)?)
    }
}

fn new_app(set_up: fn(&mut App)) -> App {
    let mut app = App::new();
    app.add_plugins(GamePlugin);
    set_up(&mut app);
    app.update(); // Bevy's first frame takes no time.
    app
}
