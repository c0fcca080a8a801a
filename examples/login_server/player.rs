//! The commands of a client that has logged in.

use bevy_due::{message::MessageContext, prelude::*};
use bevy_ecs::prelude::*;

use crate::client::{Client, Line, Player, client, heard, quit, say, words};

/// The reply to `who` has at most this many names.
const MANY: usize = 200;

/// Makes a client a player, unless there is one of that name.
pub fn enter(
    In((client, name)): In<(Entity, String)>,
    players: Query<&Player>,
    clients: Query<&Client>,
    mut commands: Commands,
) -> Result {
    let output = &clients.get(client)?.0;
    if players.iter().any(|player| player.0 == name) {
        output.say(&format!("error: {name} is here already"));
        return Ok(());
    }
    output.say(&format!("ok, you are {name}"));
    tell_players(&mut commands, format!("{name} is here"));
    commands.entity(client).insert((Player(name), player()));
    Ok(())
}

/// The callbacks of a client that has logged in.
fn player() -> MessageComponent {
    client().on(|mut me: MessageContext, line: &Line| {
        heard(&mut me);
        let Some(Player(name)) = me.entity.get::<Player>().cloned() else {
            return;
        };
        match words(&line.0) {
            ("say", text) => tell_players(&mut me.commands, format!("{name}: {text}")),
            ("who", _) => {
                let id = me.entity.id();
                me.commands.run_system_cached_with(tell_who_is_here, id);
            }
            ("quit", _) => {
                quit(&mut me);
                tell_players(&mut me.commands, format!("{name} has left"));
            }
            ("login", _) => say(&me, "error: you have"),
            (what, _) => say(&me, format!("error: what is {what:?}?")),
        }
    })
}

/// Says a line to all players now, so that the speaker need not wait for the next frame.
fn tell_players(commands: &mut Commands, line: String) {
    commands.run_system_cached_with(
        |In(line): In<String>, players: Query<&Client, With<Player>>| {
            for player in &players {
                player.0.say(&line);
            }
        },
        line,
    );
}

fn tell_who_is_here(In(asker): In<Entity>, players: Query<&Player>, clients: Query<&Client>) {
    if let Ok(asker) = clients.get(asker) {
        let mut names: Vec<_> = players.iter().map(|player| player.0.as_str()).collect();
        names.sort_unstable();
        let more = match names.len().saturating_sub(MANY) {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        names.truncate(MANY);
        asker.0.say(&format!("here: {}{more}", names.join(", ")));
    }
}
