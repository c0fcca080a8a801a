//! Journals that nobody will open again, and what is lost with them.

use core::time::Duration;
use std::collections::{BTreeSet, HashMap, HashSet};

use bevy_app::AppExit;
use bevy_due::worlds::StableKey;
use bevy_ecs::prelude::*;

use super::{ZoneState, now, protocol::AT_ONCE};
use crate::{
    ids::{JournalId, Life, Recipient, ZoneId, random},
    item::{Item, MovedOut},
    journal::{Change, rows},
    outbox::Outbox,
    report::report,
    routes::Location,
    wire::Message,
};

/// How long a zone waits before it searches for letters, and how long it then waits for answers.
const SEARCH_FOR: Duration = Duration::from_secs(10);

/// After how many searches in which all zones have answered, and none has the letters, they are lost. A letter can go from
/// one zone to another between the two answers.
const SEARCHES: u32 = 2;

/// Others have given up the journal of this zone.
const GIVEN_UP: &str = "the world ends, because another shard has given up its journal: what it owned may live \
                        elsewhere by now. Create a new file with `Shard::create`";

/// The journals that nobody will open again, and what they may have had.
#[derive(Default)]
pub(super) struct Lost {
    pub(super) dead: BTreeSet<JournalId>,
    /// The number of journals of [`Shard::reclaim`](crate::Shard::reclaim) that this zone knows of.
    pub(super) reclaims: usize,
    /// Batches of this zone that a lost journal may have had, with the number of searches that did not find them.
    suspects: HashMap<u64, u32>,
    searches: Vec<Search>,
    /// When the searches end and the next ones begin, if there are suspects.
    next_search: Option<Duration>,
}

/// A question to all zones for batches.
struct Search {
    number: u64,
    /// Those that no zone has, so far.
    batches: Vec<u64>,
    /// The zones that have yet to answer.
    silent: BTreeSet<StableKey>,
}

impl Lost {
    pub(super) fn new(dead: BTreeSet<JournalId>) -> Self {
        Self {
            dead,
            ..Self::default()
        }
    }

    /// Notes the answer of a zone: it has something of the `found` batches.
    pub(super) fn note_answer(&mut self, from: ZoneId, search: u64, found: &[u64]) {
        let search = self.searches.iter_mut().find(|it| it.number == search);
        if let Some(search) = search.filter(|_| !self.dead.contains(&from.journal)) {
            search.silent.remove(&from.zone);
            search.batches.retain(|id| !found.contains(id));
            self.suspects.retain(|id, _| !found.contains(id));
        }
    }
}

impl ZoneState {
    /// Gives up the dead journals from which this zone has not taken back everything yet.
    pub(super) fn give_up_dead(&mut self, world: &mut World) {
        let peers: HashSet<_> = self.post.streams.peers().map(|it| it.journal).collect();
        let is_open = |journal: &JournalId| peers.contains(journal);
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
        // What a search of before has not found counts no more.
        let on_the_way = self.post.outboxes.on_the_way().map(|id| (id, 0));
        self.lost.suspects.extend(on_the_way);
        self.lost.searches.clear();
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

    /// Returns `true` if a lost journal may have had what this zone knows or waits for.
    fn has_losses(&self) -> bool {
        !self.lost.dead.is_empty() || self.is_restored()
    }

    /// Returns `true` if receipts for an entity that nobody knows can end: it may be lost, and all other zones answer. Asks
    /// those that don't.
    pub(super) fn may_end_receipts(&mut self, world: &World) -> bool {
        let waits = self.has_losses() && self.post.unrouted.len() > 0;
        waits && self.post.streams.have_all_answered(now(world))
    }

    /// Takes the outbox of an entity that comes from the journal or from another zone.
    pub(super) fn take_outbox(&mut self, life: Life, outbox: Outbox) {
        if self.has_losses() {
            for id in outbox.on_the_way() {
                self.lost.suspects.entry(id).or_insert(0);
            }
        }
        self.post.outboxes.insert(life, outbox);
    }

    /// Searches for letters that a lost journal may have had. Ends those that nobody has, so that the next ones can go.
    pub(super) fn search_for_letters(&mut self, now: Duration) {
        if self.lost.suspects.is_empty() {
            self.lost.searches.clear();
            self.lost.next_search = None;
            return;
        }
        // Most receipts come before the first search.
        let next_search = self.lost.next_search.get_or_insert(now + SEARCH_FOR);
        if now < *next_search {
            return;
        }
        *next_search = now + SEARCH_FOR;
        for search in core::mem::take(&mut self.lost.searches) {
            if search.silent.is_empty() {
                for id in search.batches {
                    self.lost.suspects.entry(id).and_modify(|it| *it += 1);
                }
            }
        }
        let here = self.batches_here();
        let on_the_way: HashSet<_> = self.post.outboxes.on_the_way().collect();
        let suspects = &mut self.lost.suspects;
        suspects.retain(|id, _| on_the_way.contains(id) && !here.contains(id));
        let lost = suspects.extract_if(|_, searches| *searches >= SEARCHES);
        let lost: HashSet<_> = lost.map(|(id, _)| id).collect();
        self.post.outboxes.end(|id| lost.contains(&id));
        let to_find: Vec<_> = suspects.keys().copied().collect();
        for batches in to_find.chunks(AT_ONCE) {
            let search = Search {
                number: random(),
                batches: batches.to_vec(),
                silent: self.post.streams.peers().map(|peer| peer.zone).collect(),
            };
            let find = Message::FindLetters {
                from: self.home.me.zone,
                search: search.number,
                batches: search.batches.clone(),
                dead: self.lost.dead.clone(),
            };
            self.post.to_tell.push((None, find));
            self.lost.searches.push(search);
        }
    }

    /// Returns the batches of which this zone has the letters or the receipts.
    fn batches_here(&self) -> HashSet<u64> {
        let items = self.post.streams.items().chain(self.post.unrouted.items());
        items.filter_map(Item::batch).collect()
    }

    /// Tells a zone which batches are here.
    pub(super) fn answer_search(&mut self, to: StableKey, search: u64, mut batches: Vec<u64>) {
        let from = self.home.me;
        if to != from.zone {
            let here = self.batches_here();
            batches.retain(|id| here.contains(id));
            let found = Message::FoundLetters {
                from,
                search,
                batches,
            };
            self.post.to_tell.push((Some(to), found));
        }
    }
}
