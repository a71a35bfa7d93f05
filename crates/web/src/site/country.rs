//! The operator's rule about countries: from some, nobody may sign up or buy.

use axum::extract::{FromRef, FromRequestParts};
use axum::http::request::Parts;
use http_kit::{Shared, WebCode};

/// Tells whether the operator allows signing up and buying from the country of a request. Selling,
/// claiming and withdrawing are always allowed: nobody's money is kept.
#[derive(Debug, Clone, Copy, Default)]
pub struct Country {
    pub is_refused: bool,
}

impl Country {
    pub fn require_allowed(self) -> Result<(), WebCode> {
        if self.is_refused { Err(WebCode::CountryRefused) } else { Ok(()) }
    }
}

impl<S: Sync> FromRequestParts<S> for Country
where
    Shared: FromRef<S>,
{
    type Rejection = std::convert::Infallible;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Self::Rejection> {
        let app = Shared::from_ref(state);
        let rule = app.ctx.config.web.as_ref().and_then(|web| web.country_rule.as_ref());
        let is_refused = rule.is_some_and(|rule| {
            let named =
                parts.headers.get_all(&rule.header).iter().map(|value| value.to_str().unwrap_or_default());
            rule.refuses(named)
        });
        Ok(Self { is_refused })
    }
}
