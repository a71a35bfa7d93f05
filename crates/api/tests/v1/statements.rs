//! `docs/statements` lists the tests of each requirement of the API. Each listed test must exist and
//! must not be ignored.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

/// Macros that turn the functions inside them into tests.
const TEST_MACROS: [&str; 3] = ["store::on_each_engine! {", "on_both! {", "on_both_nodes!("];

/// The kind of a function in a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Found {
    Test,
    Ignored,
    NoTest,
    Nothing,
}

/// A requirement: its id, its sentences, and its tests as `file: function`.
#[derive(Debug)]
struct Statement<'a> {
    id: &'a str,
    text: Vec<&'a str>,
    tests: Vec<&'a str>,
}

/// Reads the statements of a page. Each begins with a heading of the second level.
fn statements(page: &str) -> Vec<Statement<'_>> {
    let mut statements = Vec::new();
    for line in page.lines().map(str::trim).filter(|line| !line.is_empty()) {
        if let Some(id) = line.strip_prefix("## ") {
            statements.push(Statement { id, text: Vec::new(), tests: Vec::new() });
        } else if let Some(statement) = statements.last_mut() {
            match line.strip_prefix("- ") {
                Some(test) => statement.tests.push(test),
                None => statement.text.push(line),
            }
        }
    }
    statements
}

/// Returns the errors in the pages. `source` returns the contents of a file below `crates/`.
fn faults(pages: &[String], source: impl Fn(&str) -> Option<String>) -> Vec<String> {
    let mut faults = Vec::new();
    let mut ids = BTreeSet::new();
    for Statement { id, text, tests } in pages.iter().flat_map(|page| statements(page)) {
        if !is_id(id) {
            faults.push(format!("{id}: is not an id"));
        }
        if !ids.insert(id) {
            faults.push(format!("{id}: is used twice"));
        }
        if text.is_empty() {
            faults.push(format!("{id}: has no text"));
        }
        if tests.is_empty() {
            faults.push(format!("{id}: has no test"));
        }
        for test in tests {
            faults.extend(fault_of(test, &source).map(|fault| format!("{id}: {test}: {fault}")));
        }
    }
    if ids.is_empty() {
        faults.push("there is no statement".to_owned());
    }
    faults
}

/// Returns whether `id` is two capital letters, a hyphen and a number.
fn is_id(id: &str) -> bool {
    id.split_once('-').is_some_and(|(area, number)| {
        area.len() == 2
            && area.bytes().all(|byte| byte.is_ascii_uppercase())
            && !number.is_empty()
            && number.bytes().all(|byte| byte.is_ascii_digit())
    })
}

fn fault_of(test: &str, source: impl Fn(&str) -> Option<String>) -> Option<&'static str> {
    let quoted = test.strip_prefix('`').and_then(|test| test.strip_suffix('`'));
    let Some((file, function)) = quoted.and_then(|test| test.split_once(": ")) else {
        return Some("is not a quoted file and function");
    };
    let Some(text) = source(file) else { return Some("there is no such file") };
    match find(&text, function) {
        Found::Test => None,
        Found::Ignored => Some("is ignored"),
        Found::NoTest => Some("is no test"),
        Found::Nothing => Some("there is no such function"),
    }
}

/// Looks up a function in `text`.
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

/// Returns whether a line is inside one of the test macros.
fn is_in_macro(lines: &[&str], at: usize) -> bool {
    let opened = lines[..=at].iter().rposition(|line| TEST_MACROS.iter().any(|name| line.starts_with(name)));
    opened.is_some_and(|opened| !lines[opened..at].iter().any(|line| line.starts_with(['}', ')'])))
}

fn below_crates(file: &str) -> Option<String> {
    fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(file)).ok()
}

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/statements")
}

/// Returns the name and the text of each page.
fn pages() -> Vec<(String, String)> {
    let files = fs::read_dir(folder()).unwrap().map(|entry| entry.unwrap());
    let named = files.map(|file| (file.file_name().into_string().unwrap(), file.path()));
    let pages = named.filter(|(name, _)| name != "README.md");
    pages.map(|(name, path)| (name, fs::read_to_string(path).unwrap())).collect()
}

#[test]
fn every_statement_has_existing_tests() {
    let texts: Vec<_> = pages().into_iter().map(|(_, text)| text).collect();
    let faults = faults(&texts, below_crates);
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

#[test]
fn the_index_lists_every_page_with_the_area_of_its_ids() {
    let index = fs::read_to_string(folder().join("README.md")).unwrap();
    for (name, text) in pages() {
        let statements = statements(&text);
        let area = statements[0].id.split('-').next().unwrap();
        assert!(index.contains(&format!("]({name}) | `{area}` |")), "{name} {area}");
        for Statement { id, .. } in statements {
            assert!(id.starts_with(&format!("{area}-")), "{name} {id}");
        }
    }
}

const PLANTED: &str = r#"
#[test]
fn a_plain_test() {}

/// Says why.
#[tokio::test(flavor = "multi_thread")]
async fn a_tokio_test() {}

#[test]
#[ignore = "slow"]
fn an_ignored_test() {}

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

/// Returns the errors of a page with only this statement.
fn faults_of(statement: &str) -> Vec<String> {
    let page = format!("# Title\n\nAn introduction.\n\n{statement}\n");
    faults(&[page], |file| (file == "a/b.rs").then(|| PLANTED.to_owned()))
}

/// Returns a statement with one test.
fn with_test(test: &str) -> String {
    format!("## AA-1\n\nIt holds.\n\n- {test}")
}

#[test]
fn tests_in_every_form_are_found() {
    for name in
        ["a_plain_test", "a_tokio_test", "one_for_each_engine", "one_that_is_listed", "one_for_each_node"]
    {
        assert_eq!(faults_of(&with_test(&format!("`a/b.rs: {name}`"))), [] as [String; 0], "{name}");
    }
    let two = with_test("`a/b.rs: a_plain_test`\n- `a/b.rs: a_tokio_test`");
    assert_eq!(faults_of(&two), [] as [String; 0]);
}

#[test]
fn every_error_of_a_statement_is_reported() {
    for (test, fault) in [
        ("somewhere", "is not a quoted file and function"),
        ("a/b.rs: a_plain_test", "is not a quoted file and function"),
        ("`a/c.rs: x`", "there is no such file"),
        ("`a/b.rs: x`", "there is no such function"),
        ("`a/b.rs: a_plain`", "there is no such function"),
        ("`a/b.rs: no_test_at_all`", "is no test"),
        ("`a/b.rs: after_the_macro`", "is no test"),
        ("`a/b.rs: an_ignored_test`", "is ignored"),
        ("`a/b.rs: one_that_is_commented_out`", "there is no such function"),
    ] {
        assert_eq!(faults_of(&with_test(test)), [format!("AA-1: {test}: {fault}")]);
        let second = format!("`a/b.rs: a_plain_test`\n- {test}");
        assert_eq!(faults_of(&with_test(&second)), [format!("AA-1: {test}: {fault}")]);
    }
    for (statement, fault) in [
        ("", "there is no statement"),
        ("## AA-1\n\nIt holds.", "AA-1: has no test"),
        ("## AA-1\n\n- `a/b.rs: a_plain_test`", "AA-1: has no text"),
        ("## Amounts\n\nIt holds.\n\n- `a/b.rs: a_plain_test`", "Amounts: is not an id"),
    ] {
        assert_eq!(faults_of(statement), [fault], "{statement}");
    }
    let one = with_test("`a/b.rs: a_plain_test`");
    assert_eq!(faults_of(&format!("{one}\n\n{one}")), ["AA-1: is used twice"]);
}
