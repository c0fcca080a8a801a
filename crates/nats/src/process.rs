//! What this process does on the thread of the client.

use core::time::Duration;
use std::sync::Arc;

use async_nats::{Client, Event, Message, PublishError, StatusCode, Subscriber};
use bevy_due_peers::Peers;
use futures_util::StreamExt;
use tokio::{runtime::Handle, sync::mpsc::UnboundedReceiver};

use crate::{
    send::send,
    subjects::{ALL, Subjects, sender_of},
};

/// How often a process introduces itself without a reason. This finds the others again after two servers
/// of a cluster have lost each other.
const INTRODUCTION: Duration = Duration::from_secs(2);

/// This process. Each of its functions runs on the thread of the client, until the thread ends.
#[derive(Debug)]
pub(crate) struct Process {
    pub(crate) name: String,
    pub(crate) peers: Peers<Client>,
    pub(crate) subjects: Subjects,
    pub(crate) client: Client,
}

impl Process {
    /// Takes batches, and the replies of the server to those that found nobody.
    ///
    /// This runs on the thread that reads the connection. It may: `Peer::receive` takes locks that are held
    /// only for moments, and puts the parcels into the inboxes of worlds, which refuse what they have no
    /// room for.
    pub(crate) async fn receive(self: Arc<Self>, mut batches: Subscriber) {
        while let Some(message) = batches.next().await {
            let id = sender_of(&message.subject);
            if message.status != Some(StatusCode::NO_RESPONDERS) {
                self.peers.receive(id, &message.payload);
            } else if self.peers.went(id) {
                // It may be back already. Its introduction and this reply come by different ways.
                self.introduce(id).await;
            }
        }
    }

    /// Finds the processes that introduce themselves.
    pub(crate) async fn find(self: Arc<Self>, mut introductions: Subscriber) {
        let subjects = &self.subjects;
        while let Some(message) = introductions.next().await {
            let Some((id, name)) = introduction(&message) else {
                continue;
            };
            if id == subjects.me {
                continue;
            }
            self.came(id, name);
            if message.reply.is_some() {
                let name = self.name.clone().into();
                let answer = self.client.publish(subjects.here(id), name);
                answer.await.unwrap_or_else(closed);
            }
        }
    }

    fn came(&self, id: &str, name: &str) {
        // A process introduces itself more than once.
        if self.peers.knows(id) {
            return;
        }
        let way = [self.subjects.to(id), self.subjects.from(id)];
        let handle = Handle::current();
        let send = move |client, peer: &_| send(&handle, &client, way, peer);
        self.peers.came(id, name, send);
    }

    /// Introduces this process again and again.
    pub(crate) async fn repeat_introduction(self: Arc<Self>) {
        loop {
            tokio::time::sleep(INTRODUCTION).await;
            let name = self.name.clone().into();
            let introduction = self.client.publish(self.subjects.here(ALL), name);
            introduction.await.unwrap_or_else(closed);
        }
    }

    /// Follows the connection with the server.
    pub(crate) async fn watch(self: Arc<Self>, mut events: UnboundedReceiver<Event>) {
        while let Some(event) = events.recv().await {
            match event {
                // What is published now comes after the subscriptions, which the client makes again.
                Event::Connected => self.introduce(ALL).await,
                Event::Disconnected => {
                    tracing::warn!("the connection with the NATS server is lost");
                    self.peers.disconnected();
                }
                Event::ServerError(error) => tracing::warn!("the NATS server reports: {error}"),
                Event::ClientError(error) => tracing::warn!("can't reach the NATS server: {error}"),
                event => tracing::info!("the connection with the NATS server: {event}"),
            }
        }
    }

    /// Tells another process, or all, the name of this one, and asks for theirs.
    async fn introduce(&self, to: &str) {
        let (subjects, name) = (&self.subjects, self.name.clone().into());
        let client = &self.client;
        let introduction = client.publish_with_reply(subjects.here(to), subjects.answer(), name);
        introduction.await.unwrap_or_else(closed);
    }
}

/// Returns the id and the name of a process that introduces itself.
fn introduction(message: &Message) -> Option<(&str, &str)> {
    // The server replies if nobody listens.
    if message.status.is_some() || message.payload.is_empty() {
        return None;
    }
    let name = str::from_utf8(&message.payload).ok()?;
    Some((sender_of(&message.subject), name))
}

/// A publish fails when the client has ended.
fn closed(error: PublishError) {
    tracing::debug!("can't send to the other processes: {error}");
}
