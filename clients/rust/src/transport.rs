//! Sends requests, and tries them again.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime};

use reqwest::header::{HeaderMap, HeaderName, HeaderValue};
use reqwest::{Method, Url};
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};
use tokio::time::timeout;

use crate::clock::{Clock, SystemClock};
use crate::error::Error;
use crate::response::{RateLimit, Response, ResponseInfo, number};
use crate::secret::Secret;
use crate::signing::request_signature;
use crate::types::Submission;

/// An answer that is stored, so that it is transferred again only after a change.
#[derive(Debug, Clone)]
pub struct StoredAnswer {
    /// The tag of the answer.
    pub etag: String,
    /// The body.
    pub text: String,
}

/// Stores answers. A map behind a mutex is enough; the caller bounds its size.
pub trait EtagStore: Send + Sync {
    /// Returns the answer that was stored for a path with its query.
    fn load(&self, path: &str) -> Option<StoredAnswer>;
    /// Stores an answer.
    fn store(&self, path: &str, answer: StoredAnswer);
}

impl EtagStore for Mutex<HashMap<String, StoredAnswer>> {
    fn load(&self, path: &str) -> Option<StoredAnswer> {
        self.lock().unwrap_or_else(PoisonError::into_inner).get(path).cloned()
    }

    fn store(&self, path: &str, answer: StoredAnswer) {
        self.lock().unwrap_or_else(PoisonError::into_inner).insert(path.to_owned(), answer);
    }
}

/// A client that cannot be made from its options.
#[derive(Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum ConfigError {
    /// The key does not have the form of an API key.
    #[error("the API key is not well-formed")]
    ApiKey,
    /// The address is none, or it would send the key without encryption.
    #[error("the address must be https, or http on this machine")]
    BaseUrl,
    /// The version is not printable ASCII.
    #[error("the API version is not well-formed")]
    ApiVersion,
    /// TLS does not work on this machine.
    #[error("the HTTP client does not work on this machine")]
    Http,
}

/// The message, because `main` prints the error that it returns in this form.
impl fmt::Debug for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// The options of a client.
pub(crate) struct Settings {
    pub base_url: String,
    pub api_key: Secret,
    pub sign: bool,
    pub etags: Option<Arc<dyn EtagStore>>,
    pub api_version: Option<String>,
    pub deadline: Duration,
    pub attempt_timeout: Duration,
    pub first_pause: Duration,
    pub max_pause: Duration,
    pub idle_timeout: Duration,
    pub stream_patience: Duration,
    pub clock: Arc<dyn Clock>,
}

impl Settings {
    pub fn new(base_url: String, api_key: Secret) -> Self {
        Self {
            base_url,
            api_key,
            sign: false,
            etags: None,
            api_version: None,
            deadline: Duration::from_secs(30),
            // The service answers within 10 seconds.
            attempt_timeout: Duration::from_secs(15),
            first_pause: Duration::from_secs(1),
            max_pause: Duration::from_secs(8),
            idle_timeout: Duration::from_secs(45),
            stream_patience: Duration::from_secs(3),
            clock: Arc::new(SystemClock),
        }
    }
}

/// A request.
pub(crate) struct Call {
    pub method: Method,
    pub path: String,
    pub query: Vec<(&'static str, String)>,
    /// The JSON of the body. The same bytes are sent again, so that names do not conflict.
    pub body: Option<String>,
    pub headers: Vec<(&'static str, String)>,
    /// The member of the answer that has the record.
    pub member: &'static str,
    /// True if the same request can be sent again after its answer was lost.
    pub is_repeatable: bool,
}

impl Call {
    pub fn get(path: impl Into<String>, member: &'static str) -> Self {
        let (path, query, headers) = (path.into(), Vec::new(), Vec::new());
        Self { method: Method::GET, path, query, body: None, headers, member, is_repeatable: true }
    }

    pub fn post(path: impl Into<String>, member: &'static str, body: String) -> Self {
        Self { method: Method::POST, body: Some(body), ..Self::get(path, member) }
    }
}

/// A successful answer.
pub(crate) struct Answer {
    pub json: Map<String, Value>,
    pub info: ResponseInfo,
}

/// A call that failed.
pub(crate) struct CallFailure {
    pub error: Error,
    pub attempts: u32,
    /// True if any attempt may have been stored.
    pub may_be_stored: bool,
}

impl From<CallFailure> for Error {
    fn from(failure: CallFailure) -> Self {
        failure.error
    }
}

/// The largest answer that is read.
const MAX_ANSWER: usize = 64 * 1024 * 1024;

pub(crate) struct Transport {
    http: reqwest::Client,
    base: Url,
    rate_limit: Mutex<Option<RateLimit>>,
    pub settings: Settings,
}

impl Transport {
    pub fn new(settings: Settings) -> Result<Self, ConfigError> {
        if !is_api_key(settings.api_key.expose()) {
            return Err(ConfigError::ApiKey);
        }
        let base: Url = settings.base_url.parse().map_err(|_| ConfigError::BaseUrl)?;
        let is_local = base.host_str().is_some_and(is_local);
        if base.scheme() != "https" && !(base.scheme() == "http" && is_local) {
            return Err(ConfigError::BaseUrl);
        }
        // A redirect could lead the key to another host, and so could a proxy without encryption.
        let builder = reqwest::Client::builder().redirect(reqwest::redirect::Policy::none());
        let builder = if is_local { builder.no_proxy() } else { builder };
        let mut headers = HeaderMap::new();
        let mut key = HeaderValue::from_str(settings.api_key.expose()).map_err(|_| ConfigError::ApiKey)?;
        key.set_sensitive(true);
        headers.insert("x-api-key", key);
        headers.insert("accept", HeaderValue::from_static("application/json"));
        if let Some(version) = &settings.api_version {
            let version = HeaderValue::from_str(version).map_err(|_| ConfigError::ApiVersion)?;
            headers.insert("x-service-api-version", version);
        }
        let http = builder.default_headers(headers).build().map_err(|_| ConfigError::Http)?;
        Ok(Self { http, base, rate_limit: Mutex::default(), settings })
    }

    /// The newest state of the rate limit.
    pub fn rate_limit(&self) -> Option<RateLimit> {
        *self.rate_limit.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sends a request until it is answered with a record, cannot succeed, or the deadline has come.
    pub async fn send<T: DeserializeOwned>(&self, call: &Call) -> Result<Response<T>, CallFailure> {
        self.send_with(call, |mut answer| {
            let json = answer.json.remove(call.member).unwrap_or_default();
            let is_idempotent = answer.json.get("_meta").and_then(|meta| meta.get("idempotent"));
            answer.info.is_replay |= is_idempotent == Some(&Value::Bool(true));
            Ok(Response::new(T::deserialize(&json)?, json, answer.info))
        })
        .await
    }

    /// Sends a request until its answer can be read by `read`.
    pub async fn send_with<T>(
        &self,
        call: &Call,
        read: impl Fn(Answer) -> Result<T, serde_json::Error>,
    ) -> Result<T, CallFailure> {
        let clock = &self.settings.clock;
        let end = clock.now() + self.settings.deadline;
        let mut may_be_stored = false;
        for attempts in 1.. {
            let answer = self.attempt(call, attempts).await;
            let error = match answer {
                Ok(answer) => {
                    let info = answer.info.clone();
                    match read(answer) {
                        Ok(record) => return Ok(record),
                        Err(_) => self.unreadable(call, &info),
                    }
                }
                Err(error) => error,
            };
            may_be_stored |= error.may_be_stored();
            let pause = self.pause(attempts, error.retry_after);
            if !is_retried(call, &error) || clock.now() + pause > end {
                return Err(CallFailure { error, attempts, may_be_stored });
            }
            tracing::warn!(
                method = %call.method, path = call.path, attempt = attempts, code = error.code,
                pause_ms = %pause.as_millis(), "retrying"
            );
            clock.sleep(pause).await;
        }
        unreachable!("attempts are made until one of them decides")
    }

    /// Returns the pause after the attempt with this number.
    pub fn pause(&self, attempt: u32, retry_after: Option<Duration>) -> Duration {
        let Settings { first_pause, max_pause, clock, .. } = &self.settings;
        let doubled = || first_pause.saturating_mul(1 << attempt.saturating_sub(1).min(20)).min(*max_pause);
        let pause = retry_after.unwrap_or_else(doubled);
        let jitter_us = ((pause.as_micros() / 4) * u128::from(clock.random())) >> 32;
        pause + Duration::from_micros(u64::try_from(jitter_us).unwrap_or(0))
    }

    async fn attempt(&self, call: &Call, attempt: u32) -> Result<Answer, Error> {
        let url = self.url(call);
        let key =
            url.query().map_or_else(|| url.path().to_owned(), |query| format!("{}?{query}", url.path()));
        let etags = self.settings.etags.as_ref().filter(|_| call.method == Method::GET);
        let stored = etags.and_then(|etags| etags.load(&key));
        let tag = stored.as_ref().map(|stored| ("if-none-match", stored.etag.as_str()));
        let limit = self.settings.attempt_timeout;
        let whole = async {
            let response = self.open(call, url, tag.as_slice()).await?;
            let (status, headers) = (response.status().as_u16(), response.headers().clone());
            Ok::<_, String>((status, headers, read_text(response).await?))
        };
        let (status, headers, mut text) = match timeout(limit, whole).await {
            Ok(Ok(parts)) => parts,
            Ok(Err(reason)) => return Err(self.failed(call, attempt, &reason)),
            Err(_) => return Err(self.failed(call, attempt, "no answer in time")),
        };
        let info = ResponseInfo::new(status, &headers);
        if let Some(rate_limit) = info.rate_limit {
            *self.rate_limit.lock().unwrap_or_else(PoisonError::into_inner) = Some(rate_limit);
        }
        let answered = |code: &str| {
            tracing::debug!(
                method = %call.method, path = call.path, attempt, status, code,
                request_id = info.request_id.as_deref().unwrap_or_default(), "answered"
            );
        };
        match stored {
            Some(stored) if status == 304 => text = stored.text,
            _ if !(200..300).contains(&status) => {
                let error = self.problem(call, &headers, &text, info.clone());
                answered(&error.code);
                return Err(error);
            }
            _ => {}
        }
        answered("");
        let json = parse_object(&text).filter(|json| json.contains_key(call.member));
        let Some(json) = json else { return Err(self.unreadable(call, &info)) };
        if let (Some(etags), Some(Ok(tag)), 200) =
            (etags, headers.get("etag").map(HeaderValue::to_str), status)
        {
            etags.store(&key, StoredAnswer { etag: tag.to_owned(), text });
        }
        Ok(Answer { json, info })
    }

    /// Sends one request, and returns its response or the reason why there is none.
    async fn open(&self, call: &Call, url: Url, extra: &[(&str, &str)]) -> Result<reqwest::Response, String> {
        let body = call.body.as_deref().unwrap_or_default();
        let mut headers = HeaderMap::new();
        let own = call.headers.iter().map(|(name, value)| (*name, value.as_str()));
        let kind = call.body.as_ref().map(|_| ("content-type", "application/json"));
        for (name, value) in own.chain(extra.iter().copied()).chain(kind) {
            let value = HeaderValue::from_str(value).map_err(|_| format!("{name} is not a header"))?;
            headers.insert(
                HeaderName::from_lowercase(name.as_bytes()).map_err(|error| error.to_string())?,
                value,
            );
        }
        if self.settings.sign {
            let since = self.settings.clock.now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
            let at_ms = u64::try_from(since.as_millis()).unwrap_or(u64::MAX);
            let key = self.settings.api_key.expose();
            let signature = request_signature(key, at_ms, call.method.as_str(), url.path(), body);
            headers
                .insert("x-service-signature", HeaderValue::from_str(&signature).map_err(|e| e.to_string())?);
        }
        let request = self.http.request(call.method.clone(), url).headers(headers);
        let request = if body.is_empty() { request } else { request.body(body.to_owned()) };
        request.send().await.map_err(reason_of)
    }

    /// Opens a stream. Returns the typed error if the answer is another one.
    pub async fn stream(&self, call: &Call) -> Result<reqwest::Response, Error> {
        let response = self.open(call, self.url(call), &[]).await;
        let response = response.map_err(|reason| self.failed(call, 1, &reason))?;
        let (status, headers) = (response.status().as_u16(), response.headers().clone());
        tracing::debug!(method = %call.method, path = call.path, status, "opened a stream");
        let info = ResponseInfo::new(status, &headers);
        if !response.status().is_success() {
            let text = read_text(response).await.unwrap_or_default();
            return Err(self.problem(call, &headers, &text, info));
        }
        let kind = headers.get("content-type").and_then(|kind| kind.to_str().ok());
        let is_stream = kind.is_some_and(|kind| kind.starts_with("text/event-stream"));
        if is_stream { Ok(response) } else { Err(self.unreadable(call, &info)) }
    }

    fn url(&self, call: &Call) -> Url {
        let mut url = self.base.clone();
        url.set_path(&format!("{}{}", self.base.path().trim_end_matches('/'), call.path));
        if !call.query.is_empty() {
            url.query_pairs_mut().extend_pairs(&call.query);
        }
        url
    }

    fn failed(&self, call: &Call, attempt: u32, reason: &str) -> Error {
        tracing::debug!(method = %call.method, path = call.path, attempt, reason = self.redact(reason), "failed");
        self.describe(call, Error::connection_failed(reason))
    }

    fn unreadable(&self, call: &Call, info: &ResponseInfo) -> Error {
        let mut error = Error::unreadable(info.status, "the answer cannot be read: it is not the service's");
        error.request_id.clone_from(&info.request_id);
        error.response = Some(info.clone());
        self.describe(call, error)
    }

    /// Reads a problem document, whatever form it has.
    fn problem(&self, call: &Call, headers: &HeaderMap, body: &str, info: ResponseInfo) -> Error {
        let mut problem = parse_object(&self.redact(body)).unwrap_or_default();
        let mut text = |name: &str| match problem.remove(name) {
            Some(Value::String(text)) => Some(text),
            _ => None,
        };
        let status = info.status;
        let code = text("code").unwrap_or_else(|| format!("HTTP_{status}"));
        let (detail, title) = (text("detail"), text("title"));
        let message = detail.or(title).unwrap_or_else(|| format!("the service answered {status}"));
        let mut error = Error::new(code, Some(status), message);
        error.request_id = text("requestId").or_else(|| info.request_id.clone());
        error.doc_url = text("type");
        if let Some(Value::Object(extensions)) = problem.remove("extensions") {
            error.extensions = extensions;
        }
        let faults = faults_of(&error.extensions);
        error.message.push_str(&faults);
        error.submission = error.extensions.get("submission").and_then(Value::as_str).map(Submission::from);
        error.retry_after = number(headers, "retry-after").map(Duration::from_secs);
        error.response = Some(info);
        self.describe(call, error)
    }

    /// Adds the request to the message, and that a write may have been stored.
    fn describe(&self, call: &Call, mut error: Error) -> Error {
        error.message = self.redact(&format!("{} {}: {}", call.method, call.path, error.message));
        if error.submission.is_none() && call.method == Method::POST && error.may_be_lost() {
            error.submission = Some(Submission::Unknown);
        }
        error
    }

    /// Removes the key from a text.
    fn redact(&self, text: &str) -> String {
        text.replace(self.settings.api_key.expose(), "[key]")
    }
}

/// Returns the first fields to correct, which the detail of `VALIDATION_FAILED` only refers to.
fn faults_of(extensions: &Map<String, Value>) -> String {
    let errors = extensions.get("errors").and_then(Value::as_array).into_iter().flatten();
    let fault = |error: &Value| {
        Some(format!("; {} {}", error.get("pointer")?.as_str()?, error.get("detail")?.as_str()?))
    };
    errors.filter_map(fault).take(5).collect()
}

fn is_retried(call: &Call, error: &Error) -> bool {
    let is_temporary = matches!(error.status, Some(429 | 502 | 503 | 504));
    if error.extensions.get("permanent") == Some(&Value::Bool(true)) {
        return false;
    }
    if !call.is_repeatable {
        let was_not_stored = error.submission == Some(Submission::NotSubmitted);
        return error.status == Some(429) || (was_not_stored && is_temporary);
    }
    error.has_no_answer() || is_temporary || error.is_in_progress()
}

fn is_api_key(text: &str) -> bool {
    let rest = text.strip_prefix("service_live_").or_else(|| text.strip_prefix("service_test_"));
    rest.is_some_and(|rest| rest.len() == 32 && rest.bytes().all(|byte| byte.is_ascii_alphanumeric()))
}

/// Returns true if the host is this machine.
fn is_local(host: &str) -> bool {
    let address = host.trim_start_matches('[').trim_end_matches(']');
    host == "localhost" || address.parse().is_ok_and(|address: std::net::IpAddr| address.is_loopback())
}

fn parse_object(text: &str) -> Option<Map<String, Value>> {
    match serde_json::from_str(text) {
        Ok(Value::Object(members)) => Some(members),
        _ => None,
    }
}

async fn read_text(mut response: reqwest::Response) -> Result<String, String> {
    let mut bytes = Vec::new();
    while let Some(chunk) = response.chunk().await.map_err(reason_of)? {
        bytes.extend_from_slice(&chunk);
        if bytes.len() > MAX_ANSWER {
            return Err("the answer is too large".to_owned());
        }
    }
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// Returns the innermost reason. The outer ones contain the address.
fn reason_of(error: reqwest::Error) -> String {
    let error = error.without_url();
    let mut reason: &dyn std::error::Error = &error;
    while let Some(source) = reason.source() {
        reason = source;
    }
    reason.to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEY: &str = "service_test_0123456789ABCDEFGHIJKLMNOPQRSTUV";

    fn settings(base_url: &str, api_key: &str) -> Settings {
        Settings::new(base_url.to_owned(), Secret::from(api_key))
    }

    #[test]
    fn malformed_keys_and_addresses_without_encryption_are_rejected() {
        let result = |base_url: &str, key: &str| Transport::new(settings(base_url, key)).map(drop);
        let other = KEY.replace("test", "prod");
        for key in ["", "service_test_short", &format!("{KEY}0"), &format!("{KEY}\n"), &other] {
            assert_eq!(result("https://api.example", key), Err(ConfigError::ApiKey), "{key}");
        }
        for address in [
            "http://api.example",
            "http://10.0.0.1",
            "ftp://127.0.0.1",
            "api.example",
            "http://127.0.0.1.example",
        ] {
            assert_eq!(result(address, KEY), Err(ConfigError::BaseUrl), "{address}");
        }
        for address in
            ["https://api.example/base", "http://127.0.0.1:8080", "http://[::1]", "http://localhost"]
        {
            assert_eq!(result(address, KEY), Ok(()), "{address}");
        }
    }

    #[test]
    fn paths_are_appended_to_the_address() {
        let transport = Transport::new(settings("https://api.example/base/", KEY)).unwrap();
        let mut call = Call::get("/v1/markets", "data");
        call.query = vec![("q", "a b&c".to_owned())];
        assert_eq!(transport.url(&call).as_str(), "https://api.example/base/v1/markets?q=a+b%26c");
    }

    /// A clock whose random numbers are all the same.
    struct Dice(u32);

    impl Clock for Dice {
        fn now(&self) -> SystemTime {
            SystemTime::UNIX_EPOCH
        }

        fn sleep(&self, _: Duration) -> futures::future::BoxFuture<'static, ()> {
            Box::pin(std::future::ready(()))
        }

        fn random(&self) -> u32 {
            self.0
        }
    }

    #[test]
    fn pauses_double_up_to_the_longest_and_have_a_quarter_of_jitter() {
        let pauses_ms = |random| {
            let settings = Settings { clock: Arc::new(Dice(random)), ..settings("https://api.example", KEY) };
            let transport = Transport::new(settings).unwrap();
            let pauses = [1, 2, 3, 4, 5, 99].map(|attempt| transport.pause(attempt, None));
            let asked = transport.pause(1, Some(Duration::from_secs(60)));
            pauses.into_iter().chain([asked]).map(|pause| pause.as_millis()).collect::<Vec<_>>()
        };
        assert_eq!(pauses_ms(0), [1000, 2000, 4000, 8000, 8000, 8000, 60_000]);
        assert_eq!(pauses_ms(u32::MAX), [1249, 2499, 4999, 9999, 9999, 9999, 74_999]);
    }
}
