//! A running game, and a page that shows its clocks and timers.
//!
//! ```text
//! cargo run --manifest-path crates/inspector/Cargo.toml
//! ```

use std::io;

use bevy_app::AppExit;
use bevy_remote::http::DEFAULT_PORT;
use inspector::{Page, app, check_port};

const PAGE_PORT: u16 = 15780;

fn main() -> AppExit {
    match start() {
        Ok(exit) => exit,
        Err(error) => {
            eprintln!("{error}");
            AppExit::error()
        }
    }
}

fn start() -> io::Result<AppExit> {
    check_port(DEFAULT_PORT)?;
    let page = Page::bind(PAGE_PORT, DEFAULT_PORT)?;
    println!("open {}", page.origin());
    Ok(app(page, DEFAULT_PORT).run())
}
