//! Reflection as a struct, for types that do not store their fields as reflection shows them.

use bevy_reflect::{FromReflect, PartialReflect, Typed};

/// A type with fields that reflection shows as the fields of a struct.
pub(crate) trait ShownFields: FromReflect + Typed + Sized {
    /// Returns the field with this name.
    fn shown(&self, name: &str) -> Option<&dyn PartialReflect>;

    /// Returns the field with this name, for a write.
    fn shown_mut(&mut self, name: &str) -> Option<&mut dyn PartialReflect>;

    /// Returns a copy for reflection to keep.
    fn detached(&self) -> Self;

    /// Takes over another value.
    fn replace_by(&mut self, other: &Self);
}

/// Implements reflection as a struct for a component with [`ShownFields`], which has these fields.
///
/// Applying a value of the type replaces this one. Applying a struct changes the fields that it has.
macro_rules! reflect_as_struct {
    ($type:ty { $($field:ident: $field_type:ty,)* }) => {
        const _: () = {
            use alloc::boxed::Box;
            use core::{any::Any, fmt};

            use bevy_ecs::reflect::ReflectComponent;
            use bevy_reflect::{
                ApplyError, GetTypeRegistration, NamedField, PartialReflect, Reflect,
                ReflectCloneError, ReflectFromPtr, ReflectFromReflect, ReflectKind, ReflectMut,
                ReflectOwned, ReflectRef, TypeInfo, TypeRegistration, TypeRegistry, Typed,
                std_traits::ReflectDefault,
                structs::{FieldIter, Struct, StructInfo, struct_partial_eq},
                utility::NonGenericTypeInfoCell,
            };
            #[cfg(feature = "serialize")]
            use bevy_reflect::{ReflectDeserialize, ReflectSerialize};

            use crate::shown_fields::ShownFields;

            fn info() -> &'static StructInfo {
                match <$type>::type_info() {
                    TypeInfo::Struct(info) => info,
                    info => unreachable!("not a struct: {info:?}"),
                }
            }

            impl Struct for $type {
                fn field(&self, name: &str) -> Option<&dyn PartialReflect> {
                    self.shown(name)
                }

                fn field_mut(&mut self, name: &str) -> Option<&mut dyn PartialReflect> {
                    self.shown_mut(name)
                }

                fn field_at(&self, index: usize) -> Option<&dyn PartialReflect> {
                    self.shown(info().field_at(index)?.name())
                }

                fn field_at_mut(&mut self, index: usize) -> Option<&mut dyn PartialReflect> {
                    self.shown_mut(info().field_at(index)?.name())
                }

                fn name_at(&self, index: usize) -> Option<&str> {
                    info().field_at(index).map(|field| field.name())
                }

                fn index_of_name(&self, name: &str) -> Option<usize> {
                    info().index_of(name)
                }

                fn field_len(&self) -> usize {
                    info().field_len()
                }

                fn iter_fields(&self) -> FieldIter<'_> {
                    FieldIter::new(self)
                }
            }

            impl PartialReflect for $type {
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

                fn try_into_reflect(
                    self: Box<Self>,
                ) -> Result<Box<dyn Reflect>, Box<dyn PartialReflect>> {
                    Ok(self)
                }

                fn try_as_reflect(&self) -> Option<&dyn Reflect> {
                    Some(self)
                }

                fn try_as_reflect_mut(&mut self) -> Option<&mut dyn Reflect> {
                    Some(self)
                }

                fn try_apply(&mut self, value: &dyn PartialReflect) -> Result<(), ApplyError> {
                    if let Some(value) = value.try_downcast_ref::<Self>() {
                        self.replace_by(value);
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

                fn reflect_clone(&self) -> Result<Box<dyn Reflect>, ReflectCloneError> {
                    Ok(Box::new(ShownFields::detached(self)))
                }

                fn reflect_partial_eq(&self, value: &dyn PartialReflect) -> Option<bool> {
                    match value.try_downcast_ref::<Self>() {
                        Some(value) => Some(self == value),
                        None => struct_partial_eq(self, value),
                    }
                }

                fn debug(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                    fmt::Debug::fmt(self, f)
                }
            }

            impl Reflect for $type {
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

            impl Typed for $type {
                fn type_info() -> &'static TypeInfo {
                    static CELL: NonGenericTypeInfoCell = NonGenericTypeInfoCell::new();
                    CELL.get_or_set(|| {
                        TypeInfo::Struct(StructInfo::new::<Self>(&[
                            $(NamedField::new::<$field_type>(stringify!($field)),)*
                        ]))
                    })
                }
            }

            impl GetTypeRegistration for $type {
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
                    $(registry.register::<$field_type>();)*
                }
            }
        };
    };
}

pub(crate) use reflect_as_struct;
