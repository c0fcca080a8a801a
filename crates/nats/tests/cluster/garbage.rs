//! What a process sends that is no batch of this version.

use core::time::Duration;

use async_nats::{Client, Message};
use bevy_due_link_testing::{PATIENCE, nats_server::NatsServer};
use futures_util::StreamExt;

use crate::node;

/// Returns the ids of the nodes a and b, which introduce themselves now and then.
async fn ids(client: &Client) -> [String; 2] {
    let mut introductions = client
        .subscribe("bevy_due.due.here.all.*")
        .await
        .expect("it listens");
    let mut ids = ["a", "b"].map(|name| (name, None));
    while ids.iter().any(|(_, id)| id.is_none()) {
        let next = tokio::time::timeout(PATIENCE, introductions.next()).await;
        let Message {
            subject, payload, ..
        } = next.expect("in time").expect("a message");
        for (name, id) in &mut ids {
            if name.as_bytes() == &*payload {
                *id = subject.rsplit('.').next().map(String::from);
            }
        }
    }
    ids.map(|(_, id)| id.expect("it was found"))
}

#[test]
fn garbage_and_other_versions_break_nothing() {
    let server = NatsServer::start(&[]);
    let mut first = node(&server.address, "name=a key=1");
    let mut second = node(&server.address, "name=b key=2");
    first.wait_for("peer b Up");
    second.wait_for("peer a Up");
    first.ask(2, 1);

    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    runtime.expect("it starts").block_on(async {
        let client = async_nats::connect(&server.address)
            .await
            .expect("it connects");
        let [me, other] = ids(&client).await;
        // A member that listens to nothing it understands.
        let mut odd_one = client
            .subscribe("bevy_due.due.to.odd.*")
            .await
            .expect("it listens");
        client
            .publish("bevy_due.due.here.all.odd", "odd".into())
            .await
            .expect("it is sent");
        odd_one.next().await.expect("a batch");
        // Another version of batches, and every kind of nonsense. The senders are one that is no member, the
        // odd one, the node itself, and one that pretends to be the other node.
        let mut odd = vec![vec![], vec![0], vec![1], vec![2; 50], vec![255; 1 << 19]];
        odd.extend((0..50).map(|len| [vec![1], vec![0; len], vec![1; len]].concat()));
        for from in ["nobody", "odd", &me, &other] {
            for bytes in &odd {
                let to = format!("bevy_due.due.to.{me}.{from}");
                client
                    .publish(to, bytes.clone().into())
                    .await
                    .expect("it is sent");
            }
        }
        // Introductions without a name, with one that is no text, and of the node itself.
        for (from, name) in [("x", vec![]), ("y", vec![255, 254]), (&*me, b"me".to_vec())] {
            for to in ["all", &me] {
                let here = format!("bevy_due.due.here.{to}.{from}");
                client
                    .publish(here, name.clone().into())
                    .await
                    .expect("it is sent");
            }
        }
        client.flush().await.expect("it is sent");
        tokio::time::sleep(Duration::from_millis(100)).await;
    });
    let garbage = "sends: the bytes are not a batch";
    let warned = first.error_with("can't read what ");
    assert!(warned.contains(&format!("odd {garbage}")), "{warned}");
    let warned = first.error_with("can't read what ");
    assert!(warned.contains(&format!("b {garbage}")), "{warned}");
    for number in 0..10 {
        assert_eq!(first.ask(2, number), [""; 0], "nothing else has happened");
        assert_eq!(second.ask(1, number), [""; 0], "nothing else has happened");
    }
    drop(second);
    let errors = first.kill();
    let again = errors.iter().any(|line| line.contains("can't read what "));
    assert!(!again, "once for each member that it knows: {errors:?}");
}
