use alloc::{collections::VecDeque, vec, vec::Vec};

use proptest::{collection, prelude::*};

use super::{
    super::{
        address::{Address, StableKey},
        parcel::Part,
    },
    wire::HEAD,
    *,
};
use crate::message::{Delivery, Packet, RemoteAsker};

/// Each kind of frame and each variant in it, as the release with version 1 writes them. Never change
/// this file: a new format is a new version and a new file.
const BATCH_V1: &[u8] = include_bytes!("../../../tests/golden/batch_v1.bin");

fn head() -> Head {
    Head {
        process: 0x0102_0304_0506_0708,
        session: 11,
        seen: 12,
        received: 13,
        first: 14,
        frames: 0,
    }
}

fn frames() -> Vec<Frame> {
    let address = || Address {
        group: "zones".into(),
        key: StableKey(7),
    };
    let source = Source {
        process: 1,
        world: 2,
        sequence: 3,
        seal: 9,
        hops: 0,
    };
    let deliveries = [
        Delivery::To(StableKey(u64::MAX)),
        Delivery::All,
        Delivery::InTurn,
    ];
    let (token, number) = (5, 6);
    let asker = RemoteAsker {
        group: "zones".into(),
        key: 7,
        token,
        number,
    };
    let parts = [
        Part::Plain,
        Part::Request(asker),
        Part::Reply { token, number },
    ];
    let passed_on = Source { hops: 4, ..source };
    let parcels = deliveries.into_iter().zip(parts);
    let parcels = parcels.map(|(delivery, part)| {
        let packet = Packet::new(8, *b"bytes");
        let mut parcel = Parcel::new("ears", delivery, packet);
        parcel.part = part;
        parcel
    });
    let parcels: Vec<Parcel> = parcels.collect();
    let reasons = [
        RefusalReason::NoLink,
        RefusalReason::UnknownGroup,
        RefusalReason::UnknownKey,
        RefusalReason::Full,
        RefusalReason::InPart,
        RefusalReason::NoKey,
        RefusalReason::TooLarge,
        RefusalReason::PeerLost,
        RefusalReason::Forbidden,
    ];
    let refused = reasons.map(|reason| parcels[0].clone().refused(reason));
    let parcels = parcels.into_iter();
    let parcels = parcels.map(|parcel| Frame::Parcel(parcel, passed_on));
    let mut frames: Vec<Frame> = parcels.collect();
    frames.extend(refused.map(|refused| Frame::Refused(refused, passed_on)));
    frames.extend([
        Frame::Worlds("logic".into(), 9),
        Frame::Bound(address(), 10),
        Frame::Unbound(address(), 11),
        Frame::Room("ears".into(), source),
        Frame::Goodbye,
        Frame::Introduced,
    ]);
    frames
}

/// Returns a batch of frames as bytes.
fn batch(mut head: Head, frames: &[Frame]) -> Vec<u8> {
    let mut bytes = vec![0; HEAD];
    for frame in frames {
        frame.write(&mut bytes);
        head.frames += 1;
    }
    wire::write_head(&head, &mut bytes);
    bytes
}

#[test]
fn the_format_is_the_one_of_version_1() {
    assert_eq!(batch(head(), &frames()), BATCH_V1);
    let (read_head, read_frames) = read_batch(BATCH_V1).expect("it is a batch");
    assert_eq!(read_frames, frames());
    let frames = read_head.frames;
    assert_eq!(read_head, Head { frames, ..head() });
}

#[test]
fn any_cut_batch_is_an_error() {
    for end in 0..BATCH_V1.len() {
        let error = read_batch(&BATCH_V1[..end]).expect_err("it is cut");
        assert_eq!(error, BatchError::Malformed, "{end}");
    }
    let longer = [BATCH_V1, &[0]].concat();
    assert_eq!(
        read_batch(&longer).expect_err("it is longer"),
        BatchError::Malformed
    );
}

proptest! {
    #[test]
    fn a_changed_batch_is_an_error_or_another_batch(
        changes in collection::vec((0..BATCH_V1.len(), any::<u8>()), 1..4),
    ) {
        let mut bytes = BATCH_V1.to_vec();
        for (place, byte) in changes {
            bytes[place] = byte;
        }
        if let Ok((head, frames)) = read_batch(&bytes) {
            let written = batch(Head { frames: 0, ..head }, &frames);
            let (head_again, frames_again) = read_batch(&written).expect("it is a batch");
            prop_assert_eq!((head_again, frames_again), (head, frames));
        }
    }

    #[test]
    fn bytes_that_are_no_batch_do_no_harm(bytes in collection::vec(any::<u8>(), 0..200)) {
        read_batch(&bytes).ok();
        let versioned = [&[1], &bytes[..]].concat();
        read_batch(&versioned).ok();
    }

    #[test]
    fn two_sessions_agree_on_a_bad_wire(steps in collection::vec(step(), 0..200)) {
        let mut wire = Wire::default();
        for step in steps {
            wire.take(step)?;
        }
        wire.settle()?;
    }
}

/// What can happen on a wire between two sessions. The first number is the end.
#[derive(Clone, Copy, Debug)]
enum Step {
    /// An end sends this number of frames, if it is up, or else an empty batch.
    Send(usize, u32),
    Arrive(usize),
    ArriveTwice(usize),
    Lose(usize),
    Restart(usize),
}

fn step() -> impl Strategy<Value = Step> {
    let end = 0..2_usize;
    prop_oneof![
        4 => (end.clone(), 0..3_u32).prop_map(|(end, frames)| Step::Send(end, frames)),
        4 => end.clone().prop_map(Step::Arrive),
        1 => end.clone().prop_map(Step::ArriveTwice),
        1 => end.clone().prop_map(Step::Lose),
        1 => end.prop_map(Step::Restart),
    ]
}

struct Wire {
    ends: [End; 2],
}

struct End {
    session: Session,
    /// The batches to this end, each with the connection of the sender and its frames.
    arriving: VecDeque<(Head, Vec<u64>)>,
    /// The number of the next frame to send. Frames are never sent twice.
    next: u64,
    /// The last frame that has arrived.
    last: Option<u64>,
    owes_hello: bool,
}

impl Default for Wire {
    fn default() -> Self {
        let end = || End {
            session: Session::new(),
            arriving: VecDeque::new(),
            next: 0,
            last: None,
            owes_hello: true,
        };
        Self {
            ends: [end(), end()],
        }
    }
}

impl Wire {
    fn take(&mut self, step: Step) -> Result<(), TestCaseError> {
        match step {
            Step::Send(end, frames) => self.send(end, frames),
            Step::Arrive(end) => {
                if let Some(batch) = self.ends[end].arriving.pop_front() {
                    self.arrive(end, batch)?;
                }
            }
            Step::ArriveTwice(end) => {
                if let Some(batch) = self.ends[end].arriving.pop_front() {
                    self.arrive(end, batch.clone())?;
                    self.arrive(end, batch)?;
                }
            }
            Step::Lose(end) => _ = self.ends[end].arriving.pop_front(),
            Step::Restart(end) => {
                self.ends[end].session.restart();
                self.ends[end].owes_hello = true;
            }
        }
        Ok(())
    }

    fn send(&mut self, end: usize, frames: u32) {
        let from = &mut self.ends[end];
        let frames = if from.session.up().is_some() {
            frames
        } else {
            0
        };
        let mut chunk = Chunk::new();
        chunk.frames = frames;
        let head = from.session.head(0, &chunk);
        let first = from.next;
        from.next += u64::from(frames);
        from.owes_hello = false;
        let frames = (first..from.next).collect();
        self.ends[1 - end].arriving.push_back((head, frames));
    }

    fn arrive(
        &mut self,
        end: usize,
        (head, frames): (Head, Vec<u64>),
    ) -> Result<(), TestCaseError> {
        let to = &mut self.ends[end];
        let before = to.session.up();
        let heard @ Heard {
            lost,
            begun,
            owes_hello,
            ..
        } = to.session.hear(&head);
        to.owes_hello |= owes_hello;
        prop_assert!(lost.is_none() || lost == before, "{heard:?}");
        prop_assert!(begun.is_none() || begun == to.session.up(), "{heard:?}");
        if let Some((known, session)) = heard.frames {
            prop_assert_eq!(Some(session), to.session.up());
            for frame in &frames[known as usize..] {
                prop_assert!(
                    to.last.is_none_or(|last| last < *frame),
                    "doubled or reordered"
                );
                to.last = Some(*frame);
            }
        }
        Ok(())
    }

    /// Carries everything from now on. Soon both ends are up, and every frame arrives.
    fn settle(&mut self) -> Result<(), TestCaseError> {
        for _ in 0..20 {
            for end in 0..2 {
                // The heartbeat.
                self.send(end, 0);
                while let Some(batch) = self.ends[1 - end].arriving.pop_front() {
                    self.arrive(1 - end, batch)?;
                }
            }
        }
        for end in 0..2 {
            prop_assert!(self.ends[end].session.up().is_some());
            self.send(end, 3);
            let sent = self.ends[end].next;
            while let Some(batch) = self.ends[1 - end].arriving.pop_front() {
                self.arrive(1 - end, batch)?;
            }
            prop_assert_eq!(self.ends[1 - end].last, Some(sent - 1));
            prop_assert!(!self.ends[1 - end].owes_hello, "they talk without end");
        }
        Ok(())
    }
}
