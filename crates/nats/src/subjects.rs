//! The subjects of NATS that the processes of a cluster use.

use core::hash::BuildHasher;
use std::hash::RandomState;

use async_nats::Subject;

/// Stands for the ids of all processes.
pub(crate) const ALL: &str = "all";

/// The subjects of a cluster, as one process uses them.
///
/// A process listens to three patterns, and has no subject for an entity or a group.
#[derive(Clone, Debug)]
pub(crate) struct Subjects {
    cluster: String,
    /// The id of this process. It is random, so that a process that starts again is another one.
    pub(crate) me: String,
}

impl Subjects {
    pub(crate) fn new(cluster: &str) -> Self {
        let me = format!("{:016x}", RandomState::new().hash_one(cluster));
        let cluster = cluster.into();
        Self { cluster, me }
    }

    /// Returns the subject of the batches from this process to another.
    pub(crate) fn to(&self, peer: &str) -> Subject {
        self.subject("to", peer, &self.me)
    }

    /// Returns the subject of the batches from another process. It is the reply subject of those to that
    /// process, so the server writes to it if nobody listens there.
    pub(crate) fn from(&self, peer: &str) -> Subject {
        self.subject("to", &self.me, peer)
    }

    /// Returns the subject by which this process introduces itself to another, or to [`ALL`].
    pub(crate) fn here(&self, peer: &str) -> Subject {
        self.subject("here", peer, &self.me)
    }

    /// Returns the reply subject of an introduction that asks the others to introduce themselves. They answer
    /// with [`here`](Self::here).
    pub(crate) fn answer(&self) -> Subject {
        self.subject("here", &self.me, "answer")
    }

    /// Returns the patterns of introductions to this process.
    pub(crate) fn introductions(&self) -> [Subject; 2] {
        [ALL, &self.me].map(|to| self.subject("here", to, "*"))
    }

    /// Returns the pattern of the batches to this process.
    pub(crate) fn to_me(&self) -> Subject {
        self.from("*")
    }

    /// Returns a subject that nobody listens to.
    pub(crate) fn nobody(&self) -> Subject {
        self.subject("nobody", "to", &self.me)
    }

    fn subject(&self, kind: &str, to: &str, from: &str) -> Subject {
        format!("bevy_due.{}.{kind}.{to}.{from}", self.cluster).into()
    }
}

/// Returns the id of the process that has sent a message.
pub(crate) fn sender_of(subject: &Subject) -> &str {
    subject.rsplit('.').next().unwrap_or_default()
}
