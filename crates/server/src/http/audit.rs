//! What is noted of a refused caller: nothing but for keys that are known, and never the key itself.

use app::AppError;
use app::keys::audit::Failure;
use axum::extract::Request;

use super::rate;
use super::{RequestId, RouteInfo, Shared};

/// Notes a refusal in the audit log of the key that it is attributed to.
pub(super) fn note(app: &Shared, route: &RouteInfo, request: &Request, error: &AppError) {
    let Some(key_id) = error.key_id else { return };
    let id = request.extensions().get::<RequestId>();
    let failure = Failure {
        key_id,
        code: error.code,
        ip: rate::address_of(request),
        route: route.name(),
        request_id: id.map(ToString::to_string).unwrap_or_default(),
    };
    app.ctx.key_audit.note(failure, app.ctx.now());
}
