//! Shared set-up: a running game, and a client of its remote protocol.

#![allow(dead_code, reason = "each test binary uses only some of these helpers")]
#![allow(unreachable_pub, reason = "test code")]

use core::{
    sync::atomic::{AtomicU32, Ordering},
    time::Duration,
};
use std::{
    ffi::OsStr,
    io::{self, Write},
    thread,
    time::Instant,
};

use headless_chrome::{Browser, LaunchOptions, browser::default_executable};
use inspector::{Page, app, check_port};
use serde_json::{Value, json};

/// The longest time to wait for something that must happen.
const PATIENCE: Duration = Duration::from_secs(60);

/// Calls `ask` until it has an answer.
#[track_caller]
pub fn wait_for<T>(what: &str, mut ask: impl FnMut() -> Option<T>) -> T {
    let start = Instant::now();
    loop {
        if let Some(answer) = ask() {
            return answer;
        }
        assert!(
            start.elapsed() < PATIENCE,
            "{what}: not within {PATIENCE:?}"
        );
        thread::yield_now();
    }
}

/// A game that runs on ports of its own, to the end of the process.
pub struct Game {
    /// The address of the page.
    pub page: String,
    /// The address of `bevy_remote`.
    pub remote: String,
}

impl Game {
    pub fn start() -> Self {
        let remote_port = remote_port();
        let page = Page::bind(0, remote_port).expect("a free port");
        let game = Self {
            page: page.origin(),
            remote: format!("http://127.0.0.1:{remote_port}"),
        };
        thread::spawn(move || app(page, remote_port).run());
        wait_for("the game answers", || {
            let methods = ureq::post(&game.remote).send_json(request("rpc.discover", Value::Null));
            methods.ok()
        });
        game
    }

    /// Calls a method of `bevy_remote`.
    #[track_caller]
    pub fn call(&self, method: &str, params: Value) -> Value {
        let response = ureq::post(&self.remote).send_json(request(method, params));
        let mut answer: Value = response
            .and_then(|mut response| response.body_mut().read_json())
            .expect("an answer in JSON");
        let error = &answer["error"];
        assert!(error.is_null(), "{method}: {error}");
        answer["result"].take()
    }

    /// Returns the rows of a query: each entity, with its components.
    pub fn query(&self, components: &[&str], option: &[&str]) -> Vec<(u64, Value)> {
        let data = json!({ "components": components, "option": option });
        let rows = self.call("world.query", json!({ "data": data }));
        let rows = rows.as_array().expect("a list of rows").iter();
        rows.map(|row| {
            let entity = row["entity"].as_u64().expect("a number");
            (entity, row["components"].clone())
        })
        .collect()
    }

    /// Returns the entity with this name.
    pub fn named(&self, name: &str) -> u64 {
        wait_for(name, || {
            let names = self.query(&[NAME], &[]);
            names
                .iter()
                .find(|(_, row)| row[NAME] == name)
                .map(|(entity, _)| *entity)
        })
    }

    /// Returns a component of an entity.
    #[track_caller]
    pub fn component(&self, entity: u64, component: &str) -> Value {
        let params = json!({ "entity": entity, "components": [component], "strict": true });
        self.call("world.get_components", params)[component].take()
    }

    /// Returns the entity of the timer with this key.
    pub fn keyed(&self, key: &str) -> u64 {
        wait_for(key, || {
            let keys = self.query(&[KEY], &[]);
            keys.iter()
                .find(|(_, row)| row[KEY] == key)
                .map(|(entity, _)| *entity)
        })
    }

    /// Sets a field of a clock. The component is immutable, so another one replaces it, and keeps its time.
    pub fn set_clock(&self, clock: u64, field: &str, value: Value) {
        let mut component = self.component(clock, CLOCK);
        component[field] = value;
        let params = json!({ "entity": clock, "components": { CLOCK: component } });
        self.call("world.insert_components", params);
    }

    /// Returns the time that each of these clocks shows, in the same frame.
    pub fn times<const N: usize>(&self, clocks: [u64; N]) -> [f64; N] {
        let all = self.query(&[CLOCK], &[]);
        clocks.map(|clock| {
            let row = all.iter().find(|(entity, _)| *entity == clock);
            secs(&row.expect("a clock").1[CLOCK]["now"])
        })
    }

    /// Waits until a clock shows more than now, by this many seconds.
    pub fn pass(&self, clock: u64, time: f64) {
        let [start] = self.times([clock]);
        wait_for("time passes", || {
            (self.times([clock])[0] > start + time).then_some(())
        });
    }

    /// Returns the remaining time of the timer or the cooldown on an entity.
    #[track_caller]
    pub fn remaining(&self, entity: u64) -> f64 {
        secs(&self.component(entity, TIMER_STATUS)["remaining"])
    }
}

/// Finds a port for `bevy_remote`, which takes it later. The system gives out ports from 32,768 on, and
/// therefore not this one in between.
fn remote_port() -> u16 {
    static TRIED: AtomicU32 = AtomicU32::new(0);
    let start = std::process::id().wrapping_mul(97);
    wait_for("a free port", || {
        let tried = TRIED.fetch_add(1, Ordering::Relaxed);
        let port = 20_000 + start.wrapping_add(tried) % 10_000;
        let port = u16::try_from(port).expect("below 30,000");
        check_port(port).is_ok().then_some(port)
    })
}

pub const NAME: &str = "bevy_ecs::name::Name";
pub const CLOCK: &str = "bevy_due::Clock";
pub const KEY: &str = "bevy_due::timer::Keyed";
pub const OWNER: &str = "bevy_due::OwnedBy";
pub const PAUSED: &str = "bevy_due::Paused";
pub const COOLDOWN: &str = "bevy_due::Cooldown";
pub const TIMER_STATUS: &str = "bevy_due::timer::TimerStatus";

/// Returns a duration of an answer in seconds.
#[track_caller]
pub fn secs(duration: &Value) -> f64 {
    let secs = duration["secs"].as_f64().expect("whole seconds");
    secs + duration["nanos"].as_f64().expect("nanoseconds") / 1e9
}

pub fn request(method: &str, params: Value) -> Value {
    json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params })
}

/// Starts Chromium without a window, or says why there is none.
pub fn browser() -> Option<Browser> {
    let program = match default_executable() {
        Ok(program) => program,
        Err(reason) => {
            // Tests hold back what they print, but not this.
            let _ = writeln!(
                io::stderr(),
                "skipped, because there is no Chromium: {reason}"
            );
            return None;
        }
    };
    let args = ["--disable-quic", "--disable-component-update"].map(OsStr::new);
    let options = LaunchOptions {
        path: Some(program),
        // Root can't use the sandbox, and the only page to open is our own.
        sandbox: false,
        window_size: Some((1280, 1000)),
        args: args.into(),
        ..LaunchOptions::default()
    };
    Some(Browser::new(options).expect("Chromium starts"))
}
