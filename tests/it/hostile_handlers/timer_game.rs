//! Random games in which handlers replace, pause, move and despawn timers, owners and clocks, run
//! the schedule again, and panic.
//!
//! Every timer is armed as long as it exists, ends exactly once, and is reported exactly once.

use super::{
    timer_ledger::{FiringRecorder, Ledger, advance_and_read, check_invariants},
    timer_ops::Cast,
    timer_script::{Frame, Op, PanicIn, Reaction, any_frames},
    *,
};
use crate::support::*;
use bevy_due::{TimerAction, TimerFired};
use bevy_ecs::lifecycle::{Insert, Remove};
use proptest::prelude::*;
use std::{collections::VecDeque, panic::resume_unwind};

const FIXED_STEP_MILLIS: u64 = 13;

proptest! {
    #![proptest_config(game_config())]

    #[test]
    fn every_timer_ends_once_whatever_handlers_do(frames in any_frames()) {
        play(frames, false);
    }

    #[test]
    fn every_timer_ends_once_even_if_handlers_panic(frames in any_frames()) {
        play(frames, true);
    }
}

/// The remaining reactions of this frame.
#[derive(Resource, Default)]
struct Reactions {
    on_firings: VecDeque<Reaction>,
    on_cancellations: VecDeque<Reaction>,
    on_changes: VecDeque<Option<Op>>,
    /// Whether reactions may panic. Panics are only caught during a frame.
    may_panic: bool,
}

impl Reactions {
    fn next_firing(&mut self) -> Reaction {
        let reaction = self.on_firings.pop_front().unwrap_or_default();
        self.without_forbidden_panic(reaction)
    }

    fn next_cancellation(&mut self) -> Reaction {
        let reaction = self.on_cancellations.pop_front().unwrap_or_default();
        self.without_forbidden_panic(reaction)
    }

    fn next_change(&mut self) -> Option<Op> {
        self.on_changes.pop_front().flatten()
    }

    fn without_forbidden_panic(&self, reaction: Reaction) -> Reaction {
        Reaction {
            panic: reaction.panic.filter(|_| self.may_panic),
            ..reaction
        }
    }
}

impl Reaction {
    /// Plays the reaction in an observer.
    fn observe(self, commands: &mut Commands) {
        let panic = self.panic;
        for op in self.ops {
            commands.queue(|world: &mut World| op.play(world));
        }
        commands.queue(move |world: &mut World| {
            // An earlier panic can delay this command until panics are no longer caught.
            let may_panic = world.resource::<Reactions>().may_panic;
            panic_if(may_panic && panic == Some(PanicIn::Command));
        });
        panic_if(panic == Some(PanicIn::Handler));
    }

    /// Plays the reaction in a timer action, which can access the whole world.
    fn act(self, world: &mut World) {
        panic_if(self.panic == Some(PanicIn::Handler));
        for op in self.ops {
            op.play(world);
        }
        panic_if(self.panic == Some(PanicIn::Command));
    }
}

/// Panics without a message, so that the output stays clean.
fn panic_if(condition: bool) {
    if condition {
        resume_unwind(Box::new("the script says so"));
    }
}

/// Returns an action that plays the next reaction.
pub(crate) fn action() -> TimerAction {
    TimerAction::call(|world: &mut World, _| {
        let reaction = world.resource_mut::<Reactions>().next_firing();
        reaction.act(world);
    })
}

fn new_game() -> App {
    let mut app = unobserved_app_with(burst_limit(7));
    ignore_errors(&mut app);
    set_fixed_step(&mut app, FIXED_STEP_MILLIS);
    let cast = Cast::spawn(&mut app);
    app.insert_resource(cast)
        .init_resource::<Ledger>()
        .init_resource::<Reactions>();
    app.add_observer(react_to_firing)
        .add_observer(react_to_cancellation)
        .add_observer(react_to_insertion)
        .add_observer(react_to_removal);
    app
}

// Each observer both records the event and reacts to it, because a panic can skip other observers.

fn react_to_firing(
    fired: On<TimerFired>,
    mut recorder: FiringRecorder,
    mut reactions: ResMut<Reactions>,
    mut commands: Commands,
) {
    // If the owner is observed, the same event is triggered again on the owner.
    if fired.event_target() == fired.entity() {
        recorder.record(&fired);
        reactions.next_firing().observe(&mut commands);
    }
}

fn react_to_cancellation(
    cancelled: On<TimerCancelled>,
    mut ledger: ResMut<Ledger>,
    mut reactions: ResMut<Reactions>,
    mut commands: Commands,
) {
    ledger.record_cancellation(&cancelled);
    reactions.next_cancellation().observe(&mut commands);
}

fn react_to_insertion(
    inserted: On<Insert<Timer>>,
    mut ledger: ResMut<Ledger>,
    reactions: ResMut<Reactions>,
    commands: Commands,
) {
    ledger.record_insertion(inserted.entity);
    react_to_change(reactions, commands);
}

fn react_to_removal(_: On<Remove<Timer>>, reactions: ResMut<Reactions>, commands: Commands) {
    react_to_change(reactions, commands);
}

fn react_to_change(mut reactions: ResMut<Reactions>, mut commands: Commands) {
    if let Some(op) = reactions.next_change() {
        commands.queue(|world: &mut World| op.play(world));
    }
}

fn play(frames: Vec<Frame>, with_panics: bool) {
    let mut app = new_game();
    for frame in frames {
        play_frame(&mut app, frame, with_panics);
        play_quiet_frames(&mut app);
        check_invariants(app.world_mut());
    }
}

fn play_frame(app: &mut App, frame: Frame, with_panics: bool) {
    app.insert_resource(Reactions {
        on_firings: frame.on_firings.into(),
        on_cancellations: frame.on_cancellations.into(),
        on_changes: frame.on_changes.into(),
        may_panic: false,
    });
    for (index, repair) in frame.repairs.into_iter().enumerate() {
        if let Some(repair) = repair {
            repair.play(app.world_mut(), index);
        }
    }
    app.world_mut().flush();
    for op in frame.ops {
        op.play(app.world_mut());
    }
    app.world_mut().resource_mut::<Reactions>().may_panic = with_panics;
    advance_and_read(app, frame.millis);
}

/// Runs frames without reactions, so that the timers of the last frame can end.
fn play_quiet_frames(app: &mut App) {
    app.insert_resource(Reactions::default());
    app.world_mut().flush();
    advance_and_read(app, FIXED_STEP_MILLIS + 1);
    advance_and_read(app, 0);
}
