//! The script: it is the same each time, and everything happens in it.

use std::{env, fs, process};

use tower_defense::{script, svg};

fn tell(name: &str) -> String {
    let file = env::temp_dir().join(format!("tower_defense_{name}_{}.ron", process::id()));
    let text = script::tell(file.clone()).unwrap();
    fs::remove_file(file).unwrap();
    text
}

/// Returns the part of the story after the next line with this text.
fn after<'a>(story: &'a str, line: &str) -> &'a str {
    let found = story.split_once(line);
    found
        .unwrap_or_else(|| panic!("no {line:?} in:\n{story}"))
        .1
}

#[test]
fn the_story_is_the_same_twice() {
    let story = tell("first");
    assert_eq!(story, tell("second"));
    assert!(story.lines().count() > 30);
}

#[test]
fn everything_happens_in_the_story() {
    let story = tell("events");
    let mut rest = story.as_str();
    for line in [
        "New tower: archer",
        "Wave 1 is coming",
        "A runner falls",
        "Wave 2 is coming",
        "Time stands still",
        "Time goes on",
        "New tower: bell",
        "A brute falls",
        "A warlock leads it",
        "You cast slow motion",
        "The game is saved",
        "The warlock is casting",
        "The curse strikes",
        "The game is loaded",
        "The warlock is casting",
        "You cast bolt",
        "The curse is interrupted",
        "The castle has",
    ] {
        rest = after(rest, line);
    }
}

#[test]
fn the_picture_is_small_and_well_formed() {
    let file = env::temp_dir().join(format!("tower_defense_svg_{}.ron", process::id()));
    let svg = svg::record(file.clone()).unwrap();
    fs::remove_file(file).unwrap();
    assert!(svg.len() < 150_000, "{} bytes", svg.len());
    for element in ["svg", "style", "g", "text"] {
        let (opened, closed) = (format!("<{element}"), format!("</{element}>"));
        let opened =
            svg.matches(&format!("{opened} ")).count() + svg.matches(&format!("{opened}>")).count();
        assert_eq!(opened, svg.matches(&closed).count(), "<{element}>");
    }
    assert!(svg.matches("<g class=\"f ").count() > 30);
    assert!(
        svg.contains(">casts</text>"),
        "the poster shows the cast bar"
    );
}
