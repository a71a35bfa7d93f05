//! The table of what the API promises names a test for each promise: it is read here, and each test that it names must be
//! there and run.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

/// Macros that make tests of what stands in them.
const TEST_MACROS: [&str; 3] = ["store::on_each_engine! {", "on_both! {", "on_both_nodes!("];

/// What a file says of a function.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Found {
    Test,
    Ignored,
    NoTest,
    Nothing,
}

/// What is wrong with the tables of a text; `source` gives the text of a file below `crates/`.
fn faults(text: &str, source: impl Fn(&str) -> Option<String>) -> Vec<String> {
    let mut faults = Vec::new();
    let mut ids = BTreeSet::new();
    for line in text.lines().filter(|line| line.starts_with('|')) {
        let cells: Vec<_> = line.trim().trim_matches('|').split(" | ").map(str::trim).collect();
        let id = cells[0];
        if id == "Id" || id.starts_with("---") {
            continue;
        }
        if !ids.insert(id) {
            faults.push(format!("{id}: stands twice"));
        }
        let [_, statement, tests] = cells[..] else {
            faults.push(format!("{id}: has not three columns"));
            continue;
        };
        if statement.is_empty() || tests.is_empty() {
            faults.push(format!("{id}: has no test"));
        }
        for test in tests.split(';').map(str::trim).filter(|test| !test.is_empty()) {
            faults.extend(fault_of(test, &source).map(|fault| format!("{id}: {test}: {fault}")));
        }
    }
    if ids.is_empty() {
        faults.push("there is no table".to_owned());
    }
    faults
}

fn fault_of(test: &str, source: impl Fn(&str) -> Option<String>) -> Option<&'static str> {
    let Some((file, function)) = test.trim_matches('`').split_once(": ") else {
        return Some("is not a file and a function");
    };
    let Some(text) = source(file) else { return Some("there is no such file") };
    match find(&text, function) {
        Found::Test => None,
        Found::Ignored => Some("is ignored"),
        Found::NoTest => Some("is no test"),
        Found::Nothing => Some("there is no such function"),
    }
}

/// What `text` has under this name.
fn find(text: &str, function: &str) -> Found {
    let lines: Vec<_> = text.lines().filter(|line| !line.trim_start().starts_with("//")).collect();
    let declares = |line: &str| line.contains(&format!("fn {function}("));
    let listed =
        |line: &str| line.split(|c: char| !c.is_alphanumeric() && c != '_').any(|word| word == function);
    let Some(at) = lines.iter().position(|line| declares(line)) else {
        let listed = (0..lines.len()).any(|at| is_in_macro(&lines, at) && listed(lines[at]));
        return if listed { Found::Test } else { Found::Nothing };
    };
    let above = lines[..at].iter().rev().take_while(|line| line.trim_start().starts_with("#["));
    let attributes: Vec<_> = above.map(|line| line.trim_start()).chain([lines[at].trim_start()]).collect();
    let has = |start: &str| attributes.iter().any(|attribute| attribute.contains(start));
    if has("#[ignore") {
        return Found::Ignored;
    }
    let is_listed =
        (0..lines.len()).any(|line| line != at && is_in_macro(&lines, line) && listed(lines[line]));
    if has("#[test]") || has("#[tokio::test") || is_in_macro(&lines, at) || is_listed {
        Found::Test
    } else {
        Found::NoTest
    }
}

/// Whether a line stands in the block of one of the macros that make tests.
fn is_in_macro(lines: &[&str], at: usize) -> bool {
    let opened = lines[..=at].iter().rposition(|line| TEST_MACROS.iter().any(|name| line.starts_with(name)));
    opened.is_some_and(|opened| !lines[opened..at].iter().any(|line| line.starts_with(['}', ')'])))
}

fn below_crates(file: &str) -> Option<String> {
    fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(file)).ok()
}

#[test]
fn every_promise_of_the_table_has_its_tests() {
    let table = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/statements.md");
    let faults = faults(&fs::read_to_string(table).unwrap(), below_crates);
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

const PLANTED: &str = r#"
#[test]
fn a_plain_one() {}

/// Says why.
#[tokio::test(flavor = "multi_thread")]
async fn one_of_tokios() {}

#[test]
#[ignore = "slow"]
fn an_ignored_one() {}

fn no_test_at_all() {}

// #[test]
// fn one_that_is_commented_out() {}

store::on_each_engine! {
    async fn one_for_each_engine(store: Store) {
        body();
    }
}

fn after_the_macro() {}

on_both! {
    one_that_is_listed;
}

async fn one_for_each_node(node: Node) {}
on_both_nodes!(
    one_for_each_node,
);
"#;

/// The faults of a table with this one row.
fn faults_of(row: &str) -> Vec<String> {
    let table = format!("# Title\n\n| Id | Statement | Test |\n| --- | --- | --- |\n{row}\n");
    faults(&table, |file| (file == "a/b.rs").then(|| PLANTED.to_owned()))
}

#[test]
fn tests_in_every_form_are_found() {
    for name in
        ["a_plain_one", "one_of_tokios", "one_for_each_engine", "one_that_is_listed", "one_for_each_node"]
    {
        assert_eq!(faults_of(&format!("| A-1 | It holds | a/b.rs: {name} |")), [] as [String; 0], "{name}");
    }
    assert!(faults_of("| A-1 | It holds | a/b.rs: a_plain_one; a/b.rs: one_of_tokios |").is_empty());
}

#[test]
fn whatever_is_wrong_with_a_row_is_told() {
    for (row, fault) in [
        ("| A-1 | It holds | |", "A-1: has no test"),
        ("| A-1 | It holds |", "A-1: has not three columns"),
        ("| A-1 | It holds | somewhere |", "A-1: somewhere: is not a file and a function"),
        ("| A-1 | It holds | a/c.rs: x |", "A-1: a/c.rs: x: there is no such file"),
        ("| A-1 | It holds | a/b.rs: x |", "A-1: a/b.rs: x: there is no such function"),
        ("| A-1 | It holds | a/b.rs: a_plain |", "A-1: a/b.rs: a_plain: there is no such function"),
        ("| A-1 | It holds | a/b.rs: no_test_at_all |", "A-1: a/b.rs: no_test_at_all: is no test"),
        ("| A-1 | It holds | a/b.rs: after_the_macro |", "A-1: a/b.rs: after_the_macro: is no test"),
        ("| A-1 | It holds | a/b.rs: an_ignored_one |", "A-1: a/b.rs: an_ignored_one: is ignored"),
        (
            "| A-1 | It holds | a/b.rs: one_that_is_commented_out |",
            "A-1: a/b.rs: one_that_is_commented_out: there is no such function",
        ),
        ("", "there is no table"),
    ] {
        assert_eq!(faults_of(row), [fault], "{row}");
    }
    let twice = "| A-1 | It holds | a/b.rs: a_plain_one |\n| A-1 | It too | a/b.rs: a_plain_one |";
    assert_eq!(faults_of(twice), ["A-1: stands twice"]);
    let second_is_gone = "| A-1 | It holds | a/b.rs: a_plain_one; a/b.rs: gone |";
    assert_eq!(faults_of(second_is_gone), ["A-1: a/b.rs: gone: there is no such function"]);
}
