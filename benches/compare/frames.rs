//! Turns of whole frames, through `App::update`.

use bevy_app::App;

use crate::sides::{Done, Side, timed};

/// In the first frames, Bevy's time stands still and the message buffers grow.
const WARM_UP: usize = 5;

/// Runs the first frames of an app.
pub fn warm_up(app: &mut App) {
    for _ in 0..WARM_UP {
        app.update();
    }
}

/// Returns a side that runs `frames` frames per turn. Each frame counts as `units` units.
pub fn frames(
    mut app: App,
    frames: usize,
    units: usize,
    mut checksum: impl FnMut(&mut App) -> u64 + 'static,
) -> Side {
    warm_up(&mut app);
    let mut done = Done::default();
    Box::new(move || {
        let time = timed(|| {
            for _ in 0..frames {
                app.update();
            }
        });
        done.units += (frames * units) as u64;
        done.checksum = checksum(&mut app);
        (time, done)
    })
}
