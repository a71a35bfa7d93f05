//! Where a key's events go, as it is set: what cannot be called is refused here, and again whenever something is sent.

use domain::webhook::target::{Target, TargetPolicy};

use crate::AppError;

/// Refuses a URL that events are not sent to; `field` is where the caller has written it.
pub fn check_url(policy: &TargetPolicy, field: &str, url: &str) -> Result<(), AppError> {
    Target::parse(url, policy).map(drop).map_err(|refusal| AppError::field(field, &refusal.to_string()))
}
