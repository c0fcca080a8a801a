//! Why a parcel to other worlds was refused.

use core::fmt;

#[cfg(feature = "bevy_reflect")]
use bevy_reflect::Reflect;

/// The reason why a parcel to other worlds was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
#[cfg_attr(
    feature = "bevy_reflect",
    derive(Reflect),
    type_path = "bevy_due",
    reflect(Clone, Debug, PartialEq, Hash)
)]
#[cfg_attr(feature = "serialize", derive(serde::Serialize, serde::Deserialize))]
pub enum RefusalReason {
    /// This world has no link to others.
    NoLink,
    /// The group does not exist, or none of its worlds is running.
    UnknownGroup,
    /// No entity of the group has this key.
    UnknownKey,
    /// The inbox of the receiving world is full, or too much waits for its process. The world that sent
    /// the parcel gets [`HasRoom`](crate::link::HasRoom) when that is over.
    Full,
    /// Some worlds of the group refused the parcel, and others accepted it. If you send the parcel
    /// again, the others get it twice.
    InPart,
    /// The asking entity has no [`StableKey`](crate::StableKey), so a reply could not find it.
    NoKey,
    /// The payload is longer than
    /// [`PeerSettings::parcel_bytes`](crate::link::PeerSettings::parcel_bytes).
    TooLarge,
    /// The process that had taken the parcel became unreachable. It may have received the parcel.
    PeerLost,
    /// The other process does not take this parcel from this one.
    Forbidden,
}

impl fmt::Display for RefusalReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NoLink => "this world has no link to others: insert a `WorldLink`",
            Self::UnknownGroup => "no world of this group runs",
            Self::UnknownKey => "no entity of the group has this key",
            Self::Full => {
                "the inbox of the receiving world, or the queue of its process, is full: send again \
                 after `HasRoom`, or raise `DuePlugin::inbox_capacity`, `inbox_bytes` or \
                 `PeerSettings::queue_bytes`"
            }
            Self::InPart => "only some worlds of the group took the parcel",
            Self::TooLarge => {
                "the payload is too large for the link: send it in parts, or raise \
                 `PeerSettings::parcel_bytes`"
            }
            Self::PeerLost => "the process that had taken the parcel became unreachable",
            Self::Forbidden => "the other process does not permit this parcel",
            Self::NoKey => "the asking entity has no stable key: insert a `StableKey`",
        })
    }
}
