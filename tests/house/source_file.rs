//! The names that a source file defines and imports.

use std::collections::BTreeSet;

use super::syntax::{items, tokens, use_tree};

/// The path of a module from the root of the crate. The path of `lib.rs` is empty.
pub(crate) type ModulePath = Vec<String>;

/// What one file defines and imports.
pub(crate) struct SourceFile {
    pub(crate) name: String,
    pub(crate) defines: BTreeSet<String>,
    pub(crate) imports: Vec<Import>,
}

/// The import of one name.
pub(crate) struct Import {
    /// The path as written, or from the root of the crate once the file is part of a tree.
    pub(crate) path: ModulePath,
    /// The name in the importing file. It differs from the end of the path after `as`.
    name: String,
    pub(crate) is_reexport: bool,
}

impl SourceFile {
    pub(crate) fn parse(name: String, text: &str) -> Self {
        let mut file = Self {
            name,
            defines: BTreeSet::new(),
            imports: Vec::new(),
        };
        let tokens = tokens(text);
        for item in items(&tokens).iter().filter(|item| !item.is_test_module()) {
            file.parse_item(item.tokens);
        }
        file
    }

    /// Collects what an item defines and imports, also inside its body.
    fn parse_item(&mut self, tokens: &[&str]) {
        const KEYWORDS: [&str; 9] = [
            "struct",
            "enum",
            "trait",
            "fn",
            "const",
            "static",
            "type",
            "union",
            "macro_rules",
        ];
        let mut previous = "";
        let mut rest = tokens;
        while let [token, tail @ ..] = rest {
            rest = tail;
            match (*token, tail) {
                ("use", [next, ..]) if *next != "<" => {
                    // The `)` ends `pub(crate)`.
                    let is_reexport = matches!(previous, "pub" | ")");
                    for (path, name) in use_tree(&mut rest) {
                        self.imports.push(Import {
                            path,
                            name,
                            is_reexport,
                        });
                    }
                }
                ("crate", ["::", next, ..]) if *next != "{" => {
                    let mut path = vec!["crate".to_owned()];
                    while let ["::", name, tail @ ..] = rest {
                        path.push((*name).to_owned());
                        rest = tail;
                    }
                    self.imports.push(Import {
                        path,
                        name: String::new(),
                        is_reexport: false,
                    });
                }
                (keyword, ["!", name, ..] | [name, ..]) if KEYWORDS.contains(&keyword) => {
                    self.defines.insert((*name).to_owned());
                }
                _ => {}
            }
            previous = token;
        }
    }

    pub(crate) fn import_as(&self, name: &str) -> Option<&Import> {
        self.imports.iter().rfind(|import| import.name == name)
    }
}
