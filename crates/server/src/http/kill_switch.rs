//! The operator's switches at the door: what is off is refused before its body is read.

use app::{AppError, Ctx};

use super::RouteInfo;

/// Refuses a request to a route that is off, or that trades while trading is halted.
pub fn check(ctx: &Ctx, route: &RouteInfo) -> Result<(), AppError> {
    ctx.switches.check(route.method.as_str(), route.path, route.trades())
}
