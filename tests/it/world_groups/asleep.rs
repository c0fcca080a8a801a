//! Worlds that sleep while nothing is due.
//!
//! A test counts the frames of a world, not its time: while it sleeps, another world runs many.

use bevy_due::message::{MessageCommandsExt, MessageWorldExt};
use bevy_time::{Fixed, Time, TimeUpdateStrategy, Virtual};

use super::*;

const INTERVAL: Duration = Duration::from_millis(1);

/// More frames than a world needs to arm, fire and clean up a few timers.
const FEW: usize = 8;
const MANY: usize = 100;

/// The number of frames that a world has run.
#[derive(Resource, Clone, Default)]
struct Frames(Arc<AtomicUsize>);

impl Frames {
    fn count(&self) -> usize {
        self.0.load(Ordering::Relaxed)
    }

    #[track_caller]
    fn assert_few(&self) {
        assert!(self.count() < FEW, "{} frames", self.count());
    }
}

fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

/// Starts a world that sleeps while nothing is due.
fn start_sleeper(
    groups: &mut WorldGroups,
    group: &'static str,
    build: impl Fn(&mut App) + Send + Sync + 'static,
) -> Frames {
    let frames = Frames::default();
    let counted = frames.clone();
    let build = move |app: &mut App| {
        let count = |frames: Res<Frames>| _ = frames.0.fetch_add(1, Ordering::Relaxed);
        app.insert_resource(LoopInterval::WhenDue(INTERVAL))
            .insert_resource(counted.clone())
            .add_systems(First, count);
        build(app);
    };
    groups.start_worlds(group, 1, build).unwrap();
    frames
}

/// Waits until another world has run many frames with the same interval.
fn let_others_run(groups: &mut WorldGroups) {
    let (tick, ticks) = mpsc::channel();
    let build = move |app: &mut App| {
        let tick = tick.clone();
        app.insert_resource(LoopInterval::Every(INTERVAL))
            .add_systems(Update, move || _ = tick.send(()));
    };
    groups.start_worlds("others", 1, build).unwrap();
    for _ in 0..MANY {
        next(&ticks);
    }
}

/// Stops all worlds. None of them waits for its next deadline.
#[track_caller]
fn stop(groups: WorldGroups) {
    let reports = groups.stop_within(TIMEOUT);
    assert!(!reports.iter().any(|report| report.is_left_behind));
    end_well(&reports);
}

/// Runs a world until its first timer fires, and returns the number of its frames until then.
fn frames_until_fired(build: impl Fn(&mut App) + Send + Sync + 'static) -> usize {
    let (tell, told) = mpsc::channel();
    let mut groups = WorldGroups::new();
    start_sleeper(&mut groups, "sleepers", move |app: &mut App| {
        let tell = tell.clone();
        app.add_observer(move |_: On<TimerFired>, frames: Res<Frames>| {
            tell.send(frames.count()).ok();
        });
        build(app);
    });
    let frames = next(&told);
    stop(groups);
    frames
}

fn spawn_timer(timer: Timer) -> impl Fn(&mut App) + Send + Sync + 'static {
    move |app| _ = app.world_mut().spawn(timer.clone())
}

#[test]
fn a_world_with_nothing_to_do_runs_no_frames_until_a_parcel_arrives() {
    let (hear, heard) = mpsc::channel();
    let mut groups = WorldGroups::new();
    let frames = start_sleeper(&mut groups, "sleepers", listener(hear));
    for what in 0..2 {
        let_others_run(&mut groups);
        frames.assert_few();
        groups.post(say("sleepers", Delivery::All, what)).unwrap();
        assert_eq!(next(&heard), (0, what));
    }
    let_others_run(&mut groups);
    frames.assert_few();
    stop(groups);
}

#[test]
fn a_message_of_another_thread_wakes_a_world() {
    let (tell, told) = mpsc::channel();
    let mut groups = WorldGroups::new();
    start_sleeper(&mut groups, "sleepers", move |app: &mut App| {
        tell.send(app.world_mut().message_sender()).unwrap();
    });
    let sender = next(&told);
    let_others_run(&mut groups);
    let (tell, told) = mpsc::channel();
    let run = sender.run(move |_| tell.send(()).unwrap());
    assert!(run.is_ok());
    next(&told);
    stop(groups);
}

#[test]
fn a_request_to_a_sleeping_world_is_answered_or_times_out() {
    let (tell, told) = mpsc::channel();
    let mut groups = WorldGroups::new();
    let answering = start_sleeper(&mut groups, "answering", |app: &mut App| {
        let answer = |mut me: MessageContext, question: &Packet| match read(question) {
            // No answer.
            0 => Ok(()),
            what => me.reply(number(ANSWER, what + 1)),
        };
        let answer = MessageComponent::new().on_packet(QUESTION, answer);
        app.world_mut().spawn(answer);
    });
    let asking = start_sleeper(&mut groups, "asking", move |app: &mut App| {
        let ask = |mut me: MessageContext, what: &Packet| {
            let question = Packet::new(QUESTION, what.payload());
            let parcel = Parcel::new("answering", Delivery::InTurn, question);
            let mut asker = me.commands.entity(me.entity.id());
            asker.ask_world(parcel, Timer::after(ms(50)).on(ClockId::Real));
        };
        let (tell, silence) = (tell.clone(), tell.clone());
        let asker = MessageComponent::new()
            .on_packet(GO, ask)
            .on_packet(ANSWER, move |_, answer: &Packet| {
                _ = tell.send(read(answer));
            })
            .on(move |_, _: &NoAnswer| _ = silence.send(0));
        app.world_mut().spawn((StableKey(1), asker));
    });
    let_others_run(&mut groups);
    let go = |what| groups.post(Parcel::new("asking", StableKey(1), number(GO, what)));
    go(0).unwrap();
    assert_eq!(next(&told), 0, "the time-out wakes the world");
    go(5).unwrap();
    // The machine may be so slow that the time-out comes first.
    assert!([0, 6].contains(&next(&told)));
    let_others_run(&mut groups);
    answering.assert_few();
    assert!(asking.count() < 2 * FEW, "{} frames", asking.count());
    stop(groups);
}

#[test]
fn a_deadline_ends_the_sleep() {
    for clock in [ClockId::Real, ClockId::Virtual] {
        let frames = frames_until_fired(spawn_timer(Timer::after(ms(60)).on(clock)));
        assert!(frames < FEW, "{clock}: {frames}");
    }
}

#[test]
fn a_world_sleeps_between_the_firings_of_a_timer() {
    let (tell, told) = mpsc::channel();
    let mut groups = WorldGroups::new();
    let frames = start_sleeper(&mut groups, "sleepers", move |app: &mut App| {
        let tell = tell.clone();
        app.world_mut()
            .spawn(Timer::every(ms(40)).times(3))
            .observe(move |fired: On<TimerFired>| tell.send(fired.missed()).unwrap());
    });
    for _ in 0..3 {
        next(&told);
    }
    let_others_run(&mut groups);
    frames.assert_few();
    stop(groups);
}

#[test]
fn a_clock_with_its_own_speed_ends_the_sleep() {
    let frames = frames_until_fired(|app| {
        let world = app.world_mut();
        let fast = world.spawn(Clock::new().with_speed(2.0)).id();
        let slow = world.spawn(Clock::of(fast).with_speed(0.5)).id();
        world.spawn(Timer::after(ms(60)).on(slow));
        world.spawn(Timer::after(ms(3600)).on(fast));
    });
    assert!(frames < FEW, "{frames}");
}

#[test]
fn timers_on_clocks_that_stand_still_do_not_wake_a_world() {
    let frames = frames_until_fired(|app| {
        let mut game = Time::<Virtual>::default();
        game.pause();
        app.insert_resource(game);
        let world = app.world_mut();
        let clock = Clock::of(ClockId::Real).paused();
        let clock = world.spawn(clock).id();
        for clock in [ClockId::Virtual, ClockId::Fixed, clock.into()] {
            world.spawn(Timer::every(ms(2)).on(clock));
        }
        world.spawn((Timer::every(ms(2)).on(ClockId::Real), Paused));
        world.spawn(Timer::after(ms(60)).on(ClockId::Real));
    });
    assert!(frames < FEW, "{frames}");
}

#[test]
fn a_timer_of_the_fixed_clock_ends_the_sleep_and_no_step_is_left_out() {
    #[derive(Resource, Default)]
    struct Steps(usize);

    let (tell, told) = mpsc::channel();
    let mut groups = WorldGroups::new();
    let frames = start_sleeper(&mut groups, "sleepers", move |app: &mut App| {
        let tell = tell.clone();
        app.insert_resource(Time::<Fixed>::from_duration(ms(5)))
            .init_resource::<Steps>()
            .add_systems(FixedFirst, |mut steps: ResMut<Steps>| steps.0 += 1)
            .add_observer(move |_: On<TimerFired>, steps: Res<Steps>| {
                tell.send(steps.0).unwrap();
            });
        let timer = Timer::after(ms(60)).on(ClockId::Fixed);
        app.world_mut().spawn(timer);
    });
    assert_eq!(next(&told), 12);
    let_others_run(&mut groups);
    frames.assert_few();
    stop(groups);
}

#[test]
fn a_long_sleep_loses_no_game_time() {
    let frames = frames_until_fired(|app| {
        // A frame may hang for a moment, but not for most of the time.
        app.insert_resource(Time::<Virtual>::from_max_delta(ms(5)));
        app.world_mut().spawn(Timer::after(ms(200)));
    });
    assert!(frames < FEW, "{frames}");
}

#[test]
fn a_world_with_an_update_component_runs_at_its_interval() {
    for clock in [ClockId::Virtual, ClockId::Frames, ClockId::Fixed] {
        let (tick, ticks) = mpsc::channel();
        let mut groups = WorldGroups::new();
        start_sleeper(&mut groups, "awake", move |app: &mut App| {
            let tick = tick.clone();
            let update = UpdateComponent::new(move |_| _ = tick.send(()));
            app.insert_resource(Time::<Fixed>::from_duration(INTERVAL));
            app.world_mut().spawn(update.on(clock));
        });
        for _ in 0..3 * FEW {
            next(&ticks);
        }
        stop(groups);
    }
}

#[test]
fn a_world_with_a_paused_update_component_sleeps() {
    let mut groups = WorldGroups::new();
    let frames = start_sleeper(&mut groups, "sleepers", |app: &mut App| {
        let update = UpdateComponent::new(|_| ());
        app.world_mut().spawn((update, Paused));
    });
    let_others_run(&mut groups);
    frames.assert_few();
    stop(groups);
}

#[test]
fn a_message_within_the_world_does_not_sleep() {
    let (hear, heard) = mpsc::channel();
    let mut groups = WorldGroups::new();
    let build = listener(hear);
    start_sleeper(&mut groups, "sleepers", move |app: &mut App| {
        build(app);
        let mut frame = 0;
        let send = move |mut commands: Commands| {
            frame += 1;
            if frame <= 3 {
                commands.send(Delivery::All, number(SAY, frame));
            }
        };
        app.add_systems(Last, send);
    });
    for frame in 1..=3 {
        assert_eq!(next(&heard), (0, frame));
    }
    stop(groups);
}

#[test]
fn a_world_whose_time_passes_only_in_frames_stays_awake_for_a_timer() {
    let minute = Duration::from_secs(60);
    let frames = frames_until_fired(move |app| {
        app.insert_resource(TimeUpdateStrategy::ManualDuration(minute))
            .insert_resource(Time::<Virtual>::from_max_delta(minute))
            .insert_resource(Time::<Fixed>::from_duration(minute));
        app.world_mut().spawn(Timer::after(30 * minute));
    });
    assert_eq!(frames, 31, "the first takes no time");
}

#[test]
fn a_world_runs_at_most_once_per_interval_by_itself() {
    let mut groups = WorldGroups::new();
    let frames = start_sleeper(&mut groups, "sleepers", |app: &mut App| {
        app.insert_resource(LoopInterval::WhenDue(Duration::from_secs(3600)));
        let world = app.world_mut();
        world.spawn(Timer::every(ms(1)).on(ClockId::Real));
        world.spawn(UpdateComponent::new(|_| ()));
    });
    let_others_run(&mut groups);
    assert_eq!(frames.count(), 1);
    stop(groups);
}

#[test]
fn the_longest_interval_and_the_longest_delay_work() {
    let (hear, heard) = mpsc::channel();
    let mut groups = WorldGroups::new();
    let build = listener(hear);
    start_sleeper(&mut groups, "sleepers", move |app: &mut App| {
        build(app);
        app.insert_resource(LoopInterval::WhenDue(Duration::MAX));
        app.world_mut().spawn(Timer::after(Duration::MAX));
        app.world_mut().spawn(Timer::after(1e9));
    });
    for what in 0..3 {
        groups.post(say("sleepers", Delivery::All, what)).unwrap();
        assert_eq!(next(&heard), (0, what));
    }
    stop(groups);
}
