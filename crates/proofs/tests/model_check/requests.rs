//! Requests to worlds that stop.

use bevy_due::{Timer, message::NoAnswer, worlds::ParcelEntityCommandsExt};

use super::*;

const ANSWER: u32 = 3;

/// How a request completed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Completed {
    Answered(u32),
    Not(NoAnswer),
}

/// An app with an entity that logs how its requests complete. [`quarter`] runs a frame.
fn asker(groups: &WorldGroups, log: &Log<Completed>) -> (App, Entity) {
    let mut app = app(DuePlugin::default());
    let (answered, not) = (log.clone(), log.clone());
    let ears = MessageComponent::new()
        .on_packet(ANSWER, move |_: MessageContext, answer: &Packet| {
            answered.push(Completed::Answered(read(answer)));
        })
        .on(move |_: MessageContext, no: &NoAnswer| not.push(Completed::Not(*no)));
    let asker = app.world_mut().spawn((StableKey(100), ears)).id();
    groups.add("askers", &mut app);
    frame(&mut app);
    (app, asker)
}

/// Runs a frame a quarter of a second after the last one.
fn quarter(app: &mut App) {
    let step = Duration::from_millis(250);
    app.world_mut()
        .resource_mut::<Time<Virtual>>()
        .advance_by(step);
    app.world_mut()
        .resource_mut::<Time<Real>>()
        .advance_by(step);
    frame(app);
}

/// Starts a world that replies to each packet `SAY` with the next number.
fn start_answerer(groups: &mut WorldGroups) {
    let build = |app: &mut App| {
        let answer = |mut me: MessageContext, question: &Packet| -> Result {
            Ok(me.reply(number(ANSWER, read(question) + 1))?)
        };
        app.add_plugins(DuePlugin::default()).insert_resource(NEVER);
        app.world_mut()
            .spawn(MessageComponent::new().on_packet(SAY, answer));
    };
    groups.start("worlds", 1, build).unwrap();
}

/// Makes a request with a time-out of a second, which ends in the fourth [`quarter`].
fn ask(app: &mut App, asker: Entity, to: Delivery<StableKey>) {
    let mut commands = app.world_mut().commands();
    let mut asker = commands.entity(asker);
    asker.ask_world(say(to, 5), Timer::after(1.0));
    app.world_mut().flush();
}

#[test]
fn a_request_without_an_answer_times_out() {
    check(|| {
        let log = Log::new();
        let mut groups = WorldGroups::new();
        start_worlds(&mut groups, 1, &Log::new());
        let (mut app, asker) = asker(&groups, &log);
        ask(&mut app, asker, StableKey(0).into());
        for _ in 0..3 {
            quarter(&mut app);
        }
        assert_eq!(log.take(), [], "it is too early");
        quarter(&mut app);
        assert_eq!(log.take(), [Completed::Not(NoAnswer::TimedOut)]);
        assert_eq!(groups.stop().len(), 1);
    });
}

#[test]
fn a_request_to_worlds_that_stop_completes_exactly_once() {
    check(|| {
        let log = Log::new();
        let mut groups = WorldGroups::new();
        start_answerer(&mut groups);
        start_answerer(&mut groups);
        let (mut app, asker) = asker(&groups, &log);
        let stopper = thread::spawn(move || groups.stop().len());
        for delivery in [Delivery::InTurn, Delivery::All] {
            ask(&mut app, asker, delivery);
            let mut frames = 0;
            let completed = loop {
                quarter(&mut app);
                let mut completed = log.take();
                if let Some(how) = completed.pop() {
                    assert_eq!(completed, [], "and {how:?}");
                    break how;
                }
                frames += 1;
                assert!(frames < 4, "the request outlives its time-out");
                thread::yield_now();
            };
            let is_expected = match completed {
                Completed::Answered(6) => true,
                Completed::Not(NoAnswer::TimedOut) => frames == 3,
                Completed::Not(NoAnswer::Refused(RefusalReason::UnknownGroup)) => true,
                Completed::Not(_) | Completed::Answered(_) => false,
            };
            assert!(is_expected, "{completed:?} after {frames} frames");
        }
        assert_eq!(stopper.join().unwrap(), 2);
        ask(&mut app, asker, Delivery::InTurn);
        quarter(&mut app);
        let refused = NoAnswer::Refused(RefusalReason::UnknownGroup);
        assert_eq!(log.take(), [Completed::Not(refused)], "it fails at once");
        for _ in 0..6 {
            quarter(&mut app);
        }
        assert_eq!(log.take(), [], "a late answer is dropped");
    });
}
