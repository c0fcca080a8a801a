//! The serialized form of a [`Clock`].

use core::time::Duration;

use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error};

use super::{
    Clock, Place, id::ClockId, load::Saved, row::Order, speed::InvalidSpeed, state::ClockState,
};

#[derive(Serialize, Deserialize)]
#[serde(rename = "Clock", deny_unknown_fields)]
struct ClockData {
    parent: ClockId,
    speed: f64,
    paused: bool,
    now: Duration,
    /// The fraction of a nanosecond that has passed beyond `now`, in units of 2^-64.
    #[serde(default)]
    fraction: u64,
    /// The place among the clocks of the saved world. Without it, the clock counts as new.
    #[serde(default)]
    order: Option<Order>,
    /// The nanoseconds on the parent that the clock shows in its next run only.
    #[serde(default)]
    behind: u64,
}

impl Serialize for Clock {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        ClockData::from(self).serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Clock {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let data = ClockData::deserialize(deserializer)?;
        data.try_into().map_err(D::Error::custom)
    }
}

impl From<&Clock> for ClockData {
    fn from(clock: &Clock) -> Self {
        let (state, Saved { order, behind }) = clock.saved_state();
        Self {
            parent: state.parent,
            speed: state.speed.ratio(),
            paused: state.paused,
            now: state.shown(),
            fraction: state.carry,
            order,
            behind,
        }
    }
}

impl TryFrom<ClockData> for Clock {
    type Error = InvalidSpeed;

    fn try_from(data: ClockData) -> Result<Self, InvalidSpeed> {
        let mut state = ClockState::new(data.parent);
        state.set_shown(data.now);
        state.paused = data.paused;
        state.carry = data.fraction;
        state.speed = data.speed.try_into()?;
        let saved = Saved {
            order: data.order,
            behind: data.behind,
        };
        Ok(Place::Value(state, saved).into())
    }
}
