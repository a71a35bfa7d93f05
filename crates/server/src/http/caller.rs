//! The caller as a handler sees it: its type says what was proved.

use std::marker::PhantomData;
use std::ops::Deref;

use app::AppError;
use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use domain::ErrorCode;
use domain::key::Scope;

use super::{Problem, RouteInfo};

/// A scope as a type, so that it stands in a handler's signature.
pub trait ScopeMarker: Send + Sync + 'static {
    /// The scope; `None` where any key will do.
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

/// No scope: any key will do.
#[derive(Debug, Clone, Copy)]
pub struct AnyKey;

impl ScopeMarker for AnyKey {
    const SCOPE: Option<Scope> = None;
}

/// An authenticated caller from an allowed address whose key has the scope `S`.
///
/// The guard has authenticated it by then, so that the checks keep their order; this is the proof of it.
#[derive(Debug, Clone)]
pub struct Caller<S> {
    caller: app::keys::Caller,
    scope: PhantomData<S>,
}

impl<S> Caller<S> {
    /// The caller without the proof, as use cases that outlive the request take it.
    pub fn into_inner(self) -> app::keys::Caller {
        self.caller
    }
}

impl<S> Deref for Caller<S> {
    type Target = app::keys::Caller;

    fn deref(&self) -> &Self::Target {
        &self.caller
    }
}

impl<M: ScopeMarker, T: Sync> FromRequestParts<T> for Caller<M> {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _: &T) -> Result<Self, Self::Rejection> {
        let route = parts.extensions.get::<&'static RouteInfo>();
        debug_assert_eq!(
            route.and_then(|route| route.scope),
            M::SCOPE,
            "table and handler agree on the scope"
        );
        let caller = parts.extensions.get::<app::keys::Caller>().cloned();
        // A route that the table declares open has no caller: refused whatever the handler says.
        let caller = caller.ok_or_else(|| {
            AppError::new(ErrorCode::InternalError)
                .caused_by("a handler asks for a caller on a route without a key")
        })?;
        if let Some(scope) = M::SCOPE {
            caller.require(scope)?;
        }
        Ok(Self { caller, scope: PhantomData })
    }
}
