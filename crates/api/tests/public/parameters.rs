//! Validation of query parameters: every parameter of every route with invalid values, and unknown
//! parameters.

use std::collections::BTreeSet;

use http_testkit::public_scene::Scene;
use serde_json::Value;
use store::Store;

/// Values that are invalid as the `limit` of any list.
const NO_LIMIT: [&str; 9] = ["0", "201", "-1", "+5", "%2B5", "1.5", "ten", "", "99999999999999999999"];
const NO_OFFSET: [&str; 7] = ["-1", "+1", "%2B1", "1.5", "x", "", "4294967296"];
const NO_UUID: [&str; 3] = ["1", "", "0198f3a0-5d4e-7c1b-9a2f-3b4c5d6e7f8g"];
const NO_SECONDS: [&str; 7] = ["%2B1", "-1", "1.5", "2026-01-01", "", "253370764800", "+1"];
const NO_WORD: [&str; 4] = ["ACTIVE", "open", "", "active,all"];
const NO_FLAG: [&str; 4] = ["1", "yes", "TRUE", ""];
const NO_SEARCH: [&str; 5] = ["", "%ff", "%00", "%2", "one+two+three+four+five+six+seven"];
const NO_TEXT: [&str; 4] = ["", "%ff", "%00", "%2"];

const NO_PIXELS: [&str; 8] = ["0", "%2B5", "100001", "-1", "1.5", "ten", "", "99999999999999999999"];

type Wrong = (&'static str, &'static [&'static str]);

const OF_WINDOW: [Wrong; 2] = [("limit", &NO_LIMIT), ("offset", &NO_OFFSET)];
const OF_SORT: [Wrong; 2] = [("sortBy", &["id", "created", "", "TITLE"]), ("sortOrder", &["up", "ASC", ""])];

/// A route with its required parameters and its invalid values.
struct Table {
    path: &'static str,
    needs: Vec<(&'static str, String)>,
    wrong: Vec<Wrong>,
}

impl Table {
    /// Returns a URL with this value of this parameter, and the other required parameters.
    fn asking(&self, scene: &Scene, name: &str, value: &str) -> String {
        let rest = self.needs.iter().filter(|(needed, _)| *needed != name);
        let rest: String = rest.map(|(needed, value)| format!("&{needed}={value}")).collect();
        format!("{}?{name}={value}{rest}", scene.path(self.path))
    }
}

/// Returns every route with parameters.
fn routes(scene: &Scene) -> Vec<Table> {
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
        ("outcomeIndex", &["x", "", "1.5", "-1", "%2B1", "2"]),
    ];
    let of_quote: Vec<Wrong> = vec![
        ("outcomeIndex", &["x", "", "1.5", "-1", "%2B1", "2", "99999999999999999999"]),
        ("action", &["BUY", "", "hold", "buy,sell"]),
        ("amount", &["0", "-1", "%2B1", "1e3", "", "ten", "0.0000001", "10000000.000001"]),
    ];
    let of_oembed: Vec<Wrong> =
        vec![("url", &NO_TEXT), ("format", &NO_TEXT), ("maxwidth", &NO_PIXELS), ("maxheight", &NO_PIXELS)];
    let table = |path, wrong| Table { path, needs: Vec::new(), wrong };
    let needs = |needed: &[(&'static str, &str)]| {
        needed.iter().map(|(name, value)| (*name, (*value).to_owned())).collect::<Vec<_>>()
    };
    let page = format!("https://foretell.test/markets/{}", scene.rain.id);
    vec![
        table("/api/threads", list(&[status, ("category", &NO_TEXT), too_many, ("q", &NO_SEARCH)])),
        table("/api/threads/{id}", vec![("includeMarkets", &NO_FLAG)]),
        table(
            "/api/threads/{id}/markets",
            list(&[status, ("status", &["all", "refunded"]), ("sortBy", &["end_time"])]),
        ),
        table("/api/markets", list(&of_markets)),
        table(
            "/api/markets/trending",
            vec![("timeframe", &["2h", "", "24H", "30d"]), ("limit", &NO_LIMIT), ("category", &NO_TEXT)],
        ),
        Table {
            path: "/api/markets/{id}/quote",
            needs: needs(&[("outcomeIndex", "0"), ("action", "buy"), ("amount", "1")]),
            wrong: of_quote,
        },
        table("/api/markets/{id}/history", of_history),
        table("/api/organizations/{id}/threads", list(&[status])),
        table("/api/organizations/{id}/markets", list(&[status])),
        table(
            "/api/organizations/{id}/partners",
            [&OF_WINDOW[..], &[status, ("status", &["paused"])]].concat(),
        ),
        table("/api/partners/{id}/threads", list(&[status])),
        table(
            "/api/leaderboard",
            [
                &OF_WINDOW[..],
                &[("timeframe", &["1h", "", "ALL"]), ("sortBy", &["trades", ""]), ("sort", &["profit", ""])],
            ]
            .concat(),
        ),
        table("/api/portfolio/analytics", vec![("timeframe", &["1h", "", "ALL"])]),
        Table { path: "/api/oembed", needs: needs(&[("url", &page)]), wrong: of_oembed },
    ]
}

/// Returns the query parameters of every route in the OpenAPI document.
fn documented() -> BTreeSet<(String, String)> {
    let document = api::public::openapi::parsed();
    let name_of = |parameter: &Value| {
        let shared = parameter["$ref"].as_str().and_then(|reference| reference.strip_prefix('#'));
        let parameter = shared.map_or(parameter, |pointer| document.pointer(pointer).unwrap());
        (parameter["in"] == "query").then(|| parameter["name"].as_str().unwrap().to_owned())
    };
    let mut names = BTreeSet::new();
    for route in api::public::routes() {
        let parameters = document["paths"][route.path]["get"]["parameters"].as_array().unwrap();
        names.extend(parameters.iter().filter_map(name_of).map(|name| (route.path.to_owned(), name)));
    }
    names
}

#[tokio::test]
async fn every_documented_parameter_has_invalid_values_in_this_test() {
    let scene = Scene::new().await;
    let of_table = |table: Table| {
        let named = table.wrong.into_iter().filter(|(_, values)| !values.is_empty());
        named.map(move |(name, _)| (table.path.to_owned(), name.to_owned())).collect::<Vec<_>>()
    };
    let held: BTreeSet<_> = routes(&scene).into_iter().flat_map(of_table).collect();
    let documented = documented();
    assert!(documented.len() > 50, "{documented:?}");
    assert_eq!(documented, held);
}

#[tokio::test]
async fn an_invalid_parameter_is_rejected_by_name() {
    let scene = Scene::new().await;
    for table in routes(&scene) {
        for (name, values) in &table.wrong {
            for value in *values {
                // Advance by the rate limiter's window, so that no request is rejected by it.
                scene.app.clock.advance(60_000);
                let path = table.asking(&scene, name, value);
                let body = scene.refused(&path, 400, "INVALID_REQUEST").await;
                let message = body["message"].as_str().unwrap();
                assert!(message.contains(name), "{path}: {message}");
            }
        }
    }
}

store::on_each_engine! {
    async fn very_long_values_do_not_break_the_service(store: Store) {
        let scene = Scene::on(store).await;
        // hyper limits a request's URI to 65,534 characters.
        let long = ["a".repeat(30_000), "_".repeat(30_000), "%25".repeat(20_000), "a,".repeat(15_000), "9".repeat(30_000)];
        for table in routes(&scene) {
            for name in table.wrong.iter().map(|(name, _)| name) {
                for value in &long {
                    scene.app.clock.advance(60_000);
                    let answer = scene.get(&table.asking(&scene, name, value)).await;
                    let message = format!("{}?{name}={}...: {}", table.path, &value[..3], answer.text);
                    // oEmbed rejects unknown formats with 501, which is not a server failure.
                    let is_unknown_format = *name == "format" && answer.json()["code"] == "FORMAT_NOT_SUPPORTED";
                    assert!(is_unknown_format || !answer.status.is_server_error(), "{message}");
                    assert!(answer.text.len() < 10_000, "{} bytes for {}?{name}", answer.text.len(), table.path);
                }
            }
        }
    }
}

#[tokio::test]
async fn the_largest_page_of_each_list_is_as_documented() {
    let scene = Scene::new().await;
    for table in routes(&scene) {
        if table.wrong.iter().all(|(name, _)| *name != "limit") {
            continue;
        }
        let path = scene.path(table.path);
        let most = if path.ends_with("trending") { 200 } else { 100 };
        for limit in [1, most] {
            scene.ok(&format!("{path}?limit={limit}")).await;
        }
        let message = scene.refused(&format!("{path}?limit={}", most + 1), 400, "INVALID_REQUEST").await;
        assert_eq!(
            message["message"],
            format!("limit must be an integer from 1 to {most}, got \"{}\".", most + 1),
            "{path}"
        );
    }
}

#[tokio::test]
async fn all_invalid_parameters_are_reported_together() {
    let scene = Scene::new().await;
    let body =
        scene.refused("/api/markets?status=x&limit=0&sortBy=y&threadId=1", 400, "INVALID_REQUEST").await;
    insta::assert_snapshot!(body["message"].as_str().unwrap());
}

#[tokio::test]
async fn a_repeated_parameter_and_two_names_of_one_are_rejected() {
    let scene = Scene::new().await;
    scene.refused("/api/markets?limit=5&limit=5", 400, "INVALID_REQUEST").await;
    let both = format!("/api/markets?threadId={0}&thread_id={0}", scene.thread);
    scene.refused(&both, 400, "INVALID_REQUEST").await;
}

#[tokio::test]
async fn unknown_parameters_are_ignored() {
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
