//! The commands of a client.

use core::{mem, time::Duration};
use std::sync::mpsc::{SyncSender, TrySendError};

use bevy_app::App;
use bevy_due::{
    MessageContext, NoAnswer, Packet, Parcel, ParcelEntityCommandsExt, StableKey, Timer,
    UpdateContext, prelude::*,
};
use bevy_ecs::{
    error::{FallbackErrorHandler, warn},
    prelude::*,
};

use crate::{
    accounts::{self, CHECK, WELCOME, WRONG},
    server::Settings,
};

/// The group of the world with the clients.
pub const GROUP: &str = "server";

/// A packet to all clients: the server closes.
pub const GOODBYE: u32 = 4;

/// A client has sent a line.
#[derive(Message)]
pub struct Line(pub String);

/// A client has sent a line that can't be read, with the reason.
#[derive(Message)]
pub struct BadLine(pub &'static str);

/// A client has disconnected.
#[derive(Message)]
pub struct HungUp;

/// A line of chat for all players.
#[derive(Message)]
struct Chat(String);

/// A client has been silent for a while.
#[derive(Message, Clone)]
struct Silent;

/// A client has been silent for too long.
#[derive(Message, Clone)]
struct TooSilent;

/// The output to a client.
#[derive(Component)]
struct Client {
    pending: String,
    /// The thread that writes the output.
    writer: SyncSender<String>,
}

/// A client that does not read its output is disconnected at this many waiting lines.
const TOO_MUCH: usize = 64 * 1024;

/// The name of a client that has logged in.
#[derive(Component, Clone)]
struct Player(String);

/// A client that waits for the reply to its login.
#[derive(Component)]
struct LoggingIn;

/// The number of clients so far.
#[derive(Resource, Default)]
struct Clients(u64);

pub fn build(app: &mut App, settings: &Settings) {
    app.add_plugins(DuePlugin::default())
        .init_resource::<Clients>()
        // Bad input of a client must not end the server.
        .insert_resource(FallbackErrorHandler(warn))
        .insert_resource(settings.clone());
}

/// Spawns the entity of a client.
pub fn welcome(world: &mut World, writer: SyncSender<String>) -> Entity {
    let mut clients = world.resource_mut::<Clients>();
    clients.0 += 1;
    // The accounts world finds the client by its key.
    let key = StableKey(clients.0);
    let pending = "welcome, please log in\n".into();
    let client = (key, Client { pending, writer }, stranger(), write_pending());
    let client = world.spawn(client).id();
    listen_for_silence(world, client);
    client
}

/// Passes pending output to the writing thread when it has room.
fn write_pending() -> UpdateComponent {
    UpdateComponent::new(|mut me: UpdateContext| {
        let id = me.update_entity;
        let Some(mut client) = me.entity.get_mut::<Client>() else {
            return;
        };
        let is_open = client.pending.is_empty() || client.write();
        if !is_open || client.pending.len() > TOO_MUCH {
            me.commands.entity(id).despawn();
        }
    })
}

/// The callbacks of every client.
fn client() -> MessageComponent {
    MessageComponent::new()
        .on(|mut me: MessageContext, bad: &BadLine| {
            heard(&mut me);
            say(&mut me, format!("error: that line is {}", bad.0));
        })
        .on(|mut me: MessageContext, _: &HungUp| leave(&mut me))
        .on(|mut me: MessageContext, _: &Silent| {
            say(&mut me, "warning: say something, or leave");
            let id = me.entity.id();
            me.commands.queue(move |world: &mut World| {
                let close_after = world.resource::<Settings>().close_after;
                set_silence(world, id, close_after, TooSilent);
            });
        })
        .on(|mut me: MessageContext, _: &TooSilent| {
            say(&mut me, "bye, you were silent for too long");
            leave(&mut me);
        })
        .on_packet(GOODBYE, |mut me: MessageContext, _: &Packet| {
            say(&mut me, "bye, the server closes");
            leave(&mut me);
        })
}

/// The callbacks of a client that has not logged in.
fn stranger() -> MessageComponent {
    client()
        .on(|mut me: MessageContext, line: &Line| {
            heard(&mut me);
            match words(&line.0) {
                ("login", who) => log_in(&mut me, who),
                ("quit", _) => quit(&mut me),
                ("say" | "who", _) => say(&mut me, "error: log in first"),
                (what, _) => say(&mut me, format!("error: what is {what:?}?")),
            }
        })
        .on_packet(WELCOME, |mut me: MessageContext, name: &Packet| -> Result {
            let name = str::from_utf8(name.payload())?.to_owned();
            say(&mut me, format!("ok, you are {name}"));
            me.commands
                .send(Delivery::All, Chat(format!("{name} is here")));
            let id = me.entity.id();
            me.commands
                .entity(id)
                .remove::<LoggingIn>()
                .insert((Player(name), player()));
            Ok(())
        })
        .on_packet(WRONG, |mut me: MessageContext, _: &Packet| {
            refuse(&mut me, "name and password do not fit");
        })
        .on(|mut me: MessageContext, why: &NoAnswer| {
            refuse(
                &mut me,
                match why {
                    NoAnswer::TimedOut => "nobody has looked that up in time, try again",
                    _ => "nobody can look that up now, try again",
                },
            );
        })
}

/// The callbacks of a client that has logged in.
fn player() -> MessageComponent {
    client()
        .on(|mut me: MessageContext, line: &Line| {
            heard(&mut me);
            let Some(Player(name)) = me.entity.get::<Player>().cloned() else {
                return;
            };
            match words(&line.0) {
                ("say", text) => me
                    .commands
                    .send(Delivery::All, Chat(format!("{name}: {text}"))),
                ("who", _) => {
                    let id = me.entity.id();
                    me.commands.run_system_cached_with(tell_who_is_here, id);
                }
                ("quit", _) => {
                    me.commands
                        .send(Delivery::All, Chat(format!("{name} has left")));
                    quit(&mut me);
                }
                ("login", _) => say(&mut me, "error: you have"),
                (what, _) => say(&mut me, format!("error: what is {what:?}?")),
            }
        })
        .on(|mut me: MessageContext, chat: &Chat| say(&mut me, &chat.0))
}

/// Asks the accounts world to check a name and a password.
fn log_in(me: &mut MessageContext, who: &str) {
    if me.entity.contains::<LoggingIn>() {
        return say(me, "error: wait for the answer");
    }
    let (Some((name, password)), None) = (who.split_once(' '), who.split(' ').nth(2)) else {
        return say(me, "error: login NAME PASSWORD");
    };
    let check = Packet::new(CHECK, format!("{name} {password}").into_bytes());
    let check = Parcel::new(accounts::GROUP, Delivery::InTurn, check);
    let id = me.entity.id();
    me.commands.entity(id).insert(LoggingIn);
    me.commands.queue(move |world: &mut World| {
        let timeout = world.resource::<Settings>().login_timeout;
        let until = Timer::after(timeout).on(ClockId::Real);
        world.commands().entity(id).ask_world(check, until);
    });
}

fn refuse(me: &mut MessageContext, why: &str) {
    say(me, format!("error: {why}"));
    let id = me.entity.id();
    me.commands.entity(id).remove::<LoggingIn>();
}

fn tell_who_is_here(
    In(asker): In<Entity>,
    players: Query<&Player>,
    mut clients: Query<&mut Client>,
) {
    if let Ok(mut client) = clients.get_mut(asker) {
        let mut names: Vec<_> = players.iter().map(|player| player.0.as_str()).collect();
        names.sort_unstable();
        client.say(&format!("here: {}", names.join(", ")));
    }
}

/// Restarts the silence timer of a client.
fn heard(me: &mut MessageContext) {
    let id = me.entity.id();
    me.commands
        .queue(move |world: &mut World| listen_for_silence(world, id));
}

fn listen_for_silence(world: &mut World, client: Entity) {
    let warn_after = world.resource::<Settings>().warn_after;
    set_silence(world, client, warn_after, Silent);
}

/// Sends a client a message after a time of silence, instead of the message set before.
fn set_silence(world: &mut World, client: Entity, after: Duration, then: impl Message + Clone) {
    let silence = Timer::after(after).on(ClockId::Real);
    let mut commands = world.commands();
    if let Ok(mut client) = commands.get_entity(client) {
        let send = TimerAction::call(move |world, fired| world.send(fired.owner(), then.clone()));
        client.set_timer("silence", (silence, send));
    }
    world.flush();
}

fn quit(me: &mut MessageContext) {
    say(me, "bye");
    leave(me);
}

/// Despawns a client. Its writing thread then writes the pending output and closes the socket.
fn leave(me: &mut MessageContext) {
    let id = me.entity.id();
    me.commands.entity(id).despawn();
}

fn say(me: &mut MessageContext, line: impl AsRef<str>) {
    if let Some(mut client) = me.entity.get_mut::<Client>() {
        client.say(line.as_ref());
    }
}

/// Splits a line into the command and its arguments.
fn words(line: &str) -> (&str, &str) {
    let (what, rest) = line.split_once(' ').unwrap_or((line, ""));
    (what, rest.trim())
}

impl Client {
    fn say(&mut self, line: &str) {
        self.pending.push_str(line);
        self.pending.push('\n');
    }

    /// Passes pending output to the writing thread. Returns `false` if the thread has ended.
    fn write(&mut self) -> bool {
        match self.writer.try_send(mem::take(&mut self.pending)) {
            Ok(()) => true,
            Err(TrySendError::Full(pending)) => {
                self.pending = pending;
                true
            }
            Err(TrySendError::Disconnected(_)) => false,
        }
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        self.write();
    }
}
