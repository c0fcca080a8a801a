//! The output of a client, from its world to its socket.

use core::{mem, time::Duration};
use std::{
    io::Write,
    net::{Shutdown, TcpStream},
    sync::{Condvar, Mutex, MutexGuard, PoisonError},
};

/// A client is cut off if more bytes than this would wait for it.
pub const TOO_MUCH: usize = 64 * 1024;

/// A socket, and the output that waits for the thread that writes it.
///
/// No method waits for the client, except the writing itself.
#[derive(Debug)]
pub struct Output {
    pub socket: TcpStream,
    waiting: Mutex<Waiting>,
    /// Notified when there is output, and when the output is closed.
    changed: Condvar,
}

#[derive(Debug, Default)]
struct Waiting {
    text: String,
    is_closed: bool,
}

impl Output {
    pub fn new(socket: TcpStream) -> Self {
        let (waiting, changed) = Default::default();
        Self {
            socket,
            waiting,
            changed,
        }
    }

    /// Adds a line, unless the output is closed. Cuts off the client if too much waits already.
    pub fn say(&self, line: &str) {
        let mut waiting = self.lock();
        if waiting.is_closed {
            return;
        }
        if waiting.text.len() + line.len() >= TOO_MUCH {
            drop(waiting);
            return self.cut();
        }
        waiting.text.push_str(line);
        waiting.text.push('\n');
        self.changed.notify_all();
    }

    /// Takes no more lines. The connection ends once the rest is written.
    pub fn close(&self) {
        self.lock().is_closed = true;
        self.changed.notify_all();
    }

    /// Ends the connection now. Reads and writes that wait for the client fail.
    pub fn cut(&self) {
        self.close();
        // The client may be gone already.
        self.socket.shutdown(Shutdown::Both).ok();
    }

    /// Waits at most this long, and returns `true` if the output is closed.
    pub fn closes_within(&self, time: Duration) -> bool {
        let waiting = self.lock();
        let is_open = |waiting: &mut Waiting| !waiting.is_closed;
        let ended = self.changed.wait_timeout_while(waiting, time, is_open);
        let (waiting, _) = ended.unwrap_or_else(PoisonError::into_inner);
        waiting.is_closed
    }

    /// Writes the output until it is closed or the client is gone, and ends the connection.
    pub fn write(&self) {
        while let Some(text) = self.take() {
            if (&self.socket).write_all(text.as_bytes()).is_err() {
                break;
            }
        }
        self.cut();
    }

    /// Waits for output and takes it, or returns `None` if the output is closed.
    pub fn take(&self) -> Option<String> {
        let is_idle = |waiting: &mut Waiting| waiting.text.is_empty() && !waiting.is_closed;
        let waiting = self.changed.wait_while(self.lock(), is_idle);
        let text = mem::take(&mut waiting.unwrap_or_else(PoisonError::into_inner).text);
        (!text.is_empty()).then_some(text)
    }

    fn lock(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
