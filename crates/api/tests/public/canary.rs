//! No public response contains private data. Private texts are planted wherever the service accepts
//! any, and every response is searched for them.

use app::keys::IssueKey;
use domain::key::Tier;
use http_testkit::public_scene::Scene;
use http_testkit::{ServeHttp, public_routes};
use serde_json::json;
use testkit::key_of;

const CANARY: &str = "canary";
/// Domain of the planted e-mail addresses.
const MAIL: &str = "mail.test";

#[tokio::test]
async fn no_public_answer_contains_private_data() {
    let scene = Scene::new().await;
    // No column stores an e-mail address, but users may write one into a name.
    let user = scene.app.user("Ada <canary-user@mail.test>").funded("1000").await;
    let wanted = IssueKey {
        name: "canary-key (canary-key@mail.test)".to_owned(),
        webhook_url: Some("https://canary.test/hook".to_owned()),
        ..key_of(&user, Tier::Mm)
    };
    let key = scene.app.issue(wanted).await.unwrap();
    scene.app.enable(&user, &key).await;
    let http = scene.app.http();
    let client = http.with(&key);
    let created = client
        .buy(scene.rain, 0, "10")
        .with("clientRequestId", "canary-request")
        .with("metadata", json!({ "canary-name": "canary-value" }))
        .idempotent("canary-idempotency")
        .await
        .created();
    scene.app.run_workers().await;
    let trade =
        client.get(&format!("/v1/trades/{}", created["id"].as_str().unwrap())).await.ok()["trade"].take();
    assert_eq!(trade["status"], "completed");
    let (key_id, hash) = (key.caller.key.id.to_string(), trade["txHash"].as_str().unwrap());
    let private = [
        CANARY,
        MAIL,
        key_id.as_str(),
        &user.id.to_string(),
        trade["id"].as_str().unwrap(),
        trade["correlationId"].as_str().unwrap(),
        &key.plaintext,
    ];
    let mut asked = 0;
    // A stream never ends: read its snapshot and the trade.
    let mut stream = scene
        .client
        .get(&format!("/api/markets/{}/stream", scene.rain.id))
        .header("last-event-id", "000000000000-000000")
        .open()
        .await;
    loop {
        let sent = stream.next().await.unwrap();
        let shown = format!("{sent:?}");
        assert!(private.iter().all(|text| !shown.contains(text)), "{shown}");
        if shown.contains(hash) {
            break;
        }
    }
    drop(stream);
    let routes = public_routes();
    for route in routes.filter(|route| !route.path.ends_with("/stream")) {
        let path = if route.path == "/sitemaps/{id}" {
            "/sitemaps/markets-0.xml".to_owned()
        } else {
            scene.path(route.path).replace("{hash}", hash).replace("{file}", "0.png")
        };
        for query in ["", "?includeMarkets=true&status=all&q=canary&outcomeIndex=0&action=buy&amount=1"] {
            let answer = scene.get(&format!("{path}{query}")).await;
            for text in private {
                assert!(!answer.text.contains(text), "{path}{query} tells {text}:\n{answer}");
                assert!(
                    !format!("{:?}", answer.headers).contains(text),
                    "{path}{query} tells {text}:\n{answer}"
                );
            }
            asked += usize::from(answer.status.is_success());
        }
    }
    assert!(asked > 25, "only {asked} answers had content");
}
