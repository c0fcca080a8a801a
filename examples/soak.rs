//! A game in which everything comes and goes, beside towns on threads that write to each other, for
//! as long as you like. It checks itself all the time, and a fault ends it with an error. Every few
//! seconds it prints the numbers of frames and firings, the worst frame, and the memory.
//!
//! ```text
//! cargo run --release --example soak --features worlds -- --seconds 3600 --seed 7
//! ```

use core::{
    error::Error,
    fmt::Display,
    sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed},
    time::Duration,
};
use std::{collections::HashSet, fs, sync::Arc, thread, time::Instant};

use bevy_app::prelude::*;
use bevy_due::{
    ArmedTimers, Clocks, PausedBy, Timer, TimerCancelled, UpdateContext,
    message::{Delivery, MessageCommandsExt, MessageContext, NoAnswer, Packet, Request},
    prelude::*,
    worlds::{
        LoopInterval, Parcel, ParcelCommandsExt, ParcelEntityCommandsExt, Refused, StableKey,
        WorldGroups,
    },
};
use bevy_ecs::{entity::EntityHashMap, lifecycle::Insert, prelude::*};
use bevy_time::{TimePlugin, TimeUpdateStrategy};
use indicatif::ProgressBar;

fn main() -> Result<(), Box<dyn Error>> {
    let (length, seed) = settings()?;
    let post = Arc::new(PostOffice::default());
    let mut towns = WorldGroups::new();
    for key in 0..TOWNS {
        let post = post.clone();
        towns.start("towns", 1, move |app| build_town(app, key, seed, &post))?;
    }
    let mut game = build_game(seed);
    let mut report = Report::new(length);
    while report.start.elapsed() < length {
        let frame = Instant::now();
        game.update();
        report.add(frame.elapsed(), game.world(), &post);
        if let Some(town) = towns.ended().first() {
            return Err(format!("a town has ended: {town:?}").into());
        }
    }
    report.print(game.world(), &post);
    report.check_memory()?;
    // The towns stop writing. Then every question completes, and every letter arrives.
    post.is_closing.store(true, Relaxed);
    thread::sleep(3 * UNTIL);
    let ended = towns.stop();
    let undelivered = ended.iter().flat_map(|town| &town.undelivered);
    let packets = undelivered.filter_map(|undelivered| undelivered.packet());
    let letters = packets.filter(|packet| packet.id() == LETTER).count();
    post.check(letters as u64)
}

/// The number of towns. Each is a world on its own thread.
const TOWNS: u64 = 3;
/// The number of places for monsters. Each holds a monster that may be gone.
const MONSTERS: usize = 5000;
/// The time for an answer. Some questions get none.
const UNTIL: Duration = Duration::from_millis(300);

const LETTER: u32 = 1;
const QUESTION: u32 = 2;
const ANSWER: u32 = 3;

/// Reads the arguments.
fn settings() -> Result<(Duration, u64), lexopt::Error> {
    use lexopt::prelude::*;
    let (mut seconds, mut seed) = (10, 1);
    let mut arguments = lexopt::Parser::from_env();
    while let Some(argument) = arguments.next()? {
        match argument {
            Long("seconds") => seconds = arguments.value()?.parse()?,
            Long("seed") => seed = arguments.value()?.parse()?,
            other => return Err(other.unexpected()),
        }
    }
    Ok((Duration::from_secs(seconds), seed))
}

#[derive(Resource)]
struct Dice(u64);

impl Dice {
    fn roll(&mut self, below: u64) -> u64 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % below
    }

    fn ms(&mut self, below: u64) -> Duration {
        Duration::from_millis(self.roll(below))
    }
}

#[derive(Resource)]
struct Monsters(Vec<Entity>);

#[derive(Message)]
struct Roar(Entity);

/// The number of timers that are armed on each entity, as the events tell.
#[derive(Resource, Default)]
struct Armed(EntityHashMap<i64>);

/// The totals since the start.
#[derive(Resource, Default)]
struct Totals {
    firings: u64,
    roars: u64,
    updates: u64,
}

/// Builds a game in which a frame takes 16 ms, and now and then half a second.
fn build_game(seed: u64) -> App {
    let mut app = App::new();
    app.add_plugins((TimePlugin, DuePlugin::default()))
        .insert_resource(Dice(seed))
        .insert_resource(Monsters(vec![Entity::PLACEHOLDER; MONSTERS]))
        .init_resource::<Armed>()
        .init_resource::<Totals>()
        .add_observer(|armed: On<Insert<Timer>>, mut all: ResMut<Armed>| {
            *all.0.entry(armed.entity).or_default() += 1;
        })
        .add_observer(|cancelled: On<TimerCancelled>, all: ResMut<Armed>| {
            disarm(all, cancelled.entity());
        })
        .add_observer(check_firing)
        .add_systems(First, take_time)
        .add_systems(Update, (replace_monsters, disturb_monsters).chain())
        .add_systems(Last, (check_counts, check_listing));
    app
}

fn take_time(mut dice: ResMut<Dice>, mut time: ResMut<TimeUpdateStrategy>) {
    let millis = if dice.roll(500) == 0 { 240 } else { 16 };
    *time = TimeUpdateStrategy::ManualDuration(Duration::from_millis(millis));
}

/// Replaces some of the monsters by new ones.
fn replace_monsters(
    mut monsters: ResMut<Monsters>,
    mut dice: ResMut<Dice>,
    mut commands: Commands,
) {
    for _ in 0..40 {
        let place = dice.roll(MONSTERS as u64) as usize;
        if let Ok(mut old) = commands.get_entity(monsters.0[place]) {
            old.try_despawn();
        }
        let roar = MessageComponent::new().on(|mut me: MessageContext, roar: &Roar| {
            let is_own = roar.0 == me.entity.id();
            assert!(is_own, "a roar should reach the entity that it was sent to");
            me.commands.queue(|world: &mut World| {
                world.resource_mut::<Totals>().roars += 1;
            });
        });
        let interval = Duration::from_millis(5) + dice.ms(2000);
        let timer = match dice.roll(3) {
            0 => Timer::every(interval),
            1 => Timer::every_between(interval..=2 * interval).times(5),
            _ => Timer::after(interval),
        };
        let monster = commands
            .spawn((roar, timer, DespawnAfter::new(dice.ms(20_000))))
            .id();
        commands
            .entity(monster)
            .set_timer("claw", Timer::every(2 * interval));
        commands.spawn((OwnedBy(monster), Timer::after(interval)));
        if dice.roll(10) == 0 {
            commands
                .entity(monster)
                .insert(UpdateComponent::new(|mut me: UpdateContext| {
                    me.run(|mut totals: ResMut<Totals>| totals.updates += 1, ());
                }));
        }
        monsters.0[place] = monster;
    }
}

/// Pauses, cancels, delays and re-arms timers of some of the monsters.
fn disturb_monsters(monsters: Res<Monsters>, mut dice: ResMut<Dice>, mut commands: Commands) {
    for _ in 0..40 {
        let monster = monsters.0[dice.roll(MONSTERS as u64) as usize];
        let (time, choice) = (dice.ms(500), dice.roll(7));
        commands.queue(move |world: &mut World| {
            let Ok(mut monster) = world.get_entity_mut(monster) else {
                return;
            };
            match choice {
                0 => _ = monster.pause_for(time).pause_for(time / 2),
                1 => _ = monster.cancel_timer("claw"),
                2 => _ = monster.delay_timers_by(time),
                3 => _ = monster.set_timer("claw", Timer::every(time + UNTIL)),
                4 => _ = monster.remove::<Timer>(),
                5 => _ = monster.insert(Timer::after(time)),
                _ => {
                    let entity = monster.id();
                    world.commands().send(entity, Roar(entity));
                }
            }
        });
    }
}

/// Nothing fires early, while paused, or after it was cancelled.
fn check_firing(
    fired: On<TimerFired>,
    clocks: Clocks,
    paused: Query<(), Or<(With<Paused>, With<PausedBy>)>>,
    mut totals: ResMut<Totals>,
    all: ResMut<Armed>,
) {
    totals.firings += 1;
    let now = clocks.now(fired.clock());
    let due = fired.deadline() + fired.lateness();
    assert_eq!(now, Ok(due), "the clock and the lateness should agree");
    let is_paused = paused.contains(fired.entity()) || paused.contains(fired.owner());
    assert!(!is_paused, "{fired:?} fired while paused");
    let armed = all.0.get(&fired.entity()).copied().unwrap_or(0);
    assert!(armed > 0, "{fired:?} fired after it was cancelled");
    if fired.is_last() {
        disarm(all, fired.entity());
    }
}

fn disarm(mut all: ResMut<Armed>, entity: Entity) {
    let armed = all.0.entry(entity).or_default();
    *armed -= 1;
    if *armed == 0 {
        all.0.remove(&entity);
    }
}

/// The queue, the components and the events know the same timers.
fn check_counts(armed: ArmedTimers, timers: Query<(), With<Timer>>, all: Res<Armed>) {
    let counts = [armed.count(), timers.iter().len(), all.0.len()];
    assert_eq!(counts, [counts[0]; 3], "the number of timers");
}

/// Now and then, asks for each of the timers.
fn check_listing(armed: ArmedTimers, timers: Query<Entity, With<Timer>>, mut frames: Local<u64>) {
    *frames += 1;
    if frames.is_multiple_of(256) {
        assert!(timers.iter().all(|timer| armed.get(timer).is_some()));
        assert_eq!(armed.iter().count(), armed.count(), "the listing");
    }
}

/// The letters and questions of all towns.
#[derive(Default)]
struct PostOffice {
    is_closing: AtomicBool,
    posted: AtomicU64,
    arrived: AtomicU64,
    /// Letters to towns that do not exist yet.
    refused: AtomicU64,
    asked: AtomicU64,
    answered: AtomicU64,
    unanswered: AtomicU64,
}

impl PostOffice {
    /// Every question completes once, and no letter is lost.
    fn check(&self, undelivered: u64) -> Result<(), Box<dyn Error>> {
        let posted = self.posted.load(Relaxed);
        let seen = self.arrived.load(Relaxed) + self.refused.load(Relaxed) + undelivered;
        if posted != seen {
            return Err(format!("{posted} letters posted, {seen} seen again").into());
        }
        let completed = self.answered.load(Relaxed) + self.unanswered.load(Relaxed);
        let asked = self.asked.load(Relaxed);
        match completed == asked {
            true => Ok(()),
            false => Err(format!("{asked} questions, {completed} completed").into()),
        }
    }
}

/// The questions of a town that wait for an answer.
#[derive(Component, Default)]
struct Open(HashSet<Request>);

impl Open {
    fn complete(mut me: MessageContext, count: &AtomicU64) {
        count.fetch_add(1, Relaxed);
        let request = me.request();
        let mut open = me.entity.get_mut::<Self>();
        let is_open = request
            .zip(open.as_mut())
            .map(|(request, open)| open.0.remove(&request));
        assert_eq!(is_open, Some(true), "{request:?} completed twice");
    }
}

fn build_town(app: &mut App, key: u64, seed: u64, post: &Arc<PostOffice>) {
    app.add_plugins((TimePlugin, DuePlugin::default()))
        .insert_resource(Dice(seed ^ key << 32))
        .insert_resource(LoopInterval::Every(Duration::from_millis(4)));
    let [letters, refusals, answers, silence, writer] = [(); 5].map(|()| post.clone());
    let mail = MessageComponent::new()
        .on_packet(LETTER, move |_: MessageContext, _: &Packet| {
            letters.arrived.fetch_add(1, Relaxed);
        })
        .on(move |_: MessageContext, _: &Refused| {
            refusals.refused.fetch_add(1, Relaxed);
        })
        .on_packet(QUESTION, |mut me: MessageContext, question: &Packet| {
            // Some questions are too hard.
            if !question.payload()[0].is_multiple_of(8) {
                me.reply(Packet::new(ANSWER, question.payload())).ok();
            }
        })
        .on_packet(ANSWER, move |me: MessageContext, _: &Packet| {
            Open::complete(me, &answers.answered);
        })
        .on(move |me: MessageContext, _: &NoAnswer| Open::complete(me, &silence.unanswered));
    let town = app
        .world_mut()
        .spawn((StableKey(key), Open::default(), mail))
        .id();
    let write =
        move |mut open: Query<&mut Open>, mut dice: ResMut<Dice>, mut commands: Commands| {
            let Ok(mut open) = open.get_mut(town) else {
                return;
            };
            if writer.is_closing.load(Relaxed) {
                return;
            }
            for _ in 0..8 {
                let to: Delivery<StableKey> = match dice.roll(3) {
                    0 => Delivery::InTurn,
                    _ => StableKey(dice.roll(TOWNS)).into(),
                };
                let bytes = [dice.roll(256) as u8; 64];
                if dice.roll(2) == 0 {
                    writer.posted.fetch_add(1, Relaxed);
                    commands.post(Parcel::new("towns", to, Packet::new(LETTER, bytes)));
                } else {
                    writer.asked.fetch_add(1, Relaxed);
                    let question = Parcel::new("towns", to, Packet::new(QUESTION, bytes));
                    let request = commands
                        .entity(town)
                        .ask_world(question, Timer::after(UNTIL));
                    open.0.insert(request);
                }
            }
        };
    app.add_systems(Update, write);
}

/// The times of the reports, and the most memory that a report in the first half has seen.
struct Report {
    start: Instant,
    length: Duration,
    every: Duration,
    next: Duration,
    frames: u64,
    worst: Duration,
    first_half: Option<u64>,
    /// The seconds. A terminal shows them, a pipe does not.
    bar: ProgressBar,
}

impl Report {
    fn new(length: Duration) -> Self {
        let every = (length / 10).min(Duration::from_secs(30));
        Self {
            start: Instant::now(),
            length,
            every,
            next: every,
            frames: 0,
            worst: Duration::ZERO,
            first_half: None,
            bar: ProgressBar::new(length.as_secs()),
        }
    }

    fn add(&mut self, frame: Duration, world: &World, post: &PostOffice) {
        self.frames += 1;
        self.worst = self.worst.max(frame);
        self.bar.set_position(self.start.elapsed().as_secs());
        if self.start.elapsed() >= self.next {
            self.print(world, post);
            if self.next <= self.length / 2 {
                self.first_half = self.first_half.max(memory());
            }
            self.next += self.every;
            self.worst = Duration::ZERO;
        }
    }

    fn print(&self, world: &World, post: &PostOffice) {
        let Totals {
            firings,
            roars,
            updates,
        } = world.resource();
        let [letters, answered, unanswered] =
            [&post.arrived, &post.answered, &post.unanswered].map(|count| count.load(Relaxed));
        let memory = memory().map_or("unknown".into(), |bytes| format!("{} KiB", bytes / 1024));
        self.print_line(format_args!(
            "{:>6.1?}: {} frames, {firings} firings, {updates} updates, {roars} messages, {letters} \
             letters, {answered} answers, {unanswered} without, worst frame {:.1?}, memory {memory}",
            self.start.elapsed(),
            self.frames,
            self.worst,
        ));
    }

    fn print_line(&self, line: impl Display) {
        self.bar.suspend(|| println!("{line}"));
    }

    /// The memory must not grow in the second half. A run of less than a minute is all warm-up.
    fn check_memory(&self) -> Result<(), Box<dyn Error>> {
        let Some((before, end)) = self.first_half.zip(memory()) else {
            return Ok(());
        };
        self.print_line(format_args!(
            "memory: at most {} KiB in the first half, {} KiB at the end",
            before / 1024,
            end / 1024
        ));
        let is_short = self.start.elapsed() < Duration::from_secs(60);
        match is_short || end <= before + before / 4 {
            true => Ok(()),
            false => Err("the memory has grown by more than a quarter".into()),
        }
    }
}

/// Returns the resident memory of this process in bytes, if the system tells it.
fn memory() -> Option<u64> {
    const PAGE: u64 = 4096;
    let statm = fs::read_to_string("/proc/self/statm").ok()?;
    let pages: u64 = statm.split(' ').nth(1)?.parse().ok()?;
    Some(pages * PAGE)
}
