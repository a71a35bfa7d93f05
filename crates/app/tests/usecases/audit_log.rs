//! Administrative acts are recorded in the audit log; acts of users and workers are not.

use std::sync::Arc;

use app::audit_log::{self, Actor, Entry, Filter};
use app::kill_switches::{self, Setting, TRADING};
use app::markets::{self, Move};
use app::{Ctx, InvalidState, catalog, keys};
use domain::ids::OrganizationId;
use domain::key::Tier;
use serde_json::Value;
use store::catalog::Organization;
use store::{Store, StoreError};
use testkit::key_of;

use crate::scene::Scene;

/// Returns the context of an operator's command, while the service is running.
pub fn operator(ctx: &Ctx) -> Ctx {
    let actor = Actor { name: "dara".to_owned(), os_user: "svc".to_owned(), host: "box".to_owned() };
    let mut ctx = ctx.clone();
    ctx.store = ctx.store.acting_as(actor, Arc::clone(&ctx.clock));
    ctx
}

pub async fn entries(ctx: &Ctx) -> Vec<Entry> {
    let mut listed = audit_log::list(ctx, Filter::default(), i64::MAX, 1_000).await.unwrap();
    listed.reverse();
    listed
}

pub fn told(entries: &[Entry]) -> Vec<String> {
    entries.iter().map(|e| format!("{} {} {}", e.action, e.subject, e.phase)).collect()
}

store::on_each_engine! {
    async fn administrative_acts_are_logged_without_secrets(store: Store) {
        let Scene { app, ada, market, .. } = Scene::on(store).await;
        let ctx = operator(&app.ctx);
        let wanted = keys::IssueKey {
            webhook_url: Some("https://hooks.example/services/T0P5ECRET".to_owned()),
            ..key_of(&ada, Tier::Developer)
        };
        let issued = keys::issue(&ctx, wanted).await.unwrap();
        let id = issued.key.id;
        keys::revoke(&ctx, id).await.unwrap();
        let organization = Organization {
            id: OrganizationId(ctx.uuid()),
            name: "League".to_owned(),
            slug: "league".to_owned(),
            description: None,
            logo: None,
            website: None,
        };
        let organization = catalog::add_organization(&ctx, organization).await.unwrap().id;
        let rename = |organization: &mut Organization| organization.name = "Club".to_owned();
        catalog::change_organization(&ctx, organization, rename).await.unwrap();
        kill_switches::set(&ctx, TRADING, Setting::Off, "dara", Some("drill".to_owned())).await.unwrap();
        markets::make_move(&ctx, &app.roles.guardian, market.id, Move::FREEZE).await.unwrap();

        let entries = entries(&ctx).await;
        assert_eq!(told(&entries), [
            format!("key.issue key:{id} done"),
            format!("key.revoke key:{id} done"),
            format!("organization.create organization:{organization} done"),
            format!("organization.update organization:{organization} done"),
            "switch.set switch:trading done".to_owned(),
            format!("market.freeze market:{} begun", market.id),
            format!("market.freeze market:{} done", market.id),
        ]);
        assert!(entries.iter().all(|entry| entry.actor == "dara"));
        let state = |text: &Option<String>| text.as_deref().map_or(Value::Null, |text| serde_json::from_str(text).unwrap());
        assert_eq!(state(&entries[1].before)["revoked"], false);
        assert!(state(&entries[1].after)["revokedAt"].is_string());
        assert_eq!((state(&entries[3].before)["name"].clone(), state(&entries[3].after)["name"].clone()),
            ("League".into(), "Club".into()));
        assert!(state(&entries[6].after)["txHash"].is_string());
        let secrets = [issued.plaintext.expose(), issued.webhook_secret.expose(), "T0P5ECRET"];
        for entry in &entries {
            let text = audit_log::to_json(entry).to_string();
            assert!(secrets.iter().all(|secret| !text.contains(secret)), "{text}");
        }
        assert_eq!(audit_log::verify(&ctx).await.unwrap().broken_at, None);
    }

    async fn an_act_rejected_by_the_chain_is_logged_as_failed(store: Store) {
        let Scene { app, market, .. } = Scene::on(store).await;
        let ctx = operator(&app.ctx);
        markets::make_move(&ctx, &app.roles.guardian, market.id, Move::Unfreeze).await.unwrap_err();
        let entries = entries(&ctx).await;
        let phases: Vec<_> = entries.iter().map(|entry| entry.phase.as_str()).collect();
        assert_eq!(phases, ["begun", "failed"]);
        assert!(entries[1].after.as_ref().unwrap().contains("error"));
    }

    async fn a_forbidden_transition_reports_the_current_state(store: Store) {
        let Scene { app, market, .. } = Scene::on(store).await;
        let ctx = operator(&app.ctx);
        let refused = markets::make_move(&ctx, &app.roles.guardian, market.id, Move::Unfreeze).await.unwrap_err();
        let state = refused.source.as_ref().and_then(|source| source.downcast_ref());
        assert_eq!(state, Some(&InvalidState("the market is OPEN".to_owned())));
        markets::cancel(&ctx, &app.roles.resolver, market.id, None).await.unwrap();
        let again = markets::cancel(&ctx, &app.roles.resolver, market.id, None).await.unwrap_err();
        assert_eq!(again.detail, "The market is CANCELLED.");
        let failed = entries(&ctx).await.pop().unwrap();
        assert!(failed.after.unwrap().contains("The market is CANCELLED."));
    }

    async fn every_entry_of_a_cancel_has_its_reason(store: Store) {
        let Scene { app, market, .. } = Scene::on(store).await;
        let ctx = operator(&app.ctx);
        assert_eq!(markets::cancel_reason(&ctx, market.id).await.unwrap(), None);
        let reason = "the match was called off";
        markets::cancel(&ctx, &app.roles.resolver, market.id, Some(reason.to_owned())).await.unwrap();
        let entries = entries(&ctx).await;
        assert_eq!(entries.len(), 4, "of the freeze and of the cancel");
        assert!(entries.iter().all(|entry| entry.after.as_ref().unwrap().contains(reason)));
        assert_eq!(markets::cancel_reason(&ctx, market.id).await.unwrap().as_deref(), Some(reason));
    }

    async fn requests_and_workers_leave_no_entries(store: Store) {
        let Scene { app, key, market, .. } = Scene::on(store).await;
        key.buy(&market, 0, "10").await;
        app.run_workers().await;
        assert!(entries(&app.ctx).await.is_empty());
    }

    async fn a_changed_or_removed_entry_is_detected(store: Store) {
        let Scene { app, .. } = Scene::on(store).await;
        let ctx = operator(&app.ctx);
        for setting in [Setting::Off, Setting::On, Setting::Off] {
            kill_switches::set(&ctx, TRADING, setting, "dara", None).await.unwrap();
        }
        assert_eq!(audit_log::verify(&ctx).await.unwrap().broken_at, None);
        let tamper = async |sql: &'static str| {
            let done: Result<u64, StoreError> =
                ctx.store.write(sql, |tx, sql| Box::pin(async move { tx.exec(sql, &[]).await })).await;
            done.unwrap();
            audit_log::verify(&ctx).await.unwrap().broken_at
        };
        assert_eq!(tamper("UPDATE audit_entries SET actor = 'eve' WHERE seq = 2").await, Some(2));
        assert_eq!(tamper("DELETE FROM audit_entries WHERE seq = 2").await, Some(2));
        assert_eq!(tamper("DELETE FROM audit_entries WHERE seq = 3").await, Some(2));
        assert_eq!(tamper("DELETE FROM audit_entries WHERE seq = 1").await, Some(1));
    }
}
