//! Damaged saves are loaded or refused, and end soon.
//!
//! `MUTANTS=100000 cargo test --release --all-features --test it damaged -- --nocapture` plays more of them, and prints
//! how long the slowest one took.

use std::time::Instant;

use bevy_app::App;
use bevy_due::{
    Clock, OnClock, OwnedBy, Timer,
    clock::SpeedModifier,
    message::{Delivery, MessageEntityCommandsExt, MessageWorldExt, Packet},
    moving::{MoveWorldExt, MovedEntity},
    prelude::*,
    save::{SaveWorldExt, SavedTimers},
    timer::Keyed,
};
use bevy_ecs::{
    entity::EntityHashMap,
    error::{FallbackErrorHandler, ignore},
    prelude::*,
};
use serde::{Deserialize, Serialize, de::DeserializeOwned};

use crate::{changed_since::random::Random, support::*};

/// A component that can be nested as deep as data says.
#[derive(Component, Clone, Serialize, Deserialize)]
struct Tree {
    kids: Vec<Tree>,
    friends: EntityHashMap<u8>,
}

/// A component with elements that take no bytes.
#[derive(Component, Clone, Serialize, Deserialize)]
struct Units(Vec<()>);

#[derive(Component, Clone, Serialize, Deserialize)]
struct Target(#[entities] Entity);

#[derive(Message)]
struct Hit(u8);

fn game() -> App {
    let mut app = app();
    // A damaged save may warn of what it names.
    app.insert_resource(FallbackErrorHandler(ignore));
    let world = app.world_mut();
    world.add_saved_component::<Tree>("tree");
    world.add_saved_component::<Units>("units");
    world.add_saved_component::<Target>("target");
    world.add_message_codec(
        "hit",
        |hit: &Hit| Ok([hit.0].into()),
        |data| Ok(Hit(*data.first().ok_or("no byte")?)),
    );
    world.add_timer_handler("grow", |_: In<TimerFired>| {});
    app
}

/// A game with a bit of everything, and its hero.
fn full_game() -> (App, Entity) {
    let mut app = game();
    let world = app.world_mut();
    let arena = world.spawn(Clock::new().with_speed(0.5)).id();
    let ears = || MessageComponent::new().on(|_, _: &Hit| {});
    let hero = world.spawn((ears(), OnClock::new(arena))).id();
    let leaf = Tree {
        kids: Vec::new(),
        friends: [(hero, 1)].into_iter().collect(),
    };
    let tree = Tree {
        kids: vec![leaf.clone(), leaf],
        friends: EntityHashMap::default(),
    };
    world
        .entity_mut(hero)
        .insert((tree, Units(vec![(); 3]), Cooldown::new(1.0).with_charges(2)));
    let poison = (OwnedBy(hero), Keyed::new("poison"), Timer::every(0.5));
    world.spawn((poison, TimerAction::named("grow")));
    world.spawn((Target(hero), Timer::after(3.0).with_jitter(1.0), Paused));
    let slow = (OwnedBy(hero), SpeedModifier::new(arena, 0.5));
    world.spawn((slow, DespawnAfter::new(2.0)));
    world.entity_mut(hero).pause_for(1.5);
    world
        .commands()
        .entity(hero)
        .ask(hero, Hit(1), Timer::after(2.0));
    advance_ms(&mut app, 700);
    let world = app.world_mut();
    world.send(hero, Hit(2)).expect("the plugin");
    world
        .send(Delivery::All, Packet::new(1, [3]))
        .expect("the plugin");
    (app, hero)
}

/// Changes, removes and repeats parts of data.
fn mutant(data: &[u8], random: &mut Random) -> Vec<u8> {
    let mut data = data.to_vec();
    for _ in 0..=random.below(3) {
        let len = data.len() as u64;
        let mut at = random.below(len) as usize;
        if random.one_in(2) {
            // Another number is likely to be read.
            let mut places = (0..data.len()).cycle().skip(at).take(data.len());
            at = places.find(|&at| data[at].is_ascii_digit()).unwrap_or(at);
            data[at] = random.pick(b"0123456789");
            continue;
        }
        let end = (at + random.below(24) as usize).min(data.len());
        match random.below(6) {
            0 => data[at] ^= 1 << random.below(8),
            1 => data[at] = random.pick(b"0189-()[]{},:.\"\xff\x80"),
            2 => _ = data.drain(at..end),
            3 => {
                let copy = data[at..end].to_vec();
                data.splice(at..at, copy);
            }
            4 => {
                let from = random.below(len) as usize;
                let until = (from + 24).min(data.len());
                let copy = data[from..until].to_vec();
                data.splice(at..end, copy);
            }
            _ => _ = data.splice(at..at, *b"99999999999"),
        }
        if data.is_empty() {
            data.push(0);
        }
    }
    data
}

fn read<T: DeserializeOwned>(is_text: bool, data: &[u8]) -> Option<T> {
    match is_text {
        true => ron::de::from_bytes(data).ok(),
        false => postcard::from_bytes(data).ok(),
    }
}

#[test]
fn damaged_saves_are_loaded_or_refused() {
    let (mut full, hero) = full_game();
    let saved = full.world_mut().save_timers().expect("all is data");
    let moved = full.world_mut().copy_entities(&[hero]);
    let moved = moved.into_iter().next().expect("one").expect("all is data");
    let data: [(bool, bool, Vec<u8>); 4] = [
        (true, false, ron::to_string(&saved).expect("data").into()),
        (false, false, postcard::to_allocvec(&saved).expect("data")),
        (true, true, ron::to_string(&moved).expect("data").into()),
        (false, true, postcard::to_allocvec(&moved).expect("data")),
    ];
    let count = std::env::var("MUTANTS").ok();
    let count = count.map_or(400, |count| count.parse().expect("a number"));
    let (mut app, mut loaded, mut slowest) = (game(), 0, (0.0, 0));
    for seed in 0..count {
        let random = &mut Random::new(seed);
        let (is_text, is_moved, data) = &data[seed as usize % data.len()];
        let data = mutant(data, random);
        if app.world().entities().count_spawned() > 2000 {
            app = game();
        }
        let start = Instant::now();
        let mut entities = EntityHashMap::default();
        let world = app.world_mut();
        let is_loaded = match is_moved {
            true => read(*is_text, &data).is_some_and(|moved: MovedEntity| {
                world.put_entity(moved, ms(100), &mut entities).is_ok()
            }),
            false => read(*is_text, &data)
                .is_some_and(|saved: SavedTimers| world.load_timers(&saved, &mut entities).is_ok()),
        };
        let took = start.elapsed().as_secs_f64();
        slowest = if took > slowest.0 {
            (took, seed)
        } else {
            slowest
        };
        loaded += u32::from(is_loaded);
        if is_loaded {
            advance_ms(&mut app, 0);
            advance_ms(&mut app, 100);
            // What is left of it must not stay for the next ones.
            for &entity in entities.values() {
                app.world_mut().try_despawn(entity).ok();
            }
        }
    }
    let (seconds, seed) = slowest;
    println!("{loaded} of {count} were loaded, the slowest one took {seconds:.4} s: number {seed}");
    assert!(loaded > 0, "some do no harm");
}
