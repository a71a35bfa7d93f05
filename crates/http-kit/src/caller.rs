//! The authenticated caller as an extractor. Its type proves which scope was checked.

use std::marker::PhantomData;
use std::ops::Deref;

use app::AppError;
use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use domain::key::Scope;

use super::{Problem, Route};

/// A scope as a type, so that handler signatures name the scope they require.
pub trait ScopeMarker: Send + Sync + 'static {
    /// The scope, or `None` if any key is accepted.
    const SCOPE: Option<Scope>;
}

macro_rules! markers {
    ($($name:ident),* $(,)?) => {$(
        #[doc = concat!("[`Scope::", stringify!($name), "`] as a type.")]
        #[derive(Debug, Clone, Copy)]
        pub struct $name;

        impl ScopeMarker for $name {
            const SCOPE: Option<Scope> = Some(Scope::$name);
        }
    )*};
}
markers!(MarketsRead, MarketsQuote, PortfolioRead, TradesRead, TradesWrite, WebhooksManage, AuthManage);

/// Marker for routes that accept any key.
#[derive(Debug, Clone, Copy)]
pub struct AnyKey;

impl ScopeMarker for AnyKey {
    const SCOPE: Option<Scope> = None;
}

/// An authenticated caller from an allowed address whose key has the scope `S`.
///
/// The guard does the authentication, so that all checks run in the documented order. This
/// extractor only reads its result.
#[derive(Debug, Clone)]
pub struct Caller<S> {
    caller: app::caller::Caller,
    scope: PhantomData<S>,
}

impl<S> Caller<S> {
    /// Returns the caller without the scope proof, for use cases that outlive the request.
    pub fn into_inner(self) -> app::caller::Caller {
        self.caller
    }
}

impl<S> Deref for Caller<S> {
    type Target = app::caller::Caller;

    fn deref(&self) -> &Self::Target {
        &self.caller
    }
}

impl<M: ScopeMarker, T: Sync> FromRequestParts<T> for Caller<M> {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _: &T) -> Result<Self, Self::Rejection> {
        let route = parts.extensions.get::<&'static Route>();
        debug_assert_eq!(
            route.and_then(|route| route.scope),
            M::SCOPE,
            "table and handler agree on the scope"
        );
        let caller = parts.extensions.get::<app::caller::Caller>().cloned();
        // The guard inserts no caller on a route without authentication. Reject, whatever the
        // handler expects.
        let caller = caller
            .ok_or_else(|| AppError::internal("a handler requires a caller on a route without a key"))?;
        if let Some(scope) = M::SCOPE {
            caller.require(scope)?;
        }
        Ok(Self { caller, scope: PhantomData })
    }
}
