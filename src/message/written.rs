//! What Bevy's writers have written.

use core::any::type_name;

use bevy_ecs::{
    error::BevyError,
    message::{Message, Messages},
    resource::Resource,
    system::{Res, ResMut, SystemState},
    world::World,
};
use bevy_platform::cell::SyncCell;

use super::{
    Mail,
    dispatch::{Called, LetterRef, ToRun, call_follower},
    letter::{Letter, Recipient, Regarding},
    packet::{Shared, Topic},
};
use crate::call::EntityCaller;

/// What is to be known of a type of message to deliver what Bevy's writers have written of it. They
/// know nothing of this crate, and what they have written stays where other readers find it.
#[derive(Clone, Copy)]
pub(super) struct Written {
    /// How many had been written before Bevy's last swap: those after are for the first follower.
    pub(super) start: fn(&World) -> usize,
    /// How many have been written.
    pub(super) end: fn(&World) -> usize,
    /// Delivers what had been written at the swap to those who follow it.
    pub(super) deliver: fn(&mut World, usize) -> Result<(), BevyError>,
}

/// How far that has come.
pub(super) struct Writing {
    pub(super) of: Written,
    /// Which message is to be delivered next.
    pub(super) next: usize,
    /// Those from here on are for the next run.
    pub(super) until: usize,
    /// Those before this one have been given it.
    from: u64,
    /// The clone of it for systems, if one was needed.
    shared: Option<Shared>,
}

impl Written {
    pub(super) fn of<M: Message>() -> Self {
        Self {
            start: |world| {
                let messages = world.get_resource::<Messages<M>>();
                messages.map_or(0, |messages| {
                    end(messages) - messages.iter_current_update_messages().len()
                })
            },
            end: |world| world.get_resource::<Messages<M>>().map_or(0, end),
            deliver: deliver_with_params::<M>,
        }
    }
}

impl Writing {
    pub(super) fn new(of: Written, next: usize) -> Self {
        Self {
            of,
            next,
            until: next,
            from: 0,
            shared: None,
        }
    }
}

fn end<M: Message>(messages: &Messages<M>) -> usize {
    messages.oldest_message_count() + messages.len()
}

type WrittenParams<M> = SystemState<(
    EntityCaller<'static, 'static>,
    ResMut<'static, Mail>,
    Option<Res<'static, Messages<M>>>,
)>;

/// The parameters for a type of message, but while that is being delivered. Not a cached system,
/// which Bevy can't run any more once one of those it calls has panicked.
#[derive(Resource)]
struct Params<M: Message>(SyncCell<Option<WrittenParams<M>>>);

fn deliver_with_params<M: Message>(world: &mut World, nth: usize) -> Result<(), BevyError> {
    let params = world.get_resource_mut::<Params<M>>();
    let mut params = params
        .and_then(|mut params| params.0.get().take())
        .unwrap_or_else(|| WrittenParams::new(world));
    let delivered = deliver(world, &mut params, nth);
    let params = Params(SyncCell::new(Some(params)));
    if let Some(mut place) = world.get_resource_mut::<Params<M>>() {
        *place = params;
    } else {
        world.insert_resource(params);
    }
    delivered
}

fn deliver<M: Message>(
    world: &mut World,
    params: &mut WrittenParams<M>,
    nth: usize,
) -> Result<(), BevyError> {
    loop {
        let (mut caller, mut mail, messages) = params.get_mut(world)?;
        let Some(messages) = messages else {
            return Ok(());
        };
        let to_run = go_on(nth, &mut caller, &mut mail, &messages);
        let is_done = to_run.is_none() && !caller.has_commands();
        params.apply(world);
        if let Some((to_run, letter)) = to_run {
            to_run.run(world, &letter);
        }
        if is_done {
            return Ok(());
        }
    }
}

/// Calls one after the other, until one has given commands, or a system is to be run.
fn go_on<M: Message>(
    nth: usize,
    caller: &mut EntityCaller,
    mail: &mut Mail,
    messages: &Messages<M>,
) -> Option<(ToRun, Letter)> {
    let topic = Topic::of::<M>();
    let Mail {
        followed,
        stats,
        intake,
        ..
    } = mail;
    let joined = intake.joined();
    let followed = &mut followed[nth];
    let writing = followed.written.as_mut()?;
    while writing.next < writing.until {
        if let Some((message, _)) = messages.get_message(writing.next) {
            for (nth, follower) in followed.followers.members(writing.from..joined) {
                writing.from = nth + 1;
                let letter = LetterRef {
                    topic,
                    message,
                    regarding: &Regarding::Nothing,
                };
                match call_follower(caller, follower, &letter) {
                    Called::Yes => stats.delivered += 1,
                    Called::NotYet | Called::TooLate | Called::No => {}
                    Called::System(entity) => {
                        stats.delivered += 1;
                        let to_run = ToRun::find(caller, entity, topic)?;
                        if writing.shared.is_none() {
                            writing.shared = (to_run.share)(message);
                        }
                        let letter = Letter {
                            to: Recipient::All,
                            topic,
                            name: type_name::<M>(),
                            payload: writing.shared.clone()?,
                            regarding: Regarding::Nothing,
                        };
                        return Some((to_run, letter));
                    }
                }
                if caller.has_commands() {
                    return None;
                }
            }
        }
        writing.next += 1;
        writing.from = 0;
        writing.shared = None;
    }
    None
}
