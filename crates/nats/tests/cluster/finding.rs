//! How processes find each other.

#[cfg(not(feature = "tls"))]
use std::{
    io::{Read, Write},
    net::TcpListener,
    thread,
};

use bevy_due::worlds::WorldGroups;
use bevy_due_link_testing::{
    addresses, nats_server::NatsServer, node::Node, scenarios, scenarios::wait_until,
};
use bevy_due_nats::{NatsConfig, nats_link};

use crate::{join, node, three};

#[test]
fn processes_find_each_other() {
    let server = NatsServer::start(&[]);
    scenarios::they_reach_each_other(three(&server, "down_after=10000"));
}

#[test]
fn a_process_that_starts_again_is_found_again() {
    let server = NatsServer::start(&[]);
    let first = node(&server.address, "name=a key=1");
    scenarios::one_starts_again(first, || node(&server.address, "name=b key=2"));
}

/// Each process is at another server of a cluster, and one of the servers dies.
#[test]
fn processes_at_two_servers_find_each_other() {
    let [first_route, second_route] = addresses().map(|it: String| format!("nats://{it}"));
    let start = |own: &str, other: &str| {
        let cluster = [
            "--cluster_name",
            "both",
            "--cluster",
            own,
            "--routes",
            other,
        ];
        NatsServer::start(&cluster)
    };
    let first = start(&first_route, &second_route);
    let mut second = start(&second_route, &first_route);
    let mut a = node(&first.address, "name=a key=1 inbox=20000");
    wait_until("the servers know each other", || {
        second.greeting().contains(&first.address)
    });
    let mut b = node(&second.address, "name=b key=2 inbox=20000");
    a.wait_for("peer b Up");
    b.wait_for("peer a Up");
    a.ask(2, 1);
    a.tell("say 2 1 10000 64");
    assert_eq!(b.hears(10_000, "a"), [10_000, 10_000, 0]);
    assert_eq!(
        b.ask(1, 2),
        [""; 0],
        "the connection is still the first one"
    );
    a.tell("hold 2");
    b.wait_for("holds");
    second.kill();
    a.wait_for("no answer: Refused(PeerLost)");
    // Its client knows the other server from the first one.
    b.wait_for_all(&["peer a Down", "peer a Up"]);
    b.ask(1, 3);
    a.ask(2, 4);
}

#[test]
fn two_processes_can_have_the_same_name() {
    let server = NatsServer::start(&[]);
    let mut a = node(&server.address, "name=a key=1");
    let mut twin = node(&server.address, "name=twin key=2");
    a.wait_for("peer twin Up");
    let mut other = node(&server.address, "name=twin key=3");
    a.wait_for("peer twin Up");
    twin.wait_for_all(&["peer a Up", "peer twin Up"]);
    other.wait_for("peer a Up");
    a.ask(2, 1);
    a.ask(3, 1);
    a.tell("say all 5");
    assert_eq!(twin.hears(5, "a"), [1, 5, 0]);
    assert_eq!(other.hears(5, "a"), [1, 5, 0]);
    twin.kill();
    a.wait_for("peer twin Down");
    assert_eq!(a.ask(3, 4), [""; 0], "the other one lives");
}

#[test]
fn processes_of_other_clusters_share_nothing() {
    let server = NatsServer::start(&[]);
    let red = join(&server.address, "red");
    let _blue = join(&server.address, "blue");
    let _also_red = join(&server.address, "red");
    wait_until("both know each other", || red.running("red") == 2);
    assert_eq!(red.running("blue"), 0);
}

#[test]
fn a_link_opens_and_closes_on_a_thread_of_an_async_runtime() {
    let server = NatsServer::start(&[]);
    let runtime = tokio::runtime::Builder::new_current_thread().build();
    runtime.expect("it starts").block_on(async {
        let first = join(&server.address, "red");
        let second = join(&server.address, "red");
        wait_until("both know each other", || first.running("red") == 2);
        drop(second);
        wait_until("the other one has gone", || first.running("red") == 1);
    });
}

#[test]
fn a_server_can_demand_a_user() {
    let server = NatsServer::start(&["--user", "me", "--pass", "p@ss:/%"]);
    let join = |user: &str| {
        let config = NatsConfig {
            servers: vec![format!("nats://{user}{}", server.address)],
            ..NatsConfig::default()
        };
        WorldGroups::new().join(nats_link(config))
    };
    for user in ["", "me:p@ss:/@"] {
        let error = join(user).expect_err("it is another user").to_string();
        let start = format!("can't connect to [\"nats://{}\"]: ", server.address);
        assert!(error.starts_with(&start), "{error}");
        assert!(error.contains("authorization violation"), "{error}");
    }
    join("me:p@ss:/%@").expect("it has a user");
    join("%6De:p%40ss%3A%2F%25@").expect("it has a user");
}

#[test]
fn an_option_lets_a_process_start_before_the_server() {
    let mut server = NatsServer::start(&[]);
    server.kill();
    let config = NatsConfig {
        cluster: "red".into(),
        servers: vec![server.address.clone()],
        waits_for_server: true,
        ..NatsConfig::default()
    };
    let mut groups = WorldGroups::new();
    groups
        .join(nats_link(config))
        .expect("it waits for no server");
    server.start_again();
    let _other = join(&server.address, "red");
    wait_until("it finds the other", || groups.running("red") == 1);
}

#[cfg(not(feature = "tls"))]
#[test]
fn a_server_that_needs_tls_is_an_error_without_it() {
    let listener = TcpListener::bind("127.0.0.1:0").expect("there is a port");
    let config = NatsConfig {
        servers: vec![listener.local_addr().expect("it has one").to_string()],
        ..NatsConfig::default()
    };
    let server = thread::spawn(move || {
        let (mut client, _) = listener.accept().expect("it connects");
        let greeting = br#"INFO {"tls_required":true}"#;
        client.write_all(&[&greeting[..], b"\r\n"].concat()).ok();
        client.read_to_end(&mut Vec::new()).ok();
    });
    let refused = WorldGroups::new().join(nats_link(config));
    let error = refused.expect_err("it has no TLS").to_string();
    assert!(error.contains("CryptoProvider"), "{error}");
    server.join().expect("no panic");
}

#[test]
fn the_error_for_a_server_that_is_not_there_names_it() {
    let [free] = addresses();
    let mut node = Node::run("nats_node", &format!("name=a servers={free}"));
    let error = node.next_line();
    let start = format!("error: can't connect to [\"nats://{free}\"]: ");
    assert!(
        error.starts_with(&start) && error.contains("Connection refused"),
        "{error}"
    );
    assert_eq!(node.wait().code(), Some(1));
}
