//! Ending markets as an operator: only with confirmation, only once, and with accurate messages.

use std::process::Output;

use serde_json::Value;

use crate::service::Service;

/// Returns the exit code and the output of `foretell admin --json`.
async fn admin(service: &Service, args: &[&str]) -> (i32, Value) {
    let Output { status, stdout, .. } = service.admin_command(args).output().await.unwrap();
    let text = String::from_utf8(stdout).unwrap();
    let answer =
        serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error} in {text:?} of {args:?}"));
    (status.code().unwrap(), answer)
}

async fn open_markets(service: &Service) -> Vec<String> {
    let (_, listed) = admin(service, &["market", "list", "--status", "open"]).await;
    listed.as_array().unwrap().iter().map(|market| market["id"].as_str().unwrap().to_owned()).collect()
}

async fn assert_ended(service: &Service, id: &str, state: &str) {
    for verb in [&["resolve", id, "--outcome", "1", "--yes"][..], &["cancel", id, "--yes"], &["cancel", id]] {
        let (exit, answer) = admin(service, &[&["market"], verb].concat()).await;
        let message = format!("the market is {state}");
        assert_eq!((exit, answer["error"]["message"].as_str()), (3, Some(message.as_str())), "{verb:?}");
        assert_eq!(answer["error"]["code"], "INVALID_STATE");
    }
}

#[tokio::test]
async fn a_market_ends_once_and_only_with_consent() {
    let mut service = Service::on_sqlite().await;
    service.demonstration().await;
    service.start().await;
    let open = open_markets(&service).await;
    let (resolved, cancelled) = (open[0].as_str(), open[1].as_str());

    // The tests have no terminal, so `--yes` is required.
    for verb in [&["resolve", resolved, "--outcome", "1"][..], &["finalize", resolved], &["cancel", resolved]]
    {
        let (exit, answer) = admin(&service, &[&["market"], verb].concat()).await;
        assert_eq!((exit, &answer["error"]["code"]), (4, &"NOT_CONFIRMED".into()), "{answer}");
        assert!(answer["error"]["message"].as_str().unwrap().contains("--yes"), "{answer}");
    }
    let (_, shown) = admin(&service, &["market", "show", resolved]).await;
    assert_eq!(shown["status"], "OPEN");
    assert_eq!(admin(&service, &["market", "show", "--market", resolved]).await, (0, shown));

    let source = ["market", "resolve", resolved, "--outcome", "1", "--source", "the office", "--yes"];
    let (exit, answer) = admin(&service, &source).await;
    assert_eq!((exit, &answer["status"]), (0, &"RESOLVED".into()), "{answer}");
    let prices: Vec<_> = answer["outcomes"].as_array().unwrap().iter().map(|it| &it["probability"]).collect();
    assert!(prices.iter().enumerate().all(|(n, price)| **price == if n == 1 { "1.0000" } else { "0.0000" }));
    assert_ended(&service, resolved, "RESOLVED").await;

    let reason = "the match was called off";
    let (exit, answer) = admin(&service, &["market", "cancel", cancelled, "--reason", reason, "--yes"]).await;
    assert_eq!((exit, &answer["status"], &answer["cancelReason"]), (0, &"CANCELLED".into(), &reason.into()));
    let (_, shown) = admin(&service, &["market", "show", cancelled]).await;
    assert_eq!(shown["cancelReason"], reason);
    let subject = format!("market:{cancelled}");
    let (_, log) = admin(&service, &["audit", "list", "--subject", &subject]).await;
    assert!(log.as_array().unwrap().iter().all(|entry| entry["reason"] == reason), "{log}");
    assert_ended(&service, cancelled, "CANCELLED").await;

    // The contracts distinguish more states than the tables.
    let (exit, answer) = admin(&service, &["market", "unfreeze", &open[2]]).await;
    assert_eq!((exit, answer["error"]["message"].as_str()), (3, Some("the market is OPEN")), "{answer}");
}
