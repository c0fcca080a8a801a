//! The operations of a script.

use core::time::Duration;

use bevy_due::{
    Clock, ClockId, ClocksMut, DespawnAfter, DueEntityCommandsExt, DueWorldExt, MissedTicks,
    OnClock, OwnedBy, Paused, Timer, TimerAction,
    clock::SpeedModifier,
    message::{
        Delivery, MessageComponent, MessageContext, MessageEntityCommandsExt, MessageWorldExt,
        Packet,
    },
    timer::{Pauses, TimerMut},
    worlds::StableKey,
};
use bevy_ecs::{prelude::*, system::SystemState};

use super::{
    super::bytes::Bytes,
    take,
    watch::{Entry, Watch},
};

/// The entities of a script. Those that have despawned are spawned again when an operation needs
/// them.
#[derive(Resource)]
pub(super) struct Slots {
    entities: [Entity; 6],
    clocks: [Entity; 3],
    sent: u32,
}

impl FromWorld for Slots {
    fn from_world(world: &mut World) -> Self {
        Self {
            entities: [(); 6].map(|()| world.spawn_empty().id()),
            clocks: [(); 3].map(|()| world.spawn(Clock::new()).id()),
            sent: 0,
        }
    }
}

#[derive(Component)]
struct Buff;

const KEYS: [&str; 3] = ["a", "b", "c"];

const SPEEDS: [f64; 8] = [0.0, 0.1, 0.5, 1.0, 1.0, 3.0, 1e9, 1e-9];

/// Runs the next operation. Each kind reads the bytes that it needs.
pub(super) fn run_op(world: &mut World) {
    let kind = take(world, |bytes| bytes.below(32));
    match kind {
        0..=7 => run_timer_op(kind, world),
        8..=14 => run_change_op(kind, world),
        15..=22 => run_clock_op(kind, world),
        _ => run_entity_op(kind, world),
    }
    world.flush();
}

fn run_timer_op(kind: usize, world: &mut World) {
    let entity = entity(world);
    match kind {
        0..=3 => {
            let timer = timer(world);
            world.entity_mut(entity).insert(timer);
        }
        4 => _ = world.entity_mut(entity).remove::<Timer>(),
        5 => {
            let (key, timer) = (key(world), timer(world));
            world.entity_mut(entity).set_timer(key, timer);
        }
        6 => {
            let key = key(world);
            world.cancel_timer(entity, key);
        }
        _ => _ = world.entity_mut(entity).cancel_timers(),
    }
}

/// Moves and changes armed timers. A timer that does not exist is an error, which is ignored.
fn run_change_op(kind: usize, world: &mut World) {
    let (entity, by) = (entity(world), take(world, span));
    world.resource_mut::<Watch>().forget_places();
    match kind {
        8 => _ = world.change_timer(entity, |timer| timer.reschedule(by)),
        9 => _ = world.change_timer(entity, |timer| timer.delay_by(by)),
        10 => _ = world.entity_mut(entity).delay_timers_by(by),
        11 => {
            let what = take(world, Bytes::byte);
            _ = world.change_timer(entity, |timer| change(timer, what, by));
        }
        12 => {
            let (what, key) = (take(world, Bytes::byte), key(world));
            _ = world.change_keyed_timer(entity, key, |timer| change(timer, what, by));
        }
        13 => _ = world.entity_mut(entity).pause_for(by),
        _ => {
            let clock = clock(world);
            Watch::begin_run(world);
            world.fast_forward_to_next(clock).ok();
        }
    }
}

fn change(timer: &mut TimerMut, what: u8, by: Duration) {
    match what % 8 {
        0 => timer.pause(),
        1 => timer.resume(),
        2 => timer.refresh(),
        3 => timer.set_left(u32::from(what / 8) + 1),
        4 => timer.set_interval(by.max(Duration::from_nanos(1))),
        5 => timer.set_remaining(by),
        6 => timer.set_clock(ClockId::Real).unwrap(),
        _ => timer.restart(),
    }
}

fn run_clock_op(kind: usize, world: &mut World) {
    let nth = take(world, |bytes| bytes.below(3));
    let id = world.resource::<Slots>().clocks[nth];
    match kind {
        15 => {
            let (parent, speed) = (clock(world), speed(world));
            let clock = Clock::of(parent).with_speed(speed);
            match world.get_entity_mut(id) {
                Ok(mut entity) => _ = entity.insert(clock),
                Err(_) => {
                    let id = world.spawn(clock).id();
                    world.resource_mut::<Slots>().clocks[nth] = id;
                }
            }
            world.resource_mut::<Watch>().is_set_back = true;
        }
        16 => _ = world.despawn(id),
        17 => {
            let (speed, entity) = (speed(world), entity(world));
            world
                .entity_mut(entity)
                .insert(SpeedModifier::new(id, speed));
        }
        _ => {
            let (clock, speed, by) = (clock(world), speed(world), take(world, span));
            change_clock(world, clock, kind, speed, by);
        }
    }
}

fn change_clock(world: &mut World, clock: ClockId, kind: usize, speed: f64, by: Duration) {
    let mut clocks = SystemState::<ClocksMut>::new(world);
    let mut clocks = clocks.get_mut(world).unwrap();
    let Ok(mut clock) = clocks.get_mut(clock) else {
        return;
    };
    match kind {
        18 => clock.set_speed(speed),
        19 => clock.pause(),
        20 => clock.unpause(),
        21 => clock.advance_by(by),
        _ => {
            clock.set_now(by);
            world.resource_mut::<Watch>().is_set_back = true;
        }
    }
}

fn run_entity_op(kind: usize, world: &mut World) {
    let (entity, other) = (entity(world), entity(world));
    match kind {
        23 => _ = world.entity_mut(entity).insert(Paused),
        24 => _ = world.entity_mut(entity).remove::<Paused>(),
        25 => {
            let clock = clock(world);
            world.entity_mut(entity).insert(OnClock(clock));
        }
        26 => {
            let by = take(world, span);
            world.entity_mut(entity).insert(DespawnAfter::new(by));
        }
        27 => {
            let by = take(world, span);
            world.entity_mut(entity).insert_for(by, Buff);
        }
        28 if entity != other => _ = world.entity_mut(entity).insert(OwnedBy(other)),
        29 => _ = world.despawn(entity),
        30 if entity != other => _ = world.entity_mut(entity).insert(Pauses(other)),
        _ => run_message_op(entity, other, world),
    }
}

fn run_message_op(entity: Entity, other: Entity, world: &mut World) {
    let mut slots = world.resource_mut::<Slots>();
    slots.sent += 1;
    let packet = Packet::new(1, slots.sent.to_le_bytes());
    match take(world, |bytes| bytes.below(8)) {
        0 => {
            let hear = |mut me: MessageContext, packet: &Packet| {
                let heard = u32::from_le_bytes(packet.payload().try_into().unwrap());
                let entry = Entry::Heard(me.entity.id(), heard);
                me.commands
                    .queue(|world: &mut World| world.resource_mut::<Watch>().log.push(entry));
            };
            let ears = MessageComponent::new().on_packet(1, hear);
            world.entity_mut(entity).insert(ears);
        }
        1 => _ = world.entity_mut(entity).remove::<MessageComponent>(),
        2 => world.send(entity, packet).unwrap(),
        3 => world.send(Delivery::All, packet).unwrap(),
        4 => world.send(Delivery::InTurn, packet).unwrap(),
        5 => world.message_sender().send(entity, packet).unwrap(),
        6 => {
            let (until, _) = timer(world);
            let mut commands = world.commands();
            commands.entity(entity).ask(other, packet, until);
        }
        _ => _ = world.entity_mut(entity).insert(StableKey(7)),
    }
}

/// Returns an entity of the script. Spawns it if it does not exist.
fn entity(world: &mut World) -> Entity {
    let nth = take(world, |bytes| bytes.below(6));
    let entity = world.resource::<Slots>().entities[nth];
    if world.get_entity(entity).is_ok() {
        return entity;
    }
    let entity = world.spawn_empty().id();
    world.resource_mut::<Slots>().entities[nth] = entity;
    entity
}

fn clock(world: &mut World) -> ClockId {
    let own = world.resource::<Slots>().clocks;
    match take(world, |bytes| bytes.below(8)) {
        0 => ClockId::Real,
        1 => ClockId::Frames,
        2 => ClockId::Fixed,
        nth @ 3..6 => ClockId::Own(own[nth - 3]),
        _ => ClockId::Virtual,
    }
}

fn speed(world: &mut World) -> f64 {
    SPEEDS[take(world, |bytes| bytes.below(SPEEDS.len()))]
}

fn key(world: &mut World) -> &'static str {
    KEYS[take(world, |bytes| bytes.below(KEYS.len()))]
}

/// Returns a timer, with an action or without.
fn timer(world: &mut World) -> (Timer, TimerAction) {
    let (delay, interval, settings) = take(world, |bytes| (span(bytes), span(bytes), bytes.byte()));
    let mut timer = match settings % 4 {
        0 => Timer::after(delay),
        1 => Timer::every(interval.max(Duration::from_nanos(1))).first_after(delay),
        2 => Timer::every(interval.max(Duration::from_nanos(1))).with_jitter(delay),
        _ => Timer::every(interval.max(Duration::from_nanos(1))).times(3),
    };
    timer = timer.with_missed_ticks(match settings / 4 % 4 {
        0 => MissedTicks::Delay,
        1 => MissedTicks::Skip,
        _ => MissedTicks::Burst,
    });
    if settings & 16 != 0 {
        let clock = clock(world);
        timer = timer.on(clock);
    }
    let action = match settings >> 5 {
        0 => TimerAction::despawn(),
        1 => TimerAction::despawn_owner(),
        2 => TimerAction::named("missing"),
        _ => TimerAction::default(),
    };
    (timer, action)
}

/// Spreads a byte over nanoseconds, frames, seconds, days and centuries.
pub(super) fn span(bytes: &mut Bytes) -> Duration {
    let byte = bytes.byte();
    let small = u64::from(byte & 31);
    Duration::from_nanos(match byte >> 5 {
        0 => small,
        1 => small * 1_000_000,
        2 | 3 => small * 16_777_216,
        4 => small * 1_000_000_000,
        5 => small * 60_000_000_000,
        6 => small * 86_400_000_000_000,
        _ => u64::MAX >> small,
    })
}
