//! What a process checks when it starts, and what its first scrape has.

use std::process::Stdio;

use store::testing::TestFolder;
use tokio::process::Command;

use crate::service::{Service, program, read_json};

/// Runs foretell in a shell that sets its limit of open files. Returns whether it succeeded, and what
/// it printed.
async fn with_limit(files: u32, home: &TestFolder, arguments: &str) -> (bool, String) {
    let mut shell = Command::new("sh");
    let script = format!("ulimit -n {files}; exec \"$0\" --data-dir \"$1\" {arguments}");
    shell.arg("-c").arg(script).arg(program()).arg(home.path());
    let output = shell.stdout(Stdio::piped()).stderr(Stdio::piped()).output().await.unwrap();
    let text = [output.stdout, output.stderr].map(|bytes| String::from_utf8(bytes).unwrap()).concat();
    (output.status.success(), text)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_limit_of_open_files_that_is_too_low_stops_the_start_and_is_named() {
    let home = TestFolder::create();
    for command in ["config check", "serve --listen 127.0.0.1:0 --ops-listen off"] {
        let (passed, text) = with_limit(64, &home, command).await;
        assert!(
            !passed && text.contains("64 are allowed, but 4096 connections of clients, 1024 of webhooks and"),
            "{text}"
        );
        assert!(text.contains("Raise the limit to"), "{text}");
    }
    let (passed, text) = with_limit(1_024, &home, "config check").await;
    assert!(passed && text.contains("WARNING: 1024 are allowed"), "{text}");
    assert!(text.contains("or set max-connections to"), "{text}");
}

fn http() -> reqwest::Client {
    reqwest::Client::builder().no_proxy().build().unwrap()
}

async fn scrape(service: &Service, http: &reqwest::Client) -> String {
    let url = read_json(&service.file("service.json")).unwrap()["opsUrl"].as_str().unwrap().to_owned();
    http.get(format!("{url}/metrics")).send().await.unwrap().text().await.unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn open_connections_use_their_budget() {
    let mut service = Service::on_sqlite().await;
    service.demonstration().await;
    service.start_with(&["--ops-listen", "127.0.0.1:0"]).await;
    let http = http();
    // The client keeps this connection.
    let health = http.get(format!("{}/v1/health", service.base_url())).send().await.unwrap();
    let text = scrape(&service, &http).await;
    let line = r#"foretell_budget_used{budget="connections",scope="total"} "#;
    let used = text.lines().find_map(|found| found.strip_prefix(line)).unwrap();
    assert_ne!(used, "0", "{text}");
    drop(health);
    service.kill().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_first_scrape_has_every_known_series() {
    let mut service = Service::on_sqlite().await;
    service.demonstration().await;
    service.start_with(&["--ops-listen", "127.0.0.1:0"]).await;
    let text = scrape(&service, &http()).await;
    for line in [
        r#"foretell_http_requests_total{route="/v1/trades",method="POST",status="503",code="DEPENDENCY_UNAVAILABLE"} 0"#,
        r#"foretell_http_request_seconds_count{route="/v1/trades/{id}"} 0"#,
        r#"foretell_signer_failures_total{lane="0"} 0"#,
        r#"foretell_trade_failures_total{code="INTERNAL_ERROR"} 0"#,
        r#"foretell_degraded{reason="sync_stopped"} 0"#,
        r#"foretell_check_up{check="schema"} 1"#,
        r#"foretell_check_up{check="pools"} 1"#,
        r#"foretell_check_up{check="storage"} 1"#,
        r#"foretell_check_up{check="not_draining"} 1"#,
        "foretell_markets_quarantined 0",
        "foretell_http_connections_max 4096",
    ] {
        assert!(text.lines().any(|found| found == line), "{line} in {text}");
    }
    let value = |name: &str| {
        let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
        line.unwrap_or_else(|| panic!("{name} in {text}")).parse::<f64>().unwrap()
    };
    assert!(value("process_resident_memory_bytes") > 1e6 && value("process_cpu_seconds_total") > 0.0);
    assert!(value("process_open_fds") < value("process_max_fds"));
    service.kill().await;
}
