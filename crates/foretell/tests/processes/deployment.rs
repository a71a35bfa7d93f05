//! A live deployment on a node: created with role addresses, compared with the binary, and rejected
//! if it differs.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use alloy_primitives::Address;
use foretell::secrets::Secrets;
use serde_json::Value;
use store::Store;
use store::testing::TestFolder;
use tokio::process::Command;

use crate::anvil::{Anvil, FUNDER_KEY};
use crate::cluster::deploy;
use crate::service::{Process, foretell};

fn json(path: &Path) -> Value {
    serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap()
}

fn live(home: &Path, anvil: &Anvil) -> Command {
    let mut command = foretell(home);
    command.args(["--environment", "live", "--rpc-url", &anvil.url]).stderr(Stdio::piped());
    command
}

/// Returns the command's standard error and whether it succeeded.
async fn ended(command: &mut Command) -> (bool, String) {
    let output = command.output().await.unwrap();
    (output.status.success(), String::from_utf8_lossy(&output.stderr).into_owned())
}

/// Checks that a live service does not start on the database, and does not migrate it.
async fn assert_needs_migration(home: &Path, anvil: &Anvil) {
    for _ in 0..2 {
        let (done, error) = ended(live(home, anvil).args(["serve", "--listen", "127.0.0.1:0"])).await;
        assert!(!done && error.contains("older than this program: run `foretell migrate`"), "{error}");
    }
}

/// Runs `foretell config check`. Returns whether it passed, and what it printed.
async fn checked(home: &Path, anvil: &Anvil) -> (bool, String) {
    let output = live(home, anvil).args(["config", "check"]).stdout(Stdio::piped()).output().await.unwrap();
    (output.status.success(), String::from_utf8(output.stdout).unwrap())
}

/// Checks that executors without gas are named before anybody trades, and that the check passes once
/// they have some.
async fn assert_check_wants_gas(home: &Path, anvil: &Anvil) {
    let executors = Secrets::load(&home.join("secrets.json")).unwrap().executors().unwrap();
    for (balance, passes) in [("0x0", false), ("0xde0b6b3a7640000", true)] {
        for executor in &executors {
            anvil.call("anvil_setBalance", serde_json::json!([executor.address(), balance])).await;
        }
        let (passed, text) = checked(home, anvil).await;
        assert_eq!(passed, passes, "{text}");
        let line = text.lines().find(|line| line.starts_with("gas  ")).unwrap();
        assert_eq!(
            line.contains("cannot pay for a transaction: lane 0") && line.contains("has 0 wei"),
            !passes,
            "{line}"
        );
    }
}

fn file_of_key(home: &Path) -> PathBuf {
    let path = home.join("deployer.key");
    std::fs::write(&path, FUNDER_KEY).unwrap();
    path
}

#[tokio::test]
async fn a_live_service_accepts_only_the_contracts_of_its_deployment() {
    let Some(anvil) = Anvil::start().await else { return };
    let development = TestFolder::create();
    deploy(development.path(), &anvil.url, "1").await;
    let token = json(&development.path().join("contracts.json"))["usdc"].as_str().unwrap().to_owned();

    let home = TestFolder::create();
    let (done, error) = ended(live(home.path(), &anvil).arg("deploy")).await;
    assert!(!done && error.contains("a live deployment needs --usdc, --owner"), "{error}");
    assert!(!home.path().join("secrets.json").exists());

    // The data folder must be accessible only to its owner.
    std::fs::set_permissions(home.path(), std::fs::Permissions::from_mode(0o700)).unwrap();
    let key = file_of_key(home.path());
    let roles = ["--owner", "--resolver", "--guardian", "--treasury"];
    let mut command = live(home.path(), &anvil);
    command.args(["deploy", "--usdc", &token, "--deployer-key-file"]).arg(&key);
    command.args(["--listing-delay-s", "60", "--veto-window-s", "3600", "--min-freeze-s", "60"]);
    command.args(["--role-delay-s", "86400"]);
    for (role, byte) in roles.into_iter().zip(0x11..) {
        command.args([role, &Address::repeat_byte(byte).to_string()]);
    }
    let (done, error) = ended(&mut command).await;
    assert!(done, "{error}");
    assert!(error.contains("take effect after 86400 s"), "{error}");
    std::fs::remove_file(key).unwrap();
    let secrets = Secrets::load(&home.path().join("secrets.json")).unwrap();
    assert!(secrets.roles.present().is_empty());

    let (done, error) = ended(live(home.path(), &anvil).args(["deploy", "--verify"])).await;
    assert!(done, "{error}");
    assert_needs_migration(home.path(), &anvil).await;
    let (done, error) = ended(live(home.path(), &anvil).arg("migrate")).await;
    assert!(done, "{error}");
    let mut serve = live(home.path(), &anvil);
    serve.args(["serve", "--listen", "127.0.0.1:0"]).stderr(Stdio::null());
    Process::start_unready(serve, home.path()).await.kill().await;

    assert_check_wants_gas(home.path(), &anvil).await;
    // A guardian that differs from the recorded one, as after an unrecorded hand-over.
    let record = home.path().join("deployment.json");
    let mut recorded = json(&record);
    recorded["guardian"] = Address::repeat_byte(0x99).to_string().into();
    std::fs::write(&record, recorded.to_string()).unwrap();
    let (passed, text) = checked(home.path(), &anvil).await;
    assert!(!passed && text.contains("deployment               FAILED: the contracts differ"), "{text}");
    for command in [&["deploy", "--verify"][..], &["serve", "--listen", "127.0.0.1:0"]] {
        let (done, error) = ended(live(home.path(), &anvil).args(command)).await;
        assert!(!done && error.contains("the guardian is"), "{error}");
    }
    let (done, error) = ended(live(home.path(), &anvil).args(["deploy", "--record"])).await;
    assert!(done, "{error}");
    let (passed, text) = checked(home.path(), &anvil).await;
    assert!(passed && text.contains("deployment               ok: the contracts are those of"), "{text}");
    assert_eq!(json(&record)["guardian"], Address::repeat_byte(0x13).to_string().to_lowercase().as_str());

    // As if this program had one migration more than the database.
    let database = format!("sqlite:{}", home.path().join("foretell.db").display());
    let store = Store::open(&database).await.unwrap();
    let forgotten = store.write((), |tx, ()| {
        let newest = "DELETE FROM schema_migrations WHERE name = (SELECT MAX(name) FROM schema_migrations)";
        Box::pin(tx.exec(newest, &[]))
    });
    assert_eq!(forgotten.await, Ok(1));
    store.close().await;
    assert_needs_migration(home.path(), &anvil).await;
    let (passed, text) = checked(home.path(), &anvil).await;
    assert!(
        !passed && text.contains("database                 FAILED: the database schema is older"),
        "{text}"
    );
}
