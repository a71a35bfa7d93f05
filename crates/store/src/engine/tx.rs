//! The connection that a unit of work uses.

use std::sync::Arc;

use domain::ids::MarketId;
use futures::FutureExt;
use futures::future::BoxFuture;

use super::changes::{Changed, Touched};
use super::dialect::parameters_in_order;
use super::erased::Erased;
use super::fault::{After, EngineFault};
use super::rows::{RowsStatement, translate};
use super::{Engine, Row, SqlValue, postgres, sqlite};
use crate::act::Act;
use crate::new_event::NewEvent;
use crate::{StoreError, TradeMove};

/// A connection for one unit of work: inside a transaction for a write, without one for a read.
pub struct Tx {
    pub(super) conn: Conn,
    /// False for a reader, whose statements must not write.
    writes: bool,
    /// Set by the first failed statement. After a failure PostgreSQL rejects further statements,
    /// while SQLite would accept them. The common rule is PostgreSQL's, so that a unit never
    /// commits on only one engine.
    failed: Option<After>,
    touched: Touched,
    /// The actions and events of the unit, to be written at its end.
    acts: Vec<Act>,
    events: Vec<NewEvent>,
    /// The statements recorded since a test asked for it.
    #[cfg(test)]
    recorded: Option<Vec<Statement>>,
}

/// A query over many rows, one of several that run together: see [`Tx::read_rows`].
pub(crate) struct RowsRead<'a> {
    sql: &'static str,
    rows: Vec<Vec<SqlValue<'a>>>,
    shared: Vec<SqlValue<'a>>,
    take: TakeRow<'a>,
}

type TakeRow<'a> = Box<dyn FnMut(&Row<'_>) -> Result<(), StoreError> + Send + 'a>;

impl<'a> RowsRead<'a> {
    /// `sql` is a query, or a statement with `RETURNING`. `take` is called with each row of its
    /// result.
    pub(crate) fn new(
        sql: &'static str,
        rows: Vec<Vec<SqlValue<'a>>>,
        take: impl FnMut(&Row<'_>) -> Result<(), StoreError> + Send + 'a,
    ) -> Self {
        Self { sql, rows, shared: Vec::new(), take: Box::new(take) }
    }

    /// Adds values for the placeholders after those of the rows.
    #[must_use]
    pub(crate) fn shared(self, shared: Vec<SqlValue<'a>>) -> Self {
        Self { shared, ..self }
    }
}

/// A statement and its bound values.
#[cfg(test)]
pub(crate) type Statement = (String, Vec<SqlValue<'static>>);

pub(super) enum Conn {
    Sqlite(sqlite::SqliteConnection),
    Postgres(Erased<postgres::PooledConnection>),
}

impl Tx {
    pub(super) fn writer(conn: Conn) -> Self {
        Self {
            conn,
            writes: true,
            failed: None,
            touched: Touched::default(),
            acts: Vec::new(),
            events: Vec::new(),
            #[cfg(test)]
            recorded: None,
        }
    }

    pub(super) fn reader(conn: Conn) -> Self {
        Self {
            conn,
            writes: false,
            failed: None,
            touched: Touched::default(),
            acts: Vec::new(),
            events: Vec::new(),
            #[cfg(test)]
            recorded: None,
        }
    }

    /// The database engine, for the few statements that cannot be portable.
    pub const fn engine(&self) -> Engine {
        match self.conn {
            Conn::Sqlite(_) => Engine::Sqlite,
            Conn::Postgres(_) => Engine::Postgres,
        }
    }

    /// Runs a statement that changes rows and returns none. Returns the number of affected rows.
    ///
    /// # Errors
    /// `Conflict` if a unique constraint rejects a row, otherwise see [`StoreError`].
    pub async fn exec(&mut self, sql: &'static str, params: &[SqlValue<'_>]) -> Result<u64, StoreError> {
        self.check_write()?;
        self.check(sql, params)?;
        let done = match &mut self.conn {
            Conn::Sqlite(conn) => conn.exec(sql, params),
            Conn::Postgres(conn) => conn.exec(sql, params).boxed().await,
        };
        self.note(done)
    }

    /// Runs a query, or a statement with `RETURNING`, and maps its first row if there is one.
    ///
    /// # Errors
    /// The same as [`Tx::exec`], and errors of `map`. After an error of `map` the unit may
    /// continue.
    pub async fn find<T>(
        &mut self,
        sql: &'static str,
        params: &[SqlValue<'_>],
        map: impl Fn(&Row<'_>) -> Result<T, StoreError>,
    ) -> Result<Option<T>, StoreError> {
        self.check(sql, params)?;
        let found = match &mut self.conn {
            Conn::Sqlite(conn) => conn.find(sql, params, &map),
            Conn::Postgres(conn) => match conn.rows(sql, params).boxed().await {
                Ok(rows) => {
                    rows.first().map(|row| map(&Row::postgres(row))).transpose().map_err(EngineFault::from)
                }
                Err(fault) => Err(fault),
            },
        };
        self.note(found)
    }

    /// Reports whether a query finds a row.
    ///
    /// # Errors
    /// The same as [`Tx::find`].
    pub async fn exists(&mut self, sql: &'static str, params: &[SqlValue<'_>]) -> Result<bool, StoreError> {
        Ok(self.find(sql, params, |_| Ok(())).await?.is_some())
    }

    /// Runs a query, or a statement with `RETURNING`, and maps all its rows.
    ///
    /// # Errors
    /// The same as [`Tx::find`]. The first row that cannot be mapped fails the whole list. To skip
    /// such rows, map to a `Result`.
    pub async fn list<T>(
        &mut self,
        sql: &'static str,
        params: &[SqlValue<'_>],
        map: impl Fn(&Row<'_>) -> Result<T, StoreError>,
    ) -> Result<Vec<T>, StoreError> {
        self.check(sql, params)?;
        let listed = match &mut self.conn {
            Conn::Sqlite(conn) => conn.list(sql, params, &map),
            Conn::Postgres(conn) => match conn.rows(sql, params).boxed().await {
                Ok(rows) => {
                    rows.iter().map(|row| map(&Row::postgres(row)).map_err(EngineFault::from)).collect()
                }
                Err(fault) => Err(fault),
            },
        };
        self.note(listed)
    }

    /// Like [`Tx::list`], for a query composed of clauses that are all constants of this crate.
    /// Such queries have many variants, so PostgreSQL does not cache their prepared statements.
    pub(crate) async fn list_shaped<T>(
        &mut self,
        sql: &str,
        params: &[SqlValue<'_>],
        map: impl Fn(&Row<'_>) -> Result<T, StoreError>,
    ) -> Result<Vec<T>, StoreError> {
        self.check(sql, params)?;
        let listed = match &mut self.conn {
            Conn::Sqlite(conn) => conn.list(sql, params, &map),
            Conn::Postgres(conn) => match conn.rows_once(sql, params).boxed().await {
                Ok(rows) => {
                    rows.iter().map(|row| map(&Row::postgres(row)).map_err(EngineFault::from)).collect()
                }
                Err(fault) => Err(fault),
            },
        };
        self.note(listed)
    }

    /// Runs one statement for each of `rows` in order, and returns the number of affected rows of
    /// each. The statement is prepared once. On PostgreSQL rows are sent without waiting for each
    /// other.
    ///
    /// # Errors
    /// The error of the first row that fails.
    pub async fn exec_each(
        &mut self,
        sql: &'static str,
        rows: &[Vec<SqlValue<'_>>],
    ) -> Result<Vec<u64>, StoreError> {
        self.check_write()?;
        for params in rows {
            self.check(sql, params)?;
        }
        let done = match &mut self.conn {
            Conn::Sqlite(conn) => conn.exec_each(sql, rows),
            Conn::Postgres(conn) => conn.exec_each(sql, rows).boxed().await,
        };
        self.note(done)
    }

    /// Runs one statement for each of `rows` in order. On PostgreSQL they are sent later: together
    /// with the next statement whose result is needed, or with the COMMIT. Their failure is then the
    /// failure of that statement, or of the unit.
    ///
    /// # Errors
    /// The same as [`Tx::exec_each`], on SQLite.
    pub async fn queue_each(
        &mut self,
        sql: &'static str,
        rows: Vec<Vec<SqlValue<'_>>>,
    ) -> Result<(), StoreError> {
        self.check_write()?;
        for params in &rows {
            self.check(sql, params)?;
        }
        let done = match &mut self.conn {
            Conn::Sqlite(conn) => conn.exec_each(sql, &rows).map(drop),
            Conn::Postgres(conn) => conn.queue_each(sql, rows).boxed().await,
        };
        self.note(done)
    }

    /// Like [`Tx::exec_rows`], but sent later: see [`Tx::queue_each`].
    ///
    /// # Errors
    /// The same as [`Tx::exec_rows`], on SQLite.
    pub async fn queue_rows(
        &mut self,
        sql: &'static str,
        rows: Vec<Vec<SqlValue<'_>>>,
    ) -> Result<(), StoreError> {
        self.check_write()?;
        let statement = self.check_rows(sql, &rows, &[])?;
        let done = match &mut self.conn {
            Conn::Sqlite(conn) => conn.exec_each(&statement.single, &rows).map(drop),
            Conn::Postgres(conn) => conn.queue_rows(&statement, rows, &[]).boxed().await,
        };
        self.note(done)
    }

    /// Runs a statement that reads its rows from `ROWS($1 TEXT, $2 BIGINT) AS x(id, amount)`, and
    /// returns the number of affected rows. The driver runs it once for all rows, or once for each.
    /// No two rows may therefore name the same row of the written table, and none may depend on the
    /// effect of another.
    ///
    /// # Errors
    /// `Driver` if a row does not fit the placeholders, otherwise the same as [`Tx::exec`].
    pub async fn exec_rows(
        &mut self,
        sql: &'static str,
        rows: Vec<Vec<SqlValue<'_>>>,
    ) -> Result<u64, StoreError> {
        self.check_write()?;
        let statement = self.check_rows(sql, &rows, &[])?;
        let done = match &mut self.conn {
            Conn::Sqlite(conn) => conn.exec_each(&statement.single, &rows).map(|done| done.iter().sum()),
            Conn::Postgres(conn) => conn.exec_rows(&statement, rows, &[]).boxed().await,
        };
        self.note(done)
    }

    /// Like [`Tx::exec_rows`], for a query or a statement with `RETURNING`. Maps all rows of the
    /// result, in no particular order.
    ///
    /// # Errors
    /// The same as [`Tx::exec_rows`] and [`Tx::list`].
    pub async fn list_rows<T: Send>(
        &mut self,
        sql: &'static str,
        rows: Vec<Vec<SqlValue<'_>>>,
        map: impl Fn(&Row<'_>) -> Result<T, StoreError> + Send,
    ) -> Result<Vec<T>, StoreError> {
        let mut listed = Vec::with_capacity(rows.len());
        let into = &mut listed;
        let take = move |row: &Row<'_>| {
            into.push(map(row)?);
            Ok(())
        };
        self.read_rows(vec![RowsRead::new(sql, rows, take)]).await?;
        Ok(listed)
    }

    /// Runs several queries over many rows, in order. On PostgreSQL they are sent together, so all
    /// of them cost one round trip. Each sees what was committed when it began to run.
    ///
    /// # Errors
    /// The same as [`Tx::list_rows`].
    pub(crate) async fn read_rows(&mut self, reads: Vec<RowsRead<'_>>) -> Result<(), StoreError> {
        let mut statements = Vec::with_capacity(reads.len());
        for read in &reads {
            statements.push(self.check_rows(read.sql, &read.rows, &read.shared)?);
        }
        let done = match &mut self.conn {
            Conn::Sqlite(conn) => read_on_sqlite(conn, reads, &statements),
            Conn::Postgres(conn) => read_on_postgres(conn, reads, &statements).boxed().await,
        };
        self.note(done)
    }

    fn check_rows(
        &mut self,
        sql: &'static str,
        rows: &[Vec<SqlValue<'_>>],
        shared: &[SqlValue<'_>],
    ) -> Result<Arc<RowsStatement>, StoreError> {
        let statement = translate(self.engine(), sql)?;
        debug_assert_eq!(
            parameters_in_order(sql),
            Some(statement.columns.len() + shared.len()),
            "placeholders of {sql}"
        );
        self.check_usable()?;
        statement.check(rows)?;
        rows.iter().flatten().chain(shared).try_for_each(SqlValue::check)?;
        #[cfg(test)]
        if let Some(recorded) = &mut self.recorded {
            for row in rows {
                let values = row.iter().chain(shared).map(SqlValue::to_static);
                recorded.push((statement.single.clone(), values.collect()));
            }
        }
        Ok(statement)
    }

    /// Runs several statements without parameters, such as a migration.
    pub(crate) async fn batch(&mut self, sql: &str) -> Result<(), StoreError> {
        self.check_write()?;
        self.check_usable()?;
        let done = match &mut self.conn {
            Conn::Sqlite(conn) => conn.batch(sql),
            Conn::Postgres(conn) => conn.batch(sql).boxed().await,
        };
        self.note(done)
    }

    /// Starts recording statements.
    #[cfg(test)]
    pub(crate) fn record(&mut self) {
        self.recorded = Some(Vec::new());
    }

    /// Returns the recorded statements and stops recording.
    #[cfg(test)]
    pub(crate) fn take_recorded(&mut self) -> Vec<Statement> {
        self.recorded.take().unwrap_or_default()
    }

    /// Resets the state for the next unit.
    pub(super) fn reset(&mut self) {
        self.failed = None;
        self.touched = Touched::default();
        self.acts.clear();
        self.events.clear();
    }

    /// Runs a unit, and fails it if it ignored a failed statement.
    pub(super) async fn run<I, T, E: From<StoreError>>(
        &mut self,
        input: &I,
        unit: &impl for<'a> Fn(&'a mut Self, &'a I) -> BoxFuture<'a, Result<T, E>>,
    ) -> Result<T, E> {
        let outcome = unit(self, input).await;
        self.settle(outcome)
    }

    /// Adds an action to be logged at the end of the unit, if the unit runs for an actor.
    pub(crate) fn note_act(&mut self, act: Act) {
        self.acts.push(act);
    }

    /// Takes the unit's actions.
    pub(crate) fn take_acts(&mut self) -> Vec<Act> {
        std::mem::take(&mut self.acts)
    }

    /// Adds an event to be written at the end of the unit. All events of a unit are written
    /// together, in an order of users that is the same in every unit, so that units cannot
    /// deadlock.
    pub(crate) fn emit(&mut self, event: NewEvent) {
        self.events.push(event);
    }

    /// Takes the unit's events.
    pub(crate) fn take_events(&mut self) -> Vec<NewEvent> {
        std::mem::take(&mut self.events)
    }

    /// Wakes the senders of webhooks and streams after this unit, although it writes no new event.
    pub(crate) const fn wake_senders(&mut self) {
        self.touched.events = true;
    }

    /// Marks the data of all markets as changed, because the unit does not know which it affects.
    /// Caches of any market are stale once the unit is committed.
    pub fn mark_markets_changed(&mut self) {
        self.touched.markets = Changed::Any;
    }

    /// Marks the data of one market as changed. Caches of this market are stale once the unit is
    /// committed.
    pub fn mark_market_changed(&mut self, id: MarketId) {
        self.touched.markets.add_one(id);
    }

    /// Reports a trade's new state after the commit.
    pub(crate) fn note_trade(&mut self, moved: TradeMove) {
        self.touched.trades.push(moved);
    }

    /// Takes the unit's changes.
    pub(super) fn take_touched(&mut self) -> Touched {
        std::mem::take(&mut self.touched)
    }

    /// The effect of the first failed statement, if any.
    pub(super) const fn failed(&self) -> Option<After> {
        self.failed
    }

    /// Returns the unit's result, or an error if the unit ignored a failed statement or has an event
    /// that nothing writes.
    fn settle<T, E: From<StoreError>>(&self, outcome: Result<T, E>) -> Result<T, E> {
        match outcome {
            Ok(_) if self.failed.is_some() => {
                Err(E::from(StoreError::driver("the unit answered Ok although a statement of it failed")))
            }
            Ok(_) if !self.events.is_empty() => {
                Err(E::from(StoreError::driver("a reader cannot write events")))
            }
            outcome => outcome,
        }
    }

    fn check_usable(&self) -> Result<(), StoreError> {
        match self.failed {
            // PostgreSQL would reject the statement anyway, but SQLite would run it.
            Some(_) => Err(StoreError::driver("an earlier statement of this unit failed")),
            None => Ok(()),
        }
    }

    fn check_write(&self) -> Result<(), StoreError> {
        if self.writes { Ok(()) } else { Err(StoreError::driver("a reader cannot write")) }
    }

    fn check(&mut self, sql: &str, params: &[SqlValue<'_>]) -> Result<(), StoreError> {
        // A debug assertion, because it parses the whole statement.
        debug_assert_eq!(parameters_in_order(sql), Some(params.len()), "placeholders of {sql}");
        #[cfg(test)]
        if let Some(recorded) = &mut self.recorded {
            recorded.push((sql.to_owned(), params.iter().map(SqlValue::to_static).collect()));
        }
        self.check_usable()?;
        params.iter().try_for_each(SqlValue::check)
    }

    fn note<T>(&mut self, done: Result<T, EngineFault>) -> Result<T, StoreError> {
        done.map_err(|fault| {
            // A row that cannot be mapped does not fail the transaction.
            if fault.after != After::GoOn {
                self.failed = Some(fault.after);
            }
            fault.error
        })
    }
}

fn read_on_sqlite(
    conn: &mut sqlite::SqliteConnection,
    reads: Vec<RowsRead<'_>>,
    statements: &[Arc<RowsStatement>],
) -> Result<(), EngineFault> {
    for (mut read, statement) in reads.into_iter().zip(statements) {
        for mut row in read.rows {
            row.extend(read.shared.iter().map(SqlValue::from));
            conn.for_each(&statement.single, &row, &mut read.take)?;
        }
    }
    Ok(())
}

async fn read_on_postgres(
    conn: &mut postgres::PooledConnection,
    reads: Vec<RowsRead<'_>>,
    statements: &[Arc<RowsStatement>],
) -> Result<(), EngineFault> {
    let mut queries = Vec::with_capacity(reads.len());
    let mut takers = Vec::with_capacity(reads.len());
    for (read, statement) in reads.into_iter().zip(statements) {
        queries.push((statement.as_ref(), read.rows, read.shared));
        takers.push(read.take);
    }
    for (rows, mut take) in conn.query_rows(queries).await?.into_iter().zip(takers) {
        rows.iter().try_for_each(|row| take(&Row::postgres(row)))?;
    }
    Ok(())
}
