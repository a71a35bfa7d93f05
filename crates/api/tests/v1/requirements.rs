//! Field errors must state a requirement ("must be ..."). A fact ("is in the future") would read as
//! a diagnosis.

use std::fs;
use std::path::Path;

use domain::field_error::is_requirement;

/// The calls that create field errors. The requirement is the first argument that is not a name.
const CALLS: [&str; 9] = [
    "FieldError::new(",
    "AppError::field(",
    "AppError::wrong_value(",
    "Problem::new(",
    "given.wrong(",
    "asked.wrong(",
    "given.parsed(",
    "given.with(",
    "asked.parsed(",
];

/// Returns the text of a call up to its closing parenthesis.
fn arguments(text: &str) -> &str {
    let mut depth = 1;
    let mut in_text = false;
    let mut escaped = false;
    for (at, c) in text.char_indices() {
        match c {
            _ if escaped => escaped = false,
            '\\' if in_text => escaped = true,
            '"' => in_text = !in_text,
            '(' if !in_text => depth += 1,
            ')' if !in_text => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return &text[..at];
        }
    }
    text
}

/// Returns the string literals of a piece of source code.
fn literals(source: &str) -> Vec<&str> {
    let source = source.replace("\\\"", "''").leak();
    source.split('"').skip(1).step_by(2).collect()
}

fn requirements(source: &str) -> Vec<&str> {
    let source = source.split("#[cfg(test)]\nmod tests").next().unwrap_or_default();
    let calls = CALLS.iter().flat_map(|call| source.match_indices(call).map(|(at, call)| at + call.len()));
    let sentences = calls.filter_map(|at| {
        let texts = literals(arguments(&source[at..]));
        // Pointers and names contain no spaces. A requirement in braces is created elsewhere.
        texts.into_iter().find(|text| text.contains(' ') && !text.starts_with(['{', '/']))
    });
    sentences.collect()
}

fn walk(folder: &Path, found: &mut Vec<(String, String)>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            walk(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push((path.display().to_string(), fs::read_to_string(&path).unwrap()));
        }
    }
}

#[test]
fn every_field_error_in_the_sources_is_a_requirement() {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let mut sources = Vec::new();
    for name in ["domain", "protocol", "app", "http-kit", "presentation", "api", "web", "foretell"] {
        walk(&crates.join(name).join("src"), &mut sources);
    }
    let mut count = 0;
    for (path, source) in &sources {
        for requirement in requirements(source) {
            count += 1;
            assert!(is_requirement(requirement), "{path}: {requirement:?}");
        }
    }
    assert!(count > 60, "only {count} requirements were found");
}

#[test]
fn a_field_error_that_states_a_fact_is_found() {
    let source = "Err(AppError::field(\"/deadline\", \"is in the future\"))";
    assert_eq!(requirements(source), ["is in the future"]);
    assert!(!is_requirement("is in the future"));
}
