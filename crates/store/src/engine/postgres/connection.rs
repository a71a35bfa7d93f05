//! A pooled PostgreSQL connection and the statements that run on it.

use std::borrow::Cow;
use std::mem;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use deadpool_postgres::Object;
use futures::TryStreamExt;
use futures::future::{BoxFuture, join, join_all};
use tokio_postgres::error::Severity;
use tokio_postgres::{Error, Row, RowStream, Statement};

use super::super::SqlValue;
use super::super::fault::{After, EngineFault};
use super::super::rows::RowsStatement;
use super::fault::{fault, hung, no_connection};
use super::options::Statements;
use super::pools::Sessions;
use super::statement::{Answer, Bound, Param, Wanted};
use crate::StoreError;

/// The number of statements sent before their results are awaited. Bounds the memory of a large
/// batch.
const PIPELINE: usize = 256;

/// The number of rows up to which single statements are cheaper than one statement with arrays.
const FEW_ROWS: usize = 2;

/// A connection from the pool. Returned to the pool when dropped, unless a transaction is open or
/// the connection hangs.
pub(crate) struct PooledConnection {
    /// `None` only during drop.
    pooled: Option<Object>,
    /// The statement that begins the transaction, until it is sent together with the first others.
    begin: Option<Arc<str>>,
    in_transaction: bool,
    /// The statements whose results nobody needs. They are sent together with the next others.
    queued: Vec<Bound<'static>>,
    /// Set if a result is still outstanding. The next user of the connection would read it as the
    /// result of its own statement.
    is_hung: bool,
    answer_timeout: Option<Duration>,
    statements: Statements,
}

impl Drop for PooledConnection {
    fn drop(&mut self) {
        if (self.in_transaction || self.is_hung)
            && let Some(pooled) = self.pooled.take()
        {
            // Remove the connection from the pool and close it, so that the next user does not
            // continue this transaction.
            drop(Object::take(pooled));
        }
    }
}

impl PooledConnection {
    /// Returns a connection outside of any transaction.
    pub(super) async fn get(sessions: &Sessions) -> Result<Self, StoreError> {
        let pooled = sessions.pool.get().await.map_err(no_connection)?;
        sessions.checkouts.fetch_add(1, Ordering::Relaxed);
        Ok(Self {
            pooled: Some(pooled),
            begin: None,
            in_transaction: false,
            queued: Vec::new(),
            is_hung: false,
            answer_timeout: sessions.answer_timeout,
            statements: sessions.statements,
        })
    }

    /// Closes the connection instead of returning it to the pool.
    pub(super) fn discard(mut self) {
        drop(self.pooled.take().map(Object::take));
    }

    /// Returns a connection whose first statement begins a transaction.
    pub(super) async fn begin(sessions: &Sessions, begin: Arc<str>) -> Result<Self, StoreError> {
        let mut conn = Self::get(sessions).await?;
        conn.begin = Some(begin);
        Ok(conn)
    }

    /// Returns a connection in a new transaction. Skips connections that broke while they were
    /// idle.
    pub(super) async fn begun(sessions: &Sessions) -> Result<Self, StoreError> {
        let mut may_be_broken = sessions.pool.status().max_size;
        loop {
            let mut conn = Self::begin(sessions, Arc::clone(&sessions.begin)).await?;
            match conn.send(Vec::new()).await {
                Ok(_) => return Ok(conn),
                Err(EngineFault { after: After::Lost, .. }) if may_be_broken > 0 => may_be_broken -= 1,
                Err(fault) => return Err(fault.error),
            }
        }
    }

    /// Reports whether the transaction has not begun: the connection may have been broken while it
    /// was idle, which is no failed attempt at running the unit.
    pub(super) const fn is_unused(&self) -> bool {
        self.begin.is_some()
    }

    /// Sends the queued statements and commits.
    pub(super) async fn commit(&mut self) -> Result<(), Uncommitted> {
        if self.begin.is_some() {
            if self.queued.is_empty() {
                return Ok(());
            }
            // Never in one message with the COMMIT: if the connection was broken all the time, the
            // unit must run again.
            self.send(Vec::new()).await.map_err(Uncommitted::Before)?;
        }
        let queued = mem::take(&mut self.queued);
        let done = commit(self.client().map_err(Uncommitted::Before)?, self.statements, queued);
        let done = answered(self.answer_timeout, done).await;
        match done {
            Answered::Ok(Ok(())) => {
                self.in_transaction = false;
                Ok(())
            }
            // The server has ended the transaction without committing it.
            Answered::Ok(Err(error)) => {
                self.in_transaction = false;
                Err(Uncommitted::Before(self.refused(error)))
            }
            Answered::Err(Failed::Before(error)) => Err(Uncommitted::Before(self.refused(error))),
            Answered::Err(Failed::During(error)) => Err(Uncommitted::During(self.refused(error))),
            Answered::Hung => {
                self.is_hung = true;
                Err(Uncommitted::During(hung()))
            }
        }
    }

    /// Rolls back, so that the connection can be reused. If that fails, the connection is closed
    /// when dropped.
    pub(super) async fn rollback(&mut self) {
        self.queued.clear();
        // A failed BEGIN leaves it in place. The transaction may be open nevertheless.
        self.begin = None;
        if self.in_transaction && !self.is_hung && self.batch("ROLLBACK").await.is_ok() {
            self.in_transaction = false;
        }
    }

    pub(crate) async fn exec(&mut self, sql: &str, params: &[SqlValue<'_>]) -> Result<u64, EngineFault> {
        let bound = Bound::one(Cow::Borrowed(sql), params, Wanted::Affected);
        let answers = self.send(vec![bound]).await?;
        Ok(answers.iter().map(Answer::affected).sum())
    }

    pub(crate) async fn rows(&mut self, sql: &str, params: &[SqlValue<'_>]) -> Result<Vec<Row>, EngineFault> {
        let bound = Bound::one(Cow::Borrowed(sql), params, Wanted::Rows);
        let answers = self.send(vec![bound]).await?;
        Ok(answers.into_iter().flat_map(Answer::into_rows).collect())
    }

    /// Like [`Self::rows`], without caching the prepared statement.
    pub(crate) async fn rows_once(
        &mut self,
        sql: &str,
        params: &[SqlValue<'_>],
    ) -> Result<Vec<Row>, EngineFault> {
        if self.statements == Statements::Unnamed {
            return self.rows(sql, params).await;
        }
        if self.begin.is_some() || !self.queued.is_empty() {
            self.send(Vec::new()).await?;
        }
        let client = self.client()?;
        let types: Vec<_> = params.iter().map(SqlValue::postgres_type).collect();
        let rows = async {
            let statement = client.prepare_typed(sql, &types).await?;
            rows_of(client, &statement, params).await
        };
        let rows = answered(self.answer_timeout, rows).await;
        self.note(rows)
    }

    pub(crate) async fn exec_each(
        &mut self,
        sql: &str,
        rows: &[Vec<SqlValue<'_>>],
    ) -> Result<Vec<u64>, EngineFault> {
        let mut affected = Vec::with_capacity(rows.len());
        for some in rows.chunks(PIPELINE) {
            let bound = Bound::each(
                Cow::Borrowed(sql),
                some.iter().map(|row| row.iter().map(SqlValue::from).collect()),
                Wanted::Affected,
            )?;
            affected.extend(self.send(vec![bound]).await?.iter().map(Answer::affected));
        }
        Ok(affected)
    }

    /// Queues a statement for each of `rows`, to be sent together with the next statement or with
    /// the COMMIT.
    pub(crate) async fn queue_each(
        &mut self,
        sql: &'static str,
        rows: Vec<Vec<SqlValue<'_>>>,
    ) -> Result<(), EngineFault> {
        if rows.is_empty() {
            return Ok(());
        }
        let rows = rows.into_iter().map(|row| row.into_iter().map(SqlValue::into_static).collect());
        self.queue(Bound::each(Cow::Borrowed(sql), rows, Wanted::Affected)?).await
    }

    /// Queues a statement over many rows.
    pub(crate) async fn queue_rows(
        &mut self,
        statement: &RowsStatement,
        rows: Vec<Vec<SqlValue<'_>>>,
        shared: &[SqlValue<'_>],
    ) -> Result<(), EngineFault> {
        let rows = rows.into_iter().map(|row| row.into_iter().map(SqlValue::into_static).collect()).collect();
        let shared: Vec<_> = shared.iter().map(SqlValue::to_static).collect();
        match bound_rows(statement, rows, &shared, Wanted::Affected) {
            Some(bound) => self.queue(bound.into_static()).await,
            None => Ok(()),
        }
    }

    async fn queue(&mut self, bound: Bound<'static>) -> Result<(), EngineFault> {
        self.queued.push(bound);
        if self.queued.iter().map(Bound::times).sum::<usize>() < PIPELINE {
            return Ok(());
        }
        self.send(Vec::new()).await.map(drop)
    }

    pub(crate) async fn exec_rows(
        &mut self,
        statement: &RowsStatement,
        rows: Vec<Vec<SqlValue<'_>>>,
        shared: &[SqlValue<'_>],
    ) -> Result<u64, EngineFault> {
        let Some(bound) = bound_rows(statement, rows, shared, Wanted::Affected) else { return Ok(0) };
        Ok(self.send(vec![bound]).await?.iter().map(Answer::affected).sum())
    }

    /// Runs queries over many rows without waiting for each other. Returns the rows of each.
    pub(crate) async fn query_rows(
        &mut self,
        mut queries: Vec<RowsQuery<'_>>,
    ) -> Result<Vec<Vec<Row>>, EngineFault> {
        let mut bound = Vec::with_capacity(queries.len());
        let mut times = Vec::with_capacity(queries.len());
        for (statement, rows, shared) in &mut queries {
            let one = bound_rows(statement, mem::take(rows), shared, Wanted::Rows);
            times.push(one.as_ref().map_or(0, Bound::times));
            bound.extend(one);
        }
        let mut answers = self.send(bound).await?.into_iter();
        let of_each =
            times.into_iter().map(|times| answers.by_ref().take(times).flat_map(Answer::into_rows).collect());
        Ok(of_each.collect())
    }

    pub(crate) async fn batch(&mut self, sql: &str) -> Result<(), EngineFault> {
        if self.begin.is_some() || !self.queued.is_empty() {
            self.send(Vec::new()).await?;
        }
        let done = answered(self.answer_timeout, self.client()?.batch_execute(sql)).await;
        self.note(done)
    }

    /// Sends the BEGIN if it was not sent yet, the queued statements, and `more`, in this order and
    /// without waiting for each other. Returns the answers to `more`.
    async fn send(&mut self, more: Vec<Bound<'_>>) -> Result<Vec<Answer>, EngineFault> {
        let queued = mem::take(&mut self.queued);
        let begin = self.begin.clone();
        // Set before the BEGIN is sent: if this future is dropped meanwhile, the transaction may
        // already be open.
        self.in_transaction |= begin.is_some();
        let mut has_begun = false;
        let done = send(self.client()?, self.statements, (begin, &mut has_begun), queued, more);
        let done = answered(self.answer_timeout, done).await;
        if has_begun {
            self.begin = None;
        }
        self.note(done)
    }

    /// Converts a result to a fault, and marks the connection if a result is still outstanding.
    fn note<T>(&mut self, done: Answered<T>) -> Result<T, EngineFault> {
        match done {
            Answered::Ok(value) => Ok(value),
            Answered::Err(error) => Err(self.refused(error)),
            Answered::Hung => {
                self.is_hung = true;
                Err(hung())
            }
        }
    }

    /// Converts an error to a fault, and forgets the prepared statements if the session lost them.
    fn refused(&self, error: Error) -> EngineFault {
        let fault = fault(error);
        if fault.after == After::Unprepared {
            self.forget_statements();
        }
        fault
    }

    /// Makes the next transaction prepare its statements again.
    pub(super) fn forget_statements(&self) {
        if let Some(pooled) = &self.pooled {
            pooled.statement_cache.clear();
        }
    }

    fn client(&self) -> Result<&Object, EngineFault> {
        let gone =
            || EngineFault { error: StoreError::unavailable("the connection is gone"), after: After::Lost };
        self.pooled.as_ref().ok_or_else(gone)
    }
}

/// The outcome of a statement.
enum Answered<T, E = Error> {
    Ok(T),
    Err(E),
    /// No answer in time: the server or the network hangs.
    Hung,
}

async fn answered<T, E>(
    within: Option<Duration>,
    done: impl Future<Output = Result<T, E>>,
) -> Answered<T, E> {
    let done = match within {
        Some(within) => tokio::time::timeout(within, done).await,
        None => Ok(done.await),
    };
    match done {
        Ok(Ok(value)) => Answered::Ok(value),
        Ok(Err(error)) => Answered::Err(error),
        Err(_) => Answered::Hung,
    }
}

async fn rows_of(client: &Object, statement: &Statement, params: &[SqlValue<'_>]) -> Result<Vec<Row>, Error> {
    pin!(client.query_raw(statement, params).await?).try_collect().await
}

/// A query over many rows: the statement, its rows, and the values that all rows share.
pub(crate) type RowsQuery<'a> = (&'a RowsStatement, Vec<Vec<SqlValue<'a>>>, Vec<SqlValue<'a>>);

/// Binds rows as arrays, or as single rows if there are few of them. `None` if there are none.
fn bound_rows<'a>(
    statement: &RowsStatement,
    rows: Vec<Vec<SqlValue<'a>>>,
    shared: &'a [SqlValue<'_>],
    wanted: Wanted,
) -> Option<Bound<'a>> {
    match rows.len() {
        0 => None,
        1..=FEW_ROWS => Some(Bound::single_rows(statement, rows, shared, wanted)),
        _ => Some(Bound::arrays(statement, rows, shared, wanted)),
    }
}

/// The failure of a commit.
pub(super) enum Uncommitted {
    /// The transaction was not committed.
    Before(EngineFault),
    /// The COMMIT may have been sent, so the transaction may have been committed.
    During(EngineFault),
}

impl Uncommitted {
    pub(super) fn into_error(self) -> StoreError {
        match self {
            Self::Before(fault) | Self::During(fault) => fault.error,
        }
    }
}

enum Failed {
    Before(Error),
    During(Error),
}

impl From<Error> for Failed {
    fn from(error: Error) -> Self {
        Self::Before(error)
    }
}

/// Sends statements, after the BEGIN if there is one. Sets the flag once the transaction has begun.
async fn send(
    client: &Object,
    statements: Statements,
    (begin, has_begun): (Option<Arc<str>>, &mut bool),
    queued: Vec<Bound<'_>>,
    more: Vec<Bound<'_>>,
) -> Result<Vec<Answer>, Error> {
    let from = queued.iter().map(Bound::times).sum::<usize>();
    let bound: Vec<&Bound<'_>> = queued.iter().chain(&more).collect();
    let only_queries = bound.iter().all(|bound| bound.is_query());
    let run = async {
        let prepared = prepare_all(client, statements, bound).await?;
        let answers = join_all(executions(client, &prepared)).await;
        answers.into_iter().collect::<Result<Vec<_>, Error>>()
    };
    let mut answers = match begin {
        None => run.await?,
        Some(begin) if only_queries => {
            // Polled in this order, so the BEGIN is sent first. Statements are therefore also
            // prepared within the transaction: a pooler may have another session outside of it.
            let (begun, answers) = join(client.batch_execute(&begin), run).await;
            begun?;
            *has_begun = true;
            answers?
        }
        // A pooler can reject a BEGIN and then run what follows, each statement in a transaction of
        // its own. Queries do no harm then, but nothing else may be sent before the answer.
        Some(begin) => {
            client.batch_execute(&begin).await?;
            *has_begun = true;
            run.await?
        }
    };
    Ok(answers.split_off(from))
}

/// Sends statements and a COMMIT without waiting for each other. The inner error means that the
/// server has answered the COMMIT after it had rejected a statement: it has rolled back.
async fn commit(
    client: &Object,
    statements: Statements,
    queued: Vec<Bound<'_>>,
) -> Result<Result<(), Error>, Failed> {
    let prepared = prepare_all(client, statements, queued.iter().collect()).await?;
    let commit: BoxFuture<'_, Result<Answer, Error>> =
        Box::pin(async { client.batch_execute("COMMIT").await.map(|()| Answer::Affected(0)) });
    let mut answers = join_all(executions(client, &prepared).chain([commit])).await;
    let committed = answers.pop();
    let failed = answers.into_iter().find_map(Result::err);
    match (failed, committed) {
        (None, Some(Err(error))) => Err(Failed::During(error)),
        (None, _) => Ok(Ok(())),
        (Some(error), Some(Ok(_))) if is_rejection(&error) => Ok(Err(error)),
        (Some(error), _) if is_rejection(&error) => Err(Failed::Before(error)),
        (Some(error), _) => Err(Failed::During(error)),
    }
}

/// Reports whether the server has rejected a statement, so that it cannot commit the transaction. An
/// error that ends the session proves nothing: a pooler reports the loss of its own connection in
/// this way, although the server may have executed everything that the pooler had passed on.
fn is_rejection(error: &Error) -> bool {
    error.as_db_error().is_some_and(|refused| refused.parsed_severity() == Some(Severity::Error))
}

/// A statement with its prepared form. `None` if statements have no names: the text is then sent
/// with the values.
type Prepared<'a> = (Option<Statement>, &'a Bound<'a>);

async fn prepare_all<'a>(
    client: &Object,
    statements: Statements,
    bound: Vec<&'a Bound<'a>>,
) -> Result<Vec<Prepared<'a>>, Error> {
    let mut prepared = Vec::with_capacity(bound.len());
    for bound in bound {
        let statement = match statements {
            Statements::Named => Some(client.prepare_typed_cached(&bound.sql, &bound.types).await?),
            Statements::Unnamed => None,
        };
        prepared.push((statement, bound));
    }
    Ok(prepared)
}

/// Returns a future for each statement. They are polled in order, so the statements are sent in
/// order. After a failure the server rejects the rest of the transaction, so the first error is the
/// cause.
fn executions<'a>(
    client: &'a Object,
    prepared: &'a [Prepared<'a>],
) -> impl Iterator<Item = BoxFuture<'a, Result<Answer, Error>>> {
    prepared.iter().flat_map(move |(statement, bound)| {
        bound.executions.iter().map(move |params| -> BoxFuture<'a, Result<Answer, Error>> {
            Box::pin(execute(client, statement.as_ref(), bound, params))
        })
    })
}

async fn execute(
    client: &Object,
    statement: Option<&Statement>,
    bound: &Bound<'_>,
    params: &[Param<'_>],
) -> Result<Answer, Error> {
    let mut rows: Pin<Box<RowStream>> = match statement {
        Some(statement) if bound.wanted == Wanted::Affected => {
            return client.execute_raw(statement, params).await.map(Answer::Affected);
        }
        Some(statement) => Box::pin(client.query_raw(statement, params).await?),
        // Without a name, with its values and their types, in one round trip.
        None => {
            let typed = params.iter().zip(bound.types.iter().cloned());
            Box::pin(client.query_typed_raw(&bound.sql, typed).await?)
        }
    };
    if bound.wanted == Wanted::Rows {
        return rows.try_collect().await.map(Answer::Rows);
    }
    while rows.try_next().await?.is_some() {}
    Ok(Answer::Affected(rows.rows_affected().unwrap_or(0)))
}
