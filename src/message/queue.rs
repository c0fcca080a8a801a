//! Queues of messages, in the order of sending.

use alloc::{boxed::Box, collections::VecDeque, vec, vec::Vec};
use core::{
    any::{Any, TypeId},
    fmt, mem,
};

use bevy_ecs::prelude::*;
use bevy_platform::{cell::SyncCell, collections::HashMap, hash::NoOpHash};

use super::{
    deliver::Courier,
    followers::{Followers, Following, Round},
    mail::{Delivery, MailRef, Packet, Payload, Recipient, Role, Shared, Topic},
    request::{ReplyTo, Request, Route},
};
use crate::recent_peak::RecentPeak;

/// Messages, functions and notes in the order of sending.
///
/// The messages of each type have a lane of their own. A lane keeps its memory, so in a steady state no
/// message allocates.
#[derive(Default)]
pub(crate) struct Queue {
    items: VecDeque<Item>,
    /// The last batch, behind all items, while it takes further plain messages.
    open: Option<Batch>,
    lanes: Vec<Box<dyn AnyLane>>,
    /// By the type of a lane, its place.
    places: HashMap<TypeId, usize, NoOpHash>,
    /// The number of messages, functions and notes in the items.
    len: usize,
    /// The number of items that this run delivers. The others wait for the next run.
    released: usize,
    peak: RecentPeak,
}

/// An item of a queue.
pub(super) enum Item {
    Messages(Batch),
    /// A function to run on the world.
    Function(SyncCell<Box<dyn FnOnce(&mut World) + Send>>),
}

/// Messages of one lane that were sent one after the other. Plain messages share a batch, if each goes to an
/// entity, or all have the same recipient. A request or a reply has a batch of its own.
pub(super) struct Batch {
    lane: usize,
    len: usize,
    /// The recipient of the first message.
    to: Recipient,
    role: Role,
    /// The progress of the next message, if a callback has interrupted its delivery to all.
    round: Option<Round>,
}

/// The messages of one type.
struct Lane<P> {
    /// Each with its entity, or a placeholder for the recipient of the run: the whole recipient would double
    /// the memory that a small message moves. `None` where a message was taken out.
    messages: Vec<Option<(Entity, P)>>,
    /// The place of the first message that waits. The delivery of the others has begun.
    next: usize,
    peak: RecentPeak,
}

/// A lane of any type.
trait AnyLane: Any + Send + Sync {
    /// Returns an empty lane of the same type.
    fn new_lane(&self) -> Box<dyn AnyLane>;

    /// Returns the `nth` waiting message of a run with this recipient and this role.
    fn get<'a>(&'a self, nth: usize, to: Recipient, role: &'a Role) -> Option<MailRef<'a>>;

    /// Takes the `nth` waiting message with its entity. The others keep their places until `sweep`.
    fn take(&mut self, nth: usize) -> Option<(Entity, Shared)>;

    /// Drops the places of messages that do not wait.
    fn sweep(&mut self);

    /// Moves all messages of another lane of the same type behind the others.
    fn append(&mut self, other: &mut dyn AnyLane);

    /// Delivers messages of a run, which are the first ones of the lane, until a callback issues commands or
    /// none is left. `waiting` counts the messages of the queue.
    fn deliver(
        &mut self,
        batch: &mut Batch,
        waiting: &mut usize,
        followers: &mut Followers,
        courier: &mut Courier,
    );

    /// Returns `true` if the lane is empty, and was so for a while.
    fn is_idle(&self) -> bool;

    /// Gives back memory that was not needed recently.
    fn trim(&mut self);
}

/// A message that was not delivered, returned by [`close_inbox`](super::MessageWorldExt::close_inbox).
///
/// [`resend`](super::MessageWorldExt::resend) sends it again.
pub struct Letter {
    to: Recipient,
    pub(crate) role: Role,
    round: Option<Round>,
    payload: Shared,
}

impl Letter {
    /// Returns the message, if it has the type `M`.
    #[must_use]
    pub fn message<M: Payload>(&self) -> Option<&M> {
        self.payload.content().0.downcast_ref()
    }

    /// Returns the message, if it is a packet.
    #[must_use]
    pub fn packet(&self) -> Option<&Packet> {
        self.message()
    }

    /// Returns the type name of the message.
    #[must_use]
    pub fn type_name(&self) -> &'static str {
        self.payload.content().1
    }

    /// Returns the recipients, or `None` if another world sent the message to a key.
    #[must_use]
    pub fn delivery(&self) -> Option<Delivery> {
        self.to.delivery()
    }

    /// Returns the request that the message makes or replies to, if any.
    #[must_use]
    pub fn request(&self) -> Option<Request> {
        self.role.request()
    }

    /// Returns where to send a reply, if the message is a request.
    #[must_use]
    pub fn reply_to(&self) -> Option<&ReplyTo> {
        self.role.reply_to()
    }
}

impl fmt::Debug for Letter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Letter")
            .field("to", &self.to)
            .field("message", &format_args!("{}", self.type_name()))
            .field("role", &self.role)
            .finish_non_exhaustive()
    }
}

impl Letter {
    pub(crate) fn new<P: Payload>(to: Recipient, payload: P, role: Role) -> Self {
        Self {
            to,
            role,
            round: None,
            payload: Shared::new(payload),
        }
    }

    /// Creates a copy of a message that is shared. Entities may have other names by now.
    pub(super) fn copy(mail: MailRef, name: &dyn Fn(Entity) -> Entity) -> Option<Self> {
        let shared: &Shared = (mail.payload as &dyn Any).downcast_ref()?;
        let mut letter = Self::new(mail.to, shared.clone(), mail.role.clone());
        letter.round = mail.round.cloned();
        letter.rename(name);
        Some(letter)
    }

    /// Changes the names of entities.
    pub(crate) fn rename(&mut self, name: &dyn Fn(Entity) -> Entity) {
        if let Recipient::Entity(to) = &mut self.to {
            *to = name(*to);
        }
        match &mut self.role {
            Role::Request(ReplyTo {
                request,
                route: Route::Here(asker),
            }) => {
                *asker = name(*asker);
                request.rename(name);
            }
            Role::Reply(request) => request.rename(name),
            Role::Plain | Role::Request(_) => {}
        }
    }
}

impl Queue {
    /// Returns the number of messages, functions and notes.
    #[inline]
    pub(super) fn len(&self) -> usize {
        self.len
    }

    /// Returns `true` if the queue is empty, and was so for a while, so that it has no memory to give back.
    pub(super) fn is_idle(&self) -> bool {
        self.len == 0
            && self.items.is_empty()
            && self.peak.is_over()
            && self.lanes.iter().all(|it| it.is_idle())
    }

    /// Adds a message, after all others.
    #[inline(always)]
    pub(crate) fn push<P: Payload>(&mut self, to: Recipient, payload: P, role: Role) {
        if let Role::Plain = role
            && let Some(batch) = &mut self.open
            && batch.to.shares_batch_with(to)
            && let Some(lane) = self.lanes.get_mut(batch.lane)
            && let Some(lane) = of_type::<P>(&mut **lane)
        {
            lane.messages.push(Some((to.entity(), payload)));
            batch.len += 1;
            self.len += 1;
            return;
        }
        self.push_first(to, payload, role, None);
    }

    /// Adds the first message of a batch.
    #[inline(never)]
    fn push_first<P: Payload>(
        &mut self,
        to: Recipient,
        payload: P,
        role: Role,
        round: Option<Round>,
    ) {
        let lane = self.place_of::<P>();
        if let Some(lane) = of_type::<P>(&mut *self.lanes[lane]) {
            lane.messages.push(Some((to.entity(), payload)));
        }
        self.push_batch(Batch {
            lane,
            len: 1,
            to,
            role,
            round,
        });
    }

    /// Adds a function or a note, after all others.
    pub(super) fn push_item(&mut self, item: Item) {
        self.close_batch();
        self.items.push_back(item);
        self.len += 1;
    }

    /// Adds a letter, after all others.
    pub(super) fn push_letter(&mut self, letter: Letter) {
        let Letter {
            to,
            role,
            round,
            payload,
        } = letter;
        self.push_first(to, payload, role, round);
    }

    /// Lets the waiting messages be copied. They keep their order.
    pub(super) fn share(&mut self) {
        if self.len == 0 {
            return;
        }
        self.close_batch();
        let shared = self.place_of::<Shared>();
        let mut seen = vec![0; self.lanes.len()];
        for item in &mut self.items {
            let Item::Messages(batch) = item else {
                continue;
            };
            for _ in 0..batch.len {
                let taken = self.lanes[batch.lane].take(seen[batch.lane]);
                seen[batch.lane] += 1;
                if let Some(lane) = of_type::<Shared>(&mut *self.lanes[shared]) {
                    lane.messages.push(taken);
                }
            }
            batch.lane = shared;
        }
        self.lanes.iter_mut().for_each(|lane| lane.sweep());
    }

    /// Returns a copy of the messages, which are shared. Entities may have other names by now.
    pub(super) fn copy(&self, name: &dyn Fn(Entity) -> Entity) -> Self {
        let mut copy = Self::default();
        self.visit(&mut |mail| {
            if let Some(letter) = Letter::copy(mail, name) {
                copy.push_letter(letter);
            }
        });
        copy
    }

    /// Releases the messages of another queue before all others.
    pub(super) fn put_first(&mut self, mut first: Self) {
        if first.len > 0 {
            first.release_all();
            first.append(self);
            *self = first;
        }
    }

    /// Adds all items of another queue, which keeps its memory while it needs it. Its released items are
    /// released here, too.
    pub(super) fn append(&mut self, other: &mut Self) {
        other.trim();
        other.close_batch();
        other.len = 0;
        let released = mem::take(&mut other.released);
        for (nth, item) in other.items.drain(..).enumerate() {
            if let Item::Messages(batch) = item {
                let lane = &mut *other.lanes[batch.lane];
                let lane_here = self.place((*lane).type_id(), || lane.new_lane());
                self.lanes[lane_here].append(lane);
                self.push_batch(Batch {
                    lane: lane_here,
                    ..batch
                });
            } else {
                self.push_item(item);
            }
            if nth < released {
                self.release_all();
            }
        }
    }

    fn push_batch(&mut self, batch: Batch) {
        self.len += batch.len;
        if let Role::Plain = batch.role {
            if let Some(open) = &mut self.open
                && batch.round.is_none()
                && open.lane == batch.lane
                && open.to.shares_batch_with(batch.to)
            {
                open.len += batch.len;
                return;
            }
            self.close_batch();
            self.open = Some(batch);
        } else {
            self.close_batch();
            self.items.push_back(Item::Messages(batch));
        }
    }

    /// Lets the next message begin a batch.
    fn close_batch(&mut self) {
        if let Some(batch) = self.open.take() {
            self.items.push_back(Item::Messages(batch));
        }
    }

    /// Returns the place of the lane for messages of this type.
    fn place_of<P: Payload>(&mut self) -> usize {
        self.place(TypeId::of::<Lane<P>>(), || Box::new(Lane::<P>::default()))
    }

    fn place(&mut self, kind: TypeId, new: impl FnOnce() -> Box<dyn AnyLane>) -> usize {
        *self.places.entry(kind).or_insert_with(|| {
            self.lanes.push(new());
            self.lanes.len() - 1
        })
    }

    /// Releases all items for delivery.
    pub(super) fn release(&mut self) {
        self.trim();
        self.release_all();
    }

    fn release_all(&mut self) {
        self.close_batch();
        self.released = self.items.len();
    }

    /// Returns `true` if a released item is left.
    pub(super) fn has_released(&self) -> bool {
        self.released > 0
    }

    /// Delivers released items until a callback issues commands or none is left.
    pub(super) fn deliver(&mut self, followers: &mut Followers, courier: &mut Courier) {
        while self.released > 0 && !courier.caller.has_commands() {
            if let Some(Item::Messages(batch)) = self.items.front_mut()
                && batch.len > 0
            {
                self.lanes[batch.lane].deliver(batch, &mut self.len, followers, courier);
                if batch.len > 0 {
                    continue;
                }
            }
            let item = self.items.pop_front();
            self.released -= 1;
            match item {
                None | Some(Item::Messages(_)) => {}
                Some(Item::Function(function)) => {
                    self.len -= 1;
                    let mut commands = courier.caller.commands();
                    commands.queue(SyncCell::to_inner(function));
                }
            }
        }
    }

    /// Calls a function with each message, in order.
    pub(super) fn visit<'a>(&'a self, visit: &mut dyn FnMut(MailRef<'a>)) {
        let mut seen = vec![0; self.lanes.len()];
        let batches = self.items.iter().filter_map(|item| match item {
            Item::Messages(batch) => Some(batch),
            Item::Function(_) => None,
        });
        for batch in batches.chain(&self.open) {
            let from = seen[batch.lane];
            seen[batch.lane] += batch.len;
            let lane = &self.lanes[batch.lane];
            for nth in from..from + batch.len {
                if let Some(mail) = lane.get(nth, batch.to, &batch.role) {
                    let round = batch.round.as_ref().filter(|_| nth == from);
                    visit(MailRef { round, ..mail });
                }
            }
        }
    }

    /// Takes the messages to these recipients, in order.
    pub(super) fn extract(&mut self, is_wanted: &dyn Fn(Recipient) -> bool) -> Vec<Letter> {
        self.close_batch();
        let mut taken = Vec::new();
        let mut seen = vec![0; self.lanes.len()];
        for item in &mut self.items {
            let Item::Messages(batch) = item else {
                continue;
            };
            let lane = &mut self.lanes[batch.lane];
            let from = seen[batch.lane];
            seen[batch.lane] += batch.len;
            for nth in from..seen[batch.lane] {
                if let Some(next) = lane.get(nth, batch.to, &batch.role)
                    && is_wanted(next.to)
                    && let Some((to, payload)) = lane.take(nth)
                {
                    taken.push(Letter {
                        to: batch.to.with(to),
                        role: batch.role.clone(),
                        round: batch.round.take_if(|_| nth == from),
                        payload,
                    });
                    batch.len -= 1;
                    self.len -= 1;
                }
            }
        }
        self.lanes.iter_mut().for_each(|lane| lane.sweep());
        taken
    }

    /// Gives back memory that was not needed recently.
    fn trim(&mut self) {
        self.peak.note(self.items.len());
        self.peak.trim(&mut self.items);
        self.lanes.iter_mut().for_each(|lane| lane.trim());
    }
}

/// Returns the lane if its messages have this type.
#[inline]
fn of_type<P: 'static>(lane: &mut dyn AnyLane) -> Option<&mut Lane<P>> {
    let lane: &mut dyn Any = lane;
    lane.downcast_mut()
}

impl<P> Default for Lane<P> {
    fn default() -> Self {
        Self {
            messages: Vec::new(),
            next: 0,
            peak: RecentPeak::default(),
        }
    }
}

impl<P: Payload> Lane<P> {
    /// Delivers messages of one topic to one entity each, until a callback issues commands or none is left.
    fn deliver_each(
        &mut self,
        topic: Topic,
        batch: &mut Batch,
        waiting: &mut usize,
        mut following: Option<&mut Following>,
        courier: &mut Courier,
    ) {
        let is_plain = matches!((batch.to, &batch.role), (Recipient::Entity(_), Role::Plain));
        while batch.len > 0
            && let Some(message) = self.messages.get_mut(self.next)
            && let Some((to, payload)) = message
            && payload.topic() == topic
        {
            // It no longer waits, so a callback that panics does not get it again.
            batch.len -= 1;
            *waiting -= 1;
            self.next += 1;
            let to = *to;
            let (following, content) = (following.as_deref_mut(), payload.content().0);
            if is_plain {
                courier.call_entity(following, to, content, &batch.role);
            } else if courier.call(following, batch.to.with(to), content, &batch.role)
                && let Some((_, payload)) = message.take()
            {
                let letter = Letter::new(batch.to.with(to), payload, batch.role.clone());
                courier.keep(letter);
            }
            *message = None;
            if courier.caller.has_commands() {
                return;
            }
        }
    }
}

impl<P: Payload> AnyLane for Lane<P> {
    fn new_lane(&self) -> Box<dyn AnyLane> {
        Box::new(Self::default())
    }

    fn get<'a>(&'a self, nth: usize, to: Recipient, role: &'a Role) -> Option<MailRef<'a>> {
        let (entity, payload) = self.messages.get(self.next + nth)?.as_ref()?;
        Some(MailRef {
            to: to.with(*entity),
            role,
            payload,
            round: None,
        })
    }

    fn take(&mut self, nth: usize) -> Option<(Entity, Shared)> {
        let (entity, payload) = self.messages.get_mut(self.next + nth)?.take()?;
        Some((entity, Shared::new(payload)))
    }

    fn sweep(&mut self) {
        self.messages.drain(..mem::take(&mut self.next));
        self.messages.retain(Option::is_some);
    }

    fn append(&mut self, other: &mut dyn AnyLane) {
        if let Some(other) = of_type::<P>(other) {
            let (here, there) = (&mut self.messages, &mut other.messages);
            // Otherwise, the buffers stay: each is as large as its queue needs.
            match here.is_empty() && self.peak.is_met_by(there.capacity()) {
                true => mem::swap(here, there),
                false => here.append(there),
            }
        }
    }

    fn deliver(
        &mut self,
        batch: &mut Batch,
        waiting: &mut usize,
        followers: &mut Followers,
        courier: &mut Courier,
    ) {
        if let Role::Reply(request) = &mut batch.role {
            *request = courier.directory.resolve(*request);
        }
        // Followers from this number on do not exist yet.
        let until = followers.next_number();
        while batch.len > 0
            && !courier.caller.has_commands()
            && let Some(Some((_, payload))) = self.messages.get(self.next)
        {
            let topic = payload.topic();
            let following = followers.of(topic);
            if batch.to == Recipient::All {
                let (round, message) = (&mut batch.round, payload.content().0);
                if !courier.call_all(following, until, round, message, &batch.role) {
                    break;
                }
                batch.len -= 1;
                *waiting -= 1;
                self.messages[self.next] = None;
                self.next += 1;
            } else {
                self.deliver_each(topic, batch, waiting, following, courier);
            }
        }
        if self.next == self.messages.len() {
            self.messages.clear();
            self.next = 0;
        }
    }

    fn is_idle(&self) -> bool {
        self.messages.is_empty() && self.peak.is_over()
    }

    fn trim(&mut self) {
        if self.next > 0 {
            self.sweep();
        }
        self.peak.note(self.messages.len());
        let enough = self.peak.enough(self.messages.capacity());
        self.messages.shrink_to(enough);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Message)]
    struct Hit(u64);

    #[test]
    fn a_message_takes_as_much_memory_as_its_entity_and_its_payload() {
        let mut lane = Lane::default();
        lane.messages.push(Some((Entity::PLACEHOLDER, Hit(1))));
        let [Some((_, Hit(1)))] = lane.messages[..] else {
            panic!("it should be there")
        };
        let parts = size_of::<Entity>() + size_of::<Hit>();
        assert_eq!(size_of_val(&lane.messages[..]), parts);
    }
}
