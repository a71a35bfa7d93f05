//! One Tower layer around every handler. It combines all per-request steps, so that a request is
//! boxed once instead of once per step.

use std::convert::Infallible;
use std::task::{Context, Poll};

use axum::extract::Request;
use axum::response::Response;
use futures::future::BoxFuture;
use tower::{Layer, Service, ServiceExt};

use super::finish_response::{ErrorPage, finish_response};
use super::guard::guard;
use super::{Route, Shared, Surface};

/// The layer: request ids, error bodies and common headers for every request, and inside them the
/// guard for routes of a table.
#[derive(Clone)]
pub struct HttpLayer {
    app: Shared,
    surface: Surface,
    error_page: Option<ErrorPage>,
    route: Option<&'static Route>,
}

impl HttpLayer {
    /// Wraps handlers that are not in a route table: fallbacks, and routes served beside it.
    pub const fn new(app: Shared, surface: Surface) -> Self {
        Self { app, surface, error_page: None, route: None }
    }

    /// Shows errors with this page.
    #[must_use]
    pub fn error_page(self, page: ErrorPage) -> Self {
        Self { error_page: Some(page), ..self }
    }

    /// Wraps the handler of `route`.
    pub(super) fn guarding(&self, route: &'static Route) -> Self {
        Self { surface: route.surface, route: Some(route), ..self.clone() }
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
        let Self { layer, handler } = self.clone();
        Box::pin(async move {
            let handle = async |request| match handler.oneshot(request).await {
                Ok(response) => response,
                Err(never) => match never {},
            };
            let HttpLayer { app, surface, error_page, route } = &layer;
            let answer = async |request| match *route {
                Some(route) => guard(app, route, request, handle).await,
                None => handle(request).await,
            };
            Ok(finish_response(app, *surface, *route, *error_page, request, answer).await)
        })
    }
}
