//! What carries batches between processes.

use bevy_ecs::error::Result;

use super::handle::GroupsHandle;

/// Connects the groups of this process with those of others, over a messaging engine of your choice.
///
/// A link finds the other processes, and carries batches of bytes to and from each of them: see
/// [`Peer`](crate::link::Peer). [`WorldGroups::join`](crate::WorldGroups::join) opens it, and the end of
/// the groups closes it. Worlds never call a link, and no lock is held during a call.
pub trait Link: Send + 'static {
    /// Starts the engine and the threads that serve it. They [connect](GroupsHandle::connect) each process
    /// that they find.
    ///
    /// # Errors
    ///
    /// Returns an error if the engine does not start.
    fn open(&mut self, groups: GroupsHandle) -> Result;

    /// Ends the engine. The peers are closed by now: send what
    /// [`next_batch`](crate::link::Peer::next_batch) returns until it is `None`.
    ///
    /// This may wait, but for no longer than a user waits for the end of a program. If it panics, the other
    /// links are closed before the panic continues.
    fn close(&mut self);
}
