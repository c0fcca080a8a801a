//! Worlds that send each other parcels, on threads of this process or in other processes.
//!
//! A parcel goes down this list of modules in reverse: from a group or an entity, over a link, into
//! the inbox of another world.

mod address;

mod parcel;

mod link;

mod receive;

mod ext;

mod group;

mod hub;

mod report;

mod world_thread;

mod groups;

pub(crate) use address::bind;
pub use address::{Address, StableKey};
pub use ext::{ParcelCommandsExt, ParcelEntityCommandsExt};
pub use groups::{ParcelReceiver, WorldGroups};
pub use link::{Link, WorldLink};
pub use parcel::{Parcel, Refused};
pub use report::{LoopInterval, StartError, WorldReport};
