//! What a query may say: every parameter of every route with values that it cannot have, and what no route knows.

use crate::scene::Scene;

/// Values that are no number within the bounds of any list.
const NO_LIMIT: [&str; 8] = ["0", "201", "-1", "+5", "1.5", "ten", "", "99999999999999999999"];
const NO_OFFSET: [&str; 6] = ["-1", "+1", "1.5", "x", "", "4294967296"];
const NO_UUID: [&str; 3] = ["1", "", "0198f3a0-5d4e-7c1b-9a2f-3b4c5d6e7f8g"];
const NO_SECONDS: [&str; 6] = ["-1", "1.5", "2026-01-01", "", "253370764800", "+1"];
const NO_WORD: [&str; 4] = ["ACTIVE", "open", "", "active,all"];
const NO_FLAG: [&str; 4] = ["1", "yes", "TRUE", ""];
const NO_SEARCH: [&str; 5] = ["", "%ff", "%00", "%2", "one+two+three+four+five+six+seven"];
const NO_TEXT: [&str; 4] = ["", "%ff", "%00", "%2"];

type Wrong = (&'static str, &'static [&'static str]);

const OF_WINDOW: [Wrong; 2] = [("limit", &NO_LIMIT), ("offset", &NO_OFFSET)];
const OF_SORT: [Wrong; 2] = [("sortBy", &["id", "created", "", "TITLE"]), ("sortOrder", &["up", "ASC", ""])];

/// Each list's path below the scene's ids, and what can be wrong with its own parameters.
fn routes(scene: &Scene) -> Vec<(String, Vec<Wrong>)> {
    let Scene { thread, organization, partner, rain, .. } = scene;
    let status: Wrong = ("status", &NO_WORD);
    let list = |own: &[Wrong]| [&OF_WINDOW[..], &OF_SORT[..], own].concat();
    let too_many: Wrong = ("tags", &["", "a,,b", ",", "a,b,c,d,e,f,g,h,i,j,k,l,m,n,o,p,q,r,s,t,u", "%ff"]);
    let of_markets = [
        status,
        ("active", &NO_FLAG),
        ("resolvedAfter", &NO_SECONDS),
        ("resolvedBefore", &NO_SECONDS),
        ("category", &NO_TEXT),
        ("threadId", &NO_UUID),
        ("thread_id", &NO_UUID),
        ("organizationId", &NO_UUID),
        ("partnerId", &NO_UUID),
        ("chapterId", &NO_TEXT),
        ("q", &NO_SEARCH),
    ];
    let of_history: Vec<Wrong> = vec![
        ("interval", &["1w", "", "1H"]),
        ("range", &["2h", "", "ALL", "1h&from=0", "1h&to=5"]),
        ("from", &NO_SECONDS),
        ("to", &NO_SECONDS),
        ("outcomeIndex", &["x", "", "1.5", "-1", "2"]),
    ];
    vec![
        ("/api/threads".into(), list(&[status, ("category", &NO_TEXT), too_many, ("q", &NO_SEARCH)])),
        (format!("/api/threads/{thread}"), vec![("includeMarkets", &NO_FLAG)]),
        (
            format!("/api/threads/{thread}/markets"),
            list(&[status, ("status", &["all", "refunded"]), ("sortBy", &["end_time"])]),
        ),
        ("/api/markets".into(), list(&of_markets)),
        (
            "/api/markets/trending".into(),
            vec![("timeframe", &["2h", "", "24H", "30d"]), ("limit", &NO_LIMIT), ("category", &NO_TEXT)],
        ),
        (format!("/api/markets/{}/history", rain.id), of_history),
        (format!("/api/organizations/{organization}/threads"), list(&[status])),
        (format!("/api/organizations/{organization}/markets"), list(&[status])),
        (
            format!("/api/organizations/{organization}/partners"),
            [&OF_WINDOW[..], &[status, ("status", &["paused"])]].concat(),
        ),
        (format!("/api/partners/{partner}/threads"), list(&[status])),
        (
            "/api/leaderboard".into(),
            [&OF_WINDOW[..], &[("timeframe", &["1h", "", "ALL"]), ("sortBy", &["trades", ""])]].concat(),
        ),
    ]
}

#[tokio::test]
async fn a_known_parameter_with_a_wrong_value_is_refused_and_named() {
    let scene = Scene::new().await;
    for (path, parameters) in routes(&scene) {
        for (name, values) in parameters {
            for value in values {
                // Whoever asks so often is somebody else each minute.
                scene.app.clock.advance(60_000);
                let body = scene.refused(&format!("{path}?{name}={value}"), 400, "INVALID_REQUEST").await;
                let message = body["message"].as_str().unwrap();
                assert!(message.contains(name), "{path}?{name}={value}: {message}");
            }
        }
    }
}

#[tokio::test]
async fn the_largest_page_of_each_list_is_as_documented() {
    let scene = Scene::new().await;
    for (path, parameters) in routes(&scene) {
        if parameters.iter().all(|(name, _)| *name != "limit") {
            continue;
        }
        let most = if path.ends_with("trending") { 200 } else { 100 };
        for limit in [1, most] {
            scene.ok(&format!("{path}?limit={limit}")).await;
        }
        let message = scene.refused(&format!("{path}?limit={}", most + 1), 400, "INVALID_REQUEST").await;
        assert_eq!(message["message"], format!("limit is an integer from 1 to {most}."), "{path}");
    }
}

#[tokio::test]
async fn everything_that_is_wrong_is_told_at_once() {
    let scene = Scene::new().await;
    let body =
        scene.refused("/api/markets?status=x&limit=0&sortBy=y&threadId=1", 400, "INVALID_REQUEST").await;
    insta::assert_snapshot!(body["message"].as_str().unwrap());
}

#[tokio::test]
async fn a_parameter_that_is_sent_twice_is_refused_and_so_are_two_names_of_one() {
    let scene = Scene::new().await;
    scene.refused("/api/markets?limit=5&limit=5", 400, "INVALID_REQUEST").await;
    let both = format!("/api/markets?threadId={0}&thread_id={0}", scene.thread);
    scene.refused(&both, 400, "INVALID_REQUEST").await;
}

#[tokio::test]
async fn what_a_route_does_not_know_is_passed_over() {
    let scene = Scene::new().await;
    let plain = scene.ok("/api/markets").await;
    for query in ["utm_source=x", "fbclid", "limit_=0", "%ff=1", "a=%ff", "a=1&a=2", "Limit=0", "=", "&&"] {
        let body = scene.ok(&format!("/api/markets?{query}")).await;
        assert_eq!(
            (&body["markets"], &body["pagination"]),
            (&plain["markets"], &plain["pagination"]),
            "{query}"
        );
    }
    scene.ok(&format!("/api/markets/{}?x=1", scene.rain.id)).await;
}
