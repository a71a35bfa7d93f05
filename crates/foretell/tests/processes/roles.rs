//! Roles whose keys are not on the service's machine: `foretell admin` prints the transactions that
//! their wallets send.

use std::path::PathBuf;
use std::time::Duration;

use alloy_primitives::{Address, Bytes, U256};
use chain::{Signer, calls};
use foretell::secrets::{RoleSecrets, Secrets};
use serde_json::{Value, json};

use crate::service::Service;

/// A running demonstration whose secrets file no longer has keys of roles.
struct Deployment {
    service: Service,
    roles: RoleSecrets,
    market: String,
}

impl Deployment {
    async fn start() -> Self {
        let mut service = Service::on_sqlite().await;
        service.demonstration().await;
        service.start().await;
        let open = service.admin(&["market", "list", "--status", "open"]).await;
        let market = open[0]["id"].as_str().unwrap().to_owned();
        let path = service.file("secrets.json");
        let mut secrets = Secrets::load(&path).unwrap();
        let relayer = secrets.roles.relayer.clone();
        let roles = std::mem::replace(&mut secrets.roles, RoleSecrets { relayer, ..RoleSecrets::default() });
        secrets.save(&path).unwrap();
        Self { service, roles, market }
    }

    /// Writes a key file.
    fn key_file(&self, name: &str, signer: &Signer) -> String {
        let path: PathBuf = self.service.file(name);
        std::fs::write(&path, hex::encode(signer.to_bytes())).unwrap();
        path.display().to_string()
    }

    async fn error(&self, args: &[&str]) -> String {
        let answer = self.service.admin(args).await;
        answer["error"]["message"].as_str().unwrap_or_else(|| panic!("not an error: {answer}")).to_owned()
    }

    /// Prints an act and sends its transactions with the key of the wallet.
    async fn send_printed(&self, signer: &Signer, args: &[&str]) -> Value {
        let file = self.service.admin(&[args, &["--print-transactions"]].concat()).await;
        let chain = self.service.chain().await;
        assert_eq!(file["version"], "1.0", "{file}");
        assert_eq!(file["chainId"], chain.chain_id().to_string(), "{file}");
        for transaction in file["transactions"].as_array().unwrap() {
            let to: Address = transaction["to"].as_str().unwrap().parse().unwrap();
            let data: Bytes = transaction["data"].as_str().unwrap().parse().unwrap();
            assert_eq!(transaction["value"], "0");
            chain.transact(signer, Some(to), data).await.unwrap();
        }
        file
    }

    /// Waits until the service shows the market in this status.
    async fn market_in(&self, id: &str, status: &str) -> Value {
        let mut looks = tokio::time::interval(Duration::from_millis(100));
        for _ in 0..100 {
            looks.tick().await;
            let market = self.service.admin(&["market", "show", id]).await;
            if market["status"] == status && market["onChain"] == true {
                return market;
            }
        }
        panic!("the market {id} is not {status} after ten seconds");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn missing_and_outdated_role_keys_are_reported_with_a_remedy() {
    let deployment = Deployment::start().await;
    let (market, guardian) = (deployment.market.as_str(), deployment.roles.guardian().unwrap());
    let missing = deployment.error(&["market", "veto", market]).await;
    let expected = format!(
        "the key of the guardian {} is missing: set --guardian-key-file, or use --print-transactions",
        guardian.address()
    );
    assert_eq!(missing, expected);
    let missing = deployment.error(&["market", "freeze", market]).await;
    assert!(
        missing.ends_with("set --guardian-key-file or --resolver-key-file, or use --print-transactions"),
        "{missing}"
    );
    let resolver = deployment.error(&["market", "freeze", market, "--as", "resolver"]).await;
    assert!(
        resolver.ends_with("is missing: set --resolver-key-file, or use --print-transactions"),
        "{resolver}"
    );
    let not_allowed = deployment.error(&["market", "freeze", market, "--as", "treasury"]).await;
    assert_eq!(not_allowed, "--as must be guardian or resolver.");

    let other = deployment.key_file("other.key", &Signer::random([9; 32]).unwrap());
    let former = deployment.error(&["--guardian-key-file", &other, "market", "veto", market]).await;
    assert!(
        former.contains(&format!("the guardian is {}, but the key is that of 0x", guardian.address())),
        "{former}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn the_resolvers_wallet_creates_freezes_and_resolves_a_market() {
    let deployment = Deployment::start().await;
    let resolver = deployment.roles.resolver().unwrap();
    let create = [
        "market",
        "create",
        "--question",
        "Will it rain?",
        "--outcome",
        "Yes",
        "--outcome",
        "No",
        "--liquidity",
        "100",
        "--fee-bps",
        "100",
        "--end-time",
        "30d",
    ];
    let unfunded = deployment.error(&[&create[..], &["--print-transactions"]].concat()).await;
    assert!(unfunded.contains("69.314"), "{unfunded}");
    let chain = deployment.service.chain().await;
    let mint = calls::mint(resolver.address(), U256::from(100_000_000));
    chain.transact(&deployment.roles.deployer().unwrap(), Some(chain.contracts().usdc), mint).await.unwrap();

    let created = deployment.send_printed(&resolver, &create).await;
    assert_eq!(created["transactions"].as_array().unwrap().len(), 2, "{created}");
    assert_eq!(created["meta"]["description"], format!("To be sent by the resolver {}.", resolver.address()));
    assert_eq!(created["meta"]["name"], "Create the market \"Will it rain?\"");
    let id = created["marketId"].as_str().unwrap();
    let market = deployment.market_in(id, "OPEN").await;
    assert_eq!((&market["question"], &market["proposal"]), (&json!("Will it rain?"), &Value::Null));
    let again = deployment.error(&[&create[..], &["--id", id, "--print-transactions"]].concat()).await;
    assert_eq!(again, "the market is on chain already");

    let freeze = ["market", "freeze", id, "--as", "resolver"];
    let frozen = deployment.send_printed(&resolver, &freeze).await;
    assert_eq!(frozen["marketId"], id);
    deployment.market_in(id, "FROZEN").await;
    let printed_again = deployment.error(&[&freeze[..], &["--print-transactions"]].concat()).await;
    assert_eq!(printed_again, "the market is FROZEN");
    deployment
        .send_printed(&resolver, &["market", "resolve", id, "--outcome", "1", "--source", "the office"])
        .await;
    let resolved = deployment.market_in(id, "RESOLVED").await;
    assert_eq!(
        (&resolved["payouts"], &resolved["resolutionSource"]),
        (&json!(["0", "1"]), &json!("the office"))
    );

    let log = deployment.service.admin(&["audit", "list", "--subject", &format!("market:{id}")]).await;
    let act_of = |entry: &Value| (entry["action"].clone(), entry["phase"].clone());
    let logged: Vec<_> = log.as_array().unwrap().iter().rev().map(act_of).collect();
    let printed = |action: &str| (json!(action), json!("printed"));
    let mut expected = vec![(json!("market.add"), json!("done"))];
    expected.extend(["market.create", "market.freeze", "market.resolve"].map(printed));
    assert!(expected.iter().all(|entry| logged.contains(entry)), "{log}");
}

#[tokio::test(flavor = "multi_thread")]
async fn commands_of_a_role_follow_its_holder() {
    let mut deployment = Deployment::start().await;
    let (owner, old) = (deployment.roles.owner().unwrap(), deployment.roles.guardian().unwrap());
    let new = deployment.roles.treasury().unwrap();
    let guardian = async |deployment: &Deployment| {
        let listed = deployment.service.admin(&["role", "list"]).await;
        listed["roles"][2].clone()
    };
    let shown = guardian(&deployment).await;
    assert_eq!(shown, json!({ "role": "guardian", "holder": old.address(), "proposal": null }));

    let nothing = deployment.error(&["role", "accept", "guardian", "--yes"]).await;
    assert_eq!(nothing, "there is no proposal of a new guardian");
    let new_address = new.address().to_string();
    deployment.send_printed(&owner, &["role", "propose", "guardian", &new_address]).await;
    let shown = guardian(&deployment).await;
    assert_eq!(shown["proposal"]["to"], json!(new.address()), "{shown}");
    let key_file = deployment.key_file("new.key", &new);
    let unasked = deployment.error(&["role", "accept", "guardian", "--key-file", &key_file]).await;
    assert!(unasked.contains("--yes"), "{unasked}");
    let accept = ["role", "accept", "guardian", "--key-file", &key_file, "--yes"];
    let accepted = deployment.service.admin(&accept).await;
    assert_eq!(accepted["roles"][2]["holder"], json!(new.address()), "{accepted}");

    let market = deployment.market.clone();
    let old_file = deployment.key_file("old.key", &old);
    let former = ["--guardian-key-file", &old_file, "market", "freeze", &market, "--as", "guardian"];
    let former = deployment.error(&former).await;
    assert!(former.contains(&format!("the guardian is {new_address}")), "{former}");
    let frozen =
        deployment.service.admin(&["--guardian-key-file", &key_file, "market", "freeze", &market]).await;
    assert_eq!(frozen["status"], "FROZEN", "{frozen}");

    let acts = deployment.service.admin(&["audit", "list", "--action", "role"]).await;
    let act_of =
        |entry: &Value| format!("{} {}", entry["action"].as_str().unwrap(), entry["phase"].as_str().unwrap());
    let logged: Vec<_> = acts.as_array().unwrap().iter().map(act_of).collect();
    assert_eq!(logged, ["role.accept done", "role.accept begun", "role.propose printed"]);
    // A market is also shown without the chain.
    deployment.service.kill().await;
    let shown = deployment.service.admin(&["market", "show", &market]).await;
    assert_eq!((&shown["status"], shown.get("proposal")), (&json!("FROZEN"), None), "{shown}");
}

#[tokio::test(flavor = "multi_thread")]
async fn executors_are_changed_by_the_owner_and_the_guardian() {
    let deployment = Deployment::start().await;
    let service = &deployment.service;
    let (owner, guardian) = (deployment.roles.owner().unwrap(), deployment.roles.guardian().unwrap());
    let address = Address::repeat_byte(9).to_string();
    let row = async || {
        let listed = service.admin(&["executor", "list"]).await;
        listed
            .as_array()
            .unwrap()
            .iter()
            .find(|row| row["address"] == json!(Address::repeat_byte(9)))
            .cloned()
    };
    assert_eq!(row().await, None);
    let owner_file = deployment.key_file("owner.key", &owner);
    let propose = ["--owner-key-file", &owner_file, "executor", "propose", &address, "--hourly-cap", "5000"];
    let proposed = service.admin(&propose).await;
    assert_eq!(
        (&proposed["isExecutor"], &proposed["proposedHourlyCapUsdc"]),
        (&json!(false), &json!("5000"))
    );
    assert_eq!(row().await.unwrap()["proposedHourlyCapUsdc"], "5000", "found by the Gate's logs");
    // Anyone may: the relayer's key is in the secrets file.
    let enacted = service.admin(&["executor", "enact", &address]).await;
    assert_eq!((&enacted["hourlyCapUsdc"], &enacted["usedUsdc"]), (&json!("5000"), &json!("0")), "{enacted}");
    deployment.send_printed(&guardian, &["executor", "lower", &address, "--hourly-cap", "0.5"]).await;
    assert_eq!(row().await.unwrap()["hourlyCapUsdc"], "0.5");
    let zero = deployment.error(&["executor", "lower", &address, "--hourly-cap", "0"]).await;
    assert!(zero.contains("executor remove"), "{zero}");
    deployment.send_printed(&guardian, &["executor", "pause"]).await;
    assert_eq!(row().await.unwrap()["paused"], true);
    deployment.send_printed(&guardian, &["executor", "resume"]).await;
    deployment.send_printed(&guardian, &["executor", "remove", &address]).await;
    assert_eq!(row().await, None);
    let unlimited = ["executor", "propose", &address, "--hourly-cap", "none"];
    deployment.send_printed(&owner, &unlimited).await;
    assert_eq!(row().await.unwrap()["proposedHourlyCapUsdc"], "none");
    deployment.send_printed(&guardian, &["executor", "veto", &address]).await;
    assert_eq!(row().await, None);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_executor_is_added_funded_drained_and_removed() {
    let deployment = Deployment::start().await;
    let service = &deployment.service;
    let (owner, guardian) = (deployment.roles.owner().unwrap(), deployment.roles.guardian().unwrap());
    let (owner, guardian) =
        (deployment.key_file("owner.key", &owner), deployment.key_file("guardian.key", &guardian));
    let before = service.admin(&["executor", "list"]).await;
    let before = before.as_array().unwrap();
    let state = |row: &Value| (row["state"].clone(), row["running"].clone(), row["signer"].clone());
    let running = (json!("active"), json!(true), json!("file"));
    assert!(!before.is_empty() && before.iter().all(|row| state(row) == running), "{before:?}");

    let new = Signer::random([77; 32]).unwrap().address().to_string();
    let no_cap = deployment.error(&["executor", "add", &new]).await;
    assert!(no_cap.starts_with("Set --hourly-cap:"), "{no_cap}");
    let add = ["--owner-key-file", &owner, "executor", "add", &new, "--hourly-cap", "500"];
    let added = service.admin(&add).await;
    assert_eq!((&added["isExecutor"], &added["hourlyCapUsdc"]), (&json!(true), &json!("500")), "{added}");
    assert_eq!((&added["lane"], &added["running"]), (&json!(before.len()), &json!(false)), "{added}");
    assert!(added["next"].as_str().unwrap().contains("start a process"), "{added}");

    let payer = deployment.key_file("deployer.key", &deployment.roles.deployer().unwrap());
    let funded = service.admin(&["executor", "fund", &new, "--wei", "7", "--from-key-file", &payer]).await;
    assert_eq!(funded["balanceWei"], "7", "{funded}");
    let unknown = Address::repeat_byte(9).to_string();
    let unknown =
        deployment.error(&["executor", "fund", &unknown, "--wei", "7", "--from-key-file", &payer]).await;
    assert!(unknown.ends_with("is not an executor"), "{unknown}");

    let drained = service.admin(&["executor", "drain", &new]).await;
    assert_eq!((&drained["state"], &drained["openTrades"]), (&json!("draining"), &json!(0)), "{drained}");
    let remove = ["--guardian-key-file", &guardian, "executor", "remove", &new, "--yes"];
    let removed = service.admin(&remove).await;
    assert_eq!((&removed["state"], &removed["isExecutor"]), (&json!("removed"), &json!(false)), "{removed}");
    let again = service.admin(&["executor", "add", &new]).await;
    assert_eq!(again["error"]["message"], no_cap, "it needs a new proposal");

    let subject = format!("executor:{}", new.to_lowercase());
    let logged = service.admin(&["audit", "list", "--subject", &subject]).await;
    let act_of = |entry: &Value| {
        let text = |member: &str| entry[member].as_str().unwrap().to_owned();
        format!("{} {}", text("action"), text("phase"))
    };
    let mut acts: Vec<_> = logged.as_array().unwrap().iter().map(act_of).collect();
    acts.reverse();
    let expected = [
        "executor.propose begun",
        "executor.propose done",
        "executor.enact begun",
        "executor.enact done",
        "executor.add done",
        "executor.fund begun",
        "executor.fund done",
        "executor.drain done",
        "executor.remove begun",
        "executor.remove done",
        "executor.remove-lane done",
    ];
    assert_eq!(acts, expected);
}
