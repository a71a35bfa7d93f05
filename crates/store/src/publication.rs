//! The PostgreSQL publication that streams events and movements to a data platform. `docs/streams.md`
//! documents it as a contract: the columns below are only ever added to.

use crate::audit_log::{Act, note};
use crate::{Engine, Store, StoreError, Tx, params};

/// The published tables with their columns.
pub const PUBLISHED: [(&str, &str); 2] = [
    ("events", "id, user_id, seq, kind, key_id, trade_id, body, emitted_at_ms"),
    (
        "movements",
        "id, block_number, log_index, tx_hash, kind, market_id, outcome_index, account, counterparty, usdc_atomic,
        tokens_wad, fee_atomic, cost_wad, quantity_wad, trade_id, created_at_ms, realized_pnl_usdc_atomic",
    ),
];

/// The length above which PostgreSQL would cut a name.
const MAX_NAME: usize = 63;

/// The name of a publication: a lower-case letter or an underscore, then also digits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PublicationName(String);

/// The error for a text that is not the name of a publication.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("must have 1 to 63 characters from a-z 0-9 _ and must not begin with a digit")]
pub struct InvalidPublicationName;

impl std::str::FromStr for PublicationName {
    type Err = InvalidPublicationName;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let is_word = |byte: u8| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'_');
        let begins = text.starts_with(|c: char| !c.is_ascii_digit());
        let valid = begins && text.len() <= MAX_NAME && text.bytes().all(is_word);
        if valid { Ok(Self(text.to_owned())) } else { Err(InvalidPublicationName) }
    }
}

impl std::fmt::Display for PublicationName {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

/// A publication that exists now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Published {
    /// False if it existed before. Its tables and columns are then replaced.
    pub is_new: bool,
    /// The server's `wal_level`. Only `logical` allows anything to be read.
    pub wal_level: String,
}

impl Store {
    /// Creates the publication, or gives an existing one the tables and columns of this version.
    /// Returns `None` on SQLite, which has none.
    ///
    /// # Errors
    /// `Driver` if the database's user may not create publications.
    pub async fn publish(&self, name: &PublicationName) -> Result<Option<Published>, StoreError> {
        if self.engine() == Engine::Sqlite {
            return Ok(None);
        }
        self.write(name.clone(), |tx, name| Box::pin(publish(tx, name))).await.map(Some)
    }
}

async fn publish(tx: &mut Tx, PublicationName(name): &PublicationName) -> Result<Published, StoreError> {
    const EXISTS: &str = "SELECT COUNT(*) FROM pg_publication WHERE pubname = $1";
    const LEVEL: &str = "SELECT setting FROM pg_settings WHERE name = 'wal_level'";
    let found: Option<i64> = tx.find(EXISTS, &params![name.as_str()], |row| row.only()).await?;
    let is_new = found == Some(0);
    let tables = PUBLISHED.map(|(table, columns)| format!("TABLE {table} ({columns})")).join(", ");
    // The name is safe to quote: it has only letters, digits and underscores.
    let sql = if is_new {
        format!("CREATE PUBLICATION \"{name}\" FOR {tables}")
    } else {
        format!("ALTER PUBLICATION \"{name}\" SET {tables}")
    };
    tx.batch(&sql).await?;
    note(
        tx,
        Act::new("migrate", format!("publication:{name}")).after(serde_json::json!({ "created": is_new })),
    );
    let wal_level = tx.find(LEVEL, &[], |row| row.only()).await?;
    Ok(Published { is_new, wal_level: wal_level.unwrap_or_default() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_names_that_need_no_escaping_are_accepted() {
        for good in ["foretell", "_f2", &"x".repeat(63)] {
            assert!(good.parse::<PublicationName>().is_ok(), "{good}");
        }
        for bad in ["", "2f", "Foretell", "a-b", "a\"b", "a b", "ä", &"x".repeat(64)] {
            assert_eq!(bad.parse::<PublicationName>(), Err(InvalidPublicationName), "{bad}");
        }
    }
}
