//! What another process may send.

use alloc::sync::Arc;
use core::fmt;

use super::{address::Address, parcel::Parcel};

/// What another process sends, for the function that
/// [`WorldGroups::permit`](crate::worlds::WorldGroups::permit) sets.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub enum FromPeer<'a> {
    /// A parcel for worlds of this process. If it is not permitted, the sender learns that it is
    /// [`Forbidden`](crate::message::RefusalReason::Forbidden).
    Parcel(&'a Parcel),
    /// The process says that it has the entity with this address. If that is not permitted, parcels for
    /// the address do not go there.
    Key(&'a Address),
    /// The process says that it runs worlds of this group. If that is not permitted, parcels for the
    /// group do not go there.
    Worlds(&'a str),
}

/// A function that permits what another process sends.
#[derive(Clone)]
pub(super) struct Filter(Arc<Permits>);

type Permits = dyn Fn(&str, FromPeer) -> bool + Send + Sync;

impl Filter {
    pub(super) fn new(permits: impl Fn(&str, FromPeer) -> bool + Send + Sync + 'static) -> Self {
        Self(Arc::new(permits))
    }

    pub(super) fn permits(&self, peer: &str, what: FromPeer) -> bool {
        (self.0)(peer, what)
    }
}

impl fmt::Debug for Filter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Filter").finish_non_exhaustive()
    }
}
