//! Delivering what has been sent.

use core::any::Any;

use bevy_ecs::{
    change_detection::DetectChangesMut,
    entity::Entity,
    error::BevyError,
    system::{Commands, Res, ResMut, SystemState},
    world::{EntityMut, World},
};
use bevy_platform::{cell::SyncCell, sync::Arc};

use super::{
    Handler, Inbox, Letter, Mail, MessageComponent, MessageContext, MessageStats, Session, System,
    inbox::{Item, Run},
    letter::{Recipient, Regarding},
    mail::{Followed, ToAll},
    packet::{Shared, Topic},
    session::OpenQuestion,
    written::Written,
};
use crate::{
    call::{EntityCaller, call_with_world},
    owner::OwnedBy,
};

/// What delivering needs of the world.
pub(crate) type MailParams = SystemState<(
    EntityCaller<'static, 'static>,
    ResMut<'static, Mail>,
    Option<Res<'static, Inbox>>,
)>;

/// What is to be done with the whole world before the next is delivered.
enum ToDo {
    Run(Run),
    System(ToRun, Letter),
}

/// A system that is to be run for a message.
pub(super) struct ToRun {
    entity: Entity,
    system: Arc<System>,
    pub(super) share: fn(&dyn Any) -> Option<Shared>,
}

/// What has become of a message for one entity. It is small, as it is returned at every call.
#[derive(Clone, Copy)]
pub(super) enum Called {
    Yes,
    /// Its system is to be run.
    System(Entity),
    /// Its component takes part only from the next frame on.
    NotYet,
    /// It answers what is no question any more.
    TooLate,
    /// It does not follow it, or is not there.
    No,
}

impl Called {
    fn is_delivered(self) -> bool {
        matches!(self, Self::Yes | Self::System(_))
    }
}

/// Lets those take part that have been inserted since the run before.
pub(crate) fn swap_followers(mut mail: ResMut<Mail>) {
    mail.swap_followers();
}

/// Delivers what has been sent since the run before.
pub(crate) fn deliver(world: &mut World, params: &mut MailParams) -> Result<(), BevyError> {
    // What a panic has kept from being done, if somebody has caught it.
    params.apply(world);
    let (_, mut mail, inbox) = params.get_mut(world)?;
    mail.swap(inbox.as_deref());
    swap_written(world);
    deliver_letters(world, params)?;
    deliver_written(world)?;
    publish_stats(world);
    Ok(())
}

fn publish_stats(world: &mut World) {
    let stats = world.resource::<Mail>().stats;
    if let Some(mut published) = world.get_resource_mut::<MessageStats>() {
        published.set_if_neq(stats);
    }
}

fn deliver_letters(world: &mut World, params: &mut MailParams) -> Result<(), BevyError> {
    loop {
        let (mut caller, mut mail, _) = params.get_mut(world)?;
        let to_do = mail.go_on(&mut caller);
        let is_done = to_do.is_none() && !caller.has_commands();
        params.apply(world);
        match to_do {
            Some(ToDo::Run(run)) => {
                run(world);
                world.flush();
            }
            Some(ToDo::System(to_run, letter)) => to_run.run(world, &letter),
            None => {}
        }
        if is_done {
            return Ok(());
        }
    }
}

/// Lets be delivered what Bevy's writers have written since the last time.
fn swap_written(world: &mut World) {
    let mut types = 0;
    while let Some(&nth) = world.resource::<Mail>().types.get(types) {
        types += 1;
        let Some(writing) = &world.resource::<Mail>().followed[nth].written else {
            continue;
        };
        let Written { start, end, .. } = writing.of;
        let end = end(world);
        // Less than before, if somebody has put other messages in the place of the old ones.
        let next = if end < writing.next {
            start(world)
        } else {
            writing.next
        };
        if let Some(writing) = &mut world.resource_mut::<Mail>().followed[nth].written {
            (writing.next, writing.until) = (next, end);
        }
    }
}

/// Delivers what Bevy's writers have written, type by type, in the order in which those were
/// followed first.
fn deliver_written(world: &mut World) -> Result<(), BevyError> {
    let mut types = 0;
    while let Some(&nth) = world.resource::<Mail>().types.get(types) {
        types += 1;
        if let Some(writing) = &world.resource::<Mail>().followed[nth].written
            && writing.next < writing.until
        {
            let deliver = writing.of.deliver;
            deliver(world, nth)?;
        }
    }
    Ok(())
}

impl Mail {
    /// Delivers one after the other, until somebody has given commands, or the whole world is
    /// needed.
    fn go_on(&mut self, caller: &mut EntityCaller) -> Option<ToDo> {
        loop {
            let to_run = if self.to_all.is_some() {
                self.go_on_to_all(caller)
            } else if let Some(batch) = &mut self.batch {
                let mut letter = None;
                match batch.call_next(caller, self.intake.joined(), &mut letter) {
                    Some(called) => self.conclude(called, letter, caller),
                    None => {
                        self.batch = None;
                        None
                    }
                }
            } else {
                match self.next()? {
                    Item::Batch(batch) => {
                        self.batch = Some(batch);
                        None
                    }
                    Item::Run(run) => return Some(ToDo::Run(SyncCell::to_inner(run))),
                    Item::Letter(letter) => self.deliver(letter, caller),
                }
            };
            if to_run.is_some() || caller.has_commands() {
                return to_run.map(|(to_run, letter)| ToDo::System(to_run, letter));
            }
        }
    }

    fn deliver(&mut self, letter: Letter, caller: &mut EntityCaller) -> Option<(ToRun, Letter)> {
        let called = match letter.to {
            // Another process may send anything; an answer is for the one who has asked.
            Recipient::All | Recipient::InTurn
                if matches!(letter.regarding, Regarding::Answer(_)) =>
            {
                Called::TooLate
            }
            Recipient::All => {
                self.to_all = Some(ToAll {
                    letter,
                    from: 0,
                    is_delivered: false,
                });
                return self.go_on_to_all(caller);
            }
            Recipient::InTurn => self.call_next(&letter, caller),
            Recipient::One(entity) => self.call_one(Some(entity), &letter, caller),
            Recipient::Key(key) => self.call_one(self.keys.get(&key).copied(), &letter, caller),
        };
        self.conclude(called, Some(letter), caller)
    }

    /// Counts what has become of a message, and does what is still to be done with it.
    #[inline]
    fn conclude(
        &mut self,
        called: Called,
        letter: Option<Letter>,
        caller: &EntityCaller,
    ) -> Option<(ToRun, Letter)> {
        match called {
            Called::Yes => self.stats.delivered += 1,
            Called::System(entity) => {
                self.stats.delivered += 1;
                let letter = letter?;
                return Some((ToRun::find(caller, entity, letter.topic)?, letter));
            }
            Called::NotYet => self.items.put_back(Item::Letter(letter?)),
            Called::TooLate => self.stats.late += 1,
            Called::No => self.stats.undeliverable += 1,
        }
        None
    }

    fn call_one(
        &self,
        entity: Option<Entity>,
        letter: &Letter,
        caller: &mut EntityCaller,
    ) -> Called {
        let Some(entity) = entity else {
            return Called::No;
        };
        if let Regarding::Answer(session) = letter.regarding {
            if !is_open(session, entity, caller) {
                return Called::TooLate;
            }
            if self.is_not_there_yet(entity, caller) {
                return Called::NotYet;
            }
            // From now on others come too late, whether or not this one is followed.
            if let Some(question) = session.entity() {
                caller.commands().entity(question).despawn();
            }
        }
        call(
            caller,
            entity,
            self.intake.joined(),
            &LetterRef::from(letter),
        )
    }

    /// Whether this entity is disabled, or its component takes part only from the next frame on.
    fn is_not_there_yet(&self, entity: Entity, caller: &EntityCaller) -> bool {
        caller.look(entity).is_none_or(|entity| {
            let component = entity.get::<MessageComponent>();
            component.is_some_and(|component| component.nth() >= self.intake.joined())
        })
    }

    /// Calls the one whose turn it is.
    fn call_next(&mut self, letter: &Letter, caller: &mut EntityCaller) -> Called {
        let Some(nth) = self.followed(letter.topic) else {
            return Called::No;
        };
        let Followed {
            followers, turn, ..
        } = &mut self.followed[nth];
        let joined = self.intake.joined();
        let others = followers.members(0..*turn);
        for (nth, follower) in followers.members(*turn..joined).chain(others) {
            let called = call_follower(caller, follower, &LetterRef::from(letter));
            if called.is_delivered() {
                *turn = nth + 1;
                return called;
            }
        }
        Called::No
    }

    /// Calls one follower after the other, until one has given commands, or a system is to be run.
    fn go_on_to_all(&mut self, caller: &mut EntityCaller) -> Option<(ToRun, Letter)> {
        // It stays where it is, so that if a function panics, the others are not forgotten.
        let to_all = self.to_all.as_mut()?;
        let followed = self.by_topic.get(&to_all.letter.topic);
        let followers = followed.map(|&nth| &self.followed[nth].followers);
        let numbers = to_all.from..self.intake.joined();
        for (nth, follower) in followers
            .into_iter()
            .flat_map(|all| all.members(numbers.clone()))
        {
            to_all.from = nth + 1;
            let called = call_follower(caller, follower, &LetterRef::from(&to_all.letter));
            if called.is_delivered() {
                to_all.is_delivered = true;
                self.stats.delivered += 1;
            }
            if let Called::System(entity) = called {
                let letter = to_all.letter.clone();
                return Some((ToRun::find(caller, entity, letter.topic)?, letter));
            }
            if caller.has_commands() {
                return None;
            }
        }
        if !to_all.is_delivered {
            self.stats.undeliverable += 1;
        }
        self.to_all = None;
        None
    }
}

/// Whether a question of this entity waits for an answer.
fn is_open(session: Session, asker: Entity, caller: &EntityCaller) -> bool {
    let question = session.entity().and_then(|entity| caller.look(entity));
    question.is_some_and(|question| {
        question.contains::<OpenQuestion>()
            && question.get::<OwnedBy>().is_some_and(|of| of.0 == asker)
    })
}

/// A message that is being delivered.
pub(super) struct LetterRef<'a> {
    pub(super) topic: Topic,
    pub(super) message: &'a dyn Any,
    pub(super) regarding: &'a Regarding,
}

impl<'a> From<&'a Letter> for LetterRef<'a> {
    fn from(letter: &'a Letter) -> Self {
        Self {
            topic: letter.topic,
            message: &*letter.payload,
            regarding: &letter.regarding,
        }
    }
}

/// Calls the function of an entity for a message, if it follows that.
#[inline(always)]
pub(super) fn call(
    caller: &mut EntityCaller,
    entity: Entity,
    not_yet: u64,
    letter: &LetterRef,
) -> Called {
    let Some((entity, commands)) = caller.entity(entity) else {
        return Called::No;
    };
    let id = entity.id();
    let Some(component) = entity.get::<MessageComponent>() else {
        return Called::No;
    };
    if component.nth() >= not_yet {
        return Called::NotYet;
    }
    let Some(handler) = component.handler(letter.topic).cloned() else {
        return Called::No;
    };
    let (called, result) = handler.call(entity, commands, letter);
    caller.check::<MessageComponent>(id, result);
    called
}

/// Calls the function of one who follows a message, unless it is disabled.
#[inline]
pub(super) fn call_follower(
    caller: &mut EntityCaller,
    (entity, handler): &(Entity, Handler),
    letter: &LetterRef,
) -> Called {
    let Some((entity, commands)) = caller.entity(*entity) else {
        return Called::No;
    };
    let id = entity.id();
    let (called, result) = handler.call(entity, commands, letter);
    caller.check::<MessageComponent>(id, result);
    called
}

impl Handler {
    #[inline]
    fn call(
        &self,
        entity: EntityMut,
        commands: Commands,
        letter: &LetterRef,
    ) -> (Called, Result<(), BevyError>) {
        match self {
            Self::System { .. } => (Called::System(entity.id()), Ok(())),
            Self::Closure(closure) => {
                let context = MessageContext {
                    entity,
                    commands,
                    regarding: letter.regarding,
                };
                (Called::Yes, closure(context, letter.message))
            }
        }
    }
}

impl ToRun {
    /// Finds the system of an entity for a topic.
    pub(super) fn find(caller: &EntityCaller, entity: Entity, topic: Topic) -> Option<Self> {
        let component = caller.look(entity)?.get::<MessageComponent>()?;
        match component.handler(topic)? {
            Handler::System { run, share } => Some(Self {
                entity,
                system: run.clone(),
                share: *share,
            }),
            Handler::Closure(_) => None,
        }
    }

    pub(super) fn run(&self, world: &mut World, letter: &Letter) {
        call_with_world::<MessageComponent>(world, self.entity, |world| {
            (self.system)(world, self.entity, letter)
        });
    }
}
