//! The outermost layer: gives every request its id, every problem its body and every answer its headers.

use axum::extract::{Request, State};
use axum::http::HeaderValue;
use axum::http::header::CACHE_CONTROL;
use axum::middleware::Next;
use axum::response::Response;

use super::etag::Condition;
use super::problem::{self, Problem};
use super::{RequestId, Shared, rate, version};

/// The layer's function.
pub async fn surround(State(app): State<Shared>, mut request: Request, next: Next) -> Response {
    let began = app.ctx.now();
    let id = RequestId::new(&app.ctx);
    request.extensions_mut().insert(id);
    let ip = rate::mark_address(&app, &mut request);
    let condition = Condition::of(&request);
    let (method, path) = (request.method().clone(), request.uri().path().to_owned());

    let mut response = next.run(request).await;
    let standing = rate::settle(&app, ip, &mut response).await;
    if let Some(problem) = response.extensions_mut().remove::<Problem>() {
        problem::render(&mut response, &problem, &app.docs_url, &path, id);
    }
    condition.answer(&mut response);
    version::tell(&mut response, app.versions.current);
    let status = response.status().as_u16();
    let headers = response.headers_mut();
    id.tell(headers);
    standing.write(headers, app.ctx.now());
    headers.entry(CACHE_CONTROL).or_insert(HeaderValue::from_static("no-store"));
    let latency_ms = app.ctx.now().since_ms(began);
    tracing::debug!(request.id = %id, http.method = %method, http.path = path, http.status = status, latency_ms, "answered");
    response
}
