//! What is read when the metrics are asked for: the state of this process.

use super::labels::{Name, Pool};
use super::{Metrics, whole};
use crate::Ctx;
use crate::kill_switches::TRADING;

impl Metrics {
    pub(super) fn read_process(&self, ctx: &Ctx) {
        for pool in ctx.store.pools() {
            let states = [("busy", pool.busy), ("idle", pool.idle), ("waiting", pool.waiting)];
            for (state, connections) in states {
                self.store_pool.get_or_create(&Pool { pool: pool.name, state }).set(whole(connections));
            }
        }
        self.feed_streams.set(whole(ctx.process.feed.listeners()));
        // A switch that is on again must not stay in the list.
        self.switch_off.clear();
        let off = |name: String, is_off: bool| {
            self.switch_off.get_or_create(&Name { name }).set(i64::from(is_off));
        };
        off(TRADING.to_owned(), ctx.process.switches.is_trading_halted());
        ctx.process.switches.disabled_routes().into_iter().for_each(|route| off(route, true));
    }
}
