//! The keys of zenoh that the processes of a cluster use. There are three for each process, and none for an
//! entity, because zenoh takes milliseconds for each key of a large number.

use zenoh::config::ZenohId;

/// The keys of a cluster, as one process uses them.
#[derive(Debug)]
pub(crate) struct Keys {
    pub(crate) cluster: String,
    /// The id of this process. It is random, so that a process that starts again is another one.
    pub(crate) me: String,
}

impl Keys {
    pub(crate) fn new(cluster: &str, me: ZenohId) -> Self {
        let (cluster, me) = (cluster.into(), me.to_string());
        Self { cluster, me }
    }

    /// Returns the key of the batches from this process to another.
    pub(crate) fn to(&self, peer: &str) -> String {
        format!("due/{}/to/{peer}/{}", self.cluster, self.me)
    }

    /// Returns the keys of the batches to this process.
    pub(crate) fn to_me(&self) -> String {
        format!("due/{}/to/{}/*", self.cluster, self.me)
    }

    /// Returns the key of the query whether all batches have arrived here.
    pub(crate) fn arrived(&self) -> String {
        format!("due/{}/arrived/{}", self.cluster, self.me)
    }

    /// Returns the keys of that query in all processes.
    pub(crate) fn all_arrived(&self) -> String {
        format!("due/{}/arrived/*", self.cluster)
    }

    /// Returns the key that shows that this process is alive.
    pub(crate) fn alive(&self, name: &str) -> String {
        format!("due/{}/alive/{}/{name}", self.cluster, self.me)
    }

    /// Returns the keys of all processes that are alive.
    pub(crate) fn all_alive(&self) -> String {
        format!("due/{}/alive/*/*", self.cluster)
    }
}

/// Returns the last part of a key.
pub(crate) fn last(key: &str) -> &str {
    key.rsplit('/').next().unwrap_or_default()
}

/// Returns the id and the name of a process that is alive.
pub(crate) fn id_and_name(key: &str) -> Option<(&str, &str)> {
    let mut parts = key.rsplit('/');
    let name = parts.next()?;
    Some((parts.next()?, name))
}
