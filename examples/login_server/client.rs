//! A client, whether it has logged in or not.

use core::time::Duration;
use std::sync::Arc;

use bevy_app::{App, Update};
use bevy_due::{
    Timer,
    message::{MessageContext, MessageWorldExt},
    prelude::*,
};
use bevy_ecs::{
    error::{FallbackErrorHandler, warn},
    prelude::*,
};

use crate::{
    output::Output,
    player::{Names, Room, tell_players},
    settings::Settings,
};

/// The group of the world with the clients.
pub const GROUP: &str = "server";

/// A client that leaves has this long to read the rest of its output.
pub const LAST_WORDS: Duration = Duration::from_secs(1);

/// A client has sent a line.
#[derive(Message)]
pub struct Line(pub String);

/// A client has sent a line that can't be read, with the reason.
#[derive(Message)]
pub struct BadLine(pub &'static str);

/// A client says no more. It may still listen.
#[derive(Message)]
pub struct HungUp;

/// A client has been silent for a while.
#[derive(Message, Clone)]
struct Silent;

/// A client has been silent for too long.
#[derive(Message, Clone)]
struct TooSilent;

/// A client, which is cut off when this is dropped.
#[derive(Component)]
pub struct Client(pub Arc<Output>);

impl Drop for Client {
    fn drop(&mut self) {
        self.0.cut();
    }
}

/// The name of a client that has logged in.
#[derive(Component, Clone)]
pub struct Player(pub String);

/// A client that waits for the reply to its login.
#[derive(Component)]
pub struct LoggingIn;

/// A client that leaves after the reply to its login.
#[derive(Component)]
struct HasHungUp;

/// Builds the world of the clients.
pub fn build(app: &mut App, settings: &Settings) {
    app.add_plugins(DuePlugin::default())
        // Bad input of a client must not end the server.
        .insert_resource(FallbackErrorHandler(warn))
        .insert_resource(settings.clone())
        .init_resource::<Room>()
        .init_resource::<Names>()
        .add_systems(Update, tell_players)
        .add_observer(free_name);
}

fn free_name(left: On<Remove<Player>>, players: Query<&Player>, mut names: ResMut<Names>) {
    if let Ok(Player(name)) = players.get(left.entity) {
        names.0.remove(name);
    }
}

/// The callbacks of every client.
pub fn client() -> MessageComponent {
    MessageComponent::new()
        .on(|mut me: MessageContext, bad: &BadLine| {
            heard(&mut me);
            say(&me, format!("error: that line is {}", bad.0));
        })
        .on(|mut me: MessageContext, _: &HungUp| {
            if me.entity.contains::<LoggingIn>() {
                this(&mut me).insert(HasHungUp);
            } else {
                this(&mut me).queue(leave);
            }
        })
        .on(|mut me: MessageContext, _: &Silent| {
            say(&me, "warning: say something, or leave");
            this(&mut me).queue(|mut client: EntityWorldMut| {
                let close_after = client.resource::<Settings>().close_after;
                set_silence(&mut client, close_after, TooSilent);
            });
        })
        .on(|mut me: MessageContext, _: &TooSilent| {
            say(&me, "bye, you were silent for too long");
            this(&mut me).queue(leave);
        })
}

/// Ends a login, successful or not.
pub fn end_login(mut client: EntityWorldMut) {
    client.remove::<LoggingIn>();
    if client.contains::<HasHungUp>() {
        leave(client);
    }
}

/// Restarts the silence timer of a client.
pub fn heard(me: &mut MessageContext) {
    this(me).queue(|mut client: EntityWorldMut| listen_for_silence(&mut client));
}

pub fn listen_for_silence(client: &mut EntityWorldMut) {
    let warn_after = client.resource::<Settings>().warn_after;
    set_silence(client, warn_after, Silent);
}

/// Sends a client a message after a time of silence, instead of the message set before.
fn set_silence(client: &mut EntityWorldMut, after: Duration, then: impl Message + Clone) {
    let send = TimerAction::call(move |world, fired| world.send(fired.owner(), then.clone()));
    client.set_timer("silence", (Timer::after(after), send));
}

pub fn quit(me: &mut MessageContext) {
    say(me, "bye");
    this(me).queue(leave);
}

/// Ends a connection. The client hears nothing more, and has a while to read its output.
pub fn leave(mut client: EntityWorldMut) {
    if let Some(client) = client.get::<Client>() {
        client.0.close();
    }
    client
        .cancel_timers()
        .remove::<(MessageComponent, Player)>()
        .insert(DespawnAfter::new(LAST_WORDS));
}

pub fn this<'a>(me: &'a mut MessageContext) -> EntityCommands<'a> {
    me.commands.entity(me.entity.id())
}

pub fn say(me: &MessageContext, line: impl AsRef<str>) {
    if let Some(client) = me.entity.get::<Client>() {
        client.0.say(line.as_ref());
    }
}

/// Splits a line into the command and its arguments.
pub fn words(line: &str) -> (&str, &str) {
    let (what, rest) = line.split_once(' ').unwrap_or((line, ""));
    (what, rest.trim())
}
