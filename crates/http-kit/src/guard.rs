//! The checks before every handler: the deadline, and the caller's checks in their documented
//! order.

use std::any::Any;
use std::panic::AssertUnwindSafe;
use std::time::Duration;

use app::caller::Caller;
use app::limits::budget::Budget;
use app::{AppError, Submission};
use axum::extract::Request;
use axum::http::header::CACHE_CONTROL;
use axum::http::{HeaderMap, HeaderName, HeaderValue};
use axum::response::{IntoResponse, Response};
use domain::ErrorCode;
use futures::FutureExt;

use super::problem::Problem;
use super::rate_limit_status::RateLimitStatus;
use super::usage::Meter;
use super::{Limiter, Route, Shared, Surface, audit, body, etag, kill_switch, rate, signature, version};

/// Maximum time from a request's headers to its response.
const DEADLINE: Duration = Duration::from_secs(10);
const X_API_KEY: HeaderName = HeaderName::from_static("x-api-key");

/// Results of the checks that every response reports, including rejections.
struct Found {
    version: &'static str,
    /// The state of the rate limiter that was used.
    rate_limit: Option<RateLimitStatus>,
    /// Whether the trace that the request names may be one of ours.
    names_trace: bool,
}

/// A response to a caller who may choose the id of its trace.
#[derive(Debug, Clone, Copy)]
pub(super) struct NamesTrace;

/// Runs a route's handler if the request passes all checks, and completes the response.
pub(super) async fn guard(
    app: &Shared,
    route: &'static Route,
    mut request: Request,
    handle: impl AsyncFnOnce(Request) -> Response,
) -> Response {
    let meter = Meter::start(&app.ctx);
    let mut found = Found { version: app.versions.current, rate_limit: None, names_trace: false };
    let admitted_and_handled = async {
        match admit(app, route, &mut request, &meter, &mut found).await {
            Ok(()) => {
                let key = request.extensions().get::<Caller>().map(|caller| caller.key.id);
                let mut response = handle(request).await;
                etag::set_owner(&mut response, key);
                response
            }
            Err(error) => {
                audit::note(app, route, &request, &error);
                refused(route, error)
            }
        }
    };
    let caught = AssertUnwindSafe(admitted_and_handled).catch_unwind();
    // A panic must become a 500 problem response. Otherwise the connection would just close.
    let mut response = match tokio::time::timeout(DEADLINE, caught).await {
        Ok(Ok(response)) => response,
        Ok(Err(panic)) => Problem::from(panicked(panic.as_ref())).into_response(),
        Err(_) => Problem::from(timed_out(route)).into_response(),
    };
    if route.is_write() {
        add_submission(&mut response);
    }
    // Set here rather than in the checks, because rejections and timeouts report the version too.
    if route.surface == Surface::Trading {
        version::add_header(response.headers_mut(), found.version);
    }
    if found.names_trace {
        response.extensions_mut().insert(NamesTrace);
    }
    if let Some(status) = found.rate_limit {
        // A handler that counts the parts of a request reports a newer state.
        response.extensions_mut().get_or_insert_with(|| status);
    }
    route.add_deprecation(&mut response);
    if route.asks_for_key() && response.extensions().get::<Problem>().is_none() {
        // Responses to keys must not be stored by shared caches. Errors get `no-store` later.
        let private = HeaderValue::from_static("private, no-cache");
        response.headers_mut().entry(CACHE_CONTROL).or_insert(private);
    }
    meter.record(&app.ctx, route, &mut response);
    response
}

/// Runs the checks in their documented order. The route decides which of them apply.
///
/// A request that uses no user limiter counts for its address when the response is completed. So do
/// failed authentications, which do not count for the user.
async fn admit(
    app: &Shared,
    route: &'static Route,
    request: &mut Request,
    meter: &Meter,
    found: &mut Found,
) -> Result<(), AppError> {
    request.extensions_mut().insert(route);
    // 1. The version of X-Service-Api-Version.
    let asked_for = match route.surface {
        Surface::Trading => version::asked_for(&app.versions, request.headers())?,
        Surface::Public | Surface::Web => None,
    };
    found.version = asked_for.unwrap_or(found.version);
    match route.limiter {
        // 2. The limiter by address, on routes without a key. It comes before the kill switches, so
        // that requests to a disabled route count too.
        Limiter::Address | Limiter::PerMinute(_) => {
            rate::by_address(app, route, rate::address_of(request), &mut found.rate_limit).await?;
        }
        Limiter::User(kind) => {
            let caller = admit_caller(app, request, meter, asked_for, found).await?;
            // 6. The user's limiter. It comes before the scope and counts every response, even a 304.
            rate::by_user(app, kind, &caller, &mut found.rate_limit).await?;
            rate::by_network_of_user(app, rate::address_of(request), &caller)?;
            // 7. The key's scope.
            if let Some(scope) = route.scope {
                caller.require(scope)?;
            }
            request.extensions_mut().insert(caller);
        }
    }
    rate::by_search(app, request.uri(), rate::address_of(request))?;
    // 8. The kill switches.
    if route.is_switchable() {
        kill_switch::check(&app.ctx, route)?;
    }
    // 9. The announced length of the body.
    if route.is_write() { body::check_announced_length(request.headers()) } else { Ok(()) }
}

/// Runs the checks of the key and of the body's signature, and returns the caller.
async fn admit_caller(
    app: &Shared,
    request: &mut Request,
    meter: &Meter,
    asked_for: Option<&'static str>,
    found: &mut Found,
) -> Result<Caller, AppError> {
    // 3. The address's lockout, between the check of the key's syntax and its lookup.
    // 4. The key's syntax, existence, revocation, expiry and allowlist.
    let ip = rate::address_of(request);
    let secret = api_key(request.headers())?.map(str::to_owned);
    let caller = app::keys::authenticate(&app.ctx, secret.as_deref(), ip).await;
    let caller = meter.identify(caller)?;
    if asked_for.is_none() {
        found.version = version::pinned_by(&app.versions, &caller.key)?.unwrap_or(found.version);
    }
    // 5. The body's signature.
    let secret = secret.unwrap_or_default();
    signature::check(request, &secret, &caller.key, &app.ctx).await?;
    // Record that the key works from this address, which exempts it from the address's lockout for
    // a day.
    app::keys::note_success(&app.ctx, &secret, ip).await;
    let (client, now) = ((ip, caller.user_id()), app.ctx.now());
    let may_sample = || app.ctx.budgets().spend_here(Budget::TraceSamples, client, now).is_ok();
    found.names_trace = app.ctx.process.traces.join_caller(may_sample);
    Ok(caller)
}

/// Builds the response to a request that was not admitted. No code behind the guard has run, so a
/// write was certainly not submitted.
fn refused(route: &Route, error: AppError) -> Response {
    let problem = Problem::from(error);
    let is_write = route.is_write();
    let problem = if is_write { problem.or_submission(Submission::NotSubmitted) } else { problem };
    problem.into_response()
}

/// Returns the single `X-API-Key` header.
fn api_key(headers: &HeaderMap) -> Result<Option<&str>, AppError> {
    let malformed = || AppError::new(ErrorCode::ApiKeyMalformed);
    let mut values = headers.get_all(X_API_KEY).iter();
    let first = values.next().map(|value| value.to_str().map_err(|_| malformed())).transpose()?;
    if values.next().is_some() {
        return Err(malformed().detail("The X-API-Key header was sent more than once."));
    }
    Ok(first)
}

/// Adds the submission state to an error response of a write route.
fn add_submission(response: &mut Response) {
    if let Some(problem) = response.extensions_mut().get_mut::<Problem>() {
        *problem = problem.clone().of_write();
    }
}

fn timed_out(route: &Route) -> AppError {
    let error = AppError::new(ErrorCode::RequestTimeout);
    match route.surface {
        Surface::Trading if !route.is_write() => error.detail("The request took too long. Try it again."),
        _ => error,
    }
}

fn panicked(panic: &(dyn Any + Send)) -> AppError {
    let text = panic.downcast_ref::<&str>().copied();
    let text = text.or_else(|| panic.downcast_ref::<String>().map(String::as_str));
    let cause = format!("a handler panicked: {}", text.unwrap_or("without a message"));
    AppError::internal(cause)
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::http::StatusCode;

    fn headers(values: &[&[u8]]) -> HeaderMap {
        let values = values.iter().map(|value| HeaderValue::from_bytes(value).unwrap());
        values.map(|value| (X_API_KEY, value)).collect()
    }

    #[test]
    fn a_repeated_or_unreadable_key_is_malformed_and_an_absent_key_is_missing() {
        let code = |values: &[&[u8]]| api_key(&headers(values)).map(|_| ()).map_err(|error| error.code);
        assert_eq!(code(&[]), Ok(()));
        assert_eq!(code(&[b"a"]), Ok(()));
        assert_eq!(code(&[b"a", b"a"]), Err(ErrorCode::ApiKeyMalformed));
        assert_eq!(code(&[b"\xff"]), Err(ErrorCode::ApiKeyMalformed));
    }

    #[test]
    fn a_rejected_write_reports_if_it_may_have_been_stored() {
        for (code, word) in
            [(ErrorCode::ValidationFailed, "NotSubmitted"), (ErrorCode::InternalError, "Unknown")]
        {
            let mut response = Problem::new(code).into_response();
            add_submission(&mut response);
            let problem = response.extensions().get::<Problem>().unwrap();
            assert!(format!("{problem:?}").contains(&format!("submission: Some({word})")), "{problem:?}");
        }
    }

    #[test]
    fn a_panic_is_an_internal_error_and_its_text_is_only_logged() {
        let error = panicked(&"no such outcome");
        assert_eq!(Problem::new(error.code).status(Surface::Trading), StatusCode::INTERNAL_SERVER_ERROR);
        assert!(!error.detail.contains("outcome"));
        assert!(error.source.is_some_and(|source| source.to_string().contains("no such outcome")));
    }
}
