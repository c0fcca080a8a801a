//! All that is on its way in a world, and who follows what.

use alloc::{boxed::Box, collections::VecDeque, vec::Vec};

use bevy_ecs::{entity::Entity, resource::Resource, world::World};
use bevy_platform::collections::HashMap;
use smallvec::SmallVec;
#[cfg(feature = "bevy_reflect")]
use {
    bevy_ecs::reflect::ReflectResource,
    bevy_reflect::{Reflect, std_traits::ReflectDefault},
};

use super::{
    Handler, Inbox, Letter, StableKey, batch::AnyBatch, inbox::Item, packet::Topic,
    written::Writing,
};
use crate::{
    deferred::Deferred,
    roster::{Intake, Roster},
};

/// All that is on its way in a world, and who follows what.
#[derive(Resource)]
pub(crate) struct Mail {
    pub(super) items: Deferred<Item>,
    /// How many of those that were swapped are to be delivered in this run.
    pub(super) left: usize,
    /// What is being delivered one by one.
    pub(super) batch: Option<Box<dyn AnyBatch>>,
    /// What is being delivered to all.
    pub(super) to_all: Option<ToAll>,
    /// Filled by the inbox with what has arrived.
    arrived: VecDeque<Item>,
    /// What is followed, or was at some time.
    pub(super) followed: Vec<Followed>,
    /// Those of them that Bevy's writers can write.
    pub(super) types: Vec<usize>,
    pub(super) by_topic: HashMap<Topic, usize>,
    pub(super) intake: Intake,
    pub(super) keys: HashMap<StableKey, Entity>,
    pub(super) stats: MessageStats,
    /// What lets this run, until it has.
    pub(super) add_run: Option<fn(&mut World)>,
}

/// What a component follows, and what is to be called for it.
pub(super) type Places = SmallVec<[(usize, Handler); 2]>;

/// A letter that is being delivered to all who follow it.
pub(super) struct ToAll {
    pub(super) letter: Letter,
    /// Those before have been given it.
    pub(super) from: u64,
    /// Whether anybody has.
    pub(super) is_delivered: bool,
}

/// Something that is followed.
#[derive(Default)]
pub(super) struct Followed {
    /// With what is to be called, so that their components need not be looked at.
    pub(super) followers: Roster<(Entity, Handler)>,
    /// Those before this one have had their turn.
    pub(super) turn: u64,
    pub(super) written: Option<Writing>,
}

/// What has become of the messages of this world since its start, as of the end of the last delivery.
///
/// # Examples
///
/// ```
/// use bevy_due::MessageStats;
/// use bevy_ecs::prelude::*;
///
/// fn print_lost(stats: Res<MessageStats>) {
///     if stats.is_changed() && stats.undeliverable > 0 {
///         println!("{} messages found nobody", stats.undeliverable);
///     }
/// }
/// # bevy_ecs::system::assert_is_system(print_lost);
/// ```
#[derive(Resource, Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(
    feature = "bevy_reflect",
    derive(Reflect),
    reflect(Resource, Clone, Debug, Default, PartialEq)
)]
pub struct MessageStats {
    /// How many times a function or system was called for one.
    pub delivered: u64,
    /// How many were for an entity that has gone or does not follow them, or for nobody.
    pub undeliverable: u64,
    /// How many answers, and [`NoAnswer`](super::NoAnswer)s, came for a question that was answered
    /// already or given up.
    pub late: u64,
}

impl Mail {
    pub(crate) fn new(add_run: fn(&mut World)) -> Self {
        Self {
            items: Deferred::default(),
            left: 0,
            batch: None,
            to_all: None,
            arrived: VecDeque::new(),
            followed: Vec::new(),
            types: Vec::new(),
            by_topic: HashMap::default(),
            intake: Intake::default(),
            keys: HashMap::default(),
            stats: MessageStats::default(),
            add_run: Some(add_run),
        }
    }

    /// Lets messages be delivered from now on.
    pub(crate) fn begin_run(world: &mut World) {
        let mail = world.get_resource_mut::<Self>();
        if let Some(add_run) = mail.and_then(|mut mail| mail.add_run.take()) {
            add_run(world);
        }
    }

    /// Sends a letter. Without a plugin nothing happens.
    pub(super) fn send(world: &mut World, letter: Letter) {
        if let Some(mut mail) = world.get_resource_mut::<Self>() {
            mail.items.push(Item::Letter(letter));
            if mail.add_run.is_some() {
                Self::begin_run(world);
            }
        }
    }

    /// Takes no more messages from other threads, and caller back all that has not been delivered,
    /// or not to all. What was to be [run](super::MessageSender::run) is dropped.
    pub(crate) fn hand_back(world: &mut World) -> Vec<Letter> {
        let mut arrived = VecDeque::new();
        if let Some(inbox) = world.get_resource::<Inbox>() {
            inbox.close();
            inbox.take(&mut arrived);
        }
        let Some(mut mail) = world.get_resource_mut::<Self>() else {
            return Vec::new();
        };
        mail.items.swap();
        let to_all = mail.to_all.take().map(|to_all| Item::Letter(to_all.letter));
        let batch = mail.batch.take().map(Item::Batch);
        let begun = to_all.into_iter().chain(batch);
        let items = begun.chain(mail.items.drain()).chain(arrived);
        items.flat_map(Item::into_letters).collect()
    }

    pub(super) fn followed(&self, topic: Topic) -> Option<usize> {
        self.by_topic.get(&topic).copied()
    }

    /// Takes in the component of an entity, for the next run, and returns its place.
    pub(super) fn add(&mut self, entity: Entity, follows: Places) -> u64 {
        let nth = self.intake.next_number();
        for (followed, handler) in follows {
            self.followed[followed]
                .followers
                .add(nth, (entity, handler));
        }
        nth
    }

    /// Lets the component of this place go, which follows these.
    pub(super) fn remove(&mut self, topics: &[Topic], nth: u64) {
        for &topic in topics {
            if let Some(followed) = self.followed(topic) {
                self.followed[followed].followers.leave(nth);
            }
        }
    }

    /// Makes room for those that follow something, and says where.
    pub(super) fn expect(
        &mut self,
        topic: Topic,
        writing: impl FnOnce() -> Option<Writing>,
    ) -> usize {
        let Self {
            by_topic,
            followed,
            types,
            ..
        } = self;
        let nth = *by_topic.entry(topic).or_insert_with(|| {
            followed.push(Followed::default());
            followed.len() - 1
        });
        let written = &mut followed[nth].written;
        if written.is_none() {
            *written = writing();
            types.extend(written.is_some().then_some(nth));
        }
        nth
    }

    /// Lets those take part that have been added, and are still there.
    pub(super) fn swap_followers(&mut self) {
        self.intake.swap();
    }

    /// Lets be delivered what has been sent since the last time.
    pub(super) fn swap(&mut self, inbox: Option<&Inbox>) {
        if let Some(inbox) = inbox {
            inbox.take(&mut self.arrived);
        }
        self.items.append(&mut self.arrived);
        self.items.swap();
        self.left = self.items.len();
    }

    /// Takes what comes next in this run.
    pub(super) fn next(&mut self) -> Option<Item> {
        self.left = self.left.checked_sub(1)?;
        self.items.next()
    }
}
