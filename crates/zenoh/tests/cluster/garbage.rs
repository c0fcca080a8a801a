//! What a process sends that is no batch of this version.

use core::time::Duration;
use std::{thread, time::Instant};

use bevy_due_link_testing::{PATIENCE, addresses};
use zenoh::{Config, Session, Wait};

use crate::node;

fn session(member: &str) -> Session {
    let mut config = Config::default();
    let endpoint = format!("['tcp/{member}']");
    let settings = [
        ("scouting/multicast/enabled", "false"),
        ("listen/endpoints", "[]"),
        ("connect/endpoints", &endpoint),
    ];
    for (path, value) in settings {
        config.insert_json5(path, value).expect("a setting");
    }
    zenoh::open(config).wait().expect("it opens")
}

/// Returns the id of the node with a name.
fn id_of(session: &Session, name: &str) -> String {
    let start = Instant::now();
    loop {
        let alive = session.liveliness().get(format!("due/due/alive/*/{name}"));
        let replies = alive.wait().expect("it is asked");
        let id = replies.iter().find_map(|reply| {
            let key = reply.result().ok()?.key_expr();
            Some(key.as_str().split('/').nth(3)?.to_owned())
        });
        if let Some(id) = id {
            return id;
        }
        assert!(start.elapsed() < PATIENCE, "{name} should be alive");
    }
}

#[test]
fn garbage_and_other_versions_break_nothing() {
    let [a, b] = addresses();
    let mut first = node(&format!("name=a key=1 listen={a}"));
    let mut second = node(&format!("name=b key=2 listen={b} members={a}"));
    first.wait_for("peer b Up");
    second.wait_for("peer a Up");

    let session = session(&a);
    let (id, other, me) = (id_of(&session, "a"), id_of(&session, "b"), session.zid());
    let token = session
        .liveliness()
        .declare_token(format!("due/due/alive/{me}/odd"));
    let token = token.wait().expect("it is declared");
    // Another version of batches, and every kind of nonsense. The senders are one that is no member, this
    // one, and one that pretends to be the other node.
    let mut odd = vec![vec![], vec![0], vec![1], vec![2; 50], vec![255; 1 << 20]];
    odd.extend((0..50).map(|len| [vec![1], vec![0; len], vec![1; len]].concat()));
    // Again and again, because zenoh drops what comes before it knows the subscriber.
    for _ in 0..10 {
        for from in ["nobody", &me.to_string(), &other] {
            for bytes in &odd {
                let put = session.put(format!("due/due/to/{id}/{from}"), bytes.clone());
                put.wait().expect("it is sent");
            }
        }
        thread::sleep(Duration::from_millis(50));
    }
    // Keys of the wrong form.
    for key in ["due/due/alive/x/y", "due/due/alive/x"] {
        session
            .liveliness()
            .declare_token(key)
            .wait()
            .expect("it is declared")
            .undeclare()
            .wait()
            .ok();
    }
    let garbage = "sends: the bytes are not a batch";
    let warned = first.error_with("can't read what ");
    assert!(warned.contains(&format!("odd {garbage}")), "{warned}");
    let warned = first.error_with("can't read what ");
    assert!(warned.contains(&format!("b {garbage}")), "{warned}");
    for number in 0..10 {
        assert_eq!(first.ask(2, number), [""; 0], "nothing else has happened");
        assert_eq!(second.ask(1, number), [""; 0], "nothing else has happened");
    }
    drop((token, second));
    let errors = first.kill();
    let again = errors.iter().any(|line| line.contains("can't read what "));
    assert!(!again, "once for each member that it knows: {errors:?}");
}
