//! Effects on units.

use crate::support::*;
use bevy_due::{
    CancelReason, OwnedTimerCancelled, PausedBy, Timer, clock::SpeedModifier, prelude::*,
    timer::RunsWhilePaused,
};
use bevy_ecs::prelude::*;

#[derive(Component, Default, PartialEq, Debug)]
struct Mana(u32);

#[test]
fn an_interrupted_channel_refunds_the_missing_ticks() {
    let mut app = app();
    let mage = app.world_mut().spawn(Mana(0)).id();
    app.add_observer(
        |cancelled: On<OwnedTimerCancelled>, mut mages: Query<&mut Mana>| -> Result {
            assert_eq!(cancelled.reason(), CancelReason::Cancelled);
            assert_eq!(cancelled.count(), 3);
            assert_eq!(cancelled.remaining(), ms(200));
            mages.get_mut(cancelled.owner())?.0 += 10 * cancelled.left().unwrap_or(0);
            Ok(())
        },
    );
    let channel = Timer::every(ms(500)).times(5);
    app.world_mut()
        .commands()
        .entity(mage)
        .set_timer("drain", channel);
    advance_ms(&mut app, 0);
    for _ in 0..18 {
        advance_ms(&mut app, 100);
    }
    app.world_mut()
        .commands()
        .entity(mage)
        .cancel_timer("drain");
    advance_ms(&mut app, 0);
    assert_eq!(app.world().get(mage), Some(&Mana(20)));
}

#[test]
fn a_paused_timer_that_is_cancelled_tells_what_was_left_at_the_pause() {
    let mut app = app();
    let cast = spawn(&mut app, "cast", Timer::after(ms(500)));
    advance_ms(&mut app, 0);
    advance_ms(&mut app, 100);
    app.world_mut().entity_mut(cast).insert(Paused);
    advance_ms(&mut app, 300);
    let left = |app: &mut bevy_app::App| {
        let world = app.world_mut();
        let messages = world.resource::<Messages<bevy_due::TimerCancelled>>();
        let mut cursor = messages.get_cursor();
        let last = cursor.read(messages).last().copied();
        last.map(|cancelled| cancelled.remaining())
    };
    app.world_mut().entity_mut(cast).remove::<Timer>();
    advance_ms(&mut app, 0);
    assert_eq!(left(&mut app), Some(ms(400)));
}

#[derive(Component)]
struct Silenced;

/// The stun lasts two seconds. What is three seconds long stays so, but for the cast.
#[test]
fn a_stun_prolongs_a_cast_but_neither_a_shield_nor_a_silence() {
    let mut app = app();
    let mut mage = app.world_mut().spawn_empty();
    let id = mage.id();
    mage.set_timer("shield", (Timer::after(3.0), RunsWhilePaused));
    mage.set_timer("cast", Timer::after(3.0));
    let mut commands = app.world_mut().commands();
    commands.entity(id).insert_for(3.0, Silenced).pause_for(2.0);
    app.world_mut().flush();
    for _ in 0..30 {
        advance_ms(&mut app, 100);
    }
    assert!(!app.world().entity(id).contains::<Silenced>());
    app.world_mut().with_timers(|timers| {
        assert!(timers.keyed(id, "shield").is_none());
        assert_eq!(
            timers.keyed(id, "cast").map(|it| it.remaining),
            Some(ms(2000))
        );
    });
}

#[test]
fn a_slow_prolongs_neither_a_stun_nor_a_silence() {
    let mut app = app();
    let mage = app.world_mut().spawn(Clock::new()).id();
    let mut commands = app.world_mut().commands();
    commands.spawn(SpeedModifier::new(mage, 0.25));
    commands
        .entity(mage)
        .insert_for(1.0, Silenced)
        .pause_for(1.0);
    app.world_mut().flush();
    for _ in 0..10 {
        let mage = app.world().entity(mage);
        assert!(mage.contains::<Silenced>() && mage.contains::<PausedBy>());
        advance_ms(&mut app, 100);
    }
    let mage = app.world().entity(mage);
    assert!(!mage.contains::<Silenced>() && !mage.contains::<PausedBy>());
}
