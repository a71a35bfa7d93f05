//! API versions of requests and responses.

use app::keys::IssueKey;
use domain::ErrorCode;
use domain::key::Tier;
use domain::version::{Earlier, Versions};
use http_testkit::{Answer, Http, ServeHttp};
use testkit::{TestApp, TestKey, key_of};

const VERSIONS: Versions = Versions {
    current: "2027-01-01",
    earlier: &[Earlier { date: "2026-04-29", retired: false }, Earlier { date: "2025-01-01", retired: true }],
};
const NAME: &str = "x-service-api-version";

fn http(app: &TestApp) -> Http {
    app.http_with(|state| state.versions = VERSIONS)
}

async fn pinned(app: &TestApp, version: Option<&str>) -> TestKey {
    let ada = app.user("ada").await;
    app.issue(IssueKey { api_version: version.map(str::to_owned), ..key_of(&ada, Tier::Mm) }).await.unwrap()
}

/// Returns the status, the error code and the version of the response.
fn spoken(answer: &Answer) -> (u16, Option<&str>, Option<&str>) {
    (answer.status.as_u16(), answer.header("x-service-error-code"), answer.header(NAME))
}

#[tokio::test]
async fn the_header_overrides_the_key_and_the_key_the_current_version() {
    let app = TestApp::new().await;
    let http = http(&app);
    let (free, old) = (pinned(&app, None).await, pinned(&app, Some("2026-04-29")).await);
    let gone = pinned(&app, Some("2025-01-01")).await;
    let unsupported = Some("API_VERSION_UNSUPPORTED");
    for (key, asked_for, expected) in [
        (&free, None, (200, None, Some("2027-01-01"))),
        (&free, Some("2027-01-01"), (200, None, Some("2027-01-01"))),
        (&free, Some("2026-04-29"), (200, None, Some("2026-04-29"))),
        (&old, None, (200, None, Some("2026-04-29"))),
        (&old, Some("2027-01-01"), (200, None, Some("2027-01-01"))),
        (&free, Some("2025-01-01"), (410, unsupported, Some("2027-01-01"))),
        (&gone, None, (410, unsupported, Some("2027-01-01"))),
        (&gone, Some("2026-04-29"), (200, None, Some("2026-04-29"))),
    ] {
        let call = http.with(key).get("/v1/markets");
        let answer = match asked_for {
            Some(version) => call.header(NAME, version).await,
            None => call.await,
        };
        assert_eq!(spoken(&answer), expected, "{asked_for:?}");
    }
}

#[tokio::test]
async fn an_unknown_version_is_rejected_with_the_known_ones() {
    let app = TestApp::new().await;
    let client = app.http().with(&pinned(&app, None).await);
    for version in ["", "2026-04-30", "v1", "latest", "2026-04-29, 2026-04-29", "2025-01-01"] {
        let answer = client.get("/v1/markets").header(NAME, version).await;
        assert_eq!(answer.pointers(), ["/header/X-Service-Api-Version"], "{version}");
        let body = answer.json();
        let detail = body["extensions"]["errors"][0]["detail"].as_str().unwrap();
        assert_eq!(detail, format!("must be one of the versions 2026-04-29, got \"{version}\""));
    }
    let twice = client.get("/v1/markets").header(NAME, "2026-04-29").header(NAME, "2026-04-29").await;
    assert_eq!(twice.pointers(), ["/header/X-Service-Api-Version"]);
    let bytes = client.get("/v1/markets").header(NAME, b"\xff").await;
    assert_eq!(bytes.pointers(), ["/header/X-Service-Api-Version"]);
}

#[tokio::test]
async fn the_version_of_the_header_is_checked_before_the_key_and_the_pinned_one_after_it() {
    let app = TestApp::new().await;
    let http = http(&app);
    let anonymous = http.anonymous();
    anonymous.get("/v1/health").header(NAME, "2026-04-29").await;
    for path in ["/v1/markets", "/v1/health"] {
        let answer = anonymous.get(path).header(NAME, "2025-01-01").await;
        assert_eq!(spoken(&answer), (410, Some("API_VERSION_UNSUPPORTED"), Some("2027-01-01")), "{path}");
    }
    // Later errors have the requested version.
    let answer = anonymous.get("/v1/markets").header(NAME, "2026-04-29").await;
    assert_eq!(spoken(&answer), (401, Some("API_KEY_MISSING"), Some("2026-04-29")));
    let gone = pinned(&app, Some("2025-01-01")).await;
    let unsigned = http.with(&gone).get("/v1/markets").header("x-service-signature", "x").await;
    assert_eq!(spoken(&unsigned), (410, Some("API_VERSION_UNSUPPORTED"), Some("2027-01-01")));
    app::keys::revoke(&app.ctx, gone.caller.key.id).await.unwrap();
    let revoked = http.with(&gone).get("/v1/markets").await;
    assert_eq!(revoked.header("x-service-error-code"), Some(ErrorCode::ApiKeyRevoked.as_str()));
}
