//! Operator commands next to a running service take effect in time.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::service::Service;

/// Maximum time until a revocation or a switch takes effect in every process.
const SOON: Duration = Duration::from_secs(1);

struct Caller {
    http: reqwest::Client,
    base_url: String,
    key: String,
}

impl Caller {
    async fn code(&self, method: reqwest::Method, path: &str) -> (u16, String) {
        let request = self.http.request(method, format!("{}{path}", self.base_url));
        let answer = request.header("X-API-Key", &self.key).json(&json!({})).send().await.unwrap();
        let code = answer.headers().get("x-service-error-code").map(|code| code.to_str().unwrap().to_owned());
        (answer.status().as_u16(), code.unwrap_or_default())
    }

    /// Repeats a request until the response has this code, which must happen within [`SOON`].
    async fn becomes(&self, method: reqwest::Method, path: &str, code: &str) {
        let began = Instant::now();
        loop {
            let (status, now) = self.code(method.clone(), path).await;
            if now == code {
                return;
            }
            assert!(began.elapsed() < SOON, "{method} {path} is still answered {status} {now}, not {code}");
        }
    }
}

async fn assert_follows_commands(service: &mut Service) {
    let user = service.demonstration().await["users"][1]["userId"].as_str().unwrap().to_owned();
    service.start().await;
    let issue =
        ["key", "issue", "--user", &user, "--tier", "mm", "--name", "desk", "--api-version", "2026-04-29"];
    let key: Value = service.admin(&issue).await;
    assert_eq!(
        (&key["delegation"]["enabled"], &key["apiVersion"]),
        (&true.into(), &"2026-04-29".into()),
        "{key}"
    );
    let (id, key) = (key["id"].as_str().unwrap(), key["key"].as_str().unwrap().to_owned());
    let http = reqwest::Client::builder().no_proxy().timeout(Duration::from_secs(20)).build().unwrap();
    let caller = Caller { http, base_url: service.base_url().to_owned(), key };
    let (get, post) = (reqwest::Method::GET, reqwest::Method::POST);
    caller.becomes(get.clone(), "/v1/markets", "").await;
    caller.becomes(post.clone(), "/v1/trades", "VALIDATION_FAILED").await;

    let halted = service.admin(&["switch", "halt", "--reason", "drill", "--by", "ada"]).await;
    assert_eq!(
        (&halted["switch"], &halted["state"], &halted["by"]),
        (&"trading".into(), &"off".into(), &"ada".into())
    );
    caller.becomes(post.clone(), "/v1/trades", "API_TRADE_PROCESSING_HALTED").await;
    service.admin(&["switch", "disable", "GET", "/v1/markets"]).await;
    caller.becomes(get.clone(), "/v1/markets", "ROUTE_DISABLED").await;
    // A switch stays off across a restart.
    service.kill().await;
    service.start().await;
    let caller = Caller { base_url: service.base_url().to_owned(), ..caller };
    assert_eq!(caller.code(get.clone(), "/v1/markets").await.1, "ROUTE_DISABLED");
    service.admin(&["switch", "enable", "GET /v1/markets"]).await;
    service.admin(&["switch", "resume"]).await;
    caller.becomes(get.clone(), "/v1/markets", "").await;
    caller.becomes(post, "/v1/trades", "VALIDATION_FAILED").await;
    assert_eq!(
        service.admin(&["switch", "disable", "GET /v1/nothing"]).await["error"]["code"],
        "VALIDATION_FAILED"
    );

    let reduced =
        service.admin(&["delegation", "reduce", "--key", id, "--per-trade-limit", "7", "--wait"]).await;
    assert_eq!(reduced["delegation"]["onChain"], "mined", "{reduced}");
    let revoked = service.admin(&["key", "revoke", "--key", id, "--wait"]).await;
    assert_eq!(revoked["delegation"]["onChain"], "mined", "the key's delegation is over on chain: {revoked}");
    let shown = service.admin(&["key", "show", "--key", id]).await;
    assert_eq!(shown["delegation"], revoked["delegation"], "{shown}");
    caller.becomes(get, "/v1/markets", "API_KEY_REVOKED").await;
    let mut looks = tokio::time::interval(Duration::from_millis(100));
    let entry = loop {
        looks.tick().await;
        let log = service.admin(&["key", "audit", id]).await;
        if let Some(entry) = log.as_array().and_then(|log| log.first()) {
            break entry.clone();
        }
    };
    assert_eq!(
        (&entry["code"], &entry["route"]),
        (&"API_KEY_REVOKED".into(), &"GET /v1/markets".into()),
        "{entry}"
    );

    audited(service, id).await;
    // Without a running service, the key is revoked immediately, and its delegation later.
    let second: Value =
        service.admin(&["key", "issue", "--user", &user, "--tier", "mm", "--name", "b"]).await;
    service.kill().await;
    let second = second["id"].as_str().unwrap();
    let revoked = service.admin(&["key", "revoke", "--key", second]).await;
    assert_eq!(revoked["delegation"]["onChain"], "queued", "{revoked}");
    assert!(revoked["revokedAt"].is_string(), "{revoked}");
    assert_eq!(service.admin(&["delegation", "pending"]).await[0]["keyId"], second);
    service.start().await;
    let revoked = service.admin(&["key", "revoke", "--key", second, "--wait"]).await;
    assert!(
        ["mined", "not_needed"].map(Value::from).contains(&revoked["delegation"]["onChain"]),
        "{revoked}"
    );

    service.change_sealing_key();
    let rewrapped = service.admin(&["secrets", "rewrap"]).await;
    assert!(rewrapped["rewrapped"].as_u64().unwrap() > 1, "this key's and the demonstration's: {rewrapped}");
    assert_eq!(service.admin(&["secrets", "rewrap"]).await, json!({ "rewrapped": 0 }));
    service.kill().await;
}

/// Asserts that every changing command is in the audit log, under the given name or the user's own.
async fn audited(service: &Service, key: &str) {
    let subject = format!("key:{key}");
    let of_key = service.admin(&["audit", "list", "--subject", &subject]).await;
    let actions: Vec<_> = of_key.as_array().unwrap().iter().map(|entry| entry["action"].clone()).collect();
    assert_eq!(actions, ["key.revoke", "delegation.reduce", "key.issue"], "{of_key}");
    service.admin(&["--actor", "dara", "switch", "halt", "--reason", "drill"]).await;
    service.admin(&["switch", "resume"]).await;
    let switches =
        service.admin(&["audit", "list", "--action", "switch", "--since", "1h", "--limit", "2"]).await;
    assert_eq!(switches[1]["actor"], "dara", "{switches}");
    assert_eq!(switches[1]["after"]["reason"], "drill", "{switches}");
    assert_ne!(switches[0]["actor"], "dara", "{switches}");
    service.admin(&["sync", "skip", "4000000000", "--reason", "drill"]).await;
    let skips = service.admin(&["audit", "list", "--action", "sync"]).await;
    assert_eq!(
        (&skips[0]["action"], &skips[0]["subject"]),
        (&"sync.skip".into(), &"block:4000000000".into())
    );
    let verified = service.admin(&["audit", "verify"]).await;
    let exported = service.admin_command(&["audit", "export"]).output().await.unwrap();
    let lines: Vec<Value> = String::from_utf8(exported.stdout)
        .unwrap()
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    assert_eq!(verified["entries"], lines.len());
    assert_eq!(lines[0]["action"], "migrate", "the first start made the schema");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_running_service_follows_operator_commands_within_a_second_on_sqlite() {
    assert_follows_commands(&mut Service::on_sqlite().await).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_running_service_follows_operator_commands_within_a_second_on_postgres() {
    let Some(mut service) = Service::on_postgres().await else { return };
    assert_follows_commands(&mut service).await;
}
