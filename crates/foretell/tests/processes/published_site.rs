//! `foretell app verify`, against the service and against a site that changes one of its scripts.

use std::process::Output;

use axum::Router;
use axum::http::{HeaderMap, Uri};
use axum::response::{IntoResponse, Response};
use tokio::net::TcpListener;

use crate::service::{Service, foretell};

async fn verify(service: &Service, url: &str) -> Output {
    let mut command = foretell(&service.file("."));
    command.args(["app", "verify", url]).stdout(std::process::Stdio::piped());
    command.stderr(std::process::Stdio::piped()).output().await.unwrap()
}

/// Serves the site at `origin`, with an addition to the script that describes what is signed.
async fn tampered(origin: String) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let http = reqwest::Client::builder().no_proxy().build().unwrap();
    let answer = async move |uri: Uri| -> Response {
        let found = http.get(format!("{origin}{uri}")).send().await.unwrap();
        let policy = found.headers().get("content-security-policy").unwrap().clone();
        let headers = HeaderMap::from_iter([("content-security-policy".parse().unwrap(), policy)]);
        let mut text = found.text().await.unwrap();
        if uri.path().ends_with("/describe.js") {
            text.push(' ');
        }
        (headers, text).into_response()
    };
    tokio::spawn(async move { axum::serve(listener, Router::new().fallback(answer)).await });
    url
}

#[tokio::test]
async fn a_site_that_serves_another_script_is_reported() {
    let mut service = Service::on_sqlite().await;
    service.start().await;
    let origin = service.base_url().replace("127.0.0.1", "localhost");
    let own = verify(&service, &origin).await;
    let said = String::from_utf8(own.stdout).unwrap();
    assert!(own.status.success() && said.contains("unchanged"), "{said}");

    let other = verify(&service, &tampered(origin).await).await;
    let said = String::from_utf8(other.stderr).unwrap();
    assert_eq!(other.status.code(), Some(1), "{said}");
    assert!(said.contains("js/describe.js: other bytes") && said.matches('\n').count() == 2, "{said}");
}
