//! Links for sharing.

use http_testkit::Answer;
use http_testkit::public_scene::{Scene, ok};

/// Returns the response with a name in place of the id, for snapshots.
fn with_placeholder(answer: &Answer, id: &str) -> String {
    let text = serde_json::to_string_pretty(&answer.json()).unwrap();
    text.replace(id, "<id>")
}

#[tokio::test]
async fn markets_and_threads_have_share_links() {
    let scene = Scene::new().await;
    let market = scene.get(&format!("/api/markets/{}/social-link", scene.rain.id)).await;
    assert_eq!(ok(&market)["socialLink"]["url"], format!("https://foretell.test/markets/{}", scene.rain.id));
    let card = ok(&market)["socialLink"]["image"].as_str().unwrap().to_owned();
    let shown_market = with_placeholder(&market, &scene.rain.id.to_string());
    insta::assert_snapshot!(shown_market.replace(card.rsplit('/').next().unwrap(), "<version>.png"));
    let card = scene.get(card.strip_prefix("https://foretell.test").unwrap()).await;
    assert_eq!((card.status.as_u16(), card.header("content-type")), (200, Some("image/png")));
    let thread = scene.get(&format!("/api/threads/{}/social-links", scene.thread)).await;
    assert_eq!(ok(&thread)["socialLinks"]["image"], "https://images.test/cover.png");
    insta::assert_snapshot!(with_placeholder(&thread, &scene.thread.to_string()));
}
