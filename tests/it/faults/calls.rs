//! Every call of every update and message callback panics once, and its commands and systems too.

use std::sync::{Arc, Mutex};

use bevy_app::App;
use bevy_due::{
    Timer, UpdateContext,
    message::{Delivery, MessageCommandsExt, MessageContext, MessageEntityCommandsExt, NoAnswer},
    prelude::*,
};
use bevy_ecs::prelude::*;

use super::{
    fault::{Fault, Place},
    game::faulty_app,
};
use crate::support::*;

const FRAMES: u64 = 10;

/// The calls in order: the frame, the name of the callback, and a value.
type Calls = Vec<(u64, &'static str, u64)>;

#[derive(Clone, Default)]
struct Log {
    fault: Fault,
    frame: Arc<Mutex<u64>>,
    calls: Arc<Mutex<Calls>>,
}

#[derive(Message)]
struct Ping(u64);

#[derive(Message)]
struct Pong(u64);

impl Log {
    /// Writes down a call, then counts it.
    fn call(&self, place: Place, name: &'static str, value: u64) {
        let frame = *self.frame.lock().expect("no panic holds the lock");
        let mut calls = self.calls.lock().expect("no panic holds the lock");
        calls.push((frame, name, value));
        drop(calls);
        self.fault.strike(place);
    }
}

/// Plays the script with a fault, and returns the calls.
fn play(fault: &Fault, add: fn(&mut App, &Log), each_frame: fn(&mut World, u64)) -> Calls {
    let mut app = faulty_app(fault.clone());
    let log = Log {
        fault: fault.clone(),
        ..Log::default()
    };
    add(&mut app, &log);
    for frame in 0..FRAMES {
        *log.frame.lock().expect("no panic holds the lock") = frame;
        if frame < 4 {
            each_frame(app.world_mut(), frame);
            app.world_mut().flush();
        }
        advance_ms(&mut app, 10);
    }
    log.calls.lock().expect("no panic holds the lock").clone()
}

fn add_updates(app: &mut App, log: &Log) {
    for (name, priority) in [("last", 9), ("first", -1), ("second", 0), ("third", 0)] {
        let log = log.clone();
        let callback = UpdateComponent::new(move |mut me: UpdateContext| {
            me.commands.queue(|world: &mut World| {
                world.resource::<Fault>().strike(Place::UpdateCommand);
            });
            me.run(|fault: Res<Fault>| fault.strike(Place::UpdateSystem), ());
            log.call(Place::UpdateCallback, name, me.elapsed.as_millis() as u64);
        });
        app.world_mut().spawn(callback.with_priority(priority));
    }
}

#[test]
fn after_a_panic_the_next_frame_calls_all_callbacks_in_order() {
    let faultless = Fault::default();
    let expected = play(&faultless, add_updates, |_, _| ());
    let of_frame = |calls: &Calls, frame| {
        let calls = calls.iter().filter(|call| call.0 == frame);
        calls.map(|call| call.1).collect::<Vec<_>>()
    };
    for (place, calls) in faultless.made() {
        for nth in 0..calls {
            let fault = Fault::at(place, nth);
            let calls = play(&fault, add_updates, |_, _| ());
            assert!(fault.is_struck(), "call {nth} of {place:?} should panic");
            // Only the panic of a callback itself ends the run.
            let cut = (place == Place::UpdateCallback).then_some((nth / 4, nth as usize % 4 + 1));
            for frame in 0..FRAMES {
                let mut order = of_frame(&expected, frame);
                if let Some((at, called)) = cut
                    && frame == at
                {
                    order.truncate(called);
                }
                assert_eq!(
                    of_frame(&calls, frame),
                    order,
                    "frame {frame} after a panic in call {nth} of {place:?}"
                );
            }
        }
    }
}

fn add_followers(app: &mut App, log: &Log) {
    for name in ["ann", "bob"] {
        let [ping, pong, no_answer] = [(); 3].map(|()| log.clone());
        let follower = MessageComponent::new()
            .on(move |mut me: MessageContext, &Ping(value): &Ping| {
                me.commands.queue(|world: &mut World| {
                    world.resource::<Fault>().strike(Place::MessageCommand);
                });
                me.run(|fault: Res<Fault>| fault.strike(Place::MessageSystem), ());
                // Odd pings get no answer.
                if value % 2 == 0 {
                    me.reply(Pong(value)).ok();
                }
                ping.call(Place::MessageCallback, name, value);
            })
            .on(move |_: MessageContext, &Pong(value): &Pong| {
                pong.call(Place::MessageCallback, "pong", value);
            })
            .on(move |_: MessageContext, _: &NoAnswer| {
                no_answer.call(Place::MessageCallback, "no answer", 0);
            });
        app.world_mut().spawn((Tag(name), follower));
    }
}

fn send(world: &mut World, frame: u64) {
    let mut followers = world.query::<(Entity, &Tag)>();
    let follower = followers.iter(world).find(|(_, tag)| tag.0 == "ann");
    let (ann, _) = follower.expect("the follower was spawned");
    let value = 10 * frame;
    let mut commands = world.commands();
    commands.send(Delivery::All, Ping(value + 1));
    commands.send(Delivery::InTurn, Ping(value + 3));
    commands.send(ann, Ping(value + 5));
    let until = || Timer::after(ms(45));
    commands
        .entity(ann)
        .ask(Delivery::InTurn, Ping(value + 6), until());
    commands
        .entity(ann)
        .ask(Delivery::InTurn, Ping(value + 7), until());
}

#[test]
fn every_message_is_delivered_once_and_every_request_completes_once() {
    let sorted = |mut calls: Calls| {
        // A fault may delay a delivery to the next frame.
        calls.iter_mut().for_each(|call| call.0 = 0);
        calls.sort();
        calls
    };
    let faultless = Fault::default();
    let expected = sorted(play(&faultless, add_followers, send));
    let count = |name| expected.iter().filter(|call| call.1 == name).count();
    assert_eq!([count("pong"), count("no answer")], [4, 4]);
    for (place, calls) in faultless.made() {
        for nth in 0..calls {
            let fault = Fault::at(place, nth);
            let calls = sorted(play(&fault, add_followers, send));
            assert!(fault.is_struck(), "call {nth} of {place:?} should panic");
            assert_eq!(calls, expected, "after a panic in call {nth} of {place:?}");
        }
    }
}
