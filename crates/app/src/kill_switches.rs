//! Kill switches: the operator can disable a route, or all trading, in every process.
//!
//! The command line writes the switches, and every process reads them twice a second. Requests use
//! the last values read, so they need no database query. If the database is unavailable, the last
//! values stay in effect.

use std::collections::BTreeSet;

use async_trait::async_trait;
use serde_json::{Value, json};
use store::audit_log::{Act, note};
use store::kill_switches::KillSwitch;

use crate::lanes;
use crate::process::switches::{Halt, Off};
use crate::worker::{Progress, Worker};
use crate::{AppError, Ctx};

/// The switch that halts trading. All others are named after their route:
/// `METHOD /path/{template}`.
pub const TRADING: &str = "trading";
/// Reads the switches. If that fails, the last known values stay in effect.
pub async fn refresh(ctx: &Ctx) -> Result<(), AppError> {
    let (switches, recovering) = ctx
        .store
        .read((), |tx, ()| {
            Box::pin(async move {
                Ok((store::kill_switches::list(tx).await?, store::recoveries::is_open(tx).await?))
            })
        })
        .await?;
    let (mut routes, mut trading) = (BTreeSet::new(), None);
    for switch in switches.into_iter().filter(|switch| switch.thrown_at.is_some()) {
        if switch.name == TRADING {
            trading = Some(Halt { reason: switch.reason });
        } else {
            routes.insert(switch.name);
        }
    }
    ctx.process.switches.replace(Off { trading, recovering, routes });
    Ok(())
}

/// The state of a switch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Setting {
    /// Enabled.
    On,
    /// Disabled.
    Off,
}

/// Sets a switch. `by` and the reason are stored. It takes effect in this process at once, and in
/// others within a second.
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
    let set = ctx
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

/// The worker that reads the switches, because other processes change them.
#[derive(Debug, Default)]
pub struct SwitchReader;

#[async_trait]
impl Worker for SwitchReader {
    fn name(&self) -> &'static str {
        "switches"
    }

    async fn tick(&self, ctx: &Ctx) -> Result<Progress, AppError> {
        refresh(ctx).await?;
        // Other processes change lanes, too, and every process must use the new ones as soon.
        lanes::refresh(ctx).await.map(|()| Progress::Idle)
    }
}
