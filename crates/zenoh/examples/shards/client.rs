//! A client, which looks for its player and plays.

use core::{net::Ipv4Addr, time::Duration};
use std::{
    io::{self, ErrorKind, Read, Write},
    net::TcpStream,
    time::Instant,
};

use fastrand::Rng;

use crate::{crowd::Field, deed::Deed};

/// The pause before the next shard is asked.
const PAUSE: Duration = Duration::from_millis(20);
/// A player is hungry every second, so a shard that is silent for so long hangs.
const SILENCE: Duration = Duration::from_secs(5);

pub struct Client {
    pub player: u64,
    /// The highest number of a line that this client has read.
    pub told: u64,
    /// How often the player was hungry.
    hungry: u64,
    /// The shard that has the player, or that is asked next.
    shard: usize,
    stage: Stage,
    heard: Instant,
    input: Vec<u8>,
}

enum Stage {
    Looks { from: Instant },
    Asks(TcpStream),
    Plays { socket: TcpStream, next: Instant },
}

impl Client {
    pub fn new(player: u64) -> Self {
        let now = Instant::now();
        Self {
            player,
            told: 0,
            hungry: 0,
            shard: 0,
            stage: Stage::Looks { from: now },
            heard: now,
            input: Vec::new(),
        }
    }

    /// Does what there is to do, without waiting.
    pub fn step(&mut self, field: &Field, random: &mut Rng) {
        if self.try_step(field, random).is_err() {
            // The shard is gone. The player may be anywhere.
            self.look(self.shard, PAUSE);
        }
    }

    fn look(&mut self, shard: usize, pause: Duration) {
        let from = Instant::now() + pause;
        self.shard = shard;
        self.stage = Stage::Looks { from };
        self.input.clear();
    }

    fn try_step(&mut self, field: &Field, random: &mut Rng) -> io::Result<()> {
        let now = Instant::now();
        match &mut self.stage {
            Stage::Looks { from } if *from <= now => return self.ask(field),
            Stage::Looks { .. } => return Ok(()),
            Stage::Asks(_) => {}
            Stage::Plays { socket, next } => {
                if *next <= now && !field.is_resting() {
                    *next = now + Duration::from_millis(random.u64(300..1000));
                    let deed = deed(self.player, self.shard, field, random);
                    socket.write_all(format!("{deed}\n").as_bytes())?;
                }
            }
        }
        self.read(field)?;
        match self.heard.elapsed() > SILENCE {
            true => Err(ErrorKind::TimedOut.into()),
            false => Ok(()),
        }
    }

    /// Asks a shard for the player.
    fn ask(&mut self, field: &Field) -> io::Result<()> {
        let port = field.port(self.shard);
        if port == 0 {
            self.look((self.shard + 1) % field.shards(), PAUSE);
            return Ok(());
        }
        let mut socket = TcpStream::connect((Ipv4Addr::LOCALHOST, port))?;
        socket.set_nodelay(true)?;
        socket.set_nonblocking(true)?;
        socket.write_all(format!("play {}\n", self.player).as_bytes())?;
        self.heard = Instant::now();
        self.stage = Stage::Asks(socket);
        Ok(())
    }

    fn read(&mut self, field: &Field) -> io::Result<()> {
        let mut bytes = [0; 1024];
        let end = loop {
            let (Stage::Asks(socket) | Stage::Plays { socket, .. }) = &mut self.stage else {
                break Ok(());
            };
            match socket.read(&mut bytes) {
                Ok(0) => break Err(ErrorKind::UnexpectedEof.into()),
                Ok(count) => self.input.extend_from_slice(&bytes[..count]),
                Err(error) if error.kind() == ErrorKind::WouldBlock => break Ok(()),
                Err(error) => break Err(error),
            }
        };
        while let Some(end) = self.input.iter().position(|&byte| byte == b'\n') {
            let line: Vec<u8> = self.input.drain(..=end).collect();
            self.heard = Instant::now();
            if self.hear(&String::from_utf8_lossy(&line[..line.len() - 1]), field) {
                return Ok(());
            }
        }
        end
    }

    /// Hears a line. Returns `true` if it is the last one of this shard.
    fn hear(&mut self, line: &str, field: &Field) -> bool {
        let (first, news) = line.split_once(' ').unwrap_or((line, ""));
        match (first, news.parse()) {
            ("not", _) => {
                self.look((self.shard + 1) % field.shards(), PAUSE);
                true
            }
            ("moved", Ok(shard)) => {
                self.look(shard, Duration::ZERO);
                true
            }
            _ => {
                self.check(first, news, field);
                false
            }
        }
    }

    /// Checks that nothing is told twice, and that nothing goes back.
    fn check(&mut self, number: &str, news: &str, field: &Field) {
        let Ok(number) = number.parse() else {
            return;
        };
        if number <= self.told {
            field.doubt(format_args!(
                "client {} read {number} {news:?} after {}",
                self.player, self.told
            ));
        }
        self.told = self.told.max(number);
        if let Some(Ok(hungry)) = news.strip_prefix("hungry ").map(str::parse) {
            if hungry <= self.hungry {
                field.doubt(format_args!(
                    "player {} was hungry {hungry} after {}",
                    self.player, self.hungry
                ));
            }
            self.hungry = hungry;
        }
        if news == "here" {
            let stage = Stage::Looks {
                from: Instant::now(),
            };
            if let Stage::Asks(socket) | Stage::Plays { socket, .. } =
                core::mem::replace(&mut self.stage, stage)
            {
                let next = Instant::now() + PAUSE;
                self.stage = Stage::Plays { socket, next };
            }
        }
    }
}

fn deed(player: u64, here: usize, field: &Field, random: &mut Rng) -> Deed {
    let shard = random.usize(..field.shards()) as u64;
    let steps = random.usize(1..field.shards().max(2));
    let elsewhere = ((here + steps) % field.shards()) as u64;
    let friends = 1..=4.min(field.players - 1);
    let friend = (player + random.u64(friends)) % field.players;
    match random.u8(..10) {
        0..4 => Deed::Walk(elsewhere),
        4..7 => Deed::Pay {
            to: friend,
            gold: random.u64(1..=10),
        },
        7..9 => Deed::Curse(friend),
        _ => Deed::Ask(shard),
    }
}
