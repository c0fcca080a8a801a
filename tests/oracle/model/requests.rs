//! Requests: an entity that belongs to the asking one, with a timer for the time-out.

use super::{Model, mail::Role};
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
