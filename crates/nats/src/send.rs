//! The thread that sends to another process.

use async_nats::{Client, PublishErrorKind, Subject};
use bevy_due::worlds::link::Peer;
use tokio::runtime::Handle;

/// Sends the batches for a process, until it has gone or the link is closed.
///
/// A publish only waits while the client has thousands of batches to write. The windows of
/// [`PeerSettings`](bevy_due::worlds::link::PeerSettings) make this rare, and the pings of the client end it if the server is silent. That a
/// publish succeeds proves nothing: the two ends of a [`Peer`] notice what is missing.
pub(crate) fn send(handle: &Handle, client: &Client, [to, from]: [Subject; 2], peer: &Peer) {
    while let Some(batch) = peer.next_batch() {
        // The server replies if the process does not listen.
        let publish = client.publish_with_reply(to.clone(), from.clone(), batch.into());
        match handle.block_on(publish) {
            Ok(()) => {}
            Err(error) if error.kind() == PublishErrorKind::MaxPayloadExceeded => {
                tracing::error!(
                    "can't send a batch to {peer}: {error}: raise `max_payload` of the server, or use a \
                     shorter name for the group"
                );
                peer.disconnected();
            }
            Err(error) => {
                tracing::debug!("no longer sends to {peer}: {error}");
                return;
            }
        }
    }
}
