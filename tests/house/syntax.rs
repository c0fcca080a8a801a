//! As much of the syntax of Rust as the checks need.

/// An item of a module.
pub(crate) struct Item<'a> {
    attributes: &'a [&'a str],
    /// The tokens after the attributes.
    pub(crate) tokens: &'a [&'a str],
}

impl Item<'_> {
    /// Returns `true` for an inline module under `#[cfg(test)]`.
    pub(crate) fn is_test_module(&self) -> bool {
        let is_test = ["#", "[", "cfg", "(", "test", ")", "]"];
        self.attributes == is_test && matches!(self.tokens, ["mod", _, "{", ..])
    }

    /// Returns `true` if the item needs a feature other than `std`, which counts as enabled.
    pub(crate) fn is_optional(&self) -> bool {
        self.attributes
            .windows(3)
            .any(|window| window[..2] == ["feature", "="] && window[2] != "\"std\"")
    }
}

/// Splits the tokens of a module into items.
pub(crate) fn items<'a>(mut tokens: &'a [&'a str]) -> Vec<Item<'a>> {
    let mut items = Vec::new();
    while !tokens.is_empty() {
        let mut attributes = 0;
        while tokens[attributes..].first() == Some(&"#") {
            attributes += end_of_group(&tokens[attributes..], &["]"]);
        }
        let (attributes, rest) = tokens.split_at(attributes);
        let (item, rest) = rest.split_at(end_of_group(rest, &[";", "}"]));
        items.push(Item {
            attributes,
            tokens: item,
        });
        tokens = rest;
    }
    items
}

/// Returns the position after the first of the `ends` that is not inside brackets.
fn end_of_group(tokens: &[&str], ends: &[&str]) -> usize {
    let mut depth = 0;
    for (position, token) in tokens.iter().enumerate() {
        match *token {
            "{" | "(" | "[" => depth += 1,
            "}" | ")" | "]" => depth -= 1,
            _ => {}
        }
        if depth == 0 && ends.contains(token) {
            return position + 1;
        }
    }
    tokens.len()
}

/// Reads the tree of a `use` declaration from the start of `tokens`, and returns the path and the
/// name of each import.
pub(crate) fn use_tree(tokens: &mut &[&str]) -> Vec<(Vec<String>, String)> {
    fn read(tokens: &mut &[&str], mut path: Vec<String>, imports: &mut Vec<(Vec<String>, String)>) {
        while let [token, rest @ ..] = *tokens {
            *tokens = rest;
            match *token {
                "::" => {}
                "{" => {
                    while !matches!(*tokens, [] | ["}", ..]) {
                        read(tokens, path.clone(), imports);
                        *tokens = tokens.strip_prefix(&[","]).unwrap_or(tokens);
                    }
                    *tokens = tokens.get(1..).unwrap_or_default();
                    return;
                }
                name => path.push(name.to_owned()),
            }
            if let ["as", name, rest @ ..] = *tokens {
                *tokens = rest;
                return imports.push((path, (*name).to_owned()));
            }
            if matches!(*tokens, [] | ["," | "}" | ";", ..]) {
                path.pop_if(|name| name == "self");
                let name = path.last().cloned().unwrap_or_default();
                return imports.push((path, name));
            }
        }
    }
    let mut imports = Vec::new();
    read(tokens, Vec::new(), &mut imports);
    imports
}

/// Splits source text into words, strings, `::` and single characters, without comments.
pub(crate) fn tokens(text: &str) -> Vec<&str> {
    let mut tokens = Vec::new();
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let is_word = |c: char| c.is_alphanumeric() || c == '_';
        let is_comment = rest.starts_with("//");
        let len = if is_comment {
            rest.find('\n').unwrap_or(rest.len())
        } else if first == '"' {
            string_len(rest)
        } else if first == '\'' {
            char_len(rest)
        } else if rest.starts_with("::") {
            2
        } else {
            let word = rest.find(|c| !is_word(c)).unwrap_or(rest.len());
            word.max(first.len_utf8())
        };
        let (token, tail) = rest.split_at(len);
        if !is_comment && !first.is_whitespace() {
            tokens.push(token);
        }
        rest = tail;
    }
    tokens
}

/// Returns the length of the string literal at the start of `text`.
fn string_len(text: &str) -> usize {
    let mut is_escaped = true;
    for (position, c) in text.char_indices() {
        if c == '"' && !is_escaped {
            return position + 1;
        }
        is_escaped = position == 0 || c == '\\' && !is_escaped;
    }
    text.len()
}

/// Returns the length of the character literal at the start of `text`, or 1 for a lifetime.
fn char_len(text: &str) -> usize {
    let mut chars = text.char_indices().skip(1);
    let (_, first) = chars.next().unwrap_or_default();
    if first == '\\' {
        chars.next();
        return chars
            .find(|(_, c)| *c == '\'')
            .map_or(1, |(end, _)| end + 1);
    }
    match chars.next() {
        Some((end, '\'')) => end + 1,
        _ => 1,
    }
}
