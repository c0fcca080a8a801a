//! The scripted game: timers of all kinds with handlers of all kinds, in long frames.

use core::fmt;

use bevy_app::prelude::*;
use bevy_due::{
    ArmedTimers, CancelReason, Clock, MissedTicks, OwnedTimerCancelled, OwnedTimerFired, Timer,
    TimerCancelled, clock::SpeedModifier, conditions, prelude::*, timer::Keyed,
};
use bevy_ecs::{
    entity_disabling::Disabled,
    error::{FallbackErrorHandler, ignore},
    lifecycle::{Despawn, Insert, Remove},
    message::{MessageCursor, Messages},
    prelude::*,
    query::Allow,
};
use bevy_time::{Fixed, Time};

use super::fault::{Fault, Place};
use crate::support::*;

/// The frame of this length comes after the cancellations.
const CANCEL: u64 = 1;

/// The length of a fixed step in milliseconds.
const FIXED_STEP: u64 = 25;

/// A component for a while.
#[derive(Component)]
struct Shield;

/// Everything that must be the same with and without a fault. Each list is sorted.
#[derive(Debug, Default)]
pub(crate) struct Outcome {
    /// The name, the deadline in nanoseconds and the count of each firing.
    pub(crate) firings: Vec<(&'static str, u128, u64, bool)>,
    pub(crate) cancellations: Vec<(&'static str, CancelReason)>,
    pub(crate) left: Vec<&'static str>,
}

impl Outcome {
    /// Returns the differences from another outcome, in words.
    pub(crate) fn differences(&self, expected: &Self) -> Vec<String> {
        let mut found = differences(&self.firings, &expected.firings);
        found.extend(differences(&self.cancellations, &expected.cancellations));
        found.extend(differences(&self.left, &expected.left));
        found
    }
}

fn differences<T: fmt::Debug + PartialEq>(found: &[T], expected: &[T]) -> Vec<String> {
    let extra = found.iter().filter(|entry| !expected.contains(entry));
    let missing = expected.iter().filter(|entry| !found.contains(entry));
    let extra = extra.map(|entry| format!("unexpected: {entry:?}"));
    extra
        .chain(missing.map(|entry| format!("missing: {entry:?}")))
        .collect()
}

/// Reads messages only: a panic may keep other observers from an event.
#[derive(Resource, Default)]
pub(crate) struct Ledger {
    outcome: Outcome,
    fired: MessageCursor<TimerFired>,
    cancelled: MessageCursor<TimerCancelled>,
    /// The names of entities that may have despawned.
    names: Vec<(Entity, &'static str)>,
}

/// Creates an app with the fault and the ledger.
pub(crate) fn faulty_app(fault: Fault) -> App {
    let mut app = unobserved_app();
    app.insert_resource(FallbackErrorHandler(ignore))
        .insert_resource(fault)
        .init_resource::<Ledger>()
        .insert_resource(Time::<Fixed>::from_duration(ms(FIXED_STEP)))
        .add_observer(
            |tagged: On<Insert<Tag>>, tags: Query<&Tag>, mut ledger: ResMut<Ledger>| {
                if let Ok(&Tag(name)) = tags.get(tagged.entity) {
                    ledger.names.push((tagged.entity, name));
                }
            },
        );
    app
}

/// Adds the timers of the game and their handlers.
pub(crate) fn add_timers(app: &mut App) {
    add_observers(app);
    let world = app.world_mut();
    world.add_timer_handler("handler", |_: In<TimerFired>, fault: Res<Fault>| {
        fault.strike(Place::NamedHandler);
    });
    let fast = world
        .spawn((Tag("fast clock"), Clock::new().with_speed(2.0)))
        .id();
    let act = TimerAction::call(|world: &mut World, _| {
        world.resource::<Fault>().strike(Place::Action);
    });
    // With commands, a panic in one insertion does not keep the others away.
    let mut commands = world.commands();
    commands
        .spawn((Tag("bomb"), Timer::after(ms(35)), act.clone()))
        .observe(|_: On<TimerFired>, fault: Res<Fault>| fault.strike(Place::EntityObserver));
    let burst = Timer::every(ms(10)).times(11);
    commands
        .spawn((Tag("burst"), burst, act))
        .observe(|_: On<TimerFired>, fault: Res<Fault>| fault.strike(Place::EntityObserver));
    let named = Timer::every(ms(30)).times(4).on(fast);
    commands.spawn((Tag("named"), named, TimerAction::named("handler")));
    commands.spawn((Tag("frames"), Timer::every_frames(1).times(2)));
    let skips = Timer::every(ms(40)).with_missed_ticks(MissedTicks::Skip);
    commands.spawn((Tag("skips"), skips.times(2).on(ClockId::Fixed)));
    let random = Timer::every_between(ms(15)..=ms(45)).times(3);
    commands.spawn((Tag("random"), random));
    add_lifetimes(&mut commands, fast);
    add_owned(&mut commands);
    add_delayed(&mut commands);
    world.flush();
}

fn add_lifetimes(commands: &mut Commands, clock: Entity) {
    let lifetime = |millis| DespawnAfter::new(ms(millis));
    commands.spawn((Tag("mortal"), lifetime(45)));
    let timer = Timer::every(ms(20));
    commands.spawn((Tag("mortal timer"), timer, lifetime(64)));
    let slow = SpeedModifier::new(clock, 0.5);
    commands.spawn((Tag("slow"), slow, lifetime(110)));
    commands
        .spawn((Tag("shield"), Timer::every(ms(33))))
        .insert_for(ms(50), Shield);
}

fn add_observers(app: &mut App) {
    app.add_observer(
        |_: On<TimerFired>, fault: Res<Fault>, mut commands: Commands| {
            commands.queue(|world: &mut World| {
                world.resource::<Fault>().strike(Place::ObserverCommand);
            });
            fault.strike(Place::GlobalObserver);
        },
    )
    .add_observer(|_: On<Insert<Timer>>, fault: Res<Fault>| {
        fault.strike(Place::TimerInserted);
    })
    .add_observer(|_: On<Remove<Timer>>, fault: Res<Fault>| {
        fault.strike(Place::TimerRemoved);
    })
    .add_observer(|_: On<Remove<DespawnAfter>>, fault: Res<Fault>| {
        fault.strike(Place::LifetimeRemoved);
    })
    .add_observer(|_: On<Despawn<Tag>>, fault: Res<Fault>| {
        fault.strike(Place::EntityDespawned);
    })
    .add_observer(
        |_: On<TimerCancelled>, fault: Res<Fault>, mut commands: Commands| {
            commands.queue(|world: &mut World| {
                world.resource::<Fault>().strike(Place::CancelCommand);
            });
            fault.strike(Place::Cancelled);
        },
    );
    let is_due = |fault: Res<Fault>| {
        fault.strike(Place::RunCondition);
        true
    };
    app.add_systems(
        Update,
        (|| {})
            .run_if(is_due)
            .run_if(conditions::timer_fired::<Tag>),
    );
}

fn add_owned(commands: &mut Commands) {
    let boss = commands
        .spawn(Tag("boss"))
        .observe(|_: On<OwnedTimerFired>, fault: Res<Fault>| fault.strike(Place::OwnerObserver))
        .observe(|_: On<OwnedTimerCancelled>, fault: Res<Fault>| {
            fault.strike(Place::OwnedCancelled);
        })
        .id();
    let owned = |name, timer: Timer| (OwnedBy(boss), Tag(name), timer);
    commands.spawn(owned("enrage", Timer::after(ms(60))));
    let summon = Timer::every(ms(25)).times(3);
    commands.spawn((Keyed::new("summon"), owned("summon", summon)));
    let heal = Timer::every(ms(50));
    commands.spawn((Keyed::new("heal"), owned("heal", heal)));
    commands.spawn((Paused, Tag("paused"), Timer::every(ms(5))));
}

fn add_delayed(commands: &mut Commands) {
    let strike = |commands: &mut Commands| {
        commands.queue(|world: &mut World| {
            world.resource::<Fault>().strike(Place::DelayedCommands);
        });
    };
    let delayed = commands.every(ms(20)).times(3);
    delayed.queue(strike).insert(Tag("commands"));
    let delayed = commands.every(ms(30)).times(3);
    let strike = |fault: Res<Fault>| fault.strike(Place::DelayedSystem);
    delayed.run(strike).insert(Tag("system"));
}

/// Cancels timers in each way, each with a command of its own.
pub(crate) fn cancel_in_many_ways(app: &mut App) {
    let world = app.world_mut();
    let dead = world.spawn(Clock::new()).id();
    let mut commands = world.commands();
    for name in ["on a dead clock", "on a dead clock, too"] {
        commands.spawn((Tag(name), Timer::every(ms(10)).on(dead)));
    }
    commands.entity(dead).despawn();
    for name in ["without a clock", "without a clock, too"] {
        commands.spawn((Tag(name), Timer::after(ms(10)).on(dead)));
    }
    world.flush();
    let find = |name| {
        let ledger = world.resource::<Ledger>();
        let mut names = ledger.names.iter();
        names
            .find(|named| named.1 == name)
            .expect("the entity was spawned")
            .0
    };
    let [boss, skips] = ["boss", "skips"].map(find);
    let mut commands = world.commands();
    commands.queue(move |world: &mut World| {
        world.cancel_timer(boss, "heal");
    });
    commands.entity(boss).insert(DespawnAfter::new(ms(10)));
    commands.entity(skips).insert(Timer::after(ms(5)));
}

/// Plays the script to its end: long frames, and cancellations between them.
pub(crate) fn play_out(app: &mut App, mut advance: impl FnMut(&mut App, u64)) {
    for millis in [65, 65, CANCEL, 130] {
        if millis == CANCEL {
            cancel_in_many_ways(app);
        }
        advance(app, millis);
        read_messages(app.world_mut());
        let was_struck = app.world().resource::<Fault>().is_struck();
        for _ in 0..2 {
            advance(app, FIXED_STEP);
            read_messages(app.world_mut());
        }
        // After a panic in its last firing, a timer ends in the next run of its clock.
        if app.world().resource::<Fault>().is_struck() == was_struck {
            check_counts(app.world_mut());
        }
    }
}

/// Reads the messages of a frame. None may be there twice.
pub(crate) fn read_messages(world: &mut World) {
    world.resource_scope(|world, mut ledger: Mut<Ledger>| {
        let Ledger {
            outcome,
            fired,
            cancelled,
            names,
        } = &mut *ledger;
        let name = |entity| {
            let found = names.iter().find(|(named, _)| *named == entity);
            found.map_or("", |(_, name)| name)
        };
        for fired in fired.read(world.resource::<Messages<TimerFired>>()) {
            let deadline = fired.deadline().as_nanos();
            let firing = (
                name(fired.entity()),
                deadline,
                fired.count(),
                fired.is_last(),
            );
            assert!(
                !outcome.firings.contains(&firing),
                "{firing:?} should happen once"
            );
            outcome.firings.push(firing);
        }
        for cancelled in cancelled.read(world.resource::<Messages<TimerCancelled>>()) {
            let cancellation = (name(cancelled.entity()), cancelled.reason());
            assert!(
                !outcome.cancellations.contains(&cancellation),
                "{cancellation:?} should happen once"
            );
            outcome.cancellations.push(cancellation);
        }
    });
}

/// Compares the state of the timers with the components.
pub(crate) fn check_counts(world: &mut World) {
    let mut timers = world.query_filtered::<Entity, (With<Timer>, Allow<Disabled>)>();
    let timers: Vec<Entity> = timers.iter(world).collect();
    world.with_timers(|armed: ArmedTimers| {
        for &timer in &timers {
            assert!(armed.get(timer).is_some(), "{timer} should be armed");
        }
        let rows = armed
            .to_string()
            .lines()
            .skip(1)
            .filter(|row| !row.is_empty())
            .count();
        assert_eq!(
            [armed.count(), armed.iter().count(), rows],
            [timers.len(); 3],
            "the count, the iterator and the listing should match the components"
        );
    });
}

pub(crate) fn outcome(app: &mut App) -> Outcome {
    let world = app.world_mut();
    let mut tags = world.query::<(Entity, &Tag)>();
    let mut left: Vec<_> = tags.iter(world).map(|(_, tag)| tag.0).collect();
    left.sort();
    let mut outcome = core::mem::take(&mut world.resource_mut::<Ledger>().outcome);
    outcome.left = left;
    outcome.firings.sort();
    outcome
        .cancellations
        .sort_by_key(|(name, reason)| (*name, *reason as u8));
    outcome
}
