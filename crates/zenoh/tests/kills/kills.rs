//! The course of the test.

use core::{cell::Cell, net::Ipv4Addr, ops::Range, time::Duration};
use std::{collections::BTreeMap, net::TcpListener, path::Path, sync::Arc, thread, time::Instant};

use bevy_due_ownership::{JOURNAL_CRASH_POINTS, ZONE_CRASH_POINTS};
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
    /// At which pass of each crash point a process kills itself, in turn.
    passes: &'static [u64],
    /// The number of kills at random times.
    random_kills: u64,
    /// The times for which processes are stopped.
    stops: &'static [Duration],
}

pub(crate) const QUICK: Settings = Settings {
    moves: 1000,
    ticks: 20,
    passes: &[2],
    random_kills: 20,
    stops: &[Duration::from_secs(1), Duration::from_secs(3)],
};

pub(crate) const FULL: Settings = Settings {
    moves: 10_000,
    ticks: 60,
    passes: &[1, 2, 3, 5, 9],
    random_kills: 160,
    stops: &[
        Duration::from_secs(1),
        Duration::from_secs(2),
        Duration::from_secs(3),
        Duration::from_secs(4),
        Duration::from_secs(5),
        Duration::from_secs(6),
    ],
};

/// A process passes these points once in its life.
const ONCE: [&str; 6] = [
    "tail.cut",
    "boot.synced",
    "journal.opened",
    "zone.recovered",
    "zone.brought_back",
    "zone.opened",
];

/// How long entities may take to move as often as planned, on a slow machine.
const COURSE: Duration = Duration::from_secs(300);
/// A process passes these points in each frame. In the first frames it has not found the others.
const EACH_FRAME: [&str; 9] = [
    "batch.half_written",
    "batch.written",
    "batch.synced",
    "effects.half_released",
    "effects.released",
    "frame.begun",
    "frame.captured",
    "frame.told",
    "frame.submitted",
];
const FIRST_FRAMES: u64 = 25;

/// How long a process may take to reach a crash point.
const REACH: Duration = Duration::from_secs(40);
/// How long everything on its way may take to arrive.
const REST: Duration = Duration::from_secs(60);

/// How often processes were killed at each point.
type Kills = BTreeMap<&'static str, u64>;

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
    let (kills, mut processes) = cluster.kill_at_points(settings.passes);
    passed("killed at each point");
    cluster.stop_in_turn(&mut processes, settings.stops);
    passed("stopped and continued");
    let at_random = settings.random_kills;
    cluster.kill_at_random(&mut processes, at_random, 50..400);
    passed("killed at random");
    while cluster.seen.moves() < settings.moves && start.elapsed() < COURSE {
        cluster.kill_at_random(&mut processes, 1, 500..2000);
    }
    passed("moved");
    cluster.rest(processes);
    passed("at rest");
    let planned = settings.passes.len() as u64;
    check_kills(&kills, planned, at_random, cluster.random_kills());
    let Settings { moves, ticks, .. } = *settings;
    audit::check(&cluster.homes, &cluster.seen, moves, ticks);
    passed("checked");
    std::fs::remove_dir_all(directory).expect("it was created");
}

/// Each process was really killed, and as often as planned.
fn check_kills(kills: &Kills, planned: u64, planned_at_random: u64, at_random: u64) {
    for (point, count) in kills {
        println!("{count:6} kills at {point}");
    }
    let at_points: u64 = kills.values().sum();
    println!("{at_points} kills at crash points, and {at_random} at random times");
    for point in JOURNAL_CRASH_POINTS.iter().chain(ZONE_CRASH_POINTS) {
        let count = kills.get(point).copied().unwrap_or_default();
        assert_eq!(count, planned, "kills at {point}");
    }
    assert!(at_random >= planned_at_random, "kills at random times");
}

struct Cluster {
    homes: Vec<Home>,
    seen: Arc<Seen>,
    random_kills: Cell<u64>,
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
            directory: directory.join(format!("shard_{nth}")),
            addresses: addresses.join(","),
            seen: seen.clone(),
            starts: Arc::default(),
        };
        let homes = (0..ZONES).map(home).collect();
        let random_kills = Cell::new(0);
        Self {
            homes,
            seen,
            random_kills,
        }
    }

    fn random_kills(&self) -> u64 {
        self.random_kills.get()
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

    /// Kills processes at all crash points, all shards at the same time.
    fn kill_at_points(&self, passes: &[u64]) -> (Kills, Vec<Process>) {
        let mut plans = vec![Vec::new(); self.homes.len()];
        let points = JOURNAL_CRASH_POINTS.iter().chain(ZONE_CRASH_POINTS);
        for (row, &point) in points.enumerate() {
            for (column, &pass) in passes.iter().enumerate() {
                let pass = match point {
                    _ if ONCE.contains(&point) => 1,
                    _ if EACH_FRAME.contains(&point) => FIRST_FRAMES * pass,
                    _ => pass,
                };
                plans[(row + column) % self.homes.len()].push((point, pass));
            }
        }
        let (mut kills, mut processes) = (Kills::new(), Vec::new());
        thread::scope(|scope| {
            let lanes: Vec<_> = (self.homes.iter().zip(&mut plans))
                .map(|(home, plan)| {
                    fastrand::shuffle(plan);
                    scope.spawn(|| kill_in_turn(home, plan))
                })
                .collect();
            for lane in lanes {
                let (points, process) = lane.join().expect("the kills succeed");
                for point in points {
                    *kills.entry(point).or_default() += 1;
                }
                processes.push(process);
            }
        });
        (kills, processes)
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
        self.random_kills.update(|kills| kills + 1);
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

/// Lets processes of a shard die at these points. Returns the points at which they did, and one more process.
fn kill_in_turn(home: &Home, plan: &[(&'static str, u64)]) -> (Vec<&'static str>, Process) {
    let mut reached = Vec::new();
    for &(point, pass) in plan {
        // What lies behind a point may come too seldom for a late pass.
        let is_reached = [pass, 1].into_iter().any(|pass| {
            pause();
            home.start_to_die(point, pass).dies_within(REACH)
        });
        if is_reached {
            reached.push(point);
        }
    }
    // The others need it to reach their points.
    (reached, home.start())
}
