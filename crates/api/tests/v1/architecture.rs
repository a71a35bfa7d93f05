//! The table of crates in ARCHITECTURE.md lists what Cargo's manifests say.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

type Uses = BTreeMap<String, BTreeSet<String>>;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The workspace's crates with the crates of the workspace that each depends on, apart from its
/// tests.
fn manifests() -> Uses {
    let mut dependencies = BTreeMap::new();
    let crates = fs::read_dir(root().join("crates")).unwrap().map(|entry| entry.unwrap().path());
    for folder in crates.chain([root().join("clients/rust")]) {
        let text = fs::read_to_string(folder.join("Cargo.toml")).unwrap();
        let manifest: toml::Table = text.parse().unwrap();
        let names = manifest["dependencies"].as_table().unwrap().keys().cloned().collect();
        let name = manifest["package"]["name"].as_str().unwrap().to_owned();
        dependencies.insert(name, names);
    }
    let crates: BTreeSet<String> = dependencies.keys().cloned().collect();
    let within = |names: BTreeSet<String>| names.intersection(&crates).cloned().collect();
    dependencies.into_iter().map(|(name, names)| (name, within(names))).collect()
}

/// The table that begins with "Crate".
fn table(page: &str) -> Uses {
    let lines = page.lines().skip_while(|line| !line.starts_with("| Crate | Uses |")).skip(2);
    let rows = lines.take_while(|line| line.starts_with('|'));
    let mut table = Uses::new();
    for row in rows {
        let [name, uses] = row.trim_matches('|').split('|').collect::<Vec<_>>()[..] else {
            panic!("{row}: expected two columns");
        };
        let names =
            |cell: &str| cell.split('`').skip(1).step_by(2).map(str::to_owned).collect::<BTreeSet<_>>();
        let name = names(name).pop_first().unwrap();
        let uses = if uses.trim() == "all of them" { table.keys().cloned().collect() } else { names(uses) };
        table.insert(name, uses);
    }
    table
}

#[test]
fn the_table_of_crates_equals_the_manifests() {
    let page = fs::read_to_string(root().join("ARCHITECTURE.md")).unwrap();
    assert_eq!(table(&page), manifests());
}

#[test]
fn a_crate_uses_only_crates_above_it_in_the_table() {
    let mut above = BTreeSet::new();
    let page = fs::read_to_string(root().join("ARCHITECTURE.md")).unwrap();
    let uses = table(&page);
    let rows = page.lines().skip_while(|line| !line.starts_with("| Crate | Uses |")).skip(2);
    for name in rows.take_while(|line| line.starts_with('|')).filter_map(|row| row.split('`').nth(1)) {
        assert!(uses[name].is_subset(&above), "{name} uses a crate below it");
        above.insert(name.to_owned());
    }
}
