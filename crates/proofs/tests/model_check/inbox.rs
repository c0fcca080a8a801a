//! The inbox of one world.

use super::*;

/// The n-th message of a thread.
#[derive(Message, Clone, Copy, Debug, PartialEq, Eq)]
struct Nth(usize, u32);

/// An app with an entity that logs messages and the sizes of packets.
fn listener(due: DuePlugin) -> (App, Log<Nth>, Log<usize>) {
    let mut app = app(due);
    let (messages, sizes) = (Log::new(), Log::new());
    let (log, log_size) = (messages.clone(), sizes.clone());
    let ears = MessageComponent::new()
        .on(move |_: MessageContext, nth: &Nth| log.push(*nth))
        .on_packet(SAY, move |_: MessageContext, packet: &Packet| {
            log_size.push(packet.payload().len());
        });
    app.world_mut().spawn(ears);
    // The callbacks join in the first frame.
    frame(&mut app);
    (app, messages, sizes)
}

fn with_capacity(items: usize) -> DuePlugin {
    DuePlugin {
        inbox_capacity: items,
        ..DuePlugin::default()
    }
}

/// Sends a message, again and again while the inbox is full.
fn send_until_taken(sender: &MessageSender, message: Nth) {
    while let Err(error) = sender.send(Delivery::All, message) {
        let SendError::Full(back) = error else {
            panic!("the world is there, but {error}");
        };
        assert_eq!(back, message);
        thread::yield_now();
    }
}

#[test]
fn a_bounded_inbox_delivers_each_message_once_and_in_order() {
    check(|| {
        const CAPACITY: usize = 2;
        const EACH: u32 = 3;

        let (mut app, log, _) = listener(with_capacity(CAPACITY));
        let threads = [0, 1, 2].map(|who| {
            let sender = app.world_mut().message_sender();
            let send = move |nth| send_until_taken(&sender, Nth(who, nth));
            thread::spawn(move || (0..EACH).for_each(send))
        });
        let mut all = Vec::new();
        while all.len() < 3 * EACH as usize {
            frame(&mut app);
            let frame = log.take();
            assert!(frame.len() <= CAPACITY, "{frame:?} came in one frame");
            all.extend(frame);
            thread::yield_now();
        }
        for thread in threads {
            thread.join().unwrap();
        }
        frame(&mut app);
        all.extend(log.take());
        for who in 0..3 {
            let of_one = all.iter().filter(|nth| nth.0 == who).map(|nth| nth.1);
            assert!(of_one.eq(0..EACH), "the messages of {who} in {all:?}");
        }
    });
}

#[test]
fn bytes_that_wait_stay_within_the_capacity() {
    check(|| {
        let (mut app, _, log) = listener(DuePlugin {
            inbox_bytes: 8,
            ..DuePlugin::default()
        });
        let threads = [[3, 0, 9], [5, 4, 2]].map(|sizes| {
            let sender = app.world_mut().message_sender();
            let send = move |size| {
                let packet = || Packet::new(SAY, vec![0; size]);
                while let Err(error) = sender.send(Delivery::All, packet()) {
                    assert_eq!(error, SendError::Full(packet()));
                    thread::yield_now();
                }
            };
            thread::spawn(move || sizes.into_iter().for_each(send))
        });
        let mut all = Vec::new();
        while all.len() < 6 {
            frame(&mut app);
            let frame = log.take();
            let sum: usize = frame.iter().sum();
            let is_alone = frame.iter().filter(|size| **size > 0).count() == 1;
            assert!(sum <= 8 || is_alone, "{frame:?} came in one frame");
            all.extend(frame);
            thread::yield_now();
        }
        for thread in threads {
            thread.join().unwrap();
        }
        frame(&mut app);
        all.extend(log.take());
        assert_eq!(sorted(all), [0, 2, 3, 4, 5, 9]);
    });
}

/// Sends messages until one is refused. Returns the number of messages that were taken.
fn send_until_closed(sender: &MessageSender, who: usize, each: u32) -> u32 {
    for nth in 0..each {
        match sender.send(Delivery::All, Nth(who, nth)) {
            Ok(()) => {}
            Err(SendError::Closed(back)) => {
                assert_eq!(back, Nth(who, nth));
                return nth;
            }
            Err(full) => panic!("there is room, but {full}"),
        }
    }
    each
}

/// Sends from threads to a world that closes its inbox. Each message is delivered, handed back to
/// the world, or handed back to its sender.
fn close_while_others_send(threads: usize, each: u32) {
    let (mut app, log, _) = listener(DuePlugin::default());
    let senders: Vec<_> = (0..threads)
        .map(|who| {
            let sender = app.world_mut().message_sender();
            thread::spawn(move || send_until_closed(&sender, who, each))
        })
        .collect();
    frame(&mut app);
    let left = app.world_mut().close_inbox();
    let message = |letter: &Letter| *letter.message::<Nth>().unwrap();
    let mut all = log.take();
    all.extend(left.iter().map(message));
    for (who, sender) in senders.into_iter().enumerate() {
        let taken = sender.join().unwrap();
        let of_one = all.iter().filter(|nth| nth.0 == who).map(|nth| nth.1);
        assert!(of_one.eq(0..taken), "{taken} messages of {who} in {all:?}");
    }
    let sender = app.world_mut().message_sender();
    assert!(sender.is_closed(), "a closed inbox stays closed");
    let late = sender.send(Delivery::All, Nth(9, 9));
    assert_eq!(late, Err(SendError::Closed(Nth(9, 9))));
}

#[test]
fn closing_loses_no_message() {
    check(|| close_while_others_send(3, 3));
}

#[test]
fn closing_loses_no_message_in_any_schedule() {
    check_all(|| close_while_others_send(1, 3));
    check_all(|| close_while_others_send(2, 1));
}

#[test]
fn a_full_inbox_refuses_in_every_schedule() {
    check_all(|| {
        let (mut app, log, _) = listener(with_capacity(1));
        let senders = [0, 1].map(|who| {
            let sender = app.world_mut().message_sender();
            thread::spawn(move || sender.send(Delivery::All, Nth(who, 0)))
        });
        frame(&mut app);
        let first = log.take();
        assert!(first.len() <= 1, "{first:?} came in one frame");
        let refused = senders.into_iter().filter_map(|sender| {
            let sent = sender.join().unwrap();
            sent.err().map(|error| {
                assert!(matches!(error, SendError::Full(_)));
                error.into_inner()
            })
        });
        let refused: Vec<_> = refused.collect();
        frame(&mut app);
        let mut all = [first, log.take(), refused].concat();
        all.sort_by_key(|nth| nth.0);
        assert_eq!(all, [Nth(0, 0), Nth(1, 0)]);
    });
}

#[test]
fn a_world_that_is_dropped_drops_each_message_once() {
    /// Counts its copies.
    #[derive(Message, Clone)]
    struct Counted(Arc<()>);

    check(|| {
        let mut app = app(DuePlugin::default());
        let message = Counted(Arc::default());
        let senders = [0, 1].map(|_| {
            let (sender, message) = (app.world_mut().message_sender(), message.clone());
            thread::spawn(move || {
                for _ in 0..3 {
                    let for_later = sender.clone();
                    // A message that holds a sender to the same inbox.
                    let keeps = message.clone();
                    sender.run(move |_| drop((for_later, keeps))).ok();
                    sender.send(Delivery::All, message.clone()).ok();
                }
                sender
            })
        });
        frame(&mut app);
        drop(app);
        for sender in senders {
            let sender = sender.join().unwrap();
            let refused = sender.send(Delivery::All, message.clone());
            assert!(matches!(refused, Err(SendError::Closed(_))));
        }
        assert_eq!(Arc::strong_count(&message.0), 1, "no copy is left");
    });
}
