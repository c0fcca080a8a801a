//! Update callbacks: called by priority, then in the order of insertion.

use super::{
    Flow, Handler, Model,
    clocks::{Nth, Scope},
};
use crate::{
    entry::{Call, Entry, Id},
    op::At,
};

#[derive(Clone, Default)]
pub(super) struct Updates {
    members: Vec<Member>,
    /// The number of update and message components ever inserted.
    pub(super) numbers: u64,
    /// The components with a lower number take part, by cadence.
    joined: [u64; 2],
    /// Callbacks of this priority or a higher one are not called.
    pub(super) paused_from: Option<i32>,
}

#[derive(Clone, Copy)]
struct Member {
    entity: Id,
    position: Position,
    clock: Nth,
    is_fixed: bool,
    has_chosen: bool,
}

/// A place in the order of calls: the priority, then the number.
type Position = (i32, u64);

const FIRST: Position = (i32::MIN, 0);

impl Model {
    pub(super) fn next_number(&mut self) -> u64 {
        self.updates.numbers += 1;
        self.updates.numbers
    }

    /// The clock of a callback is found at insertion. Without one, the component is removed.
    pub(super) fn insert_update(&mut self, id: Id, priority: i32, on: Option<At>) {
        self.stop_update(id);
        let clock = self.clock_of(id, on.map(|on| self.named(on)));
        if let Some(clock) = self.clocks.find(clock) {
            let number = self.next_number();
            self.updates.members.push(Member {
                entity: id,
                position: (priority, number),
                clock,
                is_fixed: self.clocks.all[clock].is_fixed,
                has_chosen: on.is_some(),
            });
        }
    }

    /// A callback that chose no clock moves to the one that it is on by default.
    pub(super) fn move_update(&mut self, id: Id) {
        let clock = self.clocks.find(self.clock_of(id, None));
        for member in &mut self.updates.members {
            if let Some(clock) = clock
                && member.entity == id
                && !member.has_chosen
            {
                member.clock = clock;
            }
        }
    }

    /// After a rollback, callbacks leave the clocks that did not exist at the snapshot.
    pub(super) fn leave_later_clocks(&mut self, first_later: Nth) {
        let members = self.updates.members.iter();
        let later = members.filter(|member| member.clock >= first_later);
        for id in later.map(|member| member.entity).collect::<Vec<_>>() {
            self.move_update(id);
        }
    }

    pub(super) fn stop_update(&mut self, id: Id) {
        self.updates.members.retain(|member| member.entity != id);
    }

    /// A callback on a clock that has moved between frames and fixed steps follows it, behind the
    /// others of its priority.
    pub(super) fn follow_clocks(&mut self) {
        let mut members = self.updates.members.clone();
        members.sort_by_key(|member| (member.is_fixed, member.position));
        for member in members {
            let clock = &self.clocks.all[member.clock];
            if clock.exists && clock.is_fixed != member.is_fixed {
                self.updates.members.retain(|it| it.entity != member.entity);
                let position = (member.position.0, self.next_number());
                self.updates.members.push(Member {
                    position,
                    is_fixed: !member.is_fixed,
                    ..member
                });
            }
        }
    }

    /// A callback that is inserted during a run takes part in the next.
    pub(super) fn let_updates_join(&mut self, is_fixed: bool) {
        self.updates.joined[usize::from(is_fixed)] = self.updates.numbers;
    }

    /// After a panic, the next run starts from the first callback again.
    pub(super) fn run_updates(&mut self, is_fixed: bool) -> Flow {
        let mut from = FIRST;
        while let Some(member) = self.next_member(is_fixed, from) {
            from = (member.position.0, member.position.1 + 1);
            self.call(member)?;
        }
        Ok(())
    }

    fn next_member(&self, is_fixed: bool, from: Position) -> Option<Member> {
        let Updates {
            members, joined, ..
        } = &self.updates;
        let joined = joined[usize::from(is_fixed)];
        let takes_part = |member: &&Member| {
            let (priority, number) = member.position;
            let is_running = self.updates.paused_from.is_none_or(|from| priority < from);
            let is_of = member.is_fixed == is_fixed && number <= joined;
            is_of && is_running && member.position >= from
        };
        let members = members.iter().filter(takes_part);
        members.min_by_key(|member| member.position).copied()
    }

    /// A callback is called on its owner, unless it is paused, or its clock stands still.
    fn call(&mut self, member: Member) -> Flow {
        let Member { entity, clock, .. } = member;
        let target = self.owner_of(entity);
        let scope = Scope::Of {
            is_fixed: member.is_fixed,
        };
        if self.is_paused(entity) || !self.clocks.is_running(clock, scope) {
            return Ok(());
        }
        let clock = &self.clocks.all[clock];
        let (last, previous) = clock.ticks;
        self.log.push(Entry::Called(Call {
            entity,
            target,
            clock: clock.name,
            delta: last.saturating_sub(previous),
            elapsed: clock.shown(clock.now),
        }));
        self.react(Handler::Command)
    }
}
