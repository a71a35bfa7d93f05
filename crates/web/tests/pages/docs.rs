//! The documentation: its pages, their Markdown, and the lists for language models.

use std::collections::BTreeSet;

use http_testkit::Answer;
use http_testkit::public_scene::Scene;

const BASE: &str = "https://foretell.test";
const MARKDOWN: &str = "text/markdown; charset=utf-8";

/// Returns the targets of a document's links.
fn links_of(text: &str) -> Vec<String> {
    text.split("](").skip(1).filter_map(|rest| rest.split(')').next()).map(str::to_owned).collect()
}

fn assert_kind(answer: &Answer, kind: &str) {
    assert_eq!(answer.status.as_u16(), 200, "{}", answer.path);
    assert_eq!(answer.header("content-type"), Some(kind), "{}", answer.path);
}

/// The pages that `llms.txt` lists, as paths of their Markdown.
async fn guides_of(scene: &Scene) -> Vec<String> {
    let index = scene.get("/llms.txt").await;
    let paths = links_of(&index.text).into_iter().map(|link| link.replacen(BASE, "", 1));
    paths.filter(|path| path.ends_with(".md")).collect()
}

#[tokio::test]
async fn every_link_of_llms_txt_leads_to_text() {
    let scene = Scene::new().await;
    let index = scene.get("/llms.txt").await;
    assert_kind(&index, "text/plain; charset=utf-8");
    assert!(index.text.starts_with("# Foretell\n\n> "), "{}", index.text);
    let links = links_of(&index.text);
    assert!(links.len() > 20, "{links:?}");
    for link in links {
        let path = link.strip_prefix(BASE).unwrap_or_else(|| panic!("{link} is of another site"));
        let answer = scene.get(path).await;
        assert_eq!(answer.status.as_u16(), 200, "{path}");
        let kind = answer.header("content-type").unwrap();
        assert!(
            ["text/markdown", "text/plain", "application/json"].iter().any(|it| kind.starts_with(it)),
            "{kind}"
        );
    }
}

#[tokio::test]
async fn llms_full_txt_has_every_guide() {
    let scene = Scene::new().await;
    let full = scene.get("/llms-full.txt").await;
    assert_kind(&full, "text/plain; charset=utf-8");
    for path in guides_of(&scene).await {
        let page = scene.get(&path).await;
        if path.contains("api-errors") || path == "/docs.md" {
            continue;
        }
        assert!(full.text.contains(&format!("<!-- {BASE}{path} -->\n\n{}", page.text)), "{path}");
    }
}

#[tokio::test]
async fn every_guide_is_markdown_by_its_suffix_and_by_accept() {
    let scene = Scene::new().await;
    let guides = guides_of(&scene).await;
    assert!(guides.len() > 20, "{guides:?}");
    for path in guides {
        let plain = path.strip_suffix(".md").unwrap();
        let by_suffix = scene.get(&path).await;
        assert_kind(&by_suffix, MARKDOWN);
        assert!(by_suffix.text.starts_with("# "), "{path}");
        let by_accept = scene.client.get(plain).header("accept", "text/markdown, */*;q=0.1").await;
        assert_kind(&by_accept, MARKDOWN);
        assert_eq!(by_accept.text, by_suffix.text, "{path}");
        assert_kind(&scene.client.get(plain).header("accept", "text/html").await, "text/html; charset=utf-8");
        assert_kind(&scene.client.get(plain).header("accept", "image/png").await, "text/html; charset=utf-8");
    }
}

#[tokio::test]
async fn both_forms_of_a_page_vary_by_accept_and_link_to_each_other() {
    let scene = Scene::new().await;
    for path in ["/docs", "/docs/trading-api", "/docs/api/trades"] {
        let html = scene.get(path).await;
        let markdown = scene.get(&format!("{path}.md")).await;
        for answer in [&html, &markdown] {
            let vary = answer.header("vary").unwrap().to_ascii_lowercase();
            assert!(vary.split(", ").any(|name| name == "accept"), "{vary}");
            assert_eq!(answer.header("cache-control"), Some("private, no-cache"), "{path}");
        }
        let alternate = format!("<{BASE}{path}.md>; rel=\"alternate\"; type=\"text/markdown\"");
        assert_eq!(html.header("link"), Some(alternate.as_str()));
        let canonical = format!("<{BASE}{path}>; rel=\"canonical\"");
        assert_eq!(markdown.header("link"), Some(canonical.as_str()));
    }
}

#[tokio::test]
async fn documents_have_etags_and_answer_head() {
    let scene = Scene::new().await;
    for path in ["/llms.txt", "/llms-full.txt", "/docs.md", "/docs/api/trades.md", "/docs/api-errors.md"] {
        let whole = scene.get(path).await;
        let tag = whole.header("etag").unwrap_or_else(|| panic!("{path} has no tag"));
        let again = scene.client.get(path).header("if-none-match", tag).await;
        assert_eq!(again.status.as_u16(), 304, "{path}");
        let head = scene.client.call("HEAD", path).await;
        assert_eq!((head.status.as_u16(), head.bytes.len()), (200, 0), "{path}");
        assert_eq!(head.header("etag"), Some(tag), "{path}");
        assert_eq!(head.header("content-type"), whole.header("content-type"), "{path}");
    }
    let tag = scene.get("/docs/api/trades.md").await.header("etag").unwrap().to_owned();
    let html = scene.client.get("/docs/api/trades").header("if-none-match", &tag).await;
    assert_eq!(html.status.as_u16(), 200, "the forms of a page share no tag");
}

#[tokio::test]
async fn every_link_of_the_markdown_leads_to_markdown() {
    let scene = Scene::new().await;
    let mut seen = BTreeSet::new();
    for path in guides_of(&scene).await {
        if path.contains("api-errors") {
            continue;
        }
        for link in links_of(&scene.get(&path).await.text) {
            let Some(target) = link.split('#').next().filter(|target| target.starts_with('/')) else {
                assert!(link.starts_with('#') || link.starts_with("https://"), "{path} -> {link}");
                continue;
            };
            if seen.insert(target.to_owned()) && target.starts_with("/docs") {
                assert_kind(&scene.get(target).await, MARKDOWN);
            }
        }
    }
    assert!(seen.len() > 40, "{seen:?}");
}

#[tokio::test]
async fn a_page_that_does_not_exist_has_no_markdown() {
    let scene = Scene::new().await;
    for path in ["/docs/nonsense.md", "/docs/api/nonsense.md", "/docs/trading-api.md.md", "/docs/.md"] {
        assert_eq!(scene.get(path).await.status.as_u16(), 404, "{path}");
    }
}

#[tokio::test]
async fn crawlers_may_read_the_documentation() {
    let robots = Scene::new().await.get("/robots.txt").await;
    for line in ["Allow: /v1/openapi.json\n", "Allow: /api/openapi.json\n"] {
        assert!(robots.text.contains(line), "{robots}");
    }
    assert!(!robots.text.contains("/docs") && !robots.text.contains("llms"), "{robots}");
}
