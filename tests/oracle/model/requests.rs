//! Requests: an entity that belongs to the asking one, with a timer for the time-out.

use super::{
    Model,
    mail::{Letter, Role},
};
use crate::{
    entry::Id,
    op::{Done, Slot, Spec, To, Topic},
};

impl Model {
    /// A request is sent, and completes with a reply or with `NoAnswer`.
    pub(super) fn ask(&mut self, asker: Id, to: To, spec: Spec) {
        let on = spec.on.map(|on| self.named(on));
        let request = self.spawn();
        self.entities[request].owner = Some(asker);
        self.entities[request].is_request = true;
        let done = Done::Keeps;
        self.insert_timer(request, Spec { done, ..spec }, on);
        self.set_owner(request, asker);
        self.send(to, Topic::Packet0, Role::Request(asker, request));
    }

    /// A request times out when its timer fires, or when the clock of the timer is gone.
    pub(super) fn time_out(&mut self, request: Id) {
        match self.entities[request].owner {
            Some(asker) => self.send_reply(asker, request, Topic::NoReply),
            None => self.despawn(request),
        }
    }

    /// Returns the requests that have timed out, and whose asking entities do not know yet. In the order
    /// of delivery.
    pub(super) fn timed_out(&self) -> Vec<Id> {
        let mail = &self.mail;
        let moving = mail.transit.iter().flat_map(|hold| &hold.letters);
        let letters = moving.chain(&mail.held).chain(&mail.released);
        let letters = letters.chain(&mail.sent);
        let requests = letters.filter_map(|letter| match letter.role {
            Role::Reply(request) => (letter.topic == Topic::NoReply).then_some(request),
            _ => None,
        });
        let mut found = Vec::new();
        for request in requests.filter(|&request| self.exists(request)) {
            // A periodic timer may have fired again.
            if !found.contains(&request) {
                found.push(request);
            }
        }
        found
    }

    /// Lets exactly these requests have timed out.
    pub(super) fn set_timed_out(&mut self, requests: &[Id]) {
        let mut mail = core::mem::take(&mut self.mail);
        let mut on_way = Vec::new();
        let mut is_kept = |letter: &Letter| match letter.role {
            Role::Reply(made) if letter.topic == Topic::NoReply => {
                on_way.push(self.request_now(made));
                requests.contains(&self.request_now(made))
            }
            _ => true,
        };
        for hold in &mut mail.transit {
            hold.letters.retain(&mut is_kept);
        }
        mail.held.retain(&mut is_kept);
        mail.released.retain(&mut is_kept);
        mail.sent.retain(&mut is_kept);
        self.mail = mail;
        for &request in requests {
            if !on_way.contains(&request) {
                self.time_out(request);
            }
        }
    }

    pub(super) fn withdraw(&mut self, slot: Slot) {
        let Some(asker) = self.at(slot) else { return };
        let mut owned = self.entities[asker].owned.iter().copied();
        if let Some(request) = owned.find(|&id| self.entities[id].is_request) {
            self.despawn(request);
        }
    }

    /// Replies to the oldest request that was heard.
    pub(super) fn reply(&mut self, keeps: bool) {
        let Some(&(asker, request)) = self.mail.heard.front() else {
            return;
        };
        if !keeps {
            self.mail.heard.pop_front();
        }
        self.send_reply(asker, request, Topic::Answer);
    }
}
