//! How a client may log in, speak and leave.

use crate::{start, stop, unlimited, visitor::Visitor};

#[test]
fn names_do_not_repeat() {
    let server = start(unlimited());
    let mut first = Visitor::new(server.address());
    let mut second = Visitor::new(server.address());
    first.log_in("ada");
    second.say("login ada ada\n");
    assert_eq!(second.answer(), "error: ada is here already");
    second.log_in("eve");
    first.say("who\n");
    assert_eq!(first.wait_for("here: "), "here: ada, eve");

    first.say("quit\n");
    first.wait_for_end();
    let mut third = Visitor::new(server.address());
    third.log_in("ada");
    stop(server);
}

#[test]
fn names_are_letters_and_digits() {
    let server = start(unlimited());
    let mut client = Visitor::new(server.address());
    for (name, password) in [
        ("a-b", "b-a"),
        ("a\u{202e}b", "b\u{202e}a"),
        (&"x".repeat(17), &"x".repeat(17)),
    ] {
        client.say(format!("login {name} {password}\n"));
        let answer = client.answer();
        assert_eq!(answer, "error: a name has up to 16 letters and digits");
    }
    client.log_in("Änne1");
    stop(server);
}

#[test]
fn no_line_holds_an_escape_sequence() {
    let server = start(unlimited());
    let mut client = Visitor::new(server.address());
    client.say("login \x1b[1m m1[\x1b\n");
    assert_eq!(client.answer(), "error: that line is not plain text");
    client.log_in("eve");
    for text in ["\x1b[2J", "\u{9b}2J", "a\rb", "a\0b"] {
        client.say(format!("say {text}\n"));
        assert_eq!(client.answer(), "error: that line is not plain text");
    }
    // Like a line from telnet.
    client.say("say hello\r\n");
    assert_eq!(client.wait_for("eve"), "eve: hello");
    stop(server);
}

#[test]
fn a_client_that_hangs_up_still_gets_its_answers() {
    let server = start(unlimited());
    for (said, answer) in [
        ("login ada ada\n", "ok, you are ada"),
        ("login ada ada", "ok, you are ada"),
        ("login eve adam", "error: name and password do not fit"),
        ("fly", "error: what is \"fly\"?"),
        ("quit", "bye"),
    ] {
        let mut client = Visitor::new(server.address());
        client.say(said);
        client.hang_up();
        assert_eq!(client.line().as_deref(), Some(answer), "to {said:?}");
        assert_eq!(client.line(), None, "after {said:?}");
    }
    let mut player = Visitor::new(server.address());
    player.log_in("ada");
    player.say("say hello\nwho");
    player.hang_up();
    assert_eq!(player.wait_for("ada"), "ada: hello");
    assert_eq!(player.line().as_deref(), Some("here: ada"));
    assert_eq!(player.line(), None);
    stop(server);
}
