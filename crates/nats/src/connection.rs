//! How to reach the servers.

use core::fmt;
use std::{
    fs, io,
    path::{Path, PathBuf},
};

use async_nats::{ConnectOptions, ServerAddr};
use percent_encoding::percent_decode_str;

use crate::invalid::InvalidConfig;

/// The settings that a link and the owners share.
pub(crate) struct Settings<'a> {
    pub(crate) servers: &'a [String],
    pub(crate) credentials: Option<&'a Path>,
    pub(crate) root_certificates: Option<&'a Path>,
    pub(crate) waits_for_server: bool,
}

/// What the client needs to connect.
#[derive(Debug)]
pub(crate) struct Connection {
    /// They contain no user, so they can be printed.
    pub(crate) servers: Vec<ServerAddr>,
    /// Their `Debug` leaves out the user.
    pub(crate) options: ConnectOptions,
}

impl Settings<'_> {
    /// Checks the settings, and reads the files.
    pub(crate) fn check(self) -> Result<Connection, InvalidConfig> {
        let addresses = self.servers.iter().map(|it| Address::split(it));
        let addresses = Vec::from_iter(addresses);
        if addresses.is_empty() {
            return Err(InvalidConfig::NoServers);
        }
        let servers = addresses.iter().map(Address::server);
        let servers = servers.collect::<Result<_, _>>()?;
        let mut options = ConnectOptions::new();
        if let Some((address, [user, password])) = user(&addresses)? {
            if let Some(path) = self.credentials {
                return Err(InvalidConfig::UserAndCredentials {
                    address: address.to_string(),
                    credentials: path.into(),
                });
            }
            options = options.user_and_password(user, password);
        }
        if let Some(path) = self.credentials {
            let read = fs::read_to_string(path).and_then(|text| options.credentials(&text));
            options = read.map_err(file("credentials", path))?;
        }
        if let Some(path) = self.root_certificates {
            check_root_certificates(path)?;
            options = options.add_root_certificates(path.into());
            options = options.require_tls(true);
        }
        if self.waits_for_server {
            options = options.retry_on_initial_connect();
        }
        Ok(Connection { servers, options })
    }
}

/// Returns the addresses of servers without their passwords.
pub(crate) fn masked(servers: &[String]) -> Vec<String> {
    let masked = servers.iter().map(|it| Address::split(it).to_string());
    masked.collect()
}

/// The address of a server. `Display` masks the password.
struct Address<'a> {
    /// With `://`, or empty.
    scheme: &'a str,
    user: Option<&'a str>,
    host: &'a str,
}

impl<'a> Address<'a> {
    /// Splits an address before a parser sees it, because the errors of a parser could contain the password.
    fn split(address: &'a str) -> Self {
        let start = address.find("://").map_or(0, |at| at + 3);
        let (scheme, rest) = address.split_at(start);
        let (user, host) = match rest.rsplit_once('@') {
            Some((user, host)) => (Some(user), host),
            None => (None, rest),
        };
        Self { scheme, user, host }
    }

    /// Returns the address for the client, without the user.
    fn server(&self) -> Result<ServerAddr, InvalidConfig> {
        let server = format!("{}{}", self.scheme, self.host).parse();
        let server = server.and_then(|server: ServerAddr| match server.host() {
            "" => Err(io::Error::other("it has no host")),
            _ => Ok(server),
        });
        let server = server.map_err(|error| self.invalid(error))?;
        match server.tls_required() && cfg!(not(feature = "tls")) {
            true => Err(InvalidConfig::NoTls(format!(
                "`servers` contains {:?}",
                self.to_string()
            ))),
            false => Ok(server),
        }
    }

    /// Returns the user and the password, if any.
    fn user(&self) -> Result<Option<[String; 2]>, InvalidConfig> {
        let Some(user) = self.user else {
            return Ok(None);
        };
        match user.split_once(':') {
            Some((user, password)) if !user.is_empty() => {
                let decode = |it| percent_decode_str(it).decode_utf8_lossy().into_owned();
                Ok(Some([user, password].map(decode)))
            }
            _ => Err(self.invalid(io::Error::other(
                "it needs a user and a password before the @",
            ))),
        }
    }

    fn invalid(&self, error: io::Error) -> InvalidConfig {
        let address = self.to_string();
        InvalidConfig::Server { address, error }
    }
}

impl fmt::Display for Address<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { scheme, user, host } = self;
        match user.map(|it| it.split_once(':')) {
            None => write!(f, "{scheme}{host}"),
            // It could be a token.
            Some(None) => write!(f, "{scheme}***@{host}"),
            Some(Some((user, _))) => write!(f, "{scheme}{user}:***@{host}"),
        }
    }
}

/// Returns the user and the password of all addresses, and an address that contains them.
fn user<'a>(
    addresses: &'a [Address<'a>],
) -> Result<Option<(&'a Address<'a>, [String; 2])>, InvalidConfig> {
    let mut found = None;
    for address in addresses {
        let Some(user) = address.user()? else {
            continue;
        };
        match &found {
            Some((first, other)) if *other != user => {
                let both = [*first, address].map(Address::to_string);
                return Err(InvalidConfig::Users(both));
            }
            Some(_) => {}
            None => found = Some((address, user)),
        }
    }
    Ok(found)
}

/// The client would name no file in its errors, and take a file without a certificate.
fn check_root_certificates(path: &Path) -> Result<(), InvalidConfig> {
    let field = "root_certificates";
    if cfg!(not(feature = "tls")) {
        return Err(InvalidConfig::NoTls(format!("`{field}` is {path:?}")));
    }
    let text = fs::read_to_string(path).map_err(file(field, path))?;
    match text.contains("-----BEGIN CERTIFICATE-----") {
        true => Ok(()),
        false => {
            let error = io::Error::other("it contains no certificate in PEM form");
            Err(file(field, path)(error))
        }
    }
}

fn file(field: &'static str, path: &Path) -> impl FnOnce(io::Error) -> InvalidConfig {
    let path = PathBuf::from(path);
    move |error| InvalidConfig::File { field, path, error }
}

#[cfg(test)]
mod tests {
    use std::{env, process};

    use super::*;

    fn check(servers: &[&str]) -> Result<Connection, String> {
        check_with(servers, None, None)
    }

    fn check_with(
        servers: &[&str],
        credentials: Option<&Path>,
        root_certificates: Option<&Path>,
    ) -> Result<Connection, String> {
        let servers = servers.iter().map(|it| (*it).to_owned());
        let settings = Settings {
            servers: &Vec::from_iter(servers),
            credentials,
            root_certificates,
            waits_for_server: false,
        };
        settings.check().map_err(|error| error.to_string())
    }

    #[track_caller]
    fn error(checked: Result<Connection, String>) -> String {
        checked.expect_err("it is not valid")
    }

    /// A file that is removed when this is dropped.
    struct TestFile(PathBuf);

    impl TestFile {
        fn new(name: &str, text: &str) -> Self {
            let path = env::temp_dir().join(format!("due_nats_{}_{name}", process::id()));
            fs::write(&path, text).expect("the folder is there");
            Self(path)
        }
    }

    impl Drop for TestFile {
        fn drop(&mut self) {
            fs::remove_file(&self.0).ok();
        }
    }

    #[test]
    fn a_password_is_masked() {
        for (address, expected) in [
            ("10.0.0.1:4222", "10.0.0.1:4222"),
            ("tls://a.example.org", "tls://a.example.org"),
            ("nats://game:secret@a:1", "nats://game:***@a:1"),
            ("game:secret@a", "game:***@a"),
            ("nats://game:se:c@r/e#t@a:1", "nats://game:***@a:1"),
            ("nats://secret@a:1", "nats://***@a:1"),
        ] {
            assert_eq!(masked(&[address.to_owned()]), [expected]);
        }
    }

    #[test]
    fn the_client_gets_addresses_without_a_user() {
        let connection = check(&["nats://game:secret@10.0.0.1:1", "10.0.0.2"]);
        let printed = format!("{:?}", connection.expect("it is valid"));
        assert!(!printed.contains("secret"), "{printed}");
        assert!(!printed.contains("game"), "{printed}");
    }

    #[test]
    fn all_servers_have_the_same_user() {
        check(&["nats://a:b@10.0.0.1", "10.0.0.2", "a:b@10.0.0.3"]).expect("it is the same");
        for other in ["c:secret@10.0.0.2", "a:another@10.0.0.2"] {
            let (user, _) = other.split_once(':').expect("it has a password");
            assert_eq!(
                error(check(&["nats://a:secret@10.0.0.1", other])),
                format!(
                    "`servers` contains \"nats://a:***@10.0.0.1\" and \"{user}:***@10.0.0.2\" with different \
                     users or passwords: use the same for all servers"
                )
            );
        }
    }

    #[test]
    fn a_user_needs_a_name_and_a_password() {
        for (address, masked) in [
            ("secret@10.0.0.1", "***@10.0.0.1"),
            (":secret@10.0.0.1", ":***@10.0.0.1"),
        ] {
            assert_eq!(
                error(check(&[address])),
                format!(
                    "`servers` contains {masked:?}: it needs a user and a password before the @: use a host \
                     and a port, such as 10.0.0.1:4222"
                )
            );
        }
    }

    #[test]
    fn an_invalid_address_shows_no_password() {
        for host in ["", ":4222", "10.0.0.1:70000", "host:port"] {
            let error = error(check(&[&format!("nats://game:secret@{host}")]));
            let start = format!("`servers` contains \"nats://game:***@{host}\": ");
            assert!(error.starts_with(&start), "{error}");
            assert!(!error.contains("secret"), "{error}");
        }
    }

    #[test]
    fn an_error_names_the_credentials() {
        let missing = env::temp_dir().join("due_nats_no_such_file.creds");
        let checked = check_with(&["10.0.0.1"], Some(&missing), None);
        let start = format!("`credentials` is {missing:?}: No such file");
        let error_text = error(checked);
        assert!(error_text.starts_with(&start), "{error_text}");

        let secret = "-----BEGIN NATS USER JWT-----\nsecret\n------END NATS USER JWT------\n\n\
            -----BEGIN USER NKEY SEED-----\nSUAsecret\n------END USER NKEY SEED------\n";
        for text in ["secret", secret] {
            let broken = TestFile::new("broken.creds", text);
            let error = error(check_with(&["10.0.0.1"], Some(&broken.0), None));
            let start = format!("`credentials` is {:?}: ", broken.0);
            assert!(error.starts_with(&start), "{error}");
            assert!(!error.contains("secret"), "{error}");
        }

        let both = check_with(&["nats://a:secret@10.0.0.1"], Some(&missing), None);
        assert_eq!(
            error(both),
            format!(
                "`servers` contains a user in \"nats://a:***@10.0.0.1\", and `credentials` is {missing:?}: use \
                 one of them"
            )
        );
    }

    #[test]
    fn credentials_are_read() {
        // A seed that the documentation of NATS shows.
        let text = "-----BEGIN NATS USER JWT-----\neyJ0eXAiOiJqd3QifQ.e30.c2ln\n\
            ------END NATS USER JWT------\n\n-----BEGIN USER NKEY SEED-----\n\
            SUAIO3FHUX5PNV2LQIIP7TZ3N4L7TX3W53MQGEIVYFIGA635OZCKEYHFLM\n\
            ------END USER NKEY SEED------\n";
        let file = TestFile::new("game.creds", text);
        let connection = check_with(&["10.0.0.1"], Some(&file.0), None);
        let printed = format!("{:?}", connection.expect("it is valid"));
        assert!(!printed.contains("SUAIO"), "{printed}");
    }

    #[cfg(not(feature = "tls"))]
    #[test]
    fn tls_needs_its_feature() {
        let expected = "turn on the feature `tls` of `bevy_due_nats`";
        assert_eq!(
            error(check(&["tls://game:secret@nats.example.org"])),
            format!("`servers` contains \"tls://game:***@nats.example.org\": {expected}")
        );
        let path = Path::new("roots.pem");
        assert_eq!(
            error(check_with(&["10.0.0.1"], None, Some(path))),
            format!("`root_certificates` is \"roots.pem\": {expected}")
        );
    }

    #[cfg(feature = "tls")]
    #[test]
    fn an_error_names_the_root_certificates() {
        check(&["tls://nats.example.org"]).expect("it is valid");
        let missing = env::temp_dir().join("due_nats_no_such_file.pem");
        let broken = TestFile::new("broken.pem", "something else");
        for (path, expected) in [
            (&missing, "No such file"),
            (&broken.0, "it contains no certificate in PEM form"),
        ] {
            let error = error(check_with(&["10.0.0.1"], None, Some(path)));
            let start = format!("`root_certificates` is {path:?}: {expected}");
            assert!(error.starts_with(&start), "{error}");
        }
    }
}
