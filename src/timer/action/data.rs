//! The serialized form of an action.

use alloc::borrow::Cow;
use core::fmt;

use serde::{Deserialize, Deserializer, Serialize, Serializer, ser::Error as _};

use super::{Kind, TimerAction};

/// The serialized form of a [`TimerAction`].
#[derive(Serialize, Deserialize)]
#[serde(rename = "TimerAction")]
pub(crate) enum ActionData<'a> {
    Nothing,
    Despawn,
    DespawnOwner,
    Named {
        name: Cow<'a, str>,
        data: Cow<'a, [u8]>,
    },
}

impl TimerAction {
    /// Returns the serialized form of the action, or an error if the action is a closure.
    pub(crate) fn to_data(&self) -> Result<ActionData<'_>, UnsavableAction> {
        Ok(match &self.0 {
            Kind::Nothing => ActionData::Nothing,
            Kind::Despawn => ActionData::Despawn,
            Kind::DespawnOwner => ActionData::DespawnOwner,
            Kind::Named { name, data } => ActionData::Named {
                name: Cow::Borrowed(name),
                data: Cow::Borrowed(data),
            },
            Kind::Call(closure, _) => return Err(UnsavableAction { closure }),
        })
    }
}

impl From<ActionData<'_>> for TimerAction {
    fn from(data: ActionData) -> Self {
        match data {
            ActionData::Nothing => Self::default(),
            ActionData::Despawn => Self::despawn(),
            ActionData::DespawnOwner => Self::despawn_owner(),
            ActionData::Named { name, data } => Self::named_with(name.into_owned(), data),
        }
    }
}

impl Serialize for TimerAction {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let data = self.to_data().map_err(S::Error::custom)?;
        data.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for TimerAction {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        ActionData::deserialize(deserializer).map(Self::from)
    }
}

/// The error for saving an action that calls a closure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct UnsavableAction {
    /// The type of the closure or function.
    pub(crate) closure: &'static str,
}

impl fmt::Display for UnsavableAction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "the action calls the closure {}, which can't be saved: register a handler with \
             `add_timer_handler`, and use `TimerAction::named`, or `TimerAction::named_with` for the \
             values that the closure captures",
            self.closure
        )
    }
}

impl core::error::Error for UnsavableAction {}
