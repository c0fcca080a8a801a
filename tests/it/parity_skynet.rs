//! The features of skynet's timing wheel, one by one.

use core::time::Duration;
use std::thread;

use crate::support::*;
use bevy_app::App;
use bevy_due::{
    Clocks, Timer, TimerAction,
    message::{
        Delivery, MessageContext, MessageEntityCommandsExt, MessageWorldExt, NoAnswer, Request,
    },
    prelude::*,
};
use bevy_ecs::{prelude::*, system::RunSystemOnce};
use bevy_time::{Real, Time};

/// The message sent when a timer expires, with the name of the timer.
#[derive(Message, Clone, Copy, Debug, PartialEq)]
struct Expired(&'static str);

/// The messages that a service received, each with its session.
#[derive(Component, Default)]
struct Mailbox(Vec<(Option<Request>, &'static str)>);

fn spawn_service(app: &mut App) -> Entity {
    let note = |mut me: MessageContext, what: &'static str| {
        let session = me.request();
        me.entity
            .get_mut::<Mailbox>()
            .unwrap()
            .0
            .push((session, what));
    };
    let follows = MessageComponent::new()
        .on(move |me: MessageContext, expired: &Expired| note(me, expired.0))
        .on(move |me: MessageContext, _: &NoAnswer| note(me, "timeout"));
    app.world_mut().spawn((Mailbox::default(), follows)).id()
}

/// Returns an action that sends `expired` to the owner of the timer.
fn send(expired: Expired) -> TimerAction {
    TimerAction::call(move |world, fired| world.send(fired.owner(), expired))
}

fn mailbox(app: &mut App, service: Entity) -> Vec<(Option<Request>, &'static str)> {
    core::mem::take(&mut app.world_mut().get_mut::<Mailbox>(service).unwrap().0)
}

fn now(app: &mut App, clock: ClockId) -> Duration {
    let now = move |clocks: Clocks| clocks.now(clock).unwrap();
    app.world_mut().run_system_once(now).unwrap()
}

/// O(1) add from any thread; a timeout of 0 is delivered without a delay.
#[test]
fn any_thread_can_add_timers_and_a_zero_timeout_is_delivered_in_the_next_run() {
    let mut app = app();
    let service = spawn_service(&mut app);
    let sender = app.world_mut().message_sender();
    let threads = [("later", 20), ("zero", 0), ("never", 60_000)].map(|(name, millis)| {
        let sender = sender.clone();
        thread::spawn(move || {
            let expired = send(Expired(name));
            let timer = (OwnedBy(service), Timer::after(ms(millis)), expired);
            let add = |world: &mut World| _ = world.spawn(timer);
            sender.run(add).unwrap();
        })
    });
    for thread in threads {
        thread.join().unwrap();
    }
    advance_ms(&mut app, 10);
    assert_eq!(
        mailbox(&mut app, service),
        [],
        "the timers have only been added"
    );
    advance_ms(&mut app, 0);
    assert_eq!(
        mailbox(&mut app, service),
        [(None, "zero")],
        "should arrive in the next run"
    );
    advance_ms(&mut app, 20);
    assert_eq!(mailbox(&mut app, service), [(None, "later")]);
}

/// On expiry a message (service, session) is delivered.
#[test]
fn an_expired_timer_delivers_a_message_with_its_session_to_the_service() {
    let mut app = app();
    let [service, other] = [(); 2].map(|()| spawn_service(&mut app));
    let timer = (Timer::after(ms(10)), send(Expired("plain")));
    app.world_mut().entity_mut(service).insert(timer);
    // No entity follows this message, so each request can only time out.
    #[derive(Message)]
    struct Nothing;
    let mut commands = app.world_mut().commands();
    let mut sessions = [10, 20, 20].map(|millis| {
        let until = Timer::after(ms(millis));
        commands.entity(service).ask(Delivery::All, Nothing, until)
    });
    app.world_mut().flush();
    advance_ms(&mut app, 10);
    let first = [(None, "plain"), (Some(sessions[0]), "timeout")];
    assert_eq!(mailbox(&mut app, service), first);
    advance_ms(&mut app, 10);
    let rest = [sessions[1], sessions[2]].map(|session| (Some(session), "timeout"));
    assert_eq!(
        mailbox(&mut app, service),
        rest,
        "time-outs should arrive in the order of the requests"
    );
    assert_eq!(
        mailbox(&mut app, other),
        [],
        "no other service should receive a message"
    );
    sessions.sort_unstable();
    assert!(sessions.windows(2).all(|two| two[0] != two[1]));
}

/// Catches up every missed tick; survives counter wrap-around.
#[test]
fn missed_ticks_are_caught_up_even_where_a_32_bit_counter_wraps() {
    let mut app = app();
    let service = spawn_service(&mut app);
    let tick = (Timer::every(ms(10)), send(Expired("tick")));
    app.world_mut().entity_mut(service).insert(tick);
    advance_ms(&mut app, 995);
    assert_eq!(mailbox(&mut app, service).len(), 99, "in one long frame");
    app.world_mut().entity_mut(service).remove::<Timer>();

    // 497 days: skynet counts hundredths of a second.
    let wrap = ms(10) * u32::MAX + ms(10);
    let across = spawn(&mut app, "across", Timer::at(wrap + ms(15)));
    let before = wrap - ms(995) - ms(50);
    advance(&mut app, before);
    let tick = (Timer::every(ms(10)), send(Expired("tick")));
    app.world_mut().entity_mut(service).insert(tick);
    advance_ms(&mut app, 0);
    for frame in 1..=10 {
        advance_ms(&mut app, 10);
        assert_eq!(mailbox(&mut app, service).len(), 1, "frame {frame}");
        let is_armed = app
            .world()
            .get_entity(across)
            .is_ok_and(|it| it.contains::<Timer>());
        assert_eq!(
            is_armed,
            frame < 7,
            "should fire in frame 7, neither early nor late"
        );
    }
    assert_eq!(now(&mut app, ClockId::Virtual), wrap + ms(50));
    let fired = firings(&mut app);
    assert!(fired.iter().any(|fired| fired.deadline() == wrap + ms(15)));
}

/// Time since start, start time.
#[test]
fn the_start_time_and_the_time_since_then_can_be_read() {
    let mut app = app();
    let start = app.world().resource::<Time<Real>>().startup();
    let dungeon = app.world_mut().spawn(Clock::new()).id();
    for frame in 1..=3 {
        advance_ms(&mut app, 25);
        for clock in [ClockId::Virtual, ClockId::Real, dungeon.into()] {
            assert_eq!(now(&mut app, clock), ms(25 * frame), "{clock:?}");
        }
    }
    assert!(start <= std::time::Instant::now());
    assert_eq!(app.world().resource::<Time<Real>>().startup(), start);
}
