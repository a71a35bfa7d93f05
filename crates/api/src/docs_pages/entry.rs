//! The contents of an error page, for the codes of both APIs.

use domain::ErrorCode;
use protocol::Documented;
use protocol::guide::Retry;

use crate::public::openapi::examples;
use http_kit::{Problem, PublicCode, RequestId};

/// A code and the contents of its page.
#[derive(Debug)]
pub struct CodePage {
    pub code: &'static str,
    pub status: u16,
    pub title: &'static str,
    pub detail: &'static str,
    pub when: &'static str,
    pub retry: &'static str,
    pub fix: &'static str,
    /// Example bodies, each with its heading.
    pub examples: Vec<(&'static str, String)>,
}

impl CodePage {
    /// Returns the entry of the code with this name, from either API.
    pub fn find(name: &str, docs_url: &str) -> Option<Self> {
        // Some codes exist in both APIs. Their page shows both examples.
        let public = PublicCode::ALL.iter().copied().find(|code| code.as_str() == name);
        match name.parse::<ErrorCode>() {
            Ok(code) => Some(Self::of_trading(code, public, docs_url)),
            Err(_) => public.map(Self::of_public),
        }
    }

    fn of_trading(code: ErrorCode, public: Option<PublicCode>, docs_url: &str) -> Self {
        let guide = code.guide();
        let mut examples = vec![("Example", example(code, docs_url))];
        examples.extend(public.map(|code| ("Example of the public read API", public_example(code))));
        Self {
            code: code.as_str(),
            status: code.status(),
            title: code.title(),
            detail: code.default_detail(),
            when: guide.when,
            retry: guide.retry.advice(),
            fix: guide.fix,
            examples,
        }
    }

    fn of_public(code: PublicCode) -> Self {
        let (when, fix) = guide_of(code);
        Self {
            code: code.as_str(),
            status: code.status(),
            title: code.title(),
            detail: code.default_detail(),
            when,
            retry: match code.status() {
                429 | 503 | 504 => Retry::SameRequest.advice(),
                500 => Retry::LookUpFirst.advice(),
                _ => {
                    "Not unchanged: the result stays the same until the request or the requested data changes."
                }
            },
            fix,
            examples: vec![("Example", public_example(code))],
        }
    }
}

/// Returns when a code of the public read API is sent, and how to fix the request. Codes that both
/// APIs have use the trading API's guide.
const fn guide_of(code: PublicCode) -> (&'static str, &'static str) {
    match code {
        PublicCode::FormatNotSupported => {
            ("The oEmbed request has a format other than json.", "Send format=json, or omit format.")
        }
        PublicCode::InvalidRequest => (
            "A query parameter or a header does not have the documented form. message lists each of them and the value \
             that was sent.",
            "Correct the parameters that message lists.",
        ),
        PublicCode::NotFound => {
            ("No route of the public read API has this path.", "Compare the path with GET /api/openapi.json.")
        }
        PublicCode::OrganizationNotFound => (
            "No organization has the id in the path, or the id is malformed.",
            "Use an id from GET /api/organizations.",
        ),
        PublicCode::PartnerNotFound => (
            "No partner has the id in the path, or the id is malformed.",
            "Use an id from GET /api/organizations/{id}/partners.",
        ),
        PublicCode::ThreadNotFound => {
            ("No thread has the id in the path, or the id is malformed.", "Use an id from GET /api/threads.")
        }
        PublicCode::TransactionNotFound => (
            "No transaction with this hash has moved a position in a market of this service. A transaction is found once \
             its block is final.",
            "Check the hash, and try again once the transaction is final.",
        ),
        PublicCode::Unauthorized => (
            "The route returns data of the user who is signed in to the web application, and the request has no session.",
            "Sign in to the web application. API keys of the trading API are not used here.",
        ),
        _ => ("The service cannot process the request.", "See message."),
    }
}

/// Returns the body of a trading API error with this code.
fn example(code: ErrorCode, docs_url: &str) -> String {
    let problem = Problem::sample(code);
    let instance = if code.guide().extensions.contains("submission") { "/v1/trades" } else { "/v1/markets" };
    serde_json::to_string_pretty(&problem.body(docs_url, instance, RequestId::EXAMPLE)).unwrap_or_default()
}

fn public_example(code: PublicCode) -> String {
    serde_json::to_string_pretty(&examples::error(code).public_body()).unwrap_or_default()
}

/// Returns the codes that exist only in the public read API.
pub fn only_public() -> impl Iterator<Item = PublicCode> {
    PublicCode::ALL.iter().copied().filter(|code| code.as_str().parse::<ErrorCode>().is_err())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_code_of_both_apis_has_an_entry() {
        let names = ErrorCode::ALL.iter().map(|code| code.as_str());
        for name in names.chain(PublicCode::ALL.iter().map(|code| code.as_str())) {
            let entry =
                CodePage::find(name, "https://docs.test").unwrap_or_else(|| panic!("{name} has no page"));
            assert_eq!(entry.code, name);
        }
        assert!(CodePage::find("NO_SUCH_CODE", "https://docs.test").is_none());
    }

    #[test]
    fn every_code_of_the_public_api_has_its_own_text() {
        for code in only_public() {
            assert_ne!(guide_of(code), guide_of(PublicCode::InternalError), "{}", code.as_str());
        }
    }
}
