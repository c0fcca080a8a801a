//! The world of the clients, frame by frame.

use core::time::Duration;
use std::{
    io::{Read, Write},
    net::TcpStream,
    sync::Arc,
    thread,
    time::Instant,
};

use bevy_app::App;
use bevy_due::message::{MessageWorldExt, Packet};
use bevy_time::{TimePlugin, TimeUpdateStrategy};

use crate::{
    PATIENCE, accounts,
    client::{self, Client, Line},
    output::Output,
    patient,
    player::Names,
    socket, socket_pair,
    stranger::welcome,
    unlimited,
};

const FRAME: Duration = Duration::from_millis(50);

fn app(frame: Duration) -> App {
    let mut app = App::new();
    app.add_plugins(TimePlugin)
        .insert_resource(TimeUpdateStrategy::ManualDuration(frame));
    client::build(&mut app, &patient(unlimited()));
    app
}

fn clients(app: &mut App) -> usize {
    let mut clients = app.world_mut().query::<&Client>();
    clients.iter(app.world()).count()
}

#[test]
fn a_reply_does_not_wait_for_the_next_frame() {
    let mut app = app(FRAME);
    let sender = app.world_mut().message_sender();
    let (socket, _client) = socket_pair();
    let output = Arc::new(Output::new(socket));
    let client = welcome(app.world_mut(), Client(output.clone()));
    app.update();
    assert_eq!(output.take().as_deref(), Some("welcome, please log in\n"));
    let frame = |app: &mut App| {
        app.update();
        // There is always something to take.
        output.say("end");
        output.take().unwrap()
    };
    let line = |line: &str| sender.send(client, Line(line.into())).unwrap();
    line("who");
    assert_eq!(frame(&mut app), "error: log in first\nend\n");
    sender
        .send(client, Packet::new(accounts::WELCOME, *b"ada"))
        .unwrap();
    assert_eq!(frame(&mut app), "ok, you are ada\nend\n");
    app.update();
    line("say hello");
    assert_eq!(frame(&mut app), "ada: hello\nend\n");
    line("who");
    assert_eq!(frame(&mut app), "here: ada\nend\n");
    let mut names = app.world_mut().resource_mut::<Names>();
    names.0.extend((0..300).map(|nth| format!("p{nth:03}")));
    line("who");
    let here = frame(&mut app);
    let (first, last) = ("here: ada, p000, ", ", p198 and 101 more\nend\n");
    assert!(here.starts_with(first) && here.ends_with(last), "{here}");
    line("quit");
    assert_eq!(frame(&mut app), "bye\n");
}

#[test]
fn a_crowd_that_speaks_at_once_is_heard_in_part_and_counted() {
    let mut app = app(FRAME);
    let sender = app.world_mut().message_sender();
    let players: Vec<_> = (0..30)
        .map(|nth| {
            let (socket, client) = socket_pair();
            let output = Arc::new(Output::new(socket));
            let entity = welcome(app.world_mut(), Client(output.clone()));
            let ok = Packet::new(accounts::WELCOME, format!("p{nth}").into_bytes());
            sender.send(entity, ok).unwrap();
            (entity, output, client)
        })
        .collect();
    let told = |app: &mut App, nth: usize| {
        app.update();
        let text = players[nth].1.take().unwrap();
        text.lines().map(str::to_owned).collect::<Vec<_>>()
    };
    let arrivals = told(&mut app, 29);
    assert_eq!(arrivals.len(), 23, "{arrivals:?}");
    assert_eq!(arrivals[1..3], ["ok, you are p29", "p0 is here"]);
    assert_eq!(arrivals[22], "and 10 more lines");
    for (entity, ..) in &players {
        sender.send(*entity, Line("say hello".into())).unwrap();
    }
    let said = told(&mut app, 29);
    assert_eq!(said.len(), 22, "{said:?}");
    assert_eq!(said[..2], ["p29: hello", "p0: hello"]);
    assert_eq!(said[21], "and 10 more lines");
}

/// Serves a client whose socket has no room for output, and waits for its welcome.
fn serve_slow_reader(app: &mut App) -> (Arc<Output>, TcpStream) {
    let (mut socket, mut client) = socket_pair();
    socket.set_nonblocking(true).unwrap();
    let mut refusals = 0;
    while refusals < 100 {
        refusals = match socket.write(&[b'\n'; 4096]) {
            Ok(_) => 0,
            Err(_) => refusals + 1,
        };
        // The system may make room when it hears from the client.
        if refusals > 0 {
            client.write_all(b" ").unwrap();
        }
    }
    let sender = app.world_mut().message_sender();
    let output = socket::serve(socket, unlimited(), &sender).unwrap();
    while clients(app) == 0 {
        app.update();
    }
    (output, client)
}

/// Reads a little at a time, but not enough to make room, until the server hangs up.
fn trickle(app: &mut App, output: Arc<Output>, mut client: &TcpStream) {
    let start = Instant::now();
    let mut room = 1000;
    while Arc::strong_count(&output) > 1 {
        assert!(start.elapsed() < PATIENCE, "should be cut off");
        app.update();
        if room > 0 {
            room -= client.read(&mut [0]).unwrap_or(0);
        }
        thread::yield_now();
    }
}

#[test]
fn a_client_that_leaves_has_a_second_to_read_its_output() {
    let mut app = app(FRAME);
    let (output, mut client) = serve_slow_reader(&mut app);
    client.write_all(b"\nquit\n").unwrap();
    trickle(&mut app, output, &client);
    app.update();
    assert_eq!(clients(&mut app), 0);
}

#[test]
fn a_client_is_cut_off_at_the_end_of_its_world() {
    let mut app = app(FRAME);
    let (output, client) = serve_slow_reader(&mut app);
    drop(app);
    trickle(&mut App::new(), output, &client);
}

#[test]
fn a_client_that_has_read_everything_needs_no_time_to_leave() {
    // Time stands still.
    let mut app = app(Duration::ZERO);
    let (socket, mut client) = socket_pair();
    let sender = app.world_mut().message_sender();
    socket::serve(socket, unlimited(), &sender).unwrap();
    while clients(&mut app) == 0 {
        app.update();
    }
    client.write_all(b"quit\n").unwrap();
    let start = Instant::now();
    while clients(&mut app) == 1 {
        assert!(start.elapsed() < PATIENCE, "should be despawned");
        app.update();
    }
    let mut read = String::new();
    client.read_to_string(&mut read).unwrap();
    assert_eq!(read, "welcome, please log in\nbye\n");
}
