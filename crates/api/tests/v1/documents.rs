//! `GET /v1/openapi.json`, `GET /v1/docs` and its files, `GET /docs/api-errors` and its pages.

use domain::ErrorCode;
use http_testkit::{Answer, DOCS_URL, ServeHttp};
use testkit::TestApp;

use crate::scene::Scene;

fn assert_shared(answer: &Answer) {
    assert_eq!(answer.status.as_u16(), 200, "\n{answer}");
    assert_eq!(answer.header("access-control-allow-origin"), Some("*"));
    assert_eq!(answer.header("cache-control"), Some("public, max-age=300"));
    assert!(answer.header("x-request-id").is_some());
}

#[tokio::test]
async fn the_openapi_document_is_readable_from_any_origin() {
    let http = TestApp::new().await.http();
    let answer = http.anonymous().get("/v1/openapi.json").await;
    assert_shared(&answer);
    assert_eq!(answer.header("content-type"), Some("application/json"));
    assert_eq!(answer.json(), api::v1::openapi::parsed());
    assert_eq!(answer.text, http.anonymous().get("/v1/openapi.json").await.text);
}

#[tokio::test]
async fn the_api_reference_is_complete_and_loads_only_from_this_service() {
    let http = TestApp::new().await.http();
    let page = http.anonymous().get("/v1/docs").await;
    assert_shared(&page);
    let policy = page.header("content-security-policy").unwrap();
    assert!(policy.starts_with("default-src 'self';") && !policy.contains("http") && !policy.contains('*'));
    let addresses: Vec<_> = ["src=\"", "href=\""]
        .iter()
        .flat_map(|attribute| page.text.split(attribute).skip(1).filter_map(|rest| rest.split('"').next()))
        .collect();
    assert!(addresses.len() >= 4, "{addresses:?}");
    for address in addresses {
        assert!(address.starts_with('/') && !address.starts_with("//"), "{address}");
        // Images are not text.
        if !address.ends_with(".png") {
            assert_eq!(http.anonymous().get(address).await.status.as_u16(), 200, "{address}");
        }
    }
    assert!(http.anonymous().get("/v1/docs/start.js").await.text.contains("validatorUrl: null"));
    for lost in ["/v1/docs/index.html", "/v1/docs/..%2Fstart.js", "/v1/docs/oauth2-redirect.html"] {
        http.anonymous().get(lost).await.refused(ErrorCode::ResourceNotFound);
    }
}

#[tokio::test]
async fn a_document_that_the_client_has_is_not_sent_again() {
    let http = TestApp::new().await.http();
    let client = http.anonymous();
    let paths = [
        "/v1/openapi.json",
        "/v1/docs",
        "/v1/docs/start.js",
        "/docs/api-errors",
        "/docs/api-errors/API_KEY_MISSING",
    ];
    for path in paths {
        let first = client.get(path).await;
        let etag = first.header("etag").unwrap();
        let again = client.get(path).header("if-none-match", etag).await;
        assert_eq!((again.status.as_u16(), again.text.as_str()), (304, ""), "{path}");
        assert_eq!(again.header("etag"), Some(etag), "{path}");
        let other = client.get(path).header("if-none-match", "W/\"other\"").await;
        assert_eq!((other.status.as_u16(), other.text == first.text), (200, true), "{path}");
    }
    // The two formats of a page have different tags.
    let markdown = client.get("/docs/api-errors").header("accept", "text/markdown").await;
    assert_ne!(markdown.header("etag"), client.get("/docs/api-errors").await.header("etag"));
}

#[tokio::test]
async fn only_the_documents_are_readable_from_any_origin() {
    let scene = Scene::new().await;
    for path in ["/v1/health", "/v1/ready", "/v1/markets", "/v1/portfolio", "/v1/nothing"] {
        let answer = scene.client.get(path).header("origin", "https://else.test").await;
        assert_eq!(answer.header("access-control-allow-origin"), None, "{path}");
    }
}

#[tokio::test]
async fn the_type_of_a_problem_is_the_url_of_its_page() {
    let http = TestApp::new().await.http();
    let problem = http.anonymous().get("/v1/markets").await.refused(ErrorCode::ApiKeyMissing);
    let path = problem["type"].as_str().unwrap().strip_prefix(DOCS_URL).unwrap().to_owned();
    let page = http.anonymous().get(&format!("/docs{path}")).await;
    assert_eq!(page.header("content-type"), Some("text/html; charset=utf-8"));
    assert!(page.text.contains("API_KEY_MISSING") && page.text.contains("X-API-Key"), "{page}");
}

#[tokio::test]
async fn every_code_has_a_page_in_two_formats_and_unknown_codes_have_none() {
    let client = TestApp::new().await.http();
    let client = client.anonymous();
    for code in ErrorCode::ALL {
        let html = client.get(&format!("/docs/api-errors/{code}")).await;
        assert_eq!(html.header("content-type"), Some("text/html; charset=utf-8"), "{code}");
        assert!(!html.text.contains("<script"), "{code}");
        let named = client.get(&format!("/docs/api-errors/{code}.md")).await;
        let asked = client.get(&format!("/docs/api-errors/{code}")).header("accept", "text/markdown").await;
        assert_eq!(named.header("content-type"), Some("text/markdown; charset=utf-8"), "{code}");
        assert_eq!(named.text, asked.text, "{code}");
        assert!(named.text.starts_with(&format!("# `{code}`\n")), "{code}");
    }
    let index = client.get("/docs/api-errors").await;
    let (trading, public) = index.text.split_once("Only in the public read API").unwrap();
    assert_eq!(trading.matches("<tr>").count(), ErrorCode::ALL.len() + 1);
    assert!(public.contains("/docs/api-errors/THREAD_NOT_FOUND"), "{public}");
    for word in ["NO_SUCH_CODE", "api_key_missing", "NO_SUCH_CODE.md", ".md", "%3Cscript%3E"] {
        let refused = client.get(&format!("/docs/api-errors/{word}")).await;
        assert_eq!(
            refused.refused(ErrorCode::ResourceNotFound)["detail"],
            "There is no such error code.",
            "{word}"
        );
    }
}
