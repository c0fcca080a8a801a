//! The page in Chromium. Without Chromium, the test says so and passes.

mod support;

use headless_chrome::Tab;
use serde_json::{Value, json};
use support::*;

/// Returns the value of a JavaScript expression.
#[track_caller]
fn value(tab: &Tab, expression: &str) -> Value {
    let result = tab.evaluate(expression, false).expect("it runs");
    result.value.unwrap_or_default()
}

#[track_caller]
fn wait_until(tab: &Tab, expression: &str) {
    wait_for(expression, || {
        (value(tab, expression) == true).then_some(())
    });
}

#[track_caller]
fn click(tab: &Tab, selector: &str) {
    let button = tab.find_element(selector).expect("a button");
    button.click().expect("it is in view");
}

#[test]
fn the_page_shows_the_game_and_pauses_a_clock() {
    let Some(browser) = browser() else {
        return;
    };
    let game = Game::start();
    let tab = browser.new_tab().expect("a tab");
    tab.navigate_to(&game.page).expect("the page");

    wait_until(&tab, "document.querySelectorAll('#clocks tr').length === 6");
    wait_until(&tab, "document.querySelectorAll('#timers tr').length >= 9");
    wait_until(
        &tab,
        "document.querySelectorAll('#cooldowns tr').length === 3",
    );
    wait_until(&tab, "document.querySelectorAll('#firings li').length > 2");
    wait_until(
        &tab,
        "document.querySelector('#timers-area').getAttribute('d').length > 500",
    );
    wait_until(
        &tab,
        "document.querySelector('#timers [data-name=summon] progress').value > 0.1",
    );
    wait_until(
        &tab,
        "/^frame \\d+, \\d+ timers armed$/.test(document.querySelector('#status').textContent)",
    );

    let [arena, menu] = ["arena", "menu"].map(|name| game.named(name));
    click(&tab, "#clocks [data-name=arena] .pause");
    wait_until(
        &tab,
        "document.querySelector('#clocks [data-name=arena] .pause').textContent === 'Resume'",
    );
    assert_eq!(game.component(arena, CLOCK)["paused"], json!(true));
    let shown = "document.querySelector('#clocks [data-name=arena] .now').textContent";
    wait_until(
        &tab,
        &format!("{shown} === '{:.2} s'", game.times([arena])[0]),
    );
    let before = value(&tab, shown);
    let bar = "document.querySelector('#timers [data-name=summon] progress').value";
    let progress = game.component(game.keyed("summon"), TIMER_STATUS);
    let waited = secs(&progress["elapsed"]) / secs(&progress["wait"]);
    wait_until(&tab, &format!("Math.abs({bar} - {waited}) < 1e-6"));
    let waited = value(&tab, bar);
    game.pass(menu, 0.5);
    assert_eq!(value(&tab, shown), before, "in the page");
    assert_eq!(value(&tab, bar), waited, "a timer below the arena");
    assert_eq!(
        value(
            &tab,
            "document.querySelector('#clocks [data-name=boss]').className"
        ),
        "stopped"
    );

    click(&tab, "#clocks [data-name=arena] .pause");
    wait_until(&tab, &format!("{shown} !== {before}"));
    assert_eq!(game.component(arena, CLOCK)["paused"], json!(false));

    click(&tab, "#clocks [data-name=village] .speed[value='4']");
    wait_until(
        &tab,
        "document.querySelector('#clocks [data-name=village] [value=\"4\"]').ariaPressed === 'true'",
    );
    assert_eq!(
        game.component(game.named("village"), CLOCK)["speed"],
        json!(4.0)
    );

    click(&tab, "#clocks [data-name=game] .pause");
    wait_until(
        &tab,
        "document.querySelector('#clocks [data-name=game]').className === 'stopped'",
    );
    wait_until(
        &tab,
        "document.querySelector('#clocks [data-name=menu]').className === ''",
    );
}
