//! A backup is taken next to the running service, and restored after the service was killed.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::time::Duration;

use serde_json::Value;
use sha2::{Digest, Sha256};
use store::Store;
use store::testing::TestFolder;

use crate::clients::{AcknowledgedTrades, Clients, Trader};
use crate::oracle;
use crate::service::{Service, foretell, read_json};

/// Returns the output of `foretell admin` for another data folder.
async fn admin_of(data_dir: &Path, args: &[&str]) -> Value {
    let mut command = foretell(data_dir);
    let output = command
        .args(["admin", "--json"])
        .args(args)
        .stdout(std::process::Stdio::piped())
        .output()
        .await
        .unwrap();
    serde_json::from_slice(&output.stdout).unwrap()
}

fn message(answer: &Value) -> &str {
    answer["error"]["message"].as_str().unwrap_or_else(|| panic!("not refused: {answer}"))
}

/// Updates a backup's manifest to the current contents of a file.
fn rewrite_manifest(backup: &Path, name: &str) {
    let path = backup.join("manifest.json");
    let mut manifest = read_json(&path).unwrap();
    let bytes = std::fs::read(backup.join(name)).unwrap();
    let file =
        manifest["files"].as_array_mut().unwrap().iter_mut().find(|file| file["name"] == name).unwrap();
    file["bytes"] = bytes.len().into();
    file["sha256"] = alloy_primitives::hex::encode(Sha256::digest(&bytes)).into();
    std::fs::write(path, manifest.to_string()).unwrap();
}

async fn number_in(data_dir: &Path, sql: &'static str) -> i64 {
    let store = Store::open(&format!("sqlite:{}", data_dir.join("foretell.db").display())).await.unwrap();
    let found = oracle::number(&store, sql).await;
    store.close().await;
    found
}

#[tokio::test(flavor = "multi_thread")]
async fn a_restored_database_is_recovered_without_failed_or_repeated_trades() {
    let mut service = Service::on_sqlite().await;
    let demonstration = service.demonstration().await;
    let clients = Clients::start(Trader::of_demonstration(&demonstration, 4));
    service.start().await;
    clients.send_to(&[service.base_url()]);
    service.live_for(Duration::from_millis(400)).await;
    let folder = TestFolder::create();
    let backup = folder.path().join("backup");
    let path = backup.to_str().unwrap();
    let made = service.admin(&["backup", path]).await;
    assert!(made["chainBlock"].as_u64() >= made["databaseBlock"].as_u64(), "{made}");
    for file in made["files"].as_array().unwrap() {
        let mode = std::fs::metadata(backup.join(file.as_str().unwrap())).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600, "{file}");
    }
    let taken = service.admin(&["backup", path]).await;
    assert!(message(&taken).contains("not empty"), "{taken}");
    // These trades are not in the backup.
    clients.trade_more(4).await;
    let running = service.admin(&["restore", path, "--force", "--database-only"]).await;
    assert!(message(&running).contains("another foretell process runs"), "{running}");
    service.kill().await;

    let over = service.admin(&["restore", path]).await;
    assert!(message(&over).contains("--force"), "{over}");
    let restored = service.admin(&["restore", path, "--force", "--database-only"]).await;
    assert_eq!(restored["written"].as_array().unwrap().len(), 1, "{restored}");
    service.start().await;
    clients.send_to(&[service.base_url()]);
    service.live_for(Duration::from_millis(400)).await;
    drop(clients.finish().await);
    let store = service.store().await;
    oracle::settled(&store).await;
    oracle::check(&store, &service.chain().await, &AcknowledgedTrades::new()).await;
    let not_completed = "SELECT COUNT(*) FROM trades WHERE status <> 'completed'";
    assert_eq!(oracle::number(&store, not_completed).await, 0);
    let recovered =
        oracle::number(&store, "SELECT COUNT(*) FROM trades WHERE recovered_at_ms IS NOT NULL").await;
    assert!(recovered > 0, "no trade was executed after the backup");
    let again = service.admin(&["recover"]).await;
    assert_eq!((&again["recoveredTrades"], &again["correctedTrades"]), (&0.into(), &0.into()), "{again}");
    assert!(again["lostIdempotencyKeysAcceptedUntil"].is_string(), "{again}");
    let log = service.admin(&["audit", "list", "--action", "recovery"]).await;
    assert!(log.as_array().unwrap().len() >= 2, "{log}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_damaged_backup_or_one_with_an_older_chain_is_rejected() {
    let mut service = Service::on_sqlite().await;
    let demonstration = service.demonstration().await;
    service.start().await;
    let folder = TestFolder::create();
    let (earlier, later) = (folder.path().join("earlier"), folder.path().join("later"));
    service.admin(&["backup", earlier.to_str().unwrap()]).await;
    let clients = Clients::start(Trader::of_demonstration(&demonstration, 1));
    clients.send_to(&[service.base_url()]);
    service.live_for(Duration::from_millis(300)).await;
    drop(clients.finish().await);
    oracle::settled(&service.store().await).await;
    service.admin(&["backup", later.to_str().unwrap()]).await;
    service.kill().await;

    let target = folder.path().join("restored");
    let restored = admin_of(&target, &["restore", earlier.to_str().unwrap()]).await;
    assert!(restored["written"].as_array().unwrap().len() >= 4, "{restored}");
    assert_eq!(number_in(&target, "SELECT COUNT(*) FROM recoveries WHERE open_slot = 1").await, 1);

    let target = folder.path().join("refused");
    std::fs::copy(earlier.join("chain.db"), later.join("chain.db")).unwrap();
    let damaged = admin_of(&target, &["restore", later.to_str().unwrap()]).await;
    assert!(message(&damaged).contains("SHA-256"), "{damaged}");
    rewrite_manifest(&later, "chain.db");
    let older = admin_of(&target, &["restore", later.to_str().unwrap()]).await;
    assert!(message(&older).contains("older than the database"), "{older}");
    assert!(!target.join("foretell.db").exists(), "nothing is written before everything is checked");
    let manifest = std::fs::read_to_string(earlier.join("manifest.json")).unwrap();
    std::fs::write(earlier.join("manifest.json"), manifest.replace("\"format\": 1", "\"format\": 99"))
        .unwrap();
    let other = admin_of(&target, &["restore", earlier.to_str().unwrap()]).await;
    assert!(message(&other).contains("another form"), "{other}");
}
