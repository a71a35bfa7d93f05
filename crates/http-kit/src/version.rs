//! Selects the API version of a request: the one in its header, else the one that its key is pinned
//! to, else the current one.

use app::AppError;
use axum::http::{HeaderMap, HeaderName, HeaderValue};
use domain::ErrorCode;
use domain::version::{VERSIONS, VersionRefusal, Versions};
use store::keys::Key;

/// The default API version.
pub const API_VERSION: &str = VERSIONS.current;
/// Header that requests a version, and reports the version of the response.
pub(super) const X_SERVICE_API_VERSION: HeaderName = HeaderName::from_static("x-service-api-version");
const POINTER: &str = "/header/X-Service-Api-Version";

/// Returns the version that the header requests.
pub(super) fn asked_for(versions: &Versions, headers: &HeaderMap) -> Result<Option<&'static str>, AppError> {
    let mut values = headers.get_all(X_SERVICE_API_VERSION).iter();
    let Some(value) = values.next() else { return Ok(None) };
    if values.next().is_some() {
        return Err(AppError::field(POINTER, "must be sent only once"));
    }
    // An unreadable value becomes an unknown version.
    let name = value.to_str().unwrap_or_default();
    match versions.find(name) {
        Ok(version) => Ok(Some(version)),
        Err(VersionRefusal::Retired) => Err(retired(versions, name)),
        Err(VersionRefusal::Unknown) => {
            let requirement = format!("must be one of the versions {}", served(versions));
            Err(AppError::wrong_value(POINTER, &requirement, name))
        }
    }
}

/// Returns the version that the key is pinned to. An unknown version is treated like a retired one.
pub(super) fn pinned_by(versions: &Versions, key: &Key) -> Result<Option<&'static str>, AppError> {
    let Some(name) = key.api_version.as_deref() else { return Ok(None) };
    versions.find(name).map(Some).map_err(|_| retired(versions, name))
}

fn retired(versions: &Versions, name: &str) -> AppError {
    let detail = format!("Version {name} of the API was retired. Use one of {}.", served(versions));
    AppError::new(ErrorCode::ApiVersionUnsupported).detail(detail)
}

fn served(versions: &Versions) -> String {
    versions.served().collect::<Vec<_>>().join(", ")
}

/// Adds the version header, unless it is already set.
pub(super) fn add_header(headers: &mut HeaderMap, version: &'static str) {
    headers.entry(X_SERVICE_API_VERSION).or_insert(HeaderValue::from_static(version));
}
