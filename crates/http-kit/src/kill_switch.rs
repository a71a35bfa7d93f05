//! Enforces the operator's kill switches before a request's body is read.

use app::{AppError, Ctx};

use super::Route;

/// Rejects a request if its route is disabled, or if it trades while trading is halted.
pub fn check(ctx: &Ctx, route: &Route) -> Result<(), AppError> {
    ctx.process.switches.check(route.method.as_str(), route.path, route.trades())
}
