//! Calls of the trading API's handlers from within the process.

use app::AppError;
use app::caller::Caller;
use app::limits::LimitKind;
use axum::Router;
use axum::body::Body;
use axum::extract::Request;
use axum::http::header::CONTENT_TYPE;
use axum::http::{HeaderName, HeaderValue, StatusCode};
use domain::ErrorCode;
use http_body_util::BodyExt;
use http_kit::{Problem, RequestId, Route, Shared, TradeWritten, by_search, check_switches, draw_further};
use serde_json::Value;
use tower::ServiceExt;

use crate::v1::router;

const IDEMPOTENCY_KEY: HeaderName = HeaderName::from_static("idempotency-key");

/// The handlers of the trading API, without their guard.
#[derive(Debug, Clone)]
pub struct Handlers(Router);

/// A request to a handler.
#[derive(Debug)]
pub struct RouteCall {
    /// The method and the path's template.
    pub route: (&'static str, &'static str),
    /// The path with its query.
    pub path: String,
    /// The JSON body of a write.
    pub body: Option<String>,
    pub idempotency_key: Option<String>,
}

/// The answer of a handler.
#[derive(Debug)]
pub struct RouteAnswer {
    pub status: StatusCode,
    pub body: Value,
    /// The trade that the request created.
    pub trade: Option<TradeWritten>,
}

impl RouteCall {
    pub const fn get(template: &'static str, path: String) -> Self {
        Self { route: ("GET", template), path, body: None, idempotency_key: None }
    }

    pub fn post(path: &'static str, body: String, idempotency_key: Option<String>) -> Self {
        Self { route: ("POST", path), path: path.to_owned(), body: Some(body), idempotency_key }
    }

    fn into_request(self, route: &'static Route, caller: Caller, id: RequestId) -> Result<Request, AppError> {
        let builder = Request::builder().method(&route.method).uri(&self.path);
        let mut request =
            builder.body(Body::from(self.body.unwrap_or_default())).map_err(AppError::internal)?;
        if route.is_write() {
            request.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        }
        if let Some(key) = self.idempotency_key {
            let key = HeaderValue::try_from(key)
                .map_err(|_| AppError::new(ErrorCode::IdempotencyKeyFormatInvalid))?;
            request.headers_mut().insert(IDEMPOTENCY_KEY, key);
        }
        request.extensions_mut().insert(route);
        request.extensions_mut().insert(caller);
        request.extensions_mut().insert(id);
        Ok(request)
    }
}

impl Handlers {
    pub fn new(app: &Shared) -> Self {
        Self(router::unguarded(app))
    }

    /// Makes the guard's checks of the route and calls its handler. The call has been authenticated and
    /// counted as a read before.
    pub async fn call(
        &self,
        app: &Shared,
        caller: &Caller,
        id: RequestId,
        call: RouteCall,
    ) -> Result<RouteAnswer, Problem> {
        let (method, template) = call.route;
        let route = router::routes().find(|route| route.method == method && route.path == template);
        let route = route.ok_or_else(|| AppError::internal("a tool calls an unknown route"))?;
        if route.is_write()
            && let Some(refusal) = draw_further(app, LimitKind::Write, caller, 1).await.refusal
        {
            return Err(refusal);
        }
        let answer = self.call_admitted(app, caller, id, route, call).await;
        answer.map_err(|problem| if route.is_write() { problem.of_write() } else { problem })
    }

    async fn call_admitted(
        &self,
        app: &Shared,
        caller: &Caller,
        id: RequestId,
        route: &'static Route,
        call: RouteCall,
    ) -> Result<RouteAnswer, Problem> {
        if let Some(scope) = route.scope {
            caller.require(scope)?;
        }
        check_switches(&app.ctx, route)?;
        let request = call.into_request(route, caller.clone(), id)?;
        by_search(app, request.uri(), caller.ip())?;
        let mut response = match self.0.clone().oneshot(request).await {
            Ok(response) => response,
            Err(never) => match never {},
        };
        if let Some(problem) = response.extensions_mut().remove::<Problem>() {
            return Err(problem);
        }
        let trade = response.extensions_mut().remove::<TradeWritten>();
        let (parts, body) = response.into_parts();
        let bytes = body.collect().await.map_err(AppError::internal)?.to_bytes();
        let body = serde_json::from_slice(&bytes).map_err(AppError::internal)?;
        Ok(RouteAnswer { status: parts.status, body, trade })
    }
}
