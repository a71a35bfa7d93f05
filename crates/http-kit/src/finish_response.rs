//! The outermost layer. It assigns the request id, renders errors, and adds the common response
//! headers.

use std::time::Instant;

use app::metrics::{AnsweredRequest, RouteLabel};
use app::traces::{RequestTrace, TracedAnswer, within};
use axum::extract::Request;
use axum::http::header::{CACHE_CONTROL, COOKIE, REFERER, X_CONTENT_TYPE_OPTIONS};
use axum::http::{HeaderValue, StatusCode, Uri};
use axum::response::Response;

use super::compression::{AcceptsGzip, Compressible};
use super::etag::Condition;
use super::guard::NamesTrace;
use super::usage::Logged;
use super::{
    Personal, Problem, RequestId, Route, Shared, StablePart, Surface, cors, rate, render, traceparent,
    version,
};

/// Approximate number of response headers.
const MOST_HEADERS: usize = 20;

/// A request that failed, as error pages need it.
#[derive(Debug)]
pub struct FailedRequest<'a> {
    pub uri: &'a Uri,
    /// The first `Cookie` header, which has the reader's settings.
    pub cookie: Option<&'a HeaderValue>,
    /// The page that sent the request. Pages of this site name it, and others cannot read the answer.
    pub referer: Option<&'a HeaderValue>,
    pub id: RequestId,
}

/// Replaces the body of an error, for routes that people see in a browser.
pub type ErrorPage = fn(&FailedRequest<'_>, &Problem, &mut Response);

/// Runs `answer` for a request and completes its response.
pub(super) async fn finish_response(
    app: &Shared,
    surface: Surface,
    route: Option<&'static Route>,
    error_page: Option<ErrorPage>,
    mut request: Request,
    answer: impl AsyncFnOnce(Request) -> Response,
) -> Response {
    let (began, started) = (app.ctx.now(), Instant::now());
    let _in_flight = app.ctx.process.metrics.begin_request();
    let caller = traceparent::trace_parent(request.headers());
    // Dropped with the request if the client hangs up, which ends the trace's first span.
    let trace = app.ctx.process.traces.request(caller, began);
    let id = RequestId::new(&app.ctx);
    request.extensions_mut().insert(id);
    let ip = rate::mark_address(app, &mut request);
    let condition = Condition::of(&request);
    let accepts_gzip = AcceptsGzip::of(&request);
    let method = request.method().clone();
    let [cookie, referer] =
        [COOKIE, REFERER].map(|name| error_page.and_then(|_| request.headers().get(name).cloned()));

    let mut response = match surface {
        Surface::Public if cors::is_question(&request) => cors::answer(),
        _ => within(trace.as_ref().and_then(RequestTrace::open), answer(request)).await,
    };
    // Reserve once: adding this many headers would otherwise grow the map several times.
    response.headers_mut().reserve(MOST_HEADERS);
    let now = app.ctx.now();
    // Settling may replace the problem (e.g. by 429), so it must run before rendering.
    let rate_limit = rate::settle(app, surface, ip, now, &mut response).await;
    if let Some(logged) = response.extensions_mut().remove::<Logged>() {
        logged.note(&app.ctx, surface, id, &response);
    }
    let is_personal = response.extensions_mut().remove::<Personal>().is_some();
    if is_personal {
        response.extensions_mut().remove::<StablePart>();
        response.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static("private, no-store"));
    }
    // Anybody may send a `traceparent`. It counts only if a known caller did.
    let caller = caller.filter(|_| response.extensions_mut().remove::<NamesTrace>().is_some());
    let mut code = None;
    if let Some(problem) = response.extensions_mut().remove::<Problem>() {
        code = Some(problem.code());
        render::render(&mut response, &problem, surface, &app.docs_url, condition.path(), id);
        if let Some(show) = error_page {
            let failed = FailedRequest {
                uri: condition.uri(),
                cookie: cookie.as_ref(),
                referer: referer.as_ref(),
                id,
            };
            show(&failed, &problem, &mut response);
        }
    }
    // Before the condition: a 304 must have the same `Vary` header as its 200.
    let compressible = Compressible::of(&response);
    condition.answer(&mut response);
    if let Some(compressible) = compressible {
        compressible.finish(&app.responses.compressed, accepts_gzip, &mut response).await;
    }
    let status = response.status();
    let headers = response.headers_mut();
    id.add_header(headers);
    rate_limit.write(headers, surface, now);
    match surface {
        Surface::Trading => version::add_header(headers, app.versions.current),
        Surface::Public if !is_personal => cors::open(headers, status),
        Surface::Public | Surface::Web => {}
    }
    headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    headers.entry(CACHE_CONTROL).or_insert(default_caching(surface, status));
    let route = route.map_or(RouteLabel::NONE, |route| RouteLabel::of(route.path));
    let (method, status) = (method.as_str(), status.as_u16());
    app.ctx.process.metrics.request(&AnsweredRequest {
        route,
        method,
        status,
        code,
        took: started.elapsed(),
        trace_id: caller.map(|caller| caller.trace_id),
    });
    if let Some(trace) = trace {
        trace.answered(TracedAnswer { route, method, status, code, request_id: id.to_string() });
    }
    tracing::debug!(
        request.id = %id, http.method = method, http.path = condition.path(), http.status = status,
        latency_ms = app.ctx.now().since_ms(began), "answered"
    );
    response
}

/// Returns the caching of a response whose route did not set it. The trading API's default is strict:
/// a route must opt in to caching.
fn default_caching(surface: Surface, status: StatusCode) -> HeaderValue {
    let text = match (surface, status) {
        (Surface::Public, StatusCode::OK | StatusCode::NOT_MODIFIED) => {
            "public, max-age=5, s-maxage=5, stale-while-revalidate=10"
        }
        // The browser keeps a page, and asks if it has changed before it shows it again.
        (Surface::Web, StatusCode::OK | StatusCode::NOT_MODIFIED) => "private, no-cache",
        _ => "no-store",
    };
    HeaderValue::from_static(text)
}
