//! Many parcels at once.

use super::*;

#[test]
fn ten_thousand_parcels_in_all_directions_all_arrive() {
    const WORLDS: u32 = 4;
    const EACH: u32 = 2_500;

    /// The number of parcels that this world has sent, and the numbers of each kind that it has got.
    #[derive(Resource, Clone, Default, Debug)]
    struct Tally {
        sent: u32,
        given: [u64; 3],
    }

    /// Reports when its world ends.
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
        app.insert_resource(LoopInterval::Every(Duration::ZERO))
            .insert_resource(Told(Tally::default(), tell.clone()))
            // Starts when all worlds are there.
            .add_systems(Update, send.run_if(resource_exists::<IsOn>));
        let go = MessageComponent::new().on_packet(GO, |mut me: MessageContext, _: &Packet| {
            me.commands.insert_resource(IsOn);
        });
        app.world_mut().spawn(go);
    };

    let mut groups = WorldGroups::new();
    groups
        .start_worlds("worlds", WORLDS as usize, build)
        .unwrap();
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
            .start_worlds("worlds", worlds, move |app: &mut App| build(app))
            .unwrap();
    };
    start(&mut groups, 3);
    let (mut posted, mut undelivered) = (0, 0);
    for what in 1..2_000 {
        match groups.post(say("worlds", Delivery::InTurn, what)) {
            Ok(()) => posted += 1,
            Err(refused) => assert_eq!(refused.reason, RefusalReason::UnknownGroup),
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
