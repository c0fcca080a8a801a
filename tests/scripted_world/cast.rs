//! The entities that take part in the game, in the order in which they entered it.

use bevy_app::App;
use bevy_due::{
    UpdateComponent, UpdateContext,
    message::{MessageContext, NoAnswer, Packet},
    prelude::*,
};
use bevy_ecs::prelude::*;

use super::{
    Dice, TIMERS,
    checksum::{Kind, Recorder},
    clocks, ms, timers,
};

const OWNERS: usize = 400;
const FOLLOWERS: u64 = 60;
const CALLBACKS: i32 = 120;

/// Some of the entities may have despawned.
#[derive(Resource, Default)]
pub(super) struct Cast {
    pub(super) timers: Vec<Entity>,
    pub(super) owners: Vec<Entity>,
    pub(super) clocks: Vec<Entity>,
    pub(super) followers: Vec<Entity>,
}

#[derive(Message)]
pub(super) struct Hit(pub(super) u64);

/// A question. Only even ones are answered.
#[derive(Message)]
pub(super) struct Ping(pub(super) u64);

#[derive(Message)]
pub(super) struct Pong(pub(super) u64);

/// Sent with Bevy's writer.
#[derive(Message)]
pub(super) struct Shout(pub(super) u64);

pub(super) const PACKET: u32 = 1;

impl Cast {
    pub(super) fn enter(app: &mut App) {
        let world = app.world_mut();
        let recorder = world.resource::<Recorder>().clone();
        let mut cast = Self {
            clocks: clocks::spawn(world),
            ..Self::default()
        };
        cast.owners = (0..OWNERS).map(|_| world.spawn_empty().id()).collect();
        for &entity in cast.clocks.iter().chain(&cast.owners) {
            recorder.number(entity);
        }
        for nth in 0..FOLLOWERS {
            let follower = world.spawn(follower(&recorder, nth)).id();
            cast.followers.push(follower);
        }
        for nth in 0..CALLBACKS {
            let callback = callback(&recorder).with_priority(nth % 7);
            let clock = cast.clocks[nth as usize % cast.clocks.len()];
            let callback = match nth % 3 {
                0 => callback.on(clock),
                _ => callback,
            };
            world.spawn((OwnedBy(cast.owners[nth as usize]), callback));
        }
        world.resource_scope(|world, mut dice: Mut<Dice>| {
            timers::spawn_all(world, &mut dice, &mut cast, TIMERS);
        });
        app.insert_resource(cast);
    }

    /// Lets two seconds pass on one of the clocks, between two frames.
    pub(super) fn fast_forward(world: &mut World) {
        let clock = world.resource_scope(|world, mut dice: Mut<Dice>| {
            dice.pick(&world.resource::<Self>().clocks)
        });
        let stats = world.fast_forward(clock, ms(2000));
        let (fired, missed) = stats.map_or((0, 0), |stats| (stats.fired, stats.missed));
        let recorder = world.resource::<Recorder>();
        recorder.call(Kind::Stats, clock, [], &[fired, missed]);
    }
}

fn callback(recorder: &Recorder) -> UpdateComponent {
    let recorder = recorder.clone();
    UpdateComponent::new(move |me: UpdateContext| {
        let times = [me.delta, me.elapsed];
        recorder.call(Kind::Call, me.update_entity, times, &[]);
    })
}

fn follower(recorder: &Recorder, nth: u64) -> MessageComponent {
    let log = |recorder: &Recorder| {
        let recorder = recorder.clone();
        move |me: &MessageContext, what: u64, value: u64| {
            let request = me.request().and_then(|request| request.entity());
            let request = request.map_or(u64::MAX, |request| recorder.number(request));
            let (entity, times) = (me.entity.id(), [me.elapsed()]);
            recorder.call(Kind::Delivery, entity, times, &[what, value, request]);
        }
    };
    let [hit, ping, pong] = [(); 3].map(|()| log(recorder));
    let [no_answer, shout, packet] = [(); 3].map(|()| log(recorder));
    let component = MessageComponent::new()
        .on(move |mut me: MessageContext, ping_: &Ping| {
            ping(&me, 1, ping_.0);
            if ping_.0.is_multiple_of(2) {
                me.reply(Pong(ping_.0)).ok();
            }
        })
        .on(move |me: MessageContext, pong_: &Pong| pong(&me, 2, pong_.0))
        .on(move |me: MessageContext, _: &NoAnswer| no_answer(&me, 3, 0))
        .on(move |me: MessageContext, shout_: &Shout| shout(&me, 4, shout_.0));
    match nth % 2 {
        0 => component.on(move |me: MessageContext, hit_: &Hit| hit(&me, 5, hit_.0)),
        _ => component.on_packet(PACKET, move |me: MessageContext, packet_: &Packet| {
            packet(
                &me,
                6,
                packet_.payload().iter().map(|&byte| u64::from(byte)).sum(),
            );
        }),
    }
}
