//! What the entities do.

use core::time::Duration;
use std::io::{self, Write};

use bevy_app::prelude::*;
use bevy_due::{
    ArmedTimers, Timer,
    message::{MessageContext, Packet},
    prelude::*,
    worlds::StableKey,
};
use bevy_due_ownership::{
    Arrived, DurableCommandsExt, DurableEntityCommandsExt, MailReturned, MoveFailed, Zone,
};
use bevy_ecs::prelude::*;

use crate::ledger::{ENTITIES, Ledger, Letter, Plan, ZONES};

const GOLD: u32 = 1;
/// The timer that ends a visit.
const VISIT: &str = "visit";

/// No entity begins anything new.
#[derive(Resource)]
pub(crate) struct Resting;

pub(crate) fn plugin(app: &mut App) {
    app.add_observer(arrive)
        .add_observer(fire)
        .add_observer(stay)
        .add_observer(take_back);
}

/// Writes a line at once: the process may be killed after it.
pub(crate) fn say(line: &str) {
    let mut out = io::stdout().lock();
    _ = out.write_all(format!("{line}\n").as_bytes());
    _ = out.flush();
}

/// Spawns the share of a zone.
pub(crate) fn spawn(world: &mut World, zone: StableKey, ticks: u64) {
    for key in (1..=ENTITIES).filter(|key| key % ZONES == zone.0 % ZONES) {
        let mut ledger = Ledger::new(key, ticks);
        ledger.zone = zone.0;
        let period = Duration::from_millis(100 + ledger.random(200)) * (1 + ticks as u32 / 20);
        // Real time passes while a process is down, and game time does not.
        let clock = [ClockId::Real, ClockId::Virtual][(key / ZONES % 2) as usize];
        let periodic = Timer::every(period).times(ticks as u32).on(clock);
        let entity = world.spawn((StableKey(key), ledger, periodic, ears())).id();
        world.commands().entity(entity).set_timer(VISIT, visit(key));
    }
    world.commands().after_commit(|| say("born"));
    world.flush();
}

fn visit(random: u64) -> Timer {
    Timer::after(Duration::from_millis(200 + random % 1000))
}

fn ears() -> MessageComponent {
    MessageComponent::new().on_packet(GOLD, |mut me: MessageContext, packet: &Packet| -> Result {
        let letter = postcard::from_bytes(packet.payload())?;
        let ledger = me.entity.get_mut::<Ledger>();
        ledger.ok_or("it has a ledger")?.hear(letter);
        Ok(())
    })
}

fn arrive(
    arrived: On<Arrived>,
    zone: Res<Zone>,
    timers: ArmedTimers,
    mut ledgers: Query<&mut Ledger>,
    mut commands: Commands,
) -> Result {
    let mut ledger = ledgers.get_mut(arrived.entity)?;
    commands.entity(arrived.entity).insert(ears());
    if ledger.zone != zone.key().0 {
        ledger.zone = zone.key().0;
        ledger.moves += 1;
        let (key, moves) = (arrived.key.0, ledger.moves);
        commands.after_commit(move || say(&format!("moved {key} {moves}")));
    }
    if timers.keyed(arrived.entity, VISIT).is_none() {
        let visit = visit(ledger.random(1000));
        commands.entity(arrived.entity).set_timer(VISIT, visit);
    }
    Ok(())
}

fn fire(
    fired: On<TimerFired>,
    resting: Option<Res<Resting>>,
    mut ledgers: Query<(&StableKey, &mut Ledger)>,
    mut commands: Commands,
) {
    let Ok((&me, mut ledger)) = ledgers.get_mut(fired.owner()) else {
        return;
    };
    if fired.has_key(VISIT) {
        if resting.is_none() {
            end_visit(me, &mut ledger, commands.entity(fired.owner()));
        }
        return;
    }
    ledger.tick(fired.count());
    let (key, count) = (me.0, fired.count());
    commands.after_commit(move || say(&format!("fired {key} {count}")));
}

/// Sends a letter, and moves on.
fn end_visit(me: StableKey, ledger: &mut Ledger, mut entity: EntityCommands) {
    let Plan {
        partner,
        letter,
        zone,
    } = ledger.plan(me);
    let letter = postcard::to_allocvec(&letter).expect("numbers can be encoded");
    entity.mail(partner, Packet::new(GOLD, letter));
    match zone.0 == ledger.zone {
        true => _ = entity.set_timer(VISIT, visit(ledger.random(1000))),
        false => _ = entity.move_to(zone),
    }
}

fn stay(failed: On<MoveFailed>, mut ledgers: Query<&mut Ledger>, mut commands: Commands) -> Result {
    let mut ledger = ledgers.get_mut(failed.entity)?;
    ledger.failed_moves += 1;
    let visit = visit(ledger.random(1000));
    commands.entity(failed.entity).set_timer(VISIT, visit);
    Ok(())
}

fn take_back(returned: On<MailReturned>, mut ledgers: Query<&mut Ledger>) -> Result {
    let letter: Letter = postcard::from_bytes(returned.letter.payload())?;
    ledgers
        .get_mut(returned.entity)?
        .take_back(returned.to, letter);
    Ok(())
}
