//! What the example of a link does: a process of a cluster, which takes commands on its standard input and
//! prints what it hears. The tests run several.

use core::time::Duration;
use std::{
    collections::HashMap,
    env, io,
    sync::mpsc::{self, Receiver, RecvTimeoutError},
    thread,
};

use bevy_app::prelude::*;
use bevy_due::{
    Timer,
    message::{Delivery, MessageContext, NoAnswer, Packet},
    prelude::*,
    worlds::{
        Parcel, ParcelCommandsExt, ParcelEntityCommandsExt, Refused, StableKey, WorldGroups,
        link::{HasRoom, Link, PeerChanged, PeerSettings},
    },
};
use bevy_ecs::prelude::*;
use bevy_time::TimePlugin;
use tracing_subscriber::filter::LevelFilter;

const SAY: u32 = 1;
const ASK: u32 = 2;
const REPLY: u32 = 3;
/// A request that gets no reply.
const HOLD: u32 = 4;

/// The group of all nodes.
const NODES: &str = "nodes";

/// What the arguments of the process say.
#[derive(Debug)]
pub struct Arguments {
    /// The name of the process.
    pub name: String,
    /// The bounds of its connections.
    pub peers: PeerSettings,
    /// What is left for the link, as names and values.
    pub others: Vec<(String, String)>,
    key: StableKey,
    inbox: usize,
}

/// Runs the process with a link, until it is told to end.
pub fn run<L: Link>(link: impl FnOnce(&Arguments) -> L) {
    let log = tracing_subscriber::fmt().with_max_level(LevelFilter::WARN);
    log.with_writer(io::stderr).with_ansi(false).init();
    let arguments = Arguments::read();
    let link = link(&arguments);
    if let Err(error) = arguments.run(link, read_commands()) {
        println!("error: {error}");
        std::process::exit(1);
    }
}

/// Splits a list at its commas.
pub fn list(value: &str) -> Vec<String> {
    value.split(',').map(String::from).collect()
}

/// Returns the lines of the standard input.
pub fn read_commands() -> Receiver<String> {
    let (send, commands) = mpsc::channel();
    thread::spawn(move || {
        let lines = io::stdin().lines().map_while(Result::ok);
        lines.for_each(|line| send.send(line).unwrap_or_default());
    });
    commands
}

impl Arguments {
    fn read() -> Self {
        let mut arguments = Self {
            name: "node".into(),
            peers: PeerSettings::default(),
            others: Vec::new(),
            key: StableKey(0),
            inbox: DuePlugin::default().inbox_capacity,
        };
        for argument in env::args().skip(1) {
            let (name, value) = argument.split_once('=').expect("name=value");
            arguments.set(name, value);
        }
        arguments
    }

    fn set(&mut self, name: &str, value: &str) {
        let millis = || Duration::from_millis(value.parse().expect("milliseconds"));
        match name {
            "name" => self.name = value.into(),
            "key" => self.key = StableKey(value.parse().expect("a number")),
            "inbox" => self.inbox = value.parse().expect("a number"),
            "heartbeat" => self.peers.heartbeat = millis(),
            "suspect_after" => self.peers.suspect_after = millis(),
            "down_after" => self.peers.down_after = millis(),
            _ => self.others.push((name.into(), value.into())),
        }
    }

    fn run(self, link: impl Link, commands: Receiver<String>) -> Result {
        let mut groups = WorldGroups::new();
        let mut app = App::new();
        let due = DuePlugin {
            inbox_capacity: self.inbox,
            ..DuePlugin::default()
        };
        app.add_plugins((TimePlugin, due));
        app.world_mut().spawn((self.key, ears(), Heard::default()));
        groups.add(NODES, &mut app);
        groups.join(link)?;
        println!("ready");
        loop {
            match commands.recv_timeout(Duration::from_millis(1)) {
                Ok(line) if line == "end" => break,
                Ok(line) if line == "hang" => _ = commands.recv(),
                Ok(line) => obey(&mut app, &self.name, &line),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => break,
            }
            app.update();
        }
        groups.stop();
        println!("ended");
        Ok(())
    }
}

/// By the name of the sender: how many numbers were heard, the last one, and how many did not rise.
#[derive(Component, Default)]
struct Heard(HashMap<String, [u32; 3]>);

/// Creates the component that hears everything.
fn ears() -> MessageComponent {
    MessageComponent::new()
        .on_packet(SAY, |me: MessageContext, said: &Packet| hear(me, said))
        .on_packet(ASK, |mut me: MessageContext, asked: &Packet| -> Result {
            let (number, _) = read(asked);
            Ok(me.reply(packet(REPLY, 2 * number, "", 0))?)
        })
        .on_packet(HOLD, |_: MessageContext, _: &Packet| println!("holds"))
        .on_packet(REPLY, |_: MessageContext, reply: &Packet| {
            println!("reply {}", read(reply).0);
        })
        .on(|_: MessageContext, no_answer: &NoAnswer| println!("no answer: {no_answer:?}"))
        .on(|_: MessageContext, peer: &PeerChanged| {
            println!("peer {} {:?}", peer.name, peer.liveness);
        })
        .on(|_: MessageContext, refused: &Refused| println!("refused {:?}", refused.reason))
        .on(|_: MessageContext, _: &HasRoom| println!("room"))
}

fn hear(mut me: MessageContext, said: &Packet) {
    let (number, name) = read(said);
    if let Some(mut heard) = me.entity.get_mut::<Heard>() {
        let [count, last, disorder] = heard.0.entry(name.into()).or_default();
        *count += 1;
        *disorder += u32::from(number <= *last);
        *last = number;
    }
}

/// Makes a packet with a number, a name, and further bytes.
fn packet(id: u32, number: u32, name: &str, bytes: usize) -> Packet {
    let mut payload = number.to_le_bytes().to_vec();
    payload.extend_from_slice(name.as_bytes());
    payload.push(0);
    payload.resize(payload.len() + bytes, 0);
    Packet::new(id, payload)
}

fn read(packet: &Packet) -> (u32, &str) {
    let Some((number, rest)) = packet.payload().split_first_chunk() else {
        return (0, "");
    };
    let name = rest.split(|byte| *byte == 0).next().unwrap_or_default();
    (
        u32::from_le_bytes(*number),
        str::from_utf8(name).unwrap_or_default(),
    )
}

/// Obeys a command:
///
/// - `say all 7`, `say turn 7`, `say 2 7`: sends a number to all nodes, to one in turn, or to the one with
///   a key. `say 2 7 100 5000` sends a hundred numbers from seven on, with 5,000 bytes each.
/// - `ask 2 21`: requests the double of a number. `hold 2` makes a request that gets no reply.
/// - `heard a`: prints how many numbers were heard from a node, the last one, and how many did not rise.
/// - `hang`: lets the world hang until the next command.
/// - `end`
fn obey(app: &mut App, name: &str, line: &str) {
    let words: Vec<&str> = line.split(' ').collect();
    match *words {
        ["say", to, from] => say(app, to, packet(SAY, number(from), name, 0)),
        ["say", to, from, count, bytes] => {
            let from = number(from);
            for nth in from..from + number(count) {
                say(app, to, packet(SAY, nth, name, number(bytes) as usize));
            }
        }
        ["ask", key, what] => ask(app, key, packet(ASK, number(what), name, 0)),
        ["hold", key] => ask(app, key, packet(HOLD, 0, name, 0)),
        ["heard", from] => {
            let mut heard = app.world_mut().query::<&Heard>();
            let heard = heard.single(app.world()).expect("there is one");
            let [count, last, disorder] = heard.0.get(from).copied().unwrap_or_default();
            println!("heard {from} {count} {last} {disorder}");
        }
        ["wake"] => {}
        _ => println!("unknown: {line}"),
    }
}

fn number(word: &str) -> u32 {
    word.parse().expect("a number")
}

fn say(app: &mut App, to: &str, what: Packet) {
    let to = match to {
        "all" => Delivery::All,
        "turn" => Delivery::InTurn,
        key => StableKey(number(key).into()).into(),
    };
    let world = app.world_mut();
    world.commands().post(Parcel::new(NODES, to, what));
    world.flush();
}

fn ask(app: &mut App, key: &str, what: Packet) {
    let world = app.world_mut();
    let mut ears = world.query_filtered::<Entity, With<Heard>>();
    let ears = ears.single(world).expect("there is one");
    let key = StableKey(number(key).into());
    let until = Timer::after(3600.0);
    world
        .commands()
        .entity(ears)
        .ask_world(Parcel::new(NODES, key, what), until);
    world.flush();
}
