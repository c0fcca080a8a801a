//! The names that a crate exports.

use super::syntax::{Item, items, tokens, use_tree};

/// The names that `lib.rs` exports without optional features.
pub(crate) struct Exports {
    pub(crate) root: Vec<String>,
    pub(crate) prelude: Vec<String>,
}

impl Exports {
    pub(crate) fn of(lib: &str) -> Self {
        let tokens = tokens(lib);
        let items = items(&tokens);
        let is_prelude = |item: &&Item| item.tokens.starts_with(&["pub", "mod", "prelude", "{"]);
        let prelude = items.iter().find(is_prelude);
        let prelude = prelude.expect("`lib.rs` should have an inline module `prelude`");
        let in_prelude = self::items(&prelude.tokens[4..prelude.tokens.len() - 1]);
        Self {
            root: public_names(&items),
            prelude: public_names(&in_prelude),
        }
    }
}

fn public_names(items: &[Item]) -> Vec<String> {
    let items = items.iter().filter(|item| !item.is_optional());
    items
        .flat_map(|item| match item.tokens {
            ["pub", "use", tree @ ..] => {
                let names = use_tree(&mut { tree }).into_iter().map(|(_, name)| name);
                names.collect()
            }
            ["pub", "(", ..] => vec![],
            ["pub", _, name, ..] => vec![(*name).to_owned()],
            _ => vec![],
        })
        .collect()
}

mod cases {
    use super::*;

    #[test]
    fn exports_of_optional_features_do_not_count() {
        let exports = Exports::of(
            r#"
            #![no_std]
            mod a;
            pub mod queue;
            #[cfg(feature = "std")]
            pub use a::{A, b::{B, C as D}};
            #[cfg(feature = "worlds")]
            pub use worlds::World;
            pub(crate) use a::E;
            pub use a::F;
            pub mod prelude {
                pub use crate::{A, F};
                #[cfg(feature = "worlds")]
                pub use crate::World;
            }
            "#,
        );
        assert_eq!(exports.root, ["queue", "A", "B", "D", "F", "prelude"]);
        assert_eq!(exports.prelude, ["A", "F"]);
    }
}
