//! Records rejected callers in the audit log: only for known keys, and never the key itself.

use app::AppError;
use app::process::audit_buffer::FailedAuthentication;
use axum::extract::Request;

use super::rate;
use super::{RequestId, Route, Shared};

/// Records a rejected request in the audit log, if its error is attributed to a key.
pub(super) fn note(app: &Shared, route: &Route, request: &Request, error: &AppError) {
    // Failures with an unknown key belong to no key's log.
    let Some(key_id) = error.key_id else { return };
    let id = request.extensions().get::<RequestId>();
    let failure = FailedAuthentication {
        key_id,
        code: error.code,
        ip: rate::address_of(request),
        route: route.name(),
        request_id: id.map(ToString::to_string).unwrap_or_default(),
    };
    app.ctx.process.key_audit.note(failure, app.ctx.now());
}
