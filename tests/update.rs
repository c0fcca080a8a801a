//! `UpdateComponent`: functions that are called in every frame.

mod support;

use bevy_app::App;
use bevy_due::{UpdateComponent, UpdateContext, UpdatesPaused};
use bevy_ecs::{entity_disabling::Disabled, prelude::*};
use support::*;

/// What has been called, in order.
#[derive(Resource, Default)]
struct Called(Vec<&'static str>);

fn update_app() -> App {
    let mut app = app();
    app.init_resource::<Called>();
    app
}

/// One that says that it has been called.
fn say(what: &'static str) -> UpdateComponent {
    UpdateComponent::new(move |mut me: UpdateContext| {
        me.commands
            .queue(move |world: &mut World| world.resource_mut::<Called>().0.push(what));
    })
}

fn called(app: &mut App) -> Vec<&'static str> {
    core::mem::take(&mut app.world_mut().resource_mut::<Called>().0)
}

#[test]
fn lower_priorities_are_called_first_and_equal_ones_in_the_order_of_inserting() {
    let mut app = update_app();
    for (what, priority) in [("a", 0), ("b", 5), ("c", -3), ("d", 0), ("e", -3), ("f", 5)] {
        app.world_mut().spawn(say(what).with_priority(priority));
    }
    advance_ms(&mut app, 10);
    assert_eq!(called(&mut app), ["c", "e", "a", "d", "b", "f"]);
    advance_ms(&mut app, 10);
    assert_eq!(called(&mut app), ["c", "e", "a", "d", "b", "f"]);
}

#[test]
fn what_is_paused_or_disabled_is_not_called() {
    let mut app = update_app();
    let a = app.world_mut().spawn(say("a")).id();
    let b = app.world_mut().spawn((say("b"), UpdatesPaused)).id();
    app.world_mut().spawn(say("c"));
    app.world_mut().entity_mut(a).insert(Disabled);
    advance_ms(&mut app, 10);
    assert_eq!(called(&mut app), ["c"]);
    app.world_mut().entity_mut(a).remove::<Disabled>();
    app.world_mut().entity_mut(b).remove::<UpdatesPaused>();
    advance_ms(&mut app, 10);
    assert_eq!(called(&mut app), ["a", "b", "c"], "in the old order");
}
