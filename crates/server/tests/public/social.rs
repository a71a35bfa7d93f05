//! Links for sharing.

use testkit::http::Answer;

use crate::scene::{Scene, ok};

/// The answer, in which the id has a name where it stands within another text too.
fn told(answer: &Answer, id: &str) -> String {
    let text = serde_json::to_string_pretty(&answer.json()).unwrap();
    text.replace(id, "<id>")
}

#[tokio::test]
async fn a_market_and_a_thread_have_addresses_that_share_them() {
    let scene = Scene::new().await;
    let market = scene.get(&format!("/api/markets/{}/social-link", scene.rain.id)).await;
    assert_eq!(ok(&market)["socialLink"]["url"], format!("https://foretell.test/markets/{}", scene.rain.id));
    insta::assert_snapshot!(told(&market, &scene.rain.id.to_string()));
    let thread = scene.get(&format!("/api/threads/{}/social-links", scene.thread)).await;
    assert_eq!(ok(&thread)["socialLinks"]["image"], "https://images.test/cover.png");
    insta::assert_snapshot!(told(&thread, &scene.thread.to_string()));
}
