//! What players do, and what happens to them.

use core::fmt::Display;
use std::{io::Write, net::TcpStream, sync::Arc};

use bevy_due::{
    Clocks, Timer,
    message::{MessageContext, NoAnswer, Packet},
    prelude::*,
    worlds::{Parcel, ParcelEntityCommandsExt, StableKey},
};
use bevy_due_ownership::{
    Arrived, DurableCommandsExt, DurableEntityCommandsExt, MailReturned, MoveFailed,
};
use bevy_ecs::prelude::*;
use serde::{Deserialize, Serialize};

use crate::{
    deed::Deed,
    keys,
    ledger::{GOLD, Ledger, Letter},
    sage,
    shard::{Counts, Here},
};

/// The packets of letters.
const PAYMENT: u32 = 1;
const CURSE: u32 = 2;

const HEALTH: u32 = 10;

#[derive(Component, Serialize, Deserialize)]
pub struct Health(u32);

/// The poison of a curse.
#[derive(Component)]
struct Poison;

impl TimerKey for Poison {
    const NAME: &'static str = "poison";
}

/// The socket of the client that plays this player here. It does not move.
#[derive(Component, Clone)]
pub struct Seat(pub Arc<TcpStream>);

/// Returns a player who is born in a zone.
pub fn newborn(number: u64, zone: StableKey) -> impl Bundle {
    let ledger = Ledger {
        gold: GOLD,
        zone: zone.0,
        ..Ledger::default()
    };
    let hunger = Timer::every(1.0);
    let curse = Cooldown::new(2.0);
    let key = keys::player(number);
    (key, ledger, Health(HEALTH), hunger, curse, ears())
}

/// Returns the callbacks of a player. They do not move, so each zone inserts them.
fn ears() -> MessageComponent {
    MessageComponent::new()
        .on_packet(
            PAYMENT,
            |mut me: MessageContext, letter: &Packet| -> Result {
                let letter = read(&mut me, letter)?;
                hear(
                    &mut me,
                    format_args!("{} gold from {}", letter.gold, letter.from),
                );
                Ok(())
            },
        )
        .on_packet(CURSE, |mut me: MessageContext, letter: &Packet| -> Result {
            let letter = read(&mut me, letter)?;
            let poison = Timer::every(0.4).times(5);
            let player = me.entity.id();
            me.commands.entity(player).set_timer(Poison, poison);
            if let Some(mut ledger) = me.entity.get_mut::<Ledger>() {
                ledger.poison.rearm();
            }
            hear(&mut me, format_args!("a curse from {}", letter.from));
            Ok(())
        })
        .on_packet(sage::ANSWER, |mut me: MessageContext, _: &Packet| {
            note_answer(&mut me, "the sage answers");
        })
        .on(|mut me: MessageContext, _: &NoAnswer| note_answer(&mut me, "no answer"))
}

fn read(me: &mut MessageContext, letter: &Packet) -> Result<Letter> {
    let letter: Letter = postcard::from_bytes(letter.payload())?;
    if let Some(mut ledger) = me.entity.get_mut::<Ledger>() {
        ledger.receive(letter);
    }
    Ok(letter)
}

fn note_answer(me: &mut MessageContext, news: &str) {
    if let Some(mut ledger) = me.entity.get_mut::<Ledger>() {
        ledger.answered += 1;
    }
    hear(me, news);
}

/// Tells the client of a player something from a callback.
fn hear(me: &mut MessageContext, news: impl Display) {
    let seat = me.entity.get::<Seat>().cloned();
    if let Some(mut ledger) = me.entity.get_mut::<Ledger>() {
        tell(&mut me.commands, seat.as_ref(), &mut ledger, news);
    }
}

/// Tells the client of a player something, with the next number, when it is durable.
pub fn tell(commands: &mut Commands, seat: Option<&Seat>, ledger: &mut Ledger, news: impl Display) {
    let Some(Seat(socket)) = seat else {
        return;
    };
    ledger.told += 1;
    say(
        commands,
        socket.clone(),
        format!("{} {news}\n", ledger.told),
    );
}

/// Sends a client a line when everything so far is durable. The socket does not block: a client that reads
/// too slowly loses its connection.
pub fn say(commands: &mut Commands, socket: Arc<TcpStream>, line: String) {
    commands.after_commit(move || {
        if (&*socket).write_all(line.as_bytes()).is_err() {
            socket.shutdown(std::net::Shutdown::Both).ok();
        }
    });
}

type Player<'a> = (
    &'a StableKey,
    &'a mut Ledger,
    &'a mut Cooldown,
    Option<&'a Seat>,
);

/// Does what a client wants.
pub fn act(
    In((player, deed)): In<(Entity, Deed)>,
    mut players: Query<Player>,
    here: Res<Here>,
    clocks: Clocks,
    mut commands: Commands,
) -> Result {
    let (&key, mut ledger, mut curse, seat) = players.get_mut(player)?;
    let me = keys::player_number(key).ok_or("not a player")?;
    let mut player = commands.entity(player);
    match deed {
        Deed::Walk(shard) if shard < here.shards => _ = player.move_to(keys::zone(shard)),
        Deed::Pay { to, gold } if to < here.players => {
            let letter = ledger.send(me, to, gold);
            let letter = Packet::new(PAYMENT, postcard::to_allocvec(&letter)?);
            player.mail(keys::player(to), letter);
        }
        Deed::Curse(to) if to < here.players => {
            if !curse.try_use(clocks.now(ClockId::Virtual)?) {
                tell(&mut commands, seat, &mut ledger, "too early for a curse");
                return Ok(());
            }
            let letter = ledger.send(me, to, 0);
            let letter = Packet::new(CURSE, postcard::to_allocvec(&letter)?);
            player.mail(keys::player(to), letter);
        }
        Deed::Ask(shard) if shard < here.shards => {
            ledger.asked += 1;
            let question = Packet::new(sage::QUESTION, []);
            let question = Parcel::new(keys::ZONES, keys::sage(shard), question);
            player.ask_world(question, Timer::after(2.0));
        }
        _ => tell(&mut commands, seat, &mut ledger, "that is nowhere"),
    }
    Ok(())
}

/// Inserts what is not stored, and counts the move if the player was elsewhere.
pub fn arrive(
    arrived: On<Arrived>,
    mut ledgers: Query<&mut Ledger>,
    here: Res<Here>,
    mut counts: ResMut<Counts>,
    mut commands: Commands,
) {
    let Ok(mut ledger) = ledgers.get_mut(arrived.entity) else {
        return;
    };
    commands.entity(arrived.entity).insert(ears());
    if ledger.zone != here.zone.0 {
        ledger.zone = here.zone.0;
        ledger.moves += 1;
        counts.moves += 1;
    }
}

pub fn stay(
    failed: On<MoveFailed>,
    mut players: Query<(&mut Ledger, Option<&Seat>)>,
    mut commands: Commands,
) {
    if let Ok((mut ledger, seat)) = players.get_mut(failed.entity) {
        let reason = format_args!("can't walk: {}", failed.reason);
        tell(&mut commands, seat, &mut ledger, reason);
    }
}

pub fn take_back(
    returned: On<MailReturned>,
    mut players: Query<(&mut Ledger, Option<&Seat>)>,
    mut commands: Commands,
) -> Result {
    let (mut ledger, seat) = players.get_mut(returned.entity)?;
    let to = keys::player_number(returned.to).ok_or("not a player")?;
    let letter = postcard::from_bytes(returned.letter.payload())?;
    ledger.take_back(to, letter);
    let news = format_args!("the letter to {to} came back");
    tell(&mut commands, seat, &mut ledger, news);
    Ok(())
}

/// Hunger is the timer of the player itself. It never ends.
pub fn starve(
    fired: On<TimerFired>,
    mut players: Query<(&mut Ledger, Option<&Seat>)>,
    mut counts: ResMut<Counts>,
    mut commands: Commands,
) {
    if let Ok((mut ledger, seat)) = players.get_mut(fired.entity()) {
        counts.firings += 1;
        ledger.hunger.note(fired.count());
        let news = format!("hungry {}", ledger.hunger.handled);
        tell(&mut commands, seat, &mut ledger, news);
    }
}

pub fn suffer(
    fired: On<OwnedTimerFired>,
    mut players: Query<(&mut Ledger, &mut Health, Option<&Seat>)>,
    mut counts: ResMut<Counts>,
    mut commands: Commands,
) {
    let Ok((mut ledger, mut health, seat)) = players.get_mut(fired.owner()) else {
        return;
    };
    if fired.has_key(Poison) {
        counts.firings += 1;
        ledger.poison.note(fired.count());
        // The dead rise again.
        health.0 = health.0.checked_sub(1).unwrap_or(HEALTH);
        let news = format_args!("poisoned, health {}", health.0);
        tell(&mut commands, seat, &mut ledger, news);
    }
}
