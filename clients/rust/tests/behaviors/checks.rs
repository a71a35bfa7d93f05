//! What the table expects of a call.

use std::collections::BTreeSet;
use std::time::{Duration, SystemTime};

use foretell_client::{Error, Foretell};
use serde_json::Value;

use crate::calls::{Reported, Returned};
use crate::support::{Suite, assert_error, assert_pauses, matches, table, text};

/// A call that was made.
pub struct Made<'a> {
    pub suite: &'a Suite,
    pub client: &'a Foretell,
    pub entry: &'a Value,
    pub results: Vec<Returned>,
    pub error: Option<Error>,
    pub reported: Reported,
    pub requests: Vec<Value>,
    pub pauses_ms: Vec<u64>,
    pub elapsed: Duration,
}

pub async fn check_expectations(made: &Made<'_>) {
    for (name, expected) in made.entry["expect"].as_object().unwrap() {
        match name.as_str() {
            "trades" => assert_eq!(made.trades_named().await, expected.as_u64().unwrap(), "{:?}", made.error),
            "items" => made.check_items().await,
            _ => made.check(name, expected),
        }
    }
}

impl Made<'_> {
    fn check(&self, name: &str, expected: &Value) {
        match name {
            "error" => assert_error(self.error.as_ref(), expected),
            "docUrl" => assert_eq!(self.error.as_ref().unwrap().doc_url.as_deref(), expected.as_str()),
            "requestId" => assert_eq!(self.error.as_ref().unwrap().request_id.as_deref(), expected.as_str()),
            "messageContains" => {
                let message = self.error.as_ref().unwrap().to_string();
                assert!(
                    expected.as_array().unwrap().iter().all(|part| message.contains(text(part))),
                    "{message}"
                );
            }
            "statusesReported" => assert_eq!(&Value::from(self.reported.lock().unwrap().clone()), expected),
            "result" => assert!(self.error.is_none() && !self.results.is_empty(), "{:?}", self.error),
            "requests" => self.check_requests(expected.as_array().unwrap()),
            "requestsAtLeast" => assert!(self.requests.len() as u64 >= expected.as_u64().unwrap()),
            "contains" => {
                for pattern in expected.as_array().unwrap() {
                    assert!(self.requests.iter().any(|request| matches(text(pattern), request)), "{pattern}");
                }
            }
            "statuses" => assert_eq!(&self.member("status"), expected),
            "pauses" => assert_pauses(&self.pauses_ms, expected),
            "deadline" => self.check_deadline(),
            "withinMs" => assert!(self.elapsed.as_millis() <= expected.as_u64().unwrap().into()),
            "sameName" => self.check_same_name(),
            "names" => self.check_names(expected),
            "status" => assert_eq!(&self.results[0].0["status"], expected),
            "signatures" => self.check_signatures(expected),
            "rateLimit" => self.check_rate_limit(expected.as_bool().unwrap()),
            "sameResult" => assert!(self.results.iter().all(|result| result.0 == self.results[0].0)),
            "confirmed" => assert_ne!(self.results[0].0["status"], "pending_confirmation"),
            other => panic!("no check for {other}"),
        }
    }

    /// Returns a member of each request of the proxy's log.
    fn member(&self, name: &str) -> Value {
        self.requests.iter().map(|request| request[name].clone()).collect()
    }

    fn check_requests(&self, patterns: &[Value]) {
        let pairs = patterns.iter().zip(&self.requests);
        let are_equal = pairs.fold(true, |all, (pattern, request)| all && matches(text(pattern), request));
        let paths = self.member("path");
        assert!(are_equal && patterns.len() == self.requests.len(), "requests: {paths}, {:?}", self.error);
    }

    fn check_deadline(&self) {
        let policy = &table()["policy"];
        let (deadline_ms, longest_ms) =
            (policy["deadlineMs"].as_u64().unwrap(), policy["maxPauseMs"].as_u64().unwrap() * 5 / 4);
        let waited_ms: u64 = self.pauses_ms.iter().sum();
        assert!(waited_ms <= deadline_ms && waited_ms + longest_ms > deadline_ms, "waited {waited_ms} ms");
    }

    fn creates(&self) -> Vec<&Value> {
        self.requests.iter().filter(|request| matches("POST /v1/trades", request)).collect()
    }

    fn body(&self) -> Value {
        serde_json::from_str(text(&self.creates()[0]["body"])).unwrap()
    }

    fn check_same_name(&self) {
        let creates = self.creates();
        let first = creates[0];
        for create in &creates {
            assert_eq!(create["body"], first["body"]);
            assert_eq!(create["headers"]["idempotency-key"], first["headers"]["idempotency-key"]);
        }
        assert!(!text(&first["headers"]["idempotency-key"]).is_empty());
        assert!(!text(&self.body()["clientRequestId"]).is_empty());
    }

    fn check_names(&self, expected: &Value) {
        let create = self.creates()[0];
        assert_eq!(create["headers"]["idempotency-key"], expected["idempotencyKey"]);
        assert_eq!(self.body()["clientRequestId"], expected["clientRequestId"]);
    }

    async fn trades_named(&self) -> u64 {
        let given = &self.entry["call"]["with"]["clientRequestId"];
        let body = if given.is_null() { self.body()["clientRequestId"].clone() } else { given.clone() };
        let Some(name) = body.as_str() else { return 0 };
        let found = self.suite.ask(&format!("/v1/trades?clientRequestId={name}")).await;
        found["data"].as_array().unwrap().len() as u64
    }

    fn check_signatures(&self, expected: &Value) {
        let signatures: BTreeSet<&str> = self
            .requests
            .iter()
            .filter_map(|request| request["headers"]["x-service-signature"].as_str())
            .collect();
        assert_eq!(signatures.len() as u64, expected.as_u64().unwrap());
    }

    fn check_rate_limit(&self, is_expected: bool) {
        let state = self.results[0].1.rate_limit;
        assert_eq!(state.is_some(), is_expected);
        assert_eq!(self.client.rate_limit(), state);
        assert!(state.is_none_or(|state| state.limit > 0 && state.reset_at > SystemTime::UNIX_EPOCH));
    }

    async fn check_items(&self) {
        let all = self.suite.ask("/v1/markets?limit=100").await;
        let ids = |list: &Value| -> Vec<Value> {
            list.as_array().unwrap().iter().map(|market| market["id"].clone()).collect()
        };
        assert_eq!(ids(&self.results[0].0), ids(&all["data"]));
    }
}
