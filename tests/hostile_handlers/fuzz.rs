use super::*;
use bevy_due::{OnClock, Owned};
use bevy_ecs::entity_disabling::Disabled;
use std::collections::HashMap;

#[derive(Resource)]
struct Fuzz {
    seed: u64,
    panics: bool,
    budget: u32,
    timers: Vec<Entity>,
    owners: Vec<Entity>,
    clocks: Vec<Entity>,
    builtin: Vec<Entity>,
    armed: HashMap<Entity, i64>,
    gone: HashMap<Entity, i64>,
    ended: HashMap<Entity, i64>,
    count: HashMap<Entity, (u64, bool)>,
    events: HashMap<(Entity, CancelReason), i64>,
    messages: HashMap<(Entity, CancelReason), i64>,
    fired_events: u64,
    fired_messages: u64,
    depth: u32,
    log: Vec<String>,
    errors: Vec<String>,
    panicked: u64,
}

impl Fuzz {
    fn next(&mut self, n: u64) -> u64 {
        self.seed = self
            .seed
            .wrapping_mul(6364136223846793005)
            .wrapping_add(1442695040888963407);
        (self.seed >> 33) % n
    }
    fn pick(&mut self, from: fn(&Self) -> &Vec<Entity>) -> Entity {
        let n = from(self).len() as u64;
        let i = self.next(n) as usize;
        from(self)[i]
    }
}

fn new_timer(f: &mut Fuzz) -> Timer {
    let mut t = match f.next(4) {
        0 => Timer::after(ms(f.next(30))),
        1 => Timer::every(ms(1 + f.next(20))),
        _ => {
            let n = 1 + f.next(5) as u32;
            Timer::every(ms(1 + f.next(12))).times(n)
        }
    };
    t = match f.next(3) {
        0 => t.with_missed_ticks(bevy_due::MissedTicks::Skip),
        1 => t.with_missed_ticks(bevy_due::MissedTicks::Delay),
        _ => t,
    };
    match f.next(8) {
        0 => t = t.keep_when_done(),
        1 => t = t.despawn_when_done(),
        _ => {}
    }
    match f.next(6) {
        0 => t.on(ClockId::Fixed),
        1 => t.on(ClockId::Real),
        2 => t.on(ClockId::Frames),
        3 => {
            let c = f.pick(|f| &f.clocks);
            t.on(c)
        }
        _ => t,
    }
}

fn op(world: &mut World) {
    world.resource_scope(|world, mut f: Mut<Fuzz>| {
        // only decide here
        let f = &mut *f;
        if f.budget == 0 {
            return;
        }
        f.budget -= 1;
        let kind = f.next(30);
        let (t, o, c, b) = (
            f.pick(|f| &f.timers),
            f.pick(|f| &f.owners),
            f.pick(|f| &f.clocks),
            f.pick(|f| &f.builtin),
        );
        let timer = new_timer(f);
        let x = f.next(4);
        f.log
            .push(format!("op {kind} t{t} o{o} c{c} b{b} x{x} {timer:?}"));
        world
            .commands()
            .queue(move |world: &mut World| run(world, kind, t, o, c, b, timer, x));
    });
    world.flush();
}

fn with(world: &mut World, e: Entity, f: impl FnOnce(&mut EntityWorldMut)) {
    if let Ok(mut e) = world.get_entity_mut(e) {
        f(&mut e);
    }
}

fn run(
    world: &mut World,
    kind: u64,
    t: Entity,
    o: Entity,
    c: Entity,
    b: Entity,
    timer: Timer,
    x: u64,
) {
    let act = TimerAction::call(|world: &mut World, _| {
        maybe_panic(world, 12);
        op(world);
        maybe_panic(world, 12);
    });
    match kind {
        0 | 1 => with(world, t, |e| _ = e.insert(timer)),
        2 => with(world, t, |e| _ = e.remove::<Timer>()),
        3 => _ = world.try_despawn(t),
        4 => {
            _ = world.try_despawn(o);
        }
        5 => with(world, t, |e| _ = e.insert(Paused)),
        6 => with(world, t, |e| _ = e.remove::<Paused>()),
        7 => with(world, o, |e| _ = e.insert(Paused)),
        8 => with(world, o, |e| _ = e.remove::<(Paused, Disabled)>()),
        9 => with(world, t, |e| _ = e.insert(Disabled)),
        10 => with(world, t, |e| _ = e.remove::<Disabled>()),
        11 => with(world, o, |e| _ = e.insert(Disabled)),
        12 => with(world, t, |e| _ = e.insert(OwnedBy(o))),
        13 => with(world, t, |e| _ = e.remove::<OwnedBy>()),
        14 => _ = world.try_despawn(c),
        15 => with(world, c, |e| {
            _ = match x {
                0 => e.insert(Clock::new()),
                1 => e.insert(Clock::of(ClockId::Fixed)),
                2 => e.insert(Clock::of(b)),
                _ => e.insert(Clock::of(o)),
            }
        }),
        16 => {
            if let Some(mut c) = world.get_mut::<Clock>(c) {
                match x {
                    0 => c.pause(),
                    1 => c.unpause(),
                    2 => c.set_speed(0.0),
                    _ => c.set_speed(2.0),
                }
            }
        }
        17 => {
            if let Some(mut c) = world.get_mut::<Clock>(b) {
                if x == 0 { c.pause() } else { c.unpause() }
            }
        }
        18 => with(world, b, |e| {
            if x == 0 {
                e.remove::<Clock>();
            } else {
                e.insert(Clock::new());
            }
        }),
        19 => with(world, t, |e| _ = e.insert(act)),
        20 => with(world, t, |e| _ = e.insert((timer, act))),
        21 => with(world, t, |e| _ = e.insert(OnClock::new(c))),
        22 => with(world, t, |e| _ = e.reschedule(ms(x * 30))),
        23 => with(world, t, |e| _ = e.delay_by(ms(x * 7))),
        24 => with(world, o, |e| _ = e.cancel_timers()),
        25 => with(world, o, |e| {
            let k = e.set_timer("k", timer);
            e.world_scope(|world| world.resource_mut::<Fuzz>().timers[x as usize] = k);
        }),
        26 => {
            let depth = &mut world.resource_mut::<Fuzz>().depth;
            if *depth < 2 {
                *depth += 1;
                _ = world.try_run_schedule(FixedPreUpdate);
                world.resource_mut::<Fuzz>().depth -= 1;
            }
        }
        27 => {
            _ = world.fast_forward(ClockId::Virtual, ms(x * 10));
        }
        28 => {
            _ = world.fast_forward(c, ms(x * 10));
        }
        _ => {
            let n = world.spawn((OwnedBy(o), timer)).id();
            world.flush();
            world.resource_mut::<Fuzz>().timers[x as usize + 4] = n;
            let n = world.spawn(Clock::new()).id();
            world.resource_mut::<Fuzz>().clocks[x as usize] = n;
            if world.get_entity(o).is_err() {
                let n = world.spawn_empty().id();
                let mut f = world.resource_mut::<Fuzz>();
                let i = f.owners.iter().position(|&e| e == o);
                if let Some(i) = i {
                    f.owners[i] = n;
                }
            }
        }
    }
    world.flush();
}

fn maybe_panic(world: &mut World, n: u64) {
    let panics = world
        .get_resource_mut::<Fuzz>()
        .is_some_and(|mut f| f.panics && f.next(n) == 0);
    if panics {
        world.resource_mut::<Fuzz>().log.push("PANIC".into());
        world.resource_mut::<Fuzz>().panicked += 1;
        std::panic::resume_unwind(Box::new("fuzz"));
    }
}

fn check_deep(app: &mut App, seed: u64) {
    let world = app.world_mut();
    let all: Vec<Entity> = world
        .iter_entities()
        .filter(|e| e.contains::<Timer>())
        .map(|e| e.id())
        .collect();
    let mut armed_now = HashMap::new();
    for e in all {
        let owner = world.get::<OwnedBy>(e).map(|o| o.0);
        assert!(
            super::is_armed(world, e),
            "seed {seed}: {e} has a Timer that is not armed, owner {owner:?}\n{}",
            world.resource::<Fuzz>().log.join("\n")
        );
        armed_now.insert(e, 1i64);
    }
    let f = world.resource::<Fuzz>();
    for (&e, &armed) in &f.armed {
        let gone = f.gone.get(&e).copied().unwrap_or(0);
        let ended = f.ended.get(&e).copied().unwrap_or(0);
        let now = armed_now.get(&e).copied().unwrap_or(0);
        assert_eq!(
            armed,
            gone + ended + now,
            "seed {seed}: {e} gone {gone} ended {ended} now {now}\n{}",
            f.log.join("\n")
        );
    }
    let mut state = SystemState::<ArmedTimers>::new(world);
    let count = state.get(world).unwrap().count();
    assert_eq!(count, armed_now.len(), "seed {seed}: count");
}

fn replenish(world: &mut World) {
    for i in 0..10 {
        if i < 4 {
            let f = world.resource::<Fuzz>();
            let (o, c, b) = (f.owners[i], f.clocks[i], f.builtin[i]);
            if world.get_entity(o).is_err() {
                world.resource_mut::<Fuzz>().owners[i] = world.spawn_empty().id();
            }
            if world.resource_mut::<Fuzz>().next(3) == 0 {
                with(world, o, |e| _ = e.remove::<(Paused, Disabled)>());
            }
            if world.get::<Clock>(c).is_none() {
                let parent = if i == 0 {
                    ClockId::Fixed
                } else {
                    ClockId::Virtual
                };
                world.resource_mut::<Fuzz>().clocks[i] = world.spawn(Clock::of(parent)).id();
            }
            if world.get::<Clock>(b).is_none() && world.resource_mut::<Fuzz>().next(3) > 0 {
                world.entity_mut(b).insert(Clock::new());
            }
            if let Some(mut b) = world.get_mut::<Clock>(b) {
                b.unpause();
            }
        }
        let t = world.resource::<Fuzz>().timers[i];
        if world.get_entity(t).is_err() {
            world.resource_mut::<Fuzz>().timers[i] = world.spawn_empty().id();
        }
        let t = world.resource::<Fuzz>().timers[i];
        let mut f = world.resource_mut::<Fuzz>();
        if f.next(3) == 0 {
            with(world, t, |e| _ = e.remove::<(Paused, Disabled)>());
        }
        if world.get::<Timer>(t).is_none() {
            let mut f = world.resource_mut::<Fuzz>();
            let timer = new_timer(&mut f);
            let (o, owned) = (f.pick(|f| &f.owners), f.next(2));
            if owned == 0 {
                world.entity_mut(t).insert((timer, OwnedBy(o)));
            } else {
                world.entity_mut(t).insert(timer);
            }
        }
    }
    world.flush();
}

fn game(seed: u64, panics: bool) {
    let mut app = unobserved_app_with(burst_limit(7));
    app.insert_resource(FallbackErrorHandler(ignore));
    app.world_mut()
        .resource_mut::<Time<Fixed>>()
        .set_timestep(ms(13));
    let owners: Vec<_> = (0..4).map(|_| app.world_mut().spawn_empty().id()).collect();
    let clocks: Vec<_> = (0..4)
        .map(|_| app.world_mut().spawn(Clock::new()).id())
        .collect();
    let builtin = [
        ClockId::Virtual,
        ClockId::Real,
        ClockId::Frames,
        ClockId::Fixed,
    ]
    .map(|c| clock_entity(&mut app, c))
    .to_vec();
    let timers: Vec<_> = (0..10)
        .map(|_| app.world_mut().spawn_empty().id())
        .collect();
    app.insert_resource(Fuzz {
        seed: seed.wrapping_mul(7919).wrapping_add(3),
        panics,
        budget: 0,
        timers,
        owners,
        clocks,
        builtin,
        armed: Default::default(),
        gone: Default::default(),
        ended: Default::default(),
        count: Default::default(),
        events: Default::default(),
        messages: Default::default(),
        fired_events: 0,
        fired_messages: 0,
        depth: 0,
        log: vec![],
        errors: vec![],
        panicked: 0,
    });
    app.add_observer(
        |fired: On<TimerFired>,
         mut f: ResMut<Fuzz>,
         mut commands: Commands,
         all: Query<
            (Option<&OwnedBy>, Has<Paused>, Has<Disabled>),
            bevy_ecs::query::Allow<Disabled>,
        >| {
            if fired.event_target() != fired.entity() {
                return;
            }
            let e = fired.entity();
            let me = all.get(e);
            let owner = me.as_ref().ok().and_then(|me| me.0).map_or(e, |o| o.0);
            let pauses = |e| all.get(e).is_ok_and(|(_, p, d)| p || d);
            if me.is_err() || pauses(e) || pauses(owner) || owner != fired.owner() {
                let error = format!(
                    "GHOST {e} of {owner} exists {} paused {} {} said {}",
                    me.is_ok(),
                    pauses(e),
                    pauses(owner),
                    fired.owner()
                );
                f.log.push(error.clone());
                f.errors.push(error);
            }
            f.fired_events += 1;
            f.log.push(format!(
                "fired {e} {} last {} missed {}",
                fired.count(),
                fired.is_last(),
                fired.missed()
            ));
            let before = f
                .count
                .insert(e, (fired.count(), fired.is_last()))
                .unwrap_or((0, false));
            if fired.count() != before.0 + 1 || before.1 {
                let error = format!("WRONG COUNT {e} {before:?} then {}", fired.count());
                f.log.push(error.clone());
                f.errors.push(error);
            }
            if fired.is_last() {
                *f.ended.entry(e).or_default() += 1;
            }
            for _ in 0..f.next(3) {
                commands.queue(op);
            }
            commands.queue(|world: &mut World| maybe_panic(world, 20));
            if f.panics && f.next(12) == 0 {
                f.log.push("PANIC".into());
                f.panicked += 1;
                std::panic::resume_unwind(Box::new("fuzz"));
            }
        },
    );
    app.add_observer(
        |inserted: On<Insert<Timer>>, mut f: ResMut<Fuzz>, mut commands: Commands| {
            let e = inserted.entity;
            *f.armed.entry(e).or_default() += 1;
            f.count.remove(&e);
            f.log.push(format!("inserted {e}"));
            if f.next(20) == 0 {
                commands.queue(op);
            }
        },
    );
    app.add_observer(
        |removed: On<Remove<Timer>>, mut f: ResMut<Fuzz>, mut commands: Commands| {
            f.log.push(format!("removed {}", removed.entity));
            if f.next(20) == 0 {
                commands.queue(op);
            }
        },
    );
    app.add_observer(
        |c: On<TimerCancelled>, mut f: ResMut<Fuzz>, mut commands: Commands| {
            *f.gone.entry(c.entity).or_default() += 1;
            *f.events.entry((c.entity, c.reason)).or_default() += 1;
            f.log.push(format!("cancelled {} {:?}", c.entity, c.reason));
            if f.next(10) == 0 {
                commands.queue(op);
            }
            if f.panics && f.next(20) == 0 {
                f.log.push("PANIC".into());
                f.panicked += 1;
                std::panic::resume_unwind(Box::new("fuzz"));
            }
        },
    );
    let mut cc = app
        .world()
        .resource::<Messages<TimerCancelled>>()
        .get_cursor();
    let mut fc = app.world().resource::<Messages<TimerFired>>().get_cursor();
    let mut read = move |app: &mut App| {
        let v: Vec<_> = cc
            .read(app.world().resource::<Messages<TimerCancelled>>())
            .copied()
            .collect();
        let n = fc
            .read(app.world().resource::<Messages<TimerFired>>())
            .count();
        let mut f = app.world_mut().resource_mut::<Fuzz>();
        for c in v {
            *f.messages.entry((c.entity, c.reason)).or_default() += 1;
        }
        f.fired_messages += n as u64;
    };
    for frame in 0..40 {
        app.world_mut().resource_mut::<Fuzz>().budget = 25;
        app.world_mut().resource_mut::<Fuzz>().depth = 0;
        let p = core::mem::replace(&mut app.world_mut().resource_mut::<Fuzz>().panics, false);
        replenish(app.world_mut());
        for _ in 0..4 {
            op(app.world_mut());
        }
        app.world_mut().resource_mut::<Fuzz>().panics = p;
        app.world_mut()
            .resource_mut::<Fuzz>()
            .log
            .push(format!("FRAME {frame}"));
        let by = app.world_mut().resource_mut::<Fuzz>().next(60);
        advance_ms(&mut app, by);
        read(&mut app);
        // Quiet frames.
        let mut f = app.world_mut().resource_mut::<Fuzz>();
        f.panics = false;
        f.budget = 0;
        f.log.push("QUIET".into());
        app.world_mut().flush();
        advance_ms(&mut app, 14);
        read(&mut app);
        advance_ms(&mut app, 0);
        read(&mut app);
        app.world_mut().resource_mut::<Fuzz>().panics = panics;
        check_deep(&mut app, seed);
        let f = app.world().resource::<Fuzz>();
        assert_eq!(f.events, f.messages, "seed {seed}\n{}", f.log.join("\n"));
        assert_eq!(
            f.fired_events,
            f.fired_messages,
            "seed {seed} fired\n{}",
            f.log.join("\n")
        );
        app.world_mut().resource_mut::<Fuzz>().log.clear();
        let _ = Owned::default();
        let f = app.world().resource::<Fuzz>();
        assert!(
            f.errors.is_empty(),
            "seed {seed} frame {frame} {:?}",
            f.errors
        );
    }
    let f = app.world().resource::<Fuzz>();
    if seed < 5 {
        let mut reasons = HashMap::new();
        for ((_, r), n) in &f.events {
            *reasons.entry(*r).or_insert(0) += n;
        }
        eprintln!(
            "{seed}: fired {} panicked {} reasons {reasons:?}",
            f.fired_events, f.panicked
        );
    }
}

fn seeds() -> core::ops::Range<u64> {
    let from = std::env::var("SEED").ok().and_then(|s| s.parse().ok());
    from.map_or(0..40, |s| s..s + 1)
}

#[test]
fn without_panics() {
    for seed in seeds() {
        game(seed, false);
    }
}

#[test]
fn with_panics() {
    for seed in seeds() {
        game(seed, true);
    }
}
