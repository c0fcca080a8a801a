//! The house rules: imports between the source files have no cycles and go one way, and the crate
//! exports few names.
//!
//! The checks read `src` as text. They see `use` declarations and paths that start with `crate::`,
//! and follow re-exports to the file that defines a name. They skip test modules.

#![allow(missing_docs, reason = "test code")]

#[path = "house/exports.rs"]
mod exports;
#[path = "house/imports.rs"]
mod imports;
#[path = "house/source_file.rs"]
mod source_file;
#[path = "house/syntax.rs"]
mod syntax;

use std::{fs, path::Path};

use exports::Exports;
use imports::SourceTree;

/// The top-level modules, from top to bottom. A module may import from its own line and from the
/// lines below it.
const LAYERS: [&[&str]; 15] = [
    // Pages without code.
    &["coming_from", "cookbook", "guide"],
    &["diagnostic"],
    &["plugin"],
    &["ext"],
    &["conditions"],
    &["moving", "link"],
    &["worlds"],
    &["save", "rollback"],
    &["message"],
    &["update"],
    &["timer"],
    &[
        "pause",
        "owner",
        "call",
        "missing_plugin",
        "roster",
        "seat",
        "sync",
        "system_pool",
        "transit",
        "double_buffer",
    ],
    &["clock"],
    &["queue", "shown_fields"],
    &["journal"],
];

/// Three of them are pages without items.
const MAX_EXPORTS: usize = 66;
const MAX_PRELUDE: usize = 19;

#[test]
fn imports_have_no_cycles() {
    let cycles = SourceTree::of_this_crate().cycles();
    assert!(
        cycles.is_empty(),
        "{} cycles of imports:\n{}\nMove the shared items to a file below, which all files of \
         the cycle can import.",
        cycles.len(),
        cycles.join("\n")
    );
}

#[test]
fn imports_go_down_the_list_of_modules() {
    let wrong = SourceTree::of_this_crate().imports_against(&LAYERS);
    assert!(
        wrong.is_empty(),
        "{} imports go up the list, or have no place in it:\n{}\nMove the imported item down, or \
         pass it in from above. Add a new module to `LAYERS`.",
        wrong.len(),
        wrong.join("\n")
    );
}

#[test]
fn the_crate_exports_few_names() {
    let exports = Exports::of(&read_file("lib.rs"));
    for (place, names, max) in [
        ("the root of the crate", exports.root, MAX_EXPORTS),
        ("the prelude", exports.prelude, MAX_PRELUDE),
    ] {
        assert!(
            !names.contains(&"*".to_owned()),
            "{place} exports a `*`: list the names"
        );
        assert!(
            names.len() <= max,
            "{place} exports {} names, at most {max} are allowed: {}\nRemove a name, make it \
             private, or put it behind a feature.",
            names.len(),
            names.join(", ")
        );
    }
}

/// Reads a file of this crate, named relative to `src`.
fn read_file(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("src").join(name);
    fs::read_to_string(path).expect("the file should be readable")
}
