//! A pooled PostgreSQL connection and the statements that run on it.

use std::pin::{Pin, pin};
use std::sync::atomic::Ordering;
use std::time::Duration;

use deadpool_postgres::Object;
use futures::TryStreamExt;
use futures::future::join_all;
use tokio_postgres::types::Type;
use tokio_postgres::{Error, Row, RowStream, Statement};

use super::super::SqlValue;
use super::super::fault::{After, EngineFault};
use super::fault::{fault, hung, no_connection};
use super::options::Statements;
use super::pools::Sessions;
use crate::StoreError;

/// The number of rows sent before their results are awaited. Bounds the memory of a large batch.
const PIPELINE: usize = 256;

/// A connection from the pool. Returned to the pool when dropped, unless a transaction is open or
/// the connection hangs.
pub(crate) struct PooledConnection {
    /// `None` only during drop.
    pooled: Option<Object>,
    in_transaction: bool,
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
        let answer_timeout = sessions.answer_timeout;
        let statements = sessions.statements;
        Ok(Self { pooled: Some(pooled), in_transaction: false, is_hung: false, answer_timeout, statements })
    }

    /// Closes the connection instead of returning it to the pool.
    pub(super) fn discard(mut self) {
        drop(self.pooled.take().map(Object::take));
    }

    /// Returns a connection in a new transaction. Skips connections that broke while they were
    /// idle.
    pub(super) async fn begin(sessions: &Sessions) -> Result<Self, StoreError> {
        // Every pooled connection may be broken after a restart of the server. Try each of them
        // once before giving up.
        let mut may_be_broken = sessions.pool.status().max_size;
        loop {
            let mut conn = Self::get(sessions).await?;
            // Set before BEGIN is sent: if this future is dropped meanwhile, the transaction may
            // already be open.
            conn.in_transaction = true;
            match conn.batch(&sessions.begin).await {
                Ok(()) => return Ok(conn),
                Err(EngineFault { after: After::Lost, .. }) if may_be_broken > 0 => may_be_broken -= 1,
                Err(fault) => return Err(fault.error),
            }
        }
    }

    pub(super) async fn commit(&mut self) -> Result<(), EngineFault> {
        self.batch("COMMIT").await?;
        self.in_transaction = false;
        Ok(())
    }

    /// Rolls back, so that the connection can be reused. If that fails, the connection is closed
    /// when dropped.
    pub(super) async fn rollback(&mut self) {
        if self.batch("ROLLBACK").await.is_ok() {
            self.in_transaction = false;
        }
    }

    pub(crate) async fn exec(&mut self, sql: &str, params: &[SqlValue<'_>]) -> Result<u64, EngineFault> {
        let client = self.client()?;
        let done = async {
            match self.statements {
                Statements::Named => {
                    let statement = client.prepare_typed_cached(sql, &types_of(params)).await?;
                    client.execute_raw(&statement, params).await
                }
                Statements::Unnamed => execute_unnamed(client, sql, params, types_of(params)).await,
            }
        };
        let done = answered(self.answer_timeout, done).await;
        self.note(done)
    }

    pub(crate) async fn rows(&mut self, sql: &str, params: &[SqlValue<'_>]) -> Result<Vec<Row>, EngineFault> {
        let client = self.client()?;
        let rows = async {
            match self.statements {
                Statements::Named => {
                    let statement = client.prepare_typed_cached(sql, &types_of(params)).await?;
                    rows_of(client, &statement, params).await
                }
                Statements::Unnamed => {
                    unnamed(client, sql, params, types_of(params)).await?.try_collect().await
                }
            }
        };
        let rows = answered(self.answer_timeout, rows).await;
        self.note(rows)
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
        let client = self.client()?;
        let rows = async {
            let statement = client.prepare_typed(sql, &types_of(params)).await?;
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
        let Some(first) = rows.first() else { return Ok(Vec::new()) };
        // All rows share one prepared statement, so a column's type is taken from any row that has
        // a value.
        let types: Vec<Type> = (0..first.len()).map(|column| column_type(rows, column)).collect();
        let mut affected = Vec::with_capacity(rows.len());
        for some in rows.chunks(PIPELINE) {
            let client = self.client()?;
            let done = async {
                // Futures are polled in order, so the statements are sent in order. After a failure
                // the server rejects the rest of the transaction, so the first error is the cause.
                match self.statements {
                    Statements::Named => {
                        let statement = client.prepare_typed_cached(sql, &types).await?;
                        let sent = some.iter().map(|params| client.execute_raw(&statement, params));
                        join_all(sent).await.into_iter().collect::<Result<Vec<u64>, Error>>()
                    }
                    Statements::Unnamed => {
                        let sent =
                            some.iter().map(|params| execute_unnamed(client, sql, params, types.clone()));
                        join_all(sent).await.into_iter().collect()
                    }
                }
            };
            let done = answered(self.answer_timeout, done).await;
            affected.extend(self.note(done)?);
        }
        Ok(affected)
    }

    pub(crate) async fn batch(&mut self, sql: &str) -> Result<(), EngineFault> {
        let done = answered(self.answer_timeout, self.client()?.batch_execute(sql)).await;
        self.note(done)
    }

    /// Converts a result to a fault, and marks the connection if a result is still outstanding.
    fn note<T>(&mut self, done: Answered<T>) -> Result<T, EngineFault> {
        match done {
            Answered::Ok(value) => Ok(value),
            Answered::Err(error) => {
                let fault = fault(error);
                if fault.after == After::Unprepared
                    && let Some(pooled) = &self.pooled
                {
                    pooled.statement_cache.clear();
                }
                Err(fault)
            }
            Answered::Hung => {
                self.is_hung = true;
                Err(hung())
            }
        }
    }

    fn client(&self) -> Result<&Object, EngineFault> {
        let gone =
            || EngineFault { error: StoreError::unavailable("the connection is gone"), after: After::Lost };
        self.pooled.as_ref().ok_or_else(gone)
    }
}

/// The outcome of a statement.
enum Answered<T> {
    Ok(T),
    Err(Error),
    /// No answer in time: the server or the network hangs.
    Hung,
}

async fn answered<T>(within: Option<Duration>, done: impl Future<Output = Result<T, Error>>) -> Answered<T> {
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

/// Sends a statement without a name, with its parameters and their types, in one round trip.
async fn unnamed(
    client: &Object,
    sql: &str,
    params: &[SqlValue<'_>],
    types: Vec<Type>,
) -> Result<Pin<Box<RowStream>>, Error> {
    Ok(Box::pin(client.query_typed_raw(sql, params.iter().zip(types)).await?))
}

async fn execute_unnamed(
    client: &Object,
    sql: &str,
    params: &[SqlValue<'_>],
    types: Vec<Type>,
) -> Result<u64, Error> {
    let mut rows = unnamed(client, sql, params, types).await?;
    while rows.try_next().await?.is_some() {}
    Ok(rows.rows_affected().unwrap_or(0))
}

fn types_of(params: &[SqlValue<'_>]) -> Vec<Type> {
    params.iter().map(SqlValue::postgres_type).collect()
}

/// The type of a column of parameters, taken from the first row in which it is not NULL.
fn column_type(rows: &[Vec<SqlValue<'_>>], column: usize) -> Type {
    let typed = rows.iter().filter_map(|params| params.get(column)).find(|value| **value != SqlValue::Null);
    typed.unwrap_or(&SqlValue::Null).postgres_type()
}
