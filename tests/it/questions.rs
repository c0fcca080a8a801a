//! Requests with a time-out: a reply or `NoAnswer`, and never both.

use std::{
    collections::{HashMap, HashSet},
    panic::resume_unwind,
};

use crate::support::*;
use bevy_app::{App, PreUpdate};
use bevy_due::{
    Timer, TimerAction, TimerCancelled, TimerFired, UpdateContext,
    message::{
        Delivery, MessageCommandsExt, MessageContext, MessageEntityCommandsExt, MessageStats,
        MessageWorldExt, NoAnswer, ReplyError, ReplyTo, Request,
    },
    prelude::*,
};
use bevy_ecs::{
    entity_disabling::Disabled,
    error::{FallbackErrorHandler, ignore, panic},
    prelude::*,
};
use bevy_time::{Fixed, Time, Virtual};
use proptest::prelude::*;

#[derive(Message, Clone, Copy, Debug)]
struct Question(u32);

#[derive(Message, Clone, Copy, Debug)]
struct Answer(u32);

/// The completed requests, in order, with the reply or `None`.
#[derive(Component, Default)]
struct Told(Vec<(Request, Option<u32>)>);

/// Requests without a reply yet.
#[derive(Component, Default)]
struct Open(Vec<(u32, ReplyTo)>);

/// Follows replies and `NoAnswer`.
fn asker() -> impl Bundle {
    let tell = |mut me: MessageContext, answer: Option<u32>| {
        assert_eq!(me.reply_to(), None, "an answer is no question");
        let session = me.request().expect("should say which question");
        me.entity
            .get_mut::<Told>()
            .unwrap()
            .0
            .push((session, answer));
    };
    let follows = MessageComponent::new()
        .on(move |me: MessageContext, answer: &Answer| tell(me, Some(answer.0)))
        .on(move |me: MessageContext, none: &NoAnswer| {
            assert_eq!(*none, NoAnswer::TimedOut);
            tell(me, None);
        });
    (Told::default(), follows)
}

/// Replies at once with the double.
fn doubling() -> MessageComponent {
    MessageComponent::new()
        .on(|mut me: MessageContext, question: &Question| me.reply(Answer(2 * question.0)))
}

/// Keeps requests for later.
fn thinking() -> impl Bundle {
    let keep = |mut me: MessageContext, question: &Question| {
        let reply_to = me.reply_to().expect("should be a question").clone();
        assert_eq!(me.request(), Some(reply_to.request()));
        let mut open = me.entity.get_mut::<Open>().unwrap();
        open.0.push((question.0, reply_to));
    };
    (Open::default(), MessageComponent::new().on(keep))
}

/// An app with an asking entity and an asked entity.
fn question_app(asked: impl Bundle) -> (App, Entity, Entity) {
    let mut app = app();
    let asking = app.world_mut().spawn(asker()).id();
    let asked = app.world_mut().spawn(asked).id();
    (app, asking, asked)
}

/// Makes a request that is open for a number of milliseconds.
fn ask(app: &mut App, asker: Entity, to: impl Into<Delivery>, nth: u32, millis: u64) -> Request {
    ask_until(app, asker, to, nth, Timer::after(ms(millis)))
}

fn ask_until(
    app: &mut App,
    asker: Entity,
    to: impl Into<Delivery>,
    nth: u32,
    until: Timer,
) -> Request {
    let mut commands = app.world_mut().commands();
    let session = commands.entity(asker).ask(to, Question(nth), until);
    app.world_mut().flush();
    session
}

/// An action that replies.
fn replying(reply_to: ReplyTo, nth: u32) -> TimerAction {
    TimerAction::call(move |world: &mut World, _| {
        world.commands().reply(reply_to.clone(), Answer(nth));
    })
}

/// Takes the requests that were kept.
fn open(app: &mut App, asked: Entity) -> Vec<(u32, ReplyTo)> {
    core::mem::take(&mut app.world_mut().get_mut::<Open>(asked).unwrap().0)
}

/// Replies to a request.
fn answer(app: &mut App, reply_to: ReplyTo, nth: u32) {
    app.world_mut().commands().reply(reply_to, Answer(nth));
    app.world_mut().flush();
}

fn told(app: &mut App, asker: Entity) -> Vec<(Request, Option<u32>)> {
    core::mem::take(&mut app.world_mut().get_mut::<Told>(asker).unwrap().0)
}

/// The numbers of undeliverable and late messages.
fn dropped(app: &App) -> (u64, u64) {
    let stats = app.world().resource::<MessageStats>();
    (stats.undeliverable, stats.late)
}

fn is_open(app: &App, session: Request) -> bool {
    app.world().get_entity(session.entity().unwrap()).is_ok()
}

#[test]
fn a_request_completes_with_a_reply_in_time() {
    let (mut app, me, other) = question_app(doubling());
    let session = ask(&mut app, me, other, 7, 25);
    advance_ms(&mut app, 10);
    assert_eq!(
        told(&mut app, me),
        [],
        "the question has just been delivered"
    );
    assert!(is_open(&app, session));
    advance_ms(&mut app, 10);
    assert_eq!(told(&mut app, me), [(session, Some(14))]);
    assert!(!is_open(&app, session), "nothing is left of it");
    advance_ms(&mut app, 100);
    assert_eq!(told(&mut app, me), []);
    assert_eq!(dropped(&app), (0, 0));
}

#[test]
fn a_request_without_a_reply_times_out_and_later_replies_are_late() {
    let (mut app, me, other) = question_app(thinking());
    let session = ask(&mut app, me, other, 7, 20);
    advance_ms(&mut app, 10);
    let (_, reply_to) = open(&mut app, other).remove(0);
    advance_ms(&mut app, 10);
    assert_eq!(told(&mut app, me), [(session, None)], "on its deadline");
    assert!(!is_open(&app, session));
    for _ in 0..2 {
        answer(&mut app, reply_to.clone(), 14);
    }
    advance_ms(&mut app, 10);
    assert_eq!(told(&mut app, me), []);
    assert_eq!(dropped(&app), (0, 2));
}

#[test]
fn the_first_of_reply_and_time_out_in_a_frame_counts() {
    for answer_first in [true, false] {
        let (mut app, me, other) = question_app(thinking());
        let session = ask(&mut app, me, other, 7, 20);
        advance_ms(&mut app, 10);
        let (_, reply_to) = open(&mut app, other).remove(0);
        if answer_first {
            answer(&mut app, reply_to, 14);
        } else {
            // Another timer replies, after the time-out and before the delivery.
            let late = replying(reply_to, 14);
            app.world_mut().spawn((Timer::after(ms(10)), late));
        }
        advance_ms(&mut app, 10);
        let expected = answer_first.then_some(14);
        assert_eq!(told(&mut app, me), [(session, expected)]);
        assert_eq!(dropped(&app), (0, 1), "the other one");
    }
}

#[test]
fn the_first_of_several_replies_counts() {
    let (mut app, me, _) = question_app(doubling());
    app.world_mut().spawn(doubling());
    let twice = MessageComponent::new().on(|mut me: MessageContext, _: &Question| {
        me.reply(Answer(1)).unwrap();
        me.reply(Answer(2)).unwrap();
    });
    app.world_mut().spawn(twice);
    let session = ask(&mut app, me, Delivery::All, 7, 100);
    advance_ms(&mut app, 10);
    advance_ms(&mut app, 10);
    assert_eq!(told(&mut app, me), [(session, Some(14))]);
    assert_eq!(dropped(&app), (0, 3));

    let session = ask(&mut app, me, Delivery::InTurn, 8, 100);
    advance_ms(&mut app, 10);
    advance_ms(&mut app, 10);
    assert_eq!(told(&mut app, me), [(session, Some(16))]);
    assert_eq!(dropped(&app), (0, 3), "only one is asked");
}

#[test]
fn a_despawned_asker_gets_nothing() {
    for before_the_answer in [true, false] {
        let (mut app, me, other) = question_app(thinking());
        let session = ask(&mut app, me, other, 7, 100);
        advance_ms(&mut app, 10);
        let (_, reply_to) = open(&mut app, other).remove(0);
        app.world_mut().despawn(me);
        assert!(!is_open(&app, session));
        if before_the_answer {
            answer(&mut app, reply_to, 14);
        }
        advance_ms(&mut app, 200);
        assert_eq!(dropped(&app), (0, before_the_answer.into()));
    }
}

#[test]
fn a_despawned_entity_can_not_ask() {
    let (mut app, me, other) = question_app(doubling());
    app.world_mut().despawn(me);
    let mut commands = app.world_mut().commands();
    let session = commands
        .entity(me)
        .ask(other, Question(7), Timer::after(ms(20)));
    app.world_mut().flush();
    for _ in 0..4 {
        advance_ms(&mut app, 10);
    }
    assert!(!is_open(&app, session), "should not stay for ever");
    assert_eq!(dropped(&app).1, 1, "the answer, and nothing else");
}

#[test]
fn a_request_without_its_asker_does_not_stay() {
    let (mut app, me, other) = question_app(thinking());
    let session = ask(&mut app, me, other, 7, 20);
    // The other side of `OwnedBy`: all timers are left alone, and their entities stay.
    app.world_mut().entity_mut(me).remove::<Owned>();
    for _ in 0..4 {
        advance_ms(&mut app, 10);
    }
    assert!(!is_open(&app, session));
    assert_eq!(told(&mut app, me), []);
}

#[test]
fn a_request_times_out_while_another_is_timing_out() {
    #[derive(Component)]
    struct Outer;

    let (mut app, me, other) = question_app(thinking());
    app.insert_resource(FallbackErrorHandler(panic))
        .insert_resource(Time::<Fixed>::from_duration(ms(10)));
    let outer = ask_until(
        &mut app,
        me,
        other,
        1,
        Timer::after(ms(10)).on(ClockId::Fixed),
    );
    let outer = outer.entity().expect("it is of this world");
    // Without its asker, the outer request despawns when it times out.
    app.world_mut()
        .entity_mut(outer)
        .remove::<OwnedBy>()
        .insert(Outer)
        .observe(move |_: On<Despawn<Outer>>, mut commands: Commands| {
            commands
                .entity(me)
                .ask(other, Question(2), Timer::after(ms(0)));
            commands.run_schedule(PreUpdate);
        });
    for _ in 0..3 {
        advance_ms(&mut app, 10);
    }
    assert!(app.world().get_entity(outer).is_err());
    let told = told(&mut app, me);
    assert!(matches!(told[..], [(_, None)]), "{told:?}");
}

#[test]
fn a_request_can_be_withdrawn() {
    let (mut app, me, other) = question_app(thinking());
    let session = ask(&mut app, me, other, 7, 20);
    advance_ms(&mut app, 10);
    let (_, reply_to) = open(&mut app, other).remove(0);
    app.world_mut().despawn(session.entity().unwrap());
    answer(&mut app, reply_to, 14);
    advance_ms(&mut app, 100);
    assert_eq!(told(&mut app, me), []);
    assert_eq!(dropped(&app), (0, 1));
}

#[test]
fn the_time_out_of_a_request_is_no_timer() {
    let (mut app, me, other) = question_app(doubling());
    app.add_observer(|_: On<TimerFired>| panic!("a timer fired"))
        .add_observer(|_: On<OwnedTimerFired>| panic!("a timer fired"))
        .add_observer(|_: On<TimerCancelled>| panic!("a timer was cancelled"));
    let answered = ask(&mut app, me, other, 7, 20);
    let given_up = ask(&mut app, me, Entity::PLACEHOLDER, 7, 20);
    for _ in 0..2 {
        advance_ms(&mut app, 10);
        let world = app.world();
        assert!(world.resource::<Messages<TimerFired>>().is_empty());
        assert!(world.resource::<Messages<TimerCancelled>>().is_empty());
    }
    assert_eq!(told(&mut app, me), [(answered, Some(14)), (given_up, None)]);
}

#[test]
fn time_outs_and_timers_of_equal_deadlines_go_by_the_order_of_arming() {
    #[derive(Component, Default)]
    struct Log(Vec<u32>);

    let (mut app, me, other) = question_app(thinking());
    let log = |mut me: MessageContext, nth| me.entity.get_mut::<Log>().unwrap().0.push(nth);
    let heard = MessageComponent::new()
        .on(move |me: MessageContext, said: &Question| log(me, said.0))
        .on(move |me: MessageContext, _: &NoAnswer| log(me, 0));
    app.world_mut()
        .entity_mut(me)
        .insert((Log::default(), heard));
    for nth in [1, 2] {
        let say = TimerAction::call(move |world: &mut World, _| {
            world.commands().send(me, Question(nth));
        });
        app.world_mut().spawn((Timer::after(ms(10)), say));
        ask(&mut app, me, other, 7, 10);
    }
    advance_ms(&mut app, 10);
    assert_eq!(app.world().get::<Log>(me).unwrap().0, [1, 0, 2, 0]);
}

#[test]
fn others_can_reply_much_later() {
    let (mut app, me, other) = question_app(thinking());
    let sessions = [1, 2, 3].map(|nth| ask(&mut app, me, other, nth, 60_000));
    advance_ms(&mut app, 10);
    let open = open(&mut app, other);
    app.world_mut().despawn(other);
    advance_ms(&mut app, 30_000);
    for (nth, reply_to) in open.into_iter().rev() {
        answer(&mut app, reply_to, 10 * nth);
    }
    advance_ms(&mut app, 10);
    let [one, two, three] = sessions;
    assert_eq!(
        told(&mut app, me),
        [(three, Some(30)), (two, Some(20)), (one, Some(10))]
    );
}

#[test]
fn cancelling_all_timers_spares_requests() {
    let (mut app, me, other) = question_app(thinking());
    let session = ask(&mut app, me, other, 7, 20);
    app.world_mut().entity_mut(me).cancel_timers();
    advance_ms(&mut app, 20);
    assert_eq!(told(&mut app, me), [(session, None)]);

    let session = ask(&mut app, me, other, 7, 20);
    app.world_mut().despawn(session.entity().unwrap());
    advance_ms(&mut app, 20);
    assert_eq!(told(&mut app, me), [], "it has been taken back");
    assert!(!is_open(&app, session));
}

#[test]
fn a_request_waits_while_its_asker_is_paused() {
    let (mut app, me, other) = question_app(thinking());
    let waits = ask(&mut app, me, other, 1, 20);
    let answered = ask(&mut app, me, other, 2, 20);
    app.world_mut().entity_mut(me).insert(Paused);
    advance_ms(&mut app, 100);
    assert_eq!(told(&mut app, me), []);
    let (_, reply_to) = open(&mut app, other).remove(1);
    answer(&mut app, reply_to, 20);
    advance_ms(&mut app, 100);
    assert_eq!(told(&mut app, me), [(answered, Some(20))], "answers come");
    app.world_mut().entity_mut(me).remove::<Paused>();
    advance_ms(&mut app, 19);
    assert_eq!(told(&mut app, me), []);
    advance_ms(&mut app, 1);
    assert_eq!(told(&mut app, me), [(waits, None)]);
}

#[test]
fn a_request_can_wait_on_any_clock() {
    let (mut app, me, other) = question_app(thinking());
    app.insert_resource(Time::<Fixed>::from_duration(ms(10)));
    let clock = app.world_mut().spawn(Clock::new().with_speed(0.5)).id();
    let clock = ClockId::from(clock);
    let asked_on = [ClockId::Real, ClockId::Virtual, ClockId::Fixed, clock]
        .map(|clock| ask_until(&mut app, me, other, 1, Timer::after(ms(20)).on(clock)));
    let frames = ask_until(&mut app, me, other, 1, Timer::after_frames(9));
    let [real, game, fixed, slow] = asked_on;
    let told_in = |app: &mut App, frames| {
        let mut all = Vec::new();
        for _ in 0..frames {
            advance_ms(app, 10);
            all.extend(told(app, me));
        }
        all.into_iter()
            .map(|(session, answer)| {
                assert_eq!(answer, None);
                session
            })
            .collect::<Vec<_>>()
    };
    // The fixed schedule runs after the delivery, so its messages wait for the next frame.
    assert_eq!(told_in(&mut app, 2), [real, game]);
    assert_eq!(told_in(&mut app, 1), [fixed]);
    app.world_mut().resource_mut::<Time<Virtual>>().pause();
    assert_eq!(told_in(&mut app, 4), []);
    app.world_mut().resource_mut::<Time<Virtual>>().unpause();
    assert_eq!(told_in(&mut app, 1), [slow]);
    assert_eq!(told_in(&mut app, 1), [frames]);
}

#[test]
fn a_periodic_timer_completes_a_request_once() {
    let (mut app, me, other) = question_app(thinking());
    let session = ask_until(&mut app, me, other, 1, Timer::every(ms(3)));
    advance_ms(&mut app, 10);
    assert_eq!(told(&mut app, me), [(session, None)]);
    advance_ms(&mut app, 10);
    assert_eq!(told(&mut app, me), []);
    assert!(!is_open(&app, session));
}

#[test]
fn a_request_completes_when_its_clock_despawns() {
    let (mut app, asking, asked) = question_app(thinking());
    let arena = app.world_mut().spawn(Clock::new()).id();
    let gone = app.world_mut().spawn(Clock::new()).id();
    app.world_mut().despawn(gone);
    app.insert_resource(FallbackErrorHandler(ignore));
    let until = |clock| Timer::after(ms(1000)).on(clock);
    let first = ask_until(&mut app, asking, asked, 1, until(arena));
    let second = ask_until(&mut app, asking, asked, 2, until(gone));
    advance_ms(&mut app, 10);
    assert_eq!(
        told(&mut app, asking),
        [(second, None)],
        "there is no such clock"
    );
    app.world_mut().despawn(arena);
    advance_ms(&mut app, 10);
    assert_eq!(told(&mut app, asking), [(first, None)]);
    for (nth, reply_to) in open(&mut app, asked) {
        answer(&mut app, reply_to, nth);
    }
    advance_ms(&mut app, 10);
    assert_eq!(told(&mut app, asking), [], "too late");
    assert!(!is_open(&app, first) && !is_open(&app, second));
}

#[test]
fn a_reply_waits_for_a_disabled_asker() {
    let (mut app, asking, asked) = question_app(doubling());
    let first = ask(&mut app, asking, asked, 1, 1000);
    advance_ms(&mut app, 10);
    app.world_mut().entity_mut(asking).insert(Disabled);
    for _ in 0..3 {
        advance_ms(&mut app, 10);
    }
    app.world_mut().entity_mut(asking).remove::<Disabled>();
    advance_ms(&mut app, 10);
    assert_eq!(told(&mut app, asking), [(first, Some(2))]);
    assert_eq!(dropped(&app), (0, 0));
}

#[test]
fn a_request_completes_after_its_asker_was_disabled_together_with_its_timers() {
    for is_answered in [false, true] {
        let (mut app, asking, asked) = question_app(thinking());
        let request = ask(&mut app, asking, asked, 7, 20);
        advance_ms(&mut app, 10);
        let (_, reply_to) = open(&mut app, asked).remove(0);
        // After the timers, and before the delivery.
        let disable = UpdateComponent::new(move |mut me: UpdateContext| {
            let mut asking = me.commands.entity(asking);
            asking.insert_recursive::<Owned>(Disabled);
            let update = me.update_entity;
            me.commands.entity(update).despawn();
        });
        app.world_mut().spawn(disable);
        if is_answered {
            answer(&mut app, reply_to, 14);
        }
        for _ in 0..3 {
            advance_ms(&mut app, 10);
            assert_eq!(dropped(&app), (0, 0));
        }
        let mut asking_mut = app.world_mut().entity_mut(asking);
        asking_mut.remove_recursive::<Owned, Disabled>();
        advance_ms(&mut app, 10);
        let expected = is_answered.then_some(14);
        assert_eq!(told(&mut app, asking), [(request, expected)]);
        assert!(!is_open(&app, request), "nothing is left of it");
    }
}

#[test]
fn a_time_out_of_a_fast_forward_waits_for_an_asker_that_is_disabled_with_its_timers() {
    let (mut app, asking, asked) = question_app(thinking());
    let request = ask(&mut app, asking, asked, 7, 20);
    advance_ms(&mut app, 10);
    app.world_mut()
        .fast_forward(ClockId::Virtual, ms(20))
        .unwrap();
    let mut asking_mut = app.world_mut().entity_mut(asking);
    asking_mut.insert_recursive::<Owned>(Disabled);
    advance_ms(&mut app, 10);
    assert_eq!(dropped(&app), (0, 0));
    let mut asking_mut = app.world_mut().entity_mut(asking);
    asking_mut.remove_recursive::<Owned, Disabled>();
    advance_ms(&mut app, 10);
    assert_eq!(told(&mut app, asking), [(request, None)]);
    assert!(!is_open(&app, request), "nothing is left of it");
}

#[test]
fn no_two_requests_are_equal() {
    let (mut app, me, other) = question_app(doubling());
    let mut numbers = HashSet::new();
    for _ in 0..20 {
        for nth in 0..5 {
            let session = ask(&mut app, me, other, nth, 10);
            assert!(numbers.insert(session), "{session:?} again");
        }
        advance_ms(&mut app, 5);
        advance_ms(&mut app, 5);
        advance_ms(&mut app, 5);
        assert_eq!(told(&mut app, me).len(), 5);
    }
}

#[test]
fn requests_of_an_entity_that_follows_nothing_do_not_stay() {
    let mut app = app();
    let other = app.world_mut().spawn(doubling()).id();
    let deaf = [
        app.world_mut().spawn_empty().id(),
        app.world_mut().spawn(MessageComponent::new()).id(),
        app.world_mut().spawn((asker(), Disabled)).id(),
    ];
    for me in deaf {
        let answered = ask(&mut app, me, other, 1, 100);
        let given_up = ask(&mut app, me, Entity::PLACEHOLDER, 1, 10);
        let before = dropped(&app).0;
        for _ in 0..3 {
            advance_ms(&mut app, 10);
        }
        if app.world().entity(me).contains::<Disabled>() {
            // The reply and the timers wait while the entity is disabled.
            assert!(is_open(&app, answered) && is_open(&app, given_up));
            assert_eq!(dropped(&app), (before + 1, 0), "the question to nobody");
        } else {
            assert!(!is_open(&app, answered) && !is_open(&app, given_up));
            assert_eq!(dropped(&app), (before + 3, 0), "and that there is none");
        }
    }
}

#[test]
fn a_reply_goes_to_the_new_callbacks_of_its_asker() {
    let (mut app, me, other) = question_app(thinking());
    let session = ask(&mut app, me, other, 7, 100);
    advance_ms(&mut app, 10);
    let (_, reply_to) = open(&mut app, other).remove(0);
    // The callbacks are replaced in the same delivery, before the reply.
    let change = MessageComponent::new().on(move |mut context: MessageContext, _: &Question| {
        context.commands.entity(me).insert(asker());
    });
    let change = app.world_mut().spawn(change).id();
    app.world_mut().send(change, Question(0)).unwrap();
    answer(&mut app, reply_to.clone(), 14);
    answer(&mut app, reply_to, 15);
    assert!(is_open(&app, session));
    advance_ms(&mut app, 10);
    assert_eq!(told(&mut app, me), [(session, Some(14))]);
    assert_eq!(dropped(&app), (0, 1));
}

#[test]
fn a_plain_message_has_no_reply() {
    let (mut app, _, _) = question_app(());
    let error = |mut me: MessageContext, _: &Question| {
        assert_eq!((me.request(), me.reply_to()), (None, None));
        assert_eq!(me.reply(Answer(1)), Err(ReplyError::NotARequest));
    };
    let me = app
        .world_mut()
        .spawn(MessageComponent::new().on(error))
        .id();
    app.world_mut().send(me, Question(1)).unwrap();
    advance_ms(&mut app, 10);
    assert_eq!(app.world().resource::<MessageStats>().delivered, 1);
}

#[test]
fn one_shot_systems_can_ask_and_reply() {
    #[derive(Resource, Default)]
    struct Answers(Vec<(Option<Request>, u32)>);

    fn double(In((reply_to, nth)): In<(ReplyTo, u32)>, mut commands: Commands) {
        commands.reply(reply_to, Answer(2 * nth));
    }

    fn note(In(answer): In<(Option<Request>, u32)>, mut answers: ResMut<Answers>) {
        answers.0.push(answer);
    }

    let mut app = app();
    app.init_resource::<Answers>();
    let double = app.world_mut().register_system(double);
    let note = app.world_mut().register_system(note);
    let other = MessageComponent::new().on(move |mut me: MessageContext, question: &Question| {
        let reply_to = me.reply_to().unwrap().clone();
        me.commands.run_system_with(double, (reply_to, question.0));
    });
    let other = app.world_mut().spawn(other).id();
    let me = MessageComponent::new().on(move |mut me: MessageContext, answer: &Answer| {
        assert_eq!(me.reply_to(), None);
        let session = me.request();
        me.commands.run_system_with(note, (session, answer.0));
    });
    let me = app.world_mut().spawn(me).id();
    let session = ask(&mut app, me, other, 7, 100);
    advance_ms(&mut app, 10);
    advance_ms(&mut app, 10);
    assert_eq!(app.world().resource::<Answers>().0, [(Some(session), 14)]);
}

#[test]
fn a_callback_can_ask_on_before_it_replies() {
    let (mut app, me, other) = question_app(doubling());
    let relay = MessageComponent::new()
        .on(move |mut me: MessageContext, question: &Question| {
            let reply_to = me.reply_to().unwrap().clone();
            let mut relay = me.commands.entity(me.entity.id());
            let asked = relay.ask(other, *question, Timer::after(ms(100)));
            me.entity
                .get_mut::<Relayed>()
                .unwrap()
                .0
                .insert(asked, reply_to);
        })
        .on(|mut me: MessageContext, answer: &Answer| {
            let session = me.request().unwrap();
            let mut relayed = me.entity.get_mut::<Relayed>().unwrap();
            let reply_to = relayed.0.remove(&session).unwrap();
            me.commands.reply(reply_to, *answer);
        });
    #[derive(Component, Default)]
    struct Relayed(HashMap<Request, ReplyTo>);
    let relay = app.world_mut().spawn((relay, Relayed::default())).id();
    let session = ask(&mut app, me, relay, 7, 100);
    for _ in 0..4 {
        advance_ms(&mut app, 10);
    }
    assert_eq!(told(&mut app, me), [(session, Some(14))]);
}

/// A step of a script. Times are in milliseconds.
#[derive(Clone, Copy, Debug)]
enum Step {
    /// Asks one entity, all, or one in turn.
    Ask(u8, u64),
    /// Replies to a kept request, and keeps it.
    Answer(usize),
    /// Replies with a timer.
    AnswerAfter(usize, u64),
    Pause(bool),
    /// Replaces the callbacks of the asker.
    Replace,
    Frame(u64),
}

fn any_step() -> impl Strategy<Value = Step> {
    prop_oneof![
        3 => (0..3u8, 0..40u64).prop_map(|(to, millis)| Step::Ask(to, millis)),
        3 => (0..100usize).prop_map(Step::Answer),
        2 => (0..100usize, 0..30u64).prop_map(|(which, millis)| Step::AnswerAfter(which, millis)),
        1 => any::<bool>().prop_map(Step::Pause),
        1 => Just(Step::Replace),
        5 => (0..20u64).prop_map(Step::Frame),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..Default::default() })]

    #[test]
    fn every_request_completes_exactly_once(
        steps in proptest::collection::vec(any_step(), 1..80),
    ) {
        let (mut app, me, other) = question_app(thinking());
        app.world_mut().spawn(thinking());
        let mut asked = Vec::new();
        let mut kept: Vec<(u32, ReplyTo)> = Vec::new();
        let mut all_told = Vec::new();
        for step in steps.into_iter().chain([Step::Pause(false), Step::Frame(1_000), Step::Frame(0)]) {
            match step {
                Step::Ask(to, millis) => {
                    let to = [Delivery::To(other), Delivery::All, Delivery::InTurn][usize::from(to)];
                    let nth = asked.len() as u32;
                    asked.push(ask(&mut app, me, to, nth, millis));
                }
                Step::Answer(which) if !kept.is_empty() => {
                    let (nth, reply_to) = kept[which % kept.len()].clone();
                    answer(&mut app, reply_to, nth);
                }
                Step::AnswerAfter(which, millis) if !kept.is_empty() => {
                    let (nth, reply_to) = kept[which % kept.len()].clone();
                    let later = replying(reply_to, nth);
                    app.world_mut().spawn((Timer::after(ms(millis)), later));
                }
                Step::Pause(true) => _ = app.world_mut().entity_mut(me).insert(Paused),
                Step::Pause(false) => _ = app.world_mut().entity_mut(me).remove::<Paused>(),
                Step::Replace => {
                    all_told.extend(told(&mut app, me));
                    app.world_mut().entity_mut(me).insert(asker());
                }
                Step::Frame(millis) => {
                    advance_ms(&mut app, millis);
                    let mut keepers = app.world_mut().query::<&Open>();
                    let open = keepers.iter(app.world()).flat_map(|open| &open.0);
                    kept = open.cloned().collect();
                }
                Step::Answer(_) | Step::AnswerAfter(..) => {}
            }
        }
        all_told.extend(told(&mut app, me));
        for (nth, session) in (0..).zip(&asked) {
            let told: Vec<_> = all_told.iter().filter(|(told, _)| told == session).collect();
            prop_assert_eq!(told.len(), 1, "question {}: {:?}", nth, told);
            prop_assert!(told[0].1.is_none_or(|answer| answer == nth), "the answer to another");
            prop_assert!(!is_open(&app, *session), "nothing is left of it");
        }
        prop_assert_eq!(all_told.len(), asked.len());
    }
}

/// The entities that got a list of what belongs to them, or lost it.
#[derive(Resource, Default)]
struct Lists {
    added: Vec<Entity>,
    removed: Vec<Entity>,
}

fn note_lists(app: &mut App) {
    app.init_resource::<Lists>()
        .add_observer(|added: On<Add<Owned>>, mut lists: ResMut<Lists>| {
            lists.added.push(added.entity);
        })
        .add_observer(|removed: On<Remove<Owned>>, mut lists: ResMut<Lists>| {
            lists.removed.push(removed.entity);
        });
}

#[test]
fn an_asker_that_asks_again_when_it_gets_the_reply_keeps_its_list() {
    #[derive(Component)]
    struct Rounds(u32);

    let mut app = app();
    note_lists(&mut app);
    let asked = app.world_mut().spawn(doubling()).id();
    let again = MessageComponent::new().on(move |mut me: MessageContext, _: &Answer| {
        let mut rounds = me.entity.get_mut::<Rounds>().expect("it has rounds");
        rounds.0 -= 1;
        if rounds.0 > 0 {
            let id = me.entity.id();
            let mut asker = me.commands.entity(id);
            asker.ask(asked, Question(1), Timer::after(1.0));
        }
    });
    let asker = app.world_mut().spawn((Rounds(3), again)).id();
    ask(&mut app, asker, asked, 1, 1000);
    for left in [2, 1, 0] {
        advance_ms(&mut app, 10);
        advance_ms(&mut app, 10);
        let asker = app.world().entity(asker);
        assert_eq!(asker.get::<Rounds>().map(|rounds| rounds.0), Some(left));
        let open = asker.get::<Owned>().map(Owned::len);
        assert_eq!(open, (left > 0).then_some(1), "an empty list is removed");
    }
    let lists = app.world().resource::<Lists>();
    assert_eq!(
        (&lists.added[..], &lists.removed[..]),
        (&[asker][..], &[asker][..])
    );
}

#[test]
fn an_asker_loses_its_empty_list_whatever_its_callback_does() {
    fn panics(_: &mut World) {
        resume_unwind(Box::new("a callback panics"));
    }

    let callbacks: [(&str, fn(MessageContext)); 4] = [
        ("returns", |_| ()),
        ("disables the asker", |mut me| {
            me.commands.entity(me.entity.id()).insert(Disabled);
        }),
        ("queues a command that panics", |mut me| {
            me.commands.queue(panics);
        }),
        ("panics", |_| panics(&mut World::new())),
    ];
    for (what, callback) in callbacks {
        for is_closed in [false, true] {
            let mut app = app();
            app.insert_resource(FallbackErrorHandler(ignore));
            let asked = app.world_mut().spawn(doubling()).id();
            let follows =
                MessageComponent::new().on(move |me: MessageContext, _: &Answer| callback(me));
            let asker = app.world_mut().spawn(follows).id();
            ask(&mut app, asker, asked, 1, 1000);
            assert!(app.world().entity(asker).contains::<Owned>());
            advance_ms(&mut app, 10);
            advance_ms(&mut app, 10);
            if is_closed {
                // Another delivery, which does not know the commands that a panic has left behind.
                app.world_mut().close_inbox();
            }
            advance_ms(&mut app, 10);
            let is_left = app.world().entity(asker).contains::<Owned>();
            assert!(!is_left, "a callback {what}");
        }
    }
}

#[test]
fn an_asker_loses_its_list_if_its_request_survives_the_reply() {
    #[derive(Resource, Default)]
    struct HasPanicked(bool);

    let mut app = app();
    app.insert_resource(FallbackErrorHandler(ignore))
        .init_resource::<HasPanicked>()
        .add_observer(
            |_: On<Despawn<OwnedBy>>, mut has_panicked: ResMut<HasPanicked>| {
                if !core::mem::replace(&mut has_panicked.0, true) {
                    resume_unwind(Box::new("an observer panics"));
                }
            },
        );
    let asked = app.world_mut().spawn(doubling()).id();
    let follows = MessageComponent::new().on(|_: MessageContext, _: &Answer| ());
    let asker = app.world_mut().spawn(follows).id();
    ask(&mut app, asker, asked, 1, 1000);
    advance_ms(&mut app, 10);
    advance_ms(&mut app, 10);
    assert!(app.world().resource::<HasPanicked>().0);
    let left = owned(app.world(), asker);
    assert_eq!(left.len(), 1, "the request should still be there");
    app.world_mut().despawn(left[0]);
    assert!(!app.world().entity(asker).contains::<Owned>());
}

#[test]
fn each_of_two_askers_loses_its_empty_list() {
    let mut app = app();
    note_lists(&mut app);
    let asked = app.world_mut().spawn(doubling()).id();
    let askers = [(); 2].map(|()| {
        let follows = MessageComponent::new().on(|_: MessageContext, _: &Answer| ());
        app.world_mut().spawn(follows).id()
    });
    for asker in askers {
        ask(&mut app, asker, asked, 1, 1000);
        ask(&mut app, asker, asked, 2, 1000);
    }
    advance_ms(&mut app, 10);
    advance_ms(&mut app, 10);
    let lists = app.world().resource::<Lists>();
    assert_eq!(
        (&lists.added[..], &lists.removed[..]),
        (&askers[..], &askers[..])
    );
}
