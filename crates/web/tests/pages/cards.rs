//! Cards for link previews.

use http_testkit::Answer;
use http_testkit::public_scene::{Scene, assert_headers_of_every_answer, thread};

/// Returns the card's path from the page's metadata.
async fn card(scene: &Scene, page: &str) -> String {
    let answer = scene.get(page).await;
    let rest = answer.text.split_once("property=\"og:image\" content=\"https://foretell.test").unwrap().1;
    rest.split_once('"').unwrap().0.to_owned()
}

/// Returns the width and height of the image.
fn size(answer: &Answer) -> (u32, u32) {
    assert_eq!(answer.status.as_u16(), 200, "\n{answer}");
    assert_headers_of_every_answer(answer);
    assert_eq!(answer.header("content-type"), Some("image/png"));
    assert_eq!(answer.header("cache-control"), Some("public, max-age=31536000, immutable"));
    let png = resvg::tiny_skia::Pixmap::decode_png(&answer.bytes).unwrap();
    // Antialiased text has many colors. A card without fonts would have only a few.
    let colours: std::collections::HashSet<_> =
        png.pixels().iter().map(|it| (it.red(), it.green(), it.blue())).collect();
    assert!(colours.len() > 100, "{} colours", colours.len());
    (png.width(), png.height())
}

#[tokio::test]
async fn a_card_is_an_immutable_image_of_one_state() {
    let scene = Scene::new().await;
    for page in [
        format!("/embed/markets/{}", scene.rain.id),
        format!("/embed/markets/{}", scene.cup.id),
        format!("/embed/threads/{}", scene.thread),
    ] {
        let path = card(&scene, &page).await;
        let answer = scene.get(&path).await;
        assert_eq!(size(&answer), (1_200, 630), "{path}");
        let again = scene.get(&path).await;
        assert!(answer.bytes == again.bytes && answer.header("etag") == again.header("etag"), "{path}");
        let known = scene.client.get(&path).header("if-none-match", answer.header("etag").unwrap()).await;
        assert_eq!((known.status.as_u16(), known.bytes.len()), (304, 0), "{path}");
        assert_eq!(known.header("cache-control"), answer.header("cache-control"));
    }
}

#[tokio::test]
async fn a_new_price_is_a_new_card_and_the_old_url_redirects_to_it() {
    let scene = Scene::new().await;
    for page in [format!("/embed/markets/{}", scene.rain.id), format!("/embed/threads/{}", scene.thread)] {
        let old = card(&scene, &page).await;
        let before = scene.get(&old).await;
        size(&before);
        scene.app.stranger_buys(scene.rain, 0, "300").await;
        scene.app.run_workers().await;
        scene.app.clock.advance(250);
        let new = card(&scene, &page).await;
        assert_ne!(old, new);
        let moved = scene.get(&old).await;
        assert_eq!(moved.status.as_u16(), 302, "\n{moved}");
        assert_eq!(moved.header("location"), new.rsplit('/').next());
        assert_eq!(moved.header("cache-control"), Some("public, max-age=5, stale-while-revalidate=600"));
        let after = scene.get(&new).await;
        size(&after);
        assert!(before.bytes != after.bytes, "{page}");
    }
}

#[tokio::test]
async fn markets_that_have_ended_have_cards() {
    let scene = Scene::new().await;
    scene.app.resolve(scene.rain, 1).await;
    scene.app.cancel(scene.cup).await;
    scene.app.advance_ms(1_000).await;
    scene.app.run_workers().await;
    for market in [scene.rain, scene.cup] {
        let path = card(&scene, &format!("/embed/markets/{}", market.id)).await;
        assert_eq!(size(&scene.get(&path).await), (1_200, 630));
    }
}

#[tokio::test]
async fn a_card_of_an_unknown_page_is_a_404() {
    let scene = Scene::new().await;
    scene.refused("/cards/markets/x/1.png", 404, "MARKET_NOT_FOUND").await;
    scene.refused("/cards/threads/x/1.png", 404, "THREAD_NOT_FOUND").await;
    scene.refused(&format!("/cards/markets/{}/1.gif", scene.rain.id), 404, "NOT_FOUND").await;
}

#[tokio::test]
async fn text_without_glyphs_and_endless_words_have_cards() {
    let scene = Scene::new().await;
    let eight = ["🏆 Red & <Co>", "b", "c", "d", "e", "f", "g", "h"];
    for question in ["هل ستمطر غدا؟".to_owned(), "Long words ".repeat(45), "<&>\"'".to_owned()] {
        let market = scene.app.market_with(&eight, |new| new.question = question.clone()).await;
        let path = card(&scene, &format!("/embed/markets/{}", market.id)).await;
        assert_eq!(size(&scene.get(&path).await), (1_200, 630), "{question}");
    }
    let empty = thread(&scene.app, |thread| thread.title = "האם".to_owned()).await;
    let path = card(&scene, &format!("/embed/threads/{empty}")).await;
    size(&scene.get(&path).await);
}
