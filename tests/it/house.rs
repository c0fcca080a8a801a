//! The house rules: imports between the folders of `src` go down one list, the crate exports few names,
//! `DESIGN.md` names what exists, and every file of tests is compiled.
//!
//! The files are read with `syn`. Inside a folder, files may know each other. Test modules are skipped.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::{Path, PathBuf},
};

use syn::{
    Attribute, Ident, Item, ItemMod, ItemUse, UseTree, Visibility,
    visit::{self, Visit},
};

/// The modules at the top of `src`. A module may import from its own line and from the lines below.
const LAYERS: [&[&str]; 14] = [
    // Pages without code.
    &["guide"],
    &["diagnostic"],
    &["conditions"],
    &["plugin"],
    &["ext"],
    &["state"],
    &["worlds"],
    &["message"],
    &["update"],
    &["timer"],
    &[
        "call",
        "missing_plugin",
        "roster",
        "seat",
        "sync",
        "systems",
        "recent_peak",
    ],
    &["clock"],
    &["queue"],
    &["copies", "journal", "report", "seconds"],
];

const MAX_EXPORTS: usize = 40;
const MAX_PRELUDE: usize = 20;

#[test]
fn imports_go_down_the_list_of_modules() {
    let exports = Exports::of(&parse("src/lib.rs"));
    let mut wrong = Vec::new();
    for (module, file) in files("src") {
        let mut imports = Imports::new(&exports, &file);
        imports.visit_file(&parse(&file));
        wrong.extend(imports.found.iter().filter_map(|imported| {
            let (from, to) = (layer(&module), layer(imported));
            (module != *imported && from > to).then(|| format!("{file}: crate::{imported}"))
        }));
    }
    assert!(
        wrong.is_empty(),
        "{} imports go up the list:\n{}\nMove the imported item down, or pass it in from above.",
        wrong.len(),
        wrong.join("\n")
    );
}

#[test]
fn imports_in_the_packages_form_no_circle() {
    for package in ["nats", "ownership", "zenoh"] {
        let src = format!("crates/{package}/src");
        let exports = Exports::of(&parse(&format!("{src}/lib.rs")));
        let mut imports: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
        for (module, file) in files(&src) {
            let mut of_file = Imports::new(&exports, &file[src.len() + 1 - "src/".len()..]);
            of_file.visit_file(&parse(&file));
            of_file.found.remove(&module);
            imports.entry(module).or_default().extend(of_file.found);
        }
        loop {
            let all: BTreeSet<_> = imports.keys().cloned().collect();
            imports.retain(|_, imported| !imported.is_disjoint(&all));
            if imports.len() == all.len() {
                break;
            }
        }
        assert!(
            imports.is_empty(),
            "modules of `{src}` import each other in a circle, or import those that do: {imports:#?}"
        );
    }
}

#[test]
fn the_crate_exports_few_names() {
    let exports = Exports::of(&parse("src/lib.rs"));
    for (place, names, max) in [
        ("the root of the crate", &exports.root, MAX_EXPORTS),
        ("the prelude", &exports.prelude, MAX_PRELUDE),
    ] {
        let names: Vec<_> = names.keys().cloned().collect();
        assert!(
            names.len() <= max,
            "{place} exports {} names, at most {max} are allowed: {}\nRemove a name, or move it \
             to the module of its subject.",
            names.len(),
            names.join(", ")
        );
    }
}

#[test]
fn the_design_names_what_exists() {
    let design = read("DESIGN.md");
    let sources: String = files("src").iter().map(|(_, file)| read(file)).collect();
    let words: BTreeSet<&str> = sources
        .split(|c: char| !c.is_alphanumeric() && c != '_')
        .collect();
    // Every other part stands between two backticks.
    let wrong = design.split('`').skip(1).step_by(2).filter(|code| {
        let is_file = code.ends_with(".rs") && code.contains('/');
        let names: Vec<&str> = code.split("::").collect();
        let is_path = names.len() == 2 && names.iter().all(|name| is_name(name));
        let exists = |name: &&str| words.contains(name);
        is_file && !path(code).exists() || is_path && !names.iter().all(exists)
    });
    let wrong: Vec<&str> = wrong.collect();
    assert!(
        wrong.is_empty(),
        "`DESIGN.md` names what does not exist: {wrong:?}"
    );
}

/// Cargo doesn't notice a file that no module names.
#[test]
fn every_file_of_tests_is_a_module() {
    let files = files("tests/it");
    let text: String = files.iter().map(|(_, file)| read(file)).collect();
    let is_module = |file: &str| {
        let name = Path::new(file).file_stem().and_then(|name| name.to_str());
        name.is_some_and(|name| name == "main" || text.contains(&format!("mod {name};\n")))
    };
    let files = files.iter().map(|(_, file)| file);
    let lost: Vec<_> = files.filter(|file| !is_module(file)).collect();
    assert!(lost.is_empty(), "no module is called {lost:?}: add it");
}

fn is_name(text: &str) -> bool {
    !text.is_empty() && text.chars().all(|c| c.is_alphanumeric() || c == '_')
}

/// Returns the place of `module` in `LAYERS`, from the top.
fn layer(module: &str) -> usize {
    let place = LAYERS.iter().position(|layer| layer.contains(&module));
    place.unwrap_or_else(|| panic!("add the module `{module}` to `LAYERS`"))
}

/// The names that `lib.rs` exports with all features, each with the module that it comes from.
struct Exports {
    root: BTreeMap<String, String>,
    prelude: BTreeMap<String, String>,
    /// The names at the root that only the crate sees count here, too.
    known: BTreeMap<String, String>,
}

impl Exports {
    fn of(lib: &syn::File) -> Self {
        let prelude = lib.items.iter().find_map(|item| match item {
            Item::Mod(module) if module.ident == "prelude" => module.content.as_ref(),
            _ => None,
        });
        Self {
            root: names(&lib.items, is_public),
            prelude: prelude.map_or_else(BTreeMap::new, |(_, items)| names(items, is_public)),
            known: names(&lib.items, |_| true),
        }
    }
}

fn is_public(visibility: &Visibility) -> bool {
    matches!(visibility, Visibility::Public(_))
}

fn names(items: &[Item], counts: fn(&Visibility) -> bool) -> BTreeMap<String, String> {
    let mut names = BTreeMap::new();
    for item in items {
        match item {
            Item::Use(ItemUse { vis, tree, .. }) if counts(vis) => {
                names.extend(flatten(tree).into_iter().filter_map(|path| {
                    assert_ne!(path.last()?, "*", "list the names");
                    Some((path.last()?.clone(), path.first()?.clone()))
                }));
            }
            Item::Mod(ItemMod { vis, ident, .. }) if counts(vis) => {
                _ = names.insert(ident.to_string(), ident.to_string());
            }
            _ => {}
        }
    }
    names
}

/// Returns the paths that a `use` declaration names.
fn flatten(tree: &UseTree) -> Vec<Vec<String>> {
    let below = |ident: &Ident, tree| {
        let paths = flatten(tree).into_iter();
        let paths = paths.map(|path| [vec![ident.to_string()], path].concat());
        paths.collect()
    };
    match tree {
        UseTree::Path(path) => below(&path.ident, &path.tree),
        UseTree::Name(name) => vec![vec![name.ident.to_string()]],
        UseTree::Rename(name) => vec![vec![name.ident.to_string()]],
        UseTree::Glob(_) => vec![vec!["*".to_owned()]],
        UseTree::Group(group) => group.items.iter().flat_map(flatten).collect(),
    }
}

/// Collects the modules at the top of the crate that a file names.
struct Imports<'a> {
    exports: &'a Exports,
    /// How many modules the place that is visited lies below the root.
    depth: usize,
    found: BTreeSet<String>,
}

impl<'a> Imports<'a> {
    fn new(exports: &'a Exports, file: &str) -> Self {
        Self {
            exports,
            depth: file.split('/').count() - 1,
            found: BTreeSet::new(),
        }
    }

    fn add(&mut self, path: &[String]) {
        let supers = path.iter().take_while(|&name| name == "super").count();
        let below_root = match path.first() {
            Some(first) if first == "crate" => path.get(1),
            Some(_) if supers == self.depth => path.get(supers),
            _ => None,
        };
        if let Some(name) = below_root {
            // A name at the root may come from a module that another one there re-exports.
            let mut module = name;
            while let Some(from) = self
                .exports
                .known
                .get(module)
                .filter(|&from| from != module)
            {
                module = from;
            }
            self.found.insert(module.clone());
        }
    }
}

impl<'ast> Visit<'ast> for Imports<'_> {
    fn visit_item_use(&mut self, item: &'ast ItemUse) {
        for path in flatten(&item.tree) {
            self.add(&path);
        }
    }

    fn visit_path(&mut self, path: &'ast syn::Path) {
        let names: Vec<_> = path
            .segments
            .iter()
            .map(|it| it.ident.to_string())
            .collect();
        self.add(&names);
        visit::visit_path(self, path);
    }

    fn visit_item_mod(&mut self, module: &'ast ItemMod) {
        if !module.attrs.iter().any(is_cfg_test) {
            self.depth += 1;
            visit::visit_item_mod(self, module);
            self.depth -= 1;
        }
    }
}

fn is_cfg_test(attribute: &Attribute) -> bool {
    let condition = attribute.meta.require_list();
    attribute.path().is_ident("cfg")
        && condition.is_ok_and(|list| list.tokens.to_string().contains("test"))
}

/// Returns the source files below the folder `top`, each with its module at the top of the crate.
fn files(top: &str) -> Vec<(String, String)> {
    let mut files = Vec::new();
    let mut folders = vec![PathBuf::from(top)];
    while let Some(folder) = folders.pop() {
        let entries = fs::read_dir(path(&folder)).expect("the folder should be readable");
        for entry in entries {
            let file = folder.join(entry.expect("the entry should be readable").file_name());
            match file.extension() {
                Some(extension) if extension == "rs" => {
                    let name = file.display().to_string();
                    let below = name[top.len() + 1..].split(['/', '.']).next();
                    let module = below.unwrap_or_default().to_owned();
                    if module != "lib" && !name.ends_with("tests.rs") {
                        files.push((module, name));
                    }
                }
                _ => folders.push(file),
            }
        }
    }
    files
}

fn parse(file: &str) -> syn::File {
    syn::parse_file(&read(file)).expect("the file should be Rust")
}

fn read(file: &str) -> String {
    fs::read_to_string(path(file)).expect("the file should be readable")
}

fn path(name: impl AsRef<Path>) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(name)
}
