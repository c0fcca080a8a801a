//! The names of keys, as small numbers.

use alloc::{borrow::Cow, boxed::Box, vec::Vec};
use core::num::NonZeroU32;

use bevy_platform::{
    collections::HashMap,
    hash::FixedHasher,
    sync::{PoisonError, RwLock},
};

/// The number of a name. Equal names have equal numbers in all worlds of the process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct KeyId(NonZeroU32);

/// All names so far. A name is never dropped.
struct Names {
    ids: HashMap<&'static str, KeyId>,
    names: Vec<&'static str>,
}

static NAMES: RwLock<Names> = RwLock::new(Names {
    ids: HashMap::with_hasher(FixedHasher),
    names: Vec::new(),
});

impl KeyId {
    /// Returns the number of a name, which may be new.
    pub(crate) fn of(name: Cow<'static, str>) -> Self {
        if let Some(id) = Self::find(&name) {
            return id;
        }
        let mut names = NAMES.write().unwrap_or_else(PoisonError::into_inner);
        names.insert(name)
    }

    /// Returns the number of a name that has been used before.
    pub(crate) fn find(name: &str) -> Option<Self> {
        let names = NAMES.read().unwrap_or_else(PoisonError::into_inner);
        names.ids.get(name).copied()
    }

    /// Returns the key with this number, or `None` for zero.
    pub(super) fn from_number(number: u32) -> Option<Self> {
        NonZeroU32::new(number).map(Self)
    }

    pub(super) fn number(self) -> u32 {
        self.0.get()
    }

    pub(crate) fn name(self) -> &'static str {
        let names = NAMES.read().unwrap_or_else(PoisonError::into_inner);
        let name = names.names.get(self.0.get() as usize - 1);
        name.copied().unwrap_or_default()
    }
}

impl Names {
    fn insert(&mut self, name: Cow<'static, str>) -> KeyId {
        // Another thread may have inserted the name in the meantime.
        if let Some(&id) = self.ids.get(&*name) {
            return id;
        }
        let name = match name {
            Cow::Borrowed(name) => name,
            Cow::Owned(name) => Box::leak(name.into_boxed_str()),
        };
        self.names.push(name);
        let number = u32::try_from(self.names.len()).ok();
        let number = number.filter(|&number| number <= u32::MAX >> 1);
        let number = number.and_then(NonZeroU32::new);
        let id = KeyId(number.expect("two billion names do not fit into memory"));
        self.ids.insert(name, id);
        id
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_names_have_equal_numbers() {
        let id = KeyId::of("a name of this test".into());
        assert_eq!(KeyId::of(Cow::Owned("a name of this test".into())), id);
        assert_eq!(KeyId::find("a name of this test"), Some(id));
        assert_eq!(id.name(), "a name of this test");
        assert_eq!(KeyId::find("no name of this test"), None);
        assert_ne!(KeyId::of("another name of this test".into()), id);
        assert_eq!(size_of::<Option<KeyId>>(), 4);
    }
}
