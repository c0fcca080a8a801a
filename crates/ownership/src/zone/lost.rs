//! Journals that nobody will open again, and what is lost with them.

use core::time::Duration;
use std::collections::{BTreeSet, HashMap, HashSet};

use bevy_app::AppExit;
use bevy_due::worlds::StableKey;
use bevy_ecs::prelude::*;

use super::{ZoneState, now, protocol::KEYS_AT_ONCE};
use crate::{
    ids::{JournalId, Life, Recipient},
    item::{Item, MovedOut},
    journal::{Change, rows},
    report::report,
    routes::Location,
    unrouted::RETURN_AFTER,
    wire::Message,
};

/// How long a zone waits until it looks for missing letters again. It asks for them twice before they are lost.
const LOOK_AGAIN: Duration = Duration::from_secs(RETURN_AFTER.as_secs() / 3);

/// Others have given up the journal of this zone.
const GIVEN_UP: &str = "the world ends, because another shard has given up its journal: what it owned may live elsewhere by now. Create a \
     new file with `Shard::create`";

/// The journals that nobody will open again, and what they may have had.
#[derive(Default)]
pub(super) struct Lost {
    pub(super) dead: BTreeSet<JournalId>,
    /// How many of the journals that the shard has given up this zone has given up.
    pub(super) reclaims: usize,
    /// The letters of this zone of which nobody has anything, and since when.
    missing: HashMap<u64, Duration>,
    /// When to look for them again.
    next_look: Duration,
}

impl Lost {
    pub(super) fn new(dead: BTreeSet<JournalId>) -> Self {
        Self {
            dead,
            ..Self::default()
        }
    }

    /// Notes that a zone has something of these batches.
    pub(super) fn found(&mut self, batches: &[u64]) {
        for id in batches {
            self.missing.remove(id);
        }
    }
}

impl ZoneState {
    /// Gives up the dead journals from which this zone has not taken back everything yet.
    pub(super) fn give_up_dead(&mut self, world: &mut World) {
        let is_open = |journal: &JournalId| self.post.streams.has_peer(*journal);
        let to_give_up: Vec<_> = self.lost.dead.extract_if(.., is_open).collect();
        for journal in to_give_up {
            self.give_up(world, journal);
        }
    }

    /// Gives up a lost journal, once it is known what to take back.
    pub(super) fn give_up(&mut self, world: &mut World, journal: JournalId) {
        if journal == self.home.me.journal {
            world.write_message(AppExit::error());
            return report(world, GIVEN_UP);
        }
        if !self.lost.dead.insert(journal) {
            return;
        }
        match self.claims.referee.is_some() {
            true => self.take_over_what_goes_to(journal),
            false => self.bury(world, journal, &|_| true),
        }
    }

    /// Takes back what was on its way to a lost journal, except for what somebody else owns.
    pub(super) fn bury(
        &mut self,
        world: &mut World,
        journal: JournalId,
        is_free: &dyn Fn(Life) -> bool,
    ) {
        let mut lost = self.post.streams.give_up(journal);
        self.storage.ended.append(&mut lost.ended);
        let zone = self.home.me.zone;
        let dead = Change::Put(rows::dead(zone, journal), Vec::new());
        self.storage.ended.push(dead);
        for &zone in &lost.zones {
            self.post.routes.forget_zone(zone);
        }
        for (zone, item) in lost.items {
            match item {
                Item::Entity(moved)
                    if !is_free(moved.life) || self.later_owner(&moved).is_some() => {}
                Item::Entity(moved) => self.take_back(world, zone, moved),
                item => self.route(world, item),
            }
        }
    }

    /// Returns where an entity is, if it has gone on since it was sent.
    pub(super) fn later_owner(&self, moved: &MovedOut) -> Option<Location> {
        let location = self.post.locate(Recipient::Life(moved.life));
        location.filter(|it| it.epoch > moved.epoch)
    }

    /// Returns `true` if this shard was made of a copy of another one.
    pub(super) fn is_restored(&self) -> bool {
        !self.home.shard.restored().is_empty()
    }

    /// Returns `true` if a journal is lost that may have had what this zone waits for, and all other zones answer. Asks
    /// those that don't.
    pub(super) fn may_wait_in_vain(&mut self, world: &World) -> bool {
        let is_lost = !self.lost.dead.is_empty() || self.is_restored();
        let waits = self.post.unrouted.len() > 0 || self.post.outboxes.len() > 0;
        is_lost && waits && self.post.streams.have_all_answered(now(world))
    }

    /// Ends the letters of which nobody has had anything for some time, and asks for those that are missing. The next
    /// ones can go then.
    pub(super) fn end_lost_letters(&mut self, may_be_lost: bool, now: Duration) {
        if !may_be_lost {
            return self.lost.missing.clear();
        }
        if now < self.lost.next_look {
            return;
        }
        self.lost.next_look = now + LOOK_AGAIN;
        let here = self.batches_here();
        let before = core::mem::take(&mut self.lost.missing);
        for id in self.post.outboxes.on_the_way() {
            if !here.contains(&id) {
                let since = before.get(&id).copied().unwrap_or(now);
                self.lost.missing.insert(id, since);
            }
        }
        let missing = &self.lost.missing;
        let to_find = missing.keys().copied();
        let to_find: Vec<_> = to_find.filter(|id| before.contains_key(id)).collect();
        for batches in to_find.chunks(KEYS_AT_ONCE) {
            let (from, batches) = (self.home.me.zone, batches.to_vec());
            let find = Message::FindLetters { from, batches };
            self.post.to_tell.push((None, find));
        }
        self.post.outboxes.end(|id| {
            let since = missing.get(&id);
            since.is_some_and(|&since| now.saturating_sub(since) >= RETURN_AFTER)
        });
    }

    /// Returns the batches of which this zone has the letters or the receipts.
    fn batches_here(&self) -> HashSet<u64> {
        let items = self.post.streams.items().chain(self.post.unrouted.items());
        items.filter_map(Item::batch).collect()
    }

    /// Tells a zone which batches are here.
    pub(super) fn answer_for_letters(&mut self, to: StableKey, mut batches: Vec<u64>) {
        let here = self.batches_here();
        batches.retain(|id| here.contains(id));
        if to != self.home.me.zone && !batches.is_empty() {
            let found = Message::FoundLetters(batches);
            self.post.to_tell.push((Some(to), found));
        }
    }
}
