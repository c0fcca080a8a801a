//! The fields of a serialized struct.

use serde::{Serialize, Serializer, ser::SerializeStruct};

/// Serializes the fields of a struct. A format that people read leaves out those with their default.
///
/// Other formats may not write the names, so they need all fields.
pub(super) struct Fields<S: Serializer> {
    fields: S::SerializeStruct,
    leaves_out: bool,
}

impl<S: Serializer> Fields<S> {
    pub(super) fn new(serializer: S, name: &'static str, len: usize) -> Result<Self, S::Error> {
        let leaves_out = serializer.is_human_readable();
        let fields = serializer.serialize_struct(name, len)?;
        Ok(Self { fields, leaves_out })
    }

    pub(super) fn required<T: Serialize>(
        &mut self,
        name: &'static str,
        value: &T,
    ) -> Result<(), S::Error> {
        self.fields.serialize_field(name, value)
    }

    /// Adds a field that may be left out.
    pub(super) fn add<T: Serialize + Default + PartialEq>(
        &mut self,
        name: &'static str,
        value: &T,
    ) -> Result<(), S::Error> {
        match self.leaves_out && *value == T::default() {
            true => self.fields.skip_field(name),
            false => self.required(name, value),
        }
    }

    pub(super) fn end(self) -> Result<S::Ok, S::Error> {
        self.fields.end()
    }
}
