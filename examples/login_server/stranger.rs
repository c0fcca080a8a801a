//! The commands of a client that has not logged in.

use bevy_due::{
    OnClock, Timer,
    message::{Delivery, MessageContext, NoAnswer, Packet},
    prelude::*,
    worlds::{Parcel, ParcelEntityCommandsExt, StableKey},
};
use bevy_ecs::prelude::*;

use crate::{
    accounts::{self, CHECK, WELCOME, WRONG},
    client::{
        Client, Line, LoggingIn, client, end_login, heard, listen_for_silence, quit, say, this,
        words,
    },
    player::enter,
    settings::Settings,
};

/// The number of letters and digits in the longest name.
const LONGEST_NAME: usize = 16;

/// Spawns the entity of a client.
pub fn welcome(world: &mut World, client: Client) -> Entity {
    client.0.say("welcome, please log in");
    let mut client = world.spawn((client, OnClock::new(ClockId::Real), stranger()));
    // The accounts world finds the client by this key.
    client.insert(StableKey(client.id().to_bits()));
    listen_for_silence(&mut client);
    client.id()
}

/// The callbacks of a client that has not logged in.
fn stranger() -> MessageComponent {
    client()
        .on(|mut me: MessageContext, line: &Line| {
            heard(&mut me);
            match words(&line.0) {
                ("login", who) => log_in(&mut me, who),
                ("quit", _) => quit(&mut me),
                ("say" | "who", _) => say(&me, "error: log in first"),
                (what, _) => say(&me, format!("error: what is {what:?}?")),
            }
        })
        .on_packet(WELCOME, |mut me: MessageContext, name: &Packet| -> Result {
            let name = str::from_utf8(name.payload())?.to_owned();
            let id = me.entity.id();
            me.commands.run_system_cached_with(enter, (id, name));
            this(&mut me).queue(end_login);
            Ok(())
        })
        .on_packet(WRONG, |mut me: MessageContext, _: &Packet| {
            say(&me, "error: name and password do not fit");
            this(&mut me).queue(end_login);
        })
        .on(|mut me: MessageContext, why: &NoAnswer| {
            say(
                &me,
                match why {
                    NoAnswer::TimedOut => "error: nobody has looked that up in time, try again",
                    _ => "error: nobody can look that up now, try again",
                },
            );
            this(&mut me).queue(end_login);
        })
}

/// Asks the accounts world to check a name and a password.
fn log_in(me: &mut MessageContext, who: &str) {
    if me.entity.contains::<LoggingIn>() {
        return say(me, "error: wait for the answer");
    }
    let (Some((name, password)), None) = (who.split_once(' '), who.split(' ').nth(2)) else {
        return say(me, "error: login NAME PASSWORD");
    };
    if !name.chars().all(char::is_alphanumeric) || name.chars().count() > LONGEST_NAME {
        let why = format!("error: a name has up to {LONGEST_NAME} letters and digits");
        return say(me, why);
    }
    let check = Packet::new(CHECK, format!("{name} {password}").into_bytes());
    let check = Parcel::new(accounts::GROUP, Delivery::InTurn, check);
    let id = me.entity.id();
    this(me).insert(LoggingIn);
    me.commands.queue(move |world: &mut World| {
        let timeout = world.resource::<Settings>().login_timeout;
        let until = Timer::after(timeout).on(ClockId::Real);
        world.commands().entity(id).ask_world(check, until);
    });
}
