//! The client of NATS, and the thread that it runs on.

use core::{convert::Infallible, error::Error, fmt};
use std::{
    io,
    sync::mpsc,
    thread::{self, JoinHandle},
};

use async_nats::{Client, ServerAddr};
use tokio::{
    runtime::{Builder, Handle},
    sync::oneshot,
};

use crate::connection::Connection;

/// A thread that runs the client of NATS. Drop this to end it, and all that runs on it.
#[derive(Debug)]
pub(crate) struct ClientThread {
    pub(crate) handle: Handle,
    /// Both are there until the drop.
    stop: Option<oneshot::Sender<Infallible>>,
    thread: Option<JoinHandle<()>>,
}

impl ClientThread {
    pub(crate) fn start() -> io::Result<Self> {
        let runtime = Builder::new_current_thread().enable_all().build()?;
        let handle = runtime.handle().clone();
        let (stop, stopped) = oneshot::channel::<Infallible>();
        let run = move || {
            runtime.block_on(stopped).ok();
            // A drop would wait until the name of a server is resolved.
            runtime.shutdown_background();
        };
        let thread = thread::Builder::new().name("nats".into()).spawn(run)?;
        Ok(Self {
            handle,
            stop: Some(stop),
            thread: Some(thread),
        })
    }

    /// Runs some work on the thread, and waits for it. The caller may be a thread of another runtime.
    pub(crate) fn wait<T: Send + 'static>(
        &self,
        work: impl Future<Output = T> + Send + 'static,
    ) -> T {
        let (tell, told) = mpsc::sync_channel(1);
        self.handle
            .spawn(async move { tell.send(work.await).unwrap_or_default() });
        let told = told.recv();
        told.expect("the thread runs until this is dropped, and the work does not panic")
    }
}

impl Drop for ClientThread {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            thread.join().ok();
        }
    }
}

/// Connects to one of some servers.
pub(crate) async fn connect(connection: Connection) -> Result<Client, CantConnect> {
    let Connection { servers, options } = connection;
    let addresses = servers.clone();
    // A task of its own, because the client panics if it needs TLS and has none.
    let client = tokio::spawn(async move { options.connect(&addresses[..]).await });
    let error = match client.await {
        Ok(Ok(client)) => return Ok(client),
        Ok(Err(error)) => error.into(),
        Err(panic) => panic.into(),
    };
    Err(CantConnect { servers, error })
}

/// No server can be reached.
#[derive(Debug)]
pub(crate) struct CantConnect {
    servers: Vec<ServerAddr>,
    error: Box<dyn Error + Send + Sync>,
}

impl fmt::Display for CantConnect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { servers, error } = self;
        let servers = servers.iter().map(ServerAddr::as_url_str);
        write!(
            f,
            "can't connect to {:?}: {error}: start a nats-server there, or correct the addresses, the \
             user or the certificates",
            Vec::from_iter(servers)
        )
    }
}

impl Error for CantConnect {}
