//! Requests: an entity that belongs to the asking one, with a time-out.

use super::{Model, mail::Role, timers::Kind};
use crate::{
    entry::Id,
    op::{Slot, Spec, To, Topic},
};

impl Model {
    /// A request is sent, and completes with a reply or with `NoAnswer`.
    pub(super) fn ask(&mut self, asker: Id, to: To, spec: Spec) {
        let on = spec.on.map(|on| self.named(on));
        let request = self.spawn();
        self.entities[request].owner = Some(asker);
        self.entities[request].until = Some(spec);
        self.add_timer(request, Kind::Request, spec, on);
        self.set_owner(request, asker);
        self.send(to, Topic::Packet0, Role::Request(asker, request));
    }

    /// A request times out at its deadline, or when the clock of the time-out is gone.
    pub(super) fn time_out(&mut self, request: Id) {
        match self.entities[request].owner {
            Some(asker) => self.send_reply(asker, request, Topic::NoReply),
            None => self.despawn(request),
        }
    }

    pub(super) fn withdraw(&mut self, slot: Slot) {
        let Some(asker) = self.at(slot) else { return };
        let mut owned = self.entities[asker].owned.iter().copied();
        if let Some(request) = owned.find(|&id| self.entities[id].until.is_some()) {
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
