//! Effects on units.

use crate::support::*;
use bevy_due::{CancelReason, OwnedTimerCancelled, Timer, prelude::*};
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
