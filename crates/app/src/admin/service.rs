//! Acts on the service itself: kill switches, quarantined markets, and webhooks.

use domain::ErrorCode;
use domain::ids::{KeyId, MarketId, UserId};
use serde::{Deserialize, Serialize};
use serde_json::json;
use store::audit_log::{Act, note};

use super::summary::{Outcome, Summary};
use crate::audit_log::around;
use crate::kill_switches::{self, Setting, TRADING};
use crate::ledger::{Repaired, repair_market};
use crate::{AppError, Ctx};

/// An act on the service.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "step", rename_all = "kebab-case")]
pub enum ServiceStep {
    /// Switches a route, or all trading, off or on.
    Switch { name: String, is_off: bool, reason: String },
    /// Repairs a quarantined market from the chain.
    Release { market: MarketId },
    /// Makes the queue of a key's webhooks due now.
    RetryWebhooks { key: KeyId },
}

impl ServiceStep {
    pub(super) async fn describe(&self, ctx: &Ctx) -> Result<Summary, AppError> {
        match self {
            Self::Switch { name, is_off, reason } => {
                if reason.trim().is_empty() {
                    return Err(AppError::field("/reason", "must not be empty"));
                }
                let is_trading = name == TRADING;
                let title = match (is_trading, is_off) {
                    (true, true) => "Halt trading".to_owned(),
                    (true, false) => "Resume trading".to_owned(),
                    (false, true) => format!("Disable {name}"),
                    (false, false) => format!("Enable {name}"),
                };
                let summary = Summary::new(title, "/admin/switches").fact("Reason", reason);
                Ok(match (is_trading, is_off) {
                    (true, true) => summary
                        .then("No process accepts new trades or signs those that wait. It takes effect within a second.")
                        .then("Reads, claims and signed trades continue. Every page shows the reason."),
                    (true, false) => summary.then("All processes accept and sign trades again within a second."),
                    (false, true) => {
                        summary.then("Requests to this route get 503 ROUTE_DISABLED in every process within a second.")
                    }
                    (false, false) => summary.then("The route works again in every process within a second."),
                })
            }
            Self::Release { market } => {
                let found = ctx.store.read(*market, |tx, id| {
                    Box::pin(async move {
                        Ok((store::quarantine::find(tx, *id).await?, store::markets::find(tx, *id).await?))
                    })
                });
                let (quarantine, row) = found.await?;
                let missing =
                    || AppError::new(ErrorCode::ResourceNotFound).detail("The market is not in quarantine.");
                let (quarantine, row) = quarantine.zip(row).ok_or_else(missing)?;
                Ok(Summary::new(format!("Repair the market “{}”", row.question), "/admin/quarantine")
                    .fact("In quarantine since", quarantine.quarantined_at)
                    .fact("Reason", quarantine.reason)
                    .then("Reads the market's events again from the chain and replaces the stored ones.")
                    .then("The market leaves the quarantine only if it then equals the contract's state."))
            }
            Self::RetryWebhooks { key } => {
                let found = ctx.store.read(*key, |tx, id| Box::pin(store::keys::find(tx, *id)));
                let missing =
                    || AppError::new(ErrorCode::ResourceNotFound).detail("There is no key with this id.");
                let key = found.await?.ok_or_else(missing)?;
                Ok(Summary::new(format!("Try the webhooks of the key “{}” now", key.name), "/admin/webhooks")
                    .fact("Key", key.id)
                    .maybe("Receiver", crate::webhooks::host_of(key.webhook_url.as_deref()))
                    .then("Closes the circuit breaker and attempts the head of the queue at once."))
            }
        }
    }

    pub(super) async fn run(self, ctx: &Ctx, admin: UserId) -> Result<Outcome, AppError> {
        match self {
            Self::Switch { name, is_off, reason } => {
                let setting = if is_off { Setting::Off } else { Setting::On };
                kill_switches::set(ctx, &name, setting, &format!("user:{admin}"), Some(reason)).await?;
                Ok(Outcome::done(if is_off { "The switch is off." } else { "The switch is on." }))
            }
            Self::Release { market } => {
                let act = Act::new("sync.quarantine.release", format!("market:{market}"));
                let made = |repaired: &Repaired| json!({ "fromBlock": repaired.from_block });
                let repaired = around(ctx, act, repair_market(ctx, market, None), made).await?;
                Ok(Outcome::done(format!(
                    "The market was repaired from block {} and released.",
                    repaired.from_block
                )))
            }
            Self::RetryWebhooks { key } => {
                ctx.store
                    .write((key, ctx.now()), |tx, (key, now)| {
                        Box::pin(async move {
                            note(tx, Act::new("webhook.retry", format!("key:{key}")));
                            store::webhooks::begin_anew(tx, *key, *now).await
                        })
                    })
                    .await?;
                Ok(Outcome::done("The queue is due now."))
            }
        }
    }
}
