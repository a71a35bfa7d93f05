//! What differs between the engines' texts, and the rule that keeps the statements common.

use std::borrow::Cow;

use super::Engine;

/// The words that migrations write for what the engines call differently: a column of bytes, and a column of text that
/// sorts by its bytes whatever the database's collation is.
const WORDS: [(&str, &str, &str); 2] =
    [("BYTES", "BLOB", "BYTEA"), ("BYTEWISE_TEXT", "TEXT", "TEXT COLLATE \"C\"")];

/// A migration's text as `engine` reads it.
pub(crate) fn for_engine(engine: Engine, sql: &str) -> Cow<'_, str> {
    WORDS.into_iter().fold(Cow::Borrowed(sql), |sql, (word, sqlite, postgres)| {
        let own = match engine {
            Engine::Sqlite => sqlite,
            Engine::Postgres => postgres,
        };
        if sql.contains(word) { Cow::Owned(with_word(&sql, word, own)) } else { sql }
    })
}

/// `sql` with `own` for each `word` that stands alone.
fn with_word(sql: &str, word: &str, own: &str) -> String {
    let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let mut out = String::with_capacity(sql.len());
    let mut rest = sql;
    while let Some(at) = rest.find(word) {
        let end = at + word.len();
        let whole = !rest[..at].ends_with(is_word) && !rest[end..].starts_with(is_word);
        out.push_str(&rest[..at]);
        out.push_str(if whole { own } else { word });
        rest = &rest[end..];
    }
    out.push_str(rest);
    out
}

/// How many parameters `sql` takes, if its placeholders `$1..$n` are numbered in order of first appearance.
///
/// SQLite takes `$1` for a name and numbers names as they appear, PostgreSQL goes by the number: a statement that
/// breaks the rule binds different values on the two engines. Text in quotes and comments is passed over.
pub(crate) fn parameters_in_order(sql: &str) -> Option<usize> {
    let bytes = sql.as_bytes();
    let mut seen = 0;
    let mut at = 0;
    while at < bytes.len() {
        match bytes[at] {
            quote @ (b'\'' | b'"') => {
                at += 1;
                while at < bytes.len() && bytes[at] != quote {
                    at += 1;
                }
            }
            b'-' if bytes.get(at + 1) == Some(&b'-') => {
                while at < bytes.len() && bytes[at] != b'\n' {
                    at += 1;
                }
            }
            b'/' if bytes.get(at + 1) == Some(&b'*') => {
                at += 2;
                while at < bytes.len() && !bytes[at..].starts_with(b"*/") {
                    at += 1;
                }
            }
            b'$' => {
                let digits = bytes[at + 1..].iter().take_while(|b| b.is_ascii_digit()).count();
                let number: usize = sql[at + 1..at + 1 + digits].parse().ok()?;
                if number == 0 || number > seen + 1 {
                    return None;
                }
                seen = seen.max(number);
                at += digits;
            }
            b'?' => return None,
            _ => {}
        }
        at += 1;
    }
    Some(seen)
}

/// Whether the placeholders of `sql` are `$1..$n`, numbered in order of first appearance.
pub fn placeholders_in_order(sql: &str) -> bool {
    parameters_in_order(sql).is_some()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn placeholders_are_numbered_in_order_of_first_appearance() {
        for (sql, count) in [
            ("SELECT 1", Some(0)),
            ("UPDATE t SET a = $1, b = $2 WHERE c = $1 AND d = $3", Some(3)),
            ("SELECT '$9 ?', \"$8\" /* $7 */ FROM t -- $6\n WHERE a = $1", Some(1)),
            ("UPDATE t SET a = $2 WHERE b = $1", None),
            ("SELECT $1, $3", None),
            ("SELECT $0", None),
            ("SELECT $name", None),
            ("SELECT ?1", None),
        ] {
            assert_eq!(parameters_in_order(sql), count, "{sql}");
        }
    }

    #[test]
    fn the_word_for_bytes_is_each_engines_own() {
        let sql = "CREATE TABLE t (a BYTES NOT NULL, MAX_BYTES BIGINT, BYTES_USED BIGINT, b BYTES)";
        assert_eq!(
            for_engine(Engine::Sqlite, sql),
            "CREATE TABLE t (a BLOB NOT NULL, MAX_BYTES BIGINT, BYTES_USED BIGINT, b BLOB)"
        );
        assert!(for_engine(Engine::Postgres, sql).contains("a BYTEA NOT NULL"));
        let sql = "CREATE TABLE t (a BYTEWISE_TEXT NOT NULL)";
        assert_eq!(for_engine(Engine::Sqlite, sql), "CREATE TABLE t (a TEXT NOT NULL)");
        assert!(for_engine(Engine::Postgres, sql).contains("a TEXT COLLATE \"C\" NOT NULL"));
    }
}
