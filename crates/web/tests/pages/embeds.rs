//! The pages for iframes on other sites.

use http_testkit::Answer;
use http_testkit::public_scene::{Scene, assert_headers_of_every_answer, thread};

/// Returns the page with names in place of ids and card versions, for snapshots.
fn with_placeholders(answer: &Answer, ids: &[(&str, &str)]) -> String {
    let mut text = answer.text.clone();
    for (id, name) in ids {
        text = text.replace(id, name);
    }
    let mut parts = text.split("/cards/");
    let mut named = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let (before, after) = part.split_once(".png").unwrap();
        let (path, _) = before.rsplit_once('/').unwrap();
        named.push_str(&format!("/cards/{path}/<version>.png{after}"));
    }
    // Replace the parts that are the same on every page.
    for (open, close) in [("<style>", "</style>"), ("<script>", "</script>")] {
        let (before, rest) = named.split_once(open).unwrap();
        let (_, after) = rest.split_once(close).unwrap();
        named = format!("{before}{open}…{close}{after}");
    }
    named
}

fn page(answer: &Answer, status: u16) -> &str {
    assert_eq!(answer.status.as_u16(), status, "\n{answer}");
    assert_headers_of_every_answer(answer);
    assert_eq!(answer.header("content-type"), Some("text/html; charset=utf-8"), "\n{answer}");
    assert_eq!(answer.header("x-content-type-options"), Some("nosniff"), "\n{answer}");
    assert_eq!((answer.header("set-cookie"), answer.header("x-frame-options")), (None, None), "\n{answer}");
    let policy = answer.header("content-security-policy").unwrap();
    assert!(policy.starts_with("default-src 'none';") && policy.ends_with("frame-ancestors *"), "{policy}");
    assert!(!policy.contains("unsafe") && !policy.contains("http"), "{policy}");
    &answer.text
}

#[tokio::test]
async fn a_market_and_a_thread_have_pages_for_frames() {
    let scene = Scene::new().await;
    let (rain, cup) = (scene.rain.id.to_string(), scene.cup.id.to_string());
    let ids = [(rain.as_str(), "<rain>"), (cup.as_str(), "<cup>")];
    let market = scene.get(&format!("/embed/markets/{rain}")).await;
    page(&market, 200);
    assert_eq!(
        market.header("cache-control"),
        Some("public, max-age=5, s-maxage=5, stale-while-revalidate=10")
    );
    insta::assert_snapshot!("market", with_placeholders(&market, &ids));
    let of_three = scene.get(&format!("/embed/markets/{cup}?theme=dark")).await;
    assert!(page(&of_three, 200).contains("<html lang=\"en\" data-theme=\"dark\">"), "{of_three}");
    insta::assert_snapshot!("market_of_three", with_placeholders(&of_three, &ids));
    let thread = scene.thread.to_string();
    let of_thread = scene.get(&format!("/embed/threads/{thread}?theme=light")).await;
    page(&of_thread, 200);
    insta::assert_snapshot!(
        "thread",
        with_placeholders(&of_thread, &[ids[0], ids[1], (&thread, "<thread>")])
    );
}

#[tokio::test]
async fn the_policy_of_a_page_allows_only_its_own_script_and_style() {
    use base64::Engine;
    use sha2::Digest;
    let scene = Scene::new().await;
    let answer = scene.get(&format!("/embed/markets/{}", scene.rain.id)).await;
    let policy = answer.header("content-security-policy").unwrap();
    for (open, close) in [("<style>", "</style>"), ("<script>", "</script>")] {
        let text = answer.text.split_once(open).unwrap().1.split_once(close).unwrap().0;
        let hash = base64::prelude::BASE64_STANDARD.encode(sha2::Sha256::digest(text.as_bytes()));
        assert!(policy.contains(&format!("'sha256-{hash}'")), "{open} {policy}");
        assert_eq!(answer.text.matches(open).count(), 1);
    }
    assert!(!answer.text.contains(" style=") && !answer.text.contains(" onclick="));
}

/// Runs the page's script in Node.js, through a load and two resizes with these heights, and
/// returns its messages to the parent. Returns `None` without Node.js.
fn messages_to_parent(script: &str, is_framed: bool, heights: [f64; 3]) -> Option<serde_json::Value> {
    const STAGE: &str = r#"
        const [script, framed, heights] = [process.argv[1], process.argv[2] === "true", JSON.parse(process.argv[3])];
        const sent = [], listeners = {}, observers = [];
        const document = { documentElement: { getBoundingClientRect: () => ({ height: heights[0] }) } };
        const window = { addEventListener: (name, listener) => { listeners[name] = listener; } };
        window.ResizeObserver = class { constructor(tell) { observers.push(tell); } observe() {} };
        window.parent = framed ? { postMessage: (message, origin) => sent.push([message, origin]) } : window;
        new Function("window", "document", "ResizeObserver", script)(window, document, window.ResizeObserver);
        listeners.load?.(); heights.shift(); observers.forEach((tell) => tell()); heights.shift(); listeners.resize?.();
        console.log(JSON.stringify(sent));
    "#;
    let arguments = ["-e", STAGE, script, &is_framed.to_string(), &format!("{heights:?}")];
    let run = std::process::Command::new("node").args(arguments).output().ok()?;
    assert!(run.status.success(), "{}", String::from_utf8_lossy(&run.stderr));
    Some(serde_json::from_slice(&run.stdout).unwrap())
}

#[tokio::test]
async fn a_framed_page_sends_each_new_height_to_its_parent() {
    let scene = Scene::new().await;
    let answer = scene.get(&format!("/embed/markets/{}", scene.rain.id)).await;
    let script = answer.text.split_once("<script>").unwrap().1.split_once("</script>").unwrap().0;
    let message = |height: u32| serde_json::json!([{ "type": "foretell:height", "height": height }, "*"]);
    if let Some(messages) = messages_to_parent(script, true, [320.2, 320.9, 480.0]) {
        assert_eq!(messages, serde_json::json!([message(321), message(480)]));
        assert_eq!(messages_to_parent(script, false, [1.0, 2.0, 3.0]), Some(serde_json::json!([])));
    }
}

#[tokio::test]
async fn a_description_is_formatted_and_cannot_run_or_load_anything() {
    const DESCRIPTION: &str = "Counts **whole** days.\n\n- by [the office](https://office.test)\n- <script>alert(1)</script>\n\n\
        ![](https://spy.test/x.png) [x](javascript:alert(1))";
    let scene = Scene::new().await;
    let market =
        scene.app.market_with(&["Yes", "No"], |new| new.description = Some(DESCRIPTION.to_owned())).await;
    let of_thread = thread(&scene.app, |thread| thread.description = Some(DESCRIPTION.to_owned())).await;
    for path in [format!("/embed/markets/{}", market.id), format!("/embed/threads/{of_thread}")] {
        let answer = scene.get(&path).await;
        let about = page(&answer, 200).split_once("<details>").unwrap().1.split_once("</details>").unwrap().0;
        let link = r#"<a href="https://office.test" target="_blank" rel="nofollow noopener">the office</a>"#;
        for part in ["<strong>whole</strong>", link, "&lt;script&gt;"] {
            assert!(about.contains(part), "{part} in\n{about}");
        }
        for tag in ["<script", "<img", "spy.test", "javascript:"] {
            assert!(!about.contains(tag), "{tag} in\n{about}");
        }
    }
    let nothing = scene.app.market_with(&["Yes", "No"], |new| new.description = None).await;
    let answer = scene.get(&format!("/embed/markets/{}", nothing.id)).await;
    assert!(!page(&answer, 200).contains("<details>"), "{answer}");
}

#[tokio::test]
async fn hostile_questions_and_labels_are_escaped() {
    let scene = Scene::new().await;
    let hostile = "\"><script>alert(1)</script><img src=x onerror='alert(2)'>&evil</title></style>";
    let market = scene
        .app
        .market_with(&[hostile, "'><svg onload=alert(3)>", "c"], |new| new.question = hostile.to_owned())
        .await;
    let of_thread = thread(&scene.app, |thread| thread.title = hostile.to_owned()).await;
    for path in [format!("/embed/markets/{}", market.id), format!("/embed/threads/{of_thread}")] {
        let answer = scene.get(&path).await;
        let text = page(&answer, 200);
        for tag in ["<img", "<svg onload", "<script>alert", "onerror='"] {
            assert!(!text.contains(tag), "{tag} in\n{text}");
        }
        assert_eq!((text.matches("<script>").count(), text.matches("</title>").count()), (1, 1), "{text}");
        // A direction mark in a text must not affect text outside its element.
        assert!(text.contains("<h1 dir=\"auto\">"), "{text}");
    }
    let title = format!("https://foretell.test/embed/markets/{}", market.id);
    let oembed = scene.ok(&format!("/api/oembed?url={title}")).await;
    let html = oembed["html"].as_str().unwrap();
    assert!(!html.contains("<script") && !html.contains("<img") && html.matches('<').count() == 2, "{html}");
}

#[tokio::test]
async fn an_unknown_page_is_a_404_in_the_same_style() {
    let scene = Scene::new().await;
    let nobody = "/embed/markets/019aaaaa-0000-7000-8000-000000000000";
    for path in [nobody, "/embed/markets/x?theme=dark", "/embed/threads/%ff"] {
        let answer = scene.get(path).await;
        assert!(page(&answer, 404).contains("<h1>Page not found</h1>"), "{answer}");
        assert_eq!((answer.header("cache-control"), answer.header("etag")), (Some("no-store"), None));
        assert!(!answer.text.contains("og:"), "{answer}");
    }
}

#[tokio::test]
async fn a_theme_is_light_dark_or_auto() {
    let scene = Scene::new().await;
    let path = format!("/embed/markets/{}", scene.rain.id);
    for theme in ["auto", "light", "dark"] {
        page(&scene.get(&format!("{path}?theme={theme}")).await, 200);
    }
    let wrong = scene.refused(&format!("{path}?theme=red"), 400, "INVALID_REQUEST").await;
    assert_eq!(wrong["message"], "theme must be one of auto, light, dark, got \"red\".");
}

#[tokio::test]
async fn a_settled_market_shows_its_result() {
    let scene = Scene::new().await;
    scene.app.resolve(scene.rain, 1).await;
    scene.app.cancel(scene.cup).await;
    scene.app.advance_ms(1_000).await;
    scene.app.run_workers().await;
    let rain = scene.get(&format!("/embed/markets/{}", scene.rain.id)).await;
    assert!(page(&rain, 200).contains(">Resolved: No</span>"), "{rain}");
    assert!(rain.text.contains("<span class=\"percent\">100%</span>"), "{rain}");
    let cup = scene.get(&format!("/embed/markets/{}", scene.cup.id)).await;
    assert!(page(&cup, 200).contains(">Cancelled</span>"), "{cup}");
}

/// Asserts that the page reloads automatically after `Retry-After`, and has a link to reload it
/// immediately.
fn assert_loads_again(answer: &Answer) {
    let seconds = answer.header("retry-after").unwrap();
    assert!(
        answer.text.contains(&format!("<meta http-equiv=\"refresh\" content=\"{seconds}\">")),
        "{answer}"
    );
    assert!(answer.text.contains("<a href=\"\">Try again</a>"), "{answer}");
    assert_eq!((answer.header("cache-control"), answer.header("etag")), (Some("no-store"), None), "{answer}");
}

#[tokio::test]
async fn a_disabled_page_is_still_an_html_page() {
    use app::kill_switches::{Setting, refresh, set};
    let scene = Scene::new().await;
    set(&scene.app.ctx, "GET /embed/threads/{id}", Setting::Off, "ada", None).await.unwrap();
    refresh(&scene.app.ctx).await.unwrap();
    let answer = scene.get(&format!("/embed/threads/{}?theme=dark", scene.thread)).await;
    assert!(page(&answer, 503).contains("<h1>Not available right now</h1>"), "{answer}");
    assert!(answer.text.contains("data-theme=\"dark\""), "{answer}");
    assert_loads_again(&answer);
    page(&scene.get(&format!("/embed/markets/{}", scene.rain.id)).await, 200);
}

#[tokio::test]
async fn a_thread_marks_its_markets_that_cannot_be_traded() {
    let scene = Scene::new().await;
    let path = format!("/embed/threads/{}", scene.thread);
    assert!(!page(&scene.get(&path).await, 200).contains("class=\"state"));
    scene.app.freeze(scene.rain).await;
    scene.app.cancel(scene.cup).await;
    scene.app.advance_ms(1_000).await;
    scene.app.run_workers().await;
    let answer = scene.get(&path).await;
    for state in ["Trading has stopped", "Cancelled"] {
        assert!(
            page(&answer, 200).contains(&format!("<span class=\"state\" dir=\"auto\">{state}</span>")),
            "{answer}"
        );
    }
}

#[tokio::test]
async fn a_chart_has_a_time_axis_and_a_legend_and_no_scaled_text() {
    let scene = Scene::new().await;
    for (market, names) in [(scene.rain, &["Yes"][..]), (scene.cup, &["Red", "Green", "Blue"])] {
        let answer = scene.get(&format!("/embed/markets/{}", market.id)).await;
        let part = |open: &str, close: &str| {
            page(&answer, 200).split_once(open).unwrap().1.split_once(close).unwrap().0
        };
        assert!(!part("<svg class=\"plot\"", "</svg>").contains("<text"), "{answer}");
        assert!(part("<div class=\"times\">", "</div>").matches("<span>").count() >= 3, "{answer}");
        let legend = part("<ul class=\"legend\">", "</ul>");
        assert_eq!(legend.matches("<li>").count(), names.len(), "{answer}");
        assert!(names.iter().all(|name| legend.contains(&format!(">{name}</span>"))), "{answer}");
    }
}

#[tokio::test]
async fn a_page_supports_its_etag_and_allows_100_requests_a_minute() {
    let scene = Scene::new().await;
    let path = format!("/embed/markets/{}", scene.rain.id);
    let first = scene.get(&path).await;
    let again = scene.client.get(&path).header("if-none-match", first.header("etag").unwrap()).await;
    assert_eq!((again.status.as_u16(), again.text.as_str()), (304, ""));
    assert_eq!(again.header("x-ratelimit-remaining"), Some("98"));
    for _ in 0..98 {
        page(&scene.get(&path).await, 200);
    }
    let limited = scene.get(&path).await;
    assert!(page(&limited, 429).contains("There were too many requests"), "{limited}");
    assert_loads_again(&limited);
    page(&scene.get(&format!("/embed/threads/{}", scene.thread)).await, 200);
}
