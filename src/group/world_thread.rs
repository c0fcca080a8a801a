//! A world on a thread of its own.

use alloc::{borrow::Cow, format, string::String, sync::Arc, vec::Vec};
use core::{
    any::Any,
    panic::AssertUnwindSafe,
    sync::atomic::{AtomicBool, Ordering},
};
use std::{
    panic::catch_unwind,
    sync::mpsc,
    thread::{self, JoinHandle},
    time::Instant,
};

use bevy_app::{
    App, AppExit, FixedMainScheduleOrder, MainScheduleOrder, PluginsState, TaskPoolOptions,
};
use bevy_ecs::schedule::SingleThreadedExecutor;
use bevy_time::TimePlugin;

use super::{Hub, LoopInterval, StartError, WorldReport};
use crate::{
    message::{Inbox, Mail, MessageWorldExt},
    plugin::DuePlugin,
};

/// A world that has been started.
#[derive(Debug)]
pub(super) struct WorldThread {
    pub(super) group: Cow<'static, str>,
    nth: usize,
    is_stopped: Arc<AtomicBool>,
    thread: JoinHandle<WorldReport>,
}

impl WorldThread {
    /// Starts a world, and waits until it is built.
    pub(super) fn start(
        hub: &Arc<Hub>,
        group: Cow<'static, str>,
        nth: usize,
        build: Arc<impl Fn(&mut App) + Send + Sync + 'static>,
    ) -> Result<Self, StartError> {
        let is_stopped = Arc::new(AtomicBool::new(false));
        let (built, when_built) = mpsc::channel();
        let world = WorldLoop {
            hub: hub.clone(),
            group: group.clone(),
            nth,
            is_stopped: is_stopped.clone(),
        };
        let thread = thread::Builder::new()
            .name(format!("{group} {nth}"))
            .spawn(move || {
                let mut app = App::new();
                let was_built = catch_unwind(AssertUnwindSafe(|| world.build(&mut app, &*build)));
                let was_built = was_built.map_err(|panic| what_it_said(&*panic));
                let runs = was_built.is_ok();
                built.send(was_built).ok();
                world.run(app, runs)
            })
            .map_err(StartError::NoThread)?;
        let built = when_built.recv();
        if let Err(message) = built.unwrap_or_else(|_| Err("nothing".into())) {
            // What it had is free again when this is told.
            thread.join().ok();
            return Err(StartError::Panicked(message));
        }
        Ok(Self {
            group,
            nth,
            is_stopped,
            thread,
        })
    }

    pub(super) fn has_ended(&self) -> bool {
        self.thread.is_finished()
    }

    /// Lets the world end, if it has not, and waits for it.
    pub(super) fn stop(self) -> WorldReport {
        self.is_stopped.store(true, Ordering::Release);
        self.thread.thread().unpark();
        let Self { group, nth, .. } = self;
        self.thread.join().unwrap_or_else(|panic| WorldReport {
            group,
            nth,
            exit: None,
            panic: Some(what_it_said(&*panic)),
            undelivered: Vec::new(),
        })
    }
}

/// What the thread of a world knows about itself.
struct WorldLoop {
    hub: Arc<Hub>,
    group: Cow<'static, str>,
    nth: usize,
    is_stopped: Arc<AtomicBool>,
}

impl WorldLoop {
    fn build(&self, app: &mut App, build: &impl Fn(&mut App)) {
        run_here(app);
        build(app);
        // What it does in parallel by itself needs a pool, though.
        TaskPoolOptions::default().create_default_pools();
        if !app.is_plugin_added::<TimePlugin>() {
            app.add_plugins(TimePlugin);
        }
        if !app.is_plugin_added::<DuePlugin>() {
            app.add_plugins(DuePlugin::default());
        }
        app.init_resource::<LoopInterval>();
        while app.plugins_state() == PluginsState::Adding {
            thread::yield_now();
        }
        app.finish();
        app.cleanup();
        let this = thread::current();
        let inbox = app.world().resource::<Inbox>();
        inbox.wake_with(move || this.unpark());
        self.hub.join(self.group.clone(), app);
    }

    /// Runs the world until it is to stop, or panics, and hands back what is left of it.
    fn run(self, mut app: App, runs: bool) -> WorldReport {
        let mut report = WorldReport {
            group: self.group,
            nth: self.nth,
            exit: None,
            panic: None,
            undelivered: Vec::new(),
        };
        if runs {
            let ended = catch_unwind(AssertUnwindSafe(|| {
                let exit = go_round(&mut app, &self.is_stopped);
                (exit, app.world_mut().close_inbox())
            }));
            match ended {
                Ok((exit, undelivered)) => {
                    report.exit = exit;
                    report.undelivered = undelivered;
                }
                Err(panic) => {
                    report.panic = Some(what_it_said(&*panic));
                    report.undelivered = Mail::hand_back(app.world_mut());
                }
            }
        }
        // What panics now has nobody left to disturb.
        let dropped = catch_unwind(AssertUnwindSafe(|| drop(app)));
        if let Err(panic) = dropped {
            report.panic.get_or_insert_with(|| what_it_said(&*panic));
        }
        report
    }
}

/// Lets systems run one after the other on this thread, unless `build` says otherwise. Bevy's pool of
/// threads is for all worlds: a few that wait in a system, for a database say, would hold up all.
fn run_here(app: &mut App) {
    let main = app.world().resource::<MainScheduleOrder>();
    let fixed = app.world().resource::<FixedMainScheduleOrder>();
    let all = [&main.startup_labels, &main.labels, &fixed.labels];
    let all: Vec<_> = all.into_iter().flatten().copied().collect();
    for schedule in all {
        app.edit_schedule(schedule, |schedule| {
            schedule.set_executor(SingleThreadedExecutor::new());
        });
    }
}

/// One frame after the other: at once where something has arrived, and else when it is time.
fn go_round(app: &mut App, is_stopped: &AtomicBool) -> Option<AppExit> {
    // There is a first one in any case: who is spawned in it, or before, may have mail.
    loop {
        let start = Instant::now();
        app.update();
        if let Some(exit) = app.should_exit() {
            return Some(exit);
        }
        let interval = app.world().resource::<LoopInterval>().0;
        while !is_stopped.load(Ordering::Acquire) && !has_mail(app) {
            match interval.checked_sub(start.elapsed()) {
                Some(left) if !left.is_zero() => thread::park_timeout(left),
                _ => break,
            }
        }
        if is_stopped.load(Ordering::Acquire) {
            return None;
        }
    }
}

fn has_mail(app: &App) -> bool {
    let inbox = app.world().get_resource::<Inbox>();
    inbox.is_some_and(|inbox| !inbox.is_empty())
}

fn what_it_said(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().copied();
    let text = text.or_else(|| panic.downcast_ref::<String>().map(String::as_str));
    text.unwrap_or("nothing").into()
}
