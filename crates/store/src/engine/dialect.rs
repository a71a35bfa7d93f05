//! Differences between the engines' SQL dialects, and the placeholder rule that makes statements
//! portable.

use std::borrow::Cow;

use super::Engine;

/// Words used in migrations for types that the engines name differently: bytes, and text that sorts
/// by its bytes whatever the database's collation is.
const WORDS: [(&str, &str, &str); 2] =
    [("BYTES", "BLOB", "BYTEA"), ("BYTEWISE_TEXT", "TEXT", "TEXT COLLATE \"C\"")];

/// Translates a migration to the dialect of `engine`.
pub(crate) fn for_engine(engine: Engine, sql: &str) -> Cow<'_, str> {
    WORDS.into_iter().fold(Cow::Borrowed(sql), |sql, (word, sqlite, postgres)| {
        let own = match engine {
            Engine::Sqlite => sqlite,
            Engine::Postgres => postgres,
        };
        if sql.contains(word) { Cow::Owned(with_word(&sql, word, own)) } else { sql }
    })
}

/// Replaces each occurrence of `word` in `sql` that is a whole word.
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

/// Returns the sign in front of a sort column that keeps SQLite from walking the column's index.
///
/// SQLite has no statistics about the size of a selection. It would walk the index of the sort key
/// over the whole table to find a few rows that another index finds directly.
pub(crate) const fn ignoring_index(engine: Engine) -> &'static str {
    match engine {
        Engine::Sqlite => "+",
        Engine::Postgres => "",
    }
}

/// Reports whether each branch of a sorted `UNION ALL` needs its own `LIMIT`. SQLite merges the
/// branches lazily. PostgreSQL would sort all their rows.
pub(crate) const fn limits_branches(engine: Engine) -> bool {
    matches!(engine, Engine::Postgres)
}

/// Reports whether a query can lock the rows that it returns. SQLite has only one writer.
pub(crate) const fn locks_rows(engine: Engine) -> bool {
    matches!(engine, Engine::Postgres)
}

/// Returns the statement that disables the idle timeout of a transaction, if the engine has one.
pub(crate) const fn without_idle_timeout(engine: Engine) -> Option<&'static str> {
    match engine {
        Engine::Sqlite => None,
        Engine::Postgres => Some("SET LOCAL idle_in_transaction_session_timeout = 0"),
    }
}

/// Returns the statement that limits how long a migration's transaction waits for a table, if others
/// queue behind it meanwhile.
pub(crate) const fn migration_lock_timeout(engine: Engine) -> Option<&'static str> {
    match engine {
        Engine::Sqlite => None,
        Engine::Postgres => Some("SET LOCAL lock_timeout = 2000"),
    }
}

/// The SQL of generated test data.
#[cfg(feature = "test-support")]
pub(crate) mod sized {
    use super::Engine;

    /// Returns the statement that refreshes the statistics, if the engine plans with them.
    pub(crate) const fn analyze(engine: Engine) -> Option<&'static str> {
        match engine {
            Engine::Sqlite => None,
            Engine::Postgres => Some("ANALYZE"),
        }
    }

    /// Returns the statement that disables the checks of foreign keys in a transaction, if they are
    /// slow.
    pub(crate) const fn without_reference_checks(engine: Engine) -> Option<&'static str> {
        match engine {
            Engine::Sqlite => None,
            Engine::Postgres => Some("SET LOCAL session_replication_role = replica"),
        }
    }

    /// Returns SQL that formats a number with leading zeros.
    pub(crate) fn digits(engine: Engine, number: &str, width: u32) -> String {
        match engine {
            Engine::Sqlite => format!("printf('%0{width}d', {number})"),
            Engine::Postgres => format!("LPAD(CAST({number} AS TEXT), {width}, '0')"),
        }
    }

    /// Returns SQL that formats a number as `0x` and hexadecimal digits with leading zeros.
    pub(crate) fn hex(engine: Engine, number: &str, width: u32) -> String {
        match engine {
            Engine::Sqlite => format!("printf('0x%0{width}x', {number})"),
            Engine::Postgres => format!("'0x' || LPAD(TO_HEX({number}), {width}, '0')"),
        }
    }

    /// Returns a query of the `name` of each index of `movements` and the `sql` that creates it.
    pub(crate) const fn indexes_of_movements(engine: Engine) -> &'static str {
        match engine {
            Engine::Sqlite => {
                "SELECT name, sql FROM sqlite_master WHERE type = 'index' AND tbl_name = 'movements' AND sql IS NOT NULL"
            }
            Engine::Postgres => {
                "SELECT CAST(indexname AS TEXT) AS name, indexdef AS sql FROM pg_indexes WHERE tablename = 'movements'
                AND indexname <> 'movements_pkey' AND schemaname = current_schema()"
            }
        }
    }
}

/// Returns the number of parameters of `sql` if its placeholders `$1..$n` are numbered in order of
/// first appearance.
///
/// SQLite treats `$1` as a name and numbers names as they appear, while PostgreSQL uses the number.
/// A statement that breaks the rule would bind different values on the two engines. Quoted text and
/// comments are ignored.
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

/// Reports whether the placeholders of `sql` are `$1..$n`, numbered in order of first appearance.
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
    fn each_engine_has_its_own_type_for_bytes() {
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
