//! A client on a real socket.

use core::net::SocketAddr;
use std::{
    io::{BufRead, BufReader, ErrorKind, Write},
    net::{Shutdown, TcpStream},
};

use crate::PATIENCE;

/// The beginning of the reply to a login that was not checked in time.
pub const TRY_AGAIN: &str = "error: nobody has looked that up in time";

pub struct Visitor {
    pub socket: TcpStream,
    lines: BufReader<TcpStream>,
}

impl Visitor {
    /// Connects, and reads the welcome.
    pub fn new(server: SocketAddr) -> Self {
        let socket = TcpStream::connect(server).expect("the server should be listening");
        let mut client = Self::from(socket);
        client.wait_for("welcome");
        client
    }

    pub fn say(&mut self, bytes: impl AsRef<[u8]>) {
        self.socket
            .write_all(bytes.as_ref())
            .expect("should be connected");
    }

    /// Reads the next line, or `None` at the end.
    pub fn line(&mut self) -> Option<String> {
        let mut line = String::new();
        match self.lines.read_line(&mut line) {
            Ok(0) => None,
            Ok(_) => Some(line.trim_end().into()),
            Err(error) if error.kind() == ErrorKind::ConnectionReset => None,
            Err(error) => panic!("{error}"),
        }
    }

    /// Reads until a line starts with this, and returns it. Other clients may chat.
    pub fn wait_for(&mut self, beginning: &str) -> String {
        loop {
            let line = self.line();
            let line = line.unwrap_or_else(|| panic!("should be told {beginning:?}"));
            if line.starts_with(beginning) {
                return line;
            }
        }
    }

    pub fn log_in(&mut self, name: &str) {
        loop {
            let password: String = name.chars().rev().collect();
            self.say(format!("login {name} {password}\n"));
            let answer = self.answer();
            if answer == format!("ok, you are {name}") {
                return;
            }
            // On a slow machine the check may time out.
            assert!(answer.starts_with(TRY_AGAIN), "{answer}");
        }
    }

    /// Reads until there is a reply. Other clients may chat.
    pub fn answer(&mut self) -> String {
        loop {
            let line = self.line().expect("should be answered");
            if line.starts_with("ok") || line.starts_with("error") {
                return line;
            }
        }
    }

    /// Reads until the server hangs up.
    pub fn wait_for_end(&mut self) {
        while self.line().is_some() {}
    }

    /// Says no more, but still reads.
    pub fn hang_up(&self) {
        self.socket.shutdown(Shutdown::Write).unwrap();
    }
}

impl From<TcpStream> for Visitor {
    fn from(socket: TcpStream) -> Self {
        socket.set_read_timeout(Some(PATIENCE)).unwrap();
        let lines = BufReader::new(socket.try_clone().unwrap());
        Self { socket, lines }
    }
}
