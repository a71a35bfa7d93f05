//! What stands before every handler: the deadline, the limiter, the operator's switch.

use std::net::IpAddr;
use std::panic::AssertUnwindSafe;

use axum::extract::{Request, State};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use futures::FutureExt;

use super::route::PublicRoute;
use super::standing::{self, Standing};
use super::{Code, Refusal};
use crate::http::{DEADLINE, Shared, address_of, panicked};

/// The layer's function, one for each route.
pub async fn guard(
    State((app, route)): State<(Shared, &'static PublicRoute)>,
    mut request: Request,
    next: Next,
) -> Response {
    let mut drawn: Option<Standing> = None;
    request.extensions_mut().insert(route);
    let ip = address_of(&request);
    let admitted_and_handled = async {
        match admit(&app, route, ip, &mut drawn).await {
            Ok(()) => next.run(request).await,
            Err(refusal) => refusal.into_response(),
        }
    };
    let caught = AssertUnwindSafe(admitted_and_handled).catch_unwind();
    let mut response = match tokio::time::timeout(DEADLINE, caught).await {
        Ok(Ok(response)) => response,
        Ok(Err(panic)) => Refusal::from(panicked(panic.as_ref())).into_response(),
        Err(_) => Refusal::new(Code::RequestTimeout).into_response(),
    };
    if let Some(standing) = drawn {
        response.extensions_mut().insert(standing);
    }
    response
}

async fn admit(
    app: &Shared,
    route: &'static PublicRoute,
    ip: IpAddr,
    drawn: &mut Option<Standing>,
) -> Result<(), Refusal> {
    standing::draw(app, route, ip, drawn).await?;
    app.ctx.switches.check("GET", route.path, false)?;
    Ok(())
}
