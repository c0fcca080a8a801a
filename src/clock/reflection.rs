//! Reflection of a [`Clock`] as a struct with the fields `parent`, `speed`, `paused` and `now`.

use alloc::boxed::Box;
use core::{any::Any, fmt, time::Duration};

use bevy_ecs::reflect::ReflectComponent;
use bevy_reflect::{
    ApplyError, FromReflect, GetTypeRegistration, NamedField, PartialReflect, Reflect,
    ReflectCloneError, ReflectFromPtr, ReflectFromReflect, ReflectKind, ReflectMut, ReflectOwned,
    ReflectRef, TypeInfo, TypeRegistration, TypeRegistry, Typed,
    std_traits::ReflectDefault,
    structs::{FieldIter, Struct, StructInfo, struct_partial_eq},
    utility::NonGenericTypeInfoCell,
};
#[cfg(feature = "serialize")]
use bevy_reflect::{ReflectDeserialize, ReflectSerialize};

use super::{Clock, fields::ClockFields, id::ClockId};

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

impl Struct for Clock {
    fn field(&self, name: &str) -> Option<&dyn PartialReflect> {
        self.read().field(name)
    }

    fn field_mut(&mut self, name: &str) -> Option<&mut dyn PartialReflect> {
        self.write().field_mut(name)
    }

    fn field_at(&self, index: usize) -> Option<&dyn PartialReflect> {
        self.read().field_at(index)
    }

    fn field_at_mut(&mut self, index: usize) -> Option<&mut dyn PartialReflect> {
        self.write().field_at_mut(index)
    }

    fn name_at(&self, index: usize) -> Option<&str> {
        let field = struct_info().field_at(index)?;
        Some(field.name())
    }

    fn index_of_name(&self, name: &str) -> Option<usize> {
        struct_info().index_of(name)
    }

    fn field_len(&self) -> usize {
        struct_info().field_len()
    }

    fn iter_fields(&self) -> FieldIter<'_> {
        FieldIter::new(self)
    }
}

impl PartialReflect for Clock {
    fn get_represented_type_info(&self) -> Option<&'static TypeInfo> {
        Some(Self::type_info())
    }

    fn into_partial_reflect(self: Box<Self>) -> Box<dyn PartialReflect> {
        self
    }

    fn as_partial_reflect(&self) -> &dyn PartialReflect {
        self
    }

    fn as_partial_reflect_mut(&mut self) -> &mut dyn PartialReflect {
        self
    }

    fn try_into_reflect(self: Box<Self>) -> Result<Box<dyn Reflect>, Box<dyn PartialReflect>> {
        Ok(self)
    }

    fn try_as_reflect(&self) -> Option<&dyn Reflect> {
        Some(self)
    }

    fn try_as_reflect_mut(&mut self) -> Option<&mut dyn Reflect> {
        Some(self)
    }

    /// Applying a clock replaces this one. Applying a struct changes the fields that it has.
    fn try_apply(&mut self, value: &dyn PartialReflect) -> Result<(), ApplyError> {
        if let Some(clock) = value.try_downcast_ref::<Self>() {
            *self = clock.detached();
            return Ok(());
        }
        for (name, value) in value.reflect_ref().as_struct()? {
            if let Some(field) = self.field_mut(name) {
                field.try_apply(value)?;
            }
        }
        Ok(())
    }

    fn reflect_kind(&self) -> ReflectKind {
        ReflectKind::Struct
    }

    fn reflect_ref(&self) -> ReflectRef<'_> {
        ReflectRef::Struct(self)
    }

    fn reflect_mut(&mut self) -> ReflectMut<'_> {
        ReflectMut::Struct(self)
    }

    fn reflect_owned(self: Box<Self>) -> ReflectOwned {
        ReflectOwned::Struct(self)
    }

    /// In contrast to a plain clone, the result keeps its place in the order, as a saved clock does.
    fn reflect_clone(&self) -> Result<Box<dyn Reflect>, ReflectCloneError> {
        Ok(Box::new(self.detached()))
    }

    fn reflect_partial_eq(&self, value: &dyn PartialReflect) -> Option<bool> {
        match value.try_downcast_ref::<Self>() {
            Some(clock) => Some(self == clock),
            None => struct_partial_eq(self, value),
        }
    }

    fn debug(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self, f)
    }
}

impl Reflect for Clock {
    fn into_any(self: Box<Self>) -> Box<dyn Any> {
        self
    }

    fn as_any(&self) -> &dyn Any {
        self
    }

    fn as_any_mut(&mut self) -> &mut dyn Any {
        self
    }

    fn into_reflect(self: Box<Self>) -> Box<dyn Reflect> {
        self
    }

    fn as_reflect(&self) -> &dyn Reflect {
        self
    }

    fn as_reflect_mut(&mut self) -> &mut dyn Reflect {
        self
    }

    fn set(&mut self, value: Box<dyn Reflect>) -> Result<(), Box<dyn Reflect>> {
        *self = value.take()?;
        Ok(())
    }
}

impl FromReflect for Clock {
    fn from_reflect(reflect: &dyn PartialReflect) -> Option<Self> {
        let mut clock = Self::default();
        clock.try_apply(reflect).ok()?;
        Some(clock)
    }
}

impl Typed for Clock {
    fn type_info() -> &'static TypeInfo {
        static CELL: NonGenericTypeInfoCell = NonGenericTypeInfoCell::new();
        CELL.get_or_set(|| {
            TypeInfo::Struct(StructInfo::new::<Self>(&[
                NamedField::new::<ClockId>("parent"),
                NamedField::new::<f64>("speed"),
                NamedField::new::<bool>("paused"),
                NamedField::new::<Duration>("now"),
            ]))
        })
    }
}

fn struct_info() -> &'static StructInfo {
    match Clock::type_info() {
        TypeInfo::Struct(info) => info,
        info => unreachable!("a clock is a struct, not {info:?}"),
    }
}

impl GetTypeRegistration for Clock {
    fn get_type_registration() -> TypeRegistration {
        let mut registration = TypeRegistration::of::<Self>();
        registration.register_type_data::<ReflectFromPtr, Self>();
        registration.register_type_data::<ReflectFromReflect, Self>();
        registration.register_type_data::<ReflectComponent, Self>();
        registration.register_type_data::<ReflectDefault, Self>();
        #[cfg(feature = "serialize")]
        {
            registration.register_type_data::<ReflectSerialize, Self>();
            registration.register_type_data::<ReflectDeserialize, Self>();
        }
        registration
    }

    fn register_type_dependencies(registry: &mut TypeRegistry) {
        registry.register::<ClockId>();
        registry.register::<f64>();
        registry.register::<bool>();
        registry.register::<Duration>();
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
