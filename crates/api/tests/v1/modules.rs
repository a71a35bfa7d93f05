//! The top-level modules of a crate form layers: their imports have no cycle.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

/// The imports of each top-level module of a crate.
type Imports = BTreeMap<String, BTreeSet<String>>;

/// Reads the imports of production code. `files` are the paths below `src` and their texts.
fn imports(files: &[(String, String)]) -> Imports {
    let tests: Vec<String> = files.iter().flat_map(|(path, text)| test_modules(path, text)).collect();
    let is_test = |path: &str| {
        let below =
            |test: &String| path.strip_prefix(test.as_str()).is_some_and(|rest| rest.starts_with(['.', '/']));
        tests.iter().any(below)
    };
    let module_of = |path: &str| module_of(path).filter(|_| !is_test(path));
    let modules: BTreeSet<String> = files.iter().filter_map(|(path, _)| module_of(path)).collect();
    let root = files.iter().find(|(path, _)| path == "lib.rs" || path == "main.rs");
    let reexports = root.map_or_else(BTreeMap::new, |(_, text)| reexports(&production(text)));
    let mut imports = Imports::new();
    for (path, text) in files {
        let Some(module) = module_of(path) else { continue };
        let text = production(text);
        let mut names = paths(&text, "crate::");
        // In the root file of a top-level module, `super` is the crate.
        if path.matches('/').count() == usize::from(path.ends_with("/mod.rs")) {
            names.extend(paths(&text, "super::"));
        }
        let names = names.into_iter().map(|name| match reexports.get(&name) {
            Some(module) if !modules.contains(&name) => module.clone(),
            _ => name,
        });
        let others = names.filter(|name| modules.contains(name) && *name != module);
        imports.entry(module.clone()).or_default().extend(others);
    }
    imports
}

/// Returns the top-level module of a file. `None` for the root.
fn module_of(path: &str) -> Option<String> {
    let module = path.split('/').next()?.trim_end_matches(".rs");
    (!["lib", "main"].contains(&module)).then(|| module.to_owned())
}

/// Returns the paths, without an extension, of the files that a file declares only for tests.
fn test_modules(path: &str, text: &str) -> Vec<String> {
    let roots = ["lib.rs", "main.rs", "mod.rs"];
    let folder = match roots.iter().find_map(|root| path.strip_suffix(root)) {
        Some(folder) => folder.to_owned(),
        None => format!("{}/", path.trim_end_matches(".rs")),
    };
    let declared = text.split("#[cfg(test)]\nmod ").skip(1).filter_map(|rest| rest.split_once(';'));
    declared.filter(|(name, _)| !name.contains(' ')).map(|(name, _)| format!("{folder}{name}")).collect()
}

/// Returns the text without comments and without the tests at its end.
fn production(text: &str) -> String {
    let text = text.split("#[cfg(test)]\nmod tests {").next().unwrap_or_default();
    text.lines().map(|line| line.split("//").next().unwrap_or_default()).collect::<Vec<_>>().join("\n")
}

/// Returns the first names of all paths that begin with `start`, also of those in braces.
fn paths(text: &str, start: &str) -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    for (at, _) in text.match_indices(start) {
        if text[..at].ends_with(|c: char| c.is_alphanumeric() || c == '_' || c == ':') {
            continue;
        }
        let rest = &text[at + start.len()..];
        match rest.strip_prefix('{') {
            Some(group) => names.extend(first_names(group)),
            None => {
                names.insert(first_name(rest));
            }
        }
    }
    names
}

fn first_name(text: &str) -> String {
    text.trim_start().chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect()
}

/// Returns the first name of each item up to the closing brace.
fn first_names(group: &str) -> Vec<String> {
    let mut names = vec![first_name(group)];
    let mut depth = 1;
    for (at, c) in group.char_indices() {
        match c {
            '{' => depth += 1,
            '}' => depth -= 1,
            ',' if depth == 1 => names.push(first_name(&group[at + 1..])),
            _ => {}
        }
        if depth == 0 {
            break;
        }
    }
    names
}

/// Returns the module of each name that the crate's root exports.
fn reexports(root: &str) -> BTreeMap<String, String> {
    let mut reexports = BTreeMap::new();
    for (at, _) in root.match_indices("use ") {
        let path = root[at + 4..].split(';').next().unwrap_or_default();
        let mut words =
            path.split(|c: char| !c.is_alphanumeric() && c != '_').filter(|word| !word.is_empty());
        let Some(module) = words.find(|word| !["crate", "self"].contains(word)) else { continue };
        reexports.extend(words.map(|word| (word.to_owned(), module.to_owned())));
    }
    reexports
}

/// Returns the modules of all cycles, and those between two cycles: what is left after modules
/// without imports, and modules that no other imports, are removed repeatedly.
fn cyclic(mut imports: Imports) -> BTreeSet<String> {
    loop {
        let imported: BTreeSet<String> = imports.values().flatten().cloned().collect();
        let is_inner =
            |module: &String, names: &BTreeSet<String>| !names.is_empty() && imported.contains(module);
        let left: BTreeSet<String> = imports
            .iter()
            .filter(|(module, names)| is_inner(module, names))
            .map(|(m, _)| m.clone())
            .collect();
        if left.len() == imports.len() {
            return left;
        }
        imports.retain(|module, _| left.contains(module));
        imports.values_mut().for_each(|names| names.retain(|name| left.contains(name)));
    }
}

/// Returns the files below `folder` with their paths relative to it.
fn files(folder: &Path) -> Vec<(String, String)> {
    let mut found = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(next) = folders.pop() {
        for path in entries(&next) {
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                let name = path.strip_prefix(folder).unwrap().to_str().unwrap().to_owned();
                found.push((name, fs::read_to_string(&path).unwrap()));
            }
        }
    }
    found
}

fn entries(folder: &Path) -> Vec<PathBuf> {
    let mut entries: Vec<_> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    entries.sort();
    entries
}

/// Returns the imports of each crate of the workspace.
fn crates() -> Vec<(String, Imports)> {
    let folders = entries(&Path::new(env!("CARGO_MANIFEST_DIR")).join(".."));
    let client = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../clients/rust");
    let sources = folders.into_iter().chain([client]).filter(|folder| folder.join("src").is_dir());
    sources
        .map(|folder| {
            (folder.file_name().unwrap().to_str().unwrap().to_owned(), imports(&files(&folder.join("src"))))
        })
        .collect()
}

#[test]
fn the_modules_of_a_crate_have_no_import_cycle() {
    let crates = crates();
    assert!(crates.iter().any(|(name, imports)| name == "app" && imports.len() > 20), "{crates:?}");
    for (name, imports) in crates {
        let cyclic = cyclic(imports);
        assert!(cyclic.is_empty(), "{name}: {cyclic:?}");
    }
}

fn planted(texts: &[(&str, &str)]) -> Imports {
    let root = ("lib.rs", "mod a;\nmod b;\nmod c;\npub use b::{B, Other};\n");
    let files = texts.iter().chain([&root]);
    imports(&files.map(|(path, text)| ((*path).to_owned(), (*text).to_owned())).collect::<Vec<_>>())
}

fn cycle<const N: usize>(modules: [&str; N]) -> BTreeSet<String> {
    modules.into_iter().map(str::to_owned).collect()
}

#[test]
fn every_form_of_import_is_found() {
    for text in [
        "use crate::b;",
        "use crate::b::{self, B};",
        "use crate::{c, b::B};",
        "use crate::{\n    c::{d, e},\n    b,\n};",
        "use crate::B;",
        "fn f() { crate::b::f() }",
        "use super::b;",
    ] {
        let imports = planted(&[("a/mod.rs", text), ("b.rs", "use crate::a;"), ("c.rs", "")]);
        assert_eq!(cyclic(imports), cycle(["a", "b"]), "{text}");
    }
}

#[test]
fn comments_tests_and_children_of_other_modules_are_not_imports() {
    for (path, text) in [
        ("a.rs", "// use crate::b;"),
        ("a.rs", "#[cfg(test)]\nmod tests {\n    use crate::b;\n}"),
        ("a/plans.rs", "use crate::b;"),
        ("a/child.rs", "use super::b;"),
        ("a.rs", "use other_crate::b;"),
    ] {
        let root = ("a/mod.rs", "#[cfg(test)]\nmod plans;");
        let imports = planted(&[(path, text), root, ("b.rs", "use crate::a;"), ("c.rs", "")]);
        assert_eq!(cyclic(imports), cycle([]), "{path}: {text}");
    }
}

#[test]
fn a_cycle_of_three_modules_is_found() {
    let imports = planted(&[("a.rs", "use crate::b;"), ("b.rs", "use crate::c;"), ("c.rs", "use crate::a;")]);
    assert_eq!(cyclic(imports), cycle(["a", "b", "c"]));
}
