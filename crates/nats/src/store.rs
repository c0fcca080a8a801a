//! Small values on the server, which change only from what is known.

use core::{fmt, time::Duration};
use std::{thread, time::Instant};

use async_nats::{
    ConnectOptions,
    jetstream::{
        self, Context,
        context::{PublishError, PublishErrorKind},
        message::PublishMessage,
        stream::{Config, DiscardPolicy, LastRawMessageErrorKind, RawMessageError, Stream},
    },
};
use bevy_ecs::error::{BevyError, Result};

use crate::{
    client::{ClientThread, connect},
    config::{check_token, servers},
};

/// How long one attempt waits for a reply, and how long the next one waits for a server that has none.
const ATTEMPT: Duration = Duration::from_secs(1);
const PAUSE: Duration = Duration::from_millis(50);

/// A store of small values on a NATS server with `JetStream`, for example of the owner of each key. A value
/// changes only if the caller knows the last one, so of several processes that want a key exactly one gets
/// it.
///
/// Each call waits for the server: call it from a thread of its own, never from a system. A call that can't
/// reach the server tries again for [`patience`](NatsStoreConfig::patience). Several threads can use one
/// store.
///
/// The values are messages of the stream `KV_` and the bucket, with the subject `$KV.`, the bucket, and the
/// key. So the command `nats kv` reads the bucket. A key that it deletes has no value here.
///
/// # Durability
///
/// A value survives the death of the server program, because the server writes it to a file before it
/// answers. But the file may still be in the memory of the operating system, and a machine that loses its
/// power loses it. With one server, set `sync_interval: always` in the section `jetstream` of its
/// configuration, which needs version 2.10. With [`replicas`](NatsStoreConfig::replicas) on three machines,
/// a value survives the loss of one of them, but not of all at the same time: set both where it matters.
///
/// # Examples
///
/// ```no_run
/// use bevy_due_nats::{NatsStore, NatsStoreConfig};
///
/// # fn main() -> bevy_ecs::error::Result {
/// let store = NatsStore::open(NatsStoreConfig::default())?;
/// let revision = store.compare_and_swap(7, None, b"me")?;
/// match revision {
///     Ok(revision) => println!("7 is mine, with revision {revision}"),
///     Err(lost) => println!("7 belongs to {:?}", lost.current),
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct NatsStore {
    bucket: String,
    patience: Duration,
    context: Context,
    stream: Stream,
    thread: ClientThread,
}

/// The settings of an [`NatsStore`].
#[derive(Clone, Debug)]
pub struct NatsStoreConfig {
    /// The addresses of the servers, as in [`NatsConfig`](crate::NatsConfig::servers).
    pub servers: Vec<String>,
    /// The name of the bucket, `"owners"` by default.
    pub bucket: String,
    /// The number of servers that keep each value, one by default. It has a meaning only when the bucket is
    /// created.
    pub replicas: usize,
    /// How long a call tries to reach the server, five seconds by default.
    pub patience: Duration,
    /// How to connect: the user, TLS, time limits.
    pub options: ConnectOptions,
}

impl Default for NatsStoreConfig {
    fn default() -> Self {
        Self {
            servers: vec!["127.0.0.1:4222".into()],
            bucket: "owners".into(),
            replicas: 1,
            patience: Duration::from_secs(5),
            options: ConnectOptions::default(),
        }
    }
}

/// A value and its revision.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// The value.
    pub value: Vec<u8>,
    /// The number of the change that made it. It rises with each change of any key of the bucket.
    pub revision: u64,
}

/// The value is not the expected one, and not that of the caller.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lost {
    /// The value that is there instead, if any.
    pub current: Option<Entry>,
}

/// The server can't be reached, or does not do what it should.
#[derive(Debug)]
pub struct Unreachable {
    key: u64,
    error: BevyError,
}

/// What the server has for a key.
#[derive(Debug, Default)]
struct Last {
    /// The revision of the last change, or zero. A deletion is a change.
    revision: u64,
    value: Option<Vec<u8>>,
}

impl NatsStore {
    /// Connects to a server, and creates the bucket if there is none.
    ///
    /// # Errors
    ///
    /// Returns an error if a setting can't be used, if no server can be reached, or if the server has no
    /// `JetStream`.
    pub fn open(config: NatsStoreConfig) -> Result<Self> {
        check_token("bucket", &config.bucket)?;
        let servers = servers(&config.servers)?;
        let thread = ClientThread::start()?;
        let NatsStoreConfig {
            bucket,
            replicas,
            patience,
            options,
            ..
        } = config;
        let stream = Config {
            name: format!("KV_{bucket}"),
            subjects: vec![format!("$KV.{bucket}.>")],
            max_messages_per_subject: 1,
            discard: DiscardPolicy::New,
            allow_rollup: true,
            deny_delete: true,
            num_replicas: replicas,
            ..Config::default()
        };
        let (context, stream) = thread.wait(async move {
            let mut context = jetstream::new(connect(servers, options).await?);
            context.set_timeout(ATTEMPT);
            let stream = context.get_or_create_stream(stream).await?;
            Ok::<_, BevyError>((context, stream))
        })?;
        Ok(Self {
            bucket,
            patience,
            context,
            stream,
            thread,
        })
    }

    /// Returns the value of a key, and its revision. The server that decides about changes answers, so the
    /// value is the newest.
    ///
    /// # Errors
    ///
    /// Returns [`Unreachable`] if the server does not answer in time.
    pub fn get(&self, key: u64) -> Result<Option<Entry>, Unreachable> {
        let start = Instant::now();
        loop {
            match self.last(key) {
                Ok(last) => return Ok(last.into_entry()),
                Err(error) if start.elapsed() >= self.patience => {
                    let error = error.into();
                    return Err(Unreachable { key, error });
                }
                Err(_) => thread::sleep(PAUSE),
            }
        }
    }

    /// Changes the value of a key if its revision is the expected one, where `None` stands for a key
    /// without a value. Returns the new revision, or [`Lost`] with the value that is there instead.
    ///
    /// A repeated call succeeds if the value of the first one is still there. So two callers that must not
    /// both succeed need different values. If it has been replaced meanwhile, the call is [`Lost`], even if
    /// the first one had succeeded and only its reply was not heard.
    ///
    /// # Errors
    ///
    /// Returns [`Unreachable`] if the server does not answer in time. The value may have changed all the
    /// same, or may change a little later: repeat the call to know.
    pub fn compare_and_swap(
        &self,
        key: u64,
        expected: Option<u64>,
        value: &[u8],
    ) -> Result<Result<u64, Lost>, Unreachable> {
        let start = Instant::now();
        let mut after = expected.unwrap_or_default();
        loop {
            let error = match self.publish(key, after, value) {
                Ok(revision) => return Ok(Ok(revision)),
                Err(error) => error,
            };
            let is_hopeless = error.kind() == PublishErrorKind::MaxPayloadExceeded;
            // The reply may be lost, or tell of an earlier attempt: what is there decides.
            let error = match self.last(key) {
                Ok(last) if last.revision != after => match &last.value {
                    Some(it) if it == value => return Ok(Ok(last.revision)),
                    None if expected.is_none() => {
                        after = last.revision;
                        continue;
                    }
                    _ => {
                        let current = last.into_entry();
                        return Ok(Err(Lost { current }));
                    }
                },
                Ok(_) => error.into(),
                Err(error) => error.into(),
            };
            if is_hopeless || start.elapsed() >= self.patience {
                return Err(Unreachable { key, error });
            }
            thread::sleep(PAUSE);
        }
    }

    /// Writes a value if the last change of the key has a revision.
    fn publish(&self, key: u64, after: u64, value: &[u8]) -> Result<u64, PublishError> {
        let message = PublishMessage::build()
            .payload(value.to_vec().into())
            .expected_last_subject_sequence(after);
        let (context, subject) = (self.context.clone(), self.subject(key));
        let publish = async move { context.send_publish(subject, message).await?.await };
        self.thread.wait(publish).map(|done| done.sequence)
    }

    /// Reads the last change of a key.
    fn last(&self, key: u64) -> Result<Last, RawMessageError> {
        let (stream, subject) = (self.stream.clone(), self.subject(key));
        let read = async move { stream.get_last_raw_message_by_subject(&subject).await };
        match self.thread.wait(read) {
            Ok(message) => {
                // A deletion.
                let is_deleted = message.headers.get("KV-Operation").is_some();
                Ok(Last {
                    revision: message.sequence,
                    value: (!is_deleted).then(|| message.payload.into()),
                })
            }
            Err(error) if error.kind() == LastRawMessageErrorKind::NoMessageFound => {
                Ok(Last::default())
            }
            Err(error) => Err(error),
        }
    }

    fn subject(&self, key: u64) -> String {
        format!("$KV.{}.{key}", self.bucket)
    }
}

impl Last {
    fn into_entry(self) -> Option<Entry> {
        let revision = self.revision;
        self.value.map(|value| Entry { value, revision })
    }
}

impl fmt::Display for Lost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.current {
            Some(entry) => write!(
                f,
                "the value has changed and has revision {} now",
                entry.revision
            ),
            None => f.write_str("the key has no value"),
        }
    }
}

impl core::error::Error for Lost {}

impl fmt::Display for Unreachable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { key, error } = self;
        write!(f, "the store does not answer for key {key}: {error}")
    }
}

impl core::error::Error for Unreachable {}
