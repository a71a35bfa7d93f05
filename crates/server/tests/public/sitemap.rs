//! What search engines read.

use crate::scene::{Scene, assert_headers_of_every_answer};

#[tokio::test]
async fn the_sitemap_names_the_page_of_every_thread_and_market() {
    let scene = Scene::new().await;
    let answer = scene.get("/sitemap.xml").await;
    assert_eq!(answer.status.as_u16(), 200, "\n{answer}");
    assert_headers_of_every_answer(&answer);
    assert_eq!(answer.header("content-type"), Some("application/xml; charset=utf-8"));
    assert_eq!(answer.header("cache-control"), Some("public, max-age=3600"));
    let document = resvg::usvg::roxmltree::Document::parse(&answer.text).unwrap();
    let root = document.root_element();
    assert!(root.has_tag_name(("http://www.sitemaps.org/schemas/sitemap/0.9", "urlset")), "{answer}");
    let text = |name: &'static str| {
        let of = document.descendants().filter(move |node| node.tag_name().name() == name);
        of.map(|node| node.text().unwrap().to_owned()).collect::<Vec<_>>()
    };
    let expected: Vec<_> = std::iter::once(format!("https://foretell.test/threads/{}", scene.thread))
        .chain(
            [scene.rain, scene.cup, scene.alone].map(|it| format!("https://foretell.test/markets/{}", it.id)),
        )
        .collect();
    assert_eq!(text("loc"), expected);
    assert!(text("lastmod").iter().all(|at| at.ends_with('Z') && at.len() == 24), "{answer}");
    let markets = scene.get("/sitemaps/markets-0.xml").await;
    assert_eq!(markets.text.matches("<loc>").count(), 3, "{markets}");
    for nothing in ["/sitemaps/markets-1.xml", "/sitemaps/other-0.xml", "/sitemaps/markets-00.xml"] {
        scene.refused(nothing, 404, "NOT_FOUND").await;
    }
}

#[tokio::test]
async fn robots_are_told_where_the_sitemap_is() {
    let answer = Scene::new().await.get("/robots.txt").await;
    assert_eq!(answer.header("content-type"), Some("text/plain; charset=utf-8"), "\n{answer}");
    assert!(answer.text.contains("\nSitemap: https://foretell.test/sitemap.xml\n"), "{answer}");
}
