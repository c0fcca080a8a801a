//! What the script says, done to a world: between frames, and in handlers.

use core::time::Duration;

use bevy_due::{
    Clock, ClockId, Cooldown, DespawnAfter, OnClock, OwnedBy, Paused, PausedBy, Timer, TimerAction,
    TimerFired,
    clock::SpeedModifier,
    message::{
        MessageCommandsExt, MessageContext, MessageEntityCommandsExt, MessageWorldExt, NoAnswer,
        Packet,
    },
    prelude::*,
    timer::{Keyed, Pauses, TimerMut},
};
use bevy_ecs::{entity_disabling::Disabled, prelude::*};

use super::{
    game::{Answer, CLOCKS, Cast, Entry, Heard, Record, Word, now},
    script::{Act, At, Change, ClockChange, KEYS, Op, SLOTS, Spec},
};

/// The packets.
const NOTE: u32 = 1;
const QUESTION: u32 = 2;

/// The name of the handler.
pub(crate) const ACT: &str = "act";

/// Follows all messages.
pub(crate) fn ears() -> MessageComponent {
    MessageComponent::new()
        .on_packet(NOTE, |me, note| hear(me, Heard::Note(note.payload()[0])))
        .on_packet(QUESTION, |me, question| {
            let replies = question.payload()[0] != 0;
            hear(me, Heard::Question { replies });
        })
        .on(|me, word: &Word| hear(me, Heard::Word(word.0)))
        .on(|me, _: &Answer| hear(me, Heard::Answer))
        .on(|me, _: &NoAnswer| hear(me, Heard::NoAnswer))
}

fn hear(mut me: MessageContext, what: Heard) {
    let entity = me.entity.id();
    let reply_to = me.reply_to().cloned();
    me.commands.queue(move |world: &mut World| {
        if let (Heard::Question { replies: true }, Some(to)) = (what, reply_to) {
            world.commands().reply(to, Answer);
        }
        react(world, entity, |name| Entry::Heard(name, what));
    });
}

pub(crate) fn act(In(fired): In<TimerFired>, world: &mut World) {
    react(world, fired.entity(), |name| {
        Entry::Acted(name, fired.count())
    });
}

/// Logs a call of a handler, and does what the script says.
fn react(world: &mut World, entity: Entity, entry: impl FnOnce(Entity) -> Entry) {
    let mut cast = world.resource_mut::<Cast>();
    // An entity can lose its slot to another one.
    let Some((party, _)) = cast.find(entity) else {
        return;
    };
    let entry = entry(cast.name(entity));
    cast.log.push((party, entry));
    if let Some(mut record) = world.get_mut::<Record>(entity) {
        record.calls += 1;
        let slot = record.calls as usize % SLOTS;
        if let Some(last) = at(world, party, slot)
            && let Some(mut record) = world.get_mut::<Record>(entity)
        {
            record.last = last;
        }
    }
    let mut cast = world.resource_mut::<Cast>();
    for op in cast.reactions[party].pop_front().unwrap_or_default() {
        play(world, party, &op);
    }
}

/// Returns the entity in a slot, if it exists.
pub(crate) fn at(world: &World, party: usize, slot: usize) -> Option<Entity> {
    let entity = world.resource::<Cast>().slots[party][slot];
    entity.filter(|&entity| world.entities().contains_spawned(entity))
}

/// Returns the entity in a slot. Spawns it if it does not exist.
pub(crate) fn ensure(world: &mut World, party: usize, slot: usize) -> Entity {
    if let Some(entity) = at(world, party, slot) {
        return entity;
    }
    let root = at(world, party, 0).expect("it never despawns");
    let entity = world.spawn((OwnedBy(root), ears())).id();
    if slot % 2 == 1 {
        let record = Record {
            calls: 0,
            last: root,
        };
        world.entity_mut(entity).insert(record);
    }
    world.resource_mut::<Cast>().slots[party][slot] = Some(entity);
    entity
}

fn clock(world: &World, party: usize, clock: At) -> ClockId {
    match clock {
        At::BuiltIn(nth) => CLOCKS[nth],
        At::Own(slot) => match at(world, party, slot) {
            Some(entity) if world.get::<Clock>(entity).is_some() => entity.into(),
            _ => ClockId::Virtual,
        },
    }
}

pub(crate) fn timer(world: &World, party: usize, spec: &Spec) -> Timer {
    let on = spec.on.map(|on| clock(world, party, on));
    // A frame is a second on the clock of frames.
    let unit = if on == Some(ClockId::Frames) { 25 } else { 1 };
    let span = |millis| Duration::from_millis(unit * millis);
    let draws = world.resource::<Cast>().draws;
    let mut timer = match (spec.interval, spec.span) {
        (0, _) => Timer::after(span(spec.delay)),
        (interval, extra) if extra > 0 && draws => {
            Timer::every_between(span(interval)..=span(interval + extra))
        }
        (interval, _) => Timer::every(span(interval)).first_after(span(spec.delay)),
    };
    if spec.jitter > 0 && draws {
        timer = timer.with_jitter(span(spec.jitter));
    }
    if spec.slack > 0 && draws {
        timer = timer.slack(span(spec.slack));
    }
    if let Some(times) = spec.times.filter(|_| spec.interval > 0) {
        timer = timer.times(times);
    }
    if let Some(on) = on {
        timer = timer.on(on);
    }
    let timer = timer.with_missed_ticks(spec.missed);
    match spec.despawns {
        None => timer,
        Some(false) => timer.keep_when_done(),
        Some(true) => timer.despawn_when_done(),
    }
}

pub(crate) fn change_clock(world: &mut World, of: ClockId, party: usize, change: &ClockChange) {
    let parent = match change {
        ClockChange::SetParent(parent) => clock(world, party, *parent),
        _ => ClockId::Virtual,
    };
    // It may be gone.
    _ = world.change_clock(of, |clock| match *change {
        ClockChange::Pause(true) => clock.pause(),
        ClockChange::Pause(false) => clock.unpause(),
        ClockChange::Speed(speed) => clock.set_speed(speed),
        ClockChange::Advance(by) => clock.advance_by(Duration::from_millis(by)),
        ClockChange::SetNow(now) => clock.set_now(Duration::from_millis(now)),
        ClockChange::SetParent(_) => _ = clock.set_parent(parent),
    });
}

/// Plays an operation of a party.
pub(crate) fn play(world: &mut World, party: usize, op: &Op) {
    apply(world, party, op);
    world.flush();
}

fn apply(world: &mut World, party: usize, (slot, act): &Op) -> Option<()> {
    let span = Duration::from_millis;
    let lower = |other: &usize| other.checked_rem(*slot);
    if let Act::ArmKeyed(owner, key, spec) = act {
        let owner = ensure(world, party, lower(owner)?);
        let timer = (timer(world, party, spec), ears());
        world.entity_mut(owner).set_timer(KEYS[*key], timer);
        world.flush();
        let set = world.with_timers(|timers| timers.keyed(owner, KEYS[*key]))?;
        world.resource_mut::<Cast>().slots[party][*slot] = Some(set.entity);
        return Some(());
    }
    let id = ensure(world, party, *slot);
    let mut entity = world.entity_mut(id);
    match act {
        Act::ArmKeyed(..) => {}
        Act::Arm(spec) => {
            let mut timer = entity.world_scope(|world| timer(world, party, spec));
            if *slot == 0 {
                timer = timer.keep_when_done();
            }
            match spec.acts {
                true => entity.insert((timer, TimerAction::named(ACT))),
                false => entity.insert(timer),
            };
        }
        Act::CancelKey(key) => _ = entity.cancel_timer(KEYS[*key]),
        Act::Change(change) => {
            let clock = match change {
                Change::SetClock(at) => clock(world, party, *at),
                _ => ClockId::Virtual,
            };
            _ = world.change_timer(id, |timer| change.apply(timer, clock));
        }
        Act::Disarm => _ = entity.remove::<Timer>(),
        Act::Despawn if *slot > 0 => entity.despawn(),
        Act::Live(life) if *slot > 0 => _ = entity.insert(DespawnAfter::new(span(*life))),
        Act::Despawn | Act::Live(_) => {}
        Act::Belong(owner, key) => {
            let owner = ensure(world, party, lower(owner)?);
            let mut entity = world.entity_mut(id);
            // A new owner or key may despawn the entity.
            match key {
                Some(key) => entity.insert((OwnedBy(owner), Keyed::new(KEYS[*key]))),
                None => entity.remove::<Keyed>().insert(OwnedBy(owner)),
            };
        }
        Act::Pause(true) => _ = entity.insert(Paused),
        Act::Pause(false) => _ = entity.remove::<Paused>(),
        Act::Disable(true) => _ = entity.insert(Disabled),
        Act::Disable(false) => _ = entity.remove::<Disabled>(),
        Act::PauseFor(by) => _ = entity.pause_for(span(*by)),
        Act::Pauses(target) => {
            let target = ensure(world, party, lower(target)?);
            world.entity_mut(id).insert(Pauses(target));
        }
        Act::EndPause => {
            let pause = entity.get::<PausedBy>()?.iter().next()?;
            world.entity_mut(pause).remove::<Pauses>();
        }
        Act::On(at) => {
            let on = OnClock(clock(world, party, *at));
            world.entity_mut(id).remove::<Cooldown>().insert(on);
        }
        Act::Clock(parent, speed) => {
            let clock = Clock::of(clock(world, party, *parent)).with_speed(*speed);
            // The cooldown counts on the clock before.
            world.entity_mut(id).remove::<Cooldown>().insert(clock);
        }
        Act::ChangeClock(change) => change_clock(world, id.into(), party, change),
        Act::Modify(clock, factor) => {
            let clock = ensure(world, party, lower(clock)?);
            // The clock that a modifier brings along shows the time of the world.
            if !world.entity(clock).contains::<Clock>() {
                world
                    .entity_mut(clock)
                    .remove::<Cooldown>()
                    .insert(Clock::new());
            }
            let modifier = SpeedModifier::new(clock, *factor);
            world.entity_mut(id).insert(modifier);
        }
        Act::Cool(at, by) => {
            let on = OnClock(clock(world, party, *at));
            let cooldown = Cooldown::new(span(*by)).with_charges(2);
            world.entity_mut(id).insert((on, cooldown));
        }
        Act::Use => {
            let now = now(world, id)?;
            _ = world.get_mut::<Cooldown>(id)?.try_use(now);
        }
        Act::Hear(note, true) => _ = world.send(id, Packet::new(NOTE, [*note])),
        Act::Hear(word, false) => _ = world.send(id, Word(*word)),
        Act::Ask(to, replies, by) => {
            let to = ensure(world, party, *to);
            let question = Packet::new(QUESTION, [u8::from(*replies)]);
            let until = Timer::after(span(*by));
            world.commands().entity(id).ask(to, question, until);
        }
    }
    Some(())
}

impl Change {
    fn apply(&self, timer: &mut TimerMut, clock: ClockId) {
        let span = Duration::from_millis;
        match *self {
            Self::Pause => timer.pause(),
            Self::Resume => timer.resume(),
            Self::Restart => timer.restart(),
            Self::Refresh => timer.refresh(),
            Self::SetLeft(left) => timer.set_left(left),
            Self::SetInterval(interval) => timer.set_interval(span(interval)),
            Self::SetRemaining(remaining) => timer.set_remaining(span(remaining)),
            Self::DelayBy(by) => timer.delay_by(span(by)),
            Self::SetClock(_) => _ = timer.set_clock(clock),
        }
    }
}
