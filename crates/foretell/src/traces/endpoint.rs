//! The URL of a collector.

use reqwest::Url;

/// The path of traces below a collector's base URL, by the OTLP specification.
const PATH: &str = "/v1/traces";

/// The URL to which spans are posted. It contains no secret.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OtlpEndpoint(String);

/// A text that is not the URL of a collector.
#[derive(Debug, thiserror::Error)]
#[error(
    "must be an http or https URL without user, password, query and fragment, such as http://127.0.0.1:4318. \
     Credentials of the collector belong in OTEL_EXPORTER_OTLP_HEADERS"
)]
pub struct EndpointError;

impl OtlpEndpoint {
    /// Parses the base URL of a collector, or the URL of its traces.
    pub fn parse(text: &str) -> Result<Self, EndpointError> {
        let url = Url::parse(text.trim()).map_err(|_| EndpointError)?;
        let has_secret = !url.username().is_empty() || url.password().is_some() || url.query().is_some();
        if !matches!(url.scheme(), "http" | "https") || has_secret || url.fragment().is_some() {
            return Err(EndpointError);
        }
        let base = url.as_str().trim_end_matches('/');
        Ok(Self(format!("{}{PATH}", base.strip_suffix(PATH).unwrap_or(base))))
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_are_posted_to_the_traces_of_the_collector() {
        for (text, url) in [
            ("http://127.0.0.1:4318", "http://127.0.0.1:4318/v1/traces"),
            ("https://otel.example/", "https://otel.example/v1/traces"),
            ("https://otel.example/tenant/v1/traces", "https://otel.example/tenant/v1/traces"),
        ] {
            assert_eq!(OtlpEndpoint::parse(text).unwrap().as_str(), url);
        }
    }

    #[test]
    fn a_url_that_may_contain_a_secret_is_refused() {
        for text in [
            "",
            "collector:4318",
            "grpc://c:4317",
            "http://a:b@c",
            "http://a@c",
            "http://c/?key=1",
            "http://c/#x",
        ] {
            assert!(OtlpEndpoint::parse(text).is_err(), "{text}");
        }
    }
}
