//! Actions in RON, JSON and postcard: the same action comes back, with its data.

use core::fmt;

use bevy_due::TimerAction;
use serde::{Serialize, de::DeserializeOwned};

/// Saves and loads a value in each format.
fn in_each_format<T: Serialize + DeserializeOwned>(value: &T) -> [(&'static str, T); 3] {
    let ron = ron::to_string(value).expect("RON should save it");
    let json = serde_json::to_string(value).expect("JSON should save it");
    let postcard = postcard::to_allocvec(value).expect("postcard should save it");
    [
        ("RON", ron::from_str(&ron).expect(&ron)),
        ("JSON", serde_json::from_str(&json).expect(&json)),
        (
            "postcard",
            postcard::from_bytes(&postcard).expect("postcard should load it"),
        ),
    ]
}

fn text(value: &impl fmt::Debug) -> String {
    format!("{value:?}")
}

#[test]
fn an_action_that_is_data_comes_back_from_each_format() {
    let every_byte: Vec<u8> = (0..=255).collect();
    for action in [
        TimerAction::default(),
        TimerAction::despawn(),
        TimerAction::despawn_owner(),
        TimerAction::named("explode"),
        TimerAction::named_with("", [0]),
        TimerAction::named_with("a \"name\"\nof two lines", every_byte),
    ] {
        for (format, loaded) in in_each_format(&action) {
            assert_eq!(text(&loaded), text(&action), "{format}");
            assert_eq!(loaded.data(), action.data(), "{format}");
        }
    }
}

#[test]
fn an_action_in_the_middle_of_other_data_leaves_the_rest_intact() {
    let actions = [
        TimerAction::named_with("first", [1, 2, 3]),
        TimerAction::despawn(),
        TimerAction::named("last"),
    ];
    for (format, loaded) in in_each_format(&(7_u8, actions.clone(), 9_u8)) {
        assert_eq!(text(&loaded), text(&(7, &actions, 9)), "{format}");
    }
}

#[test]
fn postcard_adds_no_more_than_a_few_bytes_to_the_name_and_the_data() {
    let action = TimerAction::named_with("explode", [7; 100]);
    let bytes = postcard::to_allocvec(&action).unwrap();
    assert_eq!(
        bytes.len(),
        3 + "explode".len() + 100,
        "a tag and two lengths"
    );
}

#[test]
fn damaged_actions_are_errors() {
    let saved = postcard::to_allocvec(&TimerAction::named_with("explode", [1, 2])).unwrap();
    for len in 0..saved.len() {
        let loaded = postcard::from_bytes::<TimerAction>(&saved[..len]);
        assert!(
            loaded.is_err(),
            "{len} bytes of {}: {loaded:?}",
            saved.len()
        );
    }
    for json in [
        r#"{"Named":{"name":"explode"}}"#,
        r#"{"Named":{"name":"explode","data":[256]}}"#,
        r#"{"Named":{"data":[1]}}"#,
        r#""Explode""#,
    ] {
        assert!(serde_json::from_str::<TimerAction>(json).is_err(), "{json}");
    }
}
