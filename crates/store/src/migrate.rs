//! Schema migrations.
//!
//! Each migration is one transaction that begins by inserting its own row into `schema_migrations`.
//! That row is the lock: when several processes start at once, all but one wait at the insert until
//! the first has committed. They then find that the migration is already applied.

use domain::Timestamp;
use sha2::{Digest, Sha256};

use crate::engine::dialect;
use crate::migrations::MIGRATIONS;
use crate::{Store, StoreError, Tx, params};

/// Names of the applied migrations. The limit is far above their number.
const APPLIED: &str = "SELECT name FROM schema_migrations ORDER BY name LIMIT 10000";

const TABLE: &str = "CREATE TABLE IF NOT EXISTS schema_migrations (
    name TEXT NOT NULL PRIMARY KEY,
    checksum TEXT NOT NULL,
    applied_at_ms BIGINT NOT NULL
)";

/// Attempts at creating the table. When two processes create it at the same time, PostgreSQL fails
/// one of them, with one of several errors, in spite of `IF NOT EXISTS`.
const TABLE_ATTEMPTS: usize = 5;

/// The database's schema, compared with the schema that this program knows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Schema {
    /// Both are equal.
    Current,
    /// The database lacks at least one migration.
    Older,
    /// The database has a migration that this program does not know. A newer version of the program
    /// has migrated it.
    Newer {
        /// The newest migration that is unknown to this program.
        database: String,
        /// The newest migration that this program knows.
        program: String,
    },
}

impl Store {
    /// Applies all pending migrations in order and returns their names. Safe to run from several
    /// processes at once.
    ///
    /// # Errors
    /// - `SchemaTooNew` if the database has migrations that this program does not know. Nothing is
    ///   changed.
    /// - `Driver` if a migration fails, or if an applied migration has a different text.
    pub async fn migrate(&self, now: Timestamp) -> Result<Vec<String>, StoreError> {
        if let Schema::Newer { database, program } = self.schema().await? {
            return Err(StoreError::SchemaTooNew { database, program });
        }
        apply(self, MIGRATIONS, now).await
    }

    /// Compares the database's schema with this program's. Changes nothing.
    ///
    /// # Errors
    /// `Unavailable` when the database does not answer.
    pub async fn schema(&self) -> Result<Schema, StoreError> {
        let applied = self.read((), |tx, ()| Box::pin(tx.list(APPLIED, &[], |row| row.get("name")))).await;
        match applied {
            Ok(applied) => Ok(compare(&applied)),
            // `schema_migrations` does not exist yet: the database is empty.
            Err(StoreError::Driver(_)) => Ok(Schema::Older),
            Err(error) => Err(error),
        }
    }
}

/// Returns a text that differs for each schema that the migrations make on `engine`.
#[cfg(feature = "test-support")]
pub(crate) fn fingerprint(engine: crate::engine::Engine) -> String {
    // The statements as the engine gets them, because a change of the dialect changes the schema too.
    let all = MIGRATIONS.iter().fold(Sha256::new(), |all, (name, sql)| {
        all.chain_update(name).chain_update(dialect::for_engine(engine, sql).as_bytes())
    });
    hex::encode(all.finalize())[..16].to_owned()
}

fn compare(applied: &[String]) -> Schema {
    let is_known = |name: &String| MIGRATIONS.iter().any(|(known, _)| known == name);
    let newest = MIGRATIONS.last().map(|(name, _)| *name).unwrap_or_default();
    // Tests add their own migrations. Their names do not begin with a digit and belong to no
    // version.
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

/// Applies the migrations of `migrations` that are still pending.
pub(crate) async fn apply(
    store: &Store,
    migrations: &[(&'static str, &'static str)],
    now: Timestamp,
) -> Result<Vec<String>, StoreError> {
    // A migration may run longer than the statement timeout of ordinary connections.
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

/// Applies a migration. Returns false if it was already applied.
async fn apply_one(tx: &mut Tx, migration: &Migration) -> Result<bool, StoreError> {
    let Migration { name, sql, checksum, now } = migration;
    if let Some(sql) = dialect::without_idle_timeout(tx.engine()) {
        // Maintenance connections have no statement timeout, but the idle timeout still applies.
        // Disable it, so that the server does not abort a migration whose process is slow between
        // two statements.
        tx.batch(sql).await?;
    }
    let inserted = tx
        .exec(
            "INSERT INTO schema_migrations (name, checksum, applied_at_ms) VALUES ($1, $2, $3)
             ON CONFLICT (name) DO NOTHING",
            &params![*name, checksum, *now],
        )
        .await?;
    if inserted == 1 {
        let sql = dialect::for_engine(tx.engine(), sql);
        tx.batch(&sql).await?;
        return Ok(true);
    }
    // The text of an applied migration must not change: the schemas of old and new databases would
    // differ without notice.
    let found = tx
        .find("SELECT checksum FROM schema_migrations WHERE name = $1", &params![*name], |row| {
            row.get("checksum")
        })
        .await?;
    if found.as_ref() == Some(checksum) {
        return Ok(false);
    }
    Err(StoreError::driver(format!("migration {name} was applied with another text")))
}
