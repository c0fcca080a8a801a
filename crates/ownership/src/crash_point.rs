//! Named places in the code at which tests kill the process.
//!
//! Without the feature `crash-points` the macro expands to nothing.

#[cfg(feature = "crash-points")]
use std::sync::OnceLock;

/// Marks a place at which a test can kill the process.
macro_rules! crash_point {
    ($name:literal) => {
        #[cfg(feature = "crash-points")]
        $crate::crash_point::pass($name);
    };
}
pub(crate) use crash_point;

/// Marks a place between two effects of a frame, which the thread of the journal passes.
macro_rules! crash_point_after_commit {
    ($world:expr, $name:literal) => {{
        let held = $world.resource::<$crate::noted::Held>();
        #[cfg(feature = "crash-points")]
        held.push(Box::new(|| $crate::crash_point::pass($name)));
        #[cfg(not(feature = "crash-points"))]
        let _ = held;
    }};
}
pub(crate) use crash_point_after_commit;

/// The names of the crash points of a journal and its committer, in the order in which a journal first
/// passes them.
#[cfg(feature = "crash-points")]
pub const JOURNAL_CRASH_POINTS: &[&str] = &[
    "segment.created",
    "segment.header_synced",
    "tail.cut",
    "batch.half_written",
    "batch.written",
    "batch.synced",
    "boot.synced",
    "journal.opened",
    "effects.half_released",
    "effects.released",
    "live.copied",
    "segment.deleted",
];

/// The names of the crash points of zones: a start, the end of a frame, an entity that moves, a letter.
#[cfg(feature = "crash-points")]
pub const ZONE_CRASH_POINTS: &[&str] = &[
    "zone.recovered",
    "zone.brought_back",
    "zone.opened",
    "frame.begun",
    "frame.captured",
    "frame.told",
    "frame.submitted",
    "move.begun",
    "move.exported",
    "move.forgotten",
    "move.queued",
    "items.committed",
    "items.sent",
    "items.received",
    "items.numbered",
    "items.taken",
    "entity.received",
    "entity.imported",
    "entity.settled",
    "letters.queued",
    "letters.received",
    "letters.delivered",
    "letters.confirmed",
    "have.committed",
    "have.sent",
    "have.received",
    "have.noted",
    "waiting.added",
    "waiting.stored",
    "waiting.routed",
];

#[cfg(feature = "crash-points")]
type Hook = Box<dyn Fn(&'static str) + Send + Sync>;

#[cfg(feature = "crash-points")]
static HOOK: OnceLock<Hook> = OnceLock::new();

/// Calls `hook` with the name of each crash point that a thread of this process passes.
///
/// The first hook stays for the life of the process.
#[cfg(feature = "crash-points")]
pub fn set_crash_hook(hook: impl Fn(&'static str) + Send + Sync + 'static) {
    _ = HOOK.set(Box::new(hook));
}

#[cfg(feature = "crash-points")]
pub(crate) fn pass(name: &'static str) {
    debug_assert!(
        JOURNAL_CRASH_POINTS.contains(&name) || ZONE_CRASH_POINTS.contains(&name),
        "`{name}` is in no table of crash points"
    );
    if let Some(hook) = HOOK.get() {
        hook(name);
    }
}
