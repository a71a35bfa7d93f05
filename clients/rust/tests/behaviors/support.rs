//! What the tests share: the table, the proxy, a virtual clock, clients, and their logs.

use std::collections::HashMap;
use std::io::Write;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime};

use foretell_client::{Clock, Error, EtagStore, Foretell, StoredAnswer, SystemClock};
use futures::future::BoxFuture;
use serde_json::Value;
use tracing_subscriber::fmt::MakeWriter;

pub fn table() -> Value {
    serde_json::from_str(include_str!("../../../behaviors/behaviors.json")).unwrap()
}

/// Returns the entries of a list of the table.
pub fn entries(list: &str) -> Vec<Value> {
    table()[list].as_array().unwrap().clone()
}

pub fn name_of(entry: &Value) -> String {
    format!("{}: {}", text(&entry["id"]), text(&entry["rule"]))
}

pub fn text(value: &Value) -> &str {
    value.as_str().unwrap()
}

/// Everything that was logged since it was read.
#[derive(Clone, Default)]
pub struct Log {
    lines: Arc<Mutex<Vec<u8>>>,
    is_off: Arc<AtomicBool>,
}

impl Log {
    pub fn take(&self) -> String {
        String::from_utf8_lossy(&std::mem::take(&mut *self.lines.lock().unwrap())).into_owned()
    }

    pub fn switch_off(&self) {
        self.is_off.store(true, Ordering::Relaxed);
    }
}

impl Write for Log {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        if !self.is_off.load(Ordering::Relaxed) {
            self.lines.lock().unwrap().extend_from_slice(bytes);
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

impl<'a> MakeWriter<'a> for Log {
    type Writer = Self;

    fn make_writer(&'a self) -> Self {
        self.clone()
    }
}

/// A clock that starts at the present. A pause advances it and is recorded.
pub struct VirtualClock {
    now: Mutex<SystemTime>,
    pauses: Mutex<Vec<Duration>>,
}

impl VirtualClock {
    fn new() -> Arc<Self> {
        Arc::new(Self { now: Mutex::new(SystemClock.now()), pauses: Mutex::default() })
    }

    pub fn pauses_ms(&self) -> Vec<u64> {
        self.pauses.lock().unwrap().iter().map(|pause| u64::try_from(pause.as_millis()).unwrap()).collect()
    }
}

impl Clock for VirtualClock {
    fn now(&self) -> SystemTime {
        *self.now.lock().unwrap()
    }

    fn sleep(&self, pause: Duration) -> BoxFuture<'static, ()> {
        self.pauses.lock().unwrap().push(pause);
        *self.now.lock().unwrap() += pause;
        // Other work goes on during a pause, as it would in reality.
        Box::pin(tokio::task::yield_now())
    }

    fn random(&self) -> u32 {
        SystemClock.random()
    }
}

/// The service, the proxy, and the key of the suite.
pub struct Suite {
    pub market: String,
    pub log: Log,
    key: String,
    service: String,
    proxy: String,
    control: String,
    releases: String,
    http: reqwest::Client,
}

impl Suite {
    /// Returns `None` if `scripts/clients` has not set the variables.
    pub fn from_environment() -> Option<Self> {
        let proxy = std::env::var("FORETELL_PROXY").ok()?;
        let log = Log::default();
        let subscriber = tracing_subscriber::fmt().with_max_level(tracing::Level::TRACE);
        subscriber.with_writer(log.clone()).init();
        let variable = |name: &str| std::env::var(name).unwrap_or_else(|_| panic!("{name} must be set"));
        Some(Self {
            market: variable("FORETELL_MARKET"),
            log,
            key: variable("FORETELL_API_KEY"),
            service: variable("FORETELL_URL"),
            proxy,
            control: variable("FORETELL_PROXY_CONTROL"),
            releases: variable("FORETELL_RELEASES"),
            http: reqwest::Client::builder().no_proxy().build().unwrap(),
        })
    }

    /// Makes a client of the proxy with the options of an entry.
    pub fn client(&self, entry: &Value) -> (Foretell, Arc<VirtualClock>) {
        let mut builder = Foretell::builder(&self.proxy, self.key.as_str());
        let clock = VirtualClock::new();
        if entry["clock"] != "real" {
            builder = builder.clock(clock.clone());
        }
        for (name, value) in entry["options"].as_object().into_iter().flatten() {
            let duration = || Duration::from_millis(value.as_u64().unwrap());
            builder = match name.as_str() {
                "sign" => builder.sign(value.as_bool().unwrap()),
                "etags" => {
                    let store: Arc<dyn EtagStore> =
                        Arc::new(Mutex::<HashMap<String, StoredAnswer>>::default());
                    builder.etags(store)
                }
                "attemptMs" => builder.attempt_timeout(duration()),
                "deadlineMs" => builder.deadline(duration()),
                "firstPauseMs" => builder.pauses(duration(), Duration::from_secs(8)),
                "idleTimeoutMs" => builder.idle_timeout(duration()),
                "streamPatienceMs" => builder.stream_patience(duration()),
                other => panic!("no option {other}"),
            };
        }
        (builder.build().unwrap(), clock)
    }

    /// Makes a client of the server that answers as a release, in one of its forms.
    pub fn client_of_release(&self, release: &str, form: &str) -> Foretell {
        let address = format!("{}/{release}/{form}", self.releases);
        Foretell::builder(address, self.key.as_str()).clock(VirtualClock::new()).build().unwrap()
    }

    /// Asks the server of releases about itself.
    pub async fn ask_releases(&self, path: &str) -> Value {
        let answer = self.http.get(format!("{}{path}", self.releases)).send().await.unwrap();
        answer.json().await.unwrap()
    }

    /// Replaces the placeholders in all strings.
    pub fn fill(&self, value: &Value, name: &str) -> Value {
        let unknown = uuid::Uuid::from_u128(0x018f_0000_0000_7000_8000_0000_0000_beef).to_string();
        let text = value.to_string().replace("$name", name).replace("$market", &self.market);
        let text = text.replace("$apiKey", &self.key).replace("$unknown", &unknown);
        serde_json::from_str(&text).unwrap()
    }

    pub async fn set_rules(&self, rules: &Value) {
        let request = self.http.put(format!("{}/rules", self.control)).json(rules);
        assert_eq!(request.send().await.unwrap().status(), 200, "{rules}");
    }

    /// Returns the requests since the rules were set.
    pub async fn requests(&self) -> Vec<Value> {
        let answer = self.http.get(format!("{}/log", self.control)).send().await.unwrap();
        answer.json().await.unwrap()
    }

    /// Asks the service without the proxy.
    pub async fn ask(&self, path: &str) -> Value {
        let request = self.http.get(format!("{}{path}", self.service)).header("x-api-key", &self.key);
        let answer = request.send().await.unwrap();
        assert_eq!(answer.status(), 200, "{path}");
        answer.json().await.unwrap()
    }

    /// Asserts that the key is in none of the texts, and in nothing that was logged.
    pub fn assert_no_secret(&self, texts: &[String]) {
        let log = self.log.take();
        for text in texts.iter().chain([&log]) {
            assert!(!text.contains(&self.key), "a secret was printed: {}", text.replace(&self.key, "KEY"));
        }
    }
}

pub fn new_name() -> String {
    let part = || u64::from(SystemClock.random());
    let (high, low) = (part() << 32 | part(), part() << 32 | part());
    uuid::Uuid::from_u64_pair(high, low).to_string()
}

/// Returns everything of an error that could be printed.
pub fn printed(error: &Error) -> Vec<String> {
    vec![error.to_string(), format!("{error:?}"), format!("{error:#?}")]
}

/// Matches a request of the proxy's log with a pattern in which each `*` is one segment.
pub fn matches(pattern: &str, request: &Value) -> bool {
    let made = format!("{} {}", text(&request["method"]), text(&request["path"]));
    let (pattern, made): (Vec<&str>, Vec<&str>) =
        (pattern.split([' ', '/']).collect(), made.split([' ', '/']).collect());
    pattern.len() == made.len() && pattern.iter().zip(made).all(|(part, made)| *part == "*" || *part == made)
}

pub fn assert_pauses(pauses_ms: &[u64], bounds: &Value) {
    let bounds = bounds.as_array().unwrap();
    assert_eq!(pauses_ms.len(), bounds.len(), "pauses: {pauses_ms:?}");
    for (pause_ms, bound) in pauses_ms.iter().zip(bounds) {
        let (least, most) = (bound[0].as_u64().unwrap(), bound[1].as_u64().unwrap());
        assert!((least..=most).contains(pause_ms), "pauses: {pauses_ms:?}");
    }
}

pub fn assert_error(error: Option<&Error>, expected: &Value) {
    let error = error.expect("the call must fail");
    for (name, value) in expected.as_object().unwrap() {
        let actual = match name.as_str() {
            "family" => Value::from(format!("{:?}", error.family())),
            "code" => error.code.clone().into(),
            "status" => error.status.into(),
            "submission" => error.submission.as_ref().map(|word| word.as_str()).into(),
            "retryAfterMs" => error.retry_after.map(|after| after.as_secs() * 1000).into(),
            other => panic!("no member {other}"),
        };
        assert_eq!(&actual, value, "{name} of {error:?}");
    }
}
