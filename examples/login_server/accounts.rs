//! Checks passwords, slowly.

use bevy_app::App;
use bevy_due::{
    Timer,
    message::{MessageCommandsExt, MessageContext, Packet},
    prelude::*,
};
use bevy_ecs::{
    error::{FallbackErrorHandler, warn},
    prelude::*,
};

use crate::settings::Settings;

/// The group of the worlds that check passwords.
pub const GROUP: &str = "accounts";

/// A request: a name and a password, separated by a space.
pub const CHECK: u32 = 1;
/// The reply that the password is right, with the name.
pub const WELCOME: u32 = 2;
/// The reply that the password is wrong.
pub const WRONG: u32 = 3;

/// Builds a world that replies to each request after a while.
pub fn build(app: &mut App, settings: &Settings) {
    app.add_plugins(DuePlugin::default());
    let login_time = settings.login_time;
    let desk = MessageComponent::new().on_packet(
        CHECK,
        move |mut me: MessageContext, check: &Packet| -> Result {
            let check = str::from_utf8(check.payload())?;
            let (name, password) = check.split_once(' ').ok_or("no password to check")?;
            let answer = if is_right(name, password) {
                Packet::new(WELCOME, name.as_bytes())
            } else {
                Packet::new(WRONG, [])
            };
            let question = me.reply_to().ok_or("nobody to answer to")?.clone();
            let answer = TimerAction::call(move |world, _| {
                let question = question.clone();
                world.commands().reply(question, answer.clone());
            });
            let looking_it_up = Timer::after(login_time(name)).on(ClockId::Real);
            me.commands
                .spawn((looking_it_up.despawn_when_done(), answer));
            Ok(())
        },
    );
    app.world_mut().spawn(desk);
    // A request that makes no sense gets no reply.
    app.insert_resource(FallbackErrorHandler(warn));
}

/// A password is the name backwards. Do not do this at home.
fn is_right(name: &str, password: &str) -> bool {
    name.chars().rev().eq(password.chars())
}
