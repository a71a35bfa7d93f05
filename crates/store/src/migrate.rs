//! Bringing the schema about.
//!
//! Each migration is one transaction that begins by inserting its own row into `schema_migrations`. Of several
//! processes that start at once, all but one wait at that insert until the first has committed, and then find the
//! migration applied: the row is the lock.

use domain::Timestamp;
use sha2::{Digest, Sha256};

use crate::engine::{Engine, for_engine};
use crate::migrations::MIGRATIONS;
use crate::{Store, StoreError, Tx, params};

/// Names of the applied migrations; there are far fewer than the limit.
const APPLIED: &str = "SELECT name FROM schema_migrations ORDER BY name LIMIT 10000";

const TABLE: &str = "CREATE TABLE IF NOT EXISTS schema_migrations (
    name TEXT NOT NULL PRIMARY KEY,
    checksum TEXT NOT NULL,
    applied_at_ms BIGINT NOT NULL
)";

/// How often the table is asked for: PostgreSQL refuses one of two that create it at the same instant, in more than
/// one way.
const TABLE_ATTEMPTS: usize = 5;

/// How the database's schema compares with the one that this program knows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Schema {
    /// Both are the same.
    Current,
    /// The database lacks migrations.
    Older,
    /// The database has a migration that this program does not know: a newer version of the program has migrated it.
    Newer {
        /// The newest such migration.
        database: String,
        /// The newest migration that this program knows.
        program: String,
    },
}

impl Store {
    /// Applies the migrations that are not applied yet, in their order, and returns their names. Safe to run from
    /// several processes at once.
    ///
    /// # Errors
    /// `SchemaTooNew`, before anything is changed, if the database has migrations that this program does not know.
    /// `Driver` when a migration fails or was applied with another text.
    pub async fn migrate(&self, now: Timestamp) -> Result<Vec<String>, StoreError> {
        if let Schema::Newer { database, program } = self.schema().await? {
            return Err(StoreError::SchemaTooNew { database, program });
        }
        apply(self, MIGRATIONS, now).await
    }

    /// How the database's schema compares with this program's. Changes nothing.
    ///
    /// # Errors
    /// `Unavailable` when the database does not answer.
    pub async fn schema(&self) -> Result<Schema, StoreError> {
        let applied: Result<Vec<String>, StoreError> =
            self.read((), |tx, ()| Box::pin(tx.list(APPLIED, &[], |row| row.text(0)))).await;
        match applied {
            Ok(applied) => Ok(compare(&applied)),
            // The table is not there.
            Err(StoreError::Driver(_)) => Ok(Schema::Older),
            Err(error) => Err(error),
        }
    }
}

fn compare(applied: &[String]) -> Schema {
    let is_known = |name: &String| MIGRATIONS.iter().any(|(known, _)| known == name);
    let newest = MIGRATIONS.last().map(|(name, _)| *name).unwrap_or_default();
    // Tests add tables of their own, which belong to no version.
    let is_ours = |name: &&String| name.starts_with(|c: char| c.is_ascii_digit());
    if let Some(unknown) = applied.iter().filter(is_ours).rfind(|name| !is_known(name)) {
        return Schema::Newer { database: unknown.clone(), program: newest.to_owned() };
    }
    let is_applied = |name: &str| applied.iter().any(|applied| applied == name);
    if MIGRATIONS.iter().all(|(name, _)| is_applied(name)) { Schema::Current } else { Schema::Older }
}

struct Migration {
    name: &'static str,
    sql: &'static str,
    checksum: String,
    now: Timestamp,
}

/// Applies those of `migrations` that are not applied yet.
pub(crate) async fn apply(
    store: &Store,
    migrations: &[(&'static str, &'static str)],
    now: Timestamp,
) -> Result<Vec<String>, StoreError> {
    let store = &store.for_maintenance();
    create_table(store).await?;
    let mut applied = Vec::new();
    for (name, sql) in migrations {
        let checksum = hex::encode(Sha256::digest(sql));
        let migration = Migration { name, sql, checksum, now };
        if store.write(migration, |tx, migration| Box::pin(apply_one(tx, migration))).await? {
            tracing::info!(migration = name, "applied");
            applied.push((*name).to_owned());
        }
    }
    Ok(applied)
}

async fn create_table(store: &Store) -> Result<(), StoreError> {
    let mut attempt = 1;
    loop {
        match store.write((), |tx, ()| Box::pin(tx.batch(TABLE))).await {
            Err(StoreError::Conflict { .. } | StoreError::Driver(_)) if attempt < TABLE_ATTEMPTS => {
                attempt += 1
            }
            done => return done,
        }
    }
}

/// Whether the migration was applied now.
async fn apply_one(tx: &mut Tx, migration: &Migration) -> Result<bool, StoreError> {
    let Migration { name, sql, checksum, now } = migration;
    if tx.engine() == Engine::Postgres {
        tx.batch("SET LOCAL idle_in_transaction_session_timeout = 0").await?;
    }
    let inserted = tx
        .exec(
            "INSERT INTO schema_migrations (name, checksum, applied_at_ms) VALUES ($1, $2, $3)
             ON CONFLICT (name) DO NOTHING",
            &params![*name, checksum, *now],
        )
        .await?;
    if inserted == 1 {
        let sql = for_engine(tx.engine(), sql);
        tx.batch(&sql).await?;
        return Ok(true);
    }
    let found = tx
        .find("SELECT checksum FROM schema_migrations WHERE name = $1", &params![*name], |row| row.text(0))
        .await?;
    if found.as_ref() == Some(checksum) {
        return Ok(false);
    }
    Err(StoreError::driver(format!("migration {name} was applied with another text")))
}
