//! Random games with messages, in which callbacks send, ask, reply, replace components and panic.
//!
//! Every request completes once, and every person gets words in the order in which they were sent.

use super::{
    message_script::{CLOCKS, Frame, Op, PEOPLE, PanicAt, Question, Reaction, any_frames},
    *,
};
use crate::support::*;
use bevy_due::{
    DueEntityCommandsExt,
    message::{
        Delivery, MessageCommandsExt, MessageContext, MessageEntityCommandsExt, MessageWorldExt,
        NoAnswer, Request,
    },
};
use bevy_ecs::entity_disabling::Disabled;
use proptest::prelude::*;
use std::{
    collections::{HashMap, VecDeque},
    panic::resume_unwind,
    sync::{Arc, Mutex, MutexGuard},
};

/// The frames after the script. Each is longer than any time-out.
const QUIET_FRAMES: usize = 5;
const QUIET_FRAME_MILLIS: u64 = 60;

proptest! {
    #![proptest_config(game_config())]

    #[test]
    fn every_request_completes_once_whatever_callbacks_do(frames in any_frames()) {
        play(&frames, false);
    }

    #[test]
    fn every_request_completes_once_even_if_callbacks_panic(frames in any_frames()) {
        play(&frames, true);
    }
}

#[derive(Message, Clone)]
struct Ask;

#[derive(Message, Clone)]
struct Answer;

#[derive(Message, Clone)]
struct Word(u64);

#[derive(Resource, Clone)]
struct Cast {
    people: Vec<Entity>,
    clocks: Vec<Entity>,
}

/// The messages and requests of the game. Callbacks cannot reach resources, so they share it.
#[derive(Default)]
struct Record {
    reactions: VecDeque<Reaction>,
    /// Each request with its asker.
    requests: Vec<(Request, Entity)>,
    completions: HashMap<Request, u32>,
    last_word: u64,
    /// The words sent to each person alone.
    sent: HashMap<Entity, Vec<u64>>,
    received: HashMap<Entity, Vec<u64>>,
}

#[derive(Clone, Default, Resource)]
struct Shared(Arc<Mutex<Record>>);

impl Shared {
    fn record(&self) -> MutexGuard<'_, Record> {
        self.0.lock().unwrap()
    }

    fn next_reaction(&self) -> Reaction {
        self.record().reactions.pop_front().unwrap_or_default()
    }

    fn complete(&self, request: Option<Request>) {
        if let Some(request) = request {
            *self.record().completions.entry(request).or_default() += 1;
        }
    }

    fn receive(&self, person: Entity, word: u64) {
        let mut record = self.record();
        record.received.entry(person).or_default().push(word);
    }

    /// Returns the component of a person.
    fn component(&self) -> MessageComponent {
        let [asks, answers, no_answers, words] = [(); 4].map(|()| self.clone());
        MessageComponent::new()
            .on(move |mut me, _: &Ask| asks.next_reaction().reply(&mut me))
            .on(move |mut me, _: &Answer| {
                answers.complete(me.request());
                answers.next_reaction().play(&mut me);
            })
            .on(move |mut me, _: &NoAnswer| {
                no_answers.complete(me.request());
                no_answers.next_reaction().play(&mut me);
            })
            .on(move |mut me, &Word(word): &Word| {
                words.receive(me.entity.id(), word);
                words.next_reaction().play(&mut me);
            })
    }
}

impl Reaction {
    /// Replies to the question in `me`, and plays the rest.
    fn reply(self, me: &mut MessageContext) {
        self.panic_at(PanicAt::StartOfCallback);
        if let Some(reply_to) = me.reply_to().cloned() {
            for _ in 0..self.replies {
                me.commands.reply(reply_to.clone(), Answer);
            }
        }
        self.play(me);
    }

    fn play(self, me: &mut MessageContext) {
        self.panic_at(PanicAt::StartOfCallback);
        if let Some(op) = self.op.clone() {
            me.commands.queue(|world: &mut World| op.play(world));
        }
        self.panic_at(PanicAt::EndOfCallback);
        me.commands
            .queue(move |_: &mut World| self.panic_at(PanicAt::Command));
    }

    /// Panics without a message, so that the output stays clean.
    fn panic_at(&self, place: PanicAt) {
        if self.panic == Some(place) {
            resume_unwind(Box::new("the script says so"));
        }
    }
}

impl Op {
    fn play(self, world: &mut World) {
        let shared = world.resource::<Shared>().clone();
        let Cast { people, clocks } = world.resource::<Cast>().clone();
        match self {
            Self::Ask(asker, question) => question.ask(world, people[asker]),
            Self::SendWords(to, words) => send_words(world, people[to], words),
            Self::ReplaceComponent(person) => {
                world.entity_mut(people[person]).insert(shared.component());
            }
            Self::Disable(person) => _ = world.entity_mut(people[person]).insert(Disabled),
            Self::Enable(person) => _ = world.entity_mut(people[person]).remove::<Disabled>(),
            Self::CancelTimers(person) => _ = world.entity_mut(people[person]).cancel_timers(),
            Self::ReplaceClock(clock) => {
                world.try_despawn(clocks[clock]).ok();
                let new = world.spawn(Clock::new()).id();
                world.resource_mut::<Cast>().clocks[clock] = new;
            }
        }
        world.flush();
    }
}

impl Question {
    fn ask(self, world: &mut World, asker: Entity) {
        let cast = world.resource::<Cast>();
        let mut time_out = Timer::after(ms(self.time_out_millis));
        if let Some(clock) = self.clock {
            time_out = time_out.on(cast.clocks[clock]);
        }
        let to = match self.to {
            Some(person) => cast.people[person].into(),
            None => Delivery::InTurn,
        };
        let request = world.commands().entity(asker).ask(to, Ask, time_out);
        world.flush();
        let mut record = world.resource::<Shared>().record();
        record.requests.push((request, asker));
    }
}

fn send_words(world: &mut World, to: Entity, words: usize) {
    let shared = world.resource::<Shared>().clone();
    for _ in 0..words {
        let mut record = shared.record();
        record.last_word += 1;
        let word = record.last_word;
        record.sent.entry(to).or_default().push(word);
        drop(record);
        world.send(to, Word(word)).unwrap();
    }
}

fn new_game() -> App {
    let mut app = app();
    ignore_errors(&mut app);
    let shared = Shared::default();
    let mut spawn_person = || app.world_mut().spawn(shared.component()).id();
    let people = (0..PEOPLE).map(|_| spawn_person()).collect();
    let mut spawn_clock = || app.world_mut().spawn(Clock::new()).id();
    let clocks = (0..CLOCKS).map(|_| spawn_clock()).collect();
    app.insert_resource(Cast { people, clocks });
    app.insert_resource(shared);
    app
}

fn play(frames: &[Frame], with_panics: bool) {
    let mut app = new_game();
    for frame in frames {
        play_frame(&mut app, frame.clone(), with_panics);
        let shared = app.world().resource::<Shared>();
        check_no_request_completed_twice(&shared.record());
        check_words_arrived_in_order(&shared.record());
    }
    play_quiet_frames(&mut app);
    let shared = app.world().resource::<Shared>();
    check_no_request_completed_twice(&shared.record());
    check_every_request_completed_once(&shared.record());
    check_words_arrived_in_order(&shared.record());
}

/// Panics are caught in a frame only, so the reactions become known after the operations before it.
fn play_frame(app: &mut App, frame: Frame, with_panics: bool) {
    for op in frame.ops {
        op.play(app.world_mut());
    }
    let mut reactions = frame.reactions;
    if !with_panics {
        for reaction in &mut reactions {
            reaction.panic = None;
        }
    }
    app.world().resource::<Shared>().record().reactions = reactions.into();
    advance_ms(app, frame.millis);
}

/// Enables every person, and runs frames until every request has timed out.
fn play_quiet_frames(app: &mut App) {
    app.world().resource::<Shared>().record().reactions.clear();
    // Runs the commands that a panic in the last frame left behind. They may disable a person.
    advance_ms(app, 0);
    for person in app.world().resource::<Cast>().people.clone() {
        app.world_mut().entity_mut(person).remove::<Disabled>();
    }
    for _ in 0..QUIET_FRAMES {
        advance_ms(app, QUIET_FRAME_MILLIS);
    }
}

fn check_no_request_completed_twice(record: &Record) {
    for (request, &completions) in &record.completions {
        assert!(
            completions <= 1,
            "{request:?} completed {completions} times"
        );
    }
}

fn check_every_request_completed_once(record: &Record) {
    for (request, asker) in &record.requests {
        let completions = record.completions.get(request).copied();
        assert_eq!(
            completions.unwrap_or(0),
            1,
            "{request:?} of {asker} should complete once"
        );
    }
}

/// Some words never arrive. Those that do must arrive once and in order: the received words are a
/// subsequence of the sent ones.
fn check_words_arrived_in_order(record: &Record) {
    for (person, received) in &record.received {
        let mut sent = record.sent[person].iter();
        for word in received {
            assert!(
                sent.any(|sent_word| sent_word == word),
                "{person} got {word} twice or out of order: {received:?}"
            );
        }
    }
}
