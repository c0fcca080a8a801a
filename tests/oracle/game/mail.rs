//! The operations with messages and requests.

use bevy_due::{
    message::{Delivery, MessageCommandsExt, MessageEntityCommandsExt, NoAnswer, Packet},
    prelude::*,
};
use bevy_ecs::prelude::*;

use super::{
    Following,
    apply::Player,
    handlers::{self, Answer, Word},
    timers::timer,
};
use crate::op::{Op, Slot, Spec, To, Topic};

impl Player<'_> {
    pub(super) fn play_mail(&mut self, op: &Op) {
        match *op {
            Op::Follow(slot, topics) => {
                let component = handlers::follower(&self.shared, topics);
                self.ensure(slot).insert((component, Following(topics)));
            }
            Op::Unfollow(slot) => {
                self.change(slot, |entity| _ = entity.remove::<MessageComponent>());
            }
            Op::Send(to, topic) => self.send(to, topic),
            Op::Write => {
                let word = Word(self.shared.next_serial());
                self.world.write_message(word);
            }
            Op::Ask(slot, to, spec) => self.ask(slot, to, spec),
            Op::Withdraw(slot) => {
                let Some(asker) = self.at(slot) else { return };
                let owned = self.world.get::<Owned>(asker);
                let mut owned = owned.into_iter().flat_map(Owned::iter);
                let is_request = |&id: &Entity| self.shared.cast().requests.contains(&id);
                if let Some(request) = owned.find(is_request) {
                    self.world.despawn(request);
                }
            }
            Op::Reply { keep } => {
                let mut record = self.shared.record();
                let Some(reply_to) = record.heard.front().cloned() else {
                    return;
                };
                if !keep {
                    record.heard.pop_front();
                }
                drop(record);
                let answer = Answer(self.shared.next_serial());
                self.world.commands().reply(reply_to, answer);
            }
            ref op => assert_eq!(*op, Op::Panic, "only between frames"),
        }
    }

    fn send(&mut self, to: To, topic: Topic) {
        let to = self.delivery(to);
        let mut commands = self.world.commands();
        match topic {
            Topic::Packet0 => commands.send(to, packet(0, self.shared.next_serial())),
            Topic::Packet1 => commands.send(to, packet(1, self.shared.next_serial())),
            Topic::Word => commands.send(to, Word(self.shared.next_serial())),
            Topic::Answer => commands.send(to, Answer(self.shared.next_serial())),
            Topic::NoReply => commands.send(to, NoAnswer::TimedOut),
        }
    }

    fn delivery(&self, to: To) -> Delivery {
        match to {
            To::One(slot) => Delivery::To(self.shared.cast().entity(slot)),
            To::All => Delivery::All,
            To::InTurn => Delivery::InTurn,
        }
    }

    fn ask(&mut self, slot: Slot, to: To, spec: Spec) {
        let Some(asker) = self.at(slot) else { return };
        let (to, until) = (self.delivery(to), timer(&self.shared, spec));
        let packet = packet(0, self.shared.next_serial());
        let mut commands = self.world.commands();
        let request = commands.entity(asker).ask(to, packet, until);
        let request = request.entity().expect("it is made in this world");
        let mut cast = self.shared.cast();
        cast.name(request);
        cast.requests.push(request);
    }
}

fn packet(id: u32, serial: u64) -> Packet {
    Packet::new(id, serial.to_le_bytes())
}
