//! Per-entity callbacks that run every frame.

use core::time::Duration;

use bevy_app::prelude::*;
use bevy_due::{UpdateContext, prelude::*};
use bevy_ecs::{prelude::*, resource::IsResource, world::EntityMutExcept};
use bevy_time::Time;

use crate::{
    contenders::{app, due_app, on_one_thread},
    frames::frames,
    sides::Table,
};

const SIZES: [usize; 2] = [10_000, 100_000];

/// The component that the callbacks change.
#[derive(Component)]
struct Age(Duration);

pub fn compare(table: &mut Table) {
    for n in SIZES {
        for (peer, contender) in [
            ("boxed_closures", boxed_closures as fn(usize) -> App),
            ("plain_system", plain_system),
        ] {
            let per_turn = |units| units * 5 / n + 1;
            table.line(
                ("app_update", n, peer),
                None,
                |units| frames(update_components(n), per_turn(units), n, ages),
                |units| frames(contender(n), per_turn(units), n, ages),
            );
        }
    }
}

/// This crate's components, with a closure per entity.
fn update_components(n: usize) -> App {
    let mut app = due_app();
    app.world_mut().spawn_batch((0..n).map(|_| {
        let grow = UpdateComponent::new(|mut me: UpdateContext| {
            if let Some(mut age) = me.entity.get_mut::<Age>() {
                age.0 += me.delta;
            }
        });
        (Age(Duration::ZERO), grow)
    }));
    on_one_thread(app)
}

type Closure = dyn Fn(EntityMutExcept<Callback>, Commands, Duration) + Send + Sync;

#[derive(Component)]
struct Callback(Box<Closure>);

/// A system that calls a boxed closure per entity, in query order. It has no priorities, clocks or
/// pauses, and applies commands after the last call.
fn boxed_closures(n: usize) -> App {
    let mut app = app();
    app.world_mut().spawn_batch((0..n).map(|_| {
        let grow = |mut entity: EntityMutExcept<Callback>, _: Commands, delta| {
            if let Some(mut age) = entity.get_mut::<Age>() {
                age.0 += delta;
            }
        };
        (Age(Duration::ZERO), Callback(Box::new(grow)))
    }));
    app.add_systems(
        PreUpdate,
        |mut entities: Query<(EntityMutExcept<Callback>, &Callback), Without<IsResource>>,
         mut commands: Commands,
         time: Res<Time>| {
            for (entity, callback) in &mut entities {
                callback.0(entity, commands.reborrow(), time.delta());
            }
        },
    );
    on_one_thread(app)
}

/// A plain system, which is the right choice if all entities do the same.
fn plain_system(n: usize) -> App {
    let mut app = app();
    let ages = (0..n).map(|_| Age(Duration::ZERO));
    app.world_mut().spawn_batch(ages);
    app.add_systems(PreUpdate, |mut ages: Query<&mut Age>, time: Res<Time>| {
        for mut age in &mut ages {
            age.0 += time.delta();
        }
    });
    on_one_thread(app)
}

fn ages(app: &mut App) -> u64 {
    let mut ages = app.world_mut().query::<&Age>();
    let ages = ages.iter(app.world()).map(|age| age.0.as_nanos() as u64);
    ages.fold(0, u64::wrapping_add)
}
