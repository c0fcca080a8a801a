//! `Paused`: pausing one timer, or all timers of an owner.

use core::time::Duration;

use crate::support::*;
use bevy_app::{App, PreUpdate};
use bevy_due::{
    CancelReason, DueSystems, Owned, OwnedBy, PausedBy, Timer,
    prelude::*,
    timer::{Pauses, RunsWhilePaused},
};
use bevy_ecs::{entity_disabling::Disabled, prelude::*};

fn pause(app: &mut App, entity: Entity) {
    app.world_mut().entity_mut(entity).insert(Paused);
}

fn resume(app: &mut App, entity: Entity) {
    app.world_mut().entity_mut(entity).remove::<Paused>();
}

#[test]
fn a_paused_timer_keeps_its_remaining_time_to_the_nanosecond() {
    let mut app = app();
    let timer = spawn(&mut app, "x", Timer::after(ms(30)));
    advance(&mut app, ms(30) - Duration::from_nanos(1));
    pause(&mut app, timer);
    pause(&mut app, timer);
    advance_ms(&mut app, 1000);
    resume(&mut app, timer);
    advance(&mut app, Duration::ZERO);
    assert!(fired(&mut app).is_empty());
    advance(&mut app, Duration::from_nanos(1));
    assert_eq!(fired_at(&mut app), [("x", 1030)]);
}

#[test]
fn pausing_an_owner_pauses_all_its_timers() {
    let mut app = app();
    let boss = spawn(&mut app, "boss", Timer::every(ms(10)));
    app.world_mut()
        .spawn((Tag("owned"), OwnedBy(boss), Timer::every(ms(15))));
    spawn(&mut app, "other", Timer::every(ms(20)));
    advance_ms(&mut app, 5);
    pause(&mut app, boss);
    advance_ms(&mut app, 20);
    assert_eq!(fired(&mut app), ["other"]);
    resume(&mut app, boss);
    advance_ms(&mut app, 10);
    assert_eq!(fired_at(&mut app), [("boss", 30), ("owned", 35)]);
}

#[test]
fn a_pause_takes_effect_between_two_firings_of_one_run() {
    let mut app = app();
    let boss = app.world_mut().spawn_empty().id();
    for tag in ["a", "b"] {
        app.world_mut()
            .spawn((Tag(tag), OwnedBy(boss), Timer::every(ms(10))));
    }
    app.add_observer(|fired: On<TimerFired>, mut commands: Commands| {
        commands.entity(fired.owner()).insert(Paused);
    });
    advance_ms(&mut app, 35);
    assert_eq!(fired_at(&mut app), [("a", 10)]);
    advance_ms(&mut app, 35);
    assert!(fired(&mut app).is_empty());
    resume(&mut app, boss);
    advance_ms(&mut app, 0);
    assert_eq!(
        fired_at(&mut app),
        [("b", 45)],
        "an overdue timer should stay overdue"
    );
}

#[test]
fn a_resumed_timer_keeps_its_place_among_equal_deadlines() {
    let mut app = app();
    let a = spawn(&mut app, "a", Timer::after(ms(10)));
    advance_ms(&mut app, 5);
    pause(&mut app, a);
    spawn(&mut app, "b", Timer::after(ms(10)));
    advance_ms(&mut app, 5);
    resume(&mut app, a);
    advance_ms(&mut app, 5);
    assert_eq!(fired_at(&mut app), [("a", 15), ("b", 15)]);
}

#[test]
fn a_timer_armed_while_paused_waits_its_full_delay() {
    let mut app = app();
    let boss = app.world_mut().spawn(Paused).id();
    let own = app
        .world_mut()
        .spawn((Tag("own"), Timer::after(ms(10)), Paused))
        .id();
    advance_ms(&mut app, 5);
    app.world_mut()
        .spawn((Tag("owned"), OwnedBy(boss), Timer::after(ms(10))));
    advance_ms(&mut app, 100);
    resume(&mut app, own);
    resume(&mut app, boss);
    advance_ms(&mut app, 9);
    assert!(fired(&mut app).is_empty());
    advance_ms(&mut app, 1);
    assert_eq!(fired_at(&mut app), [("own", 115), ("owned", 115)]);
}

/// Time passes after the insertion, before the run in which the timer is armed.
#[test]
fn a_pause_before_the_first_run_of_a_timer_counts_from_its_start() {
    #[derive(Resource)]
    struct ToPause(Entity);

    let mut app = app();
    let pause_early = |timer: Option<Res<ToPause>>, mut commands: Commands| {
        if let Some(timer) = timer {
            commands.entity(timer.0).insert(Paused);
            commands.remove_resource::<ToPause>();
        }
    };
    app.add_systems(PreUpdate, pause_early.before(DueSystems::Timers));
    let timer = spawn(&mut app, "x", Timer::after(ms(10)));
    app.insert_resource(ToPause(timer));
    advance_ms(&mut app, 4);
    advance_ms(&mut app, 3);
    resume(&mut app, timer);
    advance_ms(&mut app, 5);
    assert!(fired(&mut app).is_empty(), "four of ten have passed");
    advance_ms(&mut app, 1);
    assert_eq!(fired(&mut app), ["x"]);
}

#[test]
fn resumed_timers_count_as_armed() {
    let mut app = app();
    let timers = [(); 2].map(|()| spawn(&mut app, "x", Timer::after(ms(50))));
    advance_ms(&mut app, 10);
    for timer in timers {
        pause(&mut app, timer);
    }
    advance_ms(&mut app, 10);
    for timer in timers {
        resume(&mut app, timer);
    }
    advance_ms(&mut app, 10);
    let stats = app.world_mut().with_timers(|timers| timers.last_run());
    assert_eq!(stats.armed, 2);
}

#[test]
fn a_timer_resumes_only_when_nothing_pauses_it() {
    let mut app = app();
    let [boss, other] = [(); 2].map(|()| app.world_mut().spawn(Paused).id());
    let timer = (Tag("x"), OwnedBy(boss), Timer::after(ms(10)), Paused);
    let timer = app.world_mut().spawn((timer, Disabled)).id();
    let steps: [(&str, fn(&mut App, Entity, Entity)); 3] = [
        ("still paused itself", |app, boss, _| resume(app, boss)),
        ("still disabled", |app, _, timer| resume(app, timer)),
        ("resumed, but not due yet", |app, _, timer| {
            app.world_mut().entity_mut(timer).remove::<Disabled>();
        }),
    ];
    for (reason, step) in steps {
        step(&mut app, boss, timer);
        advance_ms(&mut app, 5);
        assert!(fired(&mut app).is_empty(), "{reason}");
    }
    app.world_mut().entity_mut(timer).insert(OwnedBy(other));
    advance_ms(&mut app, 100);
    assert!(fired(&mut app).is_empty(), "the new owner is paused");
    app.world_mut().entity_mut(timer).remove::<OwnedBy>();
    advance_ms(&mut app, 5);
    assert_eq!(
        fired(&mut app),
        ["x"],
        "nothing should pause it without an owner"
    );
}

#[test]
fn disabling_an_entity_pauses_its_timers() {
    let mut app = app();
    let boss = spawn(&mut app, "boss", Timer::after(ms(10)));
    app.world_mut()
        .spawn((Tag("owned"), OwnedBy(boss), Timer::after(ms(10))));
    app.world_mut().entity_mut(boss).insert(Disabled);
    advance_ms(&mut app, 100);
    assert!(fired(&mut app).is_empty());
    app.world_mut().entity_mut(boss).remove::<Disabled>();
    advance_ms(&mut app, 10);
    assert_eq!(fired(&mut app), ["boss", "owned"]);
}

#[test]
fn a_paused_timer_can_be_cancelled_and_replaced() {
    let mut app = app();
    let [a, b] = ["a", "b"].map(|tag| spawn(&mut app, tag, Timer::after(ms(10))));
    pause(&mut app, a);
    pause(&mut app, b);
    app.world_mut().despawn(a);
    app.world_mut().entity_mut(b).insert(Timer::after(ms(20)));
    let reasons = [(a, CancelReason::Despawned), (b, CancelReason::Replaced)];
    assert_eq!(cancelled(&mut app), reasons);
    advance_ms(&mut app, 100);
    assert!(
        fired(&mut app).is_empty(),
        "the replacement should be paused, too"
    );
    resume(&mut app, b);
    advance_ms(&mut app, 20);
    assert_eq!(fired_at(&mut app), [("b", 120)]);
}

#[test]
fn a_burst_cut_short_by_a_pause_starts_over_in_the_next_run() {
    let mut app = app_with(burst_limit(3));
    let timer = spawn(&mut app, "x", Timer::every(ms(10)));
    app.add_observer(|fired: On<TimerFired>, mut commands: Commands| {
        if fired.count() == 2 {
            commands.entity(fired.entity()).insert(Paused);
        }
    });
    advance_ms(&mut app, 50);
    assert_eq!(fired(&mut app).len(), 2);
    resume(&mut app, timer);
    advance_ms(&mut app, 0);
    let missed: Vec<u64> = firings(&mut app)
        .iter()
        .map(|fired| fired.missed())
        .collect();
    assert_eq!(
        missed,
        [0, 0, 0],
        "30, 40 and 50 should fit the burst limit"
    );
}

#[test]
fn pauses_nest_and_the_last_one_ends_them() {
    let mut app = app();
    let x = spawn(&mut app, "x", Timer::after(ms(10)));
    let pauses = [(); 2].map(|()| app.world_mut().spawn(Pauses(x)).id());
    app.world_mut().entity_mut(x).insert(Paused);
    app.world_mut().flush();
    advance_ms(&mut app, 20);
    app.world_mut().despawn(pauses[0]);
    advance_ms(&mut app, 20);
    app.world_mut().entity_mut(x).remove::<Paused>();
    advance_ms(&mut app, 20);
    assert_eq!(fired(&mut app), [""; 0], "one pause is left");
    app.world_mut().despawn(pauses[1]);
    advance_ms(&mut app, 9);
    assert_eq!(fired(&mut app), [""; 0]);
    advance_ms(&mut app, 1);
    assert_eq!(fired(&mut app), ["x"]);
}

#[test]
fn a_timed_pause_stops_owned_timers_and_callbacks_and_ends_itself() {
    let mut app = app();
    let owner = app.world_mut().spawn_empty().id();
    app.world_mut()
        .spawn((Tag("owned"), OwnedBy(owner), Timer::every(ms(10))));
    app.world_mut().entity_mut(owner).pause_for(ms(25));
    let mut entity = app.world_mut().entity_mut(owner);
    entity.pause_for(ms(5)).cancel_timers();
    app.world_mut()
        .spawn((Tag("new"), OwnedBy(owner), Timer::every(ms(10))));
    for _ in 0..7 {
        advance_ms(&mut app, 5);
    }
    assert_eq!(fired_at(&mut app), [("new", 35)]);
    assert!(app.world().get::<PausedBy>(owner).is_none());
}

#[test]
fn the_pauses_of_an_entity_despawn_with_it() {
    let mut app = app();
    let x = spawn(&mut app, "x", Timer::after(ms(10)));
    let pause = app.world_mut().spawn(Pauses(x)).id();
    app.world_mut().despawn(x);
    assert!(app.world().get_entity(pause).is_err());
}

#[test]
fn a_pause_that_its_target_owns_does_not_pause_its_own_end() {
    let mut app = app();
    let orc = spawn(&mut app, "orc", Timer::every(ms(10)));
    let lifetime = DespawnAfter::new(ms(20));
    app.world_mut().spawn((OwnedBy(orc), Pauses(orc), lifetime));
    advance_ms(&mut app, 5);
    let freeze = (
        Timer::after(ms(40)),
        TimerAction::despawn(),
        Pauses(orc),
        Tag("freeze"),
    );
    app.world_mut().entity_mut(orc).set_timer("ice", freeze);
    let remaining = app.world_mut().with_timers(|timers| {
        let freeze = timers.keyed(orc, "ice");
        freeze.map(|freeze| (freeze.paused, freeze.remaining))
    });
    assert_eq!(remaining, Some((false, ms(40))));
    advance_ms(&mut app, 39);
    assert!(fired(&mut app).is_empty());
    assert!(app.world().get::<PausedBy>(orc).is_some(), "the longer one");
    advance_ms(&mut app, 1);
    assert!(app.world().get::<PausedBy>(orc).is_none());
    advance_ms(&mut app, 10);
    assert_eq!(fired_at(&mut app), [("freeze", 45), ("orc", 55)]);

    // A pause of the entity itself still holds.
    app.world_mut()
        .entity_mut(orc)
        .set_timer("ice", (Timer::after(ms(10)), Pauses(orc), Paused));
    advance_ms(&mut app, 100);
    assert!(app.world().get::<PausedBy>(orc).is_some());
}

#[test]
fn an_armed_timer_that_comes_to_pause_its_owner_goes_on() {
    let mut app = app();
    let orc = app.world_mut().spawn_empty().id();
    app.world_mut().entity_mut(orc).pause_for(ms(8));
    let thaw = (OwnedBy(orc), Timer::after(ms(10)), TimerAction::despawn());
    let thaw = app.world_mut().spawn(thaw).id();
    advance_ms(&mut app, 5);
    app.world_mut().entity_mut(thaw).insert(Pauses(orc));
    advance_ms(&mut app, 9);
    assert!(app.world().get::<PausedBy>(orc).is_some());
    advance_ms(&mut app, 1);
    assert!(app.world().get_entity(thaw).is_err());
    assert!(app.world().get::<PausedBy>(orc).is_none());
}

#[test]
fn an_armed_timer_that_no_longer_pauses_stops_with_its_owner() {
    let mut app = app();
    let [orc, elf] = [(); 2].map(|()| app.world_mut().spawn_empty().id());
    app.world_mut().entity_mut(orc).pause_for(ms(100));
    let timers = ["left", "moved"].map(|tag| {
        let timer = (Tag(tag), OwnedBy(orc), Pauses(orc), Timer::after(ms(10)));
        app.world_mut().spawn(timer).id()
    });
    advance_ms(&mut app, 4);
    app.world_mut().entity_mut(timers[0]).remove::<Pauses>();
    app.world_mut().entity_mut(timers[1]).insert(Pauses(elf));
    advance_ms(&mut app, 6);
    assert_eq!(fired_at(&mut app), [("moved", 10)]);
    advance_ms(&mut app, 90);
    assert!(fired(&mut app).is_empty(), "the orc is paused");
    advance_ms(&mut app, 6);
    assert_eq!(fired_at(&mut app), [("left", 106)]);
}

/// An orc, a timer and a callback that it owns, and a timer of that timer, each with the tag of its place.
fn an_orc_with_effects(app: &mut App) -> [Entity; 3] {
    let orc = app.world_mut().spawn_empty().id();
    let effect = (OwnedBy(orc), Tag("effect"), Timer::every(ms(10)));
    let count = UpdateComponent::new(|mut me| {
        if let Some(mut updates) = me.entity.get_mut::<Updates>() {
            updates.0 += 1;
        }
    });
    app.world_mut().entity_mut(orc).insert(Updates(0));
    let effect = app.world_mut().spawn((effect, count)).id();
    let below = (OwnedBy(effect), Tag("below"), Timer::every(ms(10)));
    let below = app.world_mut().spawn(below).id();
    [orc, effect, below]
}

#[derive(Component)]
struct Updates(u32);

#[test]
fn what_runs_while_paused_is_stopped_by_no_pause_of_an_owner() {
    let mut app = app();
    let [orc, effect, below] = an_orc_with_effects(&mut app);
    app.world_mut().entity_mut(below).insert(RunsWhilePaused);
    let updates = |app: &App| app.world().get::<Updates>(orc).unwrap().0;
    advance_ms(&mut app, 5);
    pause(&mut app, orc);
    app.world_mut().entity_mut(orc).pause_for(ms(1000));
    advance_ms(&mut app, 5);
    assert_eq!(
        fired_at(&mut app),
        [("below", 10)],
        "each follows its own rule"
    );
    assert_eq!(updates(&app), 1, "the callback waits");

    app.world_mut().entity_mut(effect).insert(RunsWhilePaused);
    advance_ms(&mut app, 5);
    assert_eq!(fired_at(&mut app), [("effect", 15)]);
    assert_eq!(updates(&app), 2);
    app.world_mut()
        .entity_mut(effect)
        .remove::<RunsWhilePaused>();
    advance_ms(&mut app, 10);
    assert_eq!(fired_at(&mut app), [("below", 20)]);
    assert_eq!(updates(&app), 2);
}

#[test]
fn a_lifetime_that_runs_while_paused_ends_during_a_pause_of_its_entity() {
    let mut app = app();
    let [shield, cast] = [(); 2].map(|()| app.world_mut().spawn(DespawnAfter::new(ms(10))).id());
    app.world_mut().entity_mut(shield).insert(RunsWhilePaused);
    for entity in [shield, cast] {
        app.world_mut().entity_mut(entity).pause_for(1.0);
    }
    advance_ms(&mut app, 10);
    assert!(app.world().get_entity(shield).is_err());
    assert!(app.world().get_entity(cast).is_ok());
}

#[test]
fn what_runs_while_paused_stops_if_it_is_paused_itself_or_anything_is_disabled() {
    let mut app = app();
    let [orc, effect, below] = an_orc_with_effects(&mut app);
    for entity in [effect, below] {
        app.world_mut().entity_mut(entity).insert(RunsWhilePaused);
    }
    pause(&mut app, effect);
    advance_ms(&mut app, 10);
    assert_eq!(fired_at(&mut app), [("below", 10)]);
    resume(&mut app, effect);
    app.world_mut().entity_mut(orc).insert(Disabled);
    advance_ms(&mut app, 100);
    assert!(fired(&mut app).is_empty());
}

/// Bevy gives the clone an empty list of pauses.
#[test]
fn a_clone_of_a_paused_entity_runs_without_the_pause() {
    let mut app = app();
    let enemy = spawn(&mut app, "enemy", Timer::every(ms(10)));
    app.world_mut().entity_mut(enemy).pause_for(0.1);
    advance_ms(&mut app, 5);
    let clone = app.world_mut().entity_mut(enemy).clone_and_spawn();
    app.world_mut().entity_mut(clone).insert(Tag("clone"));
    assert!(app.world().get::<PausedBy>(clone).is_none());
    advance_ms(&mut app, 10);
    advance_ms(&mut app, 10);
    let fired = fired(&mut app);
    assert!(
        !fired.is_empty() && fired.iter().all(|&tag| tag == "clone"),
        "{fired:?}"
    );
}

/// A poison on an orc, with stacks of its own, one of which bleeds.
fn a_deep_effect(app: &mut App, orc: Entity) -> [Entity; 3] {
    let poison = (OwnedBy(orc), Tag("poison"), Timer::every(ms(10)));
    let poison = app.world_mut().spawn(poison).id();
    let stack = (OwnedBy(poison), DespawnAfter::new(ms(25)));
    let stack = app.world_mut().spawn(stack).id();
    let bleed = (OwnedBy(stack), Tag("bleed"), Timer::every(ms(7)));
    [poison, stack, app.world_mut().spawn(bleed).id()]
}

#[test]
fn a_pause_reaches_everything_below_its_entity() {
    let mut app = app();
    let orc = app.world_mut().spawn_empty().id();
    let [_, stack, bleed] = a_deep_effect(&mut app, orc);
    app.world_mut().spawn((
        OwnedBy(bleed),
        UpdateComponent::new(|mut me| {
            me.entity.get_mut::<Tag>().expect("it is the bleed").0 = "called";
        }),
    ));
    pause(&mut app, orc);
    advance_ms(&mut app, 100);
    assert!(fired(&mut app).is_empty());
    let tag = |app: &App| app.world().get::<Tag>(bleed).expect("it lives").0;
    assert_eq!(tag(&app), "bleed", "no callback was called");
    // An effect that comes in the pause waits, too.
    let late = (OwnedBy(bleed), Tag("late"), Timer::after(ms(3)));
    app.world_mut().spawn(late);
    advance_ms(&mut app, 100);
    resume(&mut app, orc);
    advance_ms(&mut app, 24);
    let expected = [
        ("late", 203),
        ("bleed", 207),
        ("poison", 210),
        ("bleed", 214),
        ("poison", 220),
        ("bleed", 221),
    ];
    assert_eq!(fired_at(&mut app), expected);
    assert_eq!(tag(&app), "called");
    advance_ms(&mut app, 1);
    assert!(app.world().get_entity(stack).is_err());
}

#[test]
fn effects_that_change_their_owner_follow_its_pause_with_all_below_them() {
    let mut app = app();
    let [orc, elf] = [(); 2].map(|()| app.world_mut().spawn_empty().id());
    pause(&mut app, orc);
    let [poison, ..] = a_deep_effect(&mut app, elf);
    advance_ms(&mut app, 8);
    app.world_mut().entity_mut(poison).insert(OwnedBy(orc));
    advance_ms(&mut app, 100);
    app.world_mut().entity_mut(poison).remove::<OwnedBy>();
    advance_ms(&mut app, 8);
    let expected = [("bleed", 7), ("poison", 110), ("bleed", 114)];
    assert_eq!(fired_at(&mut app), expected);
}

#[test]
fn entities_that_own_each_other_pause_each_other() {
    let mut app = app();
    let [first, second, third] = ["first", "second", "third"].map(|tag| {
        let timer = (Tag(tag), Timer::every(ms(10)));
        app.world_mut().spawn(timer).id()
    });
    for (entity, owner) in [(first, second), (second, third), (third, second)] {
        app.world_mut().entity_mut(entity).insert(OwnedBy(owner));
    }
    pause(&mut app, third);
    advance_ms(&mut app, 50);
    assert!(fired(&mut app).is_empty());
    resume(&mut app, third);
    pause(&mut app, first);
    advance_ms(&mut app, 15);
    assert_eq!(fired(&mut app), ["second", "third"]);
}

/// A pause of 50 ms, carried in different ways. The last is owned by the entity of a timer.
fn pause_by(app: &mut App, way: usize, enemy: Entity) {
    let mut entity = app.world_mut().entity_mut(enemy);
    let after = Timer::after(ms(50));
    match way {
        0 => _ = entity.pause_for(ms(50)),
        1 => _ = entity.set_timer("ice", (after, Pauses(enemy))),
        2 => {
            _ = app
                .world_mut()
                .spawn((after.despawn_when_done(), Pauses(enemy)));
        }
        _ => {
            let pauses = (after, RunsWhilePaused, related!(Owned[Pauses(enemy)]));
            _ = entity.set_timer("ice", pauses);
        }
    }
}

#[test]
fn a_pause_ends_exactly_whatever_carries_it() {
    let unit_fired = |way, step| {
        let mut app = app();
        let enemy = spawn(&mut app, "enemy", Timer::every(ms(10)));
        advance_ms(&mut app, 10);
        pause_by(&mut app, way, enemy);
        match step {
            None => {
                let forward = app.world_mut().fast_forward(ClockId::Virtual, ms(140));
                forward.expect("nothing stops the clock");
            }
            Some(step) => (0..140 / step).for_each(|_| advance_ms(&mut app, step)),
        }
        let fired = fired_at(&mut app).into_iter();
        fired.filter(|&(tag, _)| tag == "enemy").collect::<Vec<_>>()
    };
    for step in [None, Some(1), Some(7), Some(10), Some(35)] {
        let [exact, others @ ..] = [0, 1, 2, 3].map(|way| unit_fired(way, step));
        assert!(exact.len() > 5, "{step:?}: {exact:?}");
        for (way, other) in others.into_iter().enumerate() {
            assert_eq!(other, exact, "{step:?}, way {}", way + 1);
        }
    }
}

#[test]
fn a_pause_lasts_until_the_handlers_of_its_end_have_run() {
    #[derive(Resource, Default)]
    struct Seen(Vec<bool>);

    let mut app = unobserved_app();
    app.init_resource::<Seen>();
    let enemy = app.world_mut().spawn_empty().id();
    pause_by(&mut app, 1, enemy);
    app.world_mut().flush();
    let ice = owned(app.world(), enemy)[0];
    let see = move |paused: Query<Has<PausedBy>>, mut seen: ResMut<Seen>| {
        seen.0.push(paused.get(enemy).unwrap());
    };
    let act = app.world_mut().register_system(see);
    app.world_mut()
        .entity_mut(ice)
        .insert(TimerAction::call(move |world, _| {
            world.run_system(act).expect("it is registered");
        }))
        .observe(move |_: On<TimerFired>, mut commands: Commands| commands.run_system(act));
    app.add_systems(PreUpdate, see.after(DueSystems::Timers));
    advance_ms(&mut app, 50);
    assert_eq!(app.world().resource::<Seen>().0, [true, true, false]);
    assert!(
        app.world().get_entity(ice).is_ok(),
        "for systems that read the message"
    );
    advance_ms(&mut app, 0);
    assert!(app.world().get_entity(ice).is_err());
}

#[test]
fn a_pause_goes_on_if_its_entity_stays() {
    let mut app = app();
    let [again, freed, kept, alone] = [0, 1, 2, 3].map(|_| {
        let enemy = app.world_mut().spawn_empty().id();
        pause_by(&mut app, 1, enemy);
        let ice = owned(app.world(), enemy)[0];
        (enemy, ice)
    });
    let world = app.world_mut();
    world
        .entity_mut(again.1)
        .observe(|fired: On<TimerFired>, mut commands: Commands| {
            if fired.deadline() == ms(50) {
                commands.entity(fired.entity()).insert(Timer::after(ms(20)));
            }
        });
    world
        .entity_mut(freed.1)
        .observe(|fired: On<TimerFired>, mut commands: Commands| {
            commands.entity(fired.entity()).remove::<OwnedBy>();
        });
    world
        .entity_mut(kept.1)
        .insert(Timer::after(ms(50)).keep_when_done());
    let alone_timer = (Timer::after(ms(50)), Pauses(alone.0));
    world.despawn(alone.1);
    world.spawn(alone_timer);
    let enemies = [again, freed, kept, alone].map(|(enemy, _)| enemy);
    let paused = |app: &App| enemies.map(|it| app.world().entity(it).contains::<PausedBy>());
    advance_ms(&mut app, 50);
    assert_eq!(paused(&app), [true; 4]);
    advance_ms(&mut app, 20);
    assert_eq!(paused(&app), [false, true, true, true]);
}
