//! The commands of a client that has logged in.

use core::mem;
use std::collections::BTreeSet;

use bevy_due::{message::MessageContext, prelude::*};
use bevy_ecs::prelude::*;

use crate::client::{Client, Line, Player, client, heard, quit, say, words};

/// The reply to `who` has at most this many names.
const MANY: usize = 200;

/// The players are told at most this many lines per frame.
const MOST_LINES: usize = 20;

/// The names of all players.
#[derive(Resource, Default)]
pub struct Names(pub BTreeSet<String>);

/// The lines that the players will be told, with their speakers, who have been told already.
#[derive(Resource, Default)]
pub struct Room {
    lines: Vec<(Entity, String)>,
    /// The number of lines that the players will miss.
    missed: usize,
}

/// Makes a client a player, unless there is one of that name.
pub fn enter(
    In((client, name)): In<(Entity, String)>,
    mut names: ResMut<Names>,
    clients: Query<&Client>,
    mut commands: Commands,
) -> Result {
    let output = &clients.get(client)?.0;
    if !names.0.insert(name.clone()) {
        output.say(&format!("error: {name} is here already"));
        return Ok(());
    }
    output.say(&format!("ok, you are {name}"));
    tell_others(&mut commands, client, format!("{name} is here"));
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
        let id = me.entity.id();
        match words(&line.0) {
            ("say", text) => {
                let line = format!("{name}: {text}");
                say(&me, &line);
                tell_others(&mut me.commands, id, line);
            }
            ("who", _) => me.commands.run_system_cached_with(tell_who_is_here, id),
            ("quit", _) => {
                quit(&mut me);
                tell_others(&mut me.commands, id, format!("{name} has left"));
            }
            ("login", _) => say(&me, "error: you have"),
            (what, _) => say(&me, format!("error: what is {what:?}?")),
        }
    })
}

/// Keeps a line for the other players. The cost does not depend on their number.
fn tell_others(commands: &mut Commands, speaker: Entity, line: String) {
    commands.queue(move |world: &mut World| {
        let mut room = world.resource_mut::<Room>();
        if room.lines.len() < MOST_LINES {
            room.lines.push((speaker, line));
        } else {
            room.missed += 1;
        }
    });
}

/// Tells each player the lines of the others, once per frame: this wakes a thread for each of them.
pub fn tell_players(mut room: ResMut<Room>, players: Query<(Entity, &Client), With<Player>>) {
    let Room { mut lines, missed } = mem::take(&mut *room);
    if missed > 0 {
        lines.push((Entity::PLACEHOLDER, format!("and {missed} more lines")));
    }
    for (player, client) in &players {
        let others = lines.iter().filter(|(speaker, _)| *speaker != player);
        let others: Vec<_> = others.map(|(_, line)| line.as_str()).collect();
        if !others.is_empty() {
            client.0.say(&others.join("\n"));
        }
    }
}

fn tell_who_is_here(In(asker): In<Entity>, names: Res<Names>, clients: Query<&Client>) {
    if let Ok(asker) = clients.get(asker) {
        let first: Vec<_> = names.0.iter().take(MANY).map(String::as_str).collect();
        let more = match names.0.len() - first.len() {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        asker.0.say(&format!("here: {}{more}", first.join(", ")));
    }
}
