//! The bounds of the connection with another process.

use core::time::Duration;

/// The bounds of the connection with another process.
///
/// # Examples
///
/// ```
/// use bevy_due::worlds::link::PeerSettings;
///
/// let settings = PeerSettings {
///     parcel_bytes: 4 << 20,
///     ..PeerSettings::default()
/// };
/// assert!(settings.parcel_bytes < settings.queue_bytes);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PeerSettings {
    /// The number of bytes that can wait to be sent. A parcel that does not fit is refused with
    /// [`Full`](crate::message::RefusalReason::Full). The default is 16 MiB.
    pub queue_bytes: usize,
    /// The length of the largest payload in bytes, in both directions. A parcel with a longer one is refused
    /// with
    /// [`TooLarge`](crate::message::RefusalReason::TooLarge). The default is 1 MiB, and the limit is 1 GiB.
    pub parcel_bytes: usize,
    /// The number of bytes on their way from which on nothing more is sent until the other process confirms
    /// some. The rest stays in the queue, so that no engine has to hold it. Both processes should have
    /// the same number. The default is 1 MiB.
    pub window_bytes: usize,
    /// The number of bytes from which on a batch takes no further frames. A batch is at most this and one
    /// parcel long. The default is 32 KiB.
    pub batch_bytes: usize,
    /// The time without other frames after which an empty batch is sent. The default is half a
    /// second, and the least is a millisecond. The other process must suspect this one only after several
    /// heartbeats.
    pub heartbeat: Duration,
    /// The time without a batch after which the process is suspected to be dead. The default is two
    /// seconds.
    pub suspect_after: Duration,
    /// The time without a batch after which the process counts as dead. It must be longer than the largest
    /// batch takes. After a [`close`](crate::worlds::link::Peer::close), waiting parcels have this long to be sent. The
    /// default is ten seconds.
    pub down_after: Duration,
}

impl Default for PeerSettings {
    fn default() -> Self {
        Self {
            queue_bytes: 16 << 20,
            parcel_bytes: 1 << 20,
            window_bytes: 1 << 20,
            batch_bytes: 32 << 10,
            heartbeat: Duration::from_millis(500),
            suspect_after: Duration::from_secs(2),
            down_after: Duration::from_secs(10),
        }
    }
}
