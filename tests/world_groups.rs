//! `WorldGroups`: worlds on threads of their own.

#![cfg(feature = "std")]

use core::{
    sync::atomic::{AtomicUsize, Ordering},
    time::Duration,
};
use std::{
    collections::HashSet,
    sync::{
        Arc, Mutex,
        mpsc::{self, Receiver, Sender},
    },
    thread::{self, ThreadId},
    time::Instant,
};

use bevy_app::prelude::*;
use bevy_due::{
    Assurance, LoopInterval, MessageStats, NoAnswer, NotAnswerable, Parcel, Refused,
    RefusedBecause, ReplyTo, StableKey, StartError, Timer, WorldGroups, WorldLink, WorldReport,
    prelude::*,
};
use bevy_ecs::{
    error::{BevyError, ErrorContext, FallbackErrorHandler, Severity},
    prelude::*,
};
use bevy_time::TimePlugin;

/// By then everything has happened that is going to.
const AT_LAST: Duration = Duration::from_secs(10);

/// So seldom that only what arrives lets a world run.
const NEVER: LoopInterval = LoopInterval(Duration::from_secs(3600));

const SAY: u32 = 1;
const WAIT: u32 = 2;
const PANIC: u32 = 3;
const QUESTION: u32 = 4;
const ANSWER: u32 = 5;
const ANSWER_NOW: u32 = 6;
const GO: u32 = 7;

fn number(id: u32, number: u32) -> Packet {
    Packet::new(id, number.to_le_bytes())
}

fn read(packet: &Packet) -> u32 {
    u32::from_le_bytes(packet.payload().try_into().unwrap())
}

fn say(group: &'static str, to: impl Into<Delivery<StableKey>>, what: u32) -> Parcel {
    Parcel::new(group, to, number(SAY, what))
}

fn next<T>(receiver: &Receiver<T>) -> T {
    let next = receiver.recv_timeout(AT_LAST);
    next.expect("it should have come long ago")
}

fn wait_until(mut is_so: impl FnMut() -> bool, what: &str) {
    let start = Instant::now();
    while !is_so() {
        assert!(start.elapsed() < AT_LAST, "{what}");
        thread::sleep(Duration::from_millis(1));
    }
}

/// Waits for so many worlds that end by themselves.
fn ended(groups: &mut WorldGroups, worlds: usize) -> Vec<WorldReport> {
    let mut reports = Vec::new();
    let all = || {
        reports.extend(groups.ended());
        reports.len() >= worlds
    };
    wait_until(all, "a world should have ended");
    reports
}

/// What can be said of all worlds that end as they should.
fn end_well(reports: &[WorldReport]) {
    for report in reports {
        assert!(report.panic.is_none(), "{report:?}");
        assert!(report.undelivered.is_empty(), "{report:?}");
    }
}

fn sorted<T: Ord>(all: impl IntoIterator<Item = T>) -> Vec<T> {
    let mut all: Vec<_> = all.into_iter().collect();
    all.sort();
    all
}

/// Builds worlds with an entity, whose key is the number of the world, that tells which world has
/// heard what.
fn listener(heard: Sender<(usize, u32)>) -> impl Fn(&mut App) + Send + Sync + 'static {
    let spawn = spawn_listener(heard);
    move |app| spawn(app.world_mut())
}

fn spawn_listener(heard: Sender<(usize, u32)>) -> impl Fn(&mut World) + Send + Sync + 'static {
    let worlds = AtomicUsize::new(0);
    move |world| {
        let nth = worlds.fetch_add(1, Ordering::Relaxed);
        let heard = heard.clone();
        let ears =
            MessageComponent::new().on_packet(SAY, move |_: MessageContext, said: &Packet| {
                heard.send((nth, read(said))).ok();
            });
        world.spawn((StableKey(nth as u64), ears));
    }
}

/// Where worlds wait in a function, until they are let through.
struct Gate {
    waits: Receiver<()>,
    open: Sender<()>,
    inside: Arc<(Sender<()>, Mutex<Receiver<()>>)>,
}

impl Gate {
    fn new() -> Self {
        let (arrive, waits) = mpsc::channel();
        let (open, opened) = mpsc::channel();
        Self {
            waits,
            open,
            inside: Arc::new((arrive, Mutex::new(opened))),
        }
    }

    /// Returns a function that waits.
    fn pass(&self) -> impl Fn() + Clone + Send + Sync + 'static {
        let inside = self.inside.clone();
        move || {
            let (arrive, opened) = &*inside;
            arrive.send(()).ok();
            opened.lock().unwrap().recv_timeout(AT_LAST).ok();
        }
    }

    /// Returns a component that waits when it is told to.
    fn keeper(&self) -> MessageComponent {
        let pass = self.pass();
        MessageComponent::new().on_packet(WAIT, move |_: MessageContext, _: &Packet| pass())
    }

    /// Waits until somebody waits.
    fn somebody_waits(&self) {
        next(&self.waits);
    }

    fn open(&self) {
        self.open.send(()).unwrap();
    }
}

mod delivery {
    use super::*;

    #[test]
    fn a_broadcast_reaches_each_world_once() {
        let (hear, heard) = mpsc::channel();
        let mut groups = WorldGroups::new();
        groups.start("ears", 3, listener(hear.clone())).unwrap();
        groups.start("others", 1, listener(hear)).unwrap();
        groups.post(say("ears", Delivery::All, 7)).unwrap();
        end_well(&groups.stop());
        assert_eq!(sorted(heard), [(0, 7), (1, 7), (2, 7)]);
    }

    #[test]
    fn what_goes_in_turn_goes_to_one_world_after_the_other() {
        let (hear, heard) = mpsc::channel();
        let mut groups = WorldGroups::new();
        groups.start("ears", 3, listener(hear)).unwrap();
        for what in 0..7 {
            groups.post(say("ears", Delivery::InTurn, what)).unwrap();
        }
        end_well(&groups.stop());
        let turns = [(0, 0), (0, 3), (0, 6), (1, 1), (1, 4), (2, 2), (2, 5)];
        assert_eq!(sorted(heard), turns, "each exactly once");
    }

    #[test]
    fn what_goes_to_a_key_goes_to_the_world_with_that_entity() {
        let (hear, heard) = mpsc::channel();
        let mut groups = WorldGroups::new();
        groups.start("ears", 3, listener(hear)).unwrap();
        for key in [2, 0, 2] {
            groups.post(say("ears", StableKey(key), 9)).unwrap();
        }
        end_well(&groups.stop());
        assert_eq!(sorted(heard), [(0, 9), (2, 9), (2, 9)]);
    }

    #[test]
    fn a_key_moves_with_its_entity_to_another_world() {
        const TRAVELLER: StableKey = StableKey(100);
        let (hear, heard) = mpsc::channel();
        let (arrive, arrived) = mpsc::channel();
        let worlds = AtomicUsize::new(0);
        // Told to go, an entity despawns here and is spawned in the other world.
        let build = move |app: &mut App| {
            let nth = worlds.fetch_add(1, Ordering::Relaxed);
            let (hear, arrive) = (hear.clone(), arrive.clone());
            let traveller = move || {
                let hear = hear.clone();
                MessageComponent::new()
                    .on_packet(SAY, move |_: MessageContext, said: &Packet| {
                        hear.send((nth, read(said))).ok();
                    })
                    .on_packet(WAIT, move |mut me: MessageContext, _: &Packet| {
                        let to = StableKey(1 - nth as u64);
                        me.commands.entity(me.entity.id()).despawn();
                        me.commands.post(Parcel::new("places", to, number(GO, 0)));
                    })
            };
            let here = traveller.clone();
            let place =
                MessageComponent::new().on_packet(GO, move |mut me: MessageContext, _: &Packet| {
                    me.commands.spawn((TRAVELLER, here()));
                    let arrive = arrive.clone();
                    me.commands.queue(move |_: &mut World| _ = arrive.send(nth));
                });
            app.world_mut().spawn((StableKey(nth as u64), place));
            if nth == 0 {
                app.world_mut().spawn((TRAVELLER, traveller()));
            }
        };
        let mut groups = WorldGroups::new();
        groups.start("places", 2, build).unwrap();
        for (place, what) in [(1, 10), (0, 11), (1, 12)] {
            let go = Parcel::new("places", TRAVELLER, number(WAIT, 0));
            groups.post(go).unwrap();
            assert_eq!(next(&arrived), place);
            groups.post(say("places", TRAVELLER, what)).unwrap();
            assert_eq!(next(&heard), (place, what));
        }
        end_well(&groups.stop());
    }

    #[test]
    fn what_one_sends_arrives_in_that_order() {
        const EACH: u32 = 500;
        let (hear, heard) = mpsc::channel();
        let mut groups = WorldGroups::new();
        groups.start("ears", 1, listener(hear)).unwrap();
        let worlds = AtomicUsize::new(0);
        let build = move |app: &mut App| {
            let first = worlds.fetch_add(1, Ordering::Relaxed) as u32 * EACH;
            // Ten in a frame, in all three ways.
            let talk = move |mut talked: Local<u32>, mut commands: Commands| {
                for _ in 0..10.min(EACH - *talked) {
                    let to = match *talked % 3 {
                        0 => Delivery::All,
                        1 => Delivery::InTurn,
                        _ => Delivery::To(StableKey(0)),
                    };
                    commands.post(say("ears", to, first + *talked));
                    *talked += 1;
                }
            };
            app.insert_resource(LoopInterval(Duration::ZERO))
                .add_systems(Update, talk);
        };
        groups.start("mouths", 3, build).unwrap();
        let mut said: Vec<Vec<u32>> = vec![Vec::new(); 3];
        for _ in 0..3 * EACH {
            let (_, what) = next(&heard);
            said[(what / EACH) as usize].push(what);
        }
        for said in said {
            assert_eq!(said.len(), EACH as usize);
            assert!(said.is_sorted(), "{said:?}");
        }
        end_well(&groups.stop());
    }
}

mod refusal {
    use super::*;

    /// Whoever is refused has the parcel in hand.
    fn refused(groups: &WorldGroups, parcel: &Parcel) -> RefusedBecause {
        let refused = groups.post(parcel.clone()).unwrap_err();
        assert_eq!(refused.parcel, *parcel);
        refused.because
    }

    #[test]
    fn an_unknown_group_and_an_unknown_key_are_refused() {
        let (hear, _heard) = mpsc::channel();
        let mut groups = WorldGroups::new();
        let to_all = say("ears", Delivery::All, 1);
        let because = refused(&groups, &to_all);
        assert_eq!(because, RefusedBecause::UnknownGroup);
        groups.start("ears", 1, listener(hear)).unwrap();
        groups.post(to_all).unwrap();
        let because = refused(&groups, &say("ears", StableKey(1), 1));
        assert_eq!(because, RefusedBecause::UnknownKey);
        let because = refused(&groups, &say("eyes", StableKey(0), 1));
        assert_eq!(because, RefusedBecause::UnknownGroup);
        end_well(&groups.stop());
    }

    #[test]
    fn a_group_whose_worlds_have_ended_is_unknown() {
        let mut groups = WorldGroups::new();
        let build = |app: &mut App| {
            app.world_mut().spawn(StableKey(1));
            app.add_systems(Update, |mut exit: MessageWriter<AppExit>| {
                exit.write(AppExit::Success);
            });
        };
        groups.start("short", 2, build).unwrap();
        end_well(&ended(&mut groups, 2));
        assert_eq!(groups.running("short"), 0);
        for to in [Delivery::All, Delivery::InTurn, StableKey(1).into()] {
            let because = refused(&groups, &say("short", to, 1));
            assert_eq!(because, RefusedBecause::UnknownGroup, "{to:?}");
        }
    }

    #[test]
    fn a_world_without_room_refuses_and_leaves_its_turn_to_the_next() {
        let (hear, heard) = mpsc::channel();
        let gate = Gate::new();
        let mut groups = WorldGroups::new();
        let build_ears = listener(hear);
        let keeper = gate.keeper();
        let build = move |app: &mut App| {
            build_ears(app);
            app.insert_resource(Inbox::with_capacity(2))
                .world_mut()
                .spawn(keeper.clone());
        };
        groups.start("ears", 2, build).unwrap();
        let wait = Parcel::new("ears", Delivery::All, number(WAIT, 0));
        groups.post(wait).unwrap();
        gate.somebody_waits();
        gate.somebody_waits();

        // Nobody takes anything out now.
        groups.post(say("ears", StableKey(0), 1)).unwrap();
        groups.post(say("ears", StableKey(0), 2)).unwrap();
        let because = refused(&groups, &say("ears", StableKey(0), 3));
        assert_eq!(because, RefusedBecause::Full);
        groups.post(say("ears", Delivery::InTurn, 4)).unwrap();
        let because = refused(&groups, &say("ears", Delivery::All, 5));
        assert_eq!(
            because,
            RefusedBecause::Full,
            "the other one has been given it"
        );
        for to in [Delivery::InTurn, Delivery::All] {
            let because = refused(&groups, &say("ears", to, 6));
            assert_eq!(because, RefusedBecause::Full);
        }

        gate.open();
        gate.open();
        end_well(&groups.stop());
        assert_eq!(sorted(heard), [(0, 1), (0, 2), (1, 4), (1, 5)]);
    }

    #[test]
    fn what_a_world_posts_in_vain_comes_back_as_a_message() {
        let (tell, told) = mpsc::channel();
        let mut groups = WorldGroups::new();
        let parcel = say("nobody", Delivery::InTurn, 3);
        let posted = parcel.clone();
        let build = move |app: &mut App| {
            let tell = tell.clone();
            let refused = move |_: MessageContext, refused: &Refused| {
                tell.send(refused.clone()).ok();
            };
            app.world_mut().spawn(MessageComponent::new().on(refused));
            let parcel = posted.clone();
            app.add_systems(Startup, move |mut commands: Commands| {
                commands.post(parcel.clone());
            });
        };
        groups.start("worlds", 1, build).unwrap();
        let refused = next(&told);
        assert_eq!(refused.parcel, parcel);
        assert_eq!(refused.because, RefusedBecause::UnknownGroup);
        end_well(&groups.stop());
        assert_eq!(told.iter().count(), 0, "once");
    }

    #[test]
    fn a_world_without_a_link_refuses_what_it_posts() {
        #[derive(Resource)]
        struct Told(Refused);

        let mut app = App::new();
        app.add_plugins((TimePlugin, DuePlugin));
        let refused = |mut me: MessageContext, refused: &Refused| {
            me.commands.insert_resource(Told(refused.clone()));
        };
        app.world_mut().spawn(MessageComponent::new().on(refused));
        app.world_mut().commands().post(say("x", Delivery::All, 1));
        app.update();
        let Told(refused) = app.world().resource();
        assert_eq!(refused.because, RefusedBecause::NoLink);
    }
}

mod questions {
    use super::*;

    #[derive(Component)]
    struct Asker;

    #[derive(Clone, Debug, PartialEq)]
    enum Told {
        Answer(u32),
        No(NoAnswer),
        /// So many answers were late.
        Late(u64),
    }

    /// Builds a world with an entity of this key that asks in the first frame, and tells of what
    /// comes back. Each must be about the question that was asked.
    fn asker(
        key: Option<StableKey>,
        question: Parcel,
        seconds: f64,
        told: Sender<Told>,
    ) -> impl Fn(&mut App) + Send + Sync + 'static {
        move |app| {
            let asked = Arc::new(Mutex::new(None));
            let (about, about_too, asked_at) = (asked.clone(), asked.clone(), asked);
            let (tell, tell_too, tell_late) = (told.clone(), told.clone(), told.clone());
            let ears = MessageComponent::new()
                .on_packet(ANSWER, move |me: MessageContext, answer: &Packet| {
                    assert_eq!(me.session(), *about.lock().unwrap());
                    tell.send(Told::Answer(read(answer))).ok();
                })
                .on(move |me: MessageContext, no: &NoAnswer| {
                    assert_eq!(me.session(), *about_too.lock().unwrap());
                    tell_too.send(Told::No(*no)).ok();
                });
            let mut asker = app.world_mut().spawn((Asker, ears));
            if let Some(key) = key {
                asker.insert(key);
            }
            let question = question.clone();
            let ask = move |asker: Single<Entity, With<Asker>>, mut commands: Commands| {
                let until = Timer::after_secs(seconds);
                let session = commands.entity(*asker).ask_world(question.clone(), until);
                *asked_at.lock().unwrap() = Some(session);
            };
            let count_late = move |stats: Res<MessageStats>, mut before: Local<u64>| {
                if stats.late > *before {
                    *before = stats.late;
                    tell_late.send(Told::Late(stats.late)).ok();
                }
            };
            app.add_systems(Startup, ask)
                .add_systems(Update, count_late);
        }
    }

    /// Answers with twice the number.
    fn twice() -> MessageComponent {
        MessageComponent::new().on_packet(
            QUESTION,
            |mut me: MessageContext, question: &Packet| -> Result {
                Ok(me.reply(number(ANSWER, 2 * read(question)))?)
            },
        )
    }

    /// Keeps the question, and answers when it is told to.
    fn later(kept: Sender<()>) -> MessageComponent {
        #[derive(Resource)]
        struct Kept(ReplyTo);

        MessageComponent::new()
            .on_packet(QUESTION, move |mut me: MessageContext, _: &Packet| {
                let reply_to = me.reply_to().unwrap().clone();
                me.commands.insert_resource(Kept(reply_to));
                kept.send(()).ok();
            })
            .on_packet(ANSWER_NOW, |mut me: MessageContext, answer: &Packet| {
                let answer = number(ANSWER, read(answer));
                me.commands.queue(move |world: &mut World| {
                    let reply_to = world.resource::<Kept>().0.clone();
                    world.commands().answer(reply_to, answer);
                });
            })
    }

    fn question(to: impl Into<Delivery<StableKey>>) -> Parcel {
        Parcel::new("answerers", to, number(QUESTION, 21))
    }

    #[test]
    fn a_question_is_answered() {
        for to in [Delivery::All, Delivery::InTurn, StableKey(5).into()] {
            let (tell, told) = mpsc::channel();
            let mut groups = WorldGroups::new();
            let build = |app: &mut App| {
                app.world_mut().spawn((StableKey(5), twice()));
            };
            groups.start("answerers", 1, build).unwrap();
            let build = asker(Some(StableKey(5)), question(to), 60.0, tell);
            groups.start("askers", 1, build).unwrap();
            assert_eq!(next(&told), Told::Answer(42), "{to:?}");
            end_well(&groups.stop());
            assert_eq!(told.iter().count(), 0, "exactly one answer");
        }
    }

    #[test]
    fn of_several_answers_the_first_counts() {
        let (tell, told) = mpsc::channel();
        let mut groups = WorldGroups::new();
        let build = |app: &mut App| {
            app.world_mut().spawn(twice());
        };
        groups.start("answerers", 3, build).unwrap();
        let build = asker(Some(StableKey(5)), question(Delivery::All), 60.0, tell);
        groups.start("askers", 1, build).unwrap();
        assert_eq!(next(&told), Told::Answer(42));
        while next(&told) != Told::Late(2) {}
        end_well(&groups.stop());
    }

    #[test]
    fn a_question_that_nobody_answers_is_given_up_in_time() {
        let (tell, told) = mpsc::channel();
        let mut groups = WorldGroups::new();
        groups.start("answerers", 1, |_: &mut App| {}).unwrap();
        let build = asker(Some(StableKey(5)), question(Delivery::InTurn), 0.001, tell);
        groups.start("askers", 1, build).unwrap();
        assert_eq!(next(&told), Told::No(NoAnswer::TimedOut));
        end_well(&groups.stop());
        assert_eq!(told.iter().count(), 0);
    }

    #[test]
    fn a_question_that_is_refused_is_given_up_at_once() {
        let (tell, told) = mpsc::channel();
        let mut groups = WorldGroups::new();
        let build = asker(Some(StableKey(5)), question(Delivery::InTurn), 3600.0, tell);
        groups.start("askers", 1, build).unwrap();
        assert_eq!(next(&told), Told::No(NoAnswer::Refused));
        end_well(&groups.stop());
        assert_eq!(told.iter().count(), 0);
    }

    #[test]
    fn a_question_of_an_entity_without_a_key_is_given_up_at_once() {
        let (tell, told) = mpsc::channel();
        let mut groups = WorldGroups::new();
        let (asked, was_asked) = mpsc::channel();
        let build = move |app: &mut App| {
            app.world_mut().spawn(later(asked.clone()));
        };
        groups.start("answerers", 1, build).unwrap();
        let build = asker(None, question(Delivery::InTurn), 3600.0, tell);
        groups.start("askers", 1, build).unwrap();
        assert_eq!(next(&told), Told::No(NoAnswer::Refused));
        end_well(&groups.stop());
        assert_eq!(was_asked.iter().count(), 0, "nothing was sent");
    }

    #[test]
    fn an_answer_that_comes_too_late_is_dropped_and_counted() {
        let (tell, told) = mpsc::channel();
        let (keep, _kept) = mpsc::channel();
        let mut groups = WorldGroups::new();
        let build = move |app: &mut App| {
            app.world_mut().spawn(later(keep.clone()));
        };
        groups.start("answerers", 1, build).unwrap();
        let build = asker(Some(StableKey(5)), question(Delivery::InTurn), 0.001, tell);
        groups.start("askers", 1, build).unwrap();
        assert_eq!(next(&told), Told::No(NoAnswer::TimedOut));
        let answer = Parcel::new("answerers", Delivery::All, number(ANSWER_NOW, 1));
        groups.post(answer).unwrap();
        assert_eq!(next(&told), Told::Late(1));
        end_well(&groups.stop());
        assert_eq!(told.iter().count(), 0);
    }

    #[test]
    fn an_answer_to_an_entity_that_has_gone_is_refused_to_who_answers() {
        let (tell, told) = mpsc::channel();
        let (keep, kept) = mpsc::channel();
        let (refuse, was_refused) = mpsc::channel();
        let mut groups = WorldGroups::new();
        let build = move |app: &mut App| {
            let refuse = refuse.clone();
            let refused = move |_: MessageContext, refused: &Refused| {
                refuse.send(refused.clone()).ok();
            };
            app.world_mut().spawn(later(keep.clone()).on(refused));
        };
        groups.start("answerers", 1, build).unwrap();
        let build_asker = asker(Some(StableKey(5)), question(Delivery::InTurn), 60.0, tell);
        let (go, gone) = mpsc::channel();
        let build = move |app: &mut App| {
            build_asker(app);
            let go = go.clone();
            let leave =
                MessageComponent::new().on_packet(GO, move |mut me: MessageContext, _: &Packet| {
                    let go = go.clone();
                    me.commands.queue(move |world: &mut World| {
                        let asker = world
                            .query_filtered::<Entity, With<Asker>>()
                            .single(world)
                            .unwrap();
                        world.despawn(asker);
                        go.send(()).ok();
                    });
                });
            app.world_mut().spawn(leave);
        };
        groups.start("askers", 1, build).unwrap();
        next(&kept);
        groups
            .post(Parcel::new("askers", Delivery::All, number(GO, 0)))
            .unwrap();
        next(&gone);
        let answer = Parcel::new("answerers", Delivery::All, number(ANSWER_NOW, 1));
        groups.post(answer).unwrap();
        let refused = next(&was_refused);
        assert_eq!(refused.because, RefusedBecause::UnknownKey);
        assert!(matches!(refused.parcel.assurance, Assurance::Answer(_)));
        end_well(&groups.stop());
        assert_eq!(told.iter().count(), 0);
    }

    #[test]
    fn only_a_packet_answers_a_question_of_another_world() {
        #[derive(Message)]
        struct Typed;

        let (tell, told) = mpsc::channel();
        let (fail, failed) = mpsc::channel();
        let mut groups = WorldGroups::new();
        let build = move |app: &mut App| {
            let fail = fail.clone();
            let answer = move |mut me: MessageContext, _: &Packet| {
                fail.send(me.reply(Typed)).ok();
                me.reply(number(ANSWER, 1)).unwrap();
            };
            let answer = MessageComponent::new().on_packet(QUESTION, answer);
            app.world_mut().spawn(answer);
        };
        groups.start("answerers", 1, build).unwrap();
        let build = asker(Some(StableKey(5)), question(Delivery::InTurn), 60.0, tell);
        groups.start("askers", 1, build).unwrap();
        let error = next(&failed).unwrap_err();
        assert!(matches!(error, NotAnswerable::NotAPacket(name) if name.ends_with("Typed")));
        assert_eq!(next(&told), Told::Answer(1), "it is still open");
        end_well(&groups.stop());
    }
}

mod the_end {
    use super::*;

    /// Panics when it is told to.
    fn bomb() -> MessageComponent {
        MessageComponent::new().on_packet(PANIC, |_: MessageContext, said: &Packet| {
            panic!("handler {}", read(said));
        })
    }

    #[test]
    fn a_world_that_panics_in_a_function_is_reported_and_the_others_go_on() {
        let (hear, heard) = mpsc::channel();
        let mut groups = WorldGroups::new();
        let build_ears = listener(hear);
        let build = move |app: &mut App| {
            build_ears(app);
            app.world_mut().spawn(bomb());
        };
        groups.start("ears", 3, build).unwrap();
        assert_eq!(groups.running("ears"), 3);
        // The first turn.
        groups
            .post(Parcel::new("ears", Delivery::InTurn, number(PANIC, 8)))
            .unwrap();
        let reports = ended(&mut groups, 1);
        assert_eq!(reports.len(), 1);
        assert_eq!((&*reports[0].group, reports[0].nth), ("ears", 0));
        assert_eq!(reports[0].panic.as_deref(), Some("handler 8"));
        assert!(reports[0].exit.is_none() && reports[0].undelivered.is_empty());
        assert_eq!(groups.running("ears"), 2);

        for what in 0..4 {
            groups.post(say("ears", Delivery::InTurn, what)).unwrap();
        }
        groups.post(say("ears", Delivery::All, 4)).unwrap();
        end_well(&groups.stop());
        let turns = [(1, 0), (1, 2), (1, 4), (2, 1), (2, 3), (2, 4)];
        assert_eq!(sorted(heard), turns, "it goes round without the first");
    }

    #[test]
    fn a_world_that_panics_in_a_system_is_reported() {
        #[derive(Resource)]
        struct Armed;

        let mut groups = WorldGroups::new();
        let build = |app: &mut App| {
            let arm =
                MessageComponent::new().on_packet(PANIC, |mut me: MessageContext, _: &Packet| {
                    me.commands.insert_resource(Armed);
                });
            app.world_mut().spawn(arm);
            app.add_systems(Update, |armed: Option<Res<Armed>>| {
                let what = "system";
                assert!(armed.is_none(), "in a {what}");
            });
        };
        groups.start("worlds", 2, build).unwrap();
        groups
            .post(Parcel::new("worlds", Delivery::InTurn, number(PANIC, 0)))
            .unwrap();
        let reports = ended(&mut groups, 1);
        assert_eq!(reports[0].panic.as_deref(), Some("in a system"));
        assert_eq!(groups.running("worlds"), 1);
        end_well(&groups.stop());
    }

    #[test]
    fn a_world_that_panics_in_its_building_is_not_started() {
        let (hear, heard) = mpsc::channel();
        let mut groups = WorldGroups::new();
        let build_ears = listener(hear);
        let build = move |app: &mut App| {
            build_ears(app);
            let world = app.world_mut();
            let mut keys = world.query::<&StableKey>();
            let key = keys.single(world).unwrap();
            assert_ne!(*key, StableKey(2), "no third one");
        };
        let error = groups.start("ears", 5, build).unwrap_err();
        let StartError::Panicked(said) = &error else {
            panic!("{error}");
        };
        assert!(said.contains("no third one"), "{said}");
        assert_eq!(groups.running("ears"), 2, "those before it stay");
        groups.post(say("ears", Delivery::All, 1)).unwrap();
        let reports = groups.stop();
        assert_eq!(reports.len(), 2);
        end_well(&reports);
        assert_eq!(sorted(heard), [(0, 1), (1, 1)]);
    }

    #[test]
    fn a_world_that_can_not_be_built_is_gone_when_that_is_told() {
        struct Resident(Arc<AtomicUsize>);

        impl Drop for Resident {
            fn drop(&mut self) {
                thread::sleep(Duration::from_millis(20));
                self.0.fetch_sub(1, Ordering::Relaxed);
            }
        }

        let residents = Arc::new(AtomicUsize::new(0));
        let counted = residents.clone();
        let mut groups = WorldGroups::new();
        let build = move |app: &mut App| {
            counted.fetch_add(1, Ordering::Relaxed);
            app.insert_non_send(Resident(counted.clone()));
            panic!("not here");
        };
        groups.start("worlds", 1, build).unwrap_err();
        assert_eq!(residents.load(Ordering::Relaxed), 0);
    }

    #[test]
    fn what_a_world_has_not_been_given_when_it_panics_is_handed_back() {
        let (hear, heard) = mpsc::channel();
        let gate = Gate::new();
        let keeper = gate.keeper();
        let mut groups = WorldGroups::new();
        let build_ears = listener(hear);
        let build = move |app: &mut App| {
            build_ears(app);
            app.world_mut().spawn(keeper.clone());
            app.world_mut().spawn(bomb());
        };
        groups.start("ears", 1, build).unwrap();
        groups
            .post(Parcel::new("ears", Delivery::All, number(WAIT, 0)))
            .unwrap();
        gate.somebody_waits();
        // All of this is there when the next frame begins.
        groups.post(say("ears", Delivery::All, 1)).unwrap();
        groups
            .post(Parcel::new("ears", Delivery::All, number(PANIC, 0)))
            .unwrap();
        groups.post(say("ears", Delivery::All, 2)).unwrap();
        groups.post(say("ears", StableKey(0), 3)).unwrap();
        gate.open();
        let reports = ended(&mut groups, 1);
        let undelivered = reports[0].undelivered.iter();
        let undelivered: Vec<_> = undelivered.map(|letter| letter.packet().unwrap()).collect();
        assert_eq!(undelivered, [&number(SAY, 2), &number(SAY, 3)]);
        assert_eq!(sorted(heard), [(0, 1)]);
    }

    #[test]
    fn a_world_that_exits_ends_after_what_was_sent_to_it() {
        let (hear, heard) = mpsc::channel();
        let gate = Gate::new();
        let pass = gate.pass();
        let mut groups = WorldGroups::new();
        let build_ears = listener(hear);
        let build = move |app: &mut App| {
            build_ears(app);
            let pass = pass.clone();
            app.add_systems(Last, move |mut exit: MessageWriter<AppExit>| {
                pass();
                exit.write(AppExit::from_code(3));
            });
        };
        groups.start("ears", 1, build).unwrap();
        groups.start("others", 1, |_: &mut App| {}).unwrap();
        gate.somebody_waits();
        groups.post(say("ears", Delivery::All, 1)).unwrap();
        gate.open();
        let reports = ended(&mut groups, 1);
        assert_eq!(reports[0].exit, Some(AppExit::from_code(3)));
        end_well(&reports);
        assert_eq!(sorted(heard), [(0, 1)]);
        assert_eq!((groups.running("ears"), groups.running("others")), (0, 1));
        end_well(&groups.stop());
    }

    #[test]
    fn worlds_stop_in_the_reverse_order_of_their_start() {
        #[derive(Resource)]
        struct Resident(u32, Sender<u32>);

        impl Drop for Resident {
            fn drop(&mut self) {
                self.1.send(self.0).ok();
            }
        }

        let (drop, dropped) = mpsc::channel();
        let mut groups = WorldGroups::new();
        for (nth, group) in ["database", "logic", "database", "doors"]
            .into_iter()
            .enumerate()
        {
            let drop = drop.clone();
            let build = move |app: &mut App| {
                app.insert_resource(Resident(nth as u32, drop.clone()));
            };
            groups.start(group, 1, build).unwrap();
        }
        core::mem::drop(drop);
        let reports = groups.stop();
        end_well(&reports);
        let order = reports.iter().map(|report| (&*report.group, report.nth));
        let expected = [("doors", 0), ("database", 1), ("logic", 0), ("database", 0)];
        assert!(order.eq(expected), "{reports:?}");
        assert!(dropped.iter().eq([3, 2, 1, 0]));
    }

    #[test]
    fn what_is_sent_before_a_world_stops_is_delivered_also_in_what_that_leads_to() {
        // Each passes on what it hears to the one that was started before it.
        let (hear, heard) = mpsc::channel();
        let mut groups = WorldGroups::new();
        let names = ["first", "second", "third"];
        groups.start(names[0], 1, listener(hear)).unwrap();
        for pair in names.windows(2) {
            let to = pair[0];
            let pass_on = MessageComponent::new().on_packet(
                SAY,
                move |mut me: MessageContext, said: &Packet| {
                    me.commands.post(say(to, Delivery::All, read(said) + 1));
                },
            );
            let build = move |app: &mut App| {
                app.insert_resource(NEVER)
                    .world_mut()
                    .spawn(pass_on.clone());
            };
            groups.start(pair[1], 1, build).unwrap();
        }
        for what in [10, 20, 30] {
            groups.post(say("third", Delivery::All, what)).unwrap();
        }
        end_well(&groups.stop());
        assert!(heard.iter().eq([(0, 12), (0, 22), (0, 32)]));
    }

    #[test]
    fn what_is_sent_to_a_world_that_has_just_been_started_is_delivered_when_it_stops() {
        // Whether it has had its first frame by then is a matter of luck.
        for _ in 0..50 {
            let (hear, heard) = mpsc::channel();
            let mut groups = WorldGroups::new();
            groups.start("ears", 1, listener(hear)).unwrap();
            groups.post(say("ears", Delivery::All, 1)).unwrap();
            groups.post(say("ears", StableKey(0), 2)).unwrap();
            end_well(&groups.stop());
            assert!(heard.iter().eq([(0, 1), (0, 2)]));
        }
    }

    #[test]
    fn what_is_sent_to_an_entity_of_the_last_frame_is_delivered_when_its_world_ends() {
        let (hear, heard) = mpsc::channel();
        let gate = Gate::new();
        let pass = gate.pass();
        let mut groups = WorldGroups::new();
        let spawn_ears = Mutex::new(Some(spawn_listener(hear)));
        let build = move |app: &mut App| {
            let pass = pass.clone();
            let spawn_ears = spawn_ears.lock().unwrap().take().unwrap();
            let last_frame = move |world: &mut World| {
                spawn_ears(world);
                pass();
                world.write_message(AppExit::Success);
            };
            app.add_systems(Update, last_frame);
        };
        groups.start("ears", 1, build).unwrap();
        gate.somebody_waits();
        groups.post(say("ears", Delivery::All, 1)).unwrap();
        groups.post(say("ears", StableKey(0), 2)).unwrap();
        gate.open();
        end_well(&ended(&mut groups, 1));
        assert!(heard.iter().eq([(0, 1), (0, 2)]));
    }

    #[test]
    fn what_stopping_leads_to_is_handed_back() {
        let mut groups = WorldGroups::new();
        let again =
            MessageComponent::new().on_packet(SAY, |mut me: MessageContext, said: &Packet| {
                let said = read(said);
                if said < 100 {
                    me.commands.send(Delivery::All, number(SAY, said + 1));
                }
            });
        let build = move |app: &mut App| {
            app.insert_resource(NEVER).world_mut().spawn(again.clone());
        };
        let gate = Gate::new();
        let keeper = gate.keeper();
        let build = move |app: &mut App| {
            build(app);
            app.world_mut().spawn(keeper.clone());
        };
        groups.start("echo", 1, build).unwrap();
        groups
            .post(Parcel::new("echo", Delivery::All, number(WAIT, 0)))
            .unwrap();
        gate.somebody_waits();
        groups.post(say("echo", Delivery::All, 1)).unwrap();
        let stopped = thread::spawn(move || groups.stop());
        // It is told to stop before it comes out of there, or has an hour to wait and then is.
        gate.open();
        let reports = stopped.join().unwrap();
        let undelivered = reports[0].undelivered.iter();
        let undelivered: Vec<_> = undelivered
            .map(|letter| read(letter.packet().unwrap()))
            .collect();
        assert_eq!(undelivered.len(), 1, "{reports:?}");
    }

    #[test]
    fn what_is_left_for_a_world_that_is_dropped_may_hold_the_link_of_another() {
        let (tell, told) = mpsc::channel();
        thread::spawn(move || {
            let groups = WorldGroups::new();
            for _ in 0..10 {
                let mut one = App::new();
                let mut other = App::new();
                for app in [&mut one, &mut other] {
                    app.add_plugins((TimePlugin, DuePlugin));
                    groups.join("apps", app);
                }
                let link = other.world().resource::<WorldLink>().clone();
                let sender = one.world_mut().message_sender();
                sender.run(move |_| drop(link)).ok().unwrap();
                drop((sender, other, one));
            }
            tell.send(groups.running("apps")).ok();
        });
        assert_eq!(next(&told), 0);
    }

    #[test]
    fn dropping_the_groups_stops_all_worlds() {
        let (hear, heard) = mpsc::channel();
        let mut groups = WorldGroups::new();
        groups.start("ears", 2, listener(hear)).unwrap();
        groups.post(say("ears", Delivery::All, 1)).unwrap();
        drop(groups);
        assert_eq!(
            sorted(heard),
            [(0, 1), (1, 1)],
            "and nobody has the other end any more"
        );
    }

    #[test]
    fn a_world_keeps_its_number_when_another_ends() {
        let mut groups = WorldGroups::new();
        let build = |app: &mut App| {
            app.world_mut().spawn(bomb());
        };
        groups.start("worlds", 2, build).unwrap();
        groups
            .post(Parcel::new("worlds", Delivery::InTurn, number(PANIC, 0)))
            .unwrap();
        assert_eq!(ended(&mut groups, 1)[0].nth, 0);
        groups.start("worlds", 1, build).unwrap();
        let reports = groups.stop();
        end_well(&reports);
        let numbers = reports.iter().map(|report| report.nth);
        assert!(numbers.eq([2, 1]), "{reports:?}");
    }
}

mod running {
    use super::*;

    #[test]
    fn each_world_has_a_thread_of_its_own_and_its_systems_run_there() {
        let (tell, told) = mpsc::channel::<ThreadId>();
        let mut groups = WorldGroups::new();
        let build = move |app: &mut App| {
            let here = thread::current().id();
            let tell = tell.clone();
            let compare = move || {
                assert_eq!(thread::current().id(), here);
                tell.send(here).ok();
            };
            app.add_systems(Startup, compare);
        };
        groups.start("worlds", 4, build).unwrap();
        end_well(&groups.stop());
        let threads: HashSet<_> = told.iter().chain([thread::current().id()]).collect();
        assert_eq!(threads.len(), 5);
    }

    #[test]
    fn worlds_that_wait_in_a_system_do_not_keep_others_from_running() {
        let (hear, heard) = mpsc::channel();
        let gate = Gate::new();
        let mut groups = WorldGroups::new();
        // More than any pool of threads would have.
        let waiting = thread::available_parallelism().map_or(8, usize::from) + 2;
        let pass = gate.pass();
        let build = move |app: &mut App| {
            let pass = pass.clone();
            app.add_systems(Startup, pass);
        };
        groups.start("databases", waiting, build).unwrap();
        for _ in 0..waiting {
            gate.somebody_waits();
        }
        let build_ears = listener(hear);
        let build = move |app: &mut App| {
            build_ears(app);
            app.add_systems(Startup, |link: Res<WorldLink>| {
                link.post(say("ears", Delivery::All, 1)).unwrap();
            });
        };
        groups.start("ears", 1, build).unwrap();
        assert_eq!(next(&heard), (0, 1));
        for _ in 0..waiting {
            gate.open();
        }
        end_well(&groups.stop());
    }

    #[test]
    fn a_system_can_go_through_entities_in_parallel() {
        let (tell, told) = mpsc::channel();
        let mut groups = WorldGroups::new();
        let build = move |app: &mut App| {
            let tell = tell.clone();
            app.world_mut().spawn_batch((0..1_000).map(StableKey));
            let go_through = move |keys: Query<&StableKey>| {
                keys.par_iter().for_each(|key| _ = tell.send(key.0));
            };
            app.add_systems(Startup, go_through);
        };
        groups.start("worlds", 1, build).unwrap();
        end_well(&groups.stop());
        assert!(sorted(told).into_iter().eq(0..1_000));
    }

    #[test]
    fn worlds_can_be_added_to_a_group_that_runs() {
        let (hear, heard) = mpsc::channel();
        let mut groups = WorldGroups::new();
        let build = Arc::new(listener(hear));
        for worlds in 1..=2 {
            let build = build.clone();
            groups
                .start("ears", 1, move |app: &mut App| build(app))
                .unwrap();
            assert_eq!(groups.running("ears"), worlds);
            groups
                .post(say("ears", Delivery::All, worlds as u32))
                .unwrap();
        }
        drop(build);
        let reports = groups.stop();
        end_well(&reports);
        assert!(reports.iter().map(|report| report.nth).eq([1, 0]));
        assert_eq!(sorted(heard), [(0, 1), (0, 2), (1, 2)]);
    }

    #[test]
    fn the_world_of_another_app_can_join() {
        #[derive(Resource, Default)]
        struct Heard(Vec<u32>);

        #[derive(Resource)]
        struct IsDone;

        let mut app = App::new();
        // What was there before the plugin can be found, too.
        let ears =
            MessageComponent::new().on_packet(SAY, |mut me: MessageContext, said: &Packet| {
                let said = read(said);
                me.commands.queue(move |world: &mut World| {
                    world.resource_mut::<Heard>().0.push(said);
                });
            });
        let done =
            MessageComponent::new().on_packet(ANSWER, |mut me: MessageContext, _: &Packet| {
                me.commands.insert_resource(IsDone);
            });
        let window = app.world_mut().spawn((StableKey(1), ears)).id();
        let asker = app.world_mut().spawn((StableKey(2), done)).id();
        app.init_resource::<Heard>()
            .add_plugins((TimePlugin, DuePlugin));

        let mut groups = WorldGroups::new();
        groups.join("main", &mut app);
        assert_eq!(groups.running("main"), 1);
        assert_eq!(app.world().resource::<WorldLink>().group(), "main");
        let build = |app: &mut App| {
            let echo = |mut me: MessageContext, _: &Packet| {
                for to in [StableKey(1).into(), Delivery::All, Delivery::InTurn] {
                    me.commands.post(say("main", to, 5));
                }
                me.reply(number(ANSWER, 0)).unwrap();
            };
            app.world_mut()
                .spawn(MessageComponent::new().on_packet(QUESTION, echo));
        };
        groups.start("workers", 1, build).unwrap();
        app.world_mut().commands().entity(asker).ask_world(
            Parcel::new("workers", Delivery::InTurn, number(QUESTION, 0)),
            Timer::after_secs(3600.0),
        );
        let is_done = || {
            app.update();
            app.world().contains_resource::<IsDone>()
        };
        wait_until(is_done, "the worker should have answered");
        assert_eq!(app.world().resource::<Heard>().0, [5, 5, 5]);

        app.world_mut().despawn(window);
        let refused = groups.post(say("main", StableKey(1), 1)).unwrap_err();
        assert_eq!(refused.because, RefusedBecause::UnknownKey);
        drop(app);
        assert_eq!(groups.running("main"), 0);
        let refused = groups.post(say("main", Delivery::All, 1)).unwrap_err();
        assert_eq!(refused.because, RefusedBecause::UnknownGroup);
        end_well(&groups.stop());
    }

    #[test]
    fn a_world_runs_when_something_arrives_and_not_before() {
        #[derive(Resource, Default)]
        struct Frames(u32);

        let (tell, told) = mpsc::channel();
        let mut groups = WorldGroups::new();
        let build = move |app: &mut App| {
            let tell = tell.clone();
            let ears = MessageComponent::new().on_packet(
                SAY,
                move |mut me: MessageContext, _: &Packet| {
                    let tell = tell.clone();
                    me.commands.queue(move |world: &mut World| {
                        tell.send(world.resource::<Frames>().0).ok();
                    });
                },
            );
            app.world_mut().spawn(ears);
            app.insert_resource(NEVER)
                .init_resource::<Frames>()
                .add_systems(First, |mut frames: ResMut<Frames>| frames.0 += 1);
        };
        groups.start("sleepers", 1, build).unwrap();
        groups.post(say("sleepers", Delivery::All, 0)).unwrap();
        let mut before = next(&told);
        assert!(before <= 2, "at once, or in the frame after the first");
        for _ in 0..20 {
            groups.post(say("sleepers", Delivery::All, 0)).unwrap();
            let frame = next(&told);
            assert_eq!(frame, before + 1, "one frame for each");
            before = frame;
        }
        end_well(&groups.stop());
    }

    #[test]
    fn a_world_runs_by_itself_as_often_as_its_interval_says() {
        for interval in [
            Duration::ZERO,
            Duration::from_micros(100),
            Duration::from_millis(1),
        ] {
            let (tell, told) = mpsc::channel();
            let mut groups = WorldGroups::new();
            let build = move |app: &mut App| {
                let tell = tell.clone();
                app.insert_resource(LoopInterval(interval))
                    .add_systems(Update, move || _ = tell.send(()));
            };
            groups.start("worlds", 1, build).unwrap();
            for _ in 0..20 {
                next(&told);
            }
            end_well(&groups.stop());
        }
    }

    #[test]
    fn the_longest_interval_is_no_trouble() {
        let (hear, heard) = mpsc::channel();
        let mut groups = WorldGroups::new();
        let build_ears = listener(hear);
        let build = move |app: &mut App| {
            app.insert_resource(LoopInterval(Duration::MAX));
            build_ears(app);
        };
        groups.start("ears", 1, build).unwrap();
        for what in 0..3 {
            groups.post(say("ears", Delivery::All, what)).unwrap();
            assert_eq!(next(&heard), (0, what));
        }
        end_well(&groups.stop());
    }

    #[test]
    fn a_second_entity_of_a_key_is_told_of_and_not_found() {
        static TOLD: Mutex<Vec<(Severity, String)>> = Mutex::new(Vec::new());

        fn record(error: BevyError, _: ErrorContext) {
            TOLD.lock()
                .unwrap()
                .push((error.severity(), error.to_string()));
        }

        let (hear, heard) = mpsc::channel();
        let ears = |nth| {
            let hear = hear.clone();
            MessageComponent::new().on_packet(SAY, move |_: MessageContext, _: &Packet| {
                hear.send(nth).ok();
            })
        };
        let mut app = App::new();
        app.add_plugins((TimePlugin, DuePlugin));
        app.insert_resource(FallbackErrorHandler(record));
        let groups = WorldGroups::new();
        groups.join("main", &mut app);
        let first = app.world_mut().spawn((StableKey(77), ears(1))).id();
        let second = app.world_mut().spawn((StableKey(77), ears(2))).id();
        let told = core::mem::take(&mut *TOLD.lock().unwrap());
        let [(severity, text)] = &told[..] else {
            panic!("{told:?}");
        };
        assert_eq!(*severity, Severity::Warning);
        let said = [first.to_string(), second.to_string(), "77".into()];
        assert!(said.iter().all(|word| text.contains(word)), "{text}");

        groups.post(say("main", StableKey(77), 0)).unwrap();
        app.world_mut().despawn(second);
        groups.post(say("main", StableKey(77), 0)).unwrap();
        app.update();
        assert!(heard.try_iter().eq([1, 1]));
    }
}

mod stress {
    use super::*;

    #[test]
    fn ten_thousand_parcels_in_all_directions_all_arrive() {
        const WORLDS: u32 = 4;
        const EACH: u32 = 2_500;

        /// How many parcels this world has sent, and what it has been given of which kind.
        #[derive(Resource, Clone, Default, Debug)]
        struct Tally {
            sent: u32,
            given: [u64; 3],
        }

        /// Told when its world ends.
        #[derive(Resource)]
        struct Told(Tally, Sender<Tally>);

        impl Drop for Told {
            fn drop(&mut self) {
                self.1.send(self.0.clone()).ok();
            }
        }

        #[derive(Resource)]
        struct IsOn;

        let (tell, told) = mpsc::channel();
        let (done, all_done) = mpsc::channel();
        let worlds = AtomicUsize::new(0);
        let build = move |app: &mut App| {
            let nth = worlds.fetch_add(1, Ordering::Relaxed) as u32;
            let done = done.clone();
            let mut ears = MessageComponent::new();
            for kind in 0..3 {
                let count = move |mut me: MessageContext, packet: &Packet| {
                    let what = u64::from(read(packet));
                    me.commands.queue(move |world: &mut World| {
                        world.resource_mut::<Told>().0.given[kind as usize] += what;
                    });
                };
                ears = ears.on_packet(kind, count);
            }
            let send = move |mut told: ResMut<Told>, mut commands: Commands| {
                let sent = &mut told.0.sent;
                for _ in 0..50.min(EACH - *sent) {
                    let what = nth * EACH + *sent;
                    let to = match what % 3 {
                        0 => Delivery::All,
                        1 => Delivery::InTurn,
                        _ => StableKey(u64::from(what / 3 % WORLDS)).into(),
                    };
                    commands.post(Parcel::new("worlds", to, number(what % 3, what)));
                    *sent += 1;
                    if *sent == EACH {
                        let done = done.clone();
                        commands.queue(move |_: &mut World| _ = done.send(()));
                    }
                }
            };
            let refused = |_: MessageContext, refused: &Refused| panic!("{refused}");
            app.world_mut().spawn(MessageComponent::new().on(refused));
            app.world_mut().spawn((StableKey(nth.into()), ears));
            app.insert_resource(LoopInterval(Duration::ZERO))
                .insert_resource(Told(Tally::default(), tell.clone()))
                // Not before all are there.
                .add_systems(Update, send.run_if(resource_exists::<IsOn>));
            let go = MessageComponent::new().on_packet(GO, |mut me: MessageContext, _: &Packet| {
                me.commands.insert_resource(IsOn);
            });
            app.world_mut().spawn(go);
        };

        let mut groups = WorldGroups::new();
        groups.start("worlds", WORLDS as usize, build).unwrap();
        groups
            .post(Parcel::new("worlds", Delivery::All, number(GO, 0)))
            .unwrap();
        for _ in 0..WORLDS {
            next(&all_done);
        }
        end_well(&groups.stop());
        let mut given = [0; 3];
        for tally in told {
            assert_eq!(tally.sent, EACH);
            for (sum, part) in given.iter_mut().zip(tally.given) {
                *sum += part;
            }
        }
        let sum = |kind| {
            (0..u64::from(WORLDS * EACH))
                .filter(|what| what % 3 == kind)
                .sum::<u64>()
        };
        assert_eq!(given, [u64::from(WORLDS) * sum(0), sum(1), sum(2)]);
    }

    #[test]
    fn nothing_is_lost_while_worlds_come_and_go() {
        let taken = Arc::new(AtomicUsize::new(0));
        let counted = taken.clone();
        let build = move |app: &mut App| {
            let counted = counted.clone();
            let count = move |mut me: MessageContext, said: &Packet| {
                counted.fetch_add(1, Ordering::Relaxed);
                if read(said).is_multiple_of(97) {
                    me.commands.write_message(AppExit::Success);
                }
                assert!(!read(said).is_multiple_of(101), "time to go");
            };
            app.world_mut()
                .spawn(MessageComponent::new().on_packet(SAY, count));
        };
        let build = Arc::new(build);
        let mut groups = WorldGroups::new();
        let start = |groups: &mut WorldGroups, worlds| {
            let build = build.clone();
            groups
                .start("worlds", worlds, move |app: &mut App| build(app))
                .unwrap();
        };
        start(&mut groups, 3);
        let (mut posted, mut undelivered) = (0, 0);
        for what in 1..2_000 {
            match groups.post(say("worlds", Delivery::InTurn, what)) {
                Ok(()) => posted += 1,
                Err(refused) => assert_eq!(refused.because, RefusedBecause::UnknownGroup),
            }
            for report in groups.ended() {
                undelivered += report.undelivered.len();
                start(&mut groups, 1);
            }
        }
        let reports = groups.stop();
        undelivered += reports
            .iter()
            .map(|report| report.undelivered.len())
            .sum::<usize>();
        assert_eq!(taken.load(Ordering::Relaxed) + undelivered, posted);
    }
}

/// A stand-in for a messaging engine between processes. Its members are worlds that know nothing of
/// each other, and all that passes between them is text.
#[cfg(feature = "serialize")]
mod across_a_border {
    use std::{collections::HashMap, thread::JoinHandle};

    use bevy_due::{Link, MessageSender, SendError};
    use serde::{Deserialize, Serialize};

    use super::*;

    /// What passes the border.
    #[derive(Serialize, Deserialize)]
    enum Frame {
        Join { group: String },
        Bind(StableKey),
        Unbind(StableKey),
        Parcel(Parcel),
        Leave,
    }

    /// The wire from a member: the number of the member, and a frame.
    type Wire = Sender<(usize, String)>;

    /// The end of the wire that a world has.
    struct ByteLink {
        member: usize,
        wire: Mutex<Wire>,
    }

    impl ByteLink {
        fn put(&self, frame: &Frame) -> bool {
            let text = ron::to_string(frame).unwrap();
            self.wire.lock().unwrap().send((self.member, text)).is_ok()
        }
    }

    impl Link for ByteLink {
        fn send(&self, parcel: Parcel) -> Result<(), Refused> {
            let frame = Frame::Parcel(parcel);
            if self.put(&frame) {
                return Ok(());
            }
            let Frame::Parcel(parcel) = frame else {
                unreachable!();
            };
            let because = RefusedBecause::UnknownGroup;
            Err(Refused { parcel, because })
        }

        fn bind(&self, key: StableKey) {
            self.put(&Frame::Bind(key));
        }

        fn unbind(&self, key: StableKey) {
            self.put(&Frame::Unbind(key));
        }
    }

    impl Drop for ByteLink {
        fn drop(&mut self) {
            self.put(&Frame::Leave);
        }
    }

    /// Carries parcels from wire to wire, on a thread of its own.
    #[derive(Default)]
    struct Broker {
        members: HashMap<usize, Member>,
        keys: HashMap<(String, StableKey), usize>,
        turn: usize,
    }

    struct Member {
        group: String,
        /// The wire to it.
        wire: Sender<String>,
    }

    impl Broker {
        fn carry(
            mut self,
            wires: &Mutex<HashMap<usize, Sender<String>>>,
            from: &Receiver<(usize, String)>,
        ) {
            for (member, text) in from {
                let group = self.members.get(&member).map(|member| member.group.clone());
                match (ron::from_str(&text).unwrap(), group) {
                    (Frame::Join { group }, _) => {
                        let wire = wires.lock().unwrap().remove(&member).unwrap();
                        self.members.insert(member, Member { group, wire });
                    }
                    (Frame::Bind(key), Some(group)) => {
                        self.keys.insert((group, key), member);
                    }
                    (Frame::Unbind(key), Some(group)) => {
                        self.keys.remove(&(group, key));
                    }
                    (Frame::Parcel(parcel), _) => self.pass_on(&parcel),
                    (Frame::Leave, _) => {
                        self.members.remove(&member);
                    }
                    (Frame::Bind(_) | Frame::Unbind(_), None) => panic!("who is {member}?"),
                }
            }
        }

        fn pass_on(&mut self, parcel: &Parcel) {
            let mut of_group: Vec<_> = self
                .members
                .iter()
                .filter(|(_, member)| member.group == parcel.group)
                .map(|(&member, _)| member)
                .collect();
            of_group.sort();
            let to = match parcel.delivery {
                Delivery::All => of_group,
                Delivery::InTurn => {
                    self.turn += 1;
                    of_group
                        .get(self.turn % of_group.len().max(1))
                        .into_iter()
                        .copied()
                        .collect()
                }
                Delivery::To(key) => {
                    let key = (parcel.group.to_string(), key);
                    self.keys.get(&key).into_iter().copied().collect()
                }
            };
            for member in to {
                let text = ron::to_string(parcel).unwrap();
                self.members[&member].wire.send(text).ok();
            }
        }
    }

    /// Worlds as in different processes.
    struct Processes {
        to_broker: Wire,
        wires: Arc<Mutex<HashMap<usize, Sender<String>>>>,
        broker: JoinHandle<()>,
        worlds: Vec<(Sender<()>, JoinHandle<()>)>,
    }

    impl Processes {
        fn new() -> Self {
            let (to_broker, from_members) = mpsc::channel();
            let wires = Arc::default();
            let all_wires = Arc::clone(&wires);
            let broker = thread::spawn(move || {
                Broker::default().carry(&all_wires, &from_members);
            });
            Self {
                to_broker,
                wires,
                broker,
                worlds: Vec::new(),
            }
        }

        fn start(&mut self, group: &'static str, build: impl FnOnce(&mut App) + Send + 'static) {
            let member = self.worlds.len();
            let (to_member, from_broker) = mpsc::channel();
            self.wires.lock().unwrap().insert(member, to_member);
            let wire = Mutex::new(self.to_broker.clone());
            let (stop, stopped) = mpsc::channel::<()>();
            let (start, started) = mpsc::channel();
            let world = thread::spawn(move || {
                let mut app = App::new();
                app.add_plugins((TimePlugin, DuePlugin));
                let link = ByteLink { member, wire };
                link.put(&Frame::Join {
                    group: group.into(),
                });
                app.insert_resource(WorldLink::new(group, link));
                build(&mut app);
                let sender = app.world_mut().message_sender();
                let ears = thread::spawn(move || listen(&from_broker, &sender));
                start.send(()).unwrap();
                while stopped.try_recv() != Err(mpsc::TryRecvError::Disconnected) {
                    app.update();
                    thread::yield_now();
                }
                drop(app);
                ears.join().unwrap();
            });
            next(&started);
            self.worlds.push((stop, world));
        }

        fn stop(self) {
            for (stop, world) in self.worlds {
                drop(stop);
                world.join().unwrap();
            }
            drop(self.to_broker);
            self.broker.join().unwrap();
        }
    }

    /// The receiving end.
    fn listen(wire: &Receiver<String>, sender: &MessageSender) {
        for text in wire {
            let parcel = ron::from_str(&text).unwrap();
            match sender.receive(parcel) {
                Ok(()) | Err(SendError::Closed(_)) => {}
                Err(SendError::Full(_)) => panic!("there should be room"),
            }
        }
    }

    const COUNTED: StableKey = StableKey(1);
    const CUSTOMER: StableKey = StableKey(2);

    /// A world that knows what a number is twice, and says so to all when it is asked.
    fn calculator(app: &mut App) {
        let answer = |mut me: MessageContext, question: &Packet| -> Result {
            let twice = 2 * read(question);
            me.commands.post(say("customers", Delivery::All, twice));
            me.commands.post(say("customers", COUNTED, twice));
            Ok(me.reply(number(ANSWER, twice))?)
        };
        app.world_mut()
            .spawn(MessageComponent::new().on_packet(QUESTION, answer));
    }

    /// A world that asks ten times, one after the other, and then says how much it has heard of what.
    fn customer(told: &Sender<[u32; 2]>) -> impl Fn(&mut App) + Send + Sync + 'static + use<> {
        #[derive(Component, Default)]
        struct Heard([u32; 2]);

        fn ask(customer: &mut EntityCommands, what: u32) {
            let question = Parcel::new("calculators", Delivery::InTurn, number(QUESTION, what));
            customer.ask_world(question, Timer::after_secs(3600.0));
        }

        let told = told.clone();
        move |app| {
            let told = told.clone();
            let count = |mut me: MessageContext, said: &Packet| {
                me.entity.get_mut::<Heard>().unwrap().0[0] += read(said);
            };
            let counter = MessageComponent::new().on_packet(SAY, count);
            app.world_mut().spawn((COUNTED, Heard::default(), counter));
            let go_on = move |mut me: MessageContext, answer: &Packet| {
                let mut heard = me.entity.get_mut::<Heard>().unwrap();
                heard.0[1] += read(answer);
                if read(answer) == 20 {
                    let answers = heard.0[1];
                    let told = told.clone();
                    me.commands.queue(move |world: &mut World| {
                        let mut all = world.query::<(&StableKey, &Heard)>();
                        let mut all = all.iter(world);
                        let (_, said) = all.find(|(key, _)| **key == COUNTED).unwrap();
                        told.send([said.0[0], answers]).ok();
                    });
                } else {
                    let mut customer = me.commands.entity(me.entity.id());
                    ask(&mut customer, read(answer) / 2 + 1);
                }
            };
            let customer = MessageComponent::new().on_packet(ANSWER, go_on);
            app.world_mut()
                .spawn((CUSTOMER, Heard::default(), customer));
            let first = |world: &mut World| {
                let mut all = world.query::<(Entity, &StableKey)>();
                let mut all = all.iter(world);
                let (customer, _) = all.find(|(_, key)| **key == CUSTOMER).unwrap();
                ask(&mut world.commands().entity(customer), 1);
            };
            app.add_systems(Startup, first);
        }
    }

    /// The answers come after what was said: by one sender, in its order. It is said twice.
    const ALL_HEARD: [u32; 2] = [2 * 110, 110];

    #[test]
    fn worlds_that_are_joined_by_text_alone_do_the_same_as_threads() {
        let (tell, told) = mpsc::channel();
        let mut groups = WorldGroups::new();
        groups.start("calculators", 2, calculator).unwrap();
        groups.start("customers", 1, customer(&tell)).unwrap();
        assert_eq!(next(&told), ALL_HEARD);
        end_well(&groups.stop());

        let (tell, told) = mpsc::channel();
        let mut processes = Processes::new();
        processes.start("calculators", calculator);
        processes.start("calculators", calculator);
        processes.start("customers", customer(&tell));
        assert_eq!(next(&told), ALL_HEARD);
        processes.stop();
    }
}
