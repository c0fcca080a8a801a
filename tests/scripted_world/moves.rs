//! The moves that handlers make: they arm, change, pause, cancel and despawn timers, owners and
//! clocks, and send messages.

use bevy_app::FixedPreUpdate;
use bevy_due::{
    Timer,
    message::{Delivery, MessageCommandsExt, MessageEntityCommandsExt, Packet},
    prelude::*,
    timer::TimerMut,
};
use bevy_ecs::prelude::*;

use super::{
    Cast, Dice,
    cast::{Hit, PACKET, Ping},
    checksum::{Kind, Recorder},
    clocks, ms,
    timers::{KEYS, any_timer},
};

/// The longest delay of a timer that a handler arms, in milliseconds.
const LONGEST: u64 = 1500;

/// A component for a while.
#[derive(Component)]
struct Shield;

/// Makes a move after the firing of `entity`.
pub(super) fn make(world: &mut World, entity: Entity) {
    let choice = world.resource_mut::<Dice>().roll(1000);
    if choice == 999 {
        // Nests a run in this one.
        _ = world.try_run_schedule(FixedPreUpdate);
        return;
    }
    world.resource_scope(|world, mut dice: Mut<Dice>| {
        world.resource_scope(|world, mut cast: Mut<Cast>| match choice % 10 {
            0..=2 => arm(world, entity, &mut dice, &mut cast),
            3 => end(world, &mut dice, &mut cast),
            4 => pause(world, &mut dice, &cast),
            5 | 6 => change(world, &mut dice, &cast),
            7 => key(world, &mut dice, &cast),
            8 if choice < 300 => clocks::change(world, &mut dice, &mut cast),
            _ => send(world, &mut dice, &cast),
        });
    });
    world.flush();
}

fn arm(world: &mut World, entity: Entity, dice: &mut Dice, cast: &mut Cast) {
    let timer = any_timer(dice, cast, LONGEST);
    match dice.roll(4) {
        0 => cast.timers.push(world.spawn(timer).id()),
        1 => {
            let owner = dice.pick(&cast.owners);
            if world.get_entity(owner).is_ok() {
                cast.timers.push(world.spawn((OwnedBy(owner), timer)).id());
            }
        }
        2 => {
            let entity_number = dice.roll(100);
            let commands = &mut world.commands();
            commands.after(timer.delay()).queue(move |commands| {
                commands.send(Delivery::InTurn, Hit(entity_number));
            });
        }
        _ => {
            if let Ok(mut entity) = world.get_entity_mut(entity) {
                entity.insert(timer);
            }
        }
    }
}

fn end(world: &mut World, dice: &mut Dice, cast: &mut Cast) {
    let other = dice.pick(&cast.timers);
    let nth = dice.roll(cast.owners.len() as u64) as usize;
    match dice.roll(24) {
        0 => {
            world.despawn(cast.owners[nth]);
            cast.owners[nth] = world.spawn_empty().id();
        }
        1 => with(world, cast.owners[nth], |mut owner| {
            owner.cancel_timers();
        }),
        choice if choice % 2 == 0 => with(world, other, |mut other| _ = other.remove::<Timer>()),
        _ => _ = world.try_despawn(other),
    }
}

fn pause(world: &mut World, dice: &mut Dice, cast: &Cast) {
    let (timer, owner) = (dice.pick(&cast.timers), dice.pick(&cast.owners));
    let target = if dice.roll(2) == 0 { timer } else { owner };
    let (by, choice) = (dice.ms(800), dice.roll(3));
    with(world, target, |mut target| {
        match choice {
            0 => target.pause_for(by),
            1 => target.insert(Paused),
            _ => target.remove::<Paused>(),
        };
    });
}

fn change(world: &mut World, dice: &mut Dice, cast: &Cast) {
    let (timer, clock) = (dice.pick(&cast.timers), dice.pick(&cast.clocks));
    let (by, choice) = (ms(1) + dice.ms(LONGEST), dice.roll(9));
    with(world, timer, |mut timer| {
        let change = move |timer: &mut TimerMut| match choice {
            0 => timer.pause(),
            1 => timer.resume(),
            2 => timer.restart(),
            3 => timer.refresh(),
            4 => timer.set_left(3),
            5 => timer.set_interval(by),
            6 => timer.set_remaining(by),
            7 => timer.delay_by(by),
            _ => _ = timer.set_clock(clock),
        };
        timer.change_own_timer(change);
    });
}

fn key(world: &mut World, dice: &mut Dice, cast: &Cast) {
    let (owner, key) = (dice.pick(&cast.owners), dice.pick(&KEYS));
    let timer = any_timer(dice, cast, LONGEST);
    let (by, choice) = (dice.ms(LONGEST), dice.roll(6));
    with(world, owner, |mut owner| match choice {
        0 | 1 => _ = owner.set_timer(key, timer),
        2 => _ = owner.refresh_timer(key, timer),
        3 => _ = owner.cancel_timer(key),
        4 => _ = owner.delay_timers_by(by),
        _ => _ = owner.insert_for(by, Shield),
    });
}

fn send(world: &mut World, dice: &mut Dice, cast: &Cast) {
    let (to, value) = (dice.pick(&cast.followers), dice.roll(100));
    let until = Timer::after(dice.ms(200));
    let delivery = match dice.roll(3) {
        0 => Delivery::All,
        1 => Delivery::InTurn,
        _ => to.into(),
    };
    let asker = dice.pick(&cast.followers);
    let choice = dice.roll(4);
    let mut commands = world.commands();
    match choice {
        0 => commands.send(delivery, Hit(value)),
        1 => commands.send(delivery, Packet::new(PACKET, [value as u8; 3])),
        _ => {
            let request = commands.entity(asker).ask(delivery, Ping(value), until);
            let recorder = world.resource::<Recorder>();
            let request = request.entity().map_or(u64::MAX, |it| recorder.number(it));
            recorder.call(Kind::Call, asker, [], &[request]);
        }
    }
}

fn with(world: &mut World, entity: Entity, change: impl FnOnce(EntityWorldMut)) {
    if let Ok(entity) = world.get_entity_mut(entity) {
        change(entity);
    }
}
