//! Statements use only what poolers, and databases with the protocol of PostgreSQL, have too.

use std::fs;
use std::path::{Path, PathBuf};

/// Words that no statement may contain, as SQL writes them. The reason of each is that a session is
/// not ours behind a pooler, or that a database of several machines does not have it.
const FORBIDDEN: [&str; 15] = [
    "ADVISORY",
    "AUTOINCREMENT",
    "BIGSERIAL",
    "CURRVAL",
    "GENERATED",
    "IDENTITY",
    "LISTEN",
    "NEXTVAL",
    "NOTIFY",
    "PG_NOTIFY",
    "SEQUENCE",
    "SERIAL",
    "SETVAL",
    "SKIP LOCKED",
    "TRIGGER",
];
/// Words that only SQL writes, so that they are found in lower case too.
const ONLY_SQL: [&str; 7] =
    ["ADVISORY", "AUTOINCREMENT", "BIGSERIAL", "NEXTVAL", "PG_NOTIFY", "SETVAL", "SKIP LOCKED"];

fn files(folder: &Path, into: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            files(&path, into);
        } else if path.extension().is_some_and(|end| end == "rs" || end == "sql") {
            into.push(path);
        }
    }
}

/// Returns the string literals of Rust code, each on a line of its own.
fn literals(code: &str) -> String {
    let (mut found, mut rest) = (String::new(), code);
    while let Some(at) = rest.find(['"', '/', '\'']) {
        let from = &rest[at..];
        if from.starts_with("//") {
            rest = from.split_once('\n').map_or("", |(_, rest)| rest);
        } else if let Some(after) = from.strip_prefix("'\"'") {
            rest = after;
        } else if let Some(literal) = from.strip_prefix('"') {
            let end = end_of(literal);
            found.push_str(&literal[..end]);
            found.push('\n');
            rest = literal.get(end + 1..).unwrap_or("");
        } else {
            rest = &from[1..];
        }
    }
    found
}

/// Returns the length of a literal: the place of the first quote without a backslash.
fn end_of(literal: &str) -> usize {
    let mut is_escaped = false;
    let end = literal.bytes().position(|byte| {
        let ends = byte == b'"' && !is_escaped;
        is_escaped = byte == b'\\' && !is_escaped;
        ends
    });
    end.unwrap_or(literal.len())
}

fn without_comments(sql: &str) -> String {
    sql.lines().map(|line| line.split("--").next().unwrap_or("")).collect::<Vec<_>>().join("\n")
}

fn forbidden_in(text: &str) -> Option<&'static str> {
    let upper = text.to_uppercase();
    let is_word = |c: char| c.is_ascii_alphanumeric();
    FORBIDDEN.into_iter().find(|word| {
        let text = if ONLY_SQL.contains(word) { &upper } else { text };
        text.match_indices(word)
            .any(|(at, _)| !text[..at].ends_with(is_word) && !text[at + word.len()..].starts_with(is_word))
    })
}

fn sources() -> Vec<PathBuf> {
    let mut all = Vec::new();
    files(Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/src")), &mut all);
    all
}

#[test]
fn no_statement_needs_more_than_a_transaction() {
    let sources = sources();
    assert!(sources.len() > 100, "{} files", sources.len());
    for path in sources {
        let text = fs::read_to_string(&path).unwrap();
        let sql = match path.extension().is_some_and(|end| end == "sql") {
            true => without_comments(&text),
            false => literals(&text),
        };
        assert_eq!(forbidden_in(&sql), None, "{}", path.display());
    }
}

#[test]
fn the_search_finds_each_form() {
    for code in [
        "tx.exec(\"SELECT pg_advisory_xact_lock(1)\", &[])",
        "let sql = \"SELECT id FROM trades FOR UPDATE\n SKIP LOCKED\";",
        "let quote = '\"'; let sql = \"NOTIFY trades\";",
        "\"a \\\" LISTEN trades\"",
        "// it's\n\"CREATE TRIGGER t\"",
        "\"SELECT nextval('ids')\"",
        "\"id BIGINT GENERATED ALWAYS AS IDENTITY\"",
    ] {
        assert!(forbidden_in(&literals(code)).is_some(), "{code}");
    }
    for code in ["// LISTEN", "let listen = Notify::new();", "\"SELECT sequence_number FROM notify_log\""] {
        assert_eq!(forbidden_in(&literals(code)), None, "{code}");
    }
    assert_eq!(forbidden_in(&without_comments("-- a SEQUENCE\nCREATE TABLE t (id TEXT)")), None);
}

/// The last migration from before indexes were built while others write.
const BEFORE_STEPS: &str = "0149";

#[test]
fn an_index_on_an_existing_table_is_built_while_others_write() {
    for path in sources().into_iter().filter(|path| path.extension().is_some_and(|end| end == "sql")) {
        if path.file_name().is_some_and(|name| name.to_string_lossy().as_ref() < BEFORE_STEPS) {
            continue;
        }
        let sql = without_comments(&fs::read_to_string(&path).unwrap());
        for index in sql.split("INDEX ").skip(1).filter(|index| !index.starts_with("CONCURRENTLY ")) {
            let Some((_, table)) = index.split_once(" ON ") else { continue };
            let table = table.split([' ', '(']).next().unwrap_or("");
            let creates = format!("CREATE TABLE {table} ");
            assert!(sql.contains(&creates), "{}: CREATE INDEX CONCURRENTLY on {table}", path.display());
        }
    }
}
