//! Many creates through a bad network, and a program that is killed in the middle of its creates.

use std::collections::BTreeSet;
use std::process::Stdio;
use std::sync::atomic::{AtomicUsize, Ordering};

use foretell_client::NewTrade;
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::Command;

use crate::support::{Suite, new_name, table, text};

/// Returns the names of all trades of the user that begin with `prefix`, in order.
async fn names(suite: &Suite, prefix: &str) -> Vec<String> {
    let (mut names, mut query) = (Vec::new(), String::new());
    loop {
        let page = suite.ask(&format!("/v1/trades?limit=100{query}")).await;
        let found =
            page["data"].as_array().unwrap().iter().filter_map(|trade| trade["clientRequestId"].as_str());
        names.extend(found.filter(|name| name.starts_with(prefix)).map(str::to_owned));
        let Some(cursor) = page["pagination"]["cursor"].as_str() else { break };
        query = format!("&cursor={cursor}");
    }
    names.sort();
    names
}

fn expected(prefix: &str, count: usize) -> Vec<String> {
    let mut names: Vec<String> = (0..count).map(|number| format!("{prefix}{number}")).collect();
    names.sort();
    names
}

/// Creates trades with numbered names from several workers at once. Returns their ids.
async fn create(suite: &Suite, prefix: &str, count: usize, workers: usize, print: bool) -> Vec<String> {
    let load = &table()["load"];
    let (client, _) = suite.client(&json!({ "clock": "real", "options": load["options"] }));
    let next = AtomicUsize::new(0);
    let work = async || {
        let mut ids = Vec::new();
        loop {
            let number = next.fetch_add(1, Ordering::Relaxed);
            if number >= count {
                return ids;
            }
            let name = format!("{prefix}{number}");
            let trade = NewTrade::buy(&suite.market, 0, text(&load["amount"])).max_slippage_bps(10_000);
            ids.push(client.trades.create(&trade.client_request_id(&name)).await.unwrap().id.clone());
            if print {
                println!("{name}");
            }
        }
    };
    futures::future::join_all((0..workers).map(|_| work())).await.concat()
}

pub async fn check(suite: &Suite) {
    let load = &table()["load"];
    let given = std::env::var("FORETELL_CREATES").ok().map(|count| count.parse().unwrap());
    let whole = |member: &str| usize::try_from(load[member].as_u64().unwrap()).unwrap();
    let creates = given.unwrap_or_else(|| whole("creates"));
    suite.log.switch_off();
    suite.set_rules(&load["rules"]).await;
    let prefix = format!("load-{}:", new_name());
    let ids = create(suite, &prefix, creates, whole("workers"), false).await;
    assert_eq!(names(suite, &prefix).await, expected(&prefix, creates));
    assert_eq!(ids.into_iter().collect::<BTreeSet<_>>().len(), creates);
    let requests = suite.requests().await;
    let actions: BTreeSet<&str> = requests.iter().filter_map(|request| request["action"].as_str()).collect();
    assert_eq!(actions, BTreeSet::from(["answer", "cut", "delay", "pass", "repeat"]));
}

/// The number of trades of the program that is killed.
const KILLED: usize = 100;

/// The program that is killed: creates trades, and prints a line for each.
pub async fn create_and_print(suite: &Suite, prefix: &str, count: usize) {
    create(suite, prefix, count, 4, true).await;
}

/// Runs the program. Kills it at its n-th line. Returns true if it ended by itself.
async fn run(prefix: &str, kill_at: usize) -> bool {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["killed-program", prefix, &KILLED.to_string()]).stdout(Stdio::piped()).kill_on_drop(true);
    let mut child = command.spawn().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let mut printed = 0;
    while lines.next_line().await.unwrap().is_some() {
        printed += 1;
        if printed == kill_at {
            child.kill().await.unwrap();
        }
    }
    child.wait().await.unwrap().success()
}

pub async fn check_killed(suite: &Suite) {
    let rules: &Value = &table()["load"]["rules"];
    suite.set_rules(rules).await;
    let prefix = format!("killed-{}:", new_name());
    assert!(!run(&prefix, 37).await, "the program must be killed");
    assert!(run(&prefix, usize::MAX).await, "the program must end by itself");
    assert_eq!(names(suite, &prefix).await, expected(&prefix, KILLED));
}
