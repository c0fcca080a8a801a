//! The course of the test.

use core::{cell::Cell, net::Ipv4Addr, ops::Range, time::Duration};
use std::{fs, net::TcpListener, path::Path, sync::Arc, thread, time::Instant};

use bevy_due_ownership::Shard;
use rustix::process::Signal;

use crate::{
    audit,
    ledger::ZONES,
    process::{Home, Process},
    seen::Seen,
};

/// How much there is to do.
pub(crate) struct Settings {
    /// The least number of moves.
    moves: u64,
    /// How often each periodic timer fires.
    ticks: u64,
    /// The number of kills at random times.
    random_kills: u64,
    /// The times for which processes are stopped.
    stops: &'static [Duration],
}

pub(crate) const QUICK: Settings = Settings {
    moves: 10_000,
    ticks: 20,
    random_kills: 60,
    stops: &[Duration::from_secs(1), Duration::from_secs(3)],
};

pub(crate) const FULL: Settings = Settings {
    moves: 100_000,
    ticks: 60,
    random_kills: 400,
    stops: &[
        Duration::from_secs(1),
        Duration::from_secs(2),
        Duration::from_secs(3),
        Duration::from_secs(4),
        Duration::from_secs(5),
        Duration::from_secs(6),
    ],
};

/// How long a thousand moves may take on a slow machine.
const COURSE: Duration = Duration::from_secs(30);
/// How long everything on its way may take to arrive.
const REST: Duration = Duration::from_secs(60);

pub(crate) fn run(settings: &Settings) {
    let directory =
        Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("kills_{}", std::process::id()));
    let cluster = Cluster::new(&directory);
    let start = Instant::now();
    let passed = |what: &str| {
        let moves = cluster.seen.moves();
        println!("{:6.1?} {what}, {moves} moves", start.elapsed());
    };
    cluster.populate(settings.ticks);
    passed("spawned");
    let mut processes = cluster.start();
    cluster.stop_in_turn(&mut processes, settings.stops);
    passed("stopped and continued");
    let at_random = settings.random_kills;
    cluster.kill_at_random(&mut processes, at_random, 50..400);
    passed("killed at random");
    let course = COURSE * (settings.moves / 1000) as u32;
    while cluster.seen.moves() < settings.moves && start.elapsed() < course {
        cluster.kill_at_random(&mut processes, 1, 500..2000);
    }
    passed("moved");
    cluster.rest(processes);
    passed("at rest");
    let kills = cluster.kills.get();
    println!("{kills} kills");
    assert!(kills >= at_random, "each process was really killed");
    let Settings { moves, ticks, .. } = *settings;
    audit::check(&cluster.homes, &cluster.seen, moves, ticks);
    passed("checked");
    std::fs::remove_dir_all(directory).expect("it was created");
}

struct Cluster {
    homes: Vec<Home>,
    seen: Arc<Seen>,
    kills: Cell<u64>,
}

impl Cluster {
    fn new(directory: &Path) -> Self {
        let listen = |_| TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a free port");
        // All at once, so that they differ.
        let listeners: Vec<_> = (0..ZONES).map(listen).collect();
        let address = |it: &TcpListener| it.local_addr().expect("a port").to_string();
        let addresses: Vec<_> = listeners.iter().map(address).collect();
        let seen = Arc::new(Seen::default());
        let home = |nth| Home {
            nth,
            file: directory.join(format!("shard_{nth}.redb")),
            addresses: addresses.join(","),
            seen: seen.clone(),
            starts: Arc::default(),
        };
        fs::create_dir_all(directory).expect("a directory");
        let homes: Vec<Home> = (0..ZONES).map(home).collect();
        for home in &homes {
            Shard::create(&home.file).expect("a new file");
        }
        Self {
            homes,
            seen,
            kills: Cell::default(),
        }
    }

    fn start(&self) -> Vec<Process> {
        self.homes.iter().map(Home::start).collect()
    }

    /// Spawns all entities.
    fn populate(&self, ticks: u64) {
        let mut processes = self.start();
        for process in &mut processes {
            process.tell(&format!("spawn {ticks}"));
            assert_eq!(process.reply(), "born");
        }
        processes.into_iter().for_each(Process::kill);
    }

    /// Stops one process after the other for a while, and kills another one meanwhile.
    fn stop_in_turn(&self, processes: &mut Vec<Process>, stops: &[Duration]) {
        for (nth, &stop) in stops.iter().enumerate() {
            let nth = nth % processes.len();
            processes[nth].signal(Signal::STOP);
            thread::sleep(stop / 2);
            self.replace((nth + 1) % processes.len(), processes);
            thread::sleep(stop / 2);
            processes[nth].signal(Signal::CONT);
            thread::sleep(Duration::from_millis(fastrand::u64(300..1000)));
        }
    }

    /// Kills processes, with a time in milliseconds between two kills.
    fn kill_at_random(&self, processes: &mut Vec<Process>, kills: u64, between: Range<u64>) {
        for _ in 0..kills {
            thread::sleep(Duration::from_millis(fastrand::u64(between.clone())));
            self.replace(fastrand::usize(..processes.len()), processes);
        }
    }

    /// Kills a process, and starts another one for its shard.
    fn replace(&self, nth: usize, processes: &mut Vec<Process>) {
        processes.remove(nth).kill();
        self.kills.update(|kills| kills + 1);
        pause();
        processes.insert(nth, self.homes[nth].start());
    }

    /// Waits until nothing is on its way and all timers have ended, and kills all processes.
    fn rest(&self, mut processes: Vec<Process>) {
        for process in &mut processes {
            process.tell("rest");
        }
        let start = Instant::now();
        let mut quiet = 0;
        // An answer is a moment old, so one round is not enough.
        while quiet < 5 {
            let statuses = processes.iter_mut().map(|process| {
                process.tell("status");
                process.reply()
            });
            let statuses: Vec<_> = statuses.collect();
            let is_quiet = statuses.iter().all(|status| status == "status 0 0");
            quiet = if is_quiet { quiet + 1 } else { 0 };
            if start.elapsed() > REST {
                self.seen.fault(format!("waited for rest: {statuses:?}"));
                break;
            }
            thread::sleep(Duration::from_millis(100));
        }
        processes.into_iter().for_each(Process::kill);
    }
}

/// A process is down for a while.
fn pause() {
    thread::sleep(Duration::from_millis(fastrand::u64(0..300)));
}
