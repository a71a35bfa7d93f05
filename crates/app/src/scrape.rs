//! The metrics as text. What is not recorded when it happens, the state of this process, is read here.

use crate::Ctx;
use crate::kill_switches::TRADING;

/// Returns all metrics as text, as they are now.
pub fn metrics_text(ctx: &Ctx) -> String {
    let (metrics, switches) = (&ctx.process.metrics, &ctx.process.switches);
    metrics.pools(&ctx.store.pools());
    ctx.process.limits.record_uses(ctx.now());
    metrics.streams(ctx.budgets().open_streams());
    let routes = switches.disabled_routes().into_iter().map(|route| (route, true));
    metrics.switches(std::iter::once((TRADING.to_owned(), switches.is_trading_halted())).chain(routes));
    metrics.text()
}
