//! Organizations and partners, and their threads and markets.

use http_testkit::public_scene::{self, Scene, ids, ok};

#[tokio::test]
async fn an_organization_shows_its_sums() {
    let scene = Scene::new().await;
    let answer = scene.get(&format!("/api/organizations/{}", scene.organization)).await;
    ok(&answer);
    insta::assert_snapshot!(answer);
}

#[tokio::test]
async fn active_and_inactive_partners_show_their_sums() {
    let scene = Scene::new().await;
    let answer = scene.get(&format!("/api/partners/{}", scene.partner)).await;
    ok(&answer);
    insta::assert_snapshot!(answer);
    let idle = public_scene::partner(&scene.app, scene.organization, "Idle", false).await;
    let body = scene.ok(&format!("/api/partners/{idle}")).await;
    assert_eq!(
        (&body["partner"]["status"], &body["partner"]["marketCount"]),
        (&"inactive".into(), &0.into())
    );
}

#[tokio::test]
async fn partners_are_filtered_by_status() {
    let scene = Scene::new().await;
    scene.app.advance_ms(1_000).await;
    let idle = public_scene::partner(&scene.app, scene.organization, "Idle", false).await.to_string();
    let active = scene.partner.to_string();
    let path = format!("/api/organizations/{}/partners", scene.organization);
    for (query, expected) in [
        ("", vec![&active]),
        ("?status=active", vec![&active]),
        ("?status=inactive", vec![&idle]),
        ("?status=all", vec![&idle, &active]),
        ("?status=all&limit=1&offset=1", vec![&active]),
    ] {
        let found = ids(&scene.ok(&format!("{path}{query}")).await, "partners");
        assert_eq!(found.iter().collect::<Vec<_>>(), expected, "{query}");
    }
}

#[tokio::test]
async fn organizations_and_partners_list_only_their_own_threads_and_markets() {
    let scene = Scene::new().await;
    let thread = scene.thread.to_string();
    let other = public_scene::organization(&scene.app, "Other").await;
    let idle = public_scene::partner(&scene.app, other, "Idle", false).await;
    public_scene::thread(&scene.app, |thread| thread.organization_id = Some(other)).await;
    for path in
        [format!("/api/organizations/{}", scene.organization), format!("/api/partners/{}", scene.partner)]
    {
        let found = scene.ok(&format!("{path}/threads")).await;
        assert_eq!(ids(&found, "threads"), [thread.as_str()], "{path}");
        for (status, count) in [("upcoming", 0), ("closed", 0), ("all", 1), ("active", 1)] {
            let found = scene.ok(&format!("{path}/threads?status={status}")).await;
            assert_eq!(ids(&found, "threads").len(), count, "{path} {status}");
        }
    }
    assert_eq!(ids(&scene.ok(&format!("/api/organizations/{other}/threads")).await, "threads").len(), 1);
    assert!(ids(&scene.ok(&format!("/api/partners/{idle}/threads")).await, "threads").is_empty());
    let markets = scene.ok(&format!("/api/organizations/{}/markets", scene.organization)).await;
    assert_eq!(ids(&markets, "markets"), [scene.cup.id.to_string(), scene.rain.id.to_string()]);
    assert_eq!(ids(&scene.ok(&format!("/api/organizations/{other}/markets")).await, "markets").len(), 0);
}

#[tokio::test]
async fn an_unknown_or_malformed_organization_or_partner_is_not_found() {
    let scene = Scene::new().await;
    let thread = scene.thread.to_string();
    for id in ["0198f3a0-5d4e-7c1b-9a2f-3b4c5d6e7f80", "1", "%ff", &thread] {
        for below in ["", "/threads", "/markets", "/partners"] {
            scene.refused(&format!("/api/organizations/{id}{below}"), 404, "ORGANIZATION_NOT_FOUND").await;
        }
        for below in ["", "/threads"] {
            scene.refused(&format!("/api/partners/{id}{below}"), 404, "PARTNER_NOT_FOUND").await;
        }
    }
}
