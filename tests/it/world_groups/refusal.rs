//! Parcels that can't be sent.

use super::*;

/// Posts a parcel that is refused, and returns the reason.
fn refused(groups: &WorldGroups, parcel: &Parcel) -> RefusalReason {
    let refused = groups.post(parcel.clone()).unwrap_err();
    assert_eq!(refused.parcel, *parcel);
    refused.reason
}

#[test]
fn an_unknown_group_and_an_unknown_key_are_refused() {
    let (hear, _heard) = mpsc::channel();
    let mut groups = WorldGroups::new();
    let to_all = say("ears", Delivery::All, 1);
    let because = refused(&groups, &to_all);
    assert_eq!(because, RefusalReason::UnknownGroup);
    groups.start_worlds("ears", 1, listener(hear)).unwrap();
    groups.post(to_all).unwrap();
    let because = refused(&groups, &say("ears", StableKey(1), 1));
    assert_eq!(because, RefusalReason::UnknownKey);
    let because = refused(&groups, &say("eyes", StableKey(0), 1));
    assert_eq!(because, RefusalReason::UnknownGroup);
    end_well(&groups.stop());
}

#[test]
fn a_group_of_ended_worlds_is_unknown() {
    let mut groups = WorldGroups::new();
    let build = |app: &mut App| {
        app.world_mut().spawn(StableKey(1));
        app.add_systems(Update, |mut exit: MessageWriter<AppExit>| {
            exit.write(AppExit::Success);
        });
    };
    groups.start_worlds("short", 2, build).unwrap();
    end_well(&ended(&mut groups, 2));
    assert_eq!(groups.running("short"), 0);
    for to in [Delivery::All, Delivery::InTurn, StableKey(1).into()] {
        let because = refused(&groups, &say("short", to, 1));
        assert_eq!(because, RefusalReason::UnknownGroup, "{to:?}");
    }
}

#[test]
fn a_world_with_a_full_inbox_refuses_and_loses_its_turn() {
    let (hear, heard) = mpsc::channel();
    let gate = Gate::new();
    let mut groups = WorldGroups::new();
    let build_ears = listener(hear);
    let keeper = gate.keeper();
    let build = move |app: &mut App| {
        app.add_plugins(DuePlugin {
            inbox_capacity: 2,
            ..DuePlugin::default()
        });
        build_ears(app);
        app.world_mut().spawn(keeper.clone());
    };
    groups.start("ears", 2, build).unwrap();
    let wait = Parcel::new("ears", Delivery::All, number(WAIT, 0));
    groups.post(wait).unwrap();
    gate.somebody_waits();
    gate.somebody_waits();

    // The inboxes are not emptied now.
    groups.post(say("ears", StableKey(0), 1)).unwrap();
    groups.post(say("ears", StableKey(0), 2)).unwrap();
    let because = refused(&groups, &say("ears", StableKey(0), 3));
    assert_eq!(because, RefusalReason::Full);
    groups.post(say("ears", Delivery::InTurn, 4)).unwrap();
    let because = refused(&groups, &say("ears", Delivery::All, 5));
    assert_eq!(
        because,
        RefusalReason::InPart,
        "the other one has been given it"
    );
    for to in [Delivery::InTurn, Delivery::All] {
        let because = refused(&groups, &say("ears", to, 6));
        assert_eq!(because, RefusalReason::Full);
    }

    gate.open();
    gate.open();
    end_well(&groups.stop());
    assert_eq!(sorted(heard), [(0, 1), (0, 2), (1, 4), (1, 5)]);
}

#[test]
fn a_refused_parcel_comes_back_as_a_message() {
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
    groups.start_worlds("worlds", 1, build).unwrap();
    let refused = next(&told);
    assert_eq!(refused.parcel, parcel);
    assert_eq!(refused.reason, RefusalReason::UnknownGroup);
    end_well(&groups.stop());
    assert_eq!(told.iter().count(), 0, "once");
}

#[test]
fn a_world_without_a_link_refuses_its_parcels() {
    #[derive(Resource)]
    struct Told(Refused);

    let mut app = App::new();
    app.add_plugins((TimePlugin, DuePlugin::default()));
    let refused = |mut me: MessageContext, refused: &Refused| {
        me.commands.insert_resource(Told(refused.clone()));
    };
    app.world_mut().spawn(MessageComponent::new().on(refused));
    app.world_mut().commands().post(say("x", Delivery::All, 1));
    app.update();
    let Told(refused) = app.world().resource();
    assert_eq!(refused.reason, RefusalReason::NoLink);
}

#[test]
fn a_refusal_is_reported_when_its_last_follower_has_gone() {
    fn report(error: BevyError, _: ErrorContext) {
        assert_eq!(error.severity(), Severity::Warning);
        REPORTS.lock().unwrap().push(error.to_string());
    }

    static REPORTS: Mutex<Vec<String>> = Mutex::new(Vec::new());

    let mut app = App::new();
    app.add_plugins((TimePlugin, DuePlugin::default()))
        .insert_resource(FallbackErrorHandler(report));
    let follows = MessageComponent::new().on(|_: MessageContext, _: &Refused| {});
    let follower = app.world_mut().spawn(follows).id();
    app.update();
    app.world_mut().despawn(follower);
    app.world_mut().commands().post(say("x", Delivery::All, 1));
    app.update();
    let reports = REPORTS.lock().unwrap();
    assert!(
        matches!(&reports[..], [report] if report.contains("\"x\"")),
        "{reports:?}"
    );
}
