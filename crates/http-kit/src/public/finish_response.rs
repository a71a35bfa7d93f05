//! The outermost layer of the public API. It assigns the request id, renders errors, and adds the
//! common response headers.

use axum::Router;
use axum::extract::{Request, State};
use axum::http::header::{CACHE_CONTROL, X_CONTENT_TYPE_OPTIONS};
use axum::http::{HeaderValue, StatusCode, Uri};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::Response;

use super::refusal::{self, Refusal};
use super::{cors, rate_limit};
use crate::rate_limit_status::ResetUnit;
use crate::{AcceptsGzip, Compressible, Condition, RequestId, Shared, mark_address};

/// Default caching of successful responses.
const CACHED: HeaderValue = HeaderValue::from_static("public, max-age=5, stale-while-revalidate=10");

/// Approximate number of response headers.
const MOST_HEADERS: usize = 20;

/// Replaces the JSON body of an error, for routes that people see in a browser.
pub type ErrorPage = fn(&Uri, &Refusal, &mut Response);

/// Wraps all `routes` in this layer.
pub fn finish_responses<S: Clone + Send + Sync + 'static>(
    app: Shared,
    routes: Router<S>,
    error_page: Option<ErrorPage>,
) -> Router<S> {
    routes.layer(from_fn_with_state((app, error_page), finish_response))
}

/// The middleware function.
async fn finish_response(
    State((app, error_page)): State<(Shared, Option<ErrorPage>)>,
    mut request: Request,
    next: Next,
) -> Response {
    let began = app.ctx.now();
    let id = RequestId::new(&app.ctx);
    request.extensions_mut().insert(id);
    let ip = mark_address(&app, &mut request);
    let condition = Condition::of(&request);
    let accepts_gzip = AcceptsGzip::of(&request);
    let method = request.method().clone();

    let mut response = if cors::is_question(&request) { cors::answer() } else { next.run(request).await };
    // Reserve once: adding this many headers would otherwise grow the map several times.
    response.headers_mut().reserve(MOST_HEADERS);
    // Settling may replace the error (by 429), so it must run before rendering.
    let rate_limit_status = rate_limit::settle(&app, ip, &mut response);
    if let Some(refusal) = response.extensions_mut().remove::<Refusal>() {
        refusal::render(&mut response, &refusal, condition.path(), id);
        if let Some(show) = error_page {
            show(condition.uri(), &refusal, &mut response);
        }
    }
    // Before the condition: a 304 must have the same `Vary` header as its 200.
    let compressible = Compressible::of(&response);
    condition.answer(&mut response);
    if let Some(compressible) = compressible {
        compressible.finish(&app, accepts_gzip, &mut response).await;
    }
    let status = response.status();
    let headers = response.headers_mut();
    id.tell(headers);
    rate_limit_status.write(headers, ResetUnit::Milliseconds, app.ctx.now());
    cors::open(headers);
    headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    if status == StatusCode::METHOD_NOT_ALLOWED {
        cors::tell_methods(headers);
    }
    match status {
        StatusCode::OK | StatusCode::NOT_MODIFIED => headers.entry(CACHE_CONTROL).or_insert(CACHED),
        _ => headers.entry(CACHE_CONTROL).or_insert(HeaderValue::from_static("no-store")),
    };
    let latency_ms = app.ctx.now().since_ms(began);
    tracing::debug!(request.id = %id, http.method = %method, http.path = condition.path(), http.status = status.as_u16(), latency_ms, "answered");
    response
}
