//! What a user chooses.

use core::{fmt, time::Duration};
use std::io;

use async_nats::{ConnectOptions, ServerAddr};
use bevy_due::worlds::link::PeerSettings;

/// The settings of a [`nats_link`](crate::nats_link).
///
/// An address is `host:port`, such as `10.0.0.1:4222`, or a URL, such as `tls://nats.example.org`, which needs
/// the feature `tls`.
///
/// # Examples
///
/// ```
/// use core::time::Duration;
/// use bevy_due::worlds::link::PeerSettings;
/// use bevy_due_nats::{ConnectOptions, NatsConfig};
///
/// let config = NatsConfig {
///     name: Some("shard 2".into()),
///     servers: vec!["10.0.0.1:4222".into(), "10.0.0.2:4222".into()],
///     peers: PeerSettings { down_after: Duration::from_secs(3), ..PeerSettings::default() },
///     options: ConnectOptions::with_user_and_password("game".into(), "secret".into()),
///     ..NatsConfig::default()
/// };
/// # _ = config;
/// ```
#[derive(Clone, Debug)]
pub struct NatsConfig {
    /// The name of the cluster, `"due"` by default. Processes with different names share nothing, even on
    /// the same server.
    pub cluster: String,
    /// The name of this process, by which other processes know it in
    /// [`PeerChanged`](bevy_due::worlds::link::PeerChanged) and
    /// [`permit`](bevy_due::worlds::WorldGroups::permit). By default it is a random number.
    ///
    /// A process chooses its own name, and others may have the same.
    pub name: Option<String>,
    /// The addresses of the servers, `127.0.0.1:4222` by default. The link connects to one of them, and to
    /// another if that one goes. They must be servers of one cluster of NATS.
    pub servers: Vec<String>,
    /// The bounds of the connections. Use the same in all processes.
    ///
    /// The server carries no message that is longer than its `max_payload`, so
    /// [`parcel_bytes`](PeerSettings::parcel_bytes) is lowered to what fits: to 988 KiB with a server that
    /// has its default of 1 MiB. [`down_after`](PeerSettings::down_after) is at least 100 ms. A server that
    /// is silent for so long is left.
    pub peers: PeerSettings,
    /// How to connect: the user, TLS, time limits. The link chooses the name, the echo, the interval of
    /// pings, the delay between attempts, the capacity of subscriptions, and the callback for events.
    pub options: ConnectOptions,
}

impl Default for NatsConfig {
    fn default() -> Self {
        Self {
            cluster: "due".into(),
            name: None,
            servers: vec!["127.0.0.1:4222".into()],
            peers: PeerSettings::default(),
            options: ConnectOptions::default(),
        }
    }
}

/// A setting that can't be used.
#[derive(Debug)]
pub(crate) enum InvalidConfig {
    Token { field: &'static str, name: String },
    EmptyName,
    NoServers,
    Server { address: String, error: io::Error },
    User(ServerAddr),
    NoTls(ServerAddr),
    DownAfter(Duration),
}

impl NatsConfig {
    /// Returns the addresses of the servers, if all settings can be used.
    pub(crate) fn check(&self) -> Result<Vec<ServerAddr>, InvalidConfig> {
        check_token("cluster", &self.cluster)?;
        if self.name.as_ref().is_some_and(String::is_empty) {
            return Err(InvalidConfig::EmptyName);
        }
        let down_after = self.peers.down_after;
        if down_after < Duration::from_millis(100) {
            return Err(InvalidConfig::DownAfter(down_after));
        }
        servers(&self.servers)
    }
}

/// Reads the addresses of servers.
pub(crate) fn servers(addresses: &[String]) -> Result<Vec<ServerAddr>, InvalidConfig> {
    if addresses.is_empty() {
        return Err(InvalidConfig::NoServers);
    }
    let server = |address: &String| {
        let server = address.parse().and_then(with_host);
        let server = server.map_err(|error| {
            let address = address.clone();
            InvalidConfig::Server { address, error }
        })?;
        // The client would ignore the user.
        if server.has_user_pass() {
            return Err(InvalidConfig::User(server));
        }
        match server.tls_required() && cfg!(not(feature = "tls")) {
            true => Err(InvalidConfig::NoTls(server)),
            false => Ok(server),
        }
    };
    addresses.iter().map(server).collect()
}

fn with_host(server: ServerAddr) -> io::Result<ServerAddr> {
    match server.host() {
        "" => Err(io::Error::other("it has no host")),
        _ => Ok(server),
    }
}

/// Checks a name that becomes a part of a subject, or of the name of a stream.
pub(crate) fn check_token(field: &'static str, name: &str) -> Result<(), InvalidConfig> {
    let is_plain = |it: char| it.is_ascii_alphanumeric() || "-_".contains(it);
    match !name.is_empty() && name.chars().all(is_plain) {
        true => Ok(()),
        false => Err(InvalidConfig::Token {
            field,
            name: name.into(),
        }),
    }
}

/// Lowers the bounds to what a server carries. A batch is at most `batch_bytes` and one parcel long.
pub(crate) fn fit(peers: PeerSettings, max_payload: usize) -> PeerSettings {
    // What a parcel takes beside its payload: numbers, and the name of its group.
    const HEAD: usize = 4 << 10;

    let batch_bytes = peers.batch_bytes.min(max_payload / 4);
    let room = max_payload.saturating_sub(batch_bytes + HEAD);
    PeerSettings {
        batch_bytes,
        parcel_bytes: peers.parcel_bytes.min(room),
        ..peers
    }
}

impl fmt::Display for InvalidConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Token { field, name } => write!(
                f,
                "`{field}` is {name:?}: use letters, digits, - and _, and at least one of them"
            ),
            Self::EmptyName => f.write_str("`name` is empty: leave it out, or use a character"),
            Self::NoServers => f.write_str(
                "`servers` is empty: use the address of a server, such as 10.0.0.1:4222",
            ),
            Self::Server { address, error } => write!(
                f,
                "`servers` contains {address:?}: {error}: use a host and a port, such as 10.0.0.1:4222"
            ),
            Self::User(server) => write!(
                f,
                "`servers` contains the user {:?} of {}: put the user and the password into `options`",
                server.username().unwrap_or_default(),
                server.host()
            ),
            Self::NoTls(server) => write!(
                f,
                "`servers` contains {:?}: turn on the feature `tls` of `bevy_due_nats`",
                server.as_url_str()
            ),
            Self::DownAfter(time) => {
                write!(f, "`peers.down_after` is {time:?}: use at least 100 ms")
            }
        }
    }
}

impl core::error::Error for InvalidConfig {}

#[cfg(test)]
mod tests {
    use super::*;

    fn error(config: NatsConfig) -> String {
        let error = config.check().map(drop);
        error.expect_err("it is not valid").to_string()
    }

    #[test]
    fn the_default_is_taken() {
        let servers = NatsConfig::default().check().expect("it is valid");
        assert_eq!((servers[0].host(), servers[0].port()), ("127.0.0.1", 4222));
    }

    #[test]
    fn an_error_names_the_value() {
        for address in ["", ":4222", "host:port", "10.0.0.1:70000", "http://a:1"] {
            let servers = vec!["127.0.0.1:1".to_owned(), address.to_owned()];
            let config = NatsConfig {
                servers,
                ..NatsConfig::default()
            };
            let expected = format!("`servers` contains {address:?}: ");
            assert!(error(config).starts_with(&expected), "{address:?}");
        }
        let config = NatsConfig {
            servers: vec!["nats://me:secret@10.0.0.1".into()],
            ..NatsConfig::default()
        };
        assert_eq!(
            error(config),
            "`servers` contains the user \"me\" of 10.0.0.1: put the user and the password into `options`"
        );
        let config = NatsConfig {
            servers: Vec::new(),
            ..NatsConfig::default()
        };
        assert!(error(config).starts_with("`servers` is empty: "));
        for name in ["", "a.b", "a b", "*", ">", "ä", "\n"] {
            let config = NatsConfig {
                cluster: name.into(),
                ..NatsConfig::default()
            };
            assert!(error(config).starts_with(&format!("`cluster` is {name:?}: ")));
        }
        let config = NatsConfig {
            name: Some(String::new()),
            ..NatsConfig::default()
        };
        assert!(error(config).starts_with("`name` is empty: "));
        let peers = PeerSettings {
            down_after: Duration::from_millis(99),
            ..PeerSettings::default()
        };
        let config = NatsConfig {
            peers,
            ..NatsConfig::default()
        };
        assert_eq!(
            error(config),
            "`peers.down_after` is 99ms: use at least 100 ms"
        );
    }

    #[test]
    fn tls_needs_its_feature() {
        let servers = vec!["tls://nats.example.org".into()];
        let config = NatsConfig {
            servers,
            ..NatsConfig::default()
        };
        assert_eq!(config.check().is_ok(), cfg!(feature = "tls"));
    }

    #[test]
    fn a_batch_fits_into_a_message() {
        let large = PeerSettings {
            parcel_bytes: 1 << 30,
            batch_bytes: 1 << 30,
            ..PeerSettings::default()
        };
        for peers in [PeerSettings::default(), large] {
            for max_payload in [0, 1 << 10, 1 << 20, 64 << 20] {
                let fitted = fit(peers, max_payload);
                let longest = fitted.batch_bytes + fitted.parcel_bytes;
                assert!(longest <= max_payload, "{max_payload}: {fitted:?}");
            }
        }
        assert_eq!(
            fit(PeerSettings::default(), 1 << 20).parcel_bytes,
            988 << 10
        );
        let roomy = fit(PeerSettings::default(), 8 << 20);
        assert_eq!(roomy, PeerSettings::default());
    }
}
