//! `foretell admin import` is killed repeatedly next to a running service.

use std::fmt::Write;
use std::process::Stdio;
use std::time::Duration;

use serde_json::Value;

use crate::service::Service;

const MARKETS: usize = 6;

fn catalogue() -> String {
    let mut text = "
organizations: [{key: o, name: Killed, slug: killed}]
threads: [{key: t, title: Killed, organization: o, category: killed}]
markets:
"
    .to_owned();
    for n in 0..MARKETS {
        let terms = "outcomes: [Yes, No], liquidity: 10, feeBps: 0, endTime: 2100-01-01T00:00:00Z";
        writeln!(text, "  - {{key: m{n}, thread: t, question: Killed {n}?, {terms}}}").unwrap();
    }
    text
}

/// Returns the output lines of a complete run.
async fn import(service: &Service, args: &[&str]) -> Vec<Value> {
    let output = service.admin_command(&[&["import"], args].concat()).output().await.unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let lines =
        text.lines().map(|line| serde_json::from_str(line).unwrap_or_else(|e| panic!("{e} in {text}")));
    lines.collect()
}

async fn survives(service: &mut Service) {
    service.start().await;
    let file = service.file("catalogue.yaml");
    std::fs::write(&file, catalogue()).unwrap();
    let file = file.to_str().unwrap();

    let planned = import(service, &[file, "--dry-run"]).await;
    assert_eq!(planned.last().unwrap()["summary"]["created"], MARKETS + 2, "{planned:?}");
    for patience_ms in (0..3_000).step_by(60) {
        let mut run = service.admin_command(&["import", file]).stdout(Stdio::null()).spawn().unwrap();
        let ended = tokio::time::timeout(Duration::from_millis(patience_ms), run.wait()).await;
        if ended.is_ok_and(|status| status.unwrap().success()) {
            break;
        }
        // The process may already have ended by itself.
        drop(run.kill().await);
    }
    import(service, &[file]).await;
    let again = import(service, &[file]).await;
    let summary = &again.last().unwrap()["summary"];
    assert_eq!((&summary["skipped"], &summary["synced"]), (&(MARKETS + 2).into(), &true.into()), "{again:?}");
    let listed = service.admin(&["market", "list", "--text", "Killed"]).await;
    let listed = listed.as_array().unwrap();
    assert_eq!(listed.len(), MARKETS, "{listed:?}");
    assert!(listed.iter().all(|market| market["status"] == "OPEN" && market["category"] == "killed"));

    let id = listed[0]["id"].as_str().unwrap();
    let args = ["market", "update", "--market", id, "--featured", "3", "--tag", "late", "--category", ""];
    let changed = service.admin(&args).await;
    assert_eq!((&changed["featured"], &changed["tags"][0]), (&3.into(), &"late".into()), "{changed}");
    assert_eq!(changed["category"], Value::Null);

    std::fs::write(file, catalogue().replace("liquidity: 10,", "liquidity: 20,")).unwrap();
    let refused = import(service, &[file]).await;
    let problems = refused[0]["error"]["problems"].as_array().unwrap();
    assert_eq!(
        (problems.len(), &problems[0]["path"]),
        (MARKETS, &"/markets/0/liquidity".into()),
        "{refused:?}"
    );
    service.kill().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_killed_import_continues_and_repeats_nothing_on_sqlite() {
    survives(&mut Service::on_sqlite().await).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_killed_import_continues_and_repeats_nothing_on_postgres() {
    let Some(mut service) = Service::on_postgres().await else { return };
    survives(&mut service).await;
}
