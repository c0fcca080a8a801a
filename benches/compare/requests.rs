//! Requests with time-outs. In each frame, one in a hundred is answered and made again.

use std::collections::VecDeque;

use bevy_app::prelude::*;
use bevy_due::{
    Timer,
    message::{MessageCommandsExt, MessageContext, MessageEntityCommandsExt, ReplyTo},
    prelude::*,
};
use bevy_ecs::prelude::*;
use bevy_time::{Time, TimerMode};

use crate::{
    contenders::{app, due_app, on_one_thread},
    frames::frames,
    sides::Table,
};

const REQUESTS: usize = 10_000;

const ANSWERS_PER_FRAME: usize = REQUESTS / 100;

/// The time-out, in seconds.
const PATIENCE: f32 = 10.0;

/// The number of answers that an entity has received.
#[derive(Component, Default)]
struct Answers(u64);

pub fn compare(table: &mut Table) {
    let per_turn = |units: usize| units / ANSWERS_PER_FRAME + 1;
    table.line(
        ("app_requests", REQUESTS, "bevy_timer"),
        None,
        |units| frames(requests(), per_turn(units), 1, answers),
        |units| frames(ticked(), per_turn(units), 1, answers),
    );
}

#[derive(Message)]
struct Question;

#[derive(Message)]
struct Answer;

/// This crate's requests.
fn requests() -> App {
    #[derive(Component, Default)]
    struct Clerk {
        open: VecDeque<ReplyTo>,
    }

    #[derive(Component)]
    struct AsksAt(Entity);

    fn receive(mut me: MessageContext, _: &Answer) {
        if let Some(mut answers) = me.entity.get_mut::<Answers>() {
            answers.0 += 1;
        }
        if let Some(&AsksAt(clerk)) = me.entity.get() {
            let mut asker = me.commands.entity(me.entity.id());
            asker.ask(clerk, Question, Timer::after(PATIENCE));
        }
    }

    let mut app = due_app();
    let keep = |mut me: MessageContext, _: &Question| {
        if let Some(reply_to) = me.reply_to().cloned()
            && let Some(mut clerk) = me.entity.get_mut::<Clerk>()
        {
            clerk.open.push_back(reply_to);
        }
    };
    let clerk = (Clerk::default(), MessageComponent::new().on(keep));
    let clerk = app.world_mut().spawn(clerk).id();
    let receive = MessageComponent::new().on(receive);
    for _ in 0..REQUESTS {
        let asker = (Answers(0), AsksAt(clerk), receive.clone());
        let asker = app.world_mut().spawn(asker).id();
        let mut commands = app.world_mut().commands();
        let mut asker = commands.entity(asker);
        asker.ask(clerk, Question, Timer::after(PATIENCE));
    }
    app.world_mut().flush();
    app.add_systems(
        Update,
        |mut clerk: Single<&mut Clerk>, mut commands: Commands| {
            let answered = ANSWERS_PER_FRAME.min(clerk.open.len());
            for reply_to in clerk.open.drain(..answered) {
                commands.reply(reply_to, Answer);
            }
        },
    );
    with_answers(app)
}

/// A system that ticks a timer on each entity that waits.
fn ticked() -> App {
    #[derive(Component)]
    struct Waits(bevy_time::Timer);

    #[derive(Resource, Default)]
    struct Clerk {
        open: VecDeque<Entity>,
    }

    #[derive(EntityEvent)]
    struct Answered(Entity);

    fn ask(asker: &mut EntityCommands, clerk: &mut Clerk) {
        let patience = bevy_time::Timer::from_seconds(PATIENCE, TimerMode::Once);
        asker.insert(Waits(patience));
        clerk.open.push_back(asker.id());
    }

    let mut app = app();
    app.init_resource::<Clerk>();
    app.add_systems(
        Startup,
        |mut commands: Commands, mut clerk: ResMut<Clerk>| {
            for _ in 0..REQUESTS {
                ask(&mut commands.spawn(Answers(0)), &mut clerk);
            }
        },
    );
    app.add_observer(
        |answered: On<Answered>,
         mut answers: Query<&mut Answers>,
         mut clerk: ResMut<Clerk>,
         mut commands: Commands| {
            if let Ok(mut answers) = answers.get_mut(answered.0) {
                answers.0 += 1;
            }
            let mut asker = commands.entity(answered.0);
            asker.remove::<Waits>();
            ask(&mut asker, &mut clerk);
        },
    );
    let give_up =
        |mut waiting: Query<(Entity, &mut Waits)>, time: Res<Time>, mut commands: Commands| {
            for (asker, mut waits) in &mut waiting {
                if waits.0.tick(time.delta()).just_finished() {
                    commands.entity(asker).remove::<Waits>();
                }
            }
        };
    let answer = |mut clerk: ResMut<Clerk>, mut commands: Commands| {
        let answered = ANSWERS_PER_FRAME.min(clerk.open.len());
        for asker in clerk.open.drain(..answered) {
            commands.trigger(Answered(asker));
        }
    };
    app.add_systems(Update, (give_up, answer).chain());
    with_answers(app)
}

/// Runs an app until answers arrive in each frame.
fn with_answers(app: App) -> App {
    let mut app = on_one_thread(app);
    while answers(&mut app) == 0 {
        app.update();
    }
    app
}

fn answers(app: &mut App) -> u64 {
    let mut answers = app.world_mut().query::<&Answers>();
    answers.iter(app.world()).map(|answers| answers.0).sum()
}
