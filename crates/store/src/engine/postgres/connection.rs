//! One pooled PostgreSQL connection and the statements run on it.

use std::pin::pin;

use deadpool_postgres::{Object, Pool};
use futures::TryStreamExt;
use futures::future::join_all;
use tokio_postgres::types::Type;
use tokio_postgres::{Row, Statement};

use super::super::Value;
use super::super::fault::{After, Fault};
use super::fault::{fault, no_connection};
use crate::StoreError;

/// Rows sent before their answers are awaited, which bounds the memory of a large batch.
const PIPELINE: usize = 256;

/// A connection out of the pool, back there when it is dropped outside of a transaction.
pub(crate) struct Connection {
    /// `None` only while it is dropped.
    pooled: Option<Object>,
    in_transaction: bool,
}

impl Drop for Connection {
    fn drop(&mut self) {
        if self.in_transaction
            && let Some(pooled) = self.pooled.take()
        {
            // Out of the pool and closed: the next user must not find itself in this transaction.
            drop(Object::take(pooled));
        }
    }
}

impl Connection {
    /// A connection outside of any transaction.
    pub(super) async fn get(pool: &Pool) -> Result<Self, StoreError> {
        let pooled = pool.get().await.map_err(no_connection)?;
        Ok(Self { pooled: Some(pooled), in_transaction: false })
    }

    /// A connection inside a new transaction. Connections that broke while they were idle are passed over.
    pub(super) async fn begin(pool: &Pool) -> Result<Self, StoreError> {
        let mut may_be_broken = pool.status().max_size;
        loop {
            let mut conn = Self::get(pool).await?;
            conn.in_transaction = true;
            match conn.batch("BEGIN ISOLATION LEVEL READ COMMITTED").await {
                Ok(()) => return Ok(conn),
                Err(Fault { after: After::Lost, .. }) if may_be_broken > 0 => may_be_broken -= 1,
                Err(fault) => return Err(fault.error),
            }
        }
    }

    pub(super) async fn commit(&mut self) -> Result<(), Fault> {
        self.batch("COMMIT").await?;
        self.in_transaction = false;
        Ok(())
    }

    /// Rolls back, so that the connection can be used again; where that fails it is closed when dropped.
    pub(super) async fn rollback(&mut self) {
        if self.batch("ROLLBACK").await.is_ok() {
            self.in_transaction = false;
        }
    }

    pub(crate) async fn exec(&mut self, sql: &str, params: &[Value<'_>]) -> Result<u64, Fault> {
        let statement = self.prepare(sql, types_of(params)).await?;
        self.client()?.execute_raw(&statement, params).await.map_err(fault)
    }

    pub(crate) async fn rows(&mut self, sql: &str, params: &[Value<'_>]) -> Result<Vec<Row>, Fault> {
        let statement = self.prepare(sql, types_of(params)).await?;
        let rows = self.client()?.query_raw(&statement, params).await.map_err(fault)?;
        pin!(rows).try_collect().await.map_err(fault)
    }

    /// As [`Self::rows`], of a statement that is forgotten again.
    pub(crate) async fn rows_once(&mut self, sql: &str, params: &[Value<'_>]) -> Result<Vec<Row>, Fault> {
        let client = self.client()?;
        let statement = client.prepare_typed(sql, &types_of(params)).await.map_err(fault)?;
        let rows = client.query_raw(&statement, params).await.map_err(fault)?;
        pin!(rows).try_collect().await.map_err(fault)
    }

    pub(crate) async fn exec_each(&mut self, sql: &str, rows: &[Vec<Value<'_>>]) -> Result<Vec<u64>, Fault> {
        let Some(first) = rows.first() else { return Ok(Vec::new()) };
        let types = (0..first.len()).map(|column| column_type(rows, column)).collect();
        let statement = self.prepare(sql, types).await?;
        let client = self.client()?;
        let mut affected = Vec::with_capacity(rows.len());
        for some in rows.chunks(PIPELINE) {
            // Polled in order, so sent in order. After one fails the server refuses the rest: the first error counts.
            let sent = some.iter().map(|params| client.execute_raw(&statement, params));
            for done in join_all(sent).await {
                affected.push(done.map_err(fault)?);
            }
        }
        Ok(affected)
    }

    pub(crate) async fn batch(&mut self, sql: &str) -> Result<(), Fault> {
        self.client()?.batch_execute(sql).await.map_err(fault)
    }

    async fn prepare(&self, sql: &str, types: Vec<Type>) -> Result<Statement, Fault> {
        self.client()?.prepare_typed_cached(sql, &types).await.map_err(fault)
    }

    fn client(&self) -> Result<&Object, Fault> {
        let gone = || Fault { error: StoreError::unavailable("the connection is gone"), after: After::Lost };
        self.pooled.as_ref().ok_or_else(gone)
    }
}

fn types_of(params: &[Value<'_>]) -> Vec<Type> {
    params.iter().map(Value::postgres_type).collect()
}

/// The type of a column of parameters, by the first row in which it is not NULL.
fn column_type(rows: &[Vec<Value<'_>>], column: usize) -> Type {
    let typed = rows.iter().filter_map(|params| params.get(column)).find(|value| **value != Value::Null);
    typed.unwrap_or(&Value::Null).postgres_type()
}
