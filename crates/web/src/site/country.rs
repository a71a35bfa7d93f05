//! The country of a request, for the operator's rule about countries.

use app::people;
use axum::extract::{FromRef, FromRequestParts};
use axum::http::request::Parts;
use http_kit::Shared;

/// The country of a request, as the operator's proxy names it.
#[derive(Debug, Clone, Copy, Default)]
pub struct Country(pub people::Country);

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
        Ok(Self(people::Country { is_refused }))
    }
}
