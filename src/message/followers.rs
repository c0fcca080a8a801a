//! The followers of each topic.

use alloc::collections::VecDeque;
use core::ops::Range;

use bevy_ecs::{entity::EntityHashMap, entity_disabling::Disabled, prelude::*};
use bevy_platform::{collections::HashMap, hash::NoOpHash};
use smallvec::SmallVec;

use super::{
    broadcast::Round,
    context::{Callback, Incoming},
    topic::Topic,
};
use crate::{
    call::EntityCaller,
    clock::{Age, ClockKey},
    roster::Roster,
};

/// The followers of each topic, in the order in which their components were inserted.
#[derive(Resource, Default)]
pub(crate) struct Followers {
    by_topic: HashMap<Topic, Following, NoOpHash>,
    /// The number of topics without followers.
    vacant: usize,
    /// The number of rounds that have begun.
    rounds: u64,
    /// Changes whenever a disabled follower may have been enabled.
    enabled: u64,
    /// The entity whose component is being removed or replaced.
    leaving: Option<Leaving>,
}

/// The followers of one topic.
#[derive(Default)]
pub(super) struct Following {
    roster: Roster<Follower>,
    /// By entity, its place in the roster.
    places: EntityHashMap<usize>,
    /// Followers with a lower number have had their turn.
    turn: u64,
    /// By source, the round that has called a follower last.
    last: [LastCall; 2],
    passed: Passed,
}

/// The disabled followers that messages in turn have passed over.
#[derive(Default)]
struct Passed {
    /// The state of [`Followers::enabled`], and the first number that has not joined.
    valid_for: (u64, u64),
    /// By turn, the number of the first follower that could be called.
    takers: HashMap<u64, u64>,
}

/// A round of calls to all followers, which has come to this number.
#[derive(Clone, Copy, Default)]
struct LastCall {
    round: u64,
    next: u64,
}

/// The place of an entity among the followers of a topic, which a replaced component passes on.
#[derive(Clone, Copy)]
struct Standing {
    /// The number of the first of the components that have replaced each other.
    since: u64,
    /// By source, the round that called one of those components last, as far as it was before its
    /// replacement.
    heard: [u64; 2],
}

/// An entity whose component is being removed or replaced, with its place in each topic.
struct Leaving {
    entity: Entity,
    standings: SmallVec<[(Topic, Standing); 2]>,
}

/// An entity that follows a topic. It holds a clone of the callback, so that a message does not look
/// at the component.
pub(super) struct Follower {
    entity: Entity,
    callback: Callback,
    clock: Option<(ClockKey, Age)>,
    standing: Standing,
}

/// The result of a message to one entity.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Outcome {
    Delivered,
    /// The recipient takes part later.
    Early,
    /// A reply to an entity that is disabled.
    Disabled,
    /// The recipient is moving to or from another world.
    InTransit,
    /// A reply to a request that is not open.
    Late,
    Undeliverable,
}

impl Follower {
    /// Calls the callback, and returns `false` if the entity is gone or disabled.
    #[inline]
    pub(super) fn call(&self, caller: &mut EntityCaller, incoming: Incoming) -> bool {
        #[cfg(test)]
        tests::count();
        let Some((entity, commands)) = caller.get_mut(self.entity) else {
            return false;
        };
        let result = self.callback.call(entity, commands, incoming, &self.clock);
        caller.report("MessageComponent", self.entity, result);
        true
    }

    /// Returns `true` if the entity was there when a round began, but its component was replaced
    /// before its call.
    fn is_owed(&self, round: &Round) -> bool {
        let Standing { since, heard } = self.standing;
        since < round.until && heard[round.source as usize] != round.id
    }
}

impl Following {
    fn add(&mut self, number: u64, follower: Follower) {
        let entity = follower.entity;
        let place = self.roster.add(number, follower);
        self.places.insert(entity, place);
    }

    fn leave(&mut self, number: u64) -> Option<Follower> {
        let follower = self.roster.leave(number)?;
        self.places.remove(&follower.entity);
        if !self.roster.has_gaps() {
            // It has closed them, so the others have new places.
            let places = self.roster.members(0..u64::MAX).enumerate();
            self.places = places.map(|(place, (_, it))| (it.entity, place)).collect();
        }
        Some(follower)
    }

    /// Calls an entity. Returns `false` if it does not follow the topic yet, or is gone or disabled.
    #[inline]
    pub(super) fn call(
        &self,
        entity: Entity,
        joined: u64,
        caller: &mut EntityCaller,
        incoming: Incoming,
    ) -> bool {
        let follower = self.find(entity, joined, usize::MAX);
        follower.is_some_and(|(_, it)| it.call(caller, incoming))
    }

    /// Returns the place and the follower of an entity that takes part, which is likely to have the
    /// place `likely`.
    #[inline]
    pub(super) fn find(
        &self,
        entity: Entity,
        joined: u64,
        likely: usize,
    ) -> Option<(usize, &Follower)> {
        let is_joined = |number| number < joined;
        if let Some((number, it)) = self.roster.at(likely)
            && it.entity == entity
        {
            return is_joined(number).then_some((likely, it));
        }
        let &place = self.places.get(&entity)?;
        let (number, it) = self.roster.at(place)?;
        is_joined(number).then_some((place, it))
    }
}

impl Followers {
    /// Returns the followers of a topic.
    pub(super) fn of(&self, topic: Topic) -> Option<&Following> {
        self.by_topic.get(&topic)
    }

    /// Adds an entity that follows these topics, with a number above all others. If its component
    /// replaces another, it takes over the places of that one.
    pub(super) fn add(
        &mut self,
        number: u64,
        entity: Entity,
        clock: Option<(ClockKey, Age)>,
        topics: impl Iterator<Item = (Topic, Callback)>,
    ) {
        let leaving = self.leaving.take();
        let leaving = leaving.filter(|leaving| leaving.entity == entity);
        let standings = leaving.map(|leaving| leaving.standings).unwrap_or_default();
        for (topic, callback) in topics {
            if let Some(following) = self.by_topic.get(&topic) {
                self.vacant -= usize::from(following.roster.is_empty());
            } else {
                self.drop_vacant();
            }
            let following = self.by_topic.entry(topic).or_default();
            let before = standings.iter().find(|(other, _)| *other == topic);
            let (since, heard) = (number, [0; 2]);
            let standing = before.map_or(Standing { since, heard }, |&(_, standing)| standing);
            let follower = Follower {
                entity,
                callback,
                clock,
                standing,
            };
            following.add(number, follower);
        }
    }

    /// Removes the follower with this number from these topics. If its component is being replaced,
    /// the next call of [`add`](Self::add) gives its places to the new one.
    pub(super) fn leave(
        &mut self,
        entity: Entity,
        topics: impl Iterator<Item = Topic>,
        number: u64,
    ) {
        let mut standings = SmallVec::new();
        for topic in topics {
            if let Some(following) = self.by_topic.get_mut(&topic)
                && let Some(Follower { mut standing, .. }) = following.leave(number)
            {
                for (heard, &LastCall { round, next }) in
                    standing.heard.iter_mut().zip(&following.last)
                {
                    if number < next {
                        *heard = round;
                    }
                }
                standings.push((topic, standing));
                self.vacant += usize::from(following.roster.is_empty());
            }
        }
        self.leaving = Some(Leaving { entity, standings });
    }

    /// Forgets the places of a component that was removed, not replaced.
    pub(super) fn forget_leaving(&mut self) {
        self.leaving = None;
    }

    /// Lets messages in turn try disabled followers again.
    pub(crate) fn retry_disabled(&mut self) {
        self.enabled += 1;
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
        &mut self,
        round: &mut Round,
        joined: u64,
        caller: &mut EntityCaller,
        incoming: Incoming,
    ) {
        if round.id == 0 {
            self.rounds += 1;
            (round.id, round.until) = (self.rounds, joined);
        }
        let numbers = round.next..round.until.max(round.next);
        self.call_members(numbers, round, caller, incoming, |_, _| true);
    }

    /// Calls the followers whose component was replaced before their call in this round, with their
    /// new callbacks, until one issues commands or none is left.
    pub(super) fn call_replaced(
        &mut self,
        round: &mut Round,
        caller: &mut EntityCaller,
        incoming: Incoming,
    ) {
        let numbers = round.next.max(round.until)..u64::MAX;
        self.call_members(numbers, round, caller, incoming, Follower::is_owed);
    }

    fn call_members(
        &mut self,
        numbers: Range<u64>,
        round: &mut Round,
        caller: &mut EntityCaller,
        incoming: Incoming,
        is_meant: impl Fn(&Follower, &Round) -> bool,
    ) {
        let Some(Following { roster, last, .. }) = self.by_topic.get_mut(&incoming.topic) else {
            return;
        };
        for (number, follower) in roster.members(numbers) {
            if !is_meant(follower, round) {
                continue;
            }
            round.next = number + 1;
            last[round.source as usize] = LastCall {
                round: round.id,
                next: round.next,
            };
            round.calls += u64::from(follower.call(caller, incoming));
            if caller.has_commands() {
                return;
            }
        }
    }

    /// Returns the entities for which the message of a completed round waits: those whose component
    /// was replaced before their call. If no entity got the message, it waits for all entities that
    /// take part from the next run on.
    pub(super) fn early(&self, topic: Topic, round: &Round) -> VecDeque<Entity> {
        let Some(Following { roster, .. }) = self.by_topic.get(&topic) else {
            return VecDeque::new();
        };
        let early = || roster.members(round.until..u64::MAX);
        if early().next().is_none() {
            return VecDeque::new();
        }
        let owed = early().filter(|(_, follower)| follower.is_owed(round));
        let owed: VecDeque<_> = owed.map(|(_, follower)| follower.entity).collect();
        match owed.is_empty() && round.calls == 0 {
            true => early().map(|(_, follower)| follower.entity).collect(),
            false => owed,
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
        let valid_for = (self.enabled, joined);
        let Some(following) = self.by_topic.get_mut(&incoming.topic) else {
            return Outcome::Undeliverable;
        };
        let Following {
            roster,
            turn,
            passed,
            ..
        } = following;
        if passed.valid_for != valid_for {
            passed.valid_for = valid_for;
            passed.takers.clear();
        }
        let start = *turn;
        let first = passed.takers.get(&start).copied().unwrap_or(start);
        let mut in_turn = roster
            .members(first..joined)
            .chain(roster.members(0..first));
        let mut has_passed = false;
        let taker = in_turn.find(|&(number, follower)| {
            // Set first: a follower that panics has had its turn.
            *turn = number + 1;
            let is_called = follower.call(caller, incoming);
            has_passed |= !is_called;
            is_called
        });
        if let Some((number, _)) = taker {
            if has_passed {
                passed.takers.insert(start, number);
            }
            return Outcome::Delivered;
        }
        *turn = start;
        match roster.members(joined..u64::MAX).next() {
            Some(_) => Outcome::Early,
            None => Outcome::Undeliverable,
        }
    }
}

/// Notices that a follower may have been enabled.
pub(crate) fn on_enable_follower(_: On<Remove<Disabled>>, followers: Option<ResMut<Followers>>) {
    if let Some(mut followers) = followers {
        followers.retry_disabled();
    }
}

#[cfg(test)]
mod tests {
    use core::cell::Cell;
    use std::prelude::rust_2024::*;

    use bevy_app::App;
    use bevy_time::TimePlugin;

    use super::*;
    use crate::prelude::*;

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
