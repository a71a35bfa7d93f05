//! The commands of traders, as a person or a script runs them.

use std::path::PathBuf;
use std::process::{Output, Stdio};

use axum::http::StatusCode;
use axum::routing::post;
use axum::{Json, Router};
use serde_json::{Value, json};

use crate::service::{Service, foretell};

/// A service with its demonstration, and the files of keys.
struct Stage {
    service: Service,
    key_file: PathBuf,
    market: String,
}

/// The output of a command, and its exit code.
struct Ran {
    code: i32,
    output: String,
    errors: String,
}

impl Ran {
    fn json(&self) -> Value {
        serde_json::from_str(&self.output)
            .unwrap_or_else(|error| panic!("{error}: {} {}", self.output, self.errors))
    }
}

impl Stage {
    async fn start() -> Self {
        let mut service = Service::on_sqlite().await;
        service.start().await;
        let dev: Value = serde_json::from_slice(&std::fs::read(service.file("dev.json")).unwrap()).unwrap();
        let markets = dev["markets"].as_array().unwrap();
        let open = markets.iter().find(|market| market["status"] == "OPEN").unwrap();
        let market = open["id"].as_str().unwrap().to_owned();
        let keys = dev["users"][0]["keys"].as_array().unwrap();
        let key = keys.iter().find(|key| key["tier"] == "developer").unwrap();
        let key_file = service.file("api-key");
        std::fs::write(&key_file, key["key"].as_str().unwrap()).unwrap();
        Self { service, key_file, market }
    }

    /// Runs a command without a terminal. `MARKET` stands for the id of an open market.
    async fn run(&self, line: &str) -> Ran {
        self.run_at(self.service.base_url(), line).await
    }

    async fn run_at(&self, url: &str, line: &str) -> Ran {
        let words = line.split_whitespace();
        let arguments = words.map(|word| if word == "MARKET" { self.market.as_str() } else { word });
        let mut command = foretell(&self.service.file("unused"));
        command.args(arguments).env("FORETELL_BASE_URL", url);
        command.env("FORETELL_API_KEY_FILE", &self.key_file);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let Output { status, stdout, stderr } = command.output().await.unwrap();
        Ran {
            code: status.code().unwrap(),
            output: String::from_utf8(stdout).unwrap(),
            errors: String::from_utf8(stderr).unwrap(),
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_trader_finds_a_market_buys_sells_and_sees_the_position() {
    let stage = Stage::start().await;

    let listed = stage.run("markets --status OPEN --limit 2 -o ndjson --fields id,status").await;
    assert_eq!((listed.code, listed.output.lines().count()), (0, 2), "{}", listed.errors);
    let quote = stage.run("quote MARKET 0 5.00").await.json();
    let bought = stage.run("buy MARKET 0 5.00 --yes --name script:1").await;
    assert_eq!(bought.code, 0, "{} {}", bought.output, bought.errors);
    assert_eq!(bought.json()["status"], "completed");
    assert_eq!(bought.json()["tokensOut"], quote["tokensOut"]);
    let again = stage.run("buy MARKET 0 5.00 --yes --name script:1").await.json();
    assert_eq!(again["id"], bought.json()["id"], "the same name makes no second trade");

    let table = stage.run("trade --name script:1 -o table").await.output;
    let (head, row) = table.split_once('\n').unwrap();
    assert!(head.starts_with("ID ") && row.contains("completed") && row.contains("  5  "), "{table}");
    let sold = stage.run("sell MARKET 0 --all --yes").await;
    assert_eq!((sold.code, &sold.json()["side"]), (0, &Value::from("sell")), "{}", sold.errors);
    let positions = stage.run("positions --fields marketId,outcomeIndex,tokens").await.json();
    let of_market =
        |position: &&Value| position["marketId"] == stage.market.as_str() && position["outcomeIndex"] == 0;
    assert_eq!(positions.as_array().unwrap().iter().find(of_market).unwrap()["tokens"], "0");

    let events = stage.run("events --from oldest --types trade.completed --limit 1 --fields type").await;
    assert_eq!((events.code, events.output.trim()), (0, r#"{"type":"trade.completed"}"#));
}

#[tokio::test(flavor = "multi_thread")]
async fn each_family_of_errors_has_its_exit_code() {
    let stage = Stage::start().await;
    let wrong = stage.service.file("wrong-key");
    std::fs::write(&wrong, "service_test_0123456789ABCDEFGHIJKLMNOPQRSTUV\n").unwrap();
    let wrong = wrong.display();
    for (line, code) in [
        ("markets --key-file /nonexistent".to_owned(), 1),
        ("watch".to_owned(), 1),
        ("markets --unknown".to_owned(), 2),
        ("quote MARKET nobody 5.00".to_owned(), 2),
        ("buy MARKET 0 5.00".to_owned(), 4),
        (format!("positions --key-file {wrong}"), 10),
        ("buy MARKET 0 900000 --yes".to_owned(), 12),
        ("claim MARKET 0".to_owned(), 12),
        ("trade 018f0000-0000-7000-8000-000000000002".to_owned(), 13),
        ("buy MARKET 0 1.0000001 --yes".to_owned(), 13),
    ] {
        let ran = stage.run(&line).await;
        assert_eq!(ran.code, code, "{line}: {} {}", ran.output, ran.errors);
        assert!(!ran.output.contains("service_test_") && !ran.errors.contains("service_test_"), "{line}");
    }
    let refused = stage.run("buy MARKET 0 900000 --yes").await.json();
    assert_eq!(refused["error"]["code"], "SPENDING_LIMIT_EXCEEDED");
    assert_eq!(refused["error"]["submission"], "not_submitted");
    let shown = stage.run("buy MARKET 0 900000 --yes -o table").await;
    assert!(
        shown.output.is_empty() && shown.errors.contains("(SPENDING_LIMIT_EXCEEDED)"),
        "{}",
        shown.errors
    );
}

/// Starts a service that makes this trade and then has forgotten it. Returns its address.
async fn forgetful(trade: Value) -> String {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let made = move || async move { (StatusCode::CREATED, Json(json!({ "trade": trade }))) };
    let router = Router::new().route("/v1/trades", post(made)).fallback(async || StatusCode::NOT_FOUND);
    tokio::spawn(async move { axum::serve(listener, router).await });
    url
}

#[tokio::test(flavor = "multi_thread")]
async fn a_trade_that_was_made_is_never_reported_as_one_that_was_not() {
    let stage = Stage::start().await;
    let mut trade = stage.run("buy MARKET 0 1.00 --yes --no-wait").await.json();
    trade["status"] = "pending".into();
    let url = forgetful(trade).await;
    let lost = stage.run_at(&url, "buy MARKET 0 1.00 --yes --name lost:1 -o json").await;
    assert_eq!(lost.code, 16, "{} {}", lost.output, lost.errors);
    assert_eq!(
        (&lost.json()["error"]["code"], &lost.json()["error"]["name"]),
        (&"HTTP_404".into(), &"lost:1".into())
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn texts_of_other_users_cannot_control_the_terminal() {
    let stage = Stage::start().await;
    let ran = stage.run("quote MARKET \u{1b}[2J 5.00 -o table").await;
    assert_eq!(ran.code, 2);
    assert!(
        ran.errors.contains("the market has no outcome  [2J") && !ran.errors.contains('\u{1b}'),
        "{:?}",
        ran.errors
    );
}

#[tokio::test]
async fn completions_and_manual_pages_are_written_without_a_service() {
    let folder = store::testing::TestFolder::create();
    let completions =
        foretell(folder.path()).args(["completions", "bash"]).stdout(Stdio::piped()).output().await;
    assert!(String::from_utf8(completions.unwrap().stdout).unwrap().contains("complete -F _foretell"));
    let pages = folder.path().join("pages");
    let written = foretell(folder.path()).arg("man").arg(&pages).status().await.unwrap();
    assert!(written.success());
    let page = std::fs::read_to_string(pages.join("foretell-buy.1")).unwrap();
    assert!(page.contains("Buy tokens of an outcome"), "{page}");
}
