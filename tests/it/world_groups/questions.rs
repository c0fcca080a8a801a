//! Requests to other worlds.

use super::*;
use bevy_due::message::MessageCommandsExt;

#[derive(Component)]
struct Asker;

#[derive(Clone, Debug, PartialEq)]
enum Told {
    Answer(u32),
    No(NoAnswer),
    /// The number of late replies.
    Late(u64),
}

/// Builds a world with an entity of this key that makes a request in the first frame, and reports how
/// it completes.
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
                assert_eq!(me.request(), *about.lock().unwrap());
                tell.send(Told::Answer(read(answer))).ok();
            })
            .on(move |me: MessageContext, no: &NoAnswer| {
                assert_eq!(me.request(), *about_too.lock().unwrap());
                tell_too.send(Told::No(*no)).ok();
            });
        let mut asker = app.world_mut().spawn((Asker, ears));
        if let Some(key) = key {
            asker.insert(key);
        }
        let question = question.clone();
        let ask = move |asker: Single<Entity, With<Asker>>, mut commands: Commands| {
            let until = Timer::after(seconds);
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

/// Replies with twice the number.
fn twice() -> MessageComponent {
    MessageComponent::new().on_packet(
        QUESTION,
        |mut me: MessageContext, question: &Packet| -> Result {
            Ok(me.reply(number(ANSWER, 2 * read(question)))?)
        },
    )
}

/// Keeps a request, and replies on the packet `ANSWER_NOW`.
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
                world.commands().reply(reply_to, answer);
            });
        })
}

fn question(to: impl Into<Delivery<StableKey>>) -> Parcel {
    Parcel::new("answerers", to, number(QUESTION, 21))
}

#[test]
fn a_request_gets_a_reply() {
    for to in [Delivery::All, Delivery::InTurn, StableKey(5).into()] {
        let (tell, told) = mpsc::channel();
        let mut groups = WorldGroups::new();
        let build = |app: &mut App| {
            app.world_mut().spawn((StableKey(5), twice()));
        };
        groups.start_worlds("answerers", 1, build).unwrap();
        let build = asker(Some(StableKey(5)), question(to), 60.0, tell);
        groups.start_worlds("askers", 1, build).unwrap();
        assert_eq!(next(&told), Told::Answer(42), "{to:?}");
        end_well(&groups.stop());
        assert_eq!(told.iter().count(), 0, "exactly one answer");
    }
}

#[test]
fn the_first_of_several_replies_counts() {
    let (tell, told) = mpsc::channel();
    let mut groups = WorldGroups::new();
    let build = |app: &mut App| {
        app.world_mut().spawn(twice());
    };
    groups.start_worlds("answerers", 3, build).unwrap();
    let build = asker(Some(StableKey(5)), question(Delivery::All), 60.0, tell);
    groups.start_worlds("askers", 1, build).unwrap();
    assert_eq!(next(&told), Told::Answer(42));
    while next(&told) != Told::Late(2) {}
    end_well(&groups.stop());
}

#[test]
fn a_request_without_a_reply_times_out() {
    let (tell, told) = mpsc::channel();
    let mut groups = WorldGroups::new();
    groups
        .start_worlds("answerers", 1, |_: &mut App| {})
        .unwrap();
    let build = asker(Some(StableKey(5)), question(Delivery::InTurn), 0.001, tell);
    groups.start_worlds("askers", 1, build).unwrap();
    assert_eq!(next(&told), Told::No(NoAnswer::TimedOut));
    end_well(&groups.stop());
    assert_eq!(told.iter().count(), 0);
}

#[test]
fn a_refused_request_completes_at_once() {
    let (tell, told) = mpsc::channel();
    let mut groups = WorldGroups::new();
    let build = asker(Some(StableKey(5)), question(Delivery::InTurn), 3600.0, tell);
    groups.start_worlds("askers", 1, build).unwrap();
    assert_eq!(
        next(&told),
        Told::No(NoAnswer::Refused(RefusalReason::UnknownGroup))
    );
    end_well(&groups.stop());
    assert_eq!(told.iter().count(), 0);
}

#[test]
fn a_request_of_an_entity_without_a_key_is_refused() {
    let (tell, told) = mpsc::channel();
    let mut groups = WorldGroups::new();
    let (asked, was_asked) = mpsc::channel();
    let build = move |app: &mut App| {
        app.world_mut().spawn(later(asked.clone()));
    };
    groups.start_worlds("answerers", 1, build).unwrap();
    let build = asker(None, question(Delivery::InTurn), 3600.0, tell);
    groups.start_worlds("askers", 1, build).unwrap();
    assert_eq!(
        next(&told),
        Told::No(NoAnswer::Refused(RefusalReason::NoKey))
    );
    end_well(&groups.stop());
    assert_eq!(was_asked.iter().count(), 0, "nothing was sent");
}

#[test]
fn a_late_reply_is_dropped_and_counted() {
    let (tell, told) = mpsc::channel();
    let (keep, _kept) = mpsc::channel();
    let mut groups = WorldGroups::new();
    let build = move |app: &mut App| {
        app.world_mut().spawn(later(keep.clone()));
    };
    groups.start_worlds("answerers", 1, build).unwrap();
    let build = asker(Some(StableKey(5)), question(Delivery::InTurn), 0.001, tell);
    groups.start_worlds("askers", 1, build).unwrap();
    assert_eq!(next(&told), Told::No(NoAnswer::TimedOut));
    let answer = Parcel::new("answerers", Delivery::All, number(ANSWER_NOW, 1));
    groups.post(answer).unwrap();
    assert_eq!(next(&told), Told::Late(1));
    end_well(&groups.stop());
    assert_eq!(told.iter().count(), 0);
}

#[test]
fn a_reply_to_a_despawned_entity_is_refused() {
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
    groups.start_worlds("answerers", 1, build).unwrap();
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
    groups.start_worlds("askers", 1, build).unwrap();
    next(&kept);
    groups
        .post(Parcel::new("askers", Delivery::All, number(GO, 0)))
        .unwrap();
    next(&gone);
    let answer = Parcel::new("answerers", Delivery::All, number(ANSWER_NOW, 1));
    groups.post(answer).unwrap();
    let refused = next(&was_refused);
    assert_eq!(refused.reason, RefusalReason::UnknownKey);
    assert!(refused.parcel.is_reply());
    end_well(&groups.stop());
    assert_eq!(told.iter().count(), 0);
}

#[test]
fn a_reply_to_another_world_must_be_a_packet() {
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
    groups.start_worlds("answerers", 1, build).unwrap();
    let build = asker(Some(StableKey(5)), question(Delivery::InTurn), 60.0, tell);
    groups.start_worlds("askers", 1, build).unwrap();
    let error = next(&failed).unwrap_err();
    assert!(matches!(error, ReplyError::NotAPacket(name) if name.ends_with("Typed")));
    assert_eq!(next(&told), Told::Answer(1), "it is still open");
    end_well(&groups.stop());
}

/// Keeps all requests, and replies to the first on the packet `ANSWER_NOW`.
fn first_later(kept: Sender<()>) -> MessageComponent {
    #[derive(Resource, Default)]
    struct Kept(Vec<ReplyTo>);

    MessageComponent::new()
        .on_packet(QUESTION, move |mut me: MessageContext, _: &Packet| {
            let reply_to = me.reply_to().unwrap().clone();
            let kept = kept.clone();
            me.commands.queue(move |world: &mut World| {
                world.get_resource_or_init::<Kept>().0.push(reply_to);
                kept.send(()).ok();
            });
        })
        .on_packet(ANSWER_NOW, |mut me: MessageContext, answer: &Packet| {
            let answer = number(ANSWER, read(answer));
            me.commands.queue(move |world: &mut World| {
                let reply_to = world.resource::<Kept>().0[0].clone();
                world.commands().reply(reply_to, answer);
            });
        })
}

#[test]
fn a_reply_to_an_ended_world_is_late_in_its_successor() {
    let (tell, told) = mpsc::channel();
    let (keep, kept) = mpsc::channel();
    let mut groups = WorldGroups::new();
    let build = move |app: &mut App| {
        app.world_mut().spawn(first_later(keep.clone()));
    };
    groups.start_worlds("answerers", 1, build).unwrap();
    let build = asker(Some(StableKey(5)), question(Delivery::InTurn), 60.0, tell);
    let build = Arc::new(move |app: &mut App| {
        build(app);
        let go = |mut me: MessageContext, _: &Packet| {
            me.commands.write_message(AppExit::Success);
        };
        app.world_mut()
            .spawn(MessageComponent::new().on_packet(GO, go));
    });
    let again = build.clone();
    groups
        .start_worlds("askers", 1, move |app: &mut App| build(app))
        .unwrap();
    next(&kept);
    groups
        .post(Parcel::new("askers", Delivery::All, number(GO, 0)))
        .unwrap();
    ended(&mut groups, 1);
    groups
        .start_worlds("askers", 1, move |app: &mut App| again(app))
        .unwrap();
    next(&kept);
    groups
        .post(Parcel::new(
            "answerers",
            Delivery::All,
            number(ANSWER_NOW, 1),
        ))
        .unwrap();
    assert_eq!(next(&told), Told::Late(1));
}

/// An app in a group that no thread runs.
fn member(groups: &WorldGroups, group: &'static str) -> App {
    let mut app = App::new();
    app.add_plugins((TimePlugin, DuePlugin::default()));
    groups.add(group, &mut app);
    app
}

/// An app that has put a request to a world, and the request: the world has panicked before it saw it.
fn asked_a_world_that_panics(groups: &mut WorldGroups, told: Sender<Told>) -> (App, Parcel) {
    let gate = Gate::new();
    let keeper = gate.keeper();
    let build = move |app: &mut App| {
        let panics = |_: MessageContext, _: &Packet| panic!("as the test wants");
        let bomb = MessageComponent::new().on_packet(PANIC, panics);
        app.world_mut().spawn_batch([keeper.clone(), bomb]);
    };
    groups.start_worlds("second", 1, build).unwrap();
    let command = |id| Parcel::new("second", Delivery::InTurn, number(id, 0));
    groups.post(command(WAIT)).unwrap();
    gate.somebody_waits();
    groups.post(command(PANIC)).unwrap();
    let mut first = App::new();
    let question = Parcel::new("second", Delivery::InTurn, number(QUESTION, 21));
    first.add_plugins((TimePlugin, DuePlugin::default()));
    asker(Some(StableKey(7)), question, 3600.0, told)(&mut first);
    groups.add("first", &mut first);
    first.update();
    gate.open();
    let undelivered = ended(groups, 1).remove(0).undelivered;
    let requests = undelivered.into_iter().filter(|it| it.request().is_some());
    let [request] = requests.collect::<Vec<_>>().try_into().unwrap();
    let parcel = request.into_parcel("third", Delivery::InTurn).unwrap();
    assert!(parcel.is_request());
    (first, parcel)
}

#[test]
fn a_request_that_a_world_did_not_deliver_is_put_to_another() {
    let mut groups = WorldGroups::new();
    let (tell, told) = mpsc::channel();
    let (mut first, request) = asked_a_world_that_panics(&mut groups, tell);
    let mut third = member(&groups, "third");
    third.world_mut().spawn(twice());
    groups.post(request).unwrap();
    for app in [&mut third, &mut first] {
        app.update();
        app.update();
    }
    assert_eq!(told.try_recv(), Ok(Told::Answer(42)));
}

/// A reply to the request in a parcel, with this added to the token.
#[cfg(feature = "serialize")]
fn reply_to(request: &Parcel, to: &'static str, added: u64) -> Parcel {
    let text = ron::to_string(request).unwrap();
    let (_, request) = text.split_once("token:").unwrap();
    let (token, request) = request.split_once(',').unwrap();
    let (request, _) = request.split_once(')').unwrap();
    let token = token.parse::<u64>().unwrap().wrapping_add(added);
    let reply = ron::to_string(&Parcel::new(to, StableKey(7), number(ANSWER, 1))).unwrap();
    let reply = reply.replace(
        "part:Plain",
        &format!("part:Reply(token:{token},{request})"),
    );
    let reply: Parcel = ron::from_str(&reply).unwrap();
    assert!(reply.is_reply());
    reply
}

#[cfg(feature = "serialize")]
#[test]
fn only_who_knows_its_token_can_reply_to_a_request() {
    let mut groups = WorldGroups::new();
    let (tell, told) = mpsc::channel();
    let (mut first, request) = asked_a_world_that_panics(&mut groups, tell);
    let late = |app: &App| app.world().resource::<MessageStats>().late;
    for (nth, added) in [1, 1 << 40, u64::MAX].into_iter().enumerate() {
        groups.post(reply_to(&request, "first", added)).unwrap();
        first.update();
        assert_eq!(late(&first), nth as u64 + 1);
    }
    assert!(told.try_iter().all(|told| matches!(told, Told::Late(_))));
    groups.post(reply_to(&request, "first", 0)).unwrap();
    first.update();
    assert!(told.try_iter().any(|told| told == Told::Answer(1)));
}
