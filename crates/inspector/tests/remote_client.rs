//! A plain client of `bevy_remote` looks into the game and changes it.

mod support;

use serde_json::{Value, json};
use support::*;

#[test]
fn a_client_sees_timers_with_their_remaining_time() {
    let game = Game::start();
    let autosave = game.keyed("autosave");
    let progress = game.component(autosave, TIMER_STATUS);
    assert_eq!(secs(&progress["wait"]), 30.0);
    assert_eq!(progress["clock"]["Own"], game.named("menu"));
    assert_eq!(
        (&progress["count"], &progress["left"]),
        (&json!(0), &Value::Null)
    );
    let first = secs(&progress["remaining"]);
    game.pass(game.named("menu"), 0.1);
    assert!(game.remaining(autosave) < first - 0.1);

    let timers = game.query(&[TIMER_STATUS, KEY, OWNER], &[NAME]);
    assert!(timers.len() >= 9, "{timers:?}");
    let swing = timers.iter().find(|(_, row)| row[KEY] == "swing");
    assert_eq!(
        swing.expect("a timer of the boss").1[OWNER],
        game.named("boss")
    );
    for (_, row) in &timers {
        let progress = &row[TIMER_STATUS];
        let [remaining, elapsed, wait] =
            ["remaining", "elapsed", "wait"].map(|name| secs(&progress[name]));
        assert!(
            remaining <= wait && (remaining + elapsed - wait).abs() < 1e-6,
            "{row}"
        );
    }
}

#[test]
fn a_client_sees_cooldowns_with_their_remaining_time() {
    let game = Game::start();
    let dash = game.named("dash");
    let duration = secs(&game.component(dash, COOLDOWN)["duration"]);
    let arena = game.named("arena");
    let progress = wait_for("the hero uses an ability", || {
        let progress = game.component(dash, TIMER_STATUS);
        (secs(&progress["remaining"]) > 0.0).then_some(progress)
    });
    assert_eq!(progress["clock"]["Own"], arena);
    assert_eq!(secs(&progress["wait"]), duration);
    let charges = progress["count"].as_u64().zip(progress["left"].as_u64());
    assert_eq!(charges.map(|(there, missing)| there + missing), Some(2));
    game.set_clock(arena, "paused", json!(true));
    let held = game.remaining(dash);
    game.pass(game.named("menu"), 0.2);
    assert_eq!(
        game.remaining(dash),
        held,
        "it runs on the clock of the arena"
    );
}

#[test]
fn a_paused_clock_holds_its_timers_until_it_resumes() {
    let game = Game::start();
    let [arena, menu] = ["arena", "menu"].map(|name| game.named(name));
    let [summon, autosave] = ["summon", "autosave"].map(|key| game.keyed(key));
    game.set_clock(arena, "paused", json!(true));
    assert_eq!(game.component(arena, CLOCK)["paused"], json!(true));
    let [shown] = game.times([arena]);
    let before = [summon, autosave].map(|timer| game.remaining(timer));
    game.pass(menu, 0.3);
    assert_eq!(game.times([arena]), [shown]);
    let after = [summon, autosave].map(|timer| game.remaining(timer));
    assert_eq!(
        after[0], before[0],
        "the boss is on a clock below the arena"
    );
    assert!(after[1] < before[1] - 0.3, "the menu goes on");

    game.set_clock(arena, "paused", json!(false));
    game.pass(arena, 0.1);
    assert!(game.remaining(summon) < before[0]);
}

#[test]
fn a_client_sets_the_speed_of_a_clock() {
    let game = Game::start();
    let clocks = ["arena", "village"].map(|name| game.named(name));
    game.set_clock(clocks[1], "speed", json!(4.0));
    game.pass(clocks[0], 0.05);
    let before = game.times(clocks);
    game.pass(clocks[0], 0.2);
    let after = game.times(clocks);
    let passed = [after[0] - before[0], after[1] - before[1]];
    assert!((passed[1] / passed[0] - 4.0).abs() < 1e-6, "{passed:?}");
}

#[test]
fn a_client_pauses_a_timer() {
    let game = Game::start();
    let autosave = game.keyed("autosave");
    let paused = json!({ "entity": autosave, "components": { PAUSED: {} } });
    game.call("world.insert_components", paused);
    game.pass(game.named("menu"), 0.05);
    assert_eq!(
        game.component(autosave, TIMER_STATUS)["paused"],
        json!(true)
    );
    let held = game.remaining(autosave);
    game.pass(game.named("menu"), 0.2);
    assert_eq!(game.remaining(autosave), held);
}

#[test]
fn a_client_sees_the_last_firings_and_the_cost_of_each_frame() {
    let game = Game::start();
    let resource =
        |name: &str| game.call("world.get_resources", json!({ "resource": name }))["value"].take();
    let number = |value: &Value| value.as_f64().expect("a number");
    let blinks = wait_for("the menu blinks twice", || {
        let firings = resource("inspector::LastFirings")["firings"].take();
        let newest_first = firings.as_array().expect("a list").iter();
        let blinks = newest_first.rev().filter(|it| it["timer"] == "blink");
        let blinks: Vec<Value> = blinks.cloned().collect();
        (blinks.len() >= 2).then_some(blinks)
    });
    for (nth, blink) in blinks.iter().enumerate() {
        assert_eq!(blink["count"], nth + 1);
        assert_eq!(secs(&blink["deadline"]), 0.5 * (nth + 1) as f64);
        assert_eq!(
            (&blink["owner"], &blink["clock"]),
            (&json!("menu"), &json!("menu"))
        );
    }

    let costs = resource("inspector::FrameCosts");
    let frames = costs["frames"].as_array().expect("a list");
    let kept = costs["total"].as_u64().map(|total| total.min(240));
    assert_eq!(kept, Some(frames.len() as u64), "four seconds are kept");
    assert!(
        frames
            .iter()
            .all(|it| number(&it["timers"]) <= number(&it["all"]))
    );
    assert!(frames.iter().any(|it| number(&it["timers"]) > 0.0));
    let fired: f64 = frames.iter().map(|it| number(&it["fired"])).sum();
    assert!(fired >= 2.0, "{fired}");
}
