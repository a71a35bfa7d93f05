//! What stands around every handler as one layer, so that a request passes one box and not one for each part.

use std::convert::Infallible;
use std::task::{Context, Poll};

use axum::extract::Request;
use axum::response::Response;
use futures::future::BoxFuture;
use tower::{Layer, Service, ServiceExt};

use super::{RouteInfo, Shared, guard, surround};

/// The layer: [`surround`], and for a route of the table its [`guard`] within.
#[derive(Clone)]
pub struct Around {
    app: Shared,
    route: Option<&'static RouteInfo>,
}

impl Around {
    /// Around what is no route of the table: the answers to unknown paths, and what is served beside the API.
    pub const fn nothing(app: Shared) -> Self {
        Self { app, route: None }
    }

    /// Around a route's handler.
    pub const fn route(app: Shared, route: &'static RouteInfo) -> Self {
        Self { app, route: Some(route) }
    }
}

impl<S> Layer<S> for Around {
    type Service = Surrounded<S>;

    fn layer(&self, handler: S) -> Surrounded<S> {
        Surrounded { around: self.clone(), handler }
    }
}

/// The handler with what stands around it.
#[derive(Clone)]
pub struct Surrounded<S> {
    around: Around,
    handler: S,
}

impl<S> Service<Request> for Surrounded<S>
where
    S: Service<Request, Response = Response, Error = Infallible, Future: Send> + Clone + Send + 'static,
{
    type Response = Response;
    type Error = Infallible;
    type Future = BoxFuture<'static, Result<Response, Infallible>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request) -> Self::Future {
        let Self { around: Around { app, route }, handler } = self.clone();
        Box::pin(async move {
            let handle = async |request| match handler.oneshot(request).await {
                Ok(response) => response,
                Err(never) => match never {},
            };
            Ok(match route {
                Some(route) => {
                    surround(&app, request, async |request| guard(&app, route, request, handle).await).await
                }
                None => surround(&app, request, handle).await,
            })
        })
    }
}
