//! Which changes are reported, one by one.

use core::sync::atomic::{AtomicUsize, Ordering};

use bevy_app::{App, First};
use bevy_due::{
    Clock, Clocks, OnClock, OwnedBy, Paused, Timer,
    clock::{ClockMut, SpeedModifier},
    conditions::run_clock_if,
    message::{MessageWorldExt, Packet},
    moving::MoveWorldExt,
    prelude::*,
    rollback::{RollbackWorldExt, TimerSnapshot},
    save::SaveWorldExt,
    timer::{Keyed, Pauses},
};
#[cfg(feature = "worlds")]
use bevy_due::{message::MessageEntityCommandsExt, worlds::StableKey};
use bevy_ecs::{
    entity::{EntityHashMap, EntityHashSet},
    entity_disabling::Disabled,
    prelude::*,
    system::RunSystemOnce,
};

use serde::{Deserialize, Serialize};

use crate::support::{advance_ms, change_clock, ms, unobserved_app};

/// An owner with a cooldown, a timer that it owns, a clock, and a timer and a cooldown on the clock.
struct Cast {
    app: App,
    owner: Entity,
    timer: Entity,
    clock: Entity,
    on_clock: Entity,
    cooldown: Entity,
    /// Something else, which never changes.
    #[allow(dead_code, reason = "it must not be reported")]
    bystander: Entity,
}

impl Cast {
    fn new() -> Self {
        let mut app = unobserved_app();
        let world = app.world_mut();
        let owner = world.spawn(Cooldown::new(1.0)).id();
        let owned = (OwnedBy(owner), Keyed::new("key"), Timer::every(10.0));
        let timer = world.spawn(owned).id();
        let clock = world.spawn(Clock::new()).id();
        let on_clock = world.spawn(Timer::every(10.0).on(clock)).id();
        let cooldown = world.spawn((OnClock::new(clock), Cooldown::new(1.0))).id();
        let bystander = (Timer::every(10.0), Cooldown::new(1.0), Clock::new());
        let bystander = world.spawn(bystander).id();
        for cooled in [owner, cooldown] {
            let mut used = world.get_mut::<Cooldown>(cooled).expect("it is there");
            assert!(used.try_use(ms(0)));
        }
        advance_ms(&mut app, 100);
        advance_ms(&mut app, 100);
        Self {
            app,
            owner,
            timer,
            clock,
            on_clock,
            cooldown,
            bystander,
        }
    }

    fn world(&mut self) -> &mut World {
        self.app.world_mut()
    }

    fn entity(&mut self, entity: Entity) -> EntityWorldMut<'_> {
        self.app.world_mut().entity_mut(entity)
    }

    fn advance(&mut self, millis: u64) {
        advance_ms(&mut self.app, millis);
    }

    fn change_clock(&mut self, clock: impl Into<ClockId>, change: impl FnOnce(&mut ClockMut)) {
        change_clock(&mut self.app, clock, change);
    }
}

/// Returns what is reported after a change.
fn changed(cast: &mut Cast, change: impl FnOnce(&mut Cast)) -> EntityHashSet {
    let snapshot = cast.world().snapshot_timers();
    change(cast);
    changed_since(cast, &snapshot)
}

fn changed_since(cast: &mut Cast, snapshot: &TimerSnapshot) -> EntityHashSet {
    cast.world().changed_since(snapshot).into_iter().collect()
}

fn set<const N: usize>(entities: [Entity; N]) -> EntityHashSet {
    entities.into()
}

#[track_caller]
fn assert_changes<const N: usize>(
    change: impl FnOnce(&mut Cast),
    expected: impl FnOnce(&Cast) -> [Entity; N],
) {
    let mut cast = Cast::new();
    let found = changed(&mut cast, change);
    assert_eq!(found, set(expected(&cast)));
}

#[test]
fn time_alone_changes_nothing() {
    assert_changes(|_| {}, |_| []);
    assert_changes(
        |cast| {
            for _ in 0..50 {
                cast.advance(100);
            }
        },
        |_| [],
    );
}

#[test]
fn a_timer_that_fires_is_reported() {
    assert_changes(
        |cast| cast.advance(10_000),
        |cast| [cast.timer, cast.on_clock, cast.bystander],
    );
    let mut cast = Cast::new();
    let frames = Timer::every(3.0).on(ClockId::Frames);
    let frames = cast.world().spawn(frames).id();
    cast.advance(0);
    let reported = [(); 6].map(|()| changed(&mut cast, |cast| cast.advance(0)) == set([frames]));
    assert_eq!(reported, [false, true, false, false, true, false]);
}

#[test]
fn what_the_next_run_does_to_a_new_timer_is_reported_and_nothing_after_its_last_firing() {
    let mut cast = Cast::new();
    let mut timer = Entity::PLACEHOLDER;
    let spawn = |cast: &mut Cast| timer = cast.world().spawn(Timer::after(1.0)).id();
    assert_eq!(changed(&mut cast, spawn), set([timer]));
    assert_eq!(
        changed(&mut cast, |_| {}),
        set([]),
        "it still waits for the run"
    );
    assert_eq!(
        changed(&mut cast, |cast| cast.advance(0)),
        set([timer]),
        "armed"
    );
    assert_eq!(changed(&mut cast, |cast| cast.advance(0)), set([]));
    let fired = changed(&mut cast, |cast| cast.advance(1000));
    assert_eq!(fired, set([timer]));
    let ended = changed(&mut cast, |cast| cast.advance(0));
    assert_eq!(ended, set([]), "its entity is kept, so it was over at once");
}

#[test]
fn a_change_of_a_timer_is_reported() {
    let later = |cast: &mut Cast| {
        let timer = cast.timer;
        let world = cast.app.world_mut();
        let changed = world.change_timer(timer, |timer| timer.delay_by(ms(1)));
        changed.expect("it is armed");
    };
    assert_changes(later, |cast| [cast.timer]);
    let replaced = |cast: &mut Cast| {
        let timer = cast.timer;
        cast.entity(timer).insert(Timer::every(10.0));
    };
    assert_changes(replaced, |cast| [cast.timer]);
    let cancelled = |cast: &mut Cast| {
        let timer = cast.timer;
        cast.entity(timer).remove::<Timer>();
    };
    assert_changes(cancelled, |cast| [cast.timer]);
    let acts = |cast: &mut Cast| {
        let timer = cast.timer;
        cast.entity(timer).insert(TimerAction::despawn());
    };
    assert_changes(acts, |cast| [cast.timer]);
    let lives = |cast: &mut Cast| {
        let timer = cast.timer;
        cast.entity(timer).insert(DespawnAfter::new(1.0));
    };
    assert_changes(lives, |cast| [cast.timer]);
}

#[test]
fn a_change_of_an_owner_is_reported_with_the_owner() {
    let disowned = |cast: &mut Cast| {
        let timer = cast.timer;
        cast.entity(timer).remove::<OwnedBy>();
    };
    assert_changes(disowned, |cast| [cast.owner, cast.timer]);
    let gone = |cast: &mut Cast| {
        let timer = cast.timer;
        cast.entity(timer).despawn();
    };
    assert_changes(gone, |cast| [cast.owner, cast.timer]);
    let all_gone = |cast: &mut Cast| {
        let owner = cast.owner;
        cast.entity(owner).despawn();
    };
    assert_changes(all_gone, |cast| [cast.owner, cast.timer]);
    let keyed = |cast: &mut Cast| {
        let timer = cast.timer;
        cast.entity(timer).insert(Keyed::new("other"));
    };
    assert_changes(keyed, |cast| [cast.timer]);
}

#[test]
fn a_pause_of_an_owner_is_reported_with_its_timers() {
    let paused = |cast: &mut Cast| {
        let owner = cast.owner;
        cast.entity(owner).insert(Paused);
    };
    assert_changes(paused, |cast| [cast.owner, cast.timer]);
    let disabled = |cast: &mut Cast| {
        let owner = cast.owner;
        cast.entity(owner).insert(Disabled);
    };
    assert_changes(disabled, |cast| [cast.owner, cast.timer]);
    let mut cast = Cast::new();
    let (owner, timer) = (cast.owner, cast.timer);
    let pause = cast.world().spawn_empty().id();
    let pauses = |cast: &mut Cast| _ = cast.entity(pause).insert(Pauses(owner));
    assert_eq!(changed(&mut cast, pauses), set([owner, timer, pause]));
    let paused = |cast: &mut Cast| cast.advance(20_000);
    let others = [cast.on_clock, cast.bystander];
    assert_eq!(changed(&mut cast, paused), set(others), "the others fire");
    cast.advance(0);
    let resumes = |cast: &mut Cast| cast.entity(pause).despawn();
    assert_eq!(changed(&mut cast, resumes), set([owner, timer, pause]));
}

#[test]
fn the_pause_of_a_timer_that_is_not_armed_yet_is_reported() {
    let mut cast = Cast::new();
    let owner = cast.owner;
    let new = (OwnedBy(owner), Timer::after(1.0));
    let new = cast.world().spawn(new).id();
    let timer = cast.timer;
    let pauses = |cast: &mut Cast| _ = cast.entity(owner).insert(Paused);
    assert_eq!(changed(&mut cast, pauses), set([owner, timer, new]));
}

#[test]
fn everything_on_a_clock_that_has_changed_is_reported() {
    let changes: [fn(&mut Cast); 5] = [
        |cast| cast.change_clock(cast.clock, |clock| clock.pause()),
        |cast| cast.change_clock(cast.clock, |clock| clock.set_speed(2.0)),
        |cast| cast.change_clock(cast.clock, |clock| clock.advance_by(ms(1))),
        |cast| cast.change_clock(cast.clock, |clock| clock.set_now(ms(1))),
        |cast| {
            let slow = Clock::new().with_speed(0.5);
            cast.entity(cast.clock).insert(slow);
        },
    ];
    for change in changes {
        assert_changes(change, |cast| [cast.clock, cast.on_clock, cast.cooldown]);
    }
    let mut cast = Cast::new();
    let (clock, on_clock, cooldown) = (cast.clock, cast.on_clock, cast.cooldown);
    let modifier = cast.world().spawn_empty().id();
    let slow = |cast: &mut Cast| {
        let slow = SpeedModifier::new(clock, 0.5);
        cast.entity(modifier).insert(slow);
    };
    assert_eq!(
        changed(&mut cast, slow),
        set([clock, on_clock, cooldown, modifier])
    );
    assert_eq!(
        changed(&mut cast, |cast| cast.advance(100)),
        set([]),
        "it is slow"
    );
    let gone = |cast: &mut Cast| cast.entity(clock).despawn();
    assert_eq!(
        changed(&mut cast, gone),
        set([clock, on_clock, cooldown, modifier])
    );
}

#[test]
fn the_clocks_below_a_clock_that_has_changed_are_reported() {
    let mut cast = Cast::new();
    let clock = cast.clock;
    let below = cast.world().spawn(Clock::of(clock)).id();
    let timer = cast.world().spawn(Timer::after(9.0).on(below)).id();
    cast.advance(100);
    let slow = |cast: &mut Cast| cast.change_clock(clock, |clock| clock.set_speed(0.5));
    let all = [clock, cast.on_clock, cast.cooldown, below, timer];
    assert_eq!(changed(&mut cast, slow), set(all));
}

#[test]
fn everything_on_a_built_in_clock_that_has_changed_is_reported() {
    let mut cast = Cast::new();
    let real = Timer::every(10.0).on(ClockId::Real);
    let real = cast.world().spawn(real).id();
    cast.advance(100);
    let fast = |cast: &mut Cast| cast.change_clock(ClockId::Real, |clock| clock.set_speed(2.0));
    assert_eq!(changed(&mut cast, fast), set([real]));
    let pause = |cast: &mut Cast| cast.change_clock(ClockId::Virtual, |clock| clock.pause());
    let on_game_clock = [
        cast.owner,
        cast.timer,
        cast.clock,
        cast.on_clock,
        cast.cooldown,
        cast.bystander,
    ];
    assert_eq!(changed(&mut cast, pause), set(on_game_clock));
    let elapsed = |cast: &mut Cast| cast.advance(100);
    assert_eq!(changed(&mut cast, elapsed), set([]));
}

#[test]
fn what_is_on_another_clock_by_the_choice_of_its_owner_is_reported() {
    let mut cast = Cast::new();
    let (owner, timer, clock) = (cast.owner, cast.timer, cast.clock);
    cast.entity(timer).insert(Cooldown::new(1.0));
    let chooses = |cast: &mut Cast| _ = cast.entity(owner).insert(OnClock::new(clock));
    assert_eq!(changed(&mut cast, chooses), set([owner, timer]));
    let another = |cast: &mut Cast| _ = cast.entity(owner).insert(OnClock::new(ClockId::Real));
    assert_eq!(changed(&mut cast, another), set([owner, timer]));
    let none = |cast: &mut Cast| _ = cast.entity(owner).remove::<OnClock>();
    assert_eq!(changed(&mut cast, none), set([owner, timer]));
}

#[test]
fn a_cooldown_is_reported_if_it_is_used() {
    let used = |cast: &mut Cast| {
        cast.advance(2000);
        let owner = cast.owner;
        let now = |clocks: Clocks| clocks.now(ClockId::Virtual).expect("it is built in");
        let now = cast.world().run_system_once(now).expect("it is valid");
        let mut cooldown = cast.world().get_mut::<Cooldown>(owner);
        let cooldown = cooldown.as_mut().expect("it is there");
        assert!(cooldown.try_use(now));
    };
    assert_changes(used, |cast| [cast.owner]);
    let seen = |cast: &mut Cast| {
        let owner = cast.owner;
        let mut cooldown = cast.world().get_mut::<Cooldown>(owner);
        cooldown.as_mut().expect("it is there").set_changed();
    };
    assert_changes(seen, |_| []);
}

#[test]
fn a_request_is_reported_with_its_asker() {
    let mut cast = Cast::new();
    let owner = cast.owner;
    let waiter = MessageComponent::new().on_packet(1, |mut me, _| {
        me.reply(Packet::new(1, [])).expect("it is a request");
    });
    let ears = MessageComponent::new().on_packet(1, |_, _| {});
    let waiter = cast.world().spawn(waiter).id();
    cast.entity(owner).insert(ears);
    let snapshot = cast.world().snapshot_timers();
    let mut commands = cast.world().commands();
    let until = Timer::after(1.0);
    let request = commands
        .entity(owner)
        .ask(waiter, Packet::new(1, []), until);
    cast.world().flush();
    let request = request.entity().expect("it was made here");
    let opened = changed_since(&mut cast, &snapshot);
    assert_eq!(opened, set([owner, request]));
    let answered = changed(&mut cast, |cast| {
        cast.advance(0);
        cast.advance(0);
    });
    assert!(cast.world().get_entity(request).is_err());
    assert_eq!(answered, set([owner, request]));
}

#[cfg(feature = "worlds")]
#[test]
fn a_change_of_a_stable_key_is_reported() {
    let mut cast = Cast::new();
    let timer = cast.timer;
    let bind = |cast: &mut Cast| _ = cast.entity(timer).insert(StableKey(1));
    assert_eq!(changed(&mut cast, bind), set([timer]));
    let snapshot = cast.world().snapshot_timers();
    cast.entity(timer).remove::<StableKey>();
    let mut names = EntityHashMap::default();
    cast.world().restore_timers(&snapshot, &mut names);
    let changed = changed_since(&mut cast, &snapshot);
    assert_eq!(
        changed,
        set([timer]),
        "a restore leaves stable keys as they are"
    );
}

#[test]
fn a_timer_that_still_names_a_clock_that_is_gone_is_reported() {
    let mut cast = Cast::new();
    let (clock, on_clock) = (cast.clock, cast.on_clock);
    let moved = cast.world().change_timer(on_clock, |timer| {
        timer.set_clock(ClockId::Virtual).expect("it is built in");
    });
    assert_eq!(moved, Ok(()));
    let despawn = |cast: &mut Cast| cast.entity(clock).despawn();
    let changed = changed(&mut cast, despawn);
    assert!(changed.contains(&on_clock), "{changed:?}");
}

#[test]
fn an_entity_that_leaves_is_reported_with_what_it_owns() {
    let mut cast = Cast::new();
    let (owner, timer) = (cast.owner, cast.timer);
    let take = |cast: &mut Cast| _ = cast.world().take_entity(owner).expect("it can move");
    assert_eq!(changed(&mut cast, take), set([owner, timer]));
}

#[test]
fn an_entity_that_was_spawned_again_is_reported_under_both_names() {
    let mut cast = Cast::new();
    let timer = cast.timer;
    let snapshot = cast.world().snapshot_timers();
    cast.entity(timer).despawn();
    let mut names = EntityHashMap::default();
    cast.world().restore_timers(&snapshot, &mut names);
    let changed = changed_since(&mut cast, &snapshot);
    assert_eq!(changed, set([timer, names[&timer]]));
}

#[test]
fn each_snapshot_has_its_own_changes() {
    let mut cast = Cast::new();
    let (timer, cooldown) = (cast.timer, cast.cooldown);
    let first = cast.world().snapshot_timers();
    cast.entity(timer).insert(Paused);
    let second = cast.world().snapshot_timers();
    cast.entity(cooldown).remove::<Cooldown>();
    for _ in 0..2 {
        assert_eq!(changed_since(&mut cast, &first), set([timer, cooldown]));
        assert_eq!(changed_since(&mut cast, &second), set([cooldown]));
    }
    cast.entity(timer).remove::<Paused>();
    assert_eq!(changed_since(&mut cast, &second), set([timer, cooldown]));
}

#[test]
fn a_copy_stays_good_while_a_condition_holds_its_clock() {
    #[derive(Component)]
    struct Level;

    let mut app = unobserved_app();
    app.add_systems(First, run_clock_if::<Level, _>(|| false));
    let world = app.world_mut();
    let level = world.spawn((Level, Clock::new())).id();
    let own = world.spawn((Level, Clock::new(), Timer::after(60.0))).id();
    let below = world.spawn((Clock::of(level), Timer::after(60.0))).id();
    let on_level = world.spawn(Timer::after(60.0).on(level)).id();
    advance_ms(&mut app, 100);
    advance_ms(&mut app, 100);

    let heroes = [own, below, on_level];
    let copies = app.world_mut().copy_entities(&heroes);
    let snapshot = app.world_mut().snapshot_timers();
    for _ in 0..4 {
        advance_ms(&mut app, 1000);
    }
    assert_eq!(app.world_mut().changed_since(&snapshot), []);

    let remaining = |app: &mut App, hero| {
        let timers = app.world_mut();
        timers.with_timers(|timers| timers.get(hero).expect("a timer").remaining)
    };
    let mut after = unobserved_app();
    let mut names = EntityHashMap::default();
    names.insert(level, after.world_mut().spawn(Clock::new()).id());
    for (hero, copy) in heroes.into_iter().zip(copies) {
        let copy = copy.expect("all is data");
        let world = after.world_mut();
        let there = world.put_entity(copy, ms(4000), &mut names);
        let there = there.expect("valid data");
        let expected = remaining(&mut app, hero);
        assert_eq!(remaining(&mut after, there), expected);
    }
}

/// A copy does not hold the modifier, so it could not tell how far the clock has come since.
#[test]
fn a_clock_that_somebody_else_slows_is_reported_all_the_time() {
    let mut cast = Cast::new();
    let field = cast.world().spawn_empty().id();
    let clock = cast.clock;
    let slow = (OwnedBy(field), SpeedModifier::new(clock, 0.5));
    cast.world().spawn(slow);
    let expected = set([cast.clock, cast.on_clock, cast.cooldown]);
    for _ in 0..3 {
        let found = changed(&mut cast, |cast| cast.advance(100));
        assert_eq!(found, expected);
    }
    cast.world().despawn(field);
    cast.advance(100);
    let found = changed(&mut cast, |cast| cast.advance(100));
    assert_eq!(found, set([]));
}

#[test]
#[should_panic(expected = "the snapshot was taken in another world")]
fn a_snapshot_of_another_world_is_refused() {
    let snapshot = Cast::new().world().snapshot_timers();
    Cast::new().world().changed_since(&snapshot);
}

/// The number of clones of [`Counted`].
static CLONES: AtomicUsize = AtomicUsize::new(0);

#[derive(Component, Serialize, Deserialize)]
struct Counted(u32);

impl Clone for Counted {
    fn clone(&self) -> Self {
        CLONES.fetch_add(1, Ordering::Relaxed);
        Self(self.0)
    }
}

#[test]
fn a_mark_clones_no_component_and_no_message() {
    #[derive(Message)]
    struct Note;

    let mut app = unobserved_app();
    let world = app.world_mut();
    world.add_saved_component::<Counted>("counted");
    let counted: Vec<Entity> = (0..100).map(|nth| world.spawn(Counted(nth)).id()).collect();
    let mut mark = world.mark_changes();
    for frame in 0..10 {
        advance_ms(&mut app, 10);
        let world = app.world_mut();
        world.send(counted[0], Note).expect("there is room");
        let mut expected = Vec::new();
        if frame == 5 {
            world.get_mut::<Counted>(counted[7]).unwrap().0 += 1;
            expected.push(counted[7]);
        }
        assert_eq!(world.changed_since(&mark), expected, "in frame {frame}");
        mark = world.mark_changes();
    }
    assert_eq!(CLONES.load(Ordering::Relaxed), 0);
    // A snapshot does clone them.
    drop(app.world_mut().snapshot_timers());
    assert_eq!(CLONES.load(Ordering::Relaxed), 100);
}

#[test]
fn an_effect_that_follows_its_target_to_another_clock_is_reported_at_once() {
    let Cast {
        mut app,
        owner,
        clock,
        ..
    } = Cast::new();
    let slow = SpeedModifier::new(clock, 0.5);
    let slow = (OwnedBy(owner), slow, Timer::after(10.0));
    let slow = app.world_mut().spawn(slow).id();
    advance_ms(&mut app, 100);
    let snapshot = app.world_mut().snapshot_timers();
    let to_real = |clock: &mut ClockMut| clock.set_parent(ClockId::Real);
    let moved = app.world_mut().change_clock(clock, to_real);
    assert!(matches!(moved, Ok(Ok(()))));
    let changed = app.world_mut().changed_since(&snapshot);
    assert!(changed.contains(&slow), "{changed:?}");
}

#[test]
fn a_clock_that_a_pause_of_another_entity_slows_is_reported_all_the_time() {
    let Cast {
        mut app,
        owner,
        clock,
        ..
    } = Cast::new();
    app.world_mut()
        .spawn((Pauses(owner), SpeedModifier::new(clock, 0.5)));
    advance_ms(&mut app, 100);
    let snapshot = app.world_mut().snapshot_timers();
    advance_ms(&mut app, 100);
    let changed = app.world_mut().changed_since(&snapshot);
    assert!(changed.contains(&clock), "{changed:?}");
}
