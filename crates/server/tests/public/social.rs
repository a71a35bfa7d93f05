//! Links for sharing.

use crate::scene::{Scene, ok};

#[tokio::test]
async fn a_market_and_a_thread_have_addresses_that_share_them() {
    let scene = Scene::new().await;
    let market = scene.get(&format!("/api/markets/{}/social-link", scene.rain.id)).await;
    assert_eq!(ok(&market)["socialLink"]["url"], format!("https://foretell.test/markets/{}", scene.rain.id));
    insta::assert_snapshot!(market);
    let thread = scene.get(&format!("/api/threads/{}/social-links", scene.thread)).await;
    assert_eq!(ok(&thread)["socialLinks"]["image"], "https://images.test/cover.png");
    insta::assert_snapshot!(thread);
}
