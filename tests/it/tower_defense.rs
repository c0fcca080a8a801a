//! A tower defence, written as a new user would write it from the README and the docs: two stuns at
//! once, renewed poison, an interrupted cast with its message, a slow field, a pause menu and a
//! restart. Each test plays a scene of it.

use core::time::Duration;

use bevy_app::prelude::*;
use bevy_due::{
    ArmedTimers, CancelReason, Clocks, OnClock, OwnedTimerCancelled, Timer, TimerKey,
    clock::SpeedModifier, conditions::timer_fired, prelude::*,
};
use bevy_ecs::{prelude::*, system::RunSystemOnce};
use bevy_time::{Time, TimePlugin, TimeUpdateStrategy, Virtual};

const FRAME: Duration = Duration::from_millis(100);

/// Everything that belongs to a match, and goes with it.
#[derive(Component)]
struct Match;

#[derive(Component)]
struct Enemy {
    health: f32,
    walked: f32,
}

#[derive(Component)]
struct Boss;

#[derive(Component)]
struct Tower(Cooldown);

#[derive(Component)]
struct Invincible;

/// The text beside a cast bar.
#[derive(Component)]
struct CastBar(&'static str);

#[derive(Component)]
struct Waves;

/// The keys of the game.
#[derive(Component)]
struct Poison;
#[derive(Component)]
struct Attack;
#[derive(Component)]
struct Cast;

impl TimerKey for Poison {
    const NAME: &'static str = "poison";
}

impl TimerKey for Attack {
    const NAME: &'static str = "attack";
}

impl TimerKey for Cast {
    const NAME: &'static str = "cast";
}

/// The lines that the game shows, each with the tenth of a second of game time.
#[derive(Resource, Default)]
struct Log(Vec<(u128, String)>);

#[derive(Resource, Default)]
struct Attacks(Vec<f32>);

#[derive(Resource, Default)]
struct Blinks(u32);

fn game() -> App {
    let mut app = App::new();
    app.add_plugins((TimePlugin, DuePlugin::default()))
        .insert_resource(TimeUpdateStrategy::ManualDuration(FRAME))
        .init_resource::<Log>()
        .init_resource::<Attacks>()
        .init_resource::<Blinks>()
        .add_systems(Update, spawn_wave.run_if(timer_fired::<Waves>))
        .add_observer(poison_ticks)
        .add_observer(attack);
    app.update(); // Bevy's first frame takes no time.
    app
}

fn seconds(app: &mut App, secs: f32) {
    for _ in 0..(secs * 10.0).round() as u32 {
        app.update();
    }
}

fn spawn_enemy(world: &mut World) -> Entity {
    let walk = UpdateComponent::new(|mut me| {
        let step = me.delta.as_secs_f32();
        if let Some(mut enemy) = me.entity.get_mut::<Enemy>() {
            enemy.walked += step;
        }
    });
    let enemy = Enemy {
        health: 100.0,
        walked: 0.0,
    };
    // An enemy has a clock of its own, so that something can slow it down.
    let mut enemy = world.spawn((Match, enemy, Clock::new(), walk));
    enemy.observe(interrupted);
    let enemy = enemy.id();
    let mut commands = world.commands();
    commands.entity(enemy).set_timer(Attack, Timer::every(1.0));
    world.flush();
    enemy
}

fn poison_ticks(
    fired: On<TimerFired>,
    poisons: Query<(), With<Poison>>,
    mut enemies: Query<&mut Enemy>,
) {
    if poisons.contains(fired.entity())
        && let Ok(mut enemy) = enemies.get_mut(fired.owner())
    {
        enemy.health -= 5.0;
    }
}

fn attack(fired: On<TimerFired>, clocks: Clocks, mut attacks: ResMut<Attacks>) -> Result {
    if fired.has_key(Attack) {
        let now = clocks.now(ClockId::Virtual)?;
        attacks.0.push((now.as_secs_f32() * 10.0).round() / 10.0);
    }
    Ok(())
}

fn interrupted(
    cancelled: On<OwnedTimerCancelled>,
    bars: Query<&CastBar>,
    time: Res<Time<Virtual>>,
    mut log: ResMut<Log>,
) -> Result {
    if cancelled.has_key(Cast) && cancelled.reason() == CancelReason::Cancelled {
        let CastBar(spell) = bars.get(cancelled.entity())?;
        let tenths = time.elapsed().as_millis() / 100;
        log.0.push((tenths, format!("{spell} is interrupted")));
    }
    Ok(())
}

fn spawn_wave(mut commands: Commands) {
    commands.queue(|world: &mut World| {
        spawn_enemy(world);
    });
}

fn attacks(app: &mut App) -> Vec<f32> {
    core::mem::take(&mut app.world_mut().resource_mut::<Attacks>().0)
}

fn enemy(app: &App, entity: Entity) -> &Enemy {
    app.world().get(entity).expect("the enemy lives")
}

fn commands(app: &mut App, run: impl FnOnce(Commands)) {
    run(app.world_mut().commands());
    app.world_mut().flush();
}

#[test]
fn two_stuns_end_when_both_are_over() {
    let mut app = game();
    let monster = spawn_enemy(app.world_mut());
    seconds(&mut app, 1.5);
    assert_eq!(attacks(&mut app), [1.0]);
    commands(&mut app, |mut commands| {
        commands.entity(monster).pause_for(2.0);
    });
    seconds(&mut app, 0.5);
    commands(&mut app, |mut commands| {
        // A shorter stun does not end the longer one, and clearing all timers ends neither.
        commands.entity(monster).pause_for(0.5).cancel_timers();
        let attack = Timer::every(1.0);
        commands.entity(monster).set_timer(Attack, attack);
    });
    let walked = enemy(&app, monster).walked;
    seconds(&mut app, 1.4);
    assert_eq!(enemy(&app, monster).walked, walked, "it stands still");
    assert_eq!(attacks(&mut app), [] as [f32; 0]);
    // The first stun ends at 3.5 s, a second before the next attack.
    seconds(&mut app, 1.2);
    assert!(enemy(&app, monster).walked > walked);
    assert_eq!(attacks(&mut app), [4.5]);
}

#[test]
fn renewed_poison_keeps_ticking_and_lasts_longer() {
    let mut app = game();
    let monster = spawn_enemy(app.world_mut());
    let poison = || Timer::every(0.5).times(4);
    // Hit every 0.4 s: a timer that starts over each time would never tick.
    for _ in 0..5 {
        commands(&mut app, |mut commands| {
            commands.entity(monster).refresh_timer(Poison, poison());
        });
        seconds(&mut app, 0.4);
    }
    assert_eq!(
        enemy(&app, monster).health,
        80.0,
        "at 0.5, 1.0, 1.5 and 2.0 s"
    );
    let left = app
        .world_mut()
        .with_timers(|timers| timers.keyed(monster, Poison)?.total_remaining());
    assert_eq!(left, Some(Duration::from_millis(1500)));
    seconds(&mut app, 3.0);
    assert_eq!(
        enemy(&app, monster).health,
        65.0,
        "the last hit was at 1.6 s"
    );
    let poisoned = |timers: ArmedTimers| timers.keyed(monster, Poison).is_some();
    assert!(!app.world_mut().with_timers(poisoned));
}

#[test]
fn an_interrupted_cast_says_what_was_interrupted() {
    let mut app = game();
    let boss = spawn_enemy(app.world_mut());
    app.world_mut().entity_mut(boss).insert(Boss);
    commands(&mut app, |mut commands| {
        let meteor = (Timer::after(3.0), CastBar("Meteor"));
        commands.entity(boss).set_timer(Cast, meteor);
    });
    seconds(&mut app, 1.5);
    let bar = app
        .world_mut()
        .with_timers(|timers| timers.keyed(boss, Cast).map(|cast| cast.fraction()));
    assert_eq!(bar, Some(0.5));
    commands(&mut app, |mut commands| {
        commands.entity(boss).cancel_timer(Cast);
    });
    let log = &app.world().resource::<Log>().0;
    assert_eq!(log[..], [(15, "Meteor is interrupted".into())]);
    seconds(&mut app, 3.0);
    assert_eq!(app.world().resource::<Log>().0.len(), 1);
}

#[test]
fn slow_fields_multiply_and_end_on_game_time() {
    let mut app = game();
    let monster = spawn_enemy(app.world_mut());
    for _ in 0..2 {
        // Two fields overlap: a quarter of the speed.
        let slow = SpeedModifier::new(monster, 0.5);
        app.world_mut().spawn((slow, DespawnAfter::new(2.0)));
    }
    app.world_mut().flush();
    seconds(&mut app, 2.0);
    let walked = enemy(&app, monster).walked;
    assert!(
        (0.45..0.56).contains(&walked),
        "walked {walked} in two seconds"
    );
    assert_eq!(
        attacks(&mut app),
        [] as [f32; 0],
        "half a second has passed for it"
    );
    seconds(&mut app, 1.0);
    assert_eq!(attacks(&mut app), [2.5]);
    let walked = enemy(&app, monster).walked - walked;
    assert!(
        (0.9..1.1).contains(&walked),
        "walked {walked} at full speed"
    );
}

#[test]
fn a_pause_menu_stops_the_game_and_not_the_cursor() {
    let mut app = game();
    let monster = spawn_enemy(app.world_mut());
    app.world_mut()
        .spawn(Timer::every(0.5).on(ClockId::Real))
        .observe(|_: On<TimerFired>, mut blinks: ResMut<Blinks>| blinks.0 += 1);
    seconds(&mut app, 0.5);
    app.world_mut().resource_mut::<Time<Virtual>>().pause();
    seconds(&mut app, 2.0);
    assert_eq!(attacks(&mut app), [] as [f32; 0]);
    assert_eq!(
        app.world().resource::<Blinks>().0,
        5,
        "the cursor blinks on"
    );
    app.world_mut().resource_mut::<Time<Virtual>>().unpause();
    seconds(&mut app, 0.6);
    assert_eq!(attacks(&mut app), [1.0], "half a second was left");
    assert!(enemy(&app, monster).walked < 1.2);
}

#[test]
fn towers_fire_charges_and_can_be_upgraded_with_seconds_from_data() {
    const RELOAD: f32 = 0.4;
    let mut app = game();
    let cooldown = Cooldown::new(RELOAD).with_charges(2);
    let tower = app.world_mut().spawn((Match, Tower(cooldown))).id();
    let shots = |mut towers: Query<&mut Tower>, clocks: Clocks| {
        let now = clocks.now(ClockId::Virtual).unwrap();
        towers
            .iter_mut()
            .filter_map(|mut tower| tower.0.try_use(now).then_some(()))
            .count()
    };
    let mut fired = 0;
    for _ in 0..9 {
        fired += app.world_mut().run_system_once(shots).unwrap();
        app.update();
    }
    assert_eq!(fired, 4, "two charges at once, then one every 0.4 s");
    let mut tower = app.world_mut().get_mut::<Tower>(tower).unwrap();
    tower.0.reset();
    assert!(tower.0.max_charges() == 2);
}

#[test]
fn a_hero_is_invincible_for_a_while() {
    let mut app = game();
    let hero = app.world_mut().spawn(Match).id();
    commands(&mut app, |mut commands| {
        commands.entity(hero).insert_for(1.0, Invincible);
        // The later end counts.
        commands.entity(hero).insert_for(0.5, Invincible);
    });
    seconds(&mut app, 0.9);
    assert!(app.world().get::<Invincible>(hero).is_some());
    seconds(&mut app, 0.2);
    assert!(app.world().get::<Invincible>(hero).is_none());
}

#[test]
fn a_restart_leaves_nothing_of_the_match_behind() {
    let mut app = game();
    app.world_mut()
        .spawn((Match, Waves, Timer::every(2.0).immediately()));
    seconds(&mut app, 4.5);
    let count = |world: &mut World| {
        let mut enemies = world.query_filtered::<(), With<Enemy>>();
        enemies.iter(world).count()
    };
    assert_eq!(count(app.world_mut()), 3, "waves at 0, 2 and 4 s");
    attacks(&mut app);

    // "Despawn all of the match": the clocks of the game itself survive.
    let world = app.world_mut();
    let mut of_match = world.query_filtered::<Entity, With<Match>>();
    let of_match: Vec<Entity> = of_match.iter(world).collect();
    for entity in of_match {
        world.try_despawn(entity).ok();
    }
    world.flush();
    assert_eq!(app.world_mut().with_timers(|timers| timers.count()), 0);
    seconds(&mut app, 3.0);
    assert_eq!(attacks(&mut app), [] as [f32; 0]);

    let monster = spawn_enemy(app.world_mut());
    app.world_mut()
        .entity_mut(monster)
        .insert(OnClock::new(ClockId::Virtual));
    seconds(&mut app, 1.1);
    assert_eq!(attacks(&mut app).len(), 1, "the new match runs");
}
