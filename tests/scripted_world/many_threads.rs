//! Bevy's multi-threaded executor, which needs the standard library.

use bevy_app::{App, TaskPoolOptions, TaskPoolPlugin};
use bevy_ecs::schedule::MultiThreadedExecutor;

use crate::scripted_world::set_executor;

/// Runs systems on four threads.
pub(crate) fn on_many_threads(app: &mut App) {
    app.add_plugins(TaskPoolPlugin {
        task_pool_options: TaskPoolOptions::with_num_threads(4),
    });
    set_executor(app, MultiThreadedExecutor::new);
}
