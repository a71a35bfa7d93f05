//! USDC that accounts received and sent, from the chain's final blocks.

use alloy_primitives::{Address, B256};
use domain::page::Page;
use domain::{Timestamp, UsdcDelta};

use crate::bind::position_or_end;
use crate::record::{Insert, Record, all_values, record};
use crate::{SqlValue, StoreError, Tx, params};

record! {
    /// A change of an account's USDC.
    #[derive(Debug, Clone, PartialEq, Eq)]
    pub struct CashFlow: Insert {
        pub account: Address,
        /// Its place on chain, in the form of [`crate::movements::Movement::id_at`].
        pub id: String,
        pub tx_hash: B256,
        /// The other side. The zero address if the USDC was minted.
        pub counterparty: Address,
        /// Positive if it was received.
        pub usdc: UsdcDelta = "usdc_atomic",
        /// It is a deposit or a withdrawal, not a trade or a payout.
        pub is_external: bool,
        /// The block's time.
        pub at: Timestamp = "at_ms",
    }
}

/// The sums of an account's flows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct CashFlowSums {
    /// All flows: the balance.
    pub balance: i64,
    /// Deposits minus withdrawals.
    pub deposited: i64,
}

/// Returns the last block whose flows of the account are stored.
pub async fn find_end(tx: &mut Tx, account: Address) -> Result<Option<u64>, StoreError> {
    const SQL: &str = "SELECT cash_flows_to FROM accounts WHERE address = $1 AND cash_flows_to IS NOT NULL";
    tx.find(SQL, &params![account], |row| row.only()).await
}

/// Stores the account's flows of the blocks after `after`, up to `to`. Returns false, without a
/// change, if another request has stored them.
pub async fn append(
    tx: &mut Tx,
    account: Address,
    flows: &[CashFlow],
    (after, to): (Option<u64>, u64),
) -> Result<bool, StoreError> {
    const END: &str = "UPDATE accounts SET cash_flows_to = $1 WHERE address = $2
        AND COALESCE(cash_flows_to, -1) = COALESCE(CAST($3 AS BIGINT), -1)";
    const INSERT: &str = const_format::concatcp!(
        "INSERT INTO cash_flows (",
        CashFlow::COLUMNS,
        ") VALUES (",
        CashFlow::PLACEHOLDERS,
        ")"
    );
    let after = after.map(i64::try_from).transpose().map_err(|_| StoreError::missing("accounts"))?;
    if tx.exec(END, &params![SqlValue::try_from(to)?, account, after]).await? == 0 {
        return Ok(false);
    }
    tx.exec_each(INSERT, &all_values(flows)?).await?;
    Ok(true)
}

/// Deletes the account's flows, so that they are read again.
pub async fn delete(tx: &mut Tx, account: Address) -> Result<(), StoreError> {
    const END: &str = "UPDATE accounts SET cash_flows_to = NULL WHERE address = $1";
    const FLOWS: &str = "DELETE FROM cash_flows WHERE account = $1";
    tx.exec(END, &params![account]).await?;
    tx.exec(FLOWS, &params![account]).await.map(drop)
}

/// Returns the sums of the account's flows before `before`.
pub async fn sums_before(
    tx: &mut Tx,
    account: Address,
    before: Timestamp,
) -> Result<CashFlowSums, StoreError> {
    const SQL: &str = "SELECT CAST(COALESCE(SUM(usdc_atomic), 0) AS BIGINT) AS balance,
        CAST(COALESCE(SUM(usdc_atomic * is_external), 0) AS BIGINT) AS deposited
        FROM cash_flows WHERE account = $1 AND at_ms < $2";
    let sums = tx
        .find(SQL, &params![account, before], |row| {
            Ok(CashFlowSums { balance: row.get("balance")?, deposited: row.get("deposited")? })
        })
        .await?;
    Ok(sums.unwrap_or_default())
}

/// Returns the USDC that the account has received from outside: not from trades and payouts, and not
/// from other accounts of this service.
pub async fn sum_outside_deposits(tx: &mut Tx, account: Address) -> Result<i64, StoreError> {
    const SQL: &str = "SELECT CAST(COALESCE(SUM(usdc_atomic), 0) AS BIGINT) AS deposited FROM cash_flows
        WHERE account = $1 AND is_external = 1 AND usdc_atomic > 0
        AND NOT EXISTS (SELECT 1 FROM accounts WHERE accounts.address = cash_flows.counterparty)";
    Ok(tx.find(SQL, &params![account], |row| row.only()).await?.unwrap_or_default())
}

/// Lists the account's flows at or after `from`, oldest first, at most `limit`.
pub async fn list_since(
    tx: &mut Tx,
    account: Address,
    from: Timestamp,
    limit: u32,
) -> Result<Vec<CashFlow>, StoreError> {
    const SQL: &str = const_format::concatcp!(
        "SELECT ",
        CashFlow::COLUMNS,
        " FROM cash_flows WHERE account = $1 AND at_ms >= $2 ORDER BY at_ms, id LIMIT $3"
    );
    tx.list(SQL, &params![account, from, limit], CashFlow::from_row).await
}

/// Lists the account's deposits and withdrawals, newest first. Returns up to `limit + 1` rows: the
/// extra row shows that there is a next page.
pub async fn list_external(tx: &mut Tx, account: Address, page: &Page) -> Result<Vec<CashFlow>, StoreError> {
    const SQL: &str = const_format::concatcp!(
        "SELECT ",
        CashFlow::COLUMNS,
        " FROM cash_flows WHERE account = $1 AND is_external = 1 AND (at_ms, id) < ($2, $3)
        ORDER BY at_ms DESC, id DESC LIMIT $4"
    );
    let (at, id) = position_or_end(page.after.as_ref());
    tx.list(SQL, &params![account, at, id, page.limit + 1], CashFlow::from_row).await
}
