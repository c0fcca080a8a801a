//! Bevy's feature `track_location` names the code that calls this crate, not the crate.

use crate::support::*;
use bevy_due::{DueCommandsExt, DueEntityCommandsExt, DueWorldExt, Timer};
use bevy_ecs::{change_detection::MaybeLocation, prelude::*};

/// Without `track_location`, all places are equal.
#[test]
fn bevy_tracks_the_caller_of_the_crate() {
    let mut app = unobserved_app();
    let world = app.world_mut();
    let (hero, data) = (world.spawn_empty().id(), Name::new("data"));
    let mut commands = world.commands();
    #[rustfmt::skip]
    let (place, armed) = (MaybeLocation::caller(), [
        commands.after(1.0).queue(|_| {}).id(), commands.every(1.0).run(|| {}).id()
    ]);
    #[rustfmt::skip]
    let (here, _) = (MaybeLocation::caller(), commands.entity(hero).insert_for(1.0, data.clone()));
    world.flush();
    let expected = line(place).map(|(file, line)| (file, line + 1));
    assert_eq!(
        armed.map(|timer| line_of::<Timer>(world, timer)),
        [expected; 2]
    );
    assert_eq!(line_of::<Name>(world, hero), line(here));

    let mut commands = world.commands();
    #[rustfmt::skip]
    let (here, _) = (MaybeLocation::caller(), commands.entity(hero).refresh_timer("key", Timer::after(1.0)));
    world.flush();
    let refreshed = world.with_timers(|timers| timers.keyed(hero, "key").unwrap().entity);
    assert_eq!(line_of::<Timer>(world, refreshed), line(here));

    let mut hero_mut = world.entity_mut(hero);
    let (here, _) = (MaybeLocation::caller(), hero_mut.insert_for(ms(9), data));
    assert_eq!(line_of::<Name>(world, hero), line(here));
}

type Line = Option<(&'static str, u32)>;

fn line(place: MaybeLocation) -> Line {
    let place = place.into_option();
    place.map(|place| (place.file(), place.line()))
}

/// Returns the line that inserted a component.
fn line_of<C: Component>(world: &World, entity: Entity) -> Line {
    line(world.entity(entity).get_ref::<C>().unwrap().changed_by())
}
