//! The imports between the source files of a crate.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::Path,
};

use super::{
    read_file,
    source_file::{ModulePath, SourceFile},
};

/// The source files of a crate by their module paths.
pub(crate) struct SourceTree(BTreeMap<ModulePath, SourceFile>);

impl SourceTree {
    pub(crate) fn of_this_crate() -> Self {
        let mut names = Vec::new();
        find_files("", &mut names);
        Self::new(names.into_iter().map(|name| {
            let text = read_file(&name);
            (name, text)
        }))
    }

    fn new(files: impl IntoIterator<Item = (String, String)>) -> Self {
        let parse = |(name, text): (String, String)| {
            let path = module_path(&name);
            (path, SourceFile::parse(name, &text))
        };
        let mut files: BTreeMap<_, _> = files.into_iter().map(parse).collect();
        let modules: BTreeSet<ModulePath> = files.keys().cloned().collect();
        for (module, file) in &mut files {
            file.imports.retain_mut(|import| {
                let path = from_root(&import.path, module, &modules);
                path.map(|path| import.path = path).is_some()
            });
        }
        Self(files)
    }

    /// Returns the modules from which each module imports.
    fn imports(&self) -> BTreeMap<&ModulePath, BTreeSet<&ModulePath>> {
        let modules = self.0.keys();
        modules
            .map(|module| (module, self.imports_of(module)))
            .collect()
    }

    /// Two kinds of imports do not count: a parent may re-export names of its children, and a
    /// module may import from its parents.
    fn imports_of(&self, module: &ModulePath) -> BTreeSet<&ModulePath> {
        let imports = self.0[module].imports.iter();
        imports
            .filter_map(|import| {
                let target = self.defining_module(&import.path);
                let is_of_child = import.is_reexport && target.starts_with(module);
                (!is_of_child && !module.starts_with(target)).then_some(target)
            })
            .collect()
    }

    /// Returns the module that defines the item at `path`, after all re-exports.
    fn defining_module(&self, path: &[String]) -> &ModulePath {
        let mut path = path.to_vec();
        let mut seen = BTreeSet::new();
        loop {
            let (module, file) = (0..=path.len())
                .rev()
                .find_map(|len| self.0.get_key_value(&path[..len]))
                .expect("the tree has a `lib.rs`");
            let rest = &path[module.len()..];
            let reexport = rest.first().filter(|name| !file.defines.contains(*name));
            let reexport = reexport.and_then(|name| file.import_as(name));
            match reexport {
                Some(import) if seen.insert(&import.path) => {
                    path = [&import.path, &rest[1..]].concat();
                }
                _ => return module,
            }
        }
    }

    /// Returns a description of each cycle, that is, of each group of files that import each
    /// other, directly or through other files of the group.
    pub(crate) fn cycles(&self) -> Vec<String> {
        let imports = self.imports();
        let reach: BTreeMap<_, _> = imports
            .keys()
            .map(|&module| (module, reachable(module, &imports)))
            .collect();
        let groups: BTreeSet<Vec<&ModulePath>> = imports
            .keys()
            .filter(|module| reach[*module].contains(*module))
            .map(|module| {
                let back = |other: &&ModulePath| reach[other].contains(module);
                reach[module].iter().copied().filter(back).collect()
            })
            .collect();
        let describe = |group: &Vec<&ModulePath>| {
            let mut text = format!("cycle of {} files:", group.len());
            for module in group {
                let inside = imports[module].iter().filter(|other| group.contains(other));
                let inside: Vec<_> = inside.map(|other| self.name(other)).collect();
                text += &format!("\n  {} imports {}", self.name(module), inside.join(", "));
            }
            text
        };
        groups.iter().map(describe).collect()
    }

    /// Returns a description of each import from a higher layer, and of each file without a layer.
    pub(crate) fn imports_against(&self, layers: &[&[&str]]) -> Vec<String> {
        let layer = |module: &str| layers.iter().position(|layer| layer.contains(&module));
        let mut wrong = Vec::new();
        for (module, targets) in self.imports() {
            let Some(top) = module.first() else {
                continue;
            };
            let Some(from) = layer(top) else {
                wrong.push(format!("  {} has no layer", self.name(module)));
                continue;
            };
            for target in targets {
                if layer(&target[0]).is_some_and(|to| to < from) {
                    let (module, target) = (self.name(module), self.name(target));
                    wrong.push(format!("  {module} imports {target}"));
                }
            }
        }
        wrong
    }

    fn name(&self, module: &ModulePath) -> String {
        format!("src/{}", self.0[module].name)
    }
}

/// Returns an import path from the root of the crate, or `None` if it leads to another crate.
fn from_root(
    path: &[String],
    module: &ModulePath,
    modules: &BTreeSet<ModulePath>,
) -> Option<ModulePath> {
    let ups = path.iter().take_while(|name| *name == "super").count();
    match path.first()?.as_str() {
        "crate" => Some(path[1..].to_vec()),
        "self" => Some([module, &path[1..]].concat()),
        "super" => Some([&module[..module.len().checked_sub(ups)?], &path[ups..]].concat()),
        _ => {
            let is_child = modules.contains(&[module, &path[..1]].concat());
            is_child.then(|| [module, path].concat())
        }
    }
}

/// Returns all modules that can be reached from `module` through imports.
fn reachable<'a>(
    module: &ModulePath,
    imports: &BTreeMap<&'a ModulePath, BTreeSet<&'a ModulePath>>,
) -> BTreeSet<&'a ModulePath> {
    let mut reached = BTreeSet::new();
    let mut open: Vec<_> = imports[module].iter().copied().collect();
    while let Some(next) = open.pop() {
        if reached.insert(next) {
            open.extend(&imports[next]);
        }
    }
    reached
}

fn module_path(file: &str) -> ModulePath {
    let path = file.trim_end_matches(".rs");
    let path = path.split('/').map(str::to_owned);
    path.filter(|name| name != "lib").collect()
}

/// Adds the names of all source files in `folder`, relative to `src`.
fn find_files(folder: &str, names: &mut Vec<String>) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("src")
        .join(folder);
    for entry in fs::read_dir(path).expect("the folder should be readable") {
        let entry = entry.expect("the folder should be readable");
        let name = format!("{folder}{}", entry.file_name().display());
        if entry.path().is_dir() {
            find_files(&format!("{name}/"), names);
        } else if name.ends_with(".rs") {
            names.push(name);
        }
    }
}

mod cases {
    use super::*;

    fn tree(files: &[(&str, &str)]) -> SourceTree {
        let files = files.iter();
        SourceTree::new(files.map(|(name, text)| ((*name).to_owned(), (*text).to_owned())))
    }

    #[test]
    fn files_that_import_each_other_are_a_cycle() {
        let tree = tree(&[
            ("lib.rs", "mod a; mod b; mod c; pub use a::A;"),
            ("a.rs", "use crate::b::{self, B};"),
            ("b.rs", "use std::fmt; use crate::{c::inner::C, a::A};"),
            ("c.rs", "mod inner; fn f() { crate::a::f(); }"),
            ("c/inner.rs", "pub struct C;"),
        ]);
        let cycle = "cycle of 2 files:\n  src/a.rs imports src/b.rs\n  src/b.rs imports src/a.rs";
        assert_eq!(tree.cycles(), [cycle]);
    }

    #[test]
    fn a_cycle_may_lead_through_a_reexport() {
        let tree = tree(&[
            ("lib.rs", "mod a; mod b; pub use crate::b::deep::B as C;"),
            ("a.rs", "use crate::C; pub(crate) struct A;"),
            ("b.rs", "mod deep; use super::a::A; use deep::B;"),
            ("b/deep.rs", "use super::A; pub struct B;"),
        ]);
        let cycle = "cycle of 2 files:\n  src/a.rs imports src/b/deep.rs\n  \
                      src/b/deep.rs imports src/a.rs";
        assert_eq!(tree.cycles(), [cycle]);
    }

    #[test]
    fn a_parent_with_its_children_is_no_cycle() {
        let tree = tree(&[
            ("lib.rs", "mod a; pub use a::{A, one::One};"),
            (
                "a.rs",
                "mod one; mod two; pub use one::One; pub(crate) use two::*; struct A;",
            ),
            ("a/one.rs", "use super::{A, two::Two}; pub struct One;"),
            ("a/two.rs", "use super::A; pub struct Two;"),
        ]);
        assert_eq!(tree.cycles(), [""; 0]);
    }

    #[test]
    fn comments_strings_and_test_modules_import_nothing() {
        let tree = tree(&[
            ("lib.rs", "mod a; mod b;"),
            (
                "a.rs",
                "// use crate::b::B;\nconst A: [&str; 2] = [\"use crate::b::B;\", \"\\\"//\"];",
            ),
            (
                "b.rs",
                "use crate::a::A; fn f<'a>(c: char) { c == '\"' || c == '\\'' || c == '{'; }",
            ),
            (
                "c.rs",
                "#[cfg(test)] mod tests { use crate::d::D; } use crate::b::f;",
            ),
            ("d.rs", "use crate::c::C;"),
        ]);
        assert_eq!(tree.cycles(), [""; 0]);
        let imported = |module: &str| tree.imports_of(&module_path(module)).len();
        assert_eq!(["a", "b", "c", "d"].map(imported), [0, 1, 1, 1]);
    }

    #[test]
    fn imports_of_higher_layers_and_unknown_modules_are_wrong() {
        let tree = tree(&[
            (
                "lib.rs",
                "mod plugin; mod timer; mod owner; mod call; mod queue; mod new;",
            ),
            (
                "plugin.rs",
                "use crate::timer::Timer; pub struct DuePlugin;",
            ),
            (
                "timer.rs",
                "use crate::{owner::Owned, queue::fast::Fast, plugin::DuePlugin};",
            ),
            ("owner.rs", "use crate::call::Caller;"),
            ("call.rs", ""),
            ("queue.rs", "mod fast;"),
            ("queue/fast.rs", "use crate::new::New; pub struct Fast;"),
            ("new.rs", "pub struct New;"),
        ]);
        let layers: [&[&str]; 4] = [&["plugin"], &["timer"], &["owner", "call"], &["queue"]];
        let expected = [
            "  src/new.rs has no layer",
            "  src/timer.rs imports src/plugin.rs",
        ];
        assert_eq!(tree.imports_against(&layers), expected);
    }
}
