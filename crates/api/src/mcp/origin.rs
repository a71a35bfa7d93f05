//! The defence against web pages of other sites, which the protocol requires of its servers. A page can reach
//! a service on its visitor's machine or network under a name of its own (DNS rebinding). The `Host` and
//! `Origin` headers then show the foreign name.

use app::AppError;
use axum::http::header::{HOST, ORIGIN};
use axum::http::uri::Authority;
use axum::http::{HeaderMap, HeaderValue};
use domain::ErrorCode;

const THIS_MACHINE: [&str; 3] = ["localhost", "127.0.0.1", "[::1]"];

/// Checks that the request's `Host` and `Origin`, if they are sent, have names of this service.
pub fn check(app_url: &str, hosts: &[String], headers: &HeaderMap) -> Result<(), AppError> {
    let own = host_of(app_url).unwrap_or_default();
    let is_own = |host: &str| {
        let known = THIS_MACHINE.into_iter().chain([own.as_str()]).chain(hosts.iter().map(String::as_str));
        known.filter(|known| !known.is_empty()).any(|known| known.eq_ignore_ascii_case(host))
    };
    // A service that listens on all addresses and has no configured URL does not know its name.
    let knows_its_name = !matches!(own.as_str(), "0.0.0.0" | "[::]");
    for host in headers.get_all(HOST) {
        let name = text(host).and_then(|host| host.parse::<Authority>().ok());
        if knows_its_name && !name.is_some_and(|name| is_own(name.host())) {
            return Err(refusal("The Host header must be a name of this service"));
        }
    }
    for origin in headers.get_all(ORIGIN) {
        if !text(origin).and_then(host_of).is_some_and(|host| is_own(&host)) {
            return Err(refusal("The Origin header must be absent or a name of this service"));
        }
    }
    Ok(())
}

fn refusal(requirement: &str) -> AppError {
    AppError::new(ErrorCode::OriginNotAllowed)
        .detail(format!("{requirement}. Its operator can allow further names with mcp-hosts."))
}

fn text(value: &HeaderValue) -> Option<&str> {
    value.to_str().ok()
}

/// Returns the host of a URL or an origin.
fn host_of(url: &str) -> Option<String> {
    let authority: Authority = url.split_once("://")?.1.split('/').next()?.parse().ok()?;
    Some(authority.host().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    const SITE: &str = "https://foretell.example";

    fn is_allowed(app_url: &str, lines: &[(http::HeaderName, &'static str)]) -> bool {
        let lines = lines.iter().map(|(name, value)| (name.clone(), HeaderValue::from_static(value)));
        check(app_url, &["api.foretell.example".to_owned()], &lines.collect()).is_ok()
    }

    #[test]
    fn the_host_must_be_a_name_of_the_service() {
        for own in
            ["foretell.example", "Foretell.example:443", "api.foretell.example", "localhost:8080", "[::1]:1"]
        {
            assert!(is_allowed(SITE, &[(HOST, own)]), "{own}");
        }
        for foreign in
            ["attacker.test", "foretell.example.attacker.test", "localhost.attacker.test:8080", "a b", ""]
        {
            assert!(!is_allowed(SITE, &[(HOST, foreign)]), "{foreign}");
        }
        assert!(!is_allowed(SITE, &[(HOST, "foretell.example"), (HOST, "attacker.test")]));
        assert!(is_allowed("http://0.0.0.0:8080", &[(HOST, "10.0.0.7:8080")]));
    }

    #[test]
    fn the_origin_may_be_absent_or_must_be_a_name_of_the_service() {
        assert!(is_allowed(SITE, &[]));
        assert!(is_allowed(SITE, &[(ORIGIN, "https://foretell.example")]));
        assert!(is_allowed(SITE, &[(ORIGIN, "http://localhost:6274")]));
        for foreign in ["https://attacker.test", "null", "", "https://foretell.example.attacker.test"] {
            assert!(!is_allowed(SITE, &[(ORIGIN, foreign)]), "{foreign}");
            assert!(!is_allowed("http://0.0.0.0:8080", &[(ORIGIN, foreign)]), "{foreign}");
        }
    }
}
