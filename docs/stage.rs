// The stage on which the examples of the guide and the cookbook play. Each example includes this
// file in hidden lines: time passes by hand, a tenth of a second per frame.

use core::time::Duration;

pub use bevy_app::prelude::*;
use bevy_due::DuePlugin;
use bevy_ecs::prelude::*;
use bevy_time::{Real, Time, TimePlugin, TimeUpdateStrategy};

/// Returns an app with the plugin, before its first frame.
pub fn app() -> App {
    let mut app = App::new();
    app.add_plugins((TimePlugin, DuePlugin::default()))
        .insert_resource(TimeUpdateStrategy::ManualDuration(Duration::from_millis(100)));
    app
}

/// Plays for this many seconds. Bevy's first frame takes no time, and comes on top.
pub fn play(app: &mut App, secs: f32) {
    let has_started = app.world().resource::<Time<Real>>().last_update().is_some();
    for _ in 0..(secs * 10.0).round() as usize + usize::from(!has_started) {
        app.update();
    }
}

/// Returns the number of entities with this component.
pub fn count<C: Component>(app: &mut App) -> usize {
    app.world_mut().query::<&C>().iter(app.world()).count()
}

/// Returns the component of the only entity that has it.
pub fn the<C: Component>(app: &mut App) -> &C {
    let mut query = app.world_mut().query::<&C>();
    query.single(app.world()).expect("one entity has the component")
}

/// Returns the only entity with this component.
pub fn entity<C: Component>(app: &mut App) -> Entity {
    let mut query = app.world_mut().query_filtered::<Entity, With<C>>();
    query.single(app.world()).expect("one entity has the component")
}
