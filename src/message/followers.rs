//! The followers of each topic.

use core::ops::Range;

use bevy_ecs::{entity::Entity, resource::Resource};
use bevy_platform::collections::HashMap;

use super::{
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

/// An entity that follows a topic. The callback is here, too, so that a broadcast does not look at
/// the component.
pub(super) struct Follower {
    entity: Entity,
    callback: Callback,
}

impl Follower {
    /// Calls the callback, and returns `false` if the entity is gone or disabled.
    #[inline]
    pub(super) fn call(&self, caller: &mut EntityCaller, incoming: Incoming) -> bool {
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
            let following = self.by_topic.entry(topic).or_insert_with(|| {
                self.vacant += 1;
                Following::default()
            });
            if following.roster.is_empty() {
                self.vacant -= 1;
            }
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
    pub(super) fn tidy(&mut self) {
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

    /// Iterates over the followers of a topic with these numbers.
    pub(super) fn of(
        &self,
        topic: Topic,
        numbers: Range<u64>,
    ) -> impl Iterator<Item = (u64, &Follower)> {
        let following = self.by_topic.get(&topic).into_iter();
        following.flat_map(move |following| following.roster.members(numbers.clone()))
    }

    /// Iterates over the followers of a topic with numbers below `joined`, starting with the one
    /// whose turn it is.
    pub(super) fn in_turn(
        &self,
        topic: Topic,
        joined: u64,
    ) -> impl Iterator<Item = (u64, &Follower)> {
        let following = self.by_topic.get(&topic).into_iter();
        following.flat_map(move |Following { roster, turn }| {
            let after = roster.members(*turn..joined);
            after.chain(roster.members(0..*turn))
        })
    }

    /// Passes the turn to the follower behind the one with this number.
    pub(super) fn end_turn(&mut self, topic: Topic, number: u64) {
        if let Some(following) = self.by_topic.get_mut(&topic) {
            following.turn = number + 1;
        }
    }
}
