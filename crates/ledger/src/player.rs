//! The game: what players do, and what happens to them.

use core::time::Duration;
use std::io::{self, Write};

use bevy_app::prelude::*;
use bevy_due::{
    Clocks, Timer,
    message::{MessageCommandsExt, MessageContext, NoAnswer, Packet},
    prelude::*,
    worlds::{Parcel, ParcelEntityCommandsExt, StableKey},
};
use bevy_due_ownership::{
    Arrived, DurableCommandsExt, DurableEntityCommandsExt, MailReturned, MoveFailed, Zone,
};
use bevy_ecs::prelude::*;

use crate::books::{DOSE, Ledger, Letter, Scars, Wounds, hunger};

/// The group of all zones.
pub(crate) const ZONES: &str = "zones";

// The packets.
const LETTER: u32 = 1;
const QUESTION: u32 = 2;
const ANSWER: u32 = 3;

// The timers of a player, beside hunger.
const VISIT: &str = "visit";
const POISON: &str = "poison";

/// The distances to the players to whom a player writes.
const PARTNERS: [u64; 8] = [1, 7, 31, 60, 99, 150, 211, 299];

/// The world of this shard.
#[derive(Resource, Clone, Copy)]
pub(crate) struct Here {
    pub(crate) nth: u64,
    pub(crate) shards: u64,
    /// The number of all players. Their keys begin with 1.
    pub(crate) players: u64,
    pub(crate) build: u32,
    /// Nobody begins anything new.
    pub(crate) is_resting: bool,
}

/// Returns the key of the zone of a shard.
pub(crate) fn zone(nth: u64) -> StableKey {
    StableKey(1_000_001 + nth)
}

/// Returns the key of the sage of a shard, who thinks before each answer.
fn sage(nth: u64) -> StableKey {
    StableKey(2_000_001 + nth)
}

pub(crate) fn plugin(app: &mut App) {
    app.add_systems(Startup, fill)
        .add_observer(arrive)
        .add_observer(fire)
        .add_observer(stay)
        .add_observer(take_back);
}

/// Prints a line at once: the process may be killed after it. `println!` would panic if the parent is gone.
pub(crate) fn say(line: &str) {
    let mut out = io::stdout().lock();
    _ = out.write_all(format!("{line}\n").as_bytes());
    _ = out.flush();
}

fn fill(zone: Res<Zone>, here: Res<Here>, mut commands: Commands) {
    if !zone.is_new() {
        return;
    }
    commands.spawn((sage(here.nth), thoughts()));
    for player in (1..=here.players).filter(|player| player % here.shards == here.nth) {
        // Real time passes while a process is down, and game time does not.
        let clock = [ClockId::Real, ClockId::Virtual][(player / here.shards % 2) as usize];
        let hunger = Timer::every(hunger(player)).on(clock);
        let ledger = Ledger::new(player, here.nth);
        let key = StableKey(player);
        let mut entity = commands.spawn((key, ledger, hunger, Cooldown::new(2.0), ears()));
        entity.set_timer(VISIT, visit(player));
        match here.build {
            1 => entity.insert(Wounds::default()),
            _ => entity.insert(Scars::default()),
        };
    }
}

fn visit(random: u64) -> Timer {
    Timer::after(Duration::from_millis(100 + random % 500))
}

/// Returns the callbacks of a player. They do not move, so each zone inserts them.
fn ears() -> MessageComponent {
    MessageComponent::new()
        .on_packet(
            LETTER,
            |mut me: MessageContext, packet: &Packet| -> Result {
                let letter: Letter = postcard::from_bytes(packet.payload())?;
                let player = me.entity.id();
                ledger(&mut me)?.receive(letter);
                if letter.is_poisoned {
                    let poison = Timer::every(0.3).times(DOSE as u32);
                    me.commands.entity(player).set_timer(POISON, poison);
                }
                Ok(())
            },
        )
        .on_packet(ANSWER, |mut me: MessageContext, _: &Packet| -> Result {
            ledger(&mut me)?.answered += 1;
            Ok(())
        })
        .on(|mut me: MessageContext, _: &NoAnswer| -> Result {
            ledger(&mut me)?.answered += 1;
            Ok(())
        })
}

fn ledger<'a>(me: &'a mut MessageContext) -> Result<Mut<'a, Ledger>> {
    Ok(me.entity.get_mut().ok_or("a player has a ledger")?)
}

/// Returns the callbacks of a sage.
fn thoughts() -> MessageComponent {
    MessageComponent::new().on_packet(QUESTION, |mut me: MessageContext, _: &Packet| -> Result {
        let question = me.reply_to().ok_or("nobody to answer to")?.clone();
        let answer = TimerAction::call(move |world, _| {
            let question = question.clone();
            world.commands().reply(question, Packet::new(ANSWER, []));
        });
        // Nobody owns the timer, so it need not survive a crash: then there is no answer.
        let thought = Timer::after(0.3).despawn_when_done();
        me.commands.spawn((thought, answer));
        Ok(())
    })
}

fn arrive(
    arrived: On<Arrived>,
    here: Res<Here>,
    timers: ArmedTimers,
    mut ledgers: Query<&mut Ledger>,
    mut commands: Commands,
) {
    let Ok(mut ledger) = ledgers.get_mut(arrived.entity) else {
        commands.entity(arrived.entity).insert(thoughts());
        return;
    };
    commands.entity(arrived.entity).insert(ears());
    if ledger.shard != here.nth {
        ledger.shard = here.nth;
        ledger.moves += 1;
        let (key, moves) = (arrived.key.0, ledger.moves);
        commands.after_commit(move || say(&format!("moved {key} {moves}")));
    }
    if !timers.has(arrived.entity, VISIT) {
        let visit = visit(ledger.random(500));
        commands.entity(arrived.entity).set_timer(VISIT, visit);
    }
}

type Player<'a> = (
    &'a StableKey,
    &'a mut Ledger,
    &'a mut Cooldown,
    Option<&'a mut Wounds>,
    Option<&'a mut Scars>,
);

fn fire(
    fired: On<TimerFired>,
    here: Res<Here>,
    clocks: Clocks,
    mut players: Query<Player>,
    mut commands: Commands,
) -> Result {
    let Ok((&StableKey(key), mut ledger, mut curse, wounds, scars)) =
        players.get_mut(fired.owner())
    else {
        return Ok(());
    };
    let count = fired.count();
    if fired.has_key(VISIT) {
        if !here.is_resting {
            let may_curse = curse.try_use(clocks.now(ClockId::Virtual)?);
            end_visit(
                key,
                &mut ledger,
                may_curse,
                *here,
                commands.entity(fired.owner()),
            )?;
        }
    } else if fired.has_key(POISON) {
        ledger.suffer(count);
        wounds.into_iter().for_each(|mut wounds| wounds.0 += 1);
        scars.into_iter().for_each(|mut scars| scars.new += 1);
        let hurt = ledger.hurt;
        commands.after_commit(move || say(&format!("hurt {key} {hurt}")));
    } else if fired.entity() == fired.owner() {
        ledger.starve(count);
        commands.after_commit(move || say(&format!("hungry {key} {count}")));
    }
    Ok(())
}

/// Sends a letter, asks a sage or not, and moves on.
fn end_visit(
    me: u64,
    ledger: &mut Ledger,
    may_curse: bool,
    here: Here,
    mut player: EntityCommands,
) -> Result {
    let distance = PARTNERS[ledger.random(PARTNERS.len() as u64) as usize];
    let to = 1 + (me + distance % (here.players - 1)) % here.players;
    let letter = ledger.send(me, to, may_curse);
    let letter = Packet::new(LETTER, postcard::to_allocvec(&letter)?);
    player.mail(StableKey(to), letter);
    if ledger.random(8) == 0 {
        ledger.asked += 1;
        let sage = sage(ledger.random(here.shards));
        let question = Parcel::new(ZONES, sage, Packet::new(QUESTION, []));
        player.ask_world(question, Timer::after(2.0));
    }
    match ledger.random(here.shards) {
        shard if shard == here.nth => _ = player.set_timer(VISIT, visit(ledger.random(500))),
        shard => _ = player.move_to(zone(shard)),
    }
    Ok(())
}

fn stay(failed: On<MoveFailed>, mut ledgers: Query<&mut Ledger>, mut commands: Commands) -> Result {
    let mut ledger = ledgers.get_mut(failed.entity)?;
    ledger.failed_moves += 1;
    let visit = visit(ledger.random(500));
    commands.entity(failed.entity).set_timer(VISIT, visit);
    Ok(())
}

fn take_back(returned: On<MailReturned>, mut ledgers: Query<&mut Ledger>) -> Result {
    let letter = postcard::from_bytes(returned.letter.payload())?;
    ledgers
        .get_mut(returned.entity)?
        .take_back(returned.to.0, letter);
    Ok(())
}
