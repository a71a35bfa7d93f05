//! The checks before every public handler: deadline, rate limiter and kill switch.

use std::net::IpAddr;
use std::panic::AssertUnwindSafe;

use axum::extract::{Request, State};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use futures::FutureExt;

use super::rate_limit;
use super::route::PublicRoute;
use super::{Code, Refusal};
use crate::rate_limit_status::RateLimitStatus;
use crate::{DEADLINE, Shared, address_of, panicked};

/// The middleware function of a route.
pub async fn guard(
    State((app, route)): State<(Shared, &'static PublicRoute)>,
    mut request: Request,
    next: Next,
) -> Response {
    let mut status: Option<RateLimitStatus> = None;
    request.extensions_mut().insert(route);
    let ip = address_of(&request);
    let admitted_and_handled = async {
        match admit(&app, route, ip, &mut status).await {
            Ok(()) => next.run(request).await,
            Err(refusal) => refusal.into_response(),
        }
    };
    // A panic must become a 500 response. Otherwise the connection would just close.
    let caught = AssertUnwindSafe(admitted_and_handled).catch_unwind();
    let mut response = match tokio::time::timeout(DEADLINE, caught).await {
        Ok(Ok(response)) => response,
        Ok(Err(panic)) => Refusal::from(panicked(panic.as_ref())).into_response(),
        Err(_) => Refusal::new(Code::RequestTimeout).into_response(),
    };
    if let Some(status) = status {
        response.extensions_mut().insert(status);
    }
    response
}

async fn admit(
    app: &Shared,
    route: &'static PublicRoute,
    ip: IpAddr,
    status: &mut Option<RateLimitStatus>,
) -> Result<(), Refusal> {
    // The limiter comes first, so that requests to a disabled route count too.
    rate_limit::draw(app, route, ip, status).await?;
    app.ctx.process.switches.check("GET", route.path, false)?;
    Ok(())
}
