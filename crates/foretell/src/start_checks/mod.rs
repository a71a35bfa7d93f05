//! What a process depends on beyond its settings: file descriptors, clocks, gas, certificates,
//! protected connections.
//!
//! `foretell serve` runs these checks when it starts, and `foretell config check` runs the same ones,
//! so that its exit code 0 means that `serve` will work.

mod descriptors;
mod transport;

use std::sync::Arc;

use app::Ctx;
use app::health::clock::{ClockOffset, against_database, behind_chain};
use app::health::gas::{ExecutorGas, executors_gas};
use app::webhooks::sender::{SystemResolver, WebhookSender};
use domain::Timestamp;

use crate::config::ResolvedConfig;
use crate::process_roles::ProcessRole;
use crate::start_error::StartError;

pub use descriptors::{fitting_connections, raise_limit};

/// A difference from the database's clock with which a process must not start. Leases last 15
/// seconds: with a larger difference, it would take those of the others, or lose its own.
const FATAL_OFFSET_MS: i64 = 60_000;
/// The age of the newest block from which on either the chain or the clock is suspect.
const OLD_BLOCK_MS: i64 = 10 * 60_000;

/// The result of one check.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    Passed(String),
    /// Everything works, but not as the operator may expect.
    Warning(String),
    /// The service starts, because other parts of it work, and reports the problem.
    Fault(String),
    /// The service must not start.
    Fatal(String),
}

/// A check and its result.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Checked {
    pub what: &'static str,
    pub verdict: Verdict,
}

impl Checked {
    const fn new(what: &'static str, verdict: Verdict) -> Self {
        Self { what, verdict }
    }
}

/// Runs all checks. `ctx` has the opened database, and nodes that were asked once. Without it, runs
/// those that need neither.
pub async fn run(ctx: Option<&Ctx>, config: &ResolvedConfig) -> Vec<Checked> {
    let mut checked = vec![Checked::new("file descriptors", descriptors::check(ctx, config))];
    checked.extend(transport::warnings(config));
    if config.roles.has(ProcessRole::Dispatcher) {
        checked.push(Checked::new("certificates", certificates(config)));
    }
    let Some(ctx) = ctx else { return checked };
    checked.push(Checked::new("clock", clock(ctx).await));
    if config.roles.has(ProcessRole::Executor) && ctx.chain.nodes().is_some() {
        checked.push(Checked::new("gas", gas(ctx).await));
    }
    checked
}

/// Logs what did not pass.
///
/// # Errors
/// The first fatal finding.
pub fn log(checked: &[Checked]) -> Result<(), StartError> {
    for Checked { what, verdict } in checked {
        match verdict {
            Verdict::Passed(_) => {}
            Verdict::Warning(text) => tracing::warn!(check = what, "{text}"),
            Verdict::Fault(text) => tracing::error!(check = what, "{text}"),
            Verdict::Fatal(text) => return Err(StartError::Other(format!("{what}: {text}"))),
        }
    }
    Ok(())
}

async fn clock(ctx: &Ctx) -> Verdict {
    let database = against_database(ctx).await;
    let head = match ctx.chain.nodes() {
        Some(_) => ctx.chain.head().await.ok().map(|head| head.timestamp_s),
        // The embedded chain has the clock of this process.
        None => None,
    };
    judge_clock(database, head, ctx.now())
}

/// Judges the clock by the database's and by the time of the chain's newest block.
fn judge_clock(database: Option<ClockOffset>, head_at_s: Option<u64>, now: Timestamp) -> Verdict {
    let chain = head_at_s.and_then(|at_s| behind_chain(at_s, now));
    let wrong = database.into_iter().chain(chain).find(|offset| offset.is_wrong());
    if let Some(offset) = wrong {
        let is_fatal = database == Some(offset) && offset.ahead_ms.abs() > FATAL_OFFSET_MS;
        let text = offset.describe();
        return if is_fatal { Verdict::Fatal(text) } else { Verdict::Fault(text) };
    }
    let age_ms = head_at_s.map(|at_s| now.since_ms(Timestamp::from_s(at_s)));
    if let Some(age_ms) = age_ms.filter(|age_ms| *age_ms > OLD_BLOCK_MS) {
        return Verdict::Warning(format!(
            "The chain's newest block is {} s old. Either the chain is idle, or this machine's clock is ahead: compare it with another clock.",
            age_ms / 1_000
        ));
    }
    Verdict::Passed(match (database, age_ms) {
        (Some(offset), Some(age_ms)) => format!(
            "{} ms from the database's; the newest block is {} s old",
            offset.ahead_ms.abs(),
            age_ms.max(0) / 1_000
        ),
        (Some(offset), None) => format!("{} ms from the database's", offset.ahead_ms.abs()),
        (None, Some(age_ms)) => format!("the newest block is {} s old", age_ms.max(0) / 1_000),
        (None, None) => "database and chain are on this machine".to_owned(),
    })
}

async fn gas(ctx: &Ctx) -> Verdict {
    match executors_gas(ctx).await {
        Ok(executors) => judge_gas(&executors),
        Err(error) => Verdict::Fault(format!("the executors' balances cannot be read: {error}")),
    }
}

fn judge_gas(executors: &[ExecutorGas]) -> Verdict {
    let described = |of: &[&ExecutorGas]| {
        let each = of.iter().map(|executor| {
            format!(
                "lane {} ({}) has {} wei, a trade costs up to {} wei and a batch of 100 up to {} wei",
                executor.lane, executor.executor, executor.balance, executor.trade_cost, executor.batch_cost
            )
        });
        each.collect::<Vec<_>>().join("; ")
    };
    let empty: Vec<_> = executors.iter().filter(|executor| executor.is_empty()).collect();
    if !empty.is_empty() {
        return Verdict::Fault(format!(
            "{} of {} executors cannot pay for a transaction: {}. Send native currency to them: `foretell admin executor fund`.",
            empty.len(),
            executors.len(),
            described(&empty)
        ));
    }
    let low: Vec<_> = executors.iter().filter(|executor| executor.is_low()).collect();
    if !low.is_empty() {
        return Verdict::Warning(format!(
            "{} of {} executors cannot pay for a batch of 100 trades: {}.",
            low.len(),
            executors.len(),
            described(&low)
        ));
    }
    let batches = executors.iter().map(ExecutorGas::batches).min().unwrap_or_default();
    Verdict::Passed(format!("{} executors, each pays for at least {batches} batches", executors.len()))
}

fn certificates(config: &ResolvedConfig) -> Verdict {
    match WebhookSender::new(config.targets().into(), Arc::<SystemResolver>::default()) {
        Ok(_) => Verdict::Passed("this machine has certificate authorities".to_owned()),
        Err(error) => Verdict::Fault(format!(
            "this machine has no certificate authorities, so https webhooks fail ({error}). Install ca-certificates."
        )),
    }
}

#[cfg(test)]
mod tests {
    use alloy_primitives::{Address, U256};
    use app::metrics::ClockSource;

    use super::*;

    const NOW: Timestamp = Timestamp::from_ms(1_777_464_000_000);

    fn database(ahead_ms: i64) -> Option<ClockOffset> {
        Some(ClockOffset { source: ClockSource::Database, ahead_ms })
    }

    fn block(age_s: i64) -> Option<u64> {
        Some(NOW.plus_ms(-age_s * 1_000).s())
    }

    #[test]
    fn a_clock_that_is_a_minute_from_the_databases_stops_the_start_and_a_smaller_difference_is_reported() {
        let Verdict::Fatal(text) = judge_clock(database(1_200_000), block(2), NOW) else { panic!() };
        assert!(text.contains("1200 s ahead of the database's. Synchronize"), "{text}");
        assert!(matches!(judge_clock(database(-60_001), None, NOW), Verdict::Fatal(_)));
        assert!(matches!(judge_clock(database(6_000), None, NOW), Verdict::Fault(_)));
        assert!(matches!(judge_clock(database(40), block(2), NOW), Verdict::Passed(_)));
    }

    #[test]
    fn a_block_of_the_future_shows_a_clock_that_is_behind_and_an_old_one_only_warns() {
        let Verdict::Fault(text) = judge_clock(database(3), block(-1_200), NOW) else { panic!() };
        assert!(text.contains("1200 s behind the chain's newest block"), "{text}");
        let Verdict::Warning(text) = judge_clock(None, block(3_600), NOW) else { panic!() };
        assert!(text.contains("newest block is 3600 s old"), "{text}");
    }

    #[test]
    fn executors_without_gas_are_named_with_the_figures() {
        let executor = |lane, balance: u64| ExecutorGas {
            lane,
            executor: Address::repeat_byte(7),
            balance: U256::from(balance),
            trade_cost: U256::from(10),
            batch_cost: U256::from(500),
            batch_price: U256::from(400),
        };
        let Verdict::Fault(text) = judge_gas(&[executor(0, 9), executor(1, 1_000)]) else { panic!() };
        assert!(text.starts_with("1 of 2 executors cannot pay for a transaction: lane 0 (0x0707"), "{text}");
        assert!(text.contains("has 9 wei, a trade costs up to 10 wei"), "{text}");
        assert!(matches!(judge_gas(&[executor(0, 499)]), Verdict::Warning(_)));
        let passed = Verdict::Passed("2 executors, each pays for at least 2 batches".to_owned());
        assert_eq!(judge_gas(&[executor(0, 1_200), executor(1, 800)]), passed);
    }

    #[test]
    fn only_a_fatal_finding_stops_the_start() {
        let checked = |verdict: fn(String) -> Verdict| Checked::new("clock", verdict("why".to_owned()));
        assert!(log(&[checked(Verdict::Warning), checked(Verdict::Fault)]).is_ok());
        let stopped = log(&[checked(Verdict::Fault), checked(Verdict::Fatal)]);
        assert_eq!(stopped.unwrap_err().to_string(), "clock: why");
    }
}
