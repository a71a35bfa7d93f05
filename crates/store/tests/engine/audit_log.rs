//! The audit log: written in the transaction of the action, only for an actor, and never changed.

use std::sync::Arc;

use domain::Timestamp;
use domain::time::ManualClock;
use futures::future::join_all;
use store::audit_log::{self, Act, Actor, Entry, Filter, Phase};
use store::{Store, StoreError};

fn acting(store: &Store, name: &str) -> Store {
    let actor = Actor { name: name.to_owned(), os_user: "svc".to_owned(), host: "box".to_owned() };
    store.acting_as(actor, Arc::new(ManualClock::new(Timestamp::from_ms(1_000))))
}

async fn revoke(store: &Store, key: &str, fails: bool) -> Result<(), StoreError> {
    store
        .write((key.to_owned(), fails), |tx, (key, fails)| {
            Box::pin(async move {
                let act = Act::new("key.revoke", format!("key:{key}"));
                audit_log::note(tx, act.before(serde_json::json!({ "revoked": false })).after(true));
                if *fails { Err(StoreError::Unavailable("planted".into())) } else { Ok(()) }
            })
        })
        .await
}

async fn list(store: &Store, filter: Filter) -> Vec<Entry> {
    let listed: Result<Vec<Entry>, StoreError> =
        store.read(filter, |tx, filter| Box::pin(audit_log::list_after(tx, filter, 0, 1_000))).await;
    listed.unwrap()
}

fn assert_whole(entries: &[Entry]) {
    let mut previous = String::new();
    for (entry, seq) in entries.iter().zip(1..) {
        assert_eq!((entry.seq, &entry.hash), (seq, &entry.hash_after(&previous)));
        previous.clone_from(&entry.hash);
    }
}

store::on_each_engine! {
    async fn an_act_is_logged_with_its_actor_if_it_commits(store: Store) {
        let dara = acting(&store, "dara");
        revoke(&dara, "a", false).await.unwrap();
        revoke(&dara, "b", true).await.unwrap_err();
        let entries = list(&store, Filter::default()).await;
        let [entry] = entries.as_slice() else { panic!("{entries:?}") };
        assert_eq!((entry.actor.as_str(), entry.os_user.as_str(), entry.host.as_str()), ("dara", "svc", "box"));
        assert_eq!((entry.action.as_str(), entry.subject.as_str()), ("key.revoke", "key:a"));
        assert_eq!(entry.phase, Phase::Done.as_str());
        assert_eq!(entry.before.as_deref(), Some(r#"{"revoked":false}"#));
        assert_eq!(entry.after.as_deref(), Some("true"));
        assert_whole(&entries);
    }

    async fn a_unit_without_an_actor_logs_nothing(store: Store) {
        let dara = acting(&store, "dara");
        revoke(&dara, "a", false).await.unwrap();
        revoke(&store, "b", false).await.unwrap();
        assert_eq!(list(&store, Filter::default()).await.len(), 1);
    }

    async fn concurrent_acts_are_numbered_without_gaps(store: Store) {
        let stores: Vec<Store> = (0..20).map(|n| acting(&store, &format!("actor {n}"))).collect();
        for done in join_all(stores.iter().map(|store| revoke(store, "a", false))).await {
            done.unwrap();
        }
        let entries = list(&store, Filter::default()).await;
        assert_eq!(entries.len(), 20);
        assert_whole(&entries);
        let head: Result<(i64, String), StoreError> =
            store.read((), |tx, ()| Box::pin(audit_log::find_head(tx))).await;
        assert_eq!(head, Ok((20, entries[19].hash.clone())));
    }

    async fn entries_are_filtered_by_time_actor_action_and_subject(store: Store) {
        for (actor, key) in [("dara", "a"), ("eve", "a"), ("dara", "b")] {
            revoke(&acting(&store, actor), key, false).await.unwrap();
        }
        let filter = Filter::default();
        let text = |text: &str| Some(text.to_owned());
        let count = async |filter: Filter| list(&store, filter).await.len();
        assert_eq!(count(Filter { actor: text("dara"), ..filter.clone() }).await, 2);
        assert_eq!(count(Filter { subject: text("key:a"), ..filter.clone() }).await, 2);
        assert_eq!(count(Filter { action: text("key.revoke"), ..filter.clone() }).await, 3);
        assert_eq!(count(Filter { action: text("key"), ..filter.clone() }).await, 3);
        assert_eq!(count(Filter { action: text("ke"), ..filter.clone() }).await, 0);
        assert_eq!(count(Filter { since: Some(Timestamp::from_ms(1_001)), ..filter.clone() }).await, 0);
        assert_eq!(count(Filter { since: Some(Timestamp::from_ms(1_000)), ..filter }).await, 3);
    }
}

#[test]
fn no_statement_changes_or_removes_an_entry() {
    fn texts(folder: &std::path::Path, found: &mut Vec<String>) {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                texts(&path, found);
            } else if path.extension().is_some_and(|extension| extension == "rs" || extension == "sql") {
                found.push(std::fs::read_to_string(path).unwrap());
            }
        }
    }
    let mut found = Vec::new();
    texts(&std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("src"), &mut found);
    assert!(
        found.iter().any(|text| text.contains("INSERT INTO audit_entries")),
        "the sources were not found"
    );
    for text in found {
        let words = text.split_whitespace().collect::<Vec<_>>().join(" ").to_uppercase();
        for statement in ["DELETE FROM AUDIT_ENTRIES", "UPDATE AUDIT_ENTRIES", "DROP TABLE AUDIT_ENTRIES"] {
            assert!(!words.contains(statement), "{statement}");
        }
    }
}

#[test]
fn a_changed_or_removed_entry_is_detected() {
    let entry = |seq, subject: &str| Entry {
        seq,
        at: Timestamp::from_ms(7),
        actor: "dara".into(),
        os_user: "svc".into(),
        host: "box".into(),
        action: "key.revoke".into(),
        subject: subject.into(),
        phase: "done".into(),
        before: None,
        after: Some("1".into()),
        hash: String::new(),
    };
    let first = entry(1, "key:a");
    assert_ne!(first.hash_after(""), entry(1, "key:b").hash_after(""));
    assert_ne!(first.hash_after(""), entry(2, "key:a").hash_after(""));
    assert_ne!(first.hash_after(""), first.hash_after("x"));
    let (mut one, mut other) = (first.clone(), first);
    (one.actor, one.os_user) = ("da".into(), "rasvc".into());
    (other.before, other.after) = (Some("1".into()), None);
    assert_ne!(one.hash_after(""), other.hash_after(""));
}
