//! Schema migrations.
//!
//! A migration is one step, or several: an index that is built while others write is a step of its
//! own, because PostgreSQL cannot build it in a transaction. Every other step is one transaction that
//! also records the step.
//!
//! The migration's row in `schema_migrations` is the lock: when several processes start at once, all
//! but one wait for the row until the first has finished a step. They then find that the step is
//! done. The row's state is `applying` until the last step is done, then `applied`.

mod steps;

use domain::Timestamp;
use sha2::{Digest, Sha256};

use crate::engine::{IndexStep, dialect};
use crate::migrations::MIGRATIONS;
use crate::{Row, Store, StoreError, Tx, params};
use steps::Step;

/// The begun migrations. The limit is far above their number.
const BEGUN: &str = "SELECT name, state FROM schema_migrations ORDER BY name LIMIT 10000";

const TABLE: &str = "CREATE TABLE IF NOT EXISTS schema_migrations (
    name TEXT NOT NULL PRIMARY KEY,
    checksum TEXT NOT NULL,
    applied_at_ms BIGINT NOT NULL,
    state TEXT NOT NULL DEFAULT 'applied',
    steps_done BIGINT NOT NULL DEFAULT 1
)";

/// Adds the columns of a table from before migrations had steps.
const STEP_COLUMNS: &str = "ALTER TABLE schema_migrations ADD COLUMN state TEXT NOT NULL DEFAULT 'applied';
    ALTER TABLE schema_migrations ADD COLUMN steps_done BIGINT NOT NULL DEFAULT 1";

/// Attempts at creating the table. When two processes create it at the same time, PostgreSQL fails
/// one of them, with one of several errors, in spite of `IF NOT EXISTS`.
const TABLE_ATTEMPTS: usize = 5;

/// Attempts at a step whose tables are in use. Each waits for two seconds, because requests queue
/// behind a statement that waits for a table.
const STEP_ATTEMPTS: usize = 150;

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
    /// processes at once, and again after a process was killed: it continues with the step that the
    /// killed process did not finish.
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
        let begun = self.read((), |tx, ()| Box::pin(tx.list(BEGUN, &[], Begun::read))).await;
        match begun {
            Ok(begun) => Ok(compare(&begun)),
            // `schema_migrations` does not exist yet, or is from before migrations had steps.
            Err(StoreError::Driver(_)) => Ok(Schema::Older),
            Err(error) => Err(error),
        }
    }
}

/// Returns a text that differs for each schema that the migrations make on `engine`.
#[cfg(feature = "test-support")]
pub(crate) fn fingerprint(engine: crate::engine::Engine) -> String {
    // The statements as the engine gets them, because a change of the dialect changes the schema too.
    let all = MIGRATIONS.iter().fold(Sha256::new_with_prefix(TABLE), |all, (name, sql)| {
        all.chain_update(name).chain_update(dialect::for_engine(engine, sql).as_bytes())
    });
    hex::encode(all.finalize())[..16].to_owned()
}

fn compare(begun: &[Begun]) -> Schema {
    let is_known = |name: &str| MIGRATIONS.iter().any(|(known, _)| *known == name);
    let newest = MIGRATIONS.last().map(|(name, _)| *name).unwrap_or_default();
    // Tests add their own migrations. Their names do not begin with a digit and belong to no
    // version.
    let is_ours = |begun: &&Begun| begun.name.starts_with(|c: char| c.is_ascii_digit());
    if let Some(unknown) = begun.iter().filter(is_ours).rfind(|begun| !is_known(&begun.name)) {
        return Schema::Newer { database: unknown.name.clone(), program: newest.to_owned() };
    }
    let is_applied = |name: &str| begun.iter().any(|begun| begun.is_applied && begun.name == name);
    if MIGRATIONS.iter().all(|(name, _)| is_applied(name)) { Schema::Current } else { Schema::Older }
}

/// A migration that was begun.
struct Begun {
    name: String,
    is_applied: bool,
}

impl Begun {
    fn read(row: &Row<'_>) -> Result<Self, StoreError> {
        Ok(Self { name: row.get("name")?, is_applied: row.get::<String>("state")? == "applied" })
    }
}

#[derive(Clone)]
struct Migration {
    name: &'static str,
    steps: Vec<Step>,
    checksum: String,
    now: Timestamp,
}

/// Applies the migrations of `migrations` that are still pending.
pub(crate) async fn apply(
    store: &Store,
    migrations: &[(&'static str, &'static str)],
    now: Timestamp,
) -> Result<Vec<String>, StoreError> {
    apply_steps(store, migrations, now, usize::MAX).await
}

/// Like [`apply`], but stops after this number of steps, as if the process were killed.
pub(crate) async fn apply_steps(
    store: &Store,
    migrations: &[(&'static str, &'static str)],
    now: Timestamp,
    mut steps_left: usize,
) -> Result<Vec<String>, StoreError> {
    // A migration may run longer than the statement timeout of ordinary connections.
    let store = &store.for_maintenance();
    create_table(store).await?;
    let mut applied = Vec::new();
    for (name, sql) in migrations {
        let checksum = hex::encode(Sha256::digest(sql));
        let steps = steps::of(store.engine(), sql);
        let migration = Migration { name, steps, checksum, now };
        if is_begun_and_applied(store, &migration).await? {
            continue;
        }
        for number in 0..migration.steps.len() {
            if steps_left == 0 {
                return Ok(applied);
            }
            if !take_step(store, &migration, number).await? {
                continue;
            }
            steps_left -= 1;
            if number + 1 == migration.steps.len() {
                tracing::info!(migration = name, "applied");
                applied.push((*name).to_owned());
            }
        }
    }
    Ok(applied)
}

async fn create_table(store: &Store) -> Result<(), StoreError> {
    let mut attempt = 1;
    loop {
        let mut done = store.write((), |tx, ()| Box::pin(tx.batch(TABLE))).await;
        if done.is_ok() && !has_step_columns(store).await? {
            done = store.write((), |tx, ()| Box::pin(tx.batch(STEP_COLUMNS))).await;
        }
        match done {
            Err(StoreError::Conflict { .. } | StoreError::Driver(_)) if attempt < TABLE_ATTEMPTS => {
                attempt += 1
            }
            done => return done,
        }
    }
}

async fn has_step_columns(store: &Store) -> Result<bool, StoreError> {
    let found: Result<bool, StoreError> = store
        .read((), |tx, ()| {
            Box::pin(async move {
                tx.exists("SELECT state, steps_done FROM schema_migrations LIMIT 1", &[]).await
            })
        })
        .await;
    match found {
        Ok(_) => Ok(true),
        Err(StoreError::Driver(_)) => Ok(false),
        Err(error) => Err(error),
    }
}

/// Reports whether a migration is applied. Returns an error if it was begun with another text: the
/// schemas of old and new databases would differ without notice.
async fn is_begun_and_applied(store: &Store, migration: &Migration) -> Result<bool, StoreError> {
    let find = "SELECT checksum, state FROM schema_migrations WHERE name = $1";
    let found = store
        .read(migration.name, move |tx, name| {
            Box::pin(async move {
                tx.find(find, &params![*name], |row| {
                    Ok((row.get::<String>("checksum")?, row.get::<String>("state")?))
                })
                .await
            })
        })
        .await?;
    match found {
        Some((checksum, _)) if checksum != migration.checksum => {
            Err(StoreError::driver(format!("migration {} was applied with another text", migration.name)))
        }
        found => Ok(found.is_some_and(|(_, state)| state == "applied")),
    }
}

/// Takes step `number` of a migration. Returns false if it was already done.
async fn take_step(store: &Store, migration: &Migration, number: usize) -> Result<bool, StoreError> {
    if let Step::Index { name, sql } = &migration.steps[number] {
        if number == 0 {
            store.write(migration.clone(), |tx, migration| Box::pin(begin(tx, migration, 0))).await?;
        }
        let (claim, record) = (CLAIM, RECORD);
        let (state, number) = (state_after(migration, number), count(number)?);
        let index = IndexStep { migration: migration.name, number, state, name, sql, claim, record };
        return store.build_index(&index, STEP_ATTEMPTS).await;
    }
    let mut attempt = 1;
    loop {
        let step = (migration.clone(), number);
        match store.write(step, |tx, (migration, number)| Box::pin(run_step(tx, migration, *number))).await {
            Err(StoreError::Locked(_)) if attempt < STEP_ATTEMPTS => attempt += 1,
            done => return done,
        }
    }
}

/// Locks the migration's row if this step is the next one.
const CLAIM: &str = "SELECT steps_done FROM schema_migrations
    WHERE name = $1 AND steps_done = $2 AND state = 'applying' FOR UPDATE";

/// Records a step, if it is the next one.
const RECORD: &str = "UPDATE schema_migrations SET state = $1, steps_done = steps_done + 1
    WHERE name = $2 AND steps_done = $3 AND state = 'applying'";

async fn run_step(tx: &mut Tx, migration: &Migration, number: usize) -> Result<bool, StoreError> {
    if let Some(sql) = dialect::without_idle_timeout(tx.engine()) {
        // Maintenance connections have no statement timeout, but the idle timeout still applies.
        // Disable it, so that the server does not abort a migration whose process is slow between
        // two statements.
        tx.batch(sql).await?;
    }
    let state = state_after(migration, number);
    let is_mine = match number {
        0 => begin(tx, migration, 1).await?,
        _ => tx.exec(RECORD, &params![state, migration.name, count(number)?]).await? == 1,
    };
    if !is_mine {
        return Ok(false);
    }
    if let Some(sql) = dialect::migration_lock_timeout(tx.engine()) {
        // Only now: the wait for the row above may be as long as another process's step.
        tx.batch(sql).await?;
    }
    tx.batch(migration.steps[number].sql()).await?;
    Ok(true)
}

/// Inserts a migration's row with this number of done steps. Returns false if it exists.
async fn begin(tx: &mut Tx, migration: &Migration, done: usize) -> Result<bool, StoreError> {
    let state = if done == 0 { "applying" } else { state_after(migration, 0) };
    let inserted = tx
        .exec(
            "INSERT INTO schema_migrations (name, checksum, applied_at_ms, state, steps_done)
             VALUES ($1, $2, $3, $4, $5) ON CONFLICT (name) DO NOTHING",
            &params![migration.name, &migration.checksum, migration.now, state, count(done)?],
        )
        .await?;
    Ok(inserted == 1)
}

/// Returns the state of a migration after its step `number`.
fn state_after(migration: &Migration, number: usize) -> &'static str {
    if number + 1 == migration.steps.len() { "applied" } else { "applying" }
}

fn count(number: usize) -> Result<i64, StoreError> {
    i64::try_from(number).map_err(|_| StoreError::driver("a migration has too many steps"))
}
