//! What a user chooses.

use core::{fmt, time::Duration};
use std::path::PathBuf;

use bevy_due::worlds::link::PeerSettings;

use crate::{
    connection::{Connection, Settings, masked},
    invalid::InvalidConfig,
};

/// The settings of a [`nats_link`](crate::nats_link).
///
/// `Debug` masks the passwords.
///
/// # Examples
///
/// ```
/// use core::time::Duration;
/// use bevy_due::worlds::link::PeerSettings;
/// use bevy_due_nats::NatsConfig;
///
/// let config = NatsConfig {
///     name: Some("shard 2".into()),
///     servers: vec!["nats://game:secret@10.0.0.1:4222".into(), "10.0.0.2:4222".into()],
///     peers: PeerSettings { down_after: Duration::from_secs(3), ..PeerSettings::default() },
///     ..NatsConfig::default()
/// };
/// # _ = config;
/// ```
#[derive(Clone)]
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
    ///
    /// An address is `host:port`, or a URL with a user and a password, such as
    /// `nats://game:secret@10.0.0.1:4222`. The port is 4222 by default. All servers get the same user, so one
    /// address is enough for it. In a user or a password, write special characters as in each URL: `%25` for
    /// `%`, for example. An address that starts with `tls://` needs the feature `tls`.
    ///
    /// If the addresses contain different users or passwords, `join` returns an error that names two of them.
    pub servers: Vec<String>,
    /// The path of a `.creds` file, which proves who this process is, in place of a user and a password. There
    /// is none by default. The file is read once, by `join`. If it can't be read, `join` returns an error that
    /// names it.
    pub credentials: Option<PathBuf>,
    /// The path of a file with the trusted certificates, in PEM form. By default these are the certificates
    /// that the operating system trusts. If it is set, the link connects only with TLS.
    ///
    /// It needs the feature `tls`. Without the feature, or if the file can't be read, `join` returns an error
    /// that names the file.
    pub root_certificates: Option<PathBuf>,
    /// Whether `join` succeeds without a server, `false` by default. The link then connects as soon as there
    /// is a server, and reports failures with `tracing` only. It takes `max_payload` of the server to be 1 MiB.
    pub waits_for_server: bool,
    /// The bounds of the connections. Use the same in all processes.
    ///
    /// The server carries no message that is longer than its `max_payload`, so
    /// [`parcel_bytes`](PeerSettings::parcel_bytes) is lowered to what fits: to 988 KiB with a server that
    /// has its default of 1 MiB. [`down_after`](PeerSettings::down_after) is at least 100 ms. A server that
    /// is silent for so long is left.
    pub peers: PeerSettings,
}

impl Default for NatsConfig {
    fn default() -> Self {
        Self {
            cluster: "due".into(),
            name: None,
            servers: vec!["127.0.0.1:4222".into()],
            credentials: None,
            root_certificates: None,
            waits_for_server: false,
            peers: PeerSettings::default(),
        }
    }
}

impl fmt::Debug for NatsConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            cluster,
            name,
            servers,
            credentials,
            root_certificates,
            waits_for_server,
            peers,
        } = self;
        f.debug_struct("NatsConfig")
            .field("cluster", cluster)
            .field("name", name)
            .field("servers", &masked(servers))
            .field("credentials", credentials)
            .field("root_certificates", root_certificates)
            .field("waits_for_server", waits_for_server)
            .field("peers", peers)
            .finish()
    }
}

impl NatsConfig {
    /// Returns how to connect, if all settings can be used.
    pub(crate) fn check(&self) -> Result<Connection, InvalidConfig> {
        check_token("cluster", &self.cluster)?;
        if self.name.as_ref().is_some_and(String::is_empty) {
            return Err(InvalidConfig::EmptyName);
        }
        let down_after = self.peers.down_after;
        if down_after < Duration::from_millis(100) {
            return Err(InvalidConfig::DownAfter(down_after));
        }
        let settings = Settings {
            servers: &self.servers,
            credentials: self.credentials.as_deref(),
            root_certificates: self.root_certificates.as_deref(),
            waits_for_server: self.waits_for_server,
        };
        settings.check()
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

#[cfg(test)]
mod tests {
    use super::*;

    fn error(config: NatsConfig) -> String {
        let error = config.check().map(drop);
        error.expect_err("it is not valid").to_string()
    }

    #[test]
    fn the_default_is_taken() {
        let connection = NatsConfig::default().check().expect("it is valid");
        let servers = connection.servers;
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

    #[test]
    fn debug_contains_no_password() {
        let config = NatsConfig {
            servers: vec!["nats://game:secret@10.0.0.1".into()],
            ..NatsConfig::default()
        };
        let printed = format!("{config:?}");
        assert!(printed.contains("game:***@10.0.0.1"), "{printed}");
        assert!(!printed.contains("secret"), "{printed}");
    }
}
