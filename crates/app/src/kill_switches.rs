//! Switches with which the operator turns a route off, or trading as a whole, in all processes.
//!
//! The command line writes them; every process reads them twice a second and judges by what it read last, so that no
//! request asks the database, and one that cannot be reached switches nothing on or off.

use std::collections::BTreeSet;

use domain::ErrorCode;
use parking_lot::RwLock;
use serde_json::{Value, json};
use store::StoreError;
use store::audit_log::{Act, note};
use store::kill_switches::KillSwitch;

use crate::worker::{Progress, Worker};
use crate::{AppError, Ctx};

/// The switch that halts trading. All others are named after their route: `METHOD /path/{template}`.
pub const TRADING: &str = "trading";
/// When those who were refused may look again.
const RETRY_AFTER_S: u32 = 30;
/// The same while lost data is recovered.
const RECOVERY_RETRY_AFTER_S: u32 = 5;

/// What is switched off, as this process knows it.
#[derive(Debug, Default)]
pub struct Switches(RwLock<Off>);

#[derive(Debug, Default)]
struct Off {
    trading: bool,
    /// A recovery is open: no lane signs.
    recovering: bool,
    routes: BTreeSet<String>,
}

impl Switches {
    /// Whether no new trades are taken or taken up.
    pub fn is_trading_halted(&self) -> bool {
        self.0.read().trading
    }

    /// Whether lost data is being recovered, so that no lane signs.
    pub fn is_recovering(&self) -> bool {
        self.0.read().recovering
    }

    /// Refuses where the route is off, or `trades` while trading is halted.
    ///
    /// # Errors
    /// `ROUTE_DISABLED`, `API_TRADE_PROCESSING_HALTED`; `DEPENDENCY_UNAVAILABLE` for `trades` while lost data is recovered.
    pub fn check(&self, method: &str, path: &str, trades: bool) -> Result<(), AppError> {
        let off = self.0.read();
        let is_named = |name: &String| name.split_once(' ') == Some((method, path));
        let code = if off.routes.iter().any(is_named) {
            ErrorCode::RouteDisabled
        } else if trades && off.trading {
            ErrorCode::ApiTradeProcessingHalted
        } else if trades && off.recovering {
            return Err(recovering());
        } else {
            return Ok(());
        };
        Err(AppError::new(code).retry_after_s(RETRY_AFTER_S))
    }

    fn replace(&self, switches: Vec<KillSwitch>, recovering: bool) {
        let mut names: BTreeSet<String> = switches
            .into_iter()
            .filter(|switch| switch.thrown_at.is_some())
            .map(|switch| switch.name)
            .collect();
        let trading = names.remove(TRADING);
        *self.0.write() = Off { trading, recovering, routes: names };
    }
}

fn recovering() -> AppError {
    let detail = "Trading resumes once restored data has been compared with the chain. Reads stay up; try again later.";
    AppError::new(ErrorCode::DependencyUnavailable).detail(detail).retry_after_s(RECOVERY_RETRY_AFTER_S)
}

/// Reads the switches. Where that fails, the last known ones stay as they are.
pub async fn refresh(ctx: &Ctx) -> Result<(), AppError> {
    let read: Result<_, StoreError> = ctx
        .store
        .read((), |tx, ()| {
            Box::pin(async move {
                Ok((store::kill_switches::list(tx).await?, store::recoveries::is_open(tx).await?))
            })
        })
        .await;
    let (switches, is_recovering) = read?;
    ctx.switches.replace(switches, is_recovering);
    Ok(())
}

/// Which way a switch is set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Setting {
    /// What it names goes on.
    On,
    /// What it names stops.
    Off,
}

/// Sets a switch, for `by` and with a reason. This process goes by it at once, the others within a second.
pub async fn set(
    ctx: &Ctx,
    name: &str,
    setting: Setting,
    by: &str,
    reason: Option<String>,
) -> Result<KillSwitch, AppError> {
    let texts = [Some(name), Some(by), reason.as_deref()];
    if texts.into_iter().flatten().any(|text| text.contains('\0') || text.len() > 1_000) {
        return Err(AppError::field("/reason", "must have at most 1000 bytes and no NUL characters"));
    }
    let now = ctx.now();
    let switch = KillSwitch {
        name: name.to_owned(),
        thrown_at: (setting == Setting::Off).then_some(now),
        changed_at: now,
        changed_by: by.to_owned(),
        reason,
    };
    let set: Result<KillSwitch, StoreError> = ctx
        .store
        .write(switch, |tx, switch| {
            Box::pin(async move {
                let all = store::kill_switches::list(tx).await?;
                let old = all.into_iter().find(|old| old.name == switch.name);
                let set = store::kill_switches::set(tx, switch).await?;
                let act = Act::new("switch.set", format!("switch:{}", set.name));
                note(tx, act.before(old.as_ref().map(state_of)).after(state_of(&set)));
                Ok(set)
            })
        })
        .await;
    let set = set?;
    refresh(ctx).await?;
    Ok(set)
}

fn state_of(switch: &KillSwitch) -> Value {
    let state = if switch.thrown_at.is_some() { "off" } else { "on" };
    json!({ "state": state, "by": switch.changed_by, "reason": switch.reason })
}

/// The worker that reads the switches, which change in another process.
#[derive(Debug, Default)]
pub struct SwitchReader;

impl Worker for SwitchReader {
    fn name(&self) -> &'static str {
        "switches"
    }

    async fn tick(&self, ctx: &Ctx) -> Result<Progress, AppError> {
        refresh(ctx).await.map(|()| Progress::Idle)
    }
}
