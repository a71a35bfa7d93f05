//! The outermost layer. It assigns the request id, renders problems, and adds the common response
//! headers.

use axum::extract::Request;
use axum::http::HeaderValue;
use axum::http::header::{CACHE_CONTROL, X_CONTENT_TYPE_OPTIONS};
use axum::response::Response;

use super::compression::{AcceptsGzip, Compressible};
use super::etag::Condition;
use super::problem::{self, Problem};
use super::rate_limit_status::ResetUnit;
use super::{RequestId, Shared, rate, version};

/// Runs `answer` for a request and completes its response.
pub async fn finish_response(
    app: &Shared,
    mut request: Request,
    answer: impl AsyncFnOnce(Request) -> Response,
) -> Response {
    let began = app.ctx.now();
    let id = RequestId::new(&app.ctx);
    request.extensions_mut().insert(id);
    let ip = rate::mark_address(app, &mut request);
    let condition = Condition::of(&request);
    let accepts_gzip = AcceptsGzip::of(&request);
    let method = request.method().clone();

    let mut response = answer(request).await;
    let now = app.ctx.now();
    // Settling may replace the problem (e.g. by 429), so it must run before rendering.
    let rate_limit = rate::settle(app, ip, now, &mut response).await;
    if let Some(problem) = response.extensions_mut().remove::<Problem>() {
        problem::render(&mut response, &problem, &app.docs_url, condition.path(), id);
    }
    // Before the condition: a 304 must have the same `Vary` header as its 200.
    let compressible = Compressible::of(&response);
    condition.answer(&mut response);
    if let Some(compressible) = compressible {
        compressible.finish(app, accepts_gzip, &mut response).await;
    }
    version::tell(&mut response, app.versions.current);
    let status = response.status().as_u16();
    let headers = response.headers_mut();
    id.tell(headers);
    rate_limit.write(headers, ResetUnit::Seconds, now);
    headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    // The default is strict: a route must opt in to caching.
    headers.entry(CACHE_CONTROL).or_insert(HeaderValue::from_static("no-store"));
    tracing::debug!(
        request.id = %id, http.method = %method, http.path = condition.path(), http.status = status,
        latency_ms = app.ctx.now().since_ms(began), "answered"
    );
    response
}
