//! A game that is interrupted goes on as if it had not been: saved and loaded, moved to another world,
//! rolled back, or struck by panics.

mod game;
mod play;
mod script;

use core::time::Duration;
use std::panic::resume_unwind;

use bevy_app::App;
use bevy_due::{
    Timer, TimerAction, UpdateComponent,
    message::{MessageWorldExt, Packet},
    moving::{MoveError, MoveWorldExt, MovedEntity},
    prelude::*,
    rollback::{RollbackWorldExt, TimerSnapshot},
    save::{SaveWorldExt, SavedTimers},
};
use bevy_ecs::{entity::EntityHashMap, prelude::*};
use bevy_time::prelude::*;
use proptest::{prelude::*, test_runner::FileFailurePersistence};
use serde::{Serialize, de::DeserializeOwned};

use game::{Cast, Game, Seen};
use play::{at, ears};
use script::{Format, PARTIES, Script, Way, any_script};

/// How far a game has come, and what it can go back to.
struct Progress<'a> {
    game: Game,
    script: &'a Script,
    frame: usize,
    moments: Vec<Moment>,
    /// Whether a party has moved. The parties then have no common order.
    is_apart: bool,
    /// Whether a stranger in each world panics in the next frame.
    panics: bool,
}

/// A moment to go back to.
struct Moment {
    frame: usize,
    homes: [usize; PARTIES],
    worlds: [(TimerSnapshot, Times, Cast); 2],
}

type Times = (Time<Real>, Time<Virtual>, Time<Fixed>, Time);

impl Format {
    /// Sends data through text or bytes, as to a file or another process.
    fn through<T: Serialize + DeserializeOwned>(self, data: &T) -> T {
        match self {
            Self::Ron => {
                let text = ron::to_string(data).expect("it should serialize");
                ron::from_str(&text).unwrap_or_else(|error| panic!("{error}: {text}"))
            }
            Self::Postcard => {
                let bytes = postcard::to_allocvec(data).expect("it should serialize");
                postcard::from_bytes(&bytes).expect("it should deserialize")
            }
        }
    }
}

impl<'a> Progress<'a> {
    fn new(script: &'a Script) -> Self {
        Self {
            game: Game::new(script),
            script,
            frame: 0,
            moments: Vec::new(),
            is_apart: false,
            panics: false,
        }
    }

    fn play(&mut self) -> Seen {
        let frame = &self.script.frames[self.frame];
        self.frame += 1;
        self.game.prepare(frame);
        if self.panics {
            self.game.worlds.iter_mut().for_each(spawn_stranger);
        }
        let seen = self.game.run(frame);
        if self.panics {
            self.game.worlds.iter_mut().for_each(despawn_stranger);
        }
        self.panics = false;
        seen
    }

    fn interrupt(&mut self, way: &Way) {
        self.game.sweep();
        match *way {
            Way::Save(format) => {
                self.moments.clear();
                for world in 0..2 {
                    self.game.load(world, |old, new, map| {
                        let saved = old
                            .save_timers()
                            .expect("all actions and messages are data");
                        let saved: SavedTimers = format.through(&saved);
                        let loaded = new.load_timers(&saved, map);
                        loaded.expect("the data is valid");
                    });
                }
            }
            Way::Move(party, format) => self.move_party(party, format, true),
            Way::Return(party, format) => self.move_party(party, format, false),
            Way::Predict { inputs, frames } => {
                let moment = self.moment();
                let others = self.script.frames.iter().cycle();
                for frame in others.skip(inputs).take(frames) {
                    self.game.play(frame);
                }
                self.go_back(&moment);
            }
            Way::Mark => {
                let moment = self.moment();
                self.moments.push(moment);
            }
            Way::Back(nth) => {
                if !self.moments.is_empty() {
                    let moments = core::mem::take(&mut self.moments);
                    self.go_back(&moments[nth % moments.len()]);
                    self.moments = moments;
                }
            }
            Way::Panic => self.panics = true,
        }
    }

    /// Moves a party to the other world, or puts it back where it was. If a message can't move along,
    /// nothing changes.
    fn move_party(&mut self, party: usize, format: Format, stays: bool) {
        let home = self.game.homes[party];
        let [left, right] = &mut self.game.worlds;
        let (here, there) = match home {
            0 => (left.world_mut(), right.world_mut()),
            _ => (right.world_mut(), left.world_mut()),
        };
        let root = at(here, party, 0).expect("it never despawns");
        let moved = match here.take_entity(root) {
            Ok(moved) => moved,
            Err(MoveError::Mail(_)) => return,
            Err(error) => panic!("{error}"),
        };
        // A game does not roll back past a move.
        self.moments.clear();
        self.is_apart = true;
        let slots = core::mem::take(&mut here.resource_mut::<Cast>().slots[party]);
        let end = if stays { there } else { here };
        let moved: MovedEntity = format.through(&moved);
        let mut map = EntityHashMap::default();
        let put = end.put_entity(moved, Duration::ZERO, &mut map);
        put.expect("the data is valid");
        let slots = slots.map(|slot| slot.map(|entity| map[&entity]));
        for &entity in slots.iter().flatten() {
            end.entity_mut(entity).insert(ears());
        }
        end.resource_mut::<Cast>().slots[party] = slots;
        if stays {
            self.game.homes[party] = 1 - home;
        }
    }

    fn moment(&mut self) -> Moment {
        Moment {
            frame: self.frame,
            homes: self.game.homes,
            worlds: self.game.worlds.each_mut().map(|app| {
                let timers = app.world_mut().snapshot_timers();
                let world = app.world();
                let times = (
                    *world.resource(),
                    *world.resource(),
                    *world.resource(),
                    *world.resource(),
                );
                (timers, times, world.resource::<Cast>().clone())
            }),
        }
    }

    fn go_back(&mut self, moment: &Moment) {
        self.frame = moment.frame;
        self.game.homes = moment.homes;
        for (app, (timers, times, cast)) in self.game.worlds.iter_mut().zip(&moment.worlds) {
            // The log knows the earlier names.
            let mut map = EntityHashMap::default();
            let mut cast = cast.clone();
            app.world_mut().restore_timers(timers, &mut map);
            let (real, game, fixed, time) = *times;
            app.insert_resource(real)
                .insert_resource(game)
                .insert_resource(fixed)
                .insert_resource(time);
            let world = app.world_mut();
            for entity in cast.slots.as_flattened_mut().iter_mut().flatten() {
                *entity = map.get(entity).copied().unwrap_or(*entity);
                world.entity_mut(*entity).insert_if_new(ears());
            }
            let later = core::mem::take(&mut *world.resource_mut::<Cast>());
            for &entity in later.slots.as_flattened().iter().flatten() {
                if cast.find(entity).is_none() {
                    world.try_despawn(entity).ok();
                }
            }
            world.insert_resource(cast);
        }
    }
}

/// The packet for strangers.
const STRANGE: u32 = 3;

#[derive(Component)]
struct Stranger;

/// Panics without a message, so that the output stays clean.
fn panic_quietly() {
    resume_unwind(Box::new("a stranger panics"));
}

/// Spawns an entity whose handlers panic in the next frame, each as the last of its kind.
fn spawn_stranger(app: &mut App) {
    let act = TimerAction::call(|world: &mut World, fired| {
        let sent = world.send(fired.entity(), Packet::new(STRANGE, []));
        sent.expect("there is room");
        panic_quietly();
    });
    let update = UpdateComponent::new(|_| panic_quietly()).with_priority(i32::MAX);
    let follow = MessageComponent::new().on_packet(STRANGE, |_, _| panic_quietly());
    let timer = (Clock::new(), Timer::after(0), act);
    app.world_mut().spawn((Stranger, timer, update, follow));
}

fn despawn_stranger(app: &mut App) {
    let world = app.world_mut();
    let mut strangers = world.query_filtered::<Entity, With<Stranger>>();
    let stranger = strangers
        .single(world)
        .expect("it was spawned before the frame");
    world.despawn(stranger);
}

/// Plays a game without interruptions, and returns what was seen in each frame.
fn uninterrupted(script: &Script) -> Vec<Seen> {
    let mut game = Game::new(script);
    let frames = script.frames.iter();
    frames.map(|frame| game.play(frame)).collect()
}

/// Checks that a game goes on in the same way after each interruption.
fn check(script: &Script) {
    let expected = uninterrupted(script);
    let mut progress = Progress::new(script);
    let mut interruptions = script.interruptions.iter().peekable();
    let mut last = None;
    while progress.frame < expected.len() {
        while let Some(it) = interruptions.next_if(|it| it.frame <= progress.frame) {
            last = Some((progress.frame, &it.way));
            progress.interrupt(&it.way);
        }
        let nth = progress.frame;
        let seen = progress.play();
        let difference = seen.difference(&expected[nth], progress.is_apart);
        if let Some(difference) = difference {
            panic!("{difference}in frame {nth}, after {last:?}, of\n{script:?}");
        }
    }
}

fn config(games: u32) -> ProptestConfig {
    let failures = FileFailurePersistence::Direct("proptest-regressions/interrupted.txt");
    let cases = std::env::var("GAMES").ok();
    ProptestConfig {
        cases: cases.map_or(games, |cases| cases.parse().expect("a number of games")),
        max_shrink_iters: 4096,
        failure_persistence: Some(Box::new(failures)),
        ..ProptestConfig::default()
    }
}

proptest! {
    #![proptest_config(config(16))]

    #[test]
    fn an_interrupted_game_goes_on_as_the_uninterrupted_one(script in any_script(40, 0)) {
        check(&script);
    }
}

proptest! {
    #![proptest_config(config(1))]

    /// So many timers that the queue keeps most of them in its wheel.
    #[test]
    fn an_interrupted_crowd_goes_on_as_the_uninterrupted_one(script in any_script(20, 3000)) {
        check(&script);
    }
}
