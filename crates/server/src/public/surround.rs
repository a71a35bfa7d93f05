//! The outermost layer: gives every request its id, every refusal its body and every answer its headers.

use axum::extract::{Request, State};
use axum::http::header::{CACHE_CONTROL, X_CONTENT_TYPE_OPTIONS};
use axum::http::{HeaderValue, StatusCode};
use axum::middleware::Next;
use axum::response::Response;

use super::refusal::{self, Refusal};
use super::{cors, embeds, standing};
use crate::http::{AcceptsGzip, Compressible, Condition, RequestId, Shared, mark_address};

/// For how long an answer may be shown again.
const CACHED: HeaderValue = HeaderValue::from_static("public, max-age=5, stale-while-revalidate=10");

/// The headers of an answer, about.
const MOST_HEADERS: usize = 20;

/// The layer's function.
pub async fn surround(State(app): State<Shared>, mut request: Request, next: Next) -> Response {
    let began = app.ctx.now();
    let id = RequestId::new(&app.ctx);
    request.extensions_mut().insert(id);
    let ip = mark_address(&app, &mut request);
    let condition = Condition::of(&request);
    let accepts_gzip = AcceptsGzip::of(&request);
    let method = request.method().clone();
    let page = embeds::theme_of(request.uri());

    let mut response = if cors::is_question(&request) { cors::answer() } else { next.run(request).await };
    // So many are written that the map would grow more than once.
    response.headers_mut().reserve(MOST_HEADERS);
    let standing = standing::settle(&app, ip, &mut response);
    if let Some(refusal) = response.extensions_mut().remove::<Refusal>() {
        refusal::render(&mut response, &refusal, condition.path(), id);
        if let Some(theme) = page {
            embeds::show_refusal(&mut response, &refusal, theme);
        }
    }
    let compressible = Compressible::of(&response);
    condition.answer(&mut response);
    if let Some(compressible) = compressible {
        compressible.finish(&app, accepts_gzip, &mut response).await;
    }
    let status = response.status();
    let headers = response.headers_mut();
    id.tell(headers);
    standing.write(headers, app.ctx.now());
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
