//! The delivery of messages: once, in the order of sending, to one, to all or to one in turn.

use std::collections::VecDeque;

use super::{
    Flow, Handler, Model, Panicked,
    mail::{Letter, Outcome, Role, Round, Whom},
};
use crate::{
    entry::{Entry, Hearing, Id, Named},
    op::Topic,
};

impl Model {
    /// Held messages come first, then the others in the order of sending. Messages from Bevy's writers come
    /// last.
    pub(super) fn deliver(&mut self) -> Flow {
        if let Some(request) = self.mail.completed.take() {
            self.despawn(request);
        }
        let mut released: VecDeque<Letter> = self.mail.held.drain(..).collect();
        released.append(&mut self.mail.released);
        released.append(&mut self.mail.sent);
        let has_mail = !released.is_empty();
        self.mail.released = released;
        // Those that are written during the delivery wait for the next.
        let written = self.mail.written.all.len();
        let has_written = self.mail.written.is_read && written > 0;
        while let Some(letter) = self.mail.released.pop_front() {
            self.deliver_letter(letter)?;
        }
        if has_written {
            self.deliver_written(written)?;
        }
        if has_mail || has_written {
            self.mail.shown_counts = self.mail.counts;
        }
        Ok(())
    }

    fn deliver_letter(&mut self, letter: Letter) -> Flow {
        let outcome = match letter.to {
            Whom::All(_) => return self.deliver_to_all(letter),
            Whom::InTurn => self.deliver_in_turn(&letter)?,
            Whom::One(None) => Outcome::Undeliverable,
            Whom::One(Some(id)) => match letter.role {
                Role::Reply(request) => self.deliver_reply(id, request, &letter)?,
                _ => self.deliver_to(id, &letter)?,
            },
        };
        match outcome {
            Outcome::Delivered => self.mail.counts[0] += 1,
            Outcome::Undeliverable => self.mail.counts[1] += 1,
            Outcome::Late => self.mail.counts[2] += 1,
            Outcome::Disabled => self.mail.held.push(letter),
        }
        Ok(())
    }

    /// A message to an entity that is gone or disabled, or that does not follow it, is lost.
    fn deliver_to(&mut self, id: Id, letter: &Letter) -> Result<Outcome, Panicked> {
        if !self.exists(id) || self.entities[id].is_disabled {
            return Ok(Outcome::Undeliverable);
        }
        Ok(match self.entities[id].follows {
            None => Outcome::Undeliverable,
            Some(follows) if follows.topics.contain(letter.topic) => {
                self.hear(id, letter)?;
                Outcome::Delivered
            }
            Some(_) => Outcome::Undeliverable,
        })
    }

    /// The first reply completes a request, also if a restore has spawned the request or the asking
    /// entity again. It waits for an entity that is disabled.
    fn deliver_reply(
        &mut self,
        mut asker: Id,
        request: Id,
        letter: &Letter,
    ) -> Result<Outcome, Panicked> {
        let request = self.request_now(request);
        if !self.exists(asker)
            && let Some(request) = self.entities.get(request)
        {
            asker = request.owner.unwrap_or(asker);
        }
        let letter = &Letter {
            role: Role::Reply(request),
            ..letter.clone()
        };
        if !self.exists(request) || self.entities[request].owner != Some(asker) {
            return Ok(Outcome::Late);
        }
        if self.entities[asker].is_disabled {
            return Ok(Outcome::Disabled);
        }
        self.mail.completed = Some(request);
        let outcome = self.deliver_to(asker, letter)?;
        self.mail.completed = None;
        // Other replies are late from now on, even if the entity does not follow this one.
        self.despawn(request);
        Ok(outcome)
    }

    /// Messages to all and in turn pass over entities that are disabled.
    fn hears(&self, id: Id) -> bool {
        !self.entities[id].is_disabled
    }

    /// One follower gets the message, in turn.
    fn deliver_in_turn(&mut self, letter: &Letter) -> Result<Outcome, Panicked> {
        let topic = letter.topic as usize;
        let turn = self.mail.turns[topic];
        let all = self.followers(letter.topic);
        let mut able = all.iter().filter(|&&(_, id)| self.hears(id));
        let first = able.clone().next();
        let Some(&(number, id)) = able.find(|&&(number, _)| number >= turn).or(first) else {
            return Ok(Outcome::Undeliverable);
        };
        self.mail.turns[topic] = number + 1;
        self.hear(id, letter)?;
        Ok(Outcome::Delivered)
    }

    /// All that follow the topic when the round begins get the message, with the callbacks that they have
    /// at their turn.
    fn deliver_to_all(&mut self, mut letter: Letter) -> Flow {
        let Whom::All(round) = &mut letter.to else {
            return Ok(());
        };
        let mut round = round.take().unwrap_or_else(|| self.new_round());
        let called = self.call_all(&mut round, &letter);
        if called.is_err() {
            letter.to = Whom::All(Some(round));
            self.mail.released.push_front(letter);
            return called;
        }
        if !round.is_heard {
            self.mail.counts[1] += 1;
        }
        Ok(())
    }

    pub(super) fn new_round(&self) -> Round {
        Round {
            until: self.updates.numbers,
            ..Round::default()
        }
    }

    /// Calls the followers in order.
    pub(super) fn call_all(&mut self, round: &mut Round, letter: &Letter) -> Flow {
        loop {
            let followers = self.followers(letter.topic).into_iter();
            let next = followers
                .into_iter()
                .find(|&(number, _)| (round.next..=round.until).contains(&number));
            let Some((number, id)) = next else {
                return Ok(());
            };
            round.next = number + 1;
            if self.hears(id) {
                self.hear(id, letter)?;
                round.is_heard = true;
                self.mail.counts[0] += 1;
            }
        }
    }

    /// Returns the number of each component that follows a topic, and its entity, in order.
    pub(super) fn followers(&self, topic: Topic) -> Vec<(u64, Id)> {
        let all = self.entities.iter().enumerate();
        let followers = all.filter_map(|(id, entity)| {
            let follows = entity.follows.filter(|_| entity.exists)?;
            follows
                .topics
                .contain(topic)
                .then_some((follows.numbers[topic as usize], id))
        });
        let mut followers: Vec<_> = followers.collect();
        followers.sort_unstable();
        followers
    }

    /// A callback gets a message. The commands of the delivery run after it, before its own.
    fn hear(&mut self, id: Id, letter: &Letter) -> Flow {
        let clock = self.entities[id].follows.and_then(|follows| follows.clock);
        let clock = clock.filter(|&clock| self.clocks.all[clock].exists);
        let clock = clock.or(self.clocks.find(Named::Virtual));
        let clock = &self.clocks.all[clock.expect("built-in clocks stay")];
        let (request, asks) = match letter.role {
            Role::Plain => (None, false),
            Role::Request(asker, request) => {
                self.mail.heard.push_back((asker, request));
                (Some(request), true)
            }
            Role::Reply(request) => (Some(request), false),
        };
        self.log.push(Entry::Heard(Hearing {
            entity: id,
            topic: letter.topic,
            serial: letter.serial,
            request,
            asks,
            elapsed: clock.shown(clock.now),
        }));
        // A panic of the callback leaves the end of the request to the next delivery.
        if let Some(request) = self.mail.completed.filter(|_| !self.is_panic_next()) {
            self.mail.completed = None;
            self.despawn(request);
        }
        self.react(Handler::Command)
    }
}
