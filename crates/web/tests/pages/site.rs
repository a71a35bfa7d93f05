//! The pages of the web application.

use http_testkit::Answer;
use http_testkit::public_scene::Scene;

/// The scene's pages: one of each kind, with the address of one of the scene's traders.
async fn pages_of(scene: &Scene) -> Vec<String> {
    let market = scene.get(&format!("/markets/{}", scene.rain.id)).await;
    let mut pages: Vec<String> = [
        "/",
        "/markets",
        "/markets?status=any&sort=title&view=table",
        "/threads",
        "/leaderboard",
        "/leaderboard?timeframe=7d&sort=volume",
        "/search",
        "/search?q=rain",
        "/search?q=nothing+like+it",
        "/status",
    ]
    .map(str::to_owned)
    .into();
    pages.push(format!("/markets/{}", scene.rain.id));
    pages.push(format!("/markets/{}?range=all&scale=full", scene.cup.id));
    pages.push(format!("/markets/{}", scene.alone.id));
    pages.push(format!("/threads/{}", scene.thread));
    pages.push(format!("/organizations/{}", scene.organization));
    pages.push(format!("/partners/{}", scene.partner));
    pages.push(first_link(&market, "/traders/"));
    pages.push(first_link(&market, "/tx/"));
    pages
}

/// Returns the first link to a path with this beginning.
fn first_link(answer: &Answer, beginning: &str) -> String {
    let at = answer
        .text
        .find(&format!("href=\"{beginning}"))
        .unwrap_or_else(|| panic!("no {beginning}\n{answer}"));
    answer.text[at + 6..].split('"').next().unwrap().to_owned()
}

/// Returns the links of a page to paths of this site, without fragments.
fn links_of(answer: &Answer) -> Vec<String> {
    let parts =
        ["href=\"/", "src=\"/", "action=\"/"].into_iter().flat_map(|name| answer.text.split(name).skip(1));
    let links = parts.map(|part| format!("/{}", part.split(['"', '#']).next().unwrap()));
    links.map(|link| link.replace("&#38;", "&").replace("&amp;", "&")).collect()
}

fn html(answer: &Answer, status: u16) -> &str {
    assert_eq!(answer.status.as_u16(), status, "\n{answer}");
    assert_eq!(answer.header("content-type"), Some("text/html; charset=utf-8"), "\n{answer}");
    &answer.text
}

#[tokio::test]
async fn every_page_is_html_that_only_its_own_files_can_change() {
    let scene = Scene::new().await;
    for path in pages_of(&scene).await {
        let answer = scene.get(&path).await;
        let text = html(&answer, 200);
        let policy = answer.header("content-security-policy").unwrap();
        assert!(policy.starts_with("default-src 'none'; script-src 'self'; style-src 'self';"), "{policy}");
        assert!(
            policy.contains("frame-ancestors 'none'")
                && policy.contains("require-trusted-types-for 'script'")
        );
        assert_eq!(answer.header("cross-origin-opener-policy"), Some("same-origin"), "{path}");
        assert_eq!(answer.header("cross-origin-resource-policy"), Some("same-origin"), "{path}");
        assert_eq!(answer.header("referrer-policy"), Some("same-origin"), "{path}");
        assert_eq!(answer.header("x-content-type-options"), Some("nosniff"), "{path}");
        assert_eq!(answer.header("cache-control"), Some("private, no-cache"), "{path}");
        assert_eq!(answer.header("access-control-allow-origin"), None, "{path}");
        for forbidden in [" style=", "<style", " onclick=", "javascript:", "<script>"] {
            assert!(!text.contains(forbidden), "{path} contains {forbidden}");
        }
        assert_eq!(text.matches("<h1").count(), 1, "{path}");
        let ids: Vec<_> = text.split(" id=\"").skip(1).map(|part| part.split('"').next().unwrap()).collect();
        assert_eq!(ids.len(), ids.iter().collect::<std::collections::BTreeSet<_>>().len(), "{path}: {ids:?}");
    }
}

#[tokio::test]
async fn every_link_of_a_page_leads_to_a_page() {
    let scene = Scene::new().await;
    let mut seen = std::collections::BTreeSet::new();
    for path in pages_of(&scene).await {
        let page = scene.get(&path).await;
        for link in links_of(&page) {
            if link == "/preferences/theme" || !seen.insert(link.clone()) {
                continue;
            }
            let answer = scene.client.get(&link).await;
            assert_eq!(answer.status.as_u16(), 200, "{path} -> {link}");
        }
    }
    assert!(seen.len() > 40, "{seen:?}");
}

#[tokio::test]
async fn a_page_that_does_not_exist_says_so_and_how_to_go_on() {
    let scene = Scene::new().await;
    let unknown = uuid::Uuid::from_u128(7);
    for path in [
        format!("/markets/{unknown}"),
        "/markets/nonsense".to_owned(),
        format!("/threads/{unknown}"),
        format!("/organizations/{unknown}"),
        format!("/partners/{unknown}"),
        "/traders/0x0000000000000000000000000000000000000001".to_owned(),
        "/traders/nonsense".to_owned(),
        format!("/tx/0x{}", "0".repeat(64)),
    ] {
        let answer = scene.get(&path).await;
        let text = html(&answer, 404);
        assert!(text.contains("This page does not exist") && text.contains("href=\"/markets\""), "{path}");
        let request_id = answer.header("x-request-id").unwrap();
        assert!(text.contains(request_id), "{path}");
        assert!(answer.header("content-security-policy").is_some(), "{path}");
        assert_eq!(answer.header("cache-control"), Some("no-store"), "{path}");
    }
    let answer = scene.get("/markets?sort=colour").await;
    assert!(html(&answer, 400).contains("VALIDATION_FAILED"), "{answer}");
}

#[tokio::test]
async fn texts_of_the_catalog_are_escaped() {
    let scene = Scene::new().await;
    let hostile = "<script>alert(1)</script> \"'&";
    let market = scene
        .app
        .market_with(&["<b>Yes</b>", "No\" onload=\""], |new| {
            new.question = hostile.to_owned();
            new.description = Some("<img src=x onerror=alert(1)> *fine*".to_owned());
            new.category = Some("\"><script>".to_owned());
        })
        .await;
    for path in
        [format!("/markets/{}", market.id), "/markets".to_owned(), "/search?q=%3Cscript%3E".to_owned()]
    {
        let answer = scene.get(&path).await;
        let text = html(&answer, 200);
        for forbidden in ["<script>", "<img src=x", "<b>Yes", "No\" onload"] {
            assert!(!text.contains(forbidden), "{path} contains {forbidden}");
        }
        assert!(text.contains("&#60;script&#62;"), "{path} shows no escaped text");
        assert_eq!(text.matches("<script").count(), 1, "{path}");
    }
}

#[tokio::test]
async fn filters_and_sort_keys_are_in_the_address() {
    let scene = Scene::new().await;
    let of = async |path: &str| html(&scene.get(path).await, 200).to_owned();
    let all = of("/markets?sort=title").await;
    let places =
        ["And after that?", "Who wins the cup?", "Will it rain?"].map(|question| all.find(question).unwrap());
    assert!(places.is_sorted(), "{places:?}");
    let weather = of("/markets?category=weather").await;
    assert!(weather.contains("Will it rain?") && !weather.contains("And after that?"));
    assert!(weather.contains("name=\"category\" value=\"weather\""));
    // A form sends its empty fields too.
    let found = of("/markets?q=rain&category=&status=active").await;
    assert!(found.contains("1 market<") && found.contains("Will it rain?"), "{found}");
    assert!(of("/markets?status=resolved").await.contains("No market matches"));
}

#[tokio::test]
async fn a_trade_changes_the_prices_and_the_activity_of_the_page() {
    let scene = Scene::new().await;
    let path = format!("/markets/{}", scene.alone.id);
    let before = scene.get(&path).await;
    assert!(
        html(&before, 200).contains("No trades yet.") && before.text.contains(">50%</span><small>"),
        "{before}"
    );
    scene.app.stranger_buys(scene.alone, 0, "100").await;
    scene.app.run_workers().await;
    scene.app.advance_ms(1_000).await;
    let after = scene.get(&path).await;
    assert!(!after.text.contains("No trades yet.") && !after.text.contains(">50%</span><small>"), "{after}");
    assert!(
        after.text.contains("Bought <b dir=\"auto\">Yes</b>") && after.text.contains("$100 traded"),
        "{after}"
    );
    assert!(after.text.contains("1 trader<"), "{after}");
}

#[tokio::test]
async fn the_theme_is_stored_in_a_cookie_and_part_of_the_page() {
    let scene = Scene::new().await;
    let send = |body: &'static str| {
        let request = scene.client.call("POST", "/preferences/theme").header("sec-fetch-site", "same-origin");
        request.header("referer", "https://foretell.test/markets?q=a").body(body).send()
    };
    let answer = send("theme=dark").await;
    assert_eq!(answer.status.as_u16(), 303, "{answer}");
    assert_eq!(answer.header("location"), Some("/markets?q=a"));
    assert!(answer.header("set-cookie").unwrap().starts_with("theme=dark; Path=/; "), "{answer}");
    assert_eq!(send("theme=<script>").await.status.as_u16(), 400);
    let dark = scene.client.call("GET", "/").header("cookie", "theme=dark").send().await;
    let auto = scene.client.get("/").await;
    assert!(html(&dark, 200).contains("<html lang=\"en\" data-theme=\"dark\">"));
    assert!(html(&auto, 200).contains("<html lang=\"en\">"));
    assert_ne!(dark.header("etag"), auto.header("etag"));
}

#[tokio::test]
async fn a_write_from_another_site_and_a_page_under_another_host_are_rejected() {
    let scene = Scene::new().await;
    let post = |name: &'static str, value: &'static str| {
        scene.client.call("POST", "/preferences/theme").header(name, value).body("theme=dark").send()
    };
    for (name, value) in [("sec-fetch-site", "cross-site"), ("origin", "https://attacker.test")] {
        let answer = post(name, value).await;
        assert_eq!(answer.status.as_u16(), 403, "{answer}");
        assert_eq!(answer.header("set-cookie"), None);
    }
    let answer = scene.client.call("GET", "/markets?q=a").header("host", "attacker.test").send().await;
    assert_eq!(answer.status.as_u16(), 307, "{answer}");
    assert_eq!(answer.header("location"), Some("https://foretell.test/markets?q=a"));
}

#[tokio::test]
async fn assets_are_cached_forever_and_others_are_missing() {
    let scene = Scene::new().await;
    let page = scene.get("/").await;
    let style = links_of(&page).into_iter().find(|link| link.ends_with("/app.css")).unwrap();
    let answer = scene.get(&style).await;
    assert_eq!(answer.header("cache-control"), Some("public, max-age=31536000, immutable"), "{answer}");
    assert_eq!(answer.header("content-type"), Some("text/css; charset=utf-8"));
    // A page of another version may ask this process.
    let other = scene.get("/assets/0000000000000000/app.css").await;
    assert_eq!((other.status.as_u16(), other.header("cache-control")), (200, Some("no-store")));
    let missing = scene.get("/assets/0000000000000000/secret.txt").await;
    assert_eq!(missing.status.as_u16(), 404, "{missing}");
}

/// Returns the size of a text as gzip writes it.
fn gzipped(text: &str) -> usize {
    use std::io::Write;
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::new(6));
    encoder.write_all(text.as_bytes()).unwrap();
    encoder.finish().unwrap().len()
}

#[tokio::test]
async fn pages_style_and_first_scripts_stay_within_their_sizes() {
    let scene = Scene::new().await;
    for number in 0..9 {
        scene
            .app
            .market_with(&["Yes", "No"], |new| {
                new.question =
                    format!("Will question number {number} of a home page have a rather long text?");
                new.featured_position = Some(number + 10);
            })
            .await;
    }
    for path in ["/".to_owned(), format!("/markets/{}", scene.rain.id)] {
        let page = scene.get(&path).await;
        let (plain, small) = (page.text.len(), gzipped(&page.text));
        assert!(plain <= 60_000 && small <= 15_000, "{path}: {plain} bytes, {small} gzip");
    }
    let page = scene.get("/").await;
    let style = links_of(&page).into_iter().find(|link| link.ends_with("/app.css")).unwrap();
    let size = gzipped(&scene.get(&style).await.text);
    assert!(size <= 8_000, "style: {size} bytes gzip");
}

#[tokio::test]
async fn an_unknown_path_is_a_page_for_browsers_and_a_problem_for_programs() {
    let scene = Scene::new().await;
    let browser = "text/html,application/xhtml+xml,*/*;q=0.8";
    let get =
        async |path: &str, accept: &str| scene.client.call("GET", path).header("accept", accept).send().await;
    let page = get("/nothing/here", browser).await;
    assert!(html(&page, 404).contains("This page does not exist"), "{page}");
    assert!(page.header("content-security-policy").is_some() && page.header("x-request-id").is_some());
    for (path, accept) in [("/nothing/here", "*/*"), ("/v1/nothing", browser), ("/api/nothing", browser)] {
        let problem = get(path, accept).await;
        assert_eq!(problem.status.as_u16(), 404);
        assert!(problem.header("content-type").unwrap().contains("json"), "{path}\n{problem}");
    }
}
