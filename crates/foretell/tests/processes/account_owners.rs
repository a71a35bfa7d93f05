//! Account owners are managed by `foretell admin` next to a running service, while their keys are
//! elsewhere.

use chain::Signer;
use serde_json::{Value, json};

use crate::service::Service;

/// Runs a command that prints a batch to sign, signs it, and runs the command again with the
/// signature.
async fn signed(service: &Service, command: &[&str], signer: &Signer) -> Value {
    let prepared = service.admin(command).await;
    let sign = &prepared["sign"];
    let digest = sign["digest"].as_str().unwrap_or_else(|| panic!("nothing to sign: {prepared}"));
    let signature = signer.sign_digest(digest.parse().unwrap()).unwrap().to_string();
    let deadline = sign["deadline"].to_string();
    service.admin(&[command, &["--signature", &signature, "--deadline", &deadline]].concat()).await
}

async fn owners(service: &Service, user: &str) -> Vec<Value> {
    let listed = service.admin(&["account", "owners", "list", user]).await;
    listed.as_array().unwrap().iter().map(|owner| owner["owner"].clone()).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn an_owner_is_replaced_through_the_admin_tool() {
    let mut service = Service::on_sqlite().await;
    let demonstration = service.demonstration().await;
    assert_eq!(demonstration["users"][0]["owners"].as_array().unwrap().len(), 2, "{demonstration}");
    service.start().await;
    let (first, second) = (Signer::random([21; 32]).unwrap(), Signer::random([22; 32]).unwrap());
    let (first_hex, second_hex) = (first.owner().to_string(), second.owner().to_string());
    let made = service.admin(&["user", "create", "--name", "dora", "--owner-eoa", &first_hex]).await;
    let user = made["id"].as_str().unwrap().to_owned();
    assert_eq!(owners(&service, &user).await, [json!(first_hex)], "known before the account exists");
    let provisioned = signed(&service, &["account", "provision", &user], &first).await;
    assert_eq!(provisioned["provisioned"], true, "{provisioned}");

    let add = ["account", "owners", "add", &user, "--owner-eoa", &second_hex];
    let refused = signed(&service, &add, &second).await;
    assert_eq!(refused["error"]["code"], "VALIDATION_FAILED", "only a present owner can add one: {refused}");
    let added = signed(&service, &add, &first).await;
    assert_eq!(
        (&added["added"], &added["owners"]),
        (&json!(true), &json!([first_hex, second_hex])),
        "{added}"
    );

    // The first device is lost, so the second one removes it.
    let remove = ["account", "owners", "remove", &user, "--owner", &first_hex];
    let removed = signed(&service, &remove, &second).await;
    assert_eq!((&removed["removed"], &removed["owners"]), (&json!(true), &json!([second_hex])), "{removed}");
    assert_eq!(owners(&service, &user).await, [json!(second_hex)]);
    let last = service.admin(&["account", "owners", "remove", &user, "--owner", &second_hex]).await;
    assert_eq!(last["error"]["code"], "VALIDATION_FAILED", "{last}");

    // The account continues under its new owner at the same address.
    let key = service.admin(&["key", "issue", "--user", &user, "--tier", "mm", "--name", "desk"]).await;
    assert_eq!(key["delegation"]["enabled"], false, "{key}");
    let enable = ["delegation", "enable", "--user", &user];
    let refused = signed(&service, &enable, &first).await;
    assert_eq!(refused["error"]["code"], "VALIDATION_FAILED", "{refused}");
    let enabled = signed(&service, &enable, &second).await;
    assert_eq!((&enabled["enabled"], &enabled["address"]), (&json!(true), &made["address"]), "{enabled}");
    let shown = service.admin(&["user", "show", &user]).await;
    assert_eq!(
        (&shown["owners"], &shown["firstOwner"]),
        (&json!([second_hex]), &json!(first_hex)),
        "{shown}"
    );

    let log = service.admin(&["audit", "list", "--action", "account.owner"]).await;
    let log = log.as_array().unwrap();
    let act_of = |entry: &Value| (entry["action"].clone(), entry["phase"].clone());
    let done: Vec<_> = log.iter().filter(|entry| entry["phase"] == "done").map(act_of).collect();
    let expected = ["account.owner.remove", "account.owner.add"].map(|action| (json!(action), json!("done")));
    assert_eq!(done, expected, "{log:?}");
    service.kill().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_owner_with_a_key_in_the_data_folder_signs_at_once() {
    let mut service = Service::on_sqlite().await;
    let demonstration = service.demonstration().await;
    service.start().await;
    let user = demonstration["users"][1]["userId"].as_str().unwrap();
    let first = owners(&service, user).await;
    let added = service.admin(&["account", "owners", "add", user, "--generate-owner"]).await;
    assert_eq!((&added["added"], &added["ownerKeyStored"]), (&json!(true), &json!(true)), "{added}");
    let removed =
        service.admin(&["account", "owners", "remove", user, "--owner", first[0].as_str().unwrap()]).await;
    assert_eq!(removed["removed"], true, "{removed}");
    let key = service.admin(&["key", "issue", "--user", user, "--tier", "mm", "--name", "desk"]).await;
    assert_eq!(key["delegation"]["enabled"], true, "the generated owner signs: {key}");
    service.kill().await;
}
