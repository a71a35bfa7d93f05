//! The clock of a development service, which clients may move.

use std::sync::Arc;

use app::AppError;
use app::test_clock::{ClockMove, TestClock};
use axum::extract::{FromRequestParts, State};
use axum::http::request::Parts;
use domain::trade::FieldError;
use domain::{ErrorCode, Timestamp};
use http_kit::{AnyKey, Body, Caller, JsonBody, Meta, NoParameters, Problem, Query, Shared, Single};
use protocol::document::Members;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::openapi::answers::answers;

answers! {
    ClockAnswer = single("clock", ClockRecord);
}

/// The clock of the service and of its chain.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = SandboxClock)]
#[serde(rename_all = "camelCase")]
pub struct ClockRecord {
    now: Timestamp,
}

/// A movement of the clock. Exactly one member must be sent.
#[derive(Debug, Deserialize, ToSchema)]
#[schema(as = MoveSandboxClockRequest)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct MoveBody {
    /// The number of seconds by which the clock moves forward.
    #[schema(minimum = 1)]
    advance_seconds: Option<i64>,
    /// The new time. It must not be before the present one.
    #[schema(value_type = Option<Timestamp>)]
    now: Option<String>,
}

impl JsonBody for MoveBody {
    fn read(members: &mut Members<'_>) -> Self {
        Self { advance_seconds: members.integer("advanceSeconds"), now: members.text("now") }
    }

    fn wrong_values(&self) -> Vec<FieldError> {
        self.to_move().err().into_iter().collect()
    }
}

impl MoveBody {
    fn to_move(&self) -> Result<ClockMove, FieldError> {
        match (self.advance_seconds, &self.now) {
            (Some(seconds), None) => {
                let wrong =
                    || FieldError::new("/advanceSeconds", "must be at least 1").got(&seconds.to_string());
                u64::try_from(seconds)
                    .ok()
                    .filter(|seconds| *seconds > 0)
                    .map(ClockMove::By)
                    .ok_or_else(wrong)
            }
            (None, Some(text)) => {
                let wrong = |_| {
                    FieldError::new("/now", "must be an ISO 8601 instant such as 2026-04-29T12:00:00Z")
                        .got(text)
                };
                text.parse().map(ClockMove::To).map_err(wrong)
            }
            (None, None) => Err(FieldError::new("/advanceSeconds", "is required, unless now is sent")),
            (Some(_), Some(_)) => {
                Err(FieldError::new("/now", "must not be sent together with advanceSeconds"))
            }
        }
    }
}

/// An extractor that succeeds only if the service runs with a test clock. Otherwise requests are
/// rejected before their body is read.
#[derive(Debug)]
pub struct MovableClock(Arc<TestClock>);

impl FromRequestParts<Shared> for MovableClock {
    type Rejection = Problem;

    async fn from_request_parts(_: &mut Parts, app: &Shared) -> Result<Self, Self::Rejection> {
        const ABSENT: &str =
            "The clock of this service cannot be moved. Only `foretell dev --test-clock` has one that can.";
        let clock = app.test_clock.clone().map(Self);
        Ok(clock.ok_or_else(|| AppError::new(ErrorCode::ResourceNotFound).detail(ABSENT))?)
    }
}

/// `GET /v1/sandbox/clock`: the time of the service.
#[utoipa::path(
    get, path = "/v1/sandbox/clock", operation_id = "getSandboxClock", tag = "Sandbox",
    summary = "Read the test clock",
    description = "The time of a service that runs with a test clock. Sign requests with this time. Any \
        other service answers RESOURCE_NOT_FOUND. Needs no particular scope.",
    responses((status = 200, description = "The clock.", body = ClockAnswer)),
    extensions(("x-error-codes" = json!(["RESOURCE_NOT_FOUND"]))),
)]
pub async fn read(
    State(app): State<Shared>,
    _: Caller<AnyKey>,
    _: MovableClock,
    _: Query<NoParameters>,
    meta: Meta,
) -> Result<Single<ClockRecord>, Problem> {
    Ok(meta.single("clock", ClockRecord { now: app.ctx.now() }))
}

/// `POST /v1/sandbox/clock`: moves the time of the service and of its chain forward.
#[utoipa::path(
    post, path = "/v1/sandbox/clock", operation_id = "moveSandboxClock", tag = "Sandbox",
    summary = "Move the test clock",
    description = "Moves the time of a service that runs with a test clock forward, and mines a block at the \
        new time. Work that is due then is done at once: held trades expire, webhooks are retried, markets \
        close. The clock never moves back. Any other service answers \
        RESOURCE_NOT_FOUND. Needs no particular scope.",
    request_body(content = MoveBody, description = "The movement."),
    responses((status = 200, description = "The clock after the movement.", body = ClockAnswer)),
    extensions(("x-error-codes" = json!(["RESOURCE_NOT_FOUND"]))),
)]
pub async fn make_move(
    State(app): State<Shared>,
    _: Caller<AnyKey>,
    MovableClock(clock): MovableClock,
    _: Query<NoParameters>,
    meta: Meta,
    body: Body<MoveBody>,
) -> Result<Single<ClockRecord>, Problem> {
    let to = body.value.to_move().map_err(|error| AppError::validation(&[error]))?;
    let moved = app.mutate(move |app| async move { clock.make_move(&app.ctx, to).await });
    Ok(meta.single("clock", ClockRecord { now: moved.await? }))
}
