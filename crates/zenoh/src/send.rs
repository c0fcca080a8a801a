//! The thread that sends to another process.

use bevy_due::worlds::link::Peer;
use zenoh::{Session, Wait, qos::CongestionControl};

/// Sends the batches for a process, until it has gone or the link is closed.
///
/// A put waits while the connection is congested, at most for the lease. The window of
/// [`PeerSettings`](bevy_due::worlds::link::PeerSettings) keeps so little on its way that this is rare, and this thread serves no other process.
/// That a put succeeds proves nothing: the two ends of a [`Peer`] notice what is missing.
pub(crate) fn send(session: Session, key: String, peer: &Peer) -> zenoh::Result<()> {
    // A batch is as long as it should be, so the engine need not wait for more.
    let publisher = session
        .declare_publisher(key)
        .congestion_control(CongestionControl::Block)
        .express(true)
        .wait()?;
    drop(session);
    while let Some(batch) = peer.next_batch() {
        publisher.put(batch).wait()?;
    }
    Ok(())
}
