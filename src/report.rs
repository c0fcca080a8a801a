//! Reports to Bevy's error handler.

#[cfg(feature = "std")]
use bevy_ecs::error::Severity;
use bevy_ecs::{
    error::{ErrorContext, FallbackErrorHandler},
    prelude::*,
    utils::prelude::DebugName,
};

/// Reports an error without an entity to Bevy's error handler.
pub(crate) fn report<Of>(world: &World, error: BevyError) {
    let name = DebugName::type_name::<Of>();
    hand_over(world.get_resource(), error, ErrorContext::Command { name });
}

/// Hands an error to the error handler of the game, or else to that of Bevy.
///
/// Bevy's own handler logs it. Without a logger, nobody would see it, so it also goes to standard error, once.
pub(crate) fn hand_over(
    handler: Option<&FallbackErrorHandler>,
    error: BevyError,
    context: ErrorContext,
) {
    #[cfg(feature = "std")]
    {
        let is_logged = matches!(error.severity(), Severity::Warning | Severity::Error);
        if handler.is_none() && is_logged && log::max_level() == log::LevelFilter::Off {
            show_once(&alloc::format!("{error}"));
        }
    }
    handler.copied().unwrap_or_default().0(error, context);
}

/// Returns the error of a component that can't be serialized. It is also logged, once: some formats and crates swallow
/// its text.
#[cfg(feature = "serialize")]
pub(crate) fn unserializable<E: serde::ser::Error>(why: impl core::fmt::Display) -> E {
    #[cfg(feature = "std")]
    show_once(&alloc::format!("{why}"));
    E::custom(why)
}

/// The texts that were shown once. A game that makes ever new mistakes does not fill the memory.
#[cfg(feature = "std")]
const MOST_TEXTS: usize = 100;

/// Logs a text, once, or prints it to standard error in an app without a logger.
#[cfg(feature = "std")]
fn show_once(text: &str) {
    use alloc::{borrow::ToOwned, collections::BTreeSet, string::String};
    use std::sync::{Mutex, PoisonError};

    static SHOWN: Mutex<BTreeSet<String>> = Mutex::new(BTreeSet::new());
    let mut shown = SHOWN.lock().unwrap_or_else(PoisonError::into_inner);
    if shown.len() >= MOST_TEXTS || !shown.insert(text.to_owned()) {
        return;
    }
    let text = text.trim_end();
    match log::max_level() {
        log::LevelFilter::Off => {
            std::eprintln!("bevy_due: {text} (shown once, because the app has no logger)");
        }
        _ => log::error!("{text}"),
    }
}
