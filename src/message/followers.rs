//! The followers of each topic.

use alloc::vec::Vec;
use core::any::Any;

use bevy_ecs::{entity::EntityHashMap, prelude::*};
use bevy_platform::{collections::HashMap, hash::NoOpHash};
use smallvec::SmallVec;

use super::{
    component::{Callback, Follows, MessageContext},
    deliver::Courier,
    mail::{Role, Topic},
    written::Written,
};
use crate::{
    clock::{Age, ClockKey},
    roster::Roster,
};

/// The followers of each topic, in the order in which they started to follow it.
#[derive(Default)]
pub(crate) struct Followers {
    pub(super) by_topic: HashMap<Topic, Following, NoOpHash>,
    /// The number of the next follower. Numbers rise with the order of joining.
    next: u64,
    /// Changes whenever a disabled follower may have been enabled.
    enabled: u64,
    /// The types that Bevy's writers write, in the order in which they were first followed.
    pub(super) written: Vec<Written>,
    /// The entity whose component is being removed or replaced, and the topics of that component.
    leaving: Option<(Entity, SmallVec<[Topic; 4]>)>,
}

/// By topic, the number of the follower whose turn it is.
pub(super) type Turns = HashMap<Topic, u64, NoOpHash>;

/// The followers of one topic. There is at least one.
#[derive(Default)]
pub(super) struct Following {
    roster: Roster<Follower>,
    /// By entity, its place in the roster.
    places: EntityHashMap<usize>,
    /// The place after the follower that was called last. Most systems send in the order of the
    /// followers, so the next message is likely to go there.
    likely: usize,
    /// Followers with a lower number have had their turn.
    turn: u64,
    /// By turn, the number of the first follower that could be called, if disabled followers come before.
    takers: HashMap<u64, u64>,
    /// The state of [`Followers::enabled`] for which the takers are right.
    valid_for: u64,
}

/// An entity that follows a topic. It holds a clone of the callback, so that a message does not look
/// at the component.
pub(super) struct Follower {
    pub(super) entity: Entity,
    pub(super) callback: Callback,
    pub(super) clock: Option<(ClockKey, Age)>,
}

/// The progress of a message to all followers.
#[derive(Clone)]
pub(crate) struct Round {
    /// Followers with a lower number have had their call.
    next: u64,
    /// Followers from this number on started to follow after the round began.
    until: u64,
    /// Whether a follower has received the message.
    pub(super) is_heard: bool,
}

impl Follower {
    /// Calls the callback, and returns `false` if the entity is gone or disabled.
    #[inline(always)]
    pub(super) fn call(&self, courier: &mut Courier, message: &dyn Any, role: &Role) -> bool {
        #[cfg(test)]
        tests::count();
        let Some((entity, commands)) = courier.caller.get_mut(self.entity) else {
            return false;
        };
        let context = MessageContext {
            entity,
            commands,
            role,
            clocks: courier.clocks,
            clock: &self.clock,
        };
        let result = (self.callback)(context, message);
        courier
            .caller
            .report("MessageComponent", self.entity, result);
        courier.stats.delivered += 1;
        true
    }
}

impl Following {
    /// Adds a follower, or replaces the one of the same entity in its place.
    fn set(&mut self, number: u64, follower: Follower) {
        let entity = follower.entity;
        let before = self.places.get(&entity);
        if let Some(before) = before.and_then(|&place| self.roster.at_mut(place)) {
            *before = follower;
            return;
        }
        let place = self.roster.add(number, follower);
        self.places.insert(entity, place);
        // The new follower may come before one that was next.
        self.takers.clear();
    }

    /// Returns the number of an entity.
    fn number_of(&self, entity: Entity) -> Option<u64> {
        let (number, _) = self.roster.at(*self.places.get(&entity)?)?;
        Some(number)
    }

    fn leave(&mut self, entity: Entity) {
        let number = self.number_of(entity);
        self.places.remove(&entity);
        if number
            .and_then(|number| self.roster.leave(number))
            .is_some()
            && !self.roster.has_gaps()
        {
            // It has closed them, so the others have new places.
            let places = self.roster.members(0..u64::MAX).enumerate();
            self.places = places.map(|(place, (_, it))| (it.entity, place)).collect();
        }
    }

    /// Returns the follower of an entity.
    #[inline]
    pub(super) fn find(&mut self, entity: Entity) -> Option<&Follower> {
        if let Some((_, it)) = self.roster.at(self.likely)
            && it.entity == entity
        {
            self.likely += 1;
            return Some(it);
        }
        let &place = self.places.get(&entity)?;
        self.likely = place + 1;
        self.roster.at(place).map(|(_, it)| it)
    }

    /// Calls the followers in order until one issues commands. The next call continues the round, which
    /// leaves out followers from the number `until` on. At its end, returns whether one has received the
    /// message.
    pub(super) fn call_all(
        &self,
        round: &mut Option<Round>,
        until: u64,
        courier: &mut Courier,
        message: &dyn Any,
        role: &Role,
    ) -> Option<bool> {
        let now = round.get_or_insert(Round {
            next: 0,
            until,
            is_heard: false,
        });
        for (number, follower) in self.roster.members(now.next..now.until) {
            // Set first: a follower that panics has had its call.
            now.next = number + 1;
            now.is_heard |= follower.call(courier, message, role);
            if courier.caller.has_commands() {
                return None;
            }
        }
        round.take().map(|round| round.is_heard)
    }

    /// Calls the follower whose turn it is, or the next one that is neither gone nor disabled. Returns
    /// `false` if there is none.
    pub(super) fn call_in_turn(
        &mut self,
        courier: &mut Courier,
        message: &dyn Any,
        role: &Role,
    ) -> bool {
        let Self {
            roster,
            turn,
            takers,
            ..
        } = self;
        let start = *turn;
        let first = takers.get(&start).copied().unwrap_or(start);
        let mut in_turn = roster
            .members(first..u64::MAX)
            .chain(roster.members(0..first));
        let mut has_passed = false;
        let taker = in_turn.find(|&(number, follower)| {
            // Set first: a follower that panics has had its turn.
            *turn = number + 1;
            let is_called = follower.call(courier, message, role);
            has_passed |= !is_called;
            is_called
        });
        match taker {
            Some((number, _)) if has_passed => _ = takers.insert(start, number),
            Some(_) => {}
            None => *turn = start,
        }
        taker.is_some()
    }
}

impl Followers {
    /// Returns the followers of a topic, if there are any.
    #[inline]
    pub(super) fn of(&mut self, topic: Topic) -> Option<&mut Following> {
        let following = self.by_topic.get_mut(&topic)?;
        if following.valid_for != self.enabled {
            following.valid_for = self.enabled;
            following.takers.clear();
        }
        Some(following)
    }

    /// Returns `true` if an entity follows this topic.
    #[cfg(feature = "worlds")]
    pub(crate) fn is_followed(&self, topic: Topic) -> bool {
        self.by_topic.contains_key(&topic)
    }

    /// Returns the number of an entity among the followers of a topic.
    #[cfg(feature = "serialize")]
    pub(super) fn turn_of(&self, topic: Topic, entity: Entity) -> Option<u64> {
        self.by_topic.get(&topic)?.number_of(entity)
    }

    /// Returns the number of the next follower of any topic.
    pub(super) fn next_number(&self) -> u64 {
        self.next
    }

    /// Lets an entity follow these topics, and no others of a component that is being replaced. It keeps
    /// its place among the followers of a topic that it followed before.
    pub(super) fn follow(
        &mut self,
        entity: Entity,
        clock: Option<(ClockKey, Age)>,
        follows: &[Follows],
    ) {
        self.end_leaving(entity, |topic| follows.iter().any(|it| it.topic == topic));
        for Follows {
            topic, callback, ..
        } in follows
        {
            let follower = Follower {
                entity,
                callback: callback.clone(),
                clock,
            };
            let following = self.by_topic.entry(*topic).or_default();
            following.set(self.next, follower);
            self.next += 1;
        }
    }

    /// Notes that the component of an entity is being removed or replaced.
    pub(super) fn begin_leaving(&mut self, entity: Entity, topics: SmallVec<[Topic; 4]>) {
        self.leaving = Some((entity, topics));
    }

    /// Removes an entity whose component is being removed or replaced from its topics, except for those
    /// that it keeps.
    pub(super) fn end_leaving(&mut self, entity: Entity, is_kept: impl Fn(Topic) -> bool) {
        let leaving = self.leaving.take_if(|(leaving, _)| *leaving == entity);
        let topics = leaving.map(|(_, topics)| topics).unwrap_or_default();
        for topic in topics.into_iter().filter(|&topic| !is_kept(topic)) {
            if let Some(following) = self.by_topic.get_mut(&topic) {
                following.leave(entity);
                if following.roster.is_empty() {
                    self.by_topic.remove(&topic);
                }
            }
        }
    }

    /// Returns the entities that a message to all has not reached yet.
    #[cfg(feature = "serialize")]
    pub(crate) fn left_in(&self, topic: Topic, round: &Round) -> Vec<Entity> {
        let following = self.by_topic.get(&topic).into_iter();
        let left = following.flat_map(|it| it.roster.members(round.next..round.until));
        left.map(|(_, follower)| follower.entity).collect()
    }

    /// Returns whose turn it is.
    pub(super) fn turns(&self) -> Turns {
        let turns = self.by_topic.iter();
        turns
            .map(|(&topic, following)| (topic, following.turn))
            .collect()
    }

    /// Sets whose turn it is.
    pub(super) fn set_turns(&mut self, turns: &Turns) {
        for (topic, following) in &mut self.by_topic {
            following.turn = turns.get(topic).copied().unwrap_or(0);
        }
    }

    /// Lets messages in turn try disabled followers again.
    pub(crate) fn retry_disabled(&mut self) {
        self.enabled += 1;
    }
}

#[cfg(test)]
mod tests {
    use core::cell::Cell;
    use std::prelude::rust_2024::*;

    use bevy_app::App;
    use bevy_ecs::entity_disabling::Disabled;
    use bevy_time::TimePlugin;

    use super::*;
    use crate::{
        message::{Delivery, MessageWorldExt},
        prelude::*,
    };

    thread_local! {
        static CALLS: Cell<u32> = const { Cell::new(0) };
    }

    pub(super) fn count() {
        CALLS.set(CALLS.get() + 1);
    }

    #[derive(Message)]
    struct Job;
    #[derive(Component, Default)]
    struct Done(u32);

    fn worker() -> MessageComponent {
        MessageComponent::new().on(|mut me, _: &Job| {
            if let Some(mut done) = me.entity.get_mut::<Done>() {
                done.0 += 1;
            }
        })
    }

    #[test]
    fn messages_in_turn_pass_over_disabled_followers_once_a_frame() {
        let mut app = App::new();
        app.add_plugins((TimePlugin, DuePlugin::default()));
        let first = app.world_mut().spawn((worker(), Done(0))).id();
        let idle: Vec<Entity> = (0..1000)
            .map(|_| app.world_mut().spawn((worker(), Done(0), Disabled)).id())
            .collect();
        let last = app.world_mut().spawn((worker(), Done(0))).id();
        app.update();
        let send = |app: &mut App, jobs: u32| {
            CALLS.set(0);
            for _ in 0..jobs {
                app.world_mut()
                    .send(Delivery::InTurn, Job)
                    .expect("there is room");
            }
            app.update();
            CALLS.get()
        };
        let calls = send(&mut app, 100);
        assert!((1100..1200).contains(&calls), "{calls} for 100 messages");
        let done = |app: &App, worker| app.world().get::<Done>(worker).map(|done| done.0);
        assert_eq!((done(&app, first), done(&app, last)), (Some(50), Some(50)));

        app.world_mut().entity_mut(idle[7]).remove::<Disabled>();
        send(&mut app, 3);
        assert_eq!(done(&app, idle[7]), Some(1), "it takes its turn again");
    }
}
