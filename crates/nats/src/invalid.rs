//! Why the settings are refused.

use core::{fmt, time::Duration};
use std::{io, path::PathBuf};

/// A setting that can't be used. Passwords are masked.
#[derive(Debug)]
pub(crate) enum InvalidConfig {
    Token {
        field: &'static str,
        name: String,
    },
    EmptyName,
    NoServers,
    Server {
        address: String,
        error: io::Error,
    },
    Users([String; 2]),
    UserAndCredentials {
        address: String,
        credentials: PathBuf,
    },
    File {
        field: &'static str,
        path: PathBuf,
        error: io::Error,
    },
    /// It holds the setting.
    NoTls(String),
    DownAfter(Duration),
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
            Self::Users([first, second]) => write!(
                f,
                "`servers` contains {first:?} and {second:?} with different users or passwords: use the same \
                 for all servers"
            ),
            Self::UserAndCredentials {
                address,
                credentials,
            } => write!(
                f,
                "`servers` contains a user in {address:?}, and `credentials` is {credentials:?}: use one of \
                 them"
            ),
            Self::File { field, path, error } => {
                write!(
                    f,
                    "`{field}` is {path:?}: {error}: correct the path or the file"
                )
            }
            Self::NoTls(setting) => {
                write!(f, "{setting}: turn on the feature `tls` of `bevy_due_nats`")
            }
            Self::DownAfter(time) => {
                write!(f, "`peers.down_after` is {time:?}: use at least 100 ms")
            }
        }
    }
}

impl core::error::Error for InvalidConfig {}
