use super::*;
use bevy_due::{Delivery, NoAnswer, Outbox, Request};
use bevy_ecs::entity_disabling::Disabled;
use std::{
    collections::{HashMap, VecDeque},
    sync::{Arc, Mutex},
};

#[derive(Message, Clone)]
struct Ask(u64);
#[derive(Message, Clone)]
struct Answer;
#[derive(Message, Clone)]
struct Word(u64);

#[derive(Default)]
struct State {
    seed: u64,
    panics: bool,
    budget: u32,
    opened: Vec<(Request, Entity)>,
    done: HashMap<Request, u32>,
    /// By recipient: the words sent to it alone, in order, and the words it got.
    sent: HashMap<Entity, Vec<u64>>,
    got: HashMap<Entity, Vec<u64>>,
    word: u64,
    panicked: u64,
}

#[derive(Clone, Default, Resource)]
struct Shared(Arc<Mutex<State>>);

impl Shared {
    fn next(&self, n: u64) -> u64 {
        let mut s = self.0.lock().unwrap();
        s.seed = s
            .seed
            .wrapping_mul(6364136223846793005)
            .wrapping_add(1442695040888963407);
        (s.seed >> 33) % n
    }
    fn maybe_panic(&self, n: u64) {
        if self.0.lock().unwrap().panics && self.next(n) == 0 {
            self.0.lock().unwrap().panicked += 1;
            std::panic::resume_unwind(Box::new("fuzz"));
        }
    }
}

#[derive(Resource, Clone)]
struct Cast(Vec<Entity>, Vec<Entity>);

fn component(s: &Shared) -> MessageComponent {
    let [a, b, c, d] = [(); 4].map(|()| s.clone());
    MessageComponent::new()
        .on(move |mut me, _: &Ask| {
            a.maybe_panic(10);
            let what = a.next(5);
            let reply_to = me.reply_to().cloned();
            let again = a.clone();
            me.commands.queue(op);
            if let Some(to) = reply_to {
                if what < 3 {
                    me.commands.reply(to.clone(), Answer);
                }
                if what < 1 {
                    me.commands.reply(to, Answer);
                }
            }
            me.commands
                .queue(move |_: &mut World| again.maybe_panic(15));
            a.maybe_panic(10);
        })
        .on(move |mut me, _: &Answer| {
            if let Some(request) = me.request() {
                *b.0.lock().unwrap().done.entry(request).or_default() += 1;
            }
            me.commands.queue(op);
            b.maybe_panic(10);
        })
        .on(move |mut me, _: &NoAnswer| {
            if let Some(request) = me.request() {
                *c.0.lock().unwrap().done.entry(request).or_default() += 1;
            }
            me.commands.queue(op);
            c.maybe_panic(10);
        })
        .on(move |mut me, word: &Word| {
            d.0.lock()
                .unwrap()
                .got
                .entry(me.entity.id())
                .or_default()
                .push(word.0);
            if d.next(3) == 0 {
                me.commands.queue(op);
            }
            d.maybe_panic(10);
        })
}

fn op(world: &mut World) {
    let s = world.resource::<Shared>().clone();
    {
        let mut s = s.0.lock().unwrap();
        if s.budget == 0 {
            return;
        }
        s.budget -= 1;
    }
    let Cast(people, clocks) = world.resource::<Cast>().clone();
    let a = people[s.next(people.len() as u64) as usize];
    let b = people[s.next(people.len() as u64) as usize];
    let i = s.next(clocks.len() as u64) as usize;
    match s.next(10) {
        0..=2 => {
            let delay = ms(s.next(60));
            let until = match s.next(3) {
                0 => Timer::after(delay).on(clocks[i]),
                _ => Timer::after(delay),
            };
            let to: Delivery = if s.next(4) == 0 {
                Delivery::InTurn
            } else {
                b.into()
            };
            let request = world.commands().entity(a).ask(to, Ask(1), until);
            world.flush();
            s.0.lock().unwrap().opened.push((request, a));
        }
        3 => _ = world.entity_mut(a).insert(component(&s)),
        4 => _ = world.entity_mut(a).insert(Disabled),
        5 => _ = world.entity_mut(a).remove::<Disabled>(),
        6 => {
            world.try_despawn(clocks[i]).ok();
            let clock = world.spawn(Clock::new()).id();
            world.resource_mut::<Cast>().1[i] = clock;
        }
        7 => _ = world.entity_mut(a).cancel_timers(),
        _ => {
            for _ in 0..=s.next(3) {
                let mut g = s.0.lock().unwrap();
                g.word += 1;
                let word = g.word;
                g.sent.entry(a).or_default().push(word);
                drop(g);
                world.send(a, Word(word));
            }
        }
    }
    world.flush();
}

fn game(seed: u64, panics: bool) -> (usize, u64) {
    let mut app = app();
    app.insert_resource(FallbackErrorHandler(ignore));
    let s = Shared::default();
    s.0.lock().unwrap().seed = seed * 7919 + 11;
    app.insert_resource(s.clone());
    let people: Vec<_> = (0..5)
        .map(|_| app.world_mut().spawn(component(&s)).id())
        .collect();
    let clocks: Vec<_> = (0..3)
        .map(|_| app.world_mut().spawn(Clock::new()).id())
        .collect();
    app.insert_resource(Cast(people.clone(), clocks));
    for _ in 0..30 {
        s.0.lock().unwrap().panics = false;
        s.0.lock().unwrap().budget = 30;
        for _ in 0..4 {
            op(app.world_mut());
        }
        s.0.lock().unwrap().panics = panics;
        let by = s.next(30);
        advance_ms(&mut app, by);
    }
    s.0.lock().unwrap().panics = false;
    s.0.lock().unwrap().budget = 0;
    for &p in &people {
        app.world_mut().entity_mut(p).remove::<Disabled>();
    }
    for _ in 0..5 {
        advance_ms(&mut app, 60);
    }
    let g = s.0.lock().unwrap();
    for (request, asker) in &g.opened {
        assert_eq!(
            g.done.get(request),
            Some(&1),
            "seed {seed} {request:?} of {asker}"
        );
    }
    for (person, got) in &g.got {
        // In order, none twice: a subsequence of what was sent.
        let mut sent: VecDeque<u64> = g.sent[person].clone().into();
        for word in got {
            loop {
                let next = sent.pop_front();
                assert!(
                    next.is_some(),
                    "seed {seed}: {person} got {word} out of order or twice: {got:?}"
                );
                if next == Some(*word) {
                    break;
                }
            }
        }
    }
    (g.opened.len(), g.panicked)
}

#[test]
fn without_panics() {
    for seed in 0..40 {
        let n = game(seed, false);
        if seed < 3 {
            eprintln!("{n:?}");
        }
    }
}

#[test]
fn with_panics() {
    for seed in 0..40 {
        let n = game(seed, true);
        if seed < 3 {
            eprintln!("{n:?}");
        }
    }
}

#[test]
fn held_words_come_first_and_once_after_a_panic() {
    let mut app = app();
    app.insert_resource(FallbackErrorHandler(ignore));
    let s = Shared::default();
    let log = s.clone();
    let a = app.world_mut().spawn_empty().id();
    fn listen(log: Shared) -> MessageComponent {
        MessageComponent::new().on(move |mut me, word: &Word| {
            log.0
                .lock()
                .unwrap()
                .got
                .entry(me.entity.id())
                .or_default()
                .push(word.0);
            if word.0 == 1 {
                let me_id = me.entity.id();
                me.commands.entity(me_id).insert(listen(log.clone()));
            }
            assert!(word.0 != 10, "a callback");
        })
    }
    app.world_mut().entity_mut(a).insert(listen(log.clone()));
    let b = app.world_mut().spawn(listen(log.clone())).id();
    advance_ms(&mut app, 1);
    use bevy_ecs::system::RunSystemOnce;
    app.world_mut()
        .run_system_once(move |mut outbox: Outbox| {
            for word in [1, 2, 3] {
                outbox.send(a, Word(word));
            }
            outbox.send(b, Word(10));
            outbox.send(b, Word(11));
            outbox.send(a, Word(4));
        })
        .unwrap();
    app.world_mut().send(a, Word(5));
    app.world_mut().send(Delivery::All, Word(6));
    advance_ms(&mut app, 1);
    app.world_mut().send(a, Word(7));
    advance_ms(&mut app, 1);
    advance_ms(&mut app, 1);
    let g = s.0.lock().unwrap();
    assert_eq!(g.got[&a], [1, 2, 3, 4, 5, 6, 7]);
    assert_eq!(g.got[&b], [10, 11, 6]);
}

#[test]
fn a_request_taken_from_its_owner_is_withdrawn() {
    let mut app = app();
    let s = Shared::default();
    app.insert_resource(s.clone());
    app.insert_resource(Cast(vec![], vec![]));
    let [a, b] = [(); 2].map(|()| app.world_mut().spawn(component(&s)).id());
    advance_ms(&mut app, 1);
    let request = app
        .world_mut()
        .commands()
        .entity(a)
        .ask(b, Ask(1), Timer::after(ms(50)));
    app.world_mut().flush();
    let open = app.world().get::<bevy_due::Owned>(a).unwrap()[0];
    app.world_mut().entity_mut(open).remove::<OwnedBy>();
    for _ in 0..10 {
        advance_ms(&mut app, 10);
    }
    assert_eq!(s.0.lock().unwrap().done.get(&request), None);
    assert!(app.world().get_entity(open).is_err());
}

#[test]
fn commands_of_a_sender_run_in_order_after_a_panic() {
    let mut app = app();
    app.insert_resource(FallbackErrorHandler(ignore));
    let s = Shared::default();
    let a = app.world_mut().spawn_empty().id();
    let sender = app.world_mut().message_sender();
    let log = |s: &Shared, n| {
        let s = s.clone();
        move |_: &mut World| {
            s.0.lock().unwrap().got.entry(a).or_default().push(n);
        }
    };
    sender.run(log(&s, 1)).ok().unwrap();
    sender
        .run(|_: &mut World| panic!("a command"))
        .ok()
        .unwrap();
    sender.run(log(&s, 2)).ok().unwrap();
    sender.run(log(&s, 3)).ok().unwrap();
    advance_ms(&mut app, 1);
    advance_ms(&mut app, 1);
    assert_eq!(s.0.lock().unwrap().got[&a], [1, 2, 3]);
}
