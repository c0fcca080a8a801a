//! The owner of a key.

/// Rises with the order of joining, for worlds and other processes. Zero stands for none.
pub(super) type MemberId = u64;

/// Tells which of two claims to a key is newer. It rises with each claim that a process makes, above
/// all that it knows.
pub(super) type Epoch = u64;

/// The claim of a member to a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Claim {
    pub(super) member: MemberId,
    pub(super) epoch: Epoch,
    /// The process of the member. All processes choose alike between claims of the same epoch.
    pub(super) process: u64,
}
