//! A service whose roles are divided among four processes, each with only the secrets of its roles.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::process::Stdio;

use foretell::secrets::Secrets;
use store::testing::TestFolder;
use store::{Store, StoreError};

use crate::clients::Clients;
use crate::cluster::Cluster;
use crate::oracle;
use crate::receiver::Receiver;
use crate::service::{Process, foretell};
use crate::webhooks::{delivered, point_keys_at};

/// A process of the divided service.
struct Member {
    roles: &'static str,
    folder: TestFolder,
    process: Option<Process>,
}

impl Member {
    /// Writes the secrets of the roles, and starts the process with nothing else.
    async fn start(cluster: &Cluster, roles: &'static str) -> Self {
        let mut member = Self { roles, folder: TestFolder::create(), process: None };
        let mut write = cluster.command_in(member.folder.path());
        write.arg("--secrets-file").arg(cluster.secrets_file());
        write.args(["--roles", roles, "config", "secrets"]).arg(member.secrets_file());
        // The sync and the upkeep need none.
        if member.needs_secrets() {
            assert!(write.status().await.unwrap().success());
        }
        member.restart(cluster).await;
        member
    }

    fn needs_secrets(&self) -> bool {
        self.roles != "sync,upkeep"
    }

    fn is_api(&self) -> bool {
        self.roles == "api"
    }

    fn secrets_file(&self) -> PathBuf {
        self.folder.path().join("secrets.json")
    }

    async fn restart(&mut self, cluster: &Cluster) {
        let mut command = cluster.command_in(self.folder.path());
        command.arg("--secrets-file").arg(self.secrets_file());
        command.args([
            "--roles",
            self.roles,
            "--webhook-targets",
            "local",
            "serve",
            "--listen",
            "127.0.0.1:0",
        ]);
        command.env("RUST_LOG", "error");
        let folder = self.folder.path();
        self.process = Some(match self.is_api() {
            true => Process::start(command, folder).await,
            false => Process::start_private(command, folder).await,
        });
    }

    fn url(&self) -> &str {
        &self.process.as_ref().unwrap().base_url
    }

    async fn kill(&mut self) {
        self.process.take().unwrap().kill().await;
    }
}

/// Returns the events of ends of trades.
async fn events_of_ends(store: &Store) -> BTreeSet<String> {
    let events: Result<Vec<String>, StoreError> = store
        .read((), |tx, ()| {
            const SQL: &str = "SELECT id FROM events WHERE kind IN ('trade.completed', 'trade.failed')";
            Box::pin(tx.list(SQL, &[], |row| row.only()))
        })
        .await;
    events.unwrap().into_iter().collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn four_processes_with_their_own_secrets_carry_trades_to_their_webhooks_whichever_is_killed() {
    let Some(cluster) = Cluster::prepare().await else { return };
    let (receiver, parts) = (Receiver::start().await, cluster.parts().await);
    let store = &parts.ctx.store;
    point_keys_at(store, &receiver).await;
    let mut members = Vec::new();
    for roles in ["executor", "sync,upkeep", "dispatcher", "api"] {
        members.push(Member::start(&cluster, roles).await);
    }
    let held = |member: &Member| Secrets::load(&member.secrets_file()).unwrap();
    assert!(!members[1].secrets_file().exists());
    assert!(held(&members[0]).key_pepper.is_none() && held(&members[0]).sealing_key.is_none());
    assert!(held(&members[2]).key_pepper.is_none() && held(&members[2]).executors.is_empty());
    assert!(held(&members[3]).executors.is_empty() && held(&members[3]).roles.relayer.is_none());

    let clients = Clients::start(cluster.traders[..2].to_vec());
    clients.send_to(&[members[3].url()]);
    clients.trade_more(2).await;
    for index in 0..members.len() {
        members[index].kill().await;
        // Without the others, the API goes on accepting trades.
        if !members[index].is_api() {
            clients.trade_more(2).await;
        }
        members[index].restart(&cluster).await;
        clients.send_to(&[members[3].url()]);
        clients.trade_more(2).await;
    }
    let acknowledged = clients.finish_after(20).await;
    oracle::settled(store).await;
    delivered(store).await;
    oracle::check(store, &parts.ctx.chain, &acknowledged).await;
    let received: BTreeSet<String> =
        receiver.came().into_iter().filter(|came| came.answered).map(|came| came.event).collect();
    let ends = events_of_ends(store).await;
    assert!(ends.len() >= acknowledged.len() && ends.is_subset(&received), "a webhook is missing");
}

/// Returns the error of a start that must fail.
async fn refusal(mut command: tokio::process::Command) -> String {
    let output = command.stderr(Stdio::piped()).output().await.unwrap();
    assert!(!output.status.success());
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[tokio::test(flavor = "multi_thread")]
async fn roles_that_cannot_work_are_refused_at_the_start() {
    let folder = TestFolder::create();
    let mut embedded = foretell(folder.path());
    embedded.args(["serve", "--roles", "api,sync"]);
    let error = refusal(embedded).await;
    assert!(error.contains("without rpc-url, the chain is embedded in one process"), "{error}");
    let mut sqlite = foretell(folder.path());
    sqlite.args(["serve", "--roles", "executor", "--rpc-url", "http://127.0.0.1:1"]);
    let error = refusal(sqlite).await;
    assert!(error.contains("SQLite is the database of one process"), "{error}");
    let mut unknown = foretell(folder.path());
    unknown.args(["serve", "--roles", "signer"]);
    let error = refusal(unknown).await;
    assert!(error.contains("api, executor, sync, dispatcher, upkeep"), "{error}");
    let unprepared = |roles: &str| {
        let mut command = foretell(folder.path());
        command.args(["--database-url", "postgres://127.0.0.1:1/none", "--rpc-url", "http://127.0.0.1:1"]);
        command.arg("--secrets-file").arg(folder.path().join("secrets.json"));
        command.args(["serve", "--roles", roles]);
        command
    };
    let error = refusal(unprepared("api")).await;
    assert!(error.contains("secrets.json: No such file"), "{error}");
    std::fs::write(
        folder.path().join("secrets.json"),
        format!("{{\"sealingKey\": \"{}\"}}", "07".repeat(32)),
    )
    .unwrap();
    let error = refusal(unprepared("api")).await;
    assert!(error.contains("the secret keyPepper is missing"), "{error}");
}
