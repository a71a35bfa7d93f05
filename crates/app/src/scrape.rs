//! The metrics as text. What is not recorded when it happens, the state of this process, is read here.

use std::collections::BTreeMap;

use chain::NodeReport;
use domain::lane::LaneState;

use crate::Ctx;
use crate::health::{Reason, ServingFault, known_problems};
use crate::kill_switches::TRADING;
use crate::metrics::{CheckName, NodeFigures};

/// Returns all metrics as text, as they are now. Asks neither the database nor a node, so it also
/// answers while they don't.
pub fn metrics_text(ctx: &Ctx) -> String {
    let (metrics, switches) = (&ctx.process.metrics, &ctx.process.switches);
    metrics.pools(&ctx.store.pools());
    metrics.pool_limits(&ctx.store.pool_limits());
    ctx.process.limits.record_uses(ctx.now());
    metrics.streams(ctx.budgets().open_streams());
    let routes = switches.disabled_routes().into_iter().map(|route| (route, true));
    metrics.switches(std::iter::once((TRADING.to_owned(), switches.is_trading_halted())).chain(routes));
    for lane in ctx.process.lanes.list() {
        match lane.state {
            LaneState::Removed => metrics.forget_lane(lane.lane),
            _ => metrics.lane(lane.lane),
        }
    }
    if let Some(nodes) = ctx.chain.nodes() {
        metrics.nodes(&figures(nodes.report(), ctx.now().s()));
    }
    let problems = known_problems(ctx);
    let is_known = |reason: &Reason| problems.iter().any(|problem| problem.reason == *reason);
    metrics.degraded(Reason::ALL.iter().map(|reason| (reason.as_str(), is_known(reason))));
    let failed: Vec<CheckName> = ctx.process.serving.faults(ctx.now()).iter().map(check_of).collect();
    for check in [CheckName::Schema, CheckName::Pools, CheckName::Storage, CheckName::NotDraining] {
        metrics.check(check, !failed.contains(&check));
    }
    metrics.read_process();
    metrics.text()
}

/// Returns the check that a fault of this process fails.
const fn check_of(fault: &ServingFault) -> CheckName {
    match fault {
        ServingFault::OldSchema => CheckName::Schema,
        ServingFault::PoolExhausted(_) => CheckName::Pools,
        ServingFault::Storage(..) => CheckName::Storage,
        ServingFault::Draining => CheckName::NotDraining,
    }
}

/// Returns the figures of the nodes. Nodes of one host get different names: `rpc.example`,
/// `rpc.example#2`.
fn figures(reports: Vec<NodeReport>, now_s: u64) -> Vec<NodeFigures> {
    let mut seen: BTreeMap<String, u32> = BTreeMap::new();
    let figures = |report: NodeReport| {
        let count = seen.entry(report.host.clone()).or_default();
        *count += 1;
        NodeFigures {
            is_up: report.is_up(),
            head: report.head,
            block_age_s: report.head_at_s.map(|at_s| now_s.saturating_sub(at_s)),
            node: match *count {
                1 => report.host,
                count => format!("{}#{count}", report.host),
            },
        }
    };
    reports.into_iter().map(figures).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use chain::NodeStatus;

    #[test]
    fn nodes_of_one_host_have_different_names_and_a_dead_node_has_the_age_of_its_last_block() {
        let report = |standing, is_paused| NodeReport {
            host: "rpc.example".to_owned(),
            standing,
            is_paused,
            head: 7,
            head_at_s: Some(1_000),
            latency_ms: 1,
        };
        let reports = vec![report(NodeStatus::Usable, false), report(NodeStatus::Unchecked, true)];
        let figures = figures(reports, 1_067);
        let named =
            |node: &str, is_up| NodeFigures { node: node.to_owned(), is_up, head: 7, block_age_s: Some(67) };
        assert_eq!(figures, [named("rpc.example", true), named("rpc.example#2", false)]);
    }
}
