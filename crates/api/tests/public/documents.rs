//! `GET /api/openapi.json` and `GET /api/docs`.

use http_testkit::ServeHttp;
use http_testkit::public_scene::assert_headers_of_every_answer;
use testkit::TestApp;

#[tokio::test]
async fn the_openapi_document_is_readable_from_any_origin() {
    let client = TestApp::new().await.http().anonymous();
    let answer = client.get("/api/openapi.json").await;
    assert_headers_of_every_answer(&answer);
    assert_eq!(answer.header("content-type"), Some("application/json"));
    assert_eq!(answer.header("cache-control"), Some("public, max-age=300"));
    assert_eq!(answer.json(), api::public::openapi::parsed());
}

#[tokio::test]
async fn the_api_reference_loads_only_from_this_service() {
    let client = TestApp::new().await.http().anonymous();
    let page = client.get("/api/docs").await;
    assert_headers_of_every_answer(&page);
    assert!(page.text.contains("data-contract=\"/api/openapi.json\""), "{page}");
    let policy = page.header("content-security-policy").unwrap();
    assert!(policy.starts_with("default-src 'self';") && !policy.contains("http") && !policy.contains('*'));
    for rest in ["src=\"", "href=\""].iter().flat_map(|attribute| page.text.split(attribute).skip(1)) {
        let address = rest.split('"').next().unwrap();
        assert!(address.starts_with('/') && !address.starts_with("//"), "{address}");
        if !address.ends_with(".png") {
            assert_eq!(client.get(address).await.status.as_u16(), 200, "{address}");
        }
    }
}

/// The examples are responses as the OpenAPI document describes them.
#[test]
fn every_example_matches_its_schema() {
    let document = api::public::openapi::parsed();
    for (path, item) in document["paths"].as_object().unwrap() {
        for (status, response) in item["get"]["responses"].as_object().unwrap() {
            let content = &response["content"]["application/json"];
            for (name, example) in content["examples"].as_object().into_iter().flatten() {
                let reference = example["$ref"].as_str().unwrap_or_default().trim_start_matches('#');
                let example =
                    document.pointer(reference).filter(|_| !reference.is_empty()).unwrap_or(example);
                http_testkit::assert_public_schema(
                    &format!("{path} {status} {name}"),
                    &content["schema"],
                    &example["value"],
                );
            }
        }
    }
}
