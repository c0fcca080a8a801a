//! The feature `trace`: spans around the handlers of timers.

#![cfg(feature = "trace")]

#[allow(dead_code, reason = "it needs only some of these helpers")]
mod support;

use core::{fmt::Debug, num::NonZeroU64};
use std::sync::Mutex;

use bevy_due::{Timer, prelude::*};
use bevy_ecs::prelude::*;
use support::*;
use tracing::{
    Event, Metadata, Subscriber, error,
    field::{Field, Visit},
    span::{Attributes, Id, Record},
};

/// The spans of timers that have been entered, and the events inside them.
static SEEN: Mutex<Vec<String>> = Mutex::new(Vec::new());

/// Remembers the spans of timers, each with its fields.
struct Recorder;

#[derive(Default)]
struct Fields(String);

impl Visit for Fields {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        self.0 += &format!(" {field}={value:?}");
    }
}

impl Subscriber for Recorder {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.name() == "timer" || metadata.target() == "test"
    }

    fn new_span(&self, span: &Attributes<'_>) -> Id {
        let mut fields = Fields::default();
        span.record(&mut fields);
        SEEN.lock().unwrap().push(format!("timer{}", fields.0));
        Id::from_non_zero_u64(NonZeroU64::MIN)
    }

    fn event(&self, _: &Event<'_>) {
        SEEN.lock().unwrap().push("handler".to_owned());
    }

    fn exit(&self, _: &Id) {
        SEEN.lock().unwrap().push("end".to_owned());
    }

    fn enter(&self, _: &Id) {}
    fn record(&self, _: &Id, _: &Record<'_>) {}
    fn record_follows_from(&self, _: &Id, _: &Id) {}
}

#[test]
fn the_handlers_of_a_timer_run_in_a_span_with_its_name() {
    tracing::subscriber::set_global_default(Recorder).unwrap();
    let mut app = unobserved_app();
    let bomb = (Name::new("bomb"), Timer::after(ms(10)));
    let bomb = app
        .world_mut()
        .spawn(bomb)
        .observe(|_: On<TimerFired>| error!(target: "test", "it explodes"))
        .id();
    let hero = app.world_mut().spawn_empty().id();
    let action = TimerAction::call(|_, _| error!(target: "test", "it heals"));
    let heal = (Timer::after(ms(20)), action);
    app.world_mut().entity_mut(hero).set_timer("potion", heal);
    let potion = app.world().get::<Owned>(hero).unwrap();
    let potion = potion.iter().next().unwrap();
    advance_ms(&mut app, 30);
    assert_eq!(
        *SEEN.lock().unwrap(),
        [
            format!("timer name=bomb entity={bomb}"),
            "handler".into(),
            "end".into(),
            format!("timer name=potion key=\"potion\" entity={potion} owner={hero}"),
            "handler".into(),
            "end".into(),
        ]
    );
}
