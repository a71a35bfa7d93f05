//! The connection as a unit of work sees it.

use std::sync::Arc;

use domain::ids::MarketId;
use futures::future::BoxFuture;

use super::changes::{Changed, Touched};
use super::dialect::parameters_in_order;
use super::fault::{After, Fault};
use super::{Engine, Row, Value, postgres, sqlite};
use crate::StoreError;
use crate::audit_log::{self, Act, Acting};
use crate::events::{self, NewEvent};

/// A connection for the length of one unit of work: inside a transaction for a write, on its own for a read.
pub struct Tx {
    pub(super) conn: Conn,
    /// A reader's statements may not write.
    writes: bool,
    /// Set by the first failed statement. PostgreSQL takes no statement after it and SQLite would; the common rule
    /// is PostgreSQL's, so that no unit is kept on one engine and lost on the other.
    failed: Option<After>,
    touched: Touched,
    /// What is told of the unit, written when everything else of it is.
    events: Vec<NewEvent>,
    /// The actor for whom the unit runs, and what it did: written before the events.
    acting: Option<Arc<Acting>>,
    acts: Vec<Act>,
    /// The statements since a test has asked for them.
    #[cfg(test)]
    recorded: Option<Vec<Statement>>,
}

/// A statement with what was bound to it.
#[cfg(test)]
pub(crate) type Statement = (String, Vec<Value<'static>>);

pub(super) enum Conn {
    Sqlite(sqlite::Connection),
    Postgres(postgres::Connection),
}

impl Tx {
    pub(super) fn writer(conn: Conn) -> Self {
        Self {
            conn,
            writes: true,
            failed: None,
            touched: Touched::default(),
            events: Vec::new(),
            acting: None,
            acts: Vec::new(),
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
            events: Vec::new(),
            acting: None,
            acts: Vec::new(),
            #[cfg(test)]
            recorded: None,
        }
    }

    /// Which database the statements run on, for the few that cannot be common.
    pub const fn engine(&self) -> Engine {
        match self.conn {
            Conn::Sqlite(_) => Engine::Sqlite,
            Conn::Postgres(_) => Engine::Postgres,
        }
    }

    /// Runs a statement that changes rows and gives no result. Answers how many rows it inserted, updated or
    /// deleted.
    ///
    /// # Errors
    /// `Conflict` when a unique rule refuses a row, otherwise as [`StoreError`] describes.
    pub async fn exec(&mut self, sql: &'static str, params: &[Value<'_>]) -> Result<u64, StoreError> {
        self.check_write()?;
        self.check(sql, params)?;
        let done = match &mut self.conn {
            Conn::Sqlite(conn) => conn.exec(sql, params),
            Conn::Postgres(conn) => conn.exec(sql, params).await,
        };
        self.note(done)
    }

    /// Runs a statement, a query or one with `RETURNING`, and maps its first row, if there is one.
    ///
    /// # Errors
    /// As [`Tx::exec`], and what `map` answers; after an error of `map` the unit may go on.
    pub async fn find<T>(
        &mut self,
        sql: &'static str,
        params: &[Value<'_>],
        map: impl Fn(&Row<'_>) -> Result<T, StoreError>,
    ) -> Result<Option<T>, StoreError> {
        self.check(sql, params)?;
        let found = match &mut self.conn {
            Conn::Sqlite(conn) => conn.find(sql, params, &map),
            Conn::Postgres(conn) => match conn.rows(sql, params).await {
                Ok(rows) => rows.first().map(|row| map(&Row::postgres(row))).transpose().map_err(Fault::from),
                Err(fault) => Err(fault),
            },
        };
        self.note(found)
    }

    /// Runs a statement, a query or one with `RETURNING`, and maps all its rows.
    ///
    /// # Errors
    /// As [`Tx::find`]; the first row that cannot be mapped ends the list. To pass over bad rows, map to a
    /// `Result`.
    pub async fn list<T>(
        &mut self,
        sql: &'static str,
        params: &[Value<'_>],
        map: impl Fn(&Row<'_>) -> Result<T, StoreError>,
    ) -> Result<Vec<T>, StoreError> {
        self.check(sql, params)?;
        let listed = match &mut self.conn {
            Conn::Sqlite(conn) => conn.list(sql, params, &map),
            Conn::Postgres(conn) => match conn.rows(sql, params).await {
                Ok(rows) => rows.iter().map(|row| map(&Row::postgres(row)).map_err(Fault::from)).collect(),
                Err(fault) => Err(fault),
            },
        };
        self.note(listed)
    }

    /// As [`Tx::list`] for a query put together of clauses, each of them a text of this crate. Such queries come in many
    /// shapes, so PostgreSQL does not keep them.
    pub(crate) async fn list_shaped<T>(
        &mut self,
        sql: &str,
        params: &[Value<'_>],
        map: impl Fn(&Row<'_>) -> Result<T, StoreError>,
    ) -> Result<Vec<T>, StoreError> {
        self.check(sql, params)?;
        let listed = match &mut self.conn {
            Conn::Sqlite(conn) => conn.list(sql, params, &map),
            Conn::Postgres(conn) => match conn.rows_once(sql, params).await {
                Ok(rows) => rows.iter().map(|row| map(&Row::postgres(row)).map_err(Fault::from)).collect(),
                Err(fault) => Err(fault),
            },
        };
        self.note(listed)
    }

    /// Runs one statement for each of `rows` in their order, as [`Tx::exec`] would, and answers the affected rows
    /// of each. Prepared once; on PostgreSQL the rows are sent without waiting for one another.
    ///
    /// # Errors
    /// That of the first row that fails.
    pub async fn exec_each(
        &mut self,
        sql: &'static str,
        rows: &[Vec<Value<'_>>],
    ) -> Result<Vec<u64>, StoreError> {
        self.check_write()?;
        for params in rows {
            self.check(sql, params)?;
        }
        let done = match &mut self.conn {
            Conn::Sqlite(conn) => conn.exec_each(sql, rows),
            Conn::Postgres(conn) => conn.exec_each(sql, rows).await,
        };
        self.note(done)
    }

    /// Runs several statements without parameters, such as a migration.
    pub(crate) async fn batch(&mut self, sql: &str) -> Result<(), StoreError> {
        self.check_write()?;
        self.check_usable()?;
        let done = match &mut self.conn {
            Conn::Sqlite(conn) => conn.batch(sql),
            Conn::Postgres(conn) => conn.batch(sql).await,
        };
        self.note(done)
    }

    /// Notes every statement from here on.
    #[cfg(test)]
    pub(crate) fn record(&mut self) {
        self.recorded = Some(Vec::new());
    }

    /// What was noted, for once.
    #[cfg(test)]
    pub(crate) fn take_recorded(&mut self) -> Vec<Statement> {
        self.recorded.take().unwrap_or_default()
    }

    /// Makes a writer ready for its next unit.
    pub(super) fn reset(&mut self) {
        self.failed = None;
        self.touched = Touched::default();
        self.events.clear();
        self.acting = None;
        self.acts.clear();
    }

    /// Runs a unit to its end: what it does, then the events that it has left to be written.
    pub(super) async fn run<I, T, E: From<StoreError>>(
        &mut self,
        input: &I,
        unit: &impl for<'a> Fn(&'a mut Self, &'a I) -> BoxFuture<'a, Result<T, E>>,
    ) -> Result<T, E> {
        let outcome = match unit(self, input).await {
            Ok(value) => self.write_acts().await.map(|()| value).map_err(E::from),
            outcome => outcome,
        };
        let outcome = match outcome {
            Ok(value) if !self.events.is_empty() => {
                let events = std::mem::take(&mut self.events);
                self.touched.events = true;
                events::write(self, events).await.map(|()| value).map_err(E::from)
            }
            outcome => outcome,
        };
        self.settle(outcome)
    }

    /// Runs the unit for an actor from here on.
    pub(super) fn act_for(&mut self, acting: Option<Arc<Acting>>) {
        self.acting = acting;
    }

    /// Leaves an act to be written at the unit's end, if the unit runs for an actor.
    pub(crate) fn note_act(&mut self, act: Act) {
        if self.acting.is_some() {
            self.acts.push(act);
        }
    }

    async fn write_acts(&mut self) -> Result<(), StoreError> {
        match &self.acting {
            Some(acting) if !self.acts.is_empty() => {
                let (acting, acts) = (Arc::clone(acting), std::mem::take(&mut self.acts));
                audit_log::write(self, &acting, acts).await
            }
            _ => Ok(()),
        }
    }

    /// Leaves an event to be written at the unit's end, with those of its other users and in their order: so two units
    /// never wait for each other crosswise.
    pub(crate) fn emit(&mut self, event: NewEvent) {
        self.events.push(event);
    }

    /// Says that something is to be sent at once, although no event is new.
    pub(crate) const fn wake_senders(&mut self) {
        self.touched.events = true;
    }

    /// Says that this unit changes what is shown of markets, of which nobody knows: once it is kept, what was read of any
    /// before is old.
    pub fn mark_markets_changed(&mut self) {
        self.touched.markets = Changed::Any;
    }

    /// Says that this unit changes what is shown of one market: once it is kept, what was read of it before is old.
    pub fn mark_market_changed(&mut self, id: MarketId) {
        self.touched.markets.add_one(id);
    }

    /// What the unit has changed, for once.
    pub(super) fn take_touched(&mut self) -> Touched {
        std::mem::take(&mut self.touched)
    }

    /// What the first failed statement left possible, if one failed.
    pub(super) const fn failed(&self) -> Option<After> {
        self.failed
    }

    /// A unit's own answer, unless it hides a statement that failed.
    fn settle<T, E: From<StoreError>>(&self, outcome: Result<T, E>) -> Result<T, E> {
        match outcome {
            Ok(_) if self.failed.is_some() => {
                Err(E::from(StoreError::driver("the unit answered Ok although a statement of it failed")))
            }
            outcome => outcome,
        }
    }

    fn check_usable(&self) -> Result<(), StoreError> {
        match self.failed {
            Some(_) => Err(StoreError::driver("an earlier statement of this unit failed")),
            None => Ok(()),
        }
    }

    fn check_write(&self) -> Result<(), StoreError> {
        if self.writes { Ok(()) } else { Err(StoreError::driver("a reader cannot write")) }
    }

    fn check(&mut self, sql: &str, params: &[Value<'_>]) -> Result<(), StoreError> {
        debug_assert_eq!(parameters_in_order(sql), Some(params.len()), "placeholders of {sql}");
        #[cfg(test)]
        if let Some(recorded) = &mut self.recorded {
            recorded.push((sql.to_owned(), params.iter().map(Value::to_static).collect()));
        }
        self.check_usable()?;
        params.iter().try_for_each(Value::check)
    }

    fn note<T>(&mut self, done: Result<T, Fault>) -> Result<T, StoreError> {
        done.map_err(|fault| {
            if fault.after != After::GoOn {
                self.failed = Some(fault.after);
            }
            fault.error
        })
    }
}
