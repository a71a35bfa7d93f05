//! The page of a transaction.

use alloy_primitives::B256;
use askama::Template;
use axum::extract::State;
use axum::response::Response;
use http_kit::{NamedQuery, NoParameters, PathId, Problem, Shared};
use presentation::amounts;
use store::StoreError;
use store::public::{TransactionRows, find_transaction};

use super::shell::{Reader, Section, Shell, cached};
use super::traders::{Names, TradeLine};

/// An effect of the transaction.
#[derive(Debug)]
struct EffectLine {
    market_id: String,
    question: String,
    line: TradeLine,
}

/// A market that the transaction settled.
#[derive(Debug)]
struct SettledLine {
    market_id: String,
    question: String,
}

#[derive(Debug, Template)]
#[template(path = "site/transaction.html")]
struct TransactionPage {
    shell: Shell,
    hash: String,
    block: Option<String>,
    at: Option<String>,
    at_iso: String,
    effects: Vec<EffectLine>,
    settled: Vec<SettledLine>,
}

/// `GET /tx/{hash}`.
pub async fn page(
    State(app): State<Shared>,
    reader: Reader,
    PathId(hash): PathId,
    query: NamedQuery<NoParameters>,
) -> Result<Response, Problem> {
    let hash: B256 = hash.parse().map_err(|_| Problem::not_found())?;
    let read = async || {
        let read: Result<Option<TransactionRows>, StoreError> =
            app.ctx.store.read(hash, |tx, hash| Box::pin(find_transaction(tx, *hash))).await;
        let TransactionRows { movements, settled } = read?.ok_or_else(Problem::not_found)?;
        let ids = movements.iter().map(|it| it.market_id).chain(settled.iter().copied());
        let names = Names::read(&app, ids).await?;
        let effects = movements.iter().map(|movement| EffectLine {
            market_id: movement.market_id.to_string(),
            question: names.question(movement.market_id),
            line: TradeLine::new(movement, &names.outcome(movement.market_id, movement.outcome_index)),
        });
        let first = movements.first();
        let page = TransactionPage {
            shell: Shell::new(&reader, Section::None, format!("Transaction {}", amounts::short_hash(hash))),
            hash: format!("{hash:#x}"),
            block: first.map(|movement| amounts::grouped(movement.block_number)),
            at: first.map(|movement| amounts::minute(movement.created_at)),
            at_iso: first.map(|movement| movement.created_at.to_string()).unwrap_or_default(),
            effects: effects.collect(),
            settled: settled
                .iter()
                .map(|id| SettledLine { market_id: id.to_string(), question: names.question(*id) })
                .collect(),
        };
        Ok((page, None))
    };
    cached(&app, &reader, &query.name, read).await
}
