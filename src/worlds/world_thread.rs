//! A world on its own thread.

use alloc::{borrow::Cow, format, string::String, sync::Arc, vec::Vec};
use core::{any::Any, mem, panic::AssertUnwindSafe, sync::atomic::Ordering, time::Duration};
use std::{io, panic::catch_unwind, time::Instant};

use bevy_app::{
    App, AppExit, FixedMainScheduleOrder, MainScheduleOrder, PluginsState, TaskPoolOptions,
};
use bevy_ecs::{
    schedule::{InternedScheduleLabel, Schedule, Schedules, SingleThreadedExecutor},
    world::World,
};
#[cfg(not(target_arch = "wasm32"))]
use bevy_tasks::tick_global_task_pools_on_main_thread;
use bevy_time::TimePlugin;
use thiserror::Error;

use super::{
    hub::Hub,
    members::MemberId,
    sleep::{LoopInterval, next_frame, update_after},
    world_link::join,
};
use crate::{
    message::{
        DeliveryState, Inbox, Letter, Mailbag, WaitingMail, close_inbox, deliver_arrivals,
        hand_back,
    },
    sync::{
        AtomicBool, Mutex, PoisonError,
        mpsc::{self, Receiver, Sender, TryRecvError},
        spin_until,
        thread::{self, JoinHandle},
        wait_for_end,
    },
    update::UpdateState,
};

/// The reason why a world could not be started.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum StartError {
    /// The operating system could not create a thread.
    #[error("could not create a thread for the world: {0}")]
    NoThread(#[source] io::Error),
    /// The function that builds the world panicked, with this message.
    #[error("building the world panicked: {0}")]
    Panicked(String),
    /// The function that builds the world did not add a [`DuePlugin`](crate::DuePlugin).
    #[error("the world has no `DuePlugin`: add it in the function that builds the app")]
    NoPlugin,
    /// The groups have been stopped.
    #[error("the groups of worlds have been stopped")]
    Stopped,
}

/// The end of a world of [`WorldGroups`](crate::worlds::WorldGroups).
#[derive(Debug)]
#[non_exhaustive]
pub struct WorldReport {
    /// The group of the world.
    pub group: Cow<'static, str>,
    /// The index of the world in its group, counted from zero. Indices are not reused.
    pub nth: usize,
    /// The exit status, if the world ended by itself.
    pub exit: Option<AppExit>,
    /// The panic message, if the world panicked.
    pub panic: Option<String>,
    /// Whether the world still runs: it did not return within the limit of
    /// [`stop_within`](crate::worlds::WorldGroups::stop_within), and was left behind. A world that stops or
    /// drops the groups to which it belongs does not wait for itself, and is left behind, too.
    ///
    /// It has left its group, but keeps its thread and memory. It ends when it returns, and takes its
    /// undelivered messages with it.
    pub is_left_behind: bool,
    /// The messages that were sent to or in the world, but not delivered.
    ///
    /// Messages without followers are not included. Neither are requests that the world received
    /// but did not reply to: they time out in the asking world.
    pub undelivered: Vec<Letter>,
}

impl WorldReport {
    pub(super) fn new(group: Cow<'static, str>, nth: usize) -> Self {
        Self {
            group,
            nth,
            exit: None,
            panic: None,
            is_left_behind: false,
            undelivered: Vec::new(),
        }
    }
}

/// A world that has been started.
pub(super) struct WorldThread {
    pub(super) group: Cow<'static, str>,
    nth: usize,
    hub: Arc<Hub>,
    member: MemberId,
    is_stopped: Arc<AtomicBool>,
    /// Disconnected once the world has ended.
    ended: Mutex<Receiver<()>>,
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
        let (alive, ended) = mpsc::channel();
        let (of_world, stop) = (hub.clone(), is_stopped.clone());
        let report = WorldReport::new(group.clone(), nth);
        let thread = thread::Builder::new()
            // The name of a thread can't contain a NUL.
            .name(format!("{group} {nth}").replace('\0', "?"))
            .spawn(move || {
                let _alive: Sender<()> = alive;
                run_world(&of_world, &*build, &built, &stop, report)
            })
            .map_err(StartError::NoThread)?;
        let was_built = when_built
            .recv()
            .unwrap_or_else(|_| Err(StartError::Panicked("the thread has ended".into())));
        match was_built {
            Ok(member) => Ok(Self {
                group,
                nth,
                hub: hub.clone(),
                member,
                is_stopped,
                ended: Mutex::new(ended),
                thread,
            }),
            Err(error) => {
                // The app is dropped before the caller gets the error.
                thread.join().ok();
                Err(error)
            }
        }
    }

    pub(super) fn has_ended(&mut self) -> bool {
        self.ended().try_recv() == Err(TryRecvError::Disconnected)
    }

    /// Stops the world, unless it has ended, and waits for its end.
    pub(super) fn stop(self) -> WorldReport {
        self.tell_to_stop();
        self.join()
    }

    /// Stops the world, unless it has ended, and waits for its end. A world that does not end within
    /// the limit leaves its group, and its thread continues.
    pub(super) fn stop_within(mut self, limit: Duration) -> WorldReport {
        self.tell_to_stop();
        match self.is_this_thread() || wait_for_end(self.ended(), limit) {
            true => self.join(),
            false => self.leave_behind(),
        }
    }

    /// Removes a world from its group, and lets its thread continue.
    fn leave_behind(self) -> WorldReport {
        let Self { group, nth, .. } = self;
        self.hub.remove_world(group.clone(), self.member);
        WorldReport {
            is_left_behind: true,
            ..WorldReport::new(group, nth)
        }
    }

    /// Returns `true` if the world itself asks. It can't wait for its own end.
    fn is_this_thread(&self) -> bool {
        self.thread.thread().id() == thread::current().id()
    }

    fn tell_to_stop(&self) {
        self.is_stopped.store(true, Ordering::Release);
        self.thread.thread().unpark();
    }

    fn ended(&mut self) -> &Receiver<()> {
        self.ended.get_mut().unwrap_or_else(PoisonError::into_inner)
    }

    fn join(self) -> WorldReport {
        if self.is_this_thread() {
            return self.leave_behind();
        }
        let Self { group, nth, .. } = self;
        self.thread.join().unwrap_or_else(|panic| WorldReport {
            panic: Some(panic_message(&*panic)),
            ..WorldReport::new(group, nth)
        })
    }
}

/// Builds a world, sends the result to `built`, and runs the world until it is stopped or panics.
fn run_world(
    hub: &Arc<Hub>,
    build: &impl Fn(&mut App),
    built: &Sender<Result<MemberId, StartError>>,
    is_stopped: &AtomicBool,
    mut report: WorldReport,
) -> WorldReport {
    let mut app = App::new();
    let member = catch_unwind(AssertUnwindSafe(|| {
        build_world(&mut app, build)?;
        Ok(join(hub, report.group.clone(), &mut app))
    }))
    .unwrap_or_else(|panic| Err(StartError::Panicked(panic_message(&*panic))));
    let is_built = member.is_ok();
    built.send(member).ok();
    if is_built {
        run_app(&mut app, is_stopped, &mut report);
    }
    // The report includes a panic that happens while the app is dropped.
    let dropped = catch_unwind(AssertUnwindSafe(|| drop(app)));
    if let Err(panic) = dropped {
        report.panic.get_or_insert_with(|| panic_message(&*panic));
    }
    report
}

fn build_world(app: &mut App, build: &impl Fn(&mut App)) -> Result<(), StartError> {
    run_on_this_thread(app);
    build(app);
    // Systems that spawn parallel work need a pool.
    TaskPoolOptions::default().create_default_pools();
    if !app.is_plugin_added::<TimePlugin>() {
        app.add_plugins(TimePlugin);
    }
    app.init_resource::<LoopInterval>();
    while app.plugins_state() == PluginsState::Adding {
        // A plugin may wait for a task on this thread.
        #[cfg(not(target_arch = "wasm32"))]
        tick_global_task_pools_on_main_thread();
        thread::yield_now();
    }
    app.finish();
    app.cleanup();
    remove_empty_schedules(app.world_mut());
    if !app.world().contains_resource::<Mailbag>() {
        return Err(StartError::NoPlugin);
    }
    let this = thread::current();
    let inbox = app.world().resource::<Inbox>();
    inbox.wake_with(move || this.unpark());
    Ok(())
}

/// Runs the frames of a world until it is stopped or panics.
fn run_app(app: &mut App, is_stopped: &AtomicBool, report: &mut WorldReport) {
    let ended = catch_unwind(AssertUnwindSafe(|| {
        let exit = run_frames(app, is_stopped);
        (exit, close_inbox(app.world_mut()))
    }));
    match ended {
        Ok((exit, undelivered)) => {
            report.exit = exit;
            report.undelivered = undelivered;
        }
        Err(panic) => {
            report.panic = Some(panic_message(&*panic));
            report.undelivered = hand_back(app.world_mut());
        }
    }
}

/// Makes the main and fixed schedules run their systems one after the other on this thread, unless
/// `build` changes that. All worlds share Bevy's thread pool, so a few systems that wait for a
/// database would hold up all worlds there.
fn run_on_this_thread(app: &mut App) {
    for schedule in main_and_fixed(app.world()) {
        app.edit_schedule(schedule, |schedule| {
            schedule.set_executor(SingleThreadedExecutor::new());
        });
    }
}

/// Removes the main and fixed schedules that have no systems and no sets, and shrinks the map of schedules. This saves
/// 20 KiB in each world.
fn remove_empty_schedules(world: &mut World) {
    let main_and_fixed = main_and_fixed(world);
    let mut schedules = world.resource_mut::<Schedules>();
    let labels: Vec<_> = schedules.iter().map(|(_, it)| it.label()).collect();
    let mut kept = Schedules::new();
    kept.ignored_scheduling_ambiguities = mem::take(&mut schedules.ignored_scheduling_ambiguities);
    for label in labels {
        let schedule = schedules.remove(label).into_iter();
        let is_used = |it: &Schedule| {
            let has_sets = !it.graph().system_sets.is_empty();
            it.systems_len() > 0 || has_sets || !main_and_fixed.contains(&label)
        };
        schedule.filter(is_used).for_each(|it| _ = kept.insert(it));
    }
    *schedules = kept;
}

fn main_and_fixed(world: &World) -> Vec<InternedScheduleLabel> {
    let main = world.resource::<MainScheduleOrder>();
    let fixed = world.resource::<FixedMainScheduleOrder>();
    let all = [&main.startup_labels, &main.labels, &fixed.labels];
    all.into_iter().flatten().copied().collect()
}

/// The time after a message in which a world looks for the next one before its thread sleeps. A world that
/// runs answers faster, and waking a thread takes several times longer.
const ANSWER_TIME: Duration = Duration::from_micros(10);

/// The time after the start of a frame in which a world delivers messages without another frame. Meanwhile its clocks are
/// no staler than in a frame of this length.
const TALK_TIME: Duration = Duration::from_millis(1);

/// Runs a frame whenever a message has arrived or the [`LoopInterval`] asks for one, and an extra frame
/// after a frame that has put something back.
fn run_frames(app: &mut App, is_stopped: &AtomicBool) -> Option<AppExit> {
    let mut updates: UpdateState = None;
    let mut waiting = WaitingMail::new(app.world_mut());
    let mut delivery: DeliveryState = None;
    let (mut is_extra, mut has_talked) = (false, false);
    let mut slept = Duration::ZERO;
    // The first frame always runs, because entities spawned before may have messages.
    loop {
        let start = Instant::now();
        let was_called = has_talked || Inbox::arrivals(app.world()) > 0;
        update_after(app, slept);
        if let Some(exit) = app.should_exit() {
            return Some(exit);
        }
        // Only one extra frame, so that a world that is refused again and again does not spin.
        is_extra = !is_extra && app.world().get_resource().is_some_and(Mailbag::is_urgent);
        let next = match is_extra {
            true => Some(start),
            false => next_frame(app.world_mut(), &mut updates, start),
        };
        let asleep = Instant::now();
        let end = start + TALK_TIME;
        let end = next.map_or(end, |next| next.min(end));
        // A frame that is due so soon is not kept waiting. The thread may yield before it looks.
        let can_wait = next.is_none_or(|next| next > asleep + TALK_TIME);
        let state = (&mut waiting, &mut delivery);
        has_talked = was_called && can_wait && talk(app.world_mut(), state, end);
        if !has_talked {
            while !is_stopped.load(Ordering::Acquire) && Inbox::arrivals(app.world()) == 0 {
                match next.map(|next| next.saturating_duration_since(Instant::now())) {
                    Some(Duration::ZERO) => break,
                    Some(left) => thread::park_timeout(left),
                    None => thread::park(),
                }
            }
            let state = (&mut waiting, &mut delivery);
            has_talked = !is_stopped.load(Ordering::Acquire) && talk(app.world_mut(), state, end);
        }
        if is_stopped.load(Ordering::Acquire) {
            return None;
        }
        slept = match app.world().resource() {
            LoopInterval::Every(_) => Duration::ZERO,
            LoopInterval::WhenDue(_) => asleep.elapsed(),
        };
    }
}

/// Delivers messages that arrive one at a time, each soon after the last, until `end`. Returns `true` if it has delivered
/// some. A batch of messages is left to the next frame.
fn talk(
    world: &mut World,
    (waiting, delivery): (&mut WaitingMail, &mut DeliveryState),
    end: Instant,
) -> bool {
    let mut has_delivered = false;
    let limit = || end.min(Instant::now() + ANSWER_TIME);
    while spin_until(limit(), || Inbox::arrivals(world) > 0) && Inbox::arrivals(world) == 1 {
        deliver_arrivals(world, waiting, delivery);
        has_delivered = true;
    }
    has_delivered
}

fn panic_message(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().copied();
    let text = text.or_else(|| panic.downcast_ref::<String>().map(String::as_str));
    text.unwrap_or("a panic without a message").into()
}
