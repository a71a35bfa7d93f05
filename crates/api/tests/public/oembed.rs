//! `GET /api/oembed`.

use http_testkit::public_scene::{Scene, ok};
use serde_json::Value;

async fn oembed(scene: &Scene, query: &str) -> Value {
    ok(&scene.get(&format!("/api/oembed?{query}")).await)
}

#[tokio::test]
async fn market_and_thread_pages_can_be_embedded_by_url() {
    let scene = Scene::new().await;
    let (market, thread) = (scene.rain.id.to_string(), scene.thread.to_string());
    for (path, id) in [("markets", &market), ("threads", &thread)] {
        let of_page =
            oembed(&scene, &format!("url=https%3A%2F%2Fforetell.test%2F{path}%2F{id}&format=json")).await;
        let of_embed = oembed(&scene, &format!("url=https://foretell.test/embed/{path}/{id}")).await;
        assert_eq!(of_page["html"], of_embed["html"]);
        let text = serde_json::to_string_pretty(&of_page).unwrap().replace(id.as_str(), "<id>");
        let card = of_page["thumbnail_url"].as_str().unwrap();
        assert_eq!(scene.get(card.trim_start_matches("https://foretell.test")).await.status.as_u16(), 200);
        let version = card.rsplit('/').next().unwrap();
        insta::assert_snapshot!(path, text.replace(version, "<version>.png"));
    }
    let dark = oembed(&scene, &format!("url=https://foretell.test/embed/markets/{market}?theme=dark")).await;
    assert!(dark["html"].as_str().unwrap().contains(&format!("/embed/markets/{market}?theme=dark\"")));
}

#[tokio::test]
async fn a_page_links_to_its_oembed_document() {
    let scene = Scene::new().await;
    let page = scene.get(&format!("/embed/markets/{}", scene.rain.id)).await;
    let link =
        page.text.split_once("type=\"application/json+oembed\" href=\"https://foretell.test").unwrap().1;
    let link = link.split_once('"').unwrap().0.replace("&#38;", "&").replace("&amp;", "&");
    assert_eq!(scene.ok(&link).await["title"], "Will it rain?");
}

#[tokio::test]
async fn a_frame_and_its_thumbnail_fit_the_requested_size() {
    let scene = Scene::new().await;
    let url = format!("url=https://foretell.test/markets/{}", scene.rain.id);
    let narrow = oembed(&scene, &format!("{url}&maxwidth=400&maxheight=200")).await;
    assert_eq!((narrow["width"].as_u64(), narrow["height"].as_u64()), (Some(400), Some(200)));
    assert_eq!(narrow.get("thumbnail_url"), None);
    let wide = oembed(&scene, &format!("{url}&maxwidth=2000&maxheight=2000")).await;
    assert_eq!((wide["width"].as_u64(), wide["thumbnail_width"].as_u64()), (Some(600), Some(1_200)));
}

#[tokio::test]
async fn a_frame_is_higher_for_more_rows_and_for_narrower_pages() {
    let scene = Scene::new().await;
    let height = async |id: domain::ids::MarketId, query: &str| {
        let answer = oembed(&scene, &format!("url=https://foretell.test/markets/{id}{query}")).await;
        answer["height"].as_u64().unwrap()
    };
    // Two rows of 21 + 9 pixels with a gap of 10, and the parts of every page.
    assert_eq!(height(scene.rain.id, "").await, 410);
    // One more row and a description.
    assert_eq!(height(scene.cup.id, "").await, 410 + 40 + 30);
    assert!(height(scene.cup.id, "&maxwidth=200").await > 480);
}

#[tokio::test]
async fn a_url_that_cannot_be_embedded_is_rejected() {
    let scene = Scene::new().await;
    let missing = scene.refused("/api/oembed", 400, "INVALID_REQUEST").await;
    assert_eq!(missing["message"], "url is required: the URL of a market's or a thread's page.");
    let known = format!("url=https://foretell.test/markets/{}", scene.rain.id);
    for wrong in ["maxwidth=0", "maxwidth=x", "maxheight=-1"] {
        scene.refused(&format!("/api/oembed?{known}&{wrong}"), 400, "INVALID_REQUEST").await;
    }
    for (query, status, code) in [
        (format!("{known}&format=xml"), 501, "FORMAT_NOT_SUPPORTED"),
        ("url=https://other.test/markets/1".to_owned(), 404, "NOT_FOUND"),
        ("url=https://foretell.test/markets/1".to_owned(), 404, "MARKET_NOT_FOUND"),
        ("url=https://foretell.test/threads/1".to_owned(), 404, "THREAD_NOT_FOUND"),
    ] {
        scene.refused(&format!("/api/oembed?{query}"), status, code).await;
    }
}
