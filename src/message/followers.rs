//! The followers of each topic.

use bevy_ecs::prelude::*;
use bevy_platform::collections::HashMap;

use super::{
    batch::Outcome,
    broadcast::Round,
    context::{Callback, Incoming},
    topic::Topic,
};
use crate::{call::EntityCaller, roster::Roster};

/// The followers of each topic, in the order in which their components were inserted.
#[derive(Resource, Default)]
pub(crate) struct Followers {
    by_topic: HashMap<Topic, Following>,
    /// The number of topics without followers.
    vacant: usize,
}

/// The followers of one topic.
#[derive(Default)]
struct Following {
    roster: Roster<Follower>,
    /// Followers with a lower number have had their turn.
    turn: u64,
}

/// An entity that follows a topic. It holds a clone of the callback, so that a broadcast does not
/// look at the component.
struct Follower {
    entity: Entity,
    callback: Callback,
}

impl Follower {
    /// Calls the callback, and returns `false` if the entity is gone or disabled.
    #[inline]
    fn call(&self, caller: &mut EntityCaller, incoming: Incoming) -> bool {
        let Some((entity, commands)) = caller.get_mut(self.entity) else {
            return false;
        };
        let result = self.callback.call(entity, commands, incoming);
        caller.report("MessageComponent", self.entity, result);
        true
    }
}

impl Followers {
    /// Adds an entity that follows these topics, with a number above all others.
    pub(super) fn add(
        &mut self,
        number: u64,
        entity: Entity,
        topics: impl Iterator<Item = (Topic, Callback)>,
    ) {
        for (topic, callback) in topics {
            if let Some(following) = self.by_topic.get(&topic) {
                self.vacant -= usize::from(following.roster.is_empty());
            } else {
                self.drop_vacant();
            }
            let following = self.by_topic.entry(topic).or_default();
            following.roster.add(number, Follower { entity, callback });
        }
    }

    /// Removes the follower with this number from these topics.
    pub(super) fn leave(&mut self, topics: impl Iterator<Item = Topic>, number: u64) {
        for topic in topics {
            if let Some(following) = self.by_topic.get_mut(&topic) {
                following.roster.leave(number);
                if following.roster.is_empty() {
                    self.vacant += 1;
                }
            }
        }
    }

    /// Drops the topics without followers, if there are many.
    fn drop_vacant(&mut self) {
        if 2 * self.vacant > self.by_topic.len() {
            self.by_topic
                .retain(|_, following| !following.roster.is_empty());
            self.vacant = 0;
        }
    }

    /// Returns `true` if an entity follows this topic, now or from the next run on.
    pub(crate) fn is_followed(&self, topic: Topic) -> bool {
        let following = self.by_topic.get(&topic);
        following.is_some_and(|following| !following.roster.is_empty())
    }

    /// Calls the followers in order until one issues commands or none is left. The next call
    /// continues the round.
    pub(super) fn call_from(
        &self,
        round: &mut Round,
        joined: u64,
        caller: &mut EntityCaller,
        incoming: Incoming,
    ) {
        let Some(following) = self.by_topic.get(&incoming.topic) else {
            return;
        };
        for (number, follower) in following.roster.members(round.next..joined) {
            round.next = number + 1;
            round.calls += u64::from(follower.call(caller, incoming));
            if caller.has_commands() {
                return;
            }
        }
    }

    /// Calls the follower whose turn it is, or the next one that is neither gone nor disabled. If
    /// there is none, the message may be early for followers that take part later.
    pub(super) fn call_in_turn(
        &mut self,
        joined: u64,
        caller: &mut EntityCaller,
        incoming: Incoming,
    ) -> Outcome {
        let Some(Following { roster, turn }) = self.by_topic.get_mut(&incoming.topic) else {
            return Outcome::Undeliverable;
        };
        let mut in_turn = roster
            .members(*turn..joined)
            .chain(roster.members(0..*turn));
        let taker = in_turn.find(|(_, follower)| follower.call(caller, incoming));
        if let Some((number, _)) = taker {
            *turn = number + 1;
            return Outcome::Delivered;
        }
        match roster.members(joined..u64::MAX).next() {
            Some(_) => Outcome::Early,
            None => Outcome::Undeliverable,
        }
    }
}
