//! Queues of messages, in the order of sending.

use alloc::{boxed::Box, collections::VecDeque, vec, vec::Vec};
use core::{
    any::{Any, TypeId, type_name},
    fmt,
};

#[cfg(feature = "serialize")]
use bevy_ecs::entity::EntityHashMap;
use bevy_ecs::prelude::*;
use bevy_platform::{cell::SyncCell, collections::HashMap, hash::NoOpHash};

#[cfg(feature = "serialize")]
use super::codec::renamed;
use super::{
    deliver::Courier,
    followers::{Followers, Round},
    mail::{Delivery, MailRef, Recipient, Role},
    payload::{Packet, Payload, sealed::Sealed},
    request::{ReplyTo, Request},
};
use crate::double_buffer::RecentPeak;

/// Messages, functions and notes in the order of sending.
///
/// The messages of each type have a lane of their own. A lane keeps its memory, so in a steady state no
/// message allocates.
#[derive(Default)]
pub(crate) struct Queue {
    items: VecDeque<Item>,
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
    Messages(Run),
    /// A function to run on the world.
    Function(SyncCell<Box<dyn FnOnce(&mut World) + Send>>),
    /// A note that another world has got a key.
    #[cfg(feature = "worlds")]
    KeyTaken(u64),
}

/// Messages of one lane that were sent one after the other. Plain messages share a run. A request or a
/// reply has a run of its own.
pub(super) struct Run {
    lane: usize,
    len: usize,
    role: Role,
    /// The progress of the next message, if it goes to all followers and a callback has interrupted its
    /// delivery.
    round: Option<Round>,
}

/// The messages of one type that wait, each with its recipient.
struct Lane<P> {
    messages: VecDeque<(Recipient, P)>,
    peak: RecentPeak,
}

/// A lane of any type.
trait AnyLane: Any + Send + Sync {
    /// Returns an empty lane of the same type.
    fn new_lane(&self) -> Box<dyn AnyLane>;

    /// Returns the `nth` message, which has this role.
    fn get<'a>(&'a self, nth: usize, role: &'a Role) -> Option<MailRef<'a>>;

    /// Moves the first messages of another lane of the same type behind all others.
    fn append(&mut self, other: &mut dyn AnyLane, messages: usize);

    /// Moves the first message of another lane of the same type here, before the `nth` one.
    fn insert(&mut self, nth: usize, other: &mut dyn AnyLane);

    /// Moves the first message behind all others.
    fn rotate(&mut self);

    /// Delivers messages of a run, which are the first ones of the lane, until a callback issues commands or
    /// none is left. `waiting` counts the messages of the queue.
    fn deliver(
        &mut self,
        run: &mut Run,
        waiting: &mut usize,
        followers: &mut Followers,
        courier: &mut Courier,
    );

    /// Returns `true` if the lane is empty, and was so for a while.
    fn is_idle(&self) -> bool;

    /// Changes the names of entities.
    #[cfg(feature = "serialize")]
    fn rename(&mut self, names: &EntityHashMap<Entity>);

    /// Gives back memory that was not needed recently.
    fn trim(&mut self);
}

/// A message that was not delivered, returned by [`close_inbox`](super::MessageWorldExt::close_inbox).
///
/// [`resend`](super::MessageWorldExt::resend) sends it again.
pub struct Letter {
    lane: Box<dyn AnyLane>,
    role: Role,
}

impl Letter {
    /// Returns the message, if it has the type `M`.
    #[must_use]
    pub fn message<M: Payload>(&self) -> Option<&M> {
        self.get()?.payload.downcast_ref()
    }

    /// Returns the message, if it is a packet.
    #[must_use]
    pub fn packet(&self) -> Option<&Packet> {
        self.message()
    }

    /// Returns the type name of the message.
    #[must_use]
    pub fn type_name(&self) -> &'static str {
        self.get().map_or("", |letter| letter.name)
    }

    /// Returns the recipients, or `None` if another world sent the message to a key.
    #[must_use]
    pub fn delivery(&self) -> Option<Delivery> {
        match self.get()?.to {
            Recipient::Entity(entity) => Some(Delivery::To(entity)),
            Recipient::Key(_) => None,
            Recipient::All => Some(Delivery::All),
            Recipient::InTurn => Some(Delivery::InTurn),
        }
    }

    /// Returns the request that the message makes or replies to, if any.
    #[must_use]
    pub fn request(&self) -> Option<Request> {
        self.get()?.role.request()
    }

    /// Returns where to send a reply, if the message is a request.
    #[must_use]
    pub fn reply_to(&self) -> Option<&ReplyTo> {
        self.get()?.role.reply_to()
    }

    #[cfg(feature = "worlds")]
    pub(crate) fn role(&self) -> &Role {
        &self.role
    }
}

impl fmt::Debug for Letter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Letter")
            .field("to", &self.get().map(|letter| letter.to))
            .field("message", &format_args!("{}", self.type_name()))
            .field("role", &self.role)
            .finish_non_exhaustive()
    }
}

impl Letter {
    pub(super) fn new<P: Payload>(to: impl Into<Recipient>, payload: P, role: Role) -> Self {
        let mut lane = Lane::default();
        lane.messages.push_back((to.into(), payload));
        Self {
            lane: Box::new(lane),
            role,
        }
    }

    fn first_of(lane: &mut dyn AnyLane, role: Role) -> Self {
        let mut letter = lane.new_lane();
        letter.append(lane, 1);
        Self { lane: letter, role }
    }

    pub(crate) fn get(&self) -> Option<MailRef<'_>> {
        self.lane.get(0, &self.role)
    }

    /// Changes the names of entities. A request that has no name is over.
    #[cfg(feature = "serialize")]
    pub(crate) fn rename(&mut self, names: &EntityHashMap<Entity>) {
        self.lane.rename(names);
        if let Role::Reply(request) = &mut self.role {
            request.rename(names);
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
        self.items.is_empty() && self.peak.is_over() && self.lanes.iter().all(|it| it.is_idle())
    }

    /// Adds a message, after all others.
    #[inline]
    pub(crate) fn push<P: Payload>(&mut self, to: Recipient, payload: P, role: Role) {
        if let Some(run) = last_run(&mut self.items, self.released, &role)
            && let Some(lane) = self.lanes.get_mut(run.lane)
            && let Some(lane) = of_type::<P>(&mut **lane)
        {
            lane.messages.push_back((to, payload));
            run.len += 1;
            self.len += 1;
            return;
        }
        let kind = TypeId::of::<Lane<P>>();
        let place = self.place(kind, || Box::new(Lane::<P>::default()));
        if let Some(lane) = of_type::<P>(&mut *self.lanes[place]) {
            lane.messages.push_back((to, payload));
            self.add_run(place, 1, role);
        }
    }

    /// Adds a function or a note, after all others.
    pub(super) fn push_item(&mut self, item: Item) {
        self.items.push_back(item);
        self.len += 1;
    }

    /// Adds a letter, after all others.
    pub(super) fn push_letter(&mut self, Letter { mut lane, role }: Letter) {
        let place = self.place_like(&*lane);
        self.lanes[place].append(&mut *lane, 1);
        self.add_run(place, 1, role);
    }

    /// Releases a letter before all others. Unless it `is_older`, a message whose delivery was interrupted
    /// stays before it.
    pub(super) fn put_first(&mut self, Letter { mut lane, role }: Letter, is_older: bool) {
        let place = self.place_like(&*lane);
        let interrupted = match is_older {
            true => None,
            false => self.split_interrupted(),
        };
        let nth = usize::from(interrupted.is_some());
        let nth_in_lane = usize::from(interrupted == Some(place));
        self.lanes[place].insert(nth_in_lane, &mut *lane);
        let run = Run {
            lane: place,
            len: 1,
            role,
            round: None,
        };
        self.items.insert(nth, Item::Messages(run));
        self.released += 1;
        self.len += 1;
    }

    /// Gives the first message a run of its own if its delivery was interrupted, and returns its lane.
    fn split_interrupted(&mut self) -> Option<usize> {
        let Some(Item::Messages(run)) = self.items.front_mut() else {
            return None;
        };
        run.round.as_ref()?;
        let (lane, rest) = (run.lane, run.len.saturating_sub(1));
        if rest > 0 {
            run.len = 1;
            let rest = Run {
                lane,
                len: rest,
                role: run.role.clone(),
                round: None,
            };
            self.items.insert(1, Item::Messages(rest));
            self.released += 1;
        }
        Some(lane)
    }

    /// Adds all items of another queue, which keeps its memory while it needs it.
    pub(super) fn append(&mut self, other: &mut Self) {
        other.trim();
        other.len = 0;
        for item in other.items.drain(..) {
            if let Item::Messages(Run {
                lane, len, role, ..
            }) = item
            {
                let lane = &mut *other.lanes[lane];
                let place = self.place_like(lane);
                self.lanes[place].append(lane, len);
                self.add_run(place, len, role);
            } else {
                self.push_item(item);
            }
        }
    }

    fn add_run(&mut self, lane: usize, len: usize, role: Role) {
        self.len += len;
        if let Some(run) = last_run(&mut self.items, self.released, &role)
            && run.lane == lane
        {
            run.len += len;
            return;
        }
        self.items.push_back(Item::Messages(Run {
            lane,
            len,
            role,
            round: None,
        }));
    }

    /// Returns the place of the lane for messages of the same type.
    fn place_like(&mut self, lane: &dyn AnyLane) -> usize {
        self.place(lane.type_id(), || lane.new_lane())
    }

    fn place(&mut self, kind: TypeId, new: impl FnOnce() -> Box<dyn AnyLane>) -> usize {
        *self.places.entry(kind).or_insert_with(|| {
            self.lanes.push(new());
            self.lanes.len() - 1
        })
    }

    /// Releases all items for delivery.
    pub(super) fn release(&mut self) {
        // A panic may have left a run whose last message was delivered.
        if let Some(Item::Messages(run)) = self.items.front()
            && run.len == 0
        {
            self.items.pop_front();
        }
        self.trim();
        self.released = self.items.len();
    }

    /// Returns `true` if a released item is left.
    pub(super) fn has_released(&self) -> bool {
        self.released > 0
    }

    /// Delivers released items until a callback issues commands or none is left.
    pub(super) fn deliver(&mut self, followers: &mut Followers, courier: &mut Courier) {
        while self.released > 0 && !courier.caller.has_commands() {
            if let Some(Item::Messages(run)) = self.items.front_mut()
                && run.len > 0
            {
                self.lanes[run.lane].deliver(run, &mut self.len, followers, courier);
                continue;
            }
            let item = self.items.pop_front();
            self.released -= 1;
            match item {
                None | Some(Item::Messages(_)) => {}
                Some(Item::Function(function)) => {
                    self.len -= 1;
                    courier
                        .caller
                        .commands()
                        .queue(SyncCell::to_inner(function));
                }
                #[cfg(feature = "worlds")]
                Some(Item::KeyTaken(key)) => {
                    self.len -= 1;
                    courier.note_key_taken(key);
                }
            }
        }
    }

    /// Calls a function with each message, in order.
    pub(super) fn visit<'a>(&'a self, visit: &mut dyn FnMut(MailRef<'a>)) {
        let mut seen = vec![0; self.lanes.len()];
        for item in &self.items {
            if let Item::Messages(run) = item {
                let from = seen[run.lane];
                seen[run.lane] += run.len;
                let lane = &self.lanes[run.lane];
                let messages = (from..from + run.len).filter_map(|nth| lane.get(nth, &run.role));
                messages.for_each(&mut *visit);
            }
        }
    }

    /// Takes the messages whose recipient a function names, in order. A note about the key of such a
    /// recipient becomes `None`.
    pub(super) fn extract(
        &mut self,
        member: &dyn Fn(Recipient, Option<MailRef>) -> Option<Entity>,
    ) -> Vec<(Entity, Option<Letter>)> {
        let mut taken = Vec::new();
        let mut kept = 0;
        self.items.retain_mut(|item| {
            let is_kept = match item {
                // Each lane turns round once.
                Item::Messages(run) => {
                    let lane = &mut *self.lanes[run.lane];
                    for _ in 0..run.len {
                        let next = lane.get(0, &run.role);
                        let to = next.and_then(|next| member(next.to, Some(next)));
                        let Some(to) = to else {
                            lane.rotate();
                            continue;
                        };
                        let letter = Letter::first_of(lane, run.role.clone());
                        taken.push((to, Some(letter)));
                        run.len -= 1;
                        self.len -= 1;
                    }
                    true
                }
                Item::Function(_) => true,
                #[cfg(feature = "worlds")]
                Item::KeyTaken(key) => {
                    let to = member(Recipient::Key(*key), None);
                    taken.extend(to.map(|to| (to, None)));
                    to.is_none()
                }
            };
            match is_kept {
                true => kept += 1,
                false => {
                    self.len -= 1;
                    self.released -= usize::from(kept < self.released);
                }
            }
            is_kept
        });
        taken
    }

    /// Gives back memory that was not needed recently.
    fn trim(&mut self) {
        self.peak.note(self.items.len());
        self.peak.trim(&mut self.items);
        self.lanes.iter_mut().for_each(|lane| lane.trim());
    }
}

/// Returns the last run if it waits for the next run of the world and takes another message in this role.
#[inline]
fn last_run<'a>(
    items: &'a mut VecDeque<Item>,
    released: usize,
    role: &Role,
) -> Option<&'a mut Run> {
    if items.len() <= released {
        return None;
    }
    match items.back_mut() {
        Some(Item::Messages(run)) => {
            matches!((role, &run.role), (Role::Plain, Role::Plain)).then_some(run)
        }
        _ => None,
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
            messages: VecDeque::new(),
            peak: RecentPeak::default(),
        }
    }
}

impl<P: Payload> AnyLane for Lane<P> {
    fn new_lane(&self) -> Box<dyn AnyLane> {
        Box::new(Self::default())
    }

    fn get<'a>(&'a self, nth: usize, role: &'a Role) -> Option<MailRef<'a>> {
        let (to, payload) = self.messages.get(nth)?;
        Some(MailRef {
            to: *to,
            role,
            name: type_name::<P>(),
            payload,
        })
    }

    fn append(&mut self, other: &mut dyn AnyLane, messages: usize) {
        let Some(Self { messages: from, .. }) = of_type::<P>(other) else {
            return;
        };
        // The buffers stay: each is as large as its queue needs.
        match messages < from.len() {
            true => self.messages.extend(from.drain(..messages)),
            false => self.messages.append(from),
        }
    }

    fn insert(&mut self, nth: usize, other: &mut dyn AnyLane) {
        let message = of_type::<P>(other).and_then(|other| other.messages.pop_front());
        if let Some(message) = message {
            self.messages.insert(nth, message);
        }
    }

    fn rotate(&mut self) {
        if let Some(message) = self.messages.pop_front() {
            self.messages.push_back(message);
        }
    }

    fn deliver(
        &mut self,
        run: &mut Run,
        waiting: &mut usize,
        followers: &mut Followers,
        courier: &mut Courier,
    ) {
        if let Role::Reply(request) = &mut run.role {
            *request = courier.directory.resolve(*request);
        }
        // Followers from this number on do not exist yet.
        let until = followers.next_number();
        while run.len > 0
            && !courier.caller.has_commands()
            && let Some((_, payload)) = self.messages.front()
        {
            let topic = Sealed::topic(payload);
            let mut following = followers.of(topic);
            while run.len > 0
                && !courier.caller.has_commands()
                && let Some((to, payload)) = self.messages.front()
                && Sealed::topic(payload) == topic
            {
                let to = *to;
                if let Recipient::All = to {
                    let Run { round, role, .. } = run;
                    if !courier.call_all(following.as_deref(), until, round, payload, role) {
                        return;
                    }
                }
                // It no longer waits, so a callback that panics does not get it again.
                run.len -= 1;
                *waiting -= 1;
                let Some((_, payload)) = self.messages.pop_front() else {
                    return;
                };
                let following = following.as_deref_mut();
                let entity = match to {
                    Recipient::All => continue,
                    Recipient::InTurn => {
                        courier.call_in_turn(following, &payload, &run.role);
                        continue;
                    }
                    Recipient::Entity(entity) => Some(entity),
                    Recipient::Key(key) => courier.directory.entity(key),
                };
                if let Some(entity) = courier.call_entity(following, entity, &payload, &run.role) {
                    courier.keep(entity, Letter::new(to, payload, run.role.clone()));
                }
            }
        }
    }

    #[cfg(feature = "serialize")]
    fn rename(&mut self, names: &EntityHashMap<Entity>) {
        for (to, _) in &mut self.messages {
            if let Recipient::Entity(to) = to {
                *to = renamed(*to, names);
            }
        }
    }

    fn is_idle(&self) -> bool {
        self.messages.is_empty() && self.peak.is_over()
    }

    fn trim(&mut self) {
        self.peak.note(self.messages.len());
        self.peak.trim(&mut self.messages);
    }
}
