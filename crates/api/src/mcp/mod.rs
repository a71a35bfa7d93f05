//! Tools for agents: the Model Context Protocol over HTTP, without sessions, at `POST /mcp`.
//!
//! A request passes the same guard as the trading API. A tool then calls the handler of the route that does
//! the same (`routes`), and answers with the few members that an agent needs. The parsing, the checks and the
//! errors of both are therefore the same. Any process can answer any request, because nothing is kept between
//! two of them.

mod amount;
mod answers;
mod arguments;
mod call;
mod origin;
mod routes;
mod run;
mod schema;
mod server;
mod session;
mod tools;

use std::sync::Arc;

use app::AppError;
use app::limits::LimitKind;
use axum::body::{Body, Bytes, HttpBody};
use axum::extract::{Request, State};
use axum::http::header::{ACCEPT, CONTENT_TYPE, HOST};
use axum::http::{HeaderName, HeaderValue};
use axum::response::{IntoResponse, Response};
use axum::{Extension, Router};
use domain::ErrorCode;
use http_body_util::{BodyExt, Full};
use http_kit::{
    AnyKey, Caller, Entry, HttpLayer, Limiter, MAX_BODY_BYTES, OnlyRead, Problem, RequestId, Route, Shared,
    Surface, is_json, read_body,
};
use rmcp::transport::streamable_http_server::session::never::NeverSessionManager;
use rmcp::transport::streamable_http_server::{StreamableHttpServerConfig, StreamableHttpService};

use self::call::Message;
use self::routes::Handlers;
use self::server::Server;
use self::session::{Session, Written};

static TABLE: &[Entry<Shared>] = http_kit::table! { Trading:
    POST "/mcp", Limiter::User(LimitKind::Read), switchable(true) => handle;
};

/// Returns the routes of the tools, for the kill switches and tests.
pub fn routes() -> impl Iterator<Item = &'static Route> {
    TABLE.iter().map(|entry| &entry.route)
}

/// Returns the router of the tools, which has no routes if the operator did not switch them on.
pub fn router(app: &Shared) -> Router<Shared> {
    if app.mcp.is_none() {
        return Router::new();
    }
    let layer = HttpLayer::new(Shared::clone(app), Surface::Trading);
    http_kit::router(&layer, TABLE, Router::new()).layer(Extension(Handlers::new(app)))
}

/// `POST /mcp`: one message of the protocol.
async fn handle(
    State(app): State<Shared>,
    caller: Caller<AnyKey>,
    id: RequestId,
    Extension(handlers): Extension<Handlers>,
    mut request: Request,
) -> Result<Response, Problem> {
    let settings = app.mcp.clone().unwrap_or_default();
    origin::check(&app.app_url, &settings.hosts, request.headers())?;
    if !is_json(request.headers()) {
        return Err(Problem::new(ErrorCode::UnsupportedMediaType));
    }
    let headers = request.headers_mut();
    // The key is not for the tools.
    headers.remove(HeaderName::from_static("x-api-key"));
    // No request is rejected for its `Accept`. All answers are JSON.
    headers.insert(ACCEPT, HeaderValue::from_static("application/json, text/event-stream"));
    // The library reads the host, which was checked above.
    headers.insert(HOST, HeaderValue::from_static("localhost"));
    let (parts, body) = request.into_parts();
    let raw = read_body(&app, Request::from_parts(parts.clone(), body)).await?;
    let Message { arguments } = Message::read(&raw)?;
    let session = Arc::new(Session::new(
        app,
        caller.into_inner().through_agent_tools(),
        id,
        settings,
        handlers,
        arguments,
    ));
    let server = Server::new(Arc::clone(&session));
    let service = StreamableHttpService::new(
        move || Ok(server.clone()),
        Arc::new(NeverSessionManager::default()),
        config(),
    );
    let answer = service.handle(Request::from_parts(parts, Full::new(raw))).await;
    let mut response = finish(answer).await?;
    match session.written() {
        Some(Written::Trade(trade)) => {
            response.extensions_mut().insert(trade);
        }
        Some(Written::Other) => {}
        None => {
            response.extensions_mut().insert(OnlyRead);
        }
    }
    Ok(response)
}

/// Returns the settings of the protocol. The host and the origin were checked before.
fn config() -> StreamableHttpServerConfig {
    StreamableHttpServerConfig::default()
        .with_legacy_session_mode(false)
        .with_json_response(true)
        .with_max_request_body_bytes(MAX_BODY_BYTES)
        .disable_allowed_hosts()
        .disable_allowed_origins()
}

/// Returns the answer of the protocol. One that is not JSON is the refusal of a malformed message.
async fn finish<B>(answer: http::Response<B>) -> Result<Response, Problem>
where
    B: HttpBody<Data = Bytes>,
    B::Error: std::error::Error + Send + Sync + 'static,
{
    let (parts, body) = answer.into_parts();
    let bytes = body.collect().await.map_err(AppError::internal)?.to_bytes();
    let is_json = parts.headers.get(CONTENT_TYPE).is_some_and(|kind| kind == "application/json");
    if parts.status.is_success() || is_json {
        return Ok((parts, Body::from(bytes)).into_response());
    }
    let text = String::from_utf8_lossy(&bytes).into_owned();
    if parts.status.is_server_error() {
        return Err(AppError::internal(text).into());
    }
    Err(AppError::field("", &format!("must be a message of the Model Context Protocol: {text}")).into())
}
