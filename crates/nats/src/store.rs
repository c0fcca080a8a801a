//! Small values on the server. A value changes only if the caller knows the last one.

use core::{fmt, time::Duration};
use std::{path::PathBuf, sync::OnceLock, thread, time::Instant};

use async_nats::jetstream::{
    self, Context,
    context::PublishErrorKind,
    message::PublishMessage,
    stream::{Config, DiscardPolicy, LastRawMessageErrorKind, Stream},
};
use bevy_due_ownership::Unreachable;
use bevy_ecs::error::{BevyError, Result};

use crate::{
    client::{ClientThread, connect},
    config::check_token,
    connection::{Settings, masked},
};

/// How long one attempt waits for a reply, and how long the next one waits for a server that has none.
const ATTEMPT: Duration = Duration::from_secs(1);
const PAUSE: Duration = Duration::from_millis(50);

/// Keeps the owner of each entity on a NATS server with `JetStream`. Pass it to
/// [`Shard::with_owners`](bevy_due_ownership::Shard::with_owners). Needs the feature `ownership`.
///
/// Each call waits for the server. A call that can't reach the server tries again for
/// [`patience`](NatsOwnersConfig::patience). The shard calls it on a thread of its own.
///
/// The owners are messages of the stream `KV_` and the bucket, with the subject `$KV.`, the bucket, and the
/// key. So the command `nats kv` reads the bucket. A key that it deletes has no owner here.
///
/// # Durability
///
/// An owner survives the death of the server program, because the server writes it to a file before it
/// answers. But the file may still be in the memory of the operating system, and a machine that loses its
/// power loses it. With one server, set `sync_interval: always` in the section `jetstream` of its
/// configuration, which needs version 2.10. With [`replicas`](NatsOwnersConfig::replicas) on three machines,
/// an owner survives the loss of one of them, but not of all at the same time: set both where it matters.
///
/// # Examples
///
/// ```no_run
/// use bevy_due_nats::{NatsOwners, NatsOwnersConfig};
/// use bevy_due_ownership::Shard;
///
/// # fn main() -> bevy_ecs::error::Result {
/// let owners = NatsOwners::open(NatsOwnersConfig {
///     servers: vec!["nats://game:secret@10.0.0.1:4222".into()],
///     ..NatsOwnersConfig::default()
/// })?;
/// let shard = Shard::open("shard.redb")?.with_owners(owners)?;
/// # _ = shard;
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct NatsOwners {
    bucket: String,
    replicas: usize,
    patience: Duration,
    context: Context,
    /// Is empty until the server has answered once.
    stream: OnceLock<Stream>,
    thread: ClientThread,
}

/// The settings of [`NatsOwners`].
///
/// `Debug` masks the passwords.
#[derive(Clone)]
pub struct NatsOwnersConfig {
    /// The addresses of the servers, as in [`NatsConfig::servers`](crate::NatsConfig::servers).
    pub servers: Vec<String>,
    /// A `.creds` file, as in [`NatsConfig::credentials`](crate::NatsConfig::credentials).
    pub credentials: Option<PathBuf>,
    /// The trusted certificates, as in
    /// [`NatsConfig::root_certificates`](crate::NatsConfig::root_certificates).
    pub root_certificates: Option<PathBuf>,
    /// Whether [`open`](NatsOwners::open) succeeds without a server, `false` by default. The shard then hears
    /// from its first call that the store is unreachable, and repeats it.
    pub waits_for_server: bool,
    /// The name of the bucket, `"owners"` by default.
    pub bucket: String,
    /// The number of servers that keep each owner, one by default. It has a meaning only when the bucket is
    /// created.
    pub replicas: usize,
    /// How long a call tries to reach the server, five seconds by default.
    pub patience: Duration,
}

impl Default for NatsOwnersConfig {
    fn default() -> Self {
        Self {
            servers: vec!["127.0.0.1:4222".into()],
            credentials: None,
            root_certificates: None,
            waits_for_server: false,
            bucket: "owners".into(),
            replicas: 1,
            patience: Duration::from_secs(5),
        }
    }
}

impl fmt::Debug for NatsOwnersConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            servers,
            credentials,
            root_certificates,
            waits_for_server,
            bucket,
            replicas,
            patience,
        } = self;
        f.debug_struct("NatsOwnersConfig")
            .field("servers", &masked(servers))
            .field("credentials", credentials)
            .field("root_certificates", root_certificates)
            .field("waits_for_server", waits_for_server)
            .field("bucket", bucket)
            .field("replicas", replicas)
            .field("patience", patience)
            .finish()
    }
}

impl NatsOwners {
    /// Connects to a server, and creates the bucket if there is none.
    ///
    /// # Errors
    ///
    /// Returns an error if a setting can't be used. Unless
    /// [`waits_for_server`](NatsOwnersConfig::waits_for_server) is set, also returns an error if no server can
    /// be reached, or if the server has no `JetStream`.
    pub fn open(config: NatsOwnersConfig) -> Result<Self> {
        check_token("bucket", &config.bucket)?;
        let settings = Settings {
            servers: &config.servers,
            credentials: config.credentials.as_deref(),
            root_certificates: config.root_certificates.as_deref(),
            waits_for_server: config.waits_for_server,
        };
        let connection = settings.check()?;
        let thread = ClientThread::start()?;
        let context = thread.wait(async move {
            let mut context = jetstream::new(connect(connection).await?);
            context.set_timeout(ATTEMPT);
            Ok::<_, BevyError>(context)
        })?;
        let owners = Self {
            bucket: config.bucket,
            replicas: config.replicas,
            patience: config.patience,
            context,
            stream: OnceLock::new(),
            thread,
        };
        if !config.waits_for_server {
            owners.stream()?;
        }
        Ok(owners)
    }

    /// Makes attempts until one succeeds, or until the patience is over.
    pub(crate) fn repeat<T>(
        &self,
        key: u64,
        attempt: impl Fn() -> Result<T>,
    ) -> Result<T, Unreachable> {
        let start = Instant::now();
        loop {
            match attempt() {
                Ok(found) => return Ok(found),
                Err(error) if start.elapsed() >= self.patience => {
                    return Err(Unreachable(format!(
                        "the server does not answer for key {key}: {error}"
                    )));
                }
                Err(_) => thread::sleep(PAUSE),
            }
        }
    }

    /// Writes a value, and returns `true`, if the last change of the key still has a revision.
    pub(crate) fn publish(&self, key: u64, after: u64, value: Vec<u8>) -> Result<bool> {
        let message = PublishMessage::build()
            .payload(value.into())
            .expected_last_subject_sequence(after);
        let (context, subject) = (self.context.clone(), self.subject(key));
        let publish = async move { context.send_publish(subject, message).await?.await };
        match self.thread.wait(publish) {
            Ok(_) => Ok(true),
            Err(error) if error.kind() == PublishErrorKind::WrongLastSequence => Ok(false),
            Err(error) => Err(error.into()),
        }
    }

    /// Returns the revision of the last change of a key, or zero, and the value, if there is one. The server that decides
    /// about changes answers, so the value is the newest. A deletion is a change.
    pub(crate) fn last(&self, key: u64) -> Result<(u64, Option<Vec<u8>>)> {
        let (stream, subject) = (self.stream()?, self.subject(key));
        let read = async move { stream.get_last_raw_message_by_subject(&subject).await };
        match self.thread.wait(read) {
            Ok(message) => {
                let is_deleted = message.headers.get("KV-Operation").is_some();
                let value = (!is_deleted).then(|| message.payload.into());
                Ok((message.sequence, value))
            }
            Err(error) if error.kind() == LastRawMessageErrorKind::NoMessageFound => Ok((0, None)),
            Err(error) => Err(error.into()),
        }
    }

    /// Returns the stream, and creates it if there is none.
    fn stream(&self) -> Result<Stream> {
        if let Some(stream) = self.stream.get() {
            return Ok(stream.clone());
        }
        let bucket = &self.bucket;
        let config = Config {
            name: format!("KV_{bucket}"),
            subjects: vec![format!("$KV.{bucket}.>")],
            max_messages_per_subject: 1,
            discard: DiscardPolicy::New,
            allow_rollup: true,
            deny_delete: true,
            num_replicas: self.replicas,
            ..Config::default()
        };
        let context = self.context.clone();
        let create = async move { context.get_or_create_stream(config).await };
        let stream = self.thread.wait(create)?;
        Ok(self.stream.get_or_init(|| stream).clone())
    }

    fn subject(&self, key: u64) -> String {
        format!("$KV.{}.{key}", self.bucket)
    }
}
