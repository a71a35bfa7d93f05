//! What a page says of a code, for the codes of both surfaces.

use domain::ErrorCode;
use domain::guide::Retry;

use super::REQUEST_ID;
use crate::http::{Problem, RequestId};
use crate::public::{Code, Refusal};

/// A code and all that its page says.
#[derive(Debug)]
pub struct Entry {
    pub code: &'static str,
    pub status: u16,
    pub title: &'static str,
    pub detail: &'static str,
    pub when: &'static str,
    pub retry: &'static str,
    pub mend: &'static str,
    /// The bodies that a client gets, each with its heading.
    pub examples: Vec<(&'static str, String)>,
}

impl Entry {
    /// The entry of the code with this name, of either surface.
    pub fn find(name: &str, docs_url: &str) -> Option<Self> {
        let public = Code::ALL.iter().copied().find(|code| code.as_str() == name);
        match name.parse::<ErrorCode>() {
            Ok(code) => Some(Self::of_trading(code, public, docs_url)),
            Err(_) => public.map(Self::of_public),
        }
    }

    fn of_trading(code: ErrorCode, public: Option<Code>, docs_url: &str) -> Self {
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
            mend: guide.mend,
            examples,
        }
    }

    fn of_public(code: Code) -> Self {
        let (when, mend) = guide_of(code);
        Self {
            code: code.as_str(),
            status: code.status(),
            title: code.title(),
            detail: code.message(),
            when,
            retry: match code.status() {
                429 | 503 | 504 => Retry::SameRequest.advice(),
                500 => Retry::LookUpFirst.advice(),
                _ => {
                    "No: the same request gets the same answer until it, or the data that it names, has changed."
                }
            },
            mend,
            examples: vec![("Example", public_example(code))],
        }
    }
}

/// When a code that only the public read API has is sent, and what to change. The others have the trading API's guide.
const fn guide_of(code: Code) -> (&'static str, &'static str) {
    match code {
        Code::FormatNotSupported => {
            ("oEmbed was asked for another format than json.", "Ask for format=json, or leave format out.")
        }
        Code::InvalidRequest => (
            "A query parameter or a header does not have the documented form. message names every one that is wrong, and \
             the value that was sent.",
            "Correct the parameters that message names.",
        ),
        Code::NotFound => {
            ("No route of the public read API has this path.", "Compare the path with GET /api/openapi.json.")
        }
        Code::OrganizationNotFound => (
            "No organization has the id in the path, or the id is malformed.",
            "Take ids from GET /api/organizations.",
        ),
        Code::PartnerNotFound => (
            "No partner has the id in the path, or the id is malformed.",
            "Take ids from GET /api/organizations/{id}/partners.",
        ),
        Code::ThreadNotFound => {
            ("No thread has the id in the path, or the id is malformed.", "Take ids from GET /api/threads.")
        }
        Code::TransactionNotFound => (
            "No transaction with this hash has moved a position of a market of this service. A transaction is found once \
             its block is final.",
            "Check the hash, and ask again once the transaction is final.",
        ),
        Code::Unauthorized => (
            "The route shows data of the user who is signed in to the web application, and the request has no session.",
            "Sign in to the web application. API keys of the trading API are not used here.",
        ),
        _ => ("The service cannot answer the request as it is.", "Follow message."),
    }
}

/// The body that a client of the trading API gets with this code.
fn example(code: ErrorCode, docs_url: &str) -> String {
    let problem = Problem::sample(code);
    let instance = if code.guide().extensions.contains("submission") { "/v1/trades" } else { "/v1/markets" };
    serde_json::to_string_pretty(&problem.body(docs_url, instance, RequestId::of(REQUEST_ID)))
        .unwrap_or_default()
}

fn public_example(code: Code) -> String {
    serde_json::to_string_pretty(&Refusal::sample(code).body()).unwrap_or_default()
}

/// The codes that only the public read API has.
pub fn only_public() -> impl Iterator<Item = Code> {
    Code::ALL.iter().copied().filter(|code| code.as_str().parse::<ErrorCode>().is_err())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_code_of_both_surfaces_has_an_entry() {
        let names = ErrorCode::ALL.iter().map(|code| code.as_str());
        for name in names.chain(Code::ALL.iter().map(|code| code.as_str())) {
            let entry =
                Entry::find(name, "https://docs.test").unwrap_or_else(|| panic!("{name} has no page"));
            assert_eq!(entry.code, name);
        }
        assert!(Entry::find("NO_SUCH_CODE", "https://docs.test").is_none());
    }

    #[test]
    fn every_code_of_the_public_surface_has_its_own_words() {
        for code in only_public() {
            assert_ne!(guide_of(code), guide_of(Code::InternalError), "{}", code.as_str());
        }
    }
}
