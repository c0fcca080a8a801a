//! What a user chooses.

use core::{fmt, time::Duration};

use bevy_due::worlds::link::PeerSettings;
use zenoh::{Config, config::EndPoint};

/// The settings of a [`zenoh_link`](crate::zenoh_link).
///
/// An address is `host:port` for TCP, such as `10.0.0.1:7400`, or an endpoint of zenoh, such as
/// `tls/10.0.0.1:7400`. Any protocol but TCP needs its feature of the crate `zenoh`.
///
/// # Examples
///
/// ```
/// use core::time::Duration;
/// use bevy_due::worlds::link::PeerSettings;
/// use bevy_due_zenoh::ZenohConfig;
///
/// let config = ZenohConfig {
///     name: Some("shard 2".into()),
///     listen: vec!["10.0.0.2:7400".into()],
///     members: vec!["10.0.0.1:7400".into(), "10.0.0.2:7400".into()],
///     peers: PeerSettings { down_after: Duration::from_secs(3), ..PeerSettings::default() },
///     ..ZenohConfig::default()
/// };
/// # _ = config;
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ZenohConfig {
    /// The name of the cluster, `"due"` by default. Processes with different names share nothing, even if
    /// they can reach each other.
    pub cluster: String,
    /// The name of this process, by which other processes know it in
    /// [`PeerChanged`](bevy_due::worlds::link::PeerChanged) and
    /// [`permit`](bevy_due::worlds::WorldGroups::permit). By default it is a random number.
    ///
    /// A process chooses its own name, and others may have the same.
    pub name: Option<String>,
    /// The addresses at which this process listens. By default it takes a free port of `127.0.0.1`, and
    /// only processes on this machine can connect.
    pub listen: Vec<String>,
    /// The addresses of other processes. One is enough to find all, but list every process with a known
    /// address: only a connection to one of these is made again after it breaks. An address of this process
    /// is skipped, so all processes can have the same list.
    pub members: Vec<String>,
    /// The bounds of the connections. Use the same in all processes.
    ///
    /// [`down_after`](PeerSettings::down_after) is at least 100 ms. A shorter one finds a hung process
    /// sooner, but a process that pauses for so long counts as dead.
    pub peers: PeerSettings,
    /// Further settings of zenoh: their paths, such as `"transport/link/tls"`, with values in JSON5. They
    /// replace the ones that this link chooses.
    pub zenoh: Vec<(String, String)>,
}

impl Default for ZenohConfig {
    fn default() -> Self {
        Self {
            cluster: "due".into(),
            name: None,
            listen: vec!["127.0.0.1:0".into()],
            members: Vec::new(),
            peers: PeerSettings::default(),
            zenoh: Vec::new(),
        }
    }
}

/// A setting that can't be used.
#[derive(Debug)]
pub(crate) enum InvalidConfig {
    Name {
        field: &'static str,
        name: String,
    },
    Address {
        field: &'static str,
        address: String,
    },
    DownAfter(Duration),
    Zenoh {
        path: String,
        value: String,
        error: zenoh::Error,
    },
}

impl ZenohConfig {
    /// Returns the settings for zenoh.
    pub(crate) fn to_zenoh(&self) -> Result<Config, InvalidConfig> {
        check_name("cluster", &self.cluster)?;
        if let Some(name) = &self.name {
            check_name("name", name)?;
        }
        let down_after = self.peers.down_after;
        if down_after < Duration::from_millis(100) {
            return Err(InvalidConfig::DownAfter(down_after));
        }
        let listen = endpoints("listen", &self.listen)?;
        let mut members = endpoints("members", &self.members)?;
        members.retain(|member| !listen.contains(member));
        // A parcel of 1 GiB with its head, or the announcement of 30 million keys. Zenoh silently drops
        // what is longer.
        let longest = (2_u64 << 30).to_string();
        let lease = down_after.as_millis().to_string();
        let mut config = Config::default();
        let chosen = [
            ("mode", "'peer'".to_owned()),
            ("scouting/multicast/enabled", "false".to_owned()),
            ("scouting/gossip/enabled", "true".to_owned()),
            ("listen/endpoints", format!("{listen:?}")),
            ("connect/endpoints", format!("{members:?}")),
            // Other processes may start later.
            ("connect/timeout_ms", "0".to_owned()),
            ("connect/exit_on_failure", "false".to_owned()),
            (
                "connect/retry",
                "{ period_init_ms: 100, period_max_ms: 1000, period_increase_factor: 2 }"
                    .to_owned(),
            ),
            ("open/return_conditions/connect_scouted", "false".to_owned()),
            ("transport/link/tx/lease", lease),
            // A put that waits longer than the lease holds up the puts to all other processes.
            (
                "transport/link/tx/queue/congestion_control/block/wait_before_close",
                down_after.as_micros().to_string(),
            ),
            ("transport/link/rx/max_message_size", longest),
        ];
        let chosen = chosen.map(|(path, value)| (path.to_owned(), value));
        for (path, value) in chosen.iter().chain(&self.zenoh) {
            config.insert_json5(path, value).map_err(|error| {
                let (path, value) = (path.clone(), value.clone());
                InvalidConfig::Zenoh { path, value, error }
            })?;
        }
        Ok(config)
    }
}

/// A name becomes a part of a key of zenoh.
fn check_name(field: &'static str, name: &str) -> Result<(), InvalidConfig> {
    let is_special = |it: char| it.is_control() || "/*$#?@".contains(it);
    match name.is_empty() || name.contains(is_special) {
        true => Err(InvalidConfig::Name {
            field,
            name: name.into(),
        }),
        false => Ok(()),
    }
}

/// Writes addresses as endpoints of zenoh.
fn endpoints(field: &'static str, addresses: &[String]) -> Result<Vec<String>, InvalidConfig> {
    let endpoint = |address: &String| {
        let endpoint = match address.contains('/') {
            true => address.clone(),
            false => format!("tcp/{address}"),
        };
        match is_endpoint(&endpoint) {
            true => Ok(endpoint),
            false => Err(InvalidConfig::Address {
                field,
                address: address.clone(),
            }),
        }
    };
    addresses.iter().map(endpoint).collect()
}

fn is_endpoint(endpoint: &str) -> bool {
    let Ok(endpoint) = endpoint.parse::<EndPoint>() else {
        return false;
    };
    if endpoint.protocol().as_str() != "tcp" {
        return true;
    }
    let address = endpoint.address();
    let parts = address.as_str().rsplit_once(':');
    parts.is_some_and(|(host, port)| !host.is_empty() && port.parse::<u16>().is_ok())
}

impl fmt::Display for InvalidConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Name { field, name } => write!(
                f,
                "`{field}` is {name:?}: use at least one character, and neither control characters nor \
                 any of / * $ # ? @"
            ),
            Self::Address { field, address } => write!(
                f,
                "`{field}` contains {address:?}: use a host and a port, such as 10.0.0.1:7400, or an \
                 endpoint of zenoh, such as tls/10.0.0.1:7400"
            ),
            Self::DownAfter(time) => {
                write!(f, "`peers.down_after` is {time:?}: use at least 100 ms")
            }
            Self::Zenoh { path, value, error } => {
                write!(f, "zenoh does not take {value} for {path:?}: {error}")
            }
        }
    }
}

impl core::error::Error for InvalidConfig {}

#[cfg(test)]
mod tests {
    use super::*;

    fn error(config: ZenohConfig) -> String {
        let error = config.to_zenoh().map(drop);
        error.expect_err("it is not valid").to_string()
    }

    #[test]
    fn the_default_is_taken() {
        assert!(ZenohConfig::default().to_zenoh().is_ok());
    }

    #[test]
    fn an_error_names_the_value() {
        for address in [
            "",
            "10.0.0.1",
            ":7400",
            "host:port",
            "10.0.0.1:70000",
            "tcp/",
            "tcp/a",
        ] {
            let bad = vec!["127.0.0.1:1".to_owned(), address.to_owned()];
            let listen = ZenohConfig {
                listen: bad.clone(),
                ..ZenohConfig::default()
            };
            let expected = format!("`listen` contains {address:?}: use a host and a port");
            assert!(error(listen).starts_with(&expected), "{address:?}");
            let members = ZenohConfig {
                members: bad,
                ..ZenohConfig::default()
            };
            assert!(
                error(members).starts_with("`members` contains "),
                "{address:?}"
            );
        }
        for name in ["", "a/b", "a*", "$", "#", "?", "@", "\0"] {
            let cluster = ZenohConfig {
                cluster: name.into(),
                ..ZenohConfig::default()
            };
            assert!(error(cluster).starts_with(&format!("`cluster` is {name:?}: ")));
        }
        let peers = PeerSettings {
            down_after: Duration::from_millis(99),
            ..PeerSettings::default()
        };
        let hasty = ZenohConfig {
            peers,
            ..ZenohConfig::default()
        };
        assert_eq!(
            error(hasty),
            "`peers.down_after` is 99ms: use at least 100 ms"
        );
        let zenoh = vec![("transport/no_such_thing".to_owned(), "1".to_owned())];
        let error = error(ZenohConfig {
            zenoh,
            ..ZenohConfig::default()
        });
        assert!(
            error.starts_with("zenoh does not take 1 for \"transport/no_such_thing\": "),
            "{error}"
        );
    }

    #[test]
    fn the_address_of_this_process_is_skipped() {
        let config = ZenohConfig {
            listen: vec!["10.0.0.1:7400".into()],
            members: vec!["10.0.0.1:7400".into(), "tcp/10.0.0.2:7400".into()],
            ..ZenohConfig::default()
        };
        let config = config.to_zenoh().expect("it is valid");
        let members = config.get_json("connect/endpoints").expect("it is set");
        assert_eq!(members, r#"["tcp/10.0.0.2:7400"]"#);
    }
}
