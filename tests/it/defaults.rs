//! The default values of components, for scenes and `#[derive(Default)]`.

use crate::support::*;
use bevy_due::{Timer, prelude::*};
use bevy_ecs::{prelude::*, template::FromTemplate};
use core::time::Duration;

/// A century.
const LONG: Duration = Duration::from_secs(100 * 365 * 24 * 3600);

#[derive(Component, Default)]
struct Player {
    dash: Cooldown,
}

#[test]
fn default_components_do_nothing() {
    let mut app = app();
    let defaults = (Timer::default(), DespawnAfter::default());
    let defaults = app.world_mut().spawn((Tag("default"), defaults)).id();
    let action = (Timer::every(ms(10)).times(2), TimerAction::default());
    let action = app.world_mut().spawn((Tag("action"), action)).id();
    advance_ms(&mut app, 20);
    advance(&mut app, LONG);
    assert_eq!(fired(&mut app), ["action", "action"]);
    assert!(app.world().entity(defaults).contains::<Timer>());
    assert!(app.world().get_entity(action).is_ok());
}

#[test]
fn a_default_cooldown_is_always_ready() {
    let mut player = Player::default();
    for _ in 0..3 {
        assert!(player.dash.try_use(ms(0)));
    }
}

#[test]
fn components_can_be_written_in_scenes() {
    // `bsn!` builds a component from an expression if it has a template.
    fn is_template<C: Component + FromTemplate>() {}

    is_template::<Timer>();
    is_template::<TimerAction>();
    is_template::<DespawnAfter>();
    is_template::<Cooldown>();
}

#[cfg(feature = "serialize")]
#[test]
fn a_default_action_can_be_saved() {
    let text = ron::to_string(&TimerAction::default()).unwrap();
    let loaded: TimerAction = ron::from_str(&text).unwrap();
    assert_eq!(format!("{loaded:?}"), "TimerAction(nothing)");
}
