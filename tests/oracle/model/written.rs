//! Messages from Bevy's writers, which go to all followers.

use std::collections::VecDeque;

use super::{
    Flow, Model,
    mail::{Letter, Role, Round, Whom},
};
use crate::op::Topic;

/// The messages from Bevy's writers.
#[derive(Clone, Default)]
pub(super) struct Written {
    /// The number of each message, and how often Bevy has swapped its buffers since.
    pub(super) all: VecDeque<(u64, u32)>,
    /// Whether an entity has ever followed them.
    pub(super) is_read: bool,
    pub(super) round: Option<Round>,
    /// Whether a fixed step has run since Bevy swapped its buffers.
    pub(super) is_swapped_next: bool,
}

impl Model {
    pub(super) fn write(&mut self) {
        let serial = self.next_serial();
        self.mail.written.all.push_back((serial, 0));
    }

    /// Bevy keeps written messages until it has swapped its buffers twice. It swaps them in the frame
    /// after a fixed step.
    pub(super) fn swap_written(&mut self) {
        if core::mem::take(&mut self.mail.written.is_swapped_next) {
            for (_, swaps) in &mut self.mail.written.all {
                *swaps += 1;
            }
        }
    }

    /// Messages from Bevy's writers go to all followers.
    pub(super) fn deliver_written(&mut self, count: usize) -> Flow {
        for left in (1..=count).rev() {
            let Some(&(serial, swaps)) = self.mail.written.all.front() else {
                break;
            };
            if self.followers(Topic::Word).is_empty() {
                self.mail.written.all.drain(..left);
                self.mail.written.round = None;
                break;
            }
            let round = self.mail.written.round.take();
            let mut round = round.unwrap_or_else(|| self.new_round());
            let letter = Letter {
                to: Whom::All(None),
                topic: Topic::Word,
                serial,
                role: Role::Plain,
            };
            if swaps < 2 {
                let called = self.call_all(&mut round, &letter);
                if called.is_err() {
                    self.mail.written.round = Some(round);
                    return called;
                }
            }
            self.mail.written.all.pop_front();
        }
        Ok(())
    }
}
