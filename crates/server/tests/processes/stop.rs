//! A service that is stopped in order.

use std::sync::Arc;

use app::keys::{IssueKey, issue};
use chain::Signer;
use domain::key::{IpAllowlist, LimitOverrides, Scopes, Tier};
use domain::time::SystemClock;
use server::config::Options;
use server::entropy::SystemEntropy;
use server::run::{Parts, Running, listen};
use server::secrets::Secrets;
use store::testing::TestFolder;

use crate::oracle;

#[tokio::test(flavor = "multi_thread")]
async fn what_was_counted_until_the_stop_is_kept() {
    let folder = TestFolder::create();
    let options = Options {
        data_dir: Some(folder.path().to_owned()),
        listen: Some("127.0.0.1:0".parse().unwrap()),
        ..Options::default()
    };
    let config = options.decide().unwrap();
    let secrets = Secrets::load_or_generate(&config.secrets_file, &SystemEntropy::default(), 1).unwrap();
    let clock = Arc::new(SystemClock::default());
    let parts = Parts::open(&config, secrets, clock, Arc::new(SystemEntropy::default())).await.unwrap();
    let owner = Signer::random(parts.ctx.random()).unwrap();
    let (user, _) = app::accounts::create_user(&parts.ctx, "ada", &owner.owner()).await.unwrap();
    let wanted = IssueKey {
        user_id: user.id,
        name: "key".to_owned(),
        tier: Tier::Mm,
        scopes: Some(Scopes::all()),
        expires_at: None,
        ip_allowlist: IpAllowlist::default(),
        webhook_url: None,
        api_version: None,
        overrides: LimitOverrides::default(),
    };
    let issued = issue(&parts.ctx, wanted).await.unwrap();

    let (listener, address) = listen(config.listen).unwrap();
    let base_url = format!("http://{address}");
    let state = parts.state(&config, &base_url).unwrap();
    let running = Running::start(&parts, state, listener, axum::Router::new(), 0).unwrap();
    let http = reqwest::Client::builder().no_proxy().build().unwrap();
    for _ in 0..3 {
        let request = http.get(format!("{base_url}/v1/key")).header("x-api-key", issued.plaintext.expose());
        assert_eq!(request.send().await.unwrap().status(), 200);
    }
    drop(http);
    running.stop().await;

    let store = store::Store::open(&config.database_url).await.unwrap();
    let counted =
        "SELECT CAST(SUM(n0 + n1 + n2 + n3 + n4 + n5 + n6 + n7 + n8 + n9 + n10 + n11 + n12 + n13 + n14 + n15)
        AS BIGINT) FROM usage_latency";
    assert_eq!(oracle::number(&store, counted).await, 3);
}
