//! Reflection of a [`Clock`] as a struct with the fields `parent`, `speed`, `paused` and `now`.

use core::time::Duration;

use bevy_reflect::{FromReflect, PartialReflect, structs::Struct};

use super::{Clock, fields::ClockFields, id::ClockId};
use crate::shown_fields::{ShownFields, reflect_as_struct};

reflect_as_struct!(Clock {
    parent: ClockId,
    speed: f64,
    paused: bool,
    now: Duration,
});

impl Clock {
    /// Returns the fields as they are now.
    fn read(&self) -> &ClockFields {
        let (fields, is_kept) = self.fields.read(&self.state());
        if is_kept {
            self.note();
        }
        fields
    }

    /// Returns the fields for a write, which takes effect in the next run.
    fn write(&mut self) -> &mut ClockFields {
        self.note();
        let state = self.place.state();
        self.fields.write(&state)
    }
}

impl ShownFields for Clock {
    fn shown(&self, name: &str) -> Option<&dyn PartialReflect> {
        self.read().field(name)
    }

    fn shown_mut(&mut self, name: &str) -> Option<&mut dyn PartialReflect> {
        self.write().field_mut(name)
    }

    /// In contrast to a plain clone, the result keeps its place in the order, as a saved clock does.
    fn detached(&self) -> Self {
        Self::detached(self)
    }

    fn replace_by(&mut self, other: &Self) {
        *self = Self::detached(other);
    }
}

impl FromReflect for Clock {
    fn from_reflect(reflect: &dyn PartialReflect) -> Option<Self> {
        let mut clock = Self::default();
        clock.try_apply(reflect).ok()?;
        Some(clock)
    }
}

#[cfg(test)]
mod tests {
    use bevy_app::App;
    use bevy_time::TimePlugin;

    use super::*;
    use crate::DuePlugin;

    #[test]
    fn what_reflection_has_read_is_forgotten_in_the_next_run() {
        let mut app = App::new();
        app.add_plugins((TimePlugin, DuePlugin::default()));
        let own = app.world_mut().spawn(Clock::new()).id();
        for _ in 0..3 {
            let clock = app.world().get::<Clock>(own).expect("spawned");
            assert!(!clock.fields.is_read());
            for _ in 0..3 {
                clock.field("now").expect("a field");
            }
            assert!(clock.fields.is_read());
            app.update();
        }
    }
}
