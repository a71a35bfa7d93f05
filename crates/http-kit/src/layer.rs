//! One Tower layer around every handler. It combines all per-request steps, so that a request is
//! boxed once instead of once per step.

use std::convert::Infallible;
use std::task::{Context, Poll};

use axum::extract::Request;
use axum::response::Response;
use futures::future::BoxFuture;
use tower::{Layer, Service, ServiceExt};

use super::{RouteInfo, Shared, finish_response, guard};

/// The layer: [`finish_response`] for every request, and inside it the [`guard`] for routes of the
/// table.
#[derive(Clone)]
pub struct HttpLayer {
    app: Shared,
    route: Option<&'static RouteInfo>,
}

impl HttpLayer {
    /// Wraps handlers that are not in the route table: fallbacks, and routes served beside the API.
    pub const fn without_guard(app: Shared) -> Self {
        Self { app, route: None }
    }

    /// Wraps the handler of `route`.
    pub const fn guarded(app: Shared, route: &'static RouteInfo) -> Self {
        Self { app, route: Some(route) }
    }
}

impl<S> Layer<S> for HttpLayer {
    type Service = HttpService<S>;

    fn layer(&self, handler: S) -> HttpService<S> {
        HttpService { layer: self.clone(), handler }
    }
}

/// A handler wrapped by [`HttpLayer`].
#[derive(Clone)]
pub struct HttpService<S> {
    layer: HttpLayer,
    handler: S,
}

impl<S> Service<Request> for HttpService<S>
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
        // The future outlives `&mut self`, so it takes clones.
        let Self { layer: HttpLayer { app, route }, handler } = self.clone();
        Box::pin(async move {
            let handle = async |request| match handler.oneshot(request).await {
                Ok(response) => response,
                Err(never) => match never {},
            };
            Ok(match route {
                Some(route) => {
                    finish_response(&app, request, async |request| guard(&app, route, request, handle).await)
                        .await
                }
                None => finish_response(&app, request, handle).await,
            })
        })
    }
}
