//! Reflection of a [`Timer`] as a struct. Times are in nanoseconds.
//!
//! The derive can't show the settings in the box of a timer as its own fields.

use alloc::{boxed::Box, vec::Vec};
use core::{
    any::Any,
    num::{NonZeroU32, NonZeroU64},
};

use bevy_ecs::reflect::ReflectComponent;
use bevy_reflect::{
    ApplyError, FromReflect, GetTypeRegistration, NamedField, PartialReflect, Reflect,
    ReflectCloneError, ReflectFromPtr, ReflectFromReflect, ReflectMut, ReflectOwned, ReflectRef,
    TypeInfo, TypeRegistration, TypeRegistry, Typed,
    std_traits::ReflectDefault,
    structs::{FieldIter, Struct, StructInfo, struct_partial_eq},
    utility::NonGenericTypeInfoCell,
};
#[cfg(feature = "serialize")]
use bevy_reflect::{ReflectDeserialize, ReflectSerialize};

use super::{Options, Timer};

impl Struct for Timer {
    fn field(&self, name: &str) -> Option<&dyn PartialReflect> {
        self.field_at(self.index_of_name(name)?)
    }

    fn field_mut(&mut self, name: &str) -> Option<&mut dyn PartialReflect> {
        self.field_at_mut(self.index_of_name(name)?)
    }

    fn field_at(&self, index: usize) -> Option<&dyn PartialReflect> {
        Some(match index {
            0 => &self.delay,
            1 => &self.interval,
            2 => &self.times,
            _ => return self.options().field_at(index - 3),
        })
    }

    fn field_at_mut(&mut self, index: usize) -> Option<&mut dyn PartialReflect> {
        Some(match index {
            0 => &mut self.delay,
            1 => &mut self.interval,
            2 => &mut self.times,
            _ => return self.options_mut().field_at_mut(index - 3),
        })
    }

    fn name_at(&self, index: usize) -> Option<&str> {
        let info = Self::type_info().as_struct().ok()?;
        Some(info.field_at(index)?.name())
    }

    fn index_of_name(&self, name: &str) -> Option<usize> {
        Self::type_info().as_struct().ok()?.index_of(name)
    }

    fn field_len(&self) -> usize {
        3 + self.options().field_len()
    }

    fn iter_fields(&self) -> FieldIter<'_> {
        FieldIter::new(self)
    }
}

impl PartialReflect for Timer {
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

    /// Replaces the timer by a value of its type. Another struct changes the fields that it has.
    fn try_apply(&mut self, value: &dyn PartialReflect) -> Result<(), ApplyError> {
        if let Some(value) = value.try_downcast_ref::<Self>() {
            *self = value.detached();
            return Ok(());
        }
        for (name, value) in value.reflect_ref().as_struct()? {
            if let Some(field) = self.field_mut(name) {
                field.try_apply(value)?;
            }
        }
        Ok(())
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

    fn reflect_clone(&self) -> Result<Box<dyn Reflect>, ReflectCloneError> {
        Ok(Box::new(self.detached()))
    }

    fn reflect_partial_eq(&self, value: &dyn PartialReflect) -> Option<bool> {
        struct_partial_eq(self, value)
    }
}

impl Reflect for Timer {
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

impl Typed for Timer {
    fn type_info() -> &'static TypeInfo {
        static CELL: NonGenericTypeInfoCell = NonGenericTypeInfoCell::new();
        CELL.get_or_set(|| {
            let options = Options::type_info().as_struct();
            let options = options.into_iter().flat_map(StructInfo::iter).cloned();
            let own = [
                NamedField::new::<u64>("delay"),
                NamedField::new::<Option<NonZeroU64>>("interval"),
                NamedField::new::<Option<NonZeroU32>>("times"),
            ];
            let fields: Vec<_> = own.into_iter().chain(options).collect();
            TypeInfo::Struct(StructInfo::new::<Self>(&fields))
        })
    }
}

impl GetTypeRegistration for Timer {
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
        registry.register::<Option<NonZeroU64>>();
        registry.register::<Option<NonZeroU32>>();
        Options::register_type_dependencies(registry);
    }
}

/// Fields that are missing have their defaults. Fails if a field has another type, or if a timer
/// without an interval should fire several times.
impl FromReflect for Timer {
    fn from_reflect(reflect: &dyn PartialReflect) -> Option<Self> {
        let fields = reflect.reflect_ref().as_struct().ok()?;
        let mut timer = Self::default();
        timer.try_apply(reflect).ok()?;
        if timer.interval.is_some() && fields.field("times").is_none() {
            timer.times = None;
        }
        if timer.interval.is_none() {
            // It can't fire forever.
            timer.times?;
        }
        timer.validated().ok()
    }
}
