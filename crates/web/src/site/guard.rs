//! The checks and headers of every request of the site: its host, its origin, and the policy that
//! restricts a page to its own files.

use axum::extract::{Request, State};
use axum::http::header::{
    CACHE_CONTROL, CONTENT_SECURITY_POLICY, HOST, LOCATION, ORIGIN, REFERRER_POLICY, SET_COOKIE,
    STRICT_TRANSPORT_SECURITY,
};
use axum::http::uri::Authority;
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use http_kit::{SESSION_COOKIE, Shared, cookie};

/// A page loads only files of its own origin, contains no inline script or style, and is in no frame.
pub const POLICY: HeaderValue = HeaderValue::from_static(
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; \
     form-action 'self'; base-uri 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'",
);
const PERMISSIONS: HeaderValue = HeaderValue::from_static(
    "publickey-credentials-create=(self), publickey-credentials-get=(self), clipboard-write=(self), \
     camera=(), geolocation=(), microphone=(), payment=(), usb=()",
);
const SAME_ORIGIN: HeaderValue = HeaderValue::from_static("same-origin");
/// One year. Not for subdomains, which may be other services of the operator.
const HSTS: HeaderValue = HeaderValue::from_static("max-age=31536000");

/// The browser keeps no copy of what is shown to a person, so that nobody finds it there after the
/// sign-out.
const OF_PERSON: HeaderValue = HeaderValue::from_static("no-store");

const SEC_FETCH_SITE: HeaderName = HeaderName::from_static("sec-fetch-site");

/// Runs a request of the site if its host and origin are the site's own, and adds the headers of all
/// its responses.
pub async fn guard(State(app): State<Shared>, request: Request, next: Next) -> Response {
    let is_secure = app.app_url.starts_with("https://");
    let has_session = has_session(&request);
    let mut response = if !is_own_host(&app.app_url, request.headers()) {
        redirect(&app.app_url, &request)
    } else if is_foreign_write(&app.app_url, request.method(), request.headers()) {
        (StatusCode::FORBIDDEN, "This request must come from this site's own pages.\n").into_response()
    } else {
        next.run(request).await
    };
    let headers = response.headers_mut();
    if has_session || headers.contains_key(SET_COOKIE) {
        headers.insert(CACHE_CONTROL, OF_PERSON);
    }
    headers.insert(CONTENT_SECURITY_POLICY, POLICY);
    headers.insert(REFERRER_POLICY, SAME_ORIGIN);
    headers.insert(HeaderName::from_static("cross-origin-opener-policy"), SAME_ORIGIN);
    headers.insert(HeaderName::from_static("cross-origin-resource-policy"), SAME_ORIGIN);
    headers.insert(HeaderName::from_static("permissions-policy"), PERMISSIONS);
    if is_secure {
        headers.insert(STRICT_TRANSPORT_SECURITY, HSTS);
    }
    response
}

/// Returns whether a request has the cookie of a session, which may have ended. Files are the same
/// for everybody.
fn has_session(request: &Request) -> bool {
    !request.uri().path().starts_with("/assets/") && cookie(request.headers(), SESSION_COOKIE).is_some()
}

/// Sends a reader to the site's own host. Passkeys and cookies belong to one host, and a page that is
/// shown under a foreign name could be used for DNS rebinding.
fn redirect(app_url: &str, request: &Request) -> Response {
    if !matches!(*request.method(), Method::GET | Method::HEAD) {
        let text = format!("This site is at {app_url}.\n");
        return (StatusCode::MISDIRECTED_REQUEST, text).into_response();
    }
    let path = request.uri().path_and_query().map_or("/", |path| path.as_str());
    match HeaderValue::try_from(format!("{app_url}{path}")) {
        Ok(url) => (StatusCode::TEMPORARY_REDIRECT, [(LOCATION, url)]).into_response(),
        Err(_) => StatusCode::MISDIRECTED_REQUEST.into_response(),
    }
}

/// Returns the host and port of a URL.
fn authority(url: &str) -> Option<Authority> {
    url.split_once("://")?.1.split('/').next()?.parse().ok()
}

/// Returns whether `Host` is the site's. Every browser sends it. A service that listens on all
/// addresses and has no configured URL does not know its host.
fn is_own_host(app_url: &str, headers: &HeaderMap) -> bool {
    let Some(own) = authority(app_url).filter(|own| !matches!(own.host(), "0.0.0.0" | "[::]")) else {
        return true;
    };
    let Some(host) = headers.get(HOST) else { return true };
    let host = host.to_str().ok().and_then(|host| host.parse::<Authority>().ok());
    host.is_some_and(|host| own == host)
}

/// Returns whether another site's page sent this write.
fn is_foreign_write(app_url: &str, method: &Method, headers: &HeaderMap) -> bool {
    if matches!(*method, Method::GET | Method::HEAD | Method::OPTIONS) {
        return false;
    }
    let text = |name| headers.get(name).map(HeaderValue::as_bytes);
    match text(SEC_FETCH_SITE) {
        // `none`: the reader entered the address, or reloaded the result of a form.
        Some(site) => !matches!(site, b"same-origin" | b"none"),
        // Browsers without `Sec-Fetch-Site` send `Origin` with every write of another origin.
        None => text(ORIGIN).is_some_and(|origin| origin != origin_of(app_url).as_bytes()),
    }
}

/// Returns the origin of a URL: everything before its path.
fn origin_of(url: &str) -> &str {
    let start = url.find("://").map_or(0, |at| at + 3);
    url.get(start..).and_then(|rest| rest.find('/')).and_then(|end| url.get(..start + end)).unwrap_or(url)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SITE: &str = "https://foretell.example";

    fn headers(pairs: &[(HeaderName, &'static str)]) -> HeaderMap {
        pairs.iter().map(|(name, value)| (name.clone(), HeaderValue::from_static(value))).collect()
    }

    #[test]
    fn only_the_sites_own_host_serves_pages() {
        let is_own = |host| is_own_host(SITE, &headers(&[(HOST, host)]));
        assert!(is_own("foretell.example") && is_own("FORETELL.example"));
        for foreign in ["127.0.0.1", "foretell.example.attacker.test", "foretell.example:8443", "a b"] {
            assert!(!is_own(foreign), "{foreign}");
        }
        assert!(is_own_host(SITE, &headers(&[])));
        assert!(is_own_host("http://0.0.0.0:8080", &headers(&[(HOST, "10.0.0.7:8080")])));
        assert!(is_own_host("http://localhost:8080", &headers(&[(HOST, "localhost:8080")])));
    }

    #[test]
    fn a_write_must_come_from_the_site() {
        let is_foreign =
            |pairs: &[(HeaderName, &'static str)]| is_foreign_write(SITE, &Method::POST, &headers(pairs));
        assert!(!is_foreign(&[(SEC_FETCH_SITE, "same-origin")]));
        assert!(!is_foreign(&[(ORIGIN, "https://foretell.example")]));
        for site in ["cross-site", "same-site"] {
            // `Origin` cannot make up for it.
            assert!(is_foreign(&[(SEC_FETCH_SITE, site), (ORIGIN, "https://foretell.example")]), "{site}");
        }
        for origin in ["https://attacker.test", "null", "http://foretell.example"] {
            assert!(is_foreign(&[(ORIGIN, origin)]), "{origin}");
        }
        assert!(!is_foreign_write(SITE, &Method::GET, &headers(&[(SEC_FETCH_SITE, "cross-site")])));
    }

    #[test]
    fn an_origin_has_no_path() {
        assert_eq!(origin_of("https://foretell.example"), "https://foretell.example");
        assert_eq!(origin_of("https://foretell.example/app"), "https://foretell.example");
    }
}
