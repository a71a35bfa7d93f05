//! Events of every status: they are listed, and each can be sent again.

use domain::webhook::DeliveryStatus;
use serde_json::{Value, json};
use testkit::Reply;

use crate::scene::{Scene, ids, rows, text};

const EVENTS: &str = "/v1/webhooks/events";

#[tokio::test]
async fn events_of_every_status_are_listed_and_can_be_redelivered() {
    let scene = Scene::new().await;
    let receiver = scene.app.receiver().await;
    scene.settled(scene.client.buy(scene.market, 0, "25")).await;
    let url = Some(receiver.url.clone());
    app::webhooks::set_webhook_url(&scene.app.ctx, scene.key.caller.key.id, url).await.unwrap();
    let mut made = Vec::new();
    for _ in 0..4 {
        let test = scene.client.call("POST", "/v1/webhooks/test").await.ok();
        made.push(text(&test["event"]["id"]).to_owned());
    }
    receiver.next([Reply::Status(400), Reply::Status(204), Reply::Status(500)]);
    scene.app.workers.dispatch(&scene.app.ctx).await;
    let first: Vec<_> = receiver.take();
    let [failed, delivered, retrying, pending] = <[String; 4]>::try_from(made).unwrap();

    let mut by_status = Vec::new();
    for status in DeliveryStatus::ALL {
        let listed = scene.client.get(&format!("{EVENTS}?status={status}")).await.ok();
        let [event] = <[Value; 1]>::try_from(rows(&listed)).unwrap();
        assert_eq!(event["status"], status.as_str());
        by_status.push((status.as_str(), text(&event["id"]).to_owned(), event["delivery"].clone()));
    }
    let of = |status: &str| by_status.iter().find(|(found, ..)| *found == status).unwrap();
    let summary = |status: &str| {
        let delivery = &of(status).2;
        let has = |member: &str| !delivery[member].is_null();
        json!([
            delivery["attempts"],
            delivery["lastStatusCode"],
            delivery["lastFailureCode"],
            has("lastAttemptedAt"),
            has("lastDeliveredAt"),
            has("terminalFailureAt")
        ])
    };
    assert_eq!(
        [&of("failed").1, &of("delivered").1, &of("retrying").1, &of("pending").1],
        [&failed, &delivered, &retrying, &pending]
    );
    assert_eq!(summary("none"), json!([0, null, null, false, false, false]));
    assert_eq!(summary("pending"), json!([0, null, null, false, false, false]));
    assert_eq!(summary("failed"), json!([1, 400, "HTTP_4XX", true, false, true]));
    assert_eq!(summary("delivered"), json!([1, 204, null, true, true, false]));
    assert_eq!(summary("retrying"), json!([1, 500, "HTTP_5XX", true, false, false]));

    let none = of("none").1.clone();
    let again = [&none, &failed, &delivered, &retrying, &pending];
    for id in again {
        let answer = scene.client.call("POST", &format!("{EVENTS}/{id}/redeliver")).await.ok();
        assert_eq!(answer["event"]["id"], id.as_str());
    }
    scene.app.clock.advance(6_000);
    scene.app.workers.dispatch(&scene.app.ctx).await;
    let came = receiver.take();
    let order: Vec<_> = came.iter().map(testkit::Delivered::id).collect();
    let wanted: Vec<_> = [&retrying, &pending].into_iter().chain(again).cloned().collect();
    assert_eq!(order, wanted, "replays stand behind what was queued");
    for before in &first {
        let after = came.iter().rev().find(|after| after.id() == before.id()).unwrap();
        assert_eq!(after.body, before.body, "the same event to the byte");
    }
    assert_eq!(ids(&scene.client.get(&format!("{EVENTS}?status=delivered")).await.ok()).len(), 5);
}
