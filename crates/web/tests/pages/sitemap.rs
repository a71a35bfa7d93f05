//! The sitemaps and `robots.txt`.

use std::collections::BTreeSet;

use http_testkit::Answer;
use http_testkit::public_scene::{Scene, assert_headers_of_every_answer};
use store::{Store, StoreError, params};

/// Returns the URLs of a file with this root element.
fn addresses(answer: &Answer, root: &'static str) -> Vec<String> {
    assert_eq!(answer.status.as_u16(), 200, "{}", answer.text.get(..500).unwrap_or(&answer.text));
    assert_eq!(answer.header("content-type"), Some("application/xml; charset=utf-8"));
    let document = resvg::usvg::roxmltree::Document::parse(&answer.text).unwrap();
    assert!(document.root_element().has_tag_name(("http://www.sitemaps.org/schemas/sitemap/0.9", root)));
    let of = document.descendants().filter(|node| node.tag_name().name() == "loc");
    of.map(|node| node.text().unwrap().to_owned()).collect()
}

/// Inserts threads with these numbers.
async fn add_threads(scene: &Scene, numbers: std::ops::Range<u32>) {
    const SQL: &str = "INSERT INTO threads (id, title, tags, created_at_ms, updated_at_ms)
        WITH RECURSIVE n (i) AS (SELECT CAST($1 AS BIGINT) UNION ALL SELECT i + 1 FROM n WHERE i + 1 < $2)
        SELECT '00000000-0000-7000-a000-00000' || CAST(1000000 + i AS TEXT), 'One of many', '[]', 1000, 1000 FROM n";
    let store = &scene.app.ctx.store;
    let added: Result<u64, StoreError> = store
        .write(numbers.clone(), |tx, numbers| {
            let (start, end) = (numbers.start, numbers.end);
            Box::pin(async move { tx.exec(SQL, &params![start, end]).await })
        })
        .await;
    assert_eq!(added.unwrap(), u64::try_from(numbers.len()).unwrap());
}

store::on_each_engine! {
    async fn a_large_sitemap_is_split_into_parts_with_an_index(store: Store) {
        let scene = Scene::on(store).await;
        // Together with the scene's thread and three markets, exactly 50,000 pages.
        add_threads(&scene, 0..49_996).await;
        let whole = addresses(&scene.get("/sitemap.xml").await, "urlset");
        assert_eq!(whole.len(), 50_000);
        add_threads(&scene, 49_996..50_001).await;
        let index = scene.get("/sitemap.xml").await;
        assert_headers_of_every_answer(&index);
        let parts = addresses(&index, "sitemapindex");
        let names = ["threads-0", "threads-1", "markets-0"];
        assert_eq!(parts, names.map(|name| format!("https://foretell.test/sitemaps/{name}.xml")));
        let mut listed = BTreeSet::new();
        for (part, number) in parts.iter().zip([50_000, 2, 3]) {
            let file = scene.get(part.trim_start_matches("https://foretell.test")).await;
            let pages = addresses(&file, "urlset");
            assert_eq!(pages.len(), number, "{part}");
            listed.extend(pages);
        }
        assert_eq!(listed.len(), 50_005, "no page is in two parts");
        assert!(whole.iter().all(|page| listed.contains(page)));
        scene.refused("/sitemaps/threads-2.xml", 404, "NOT_FOUND").await;
    }
}

#[tokio::test]
async fn the_sitemap_names_the_page_of_every_thread_and_market() {
    let scene = Scene::new().await;
    let answer = scene.get("/sitemap.xml").await;
    assert_headers_of_every_answer(&answer);
    assert_eq!(answer.header("cache-control"), Some("public, max-age=3600"));
    let expected: Vec<_> = std::iter::once(format!("https://foretell.test/threads/{}", scene.thread))
        .chain(
            [scene.rain, scene.cup, scene.alone].map(|it| format!("https://foretell.test/markets/{}", it.id)),
        )
        .collect();
    assert_eq!(addresses(&answer, "urlset"), expected);
    let changes = answer.text.split("<lastmod>").skip(1).map(|rest| rest.split('<').next().unwrap());
    assert!(changes.clone().all(|at| at.ends_with('Z') && at.len() == 24), "{answer}");
    assert_eq!(changes.count(), 4);
    let markets = scene.get("/sitemaps/markets-0.xml").await;
    assert_eq!(markets.text.matches("<loc>").count(), 3, "{markets}");
    for nothing in ["/sitemaps/markets-1.xml", "/sitemaps/other-0.xml", "/sitemaps/markets-00.xml"] {
        scene.refused(nothing, 404, "NOT_FOUND").await;
    }
}

#[tokio::test]
async fn robots_txt_names_the_sitemap() {
    let answer = Scene::new().await.get("/robots.txt").await;
    assert_eq!(answer.header("content-type"), Some("text/plain; charset=utf-8"), "\n{answer}");
    assert!(answer.text.contains("\nSitemap: https://foretell.test/sitemap.xml\n"), "{answer}");
}
