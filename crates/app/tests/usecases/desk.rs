//! Requests that arrive together. On PostgreSQL their trades are created in common transactions.

use app::AppError;
use app::trades::Accepted;
use domain::key::Tier;
use domain::{ErrorCode, Usdc};
use futures::FutureExt;
use futures::future::{join_all, poll_fn};
use store::Store;
use store::testing::{ProxyFault, proxied_postgres};
use testkit::{TestApp, TestKey, TestMarket};
use tokio::task::JoinHandle;

use crate::scene::Scene;

type Sent = JoinHandle<Result<Accepted, AppError>>;

/// A buy that is sent by a task of its own, like that of a connection.
fn send(key: &TestKey, market: &TestMarket, usdc: &str, idempotency_key: Option<String>) -> Sent {
    let (key, market, usdc) = (key.clone(), *market, usdc.to_owned());
    tokio::spawn(async move {
        let buy = key.buy(&market, 0, &usdc);
        match idempotency_key {
            Some(name) => buy.idempotent(&name).send().await,
            None => buy.send().await,
        }
    })
}

async fn outcomes(sent: Vec<Sent>) -> Vec<Result<Accepted, AppError>> {
    join_all(sent).await.into_iter().map(Result::unwrap).collect()
}

store::on_each_engine! {
    async fn a_rejection_affects_only_its_own_request(store: Store) {
        let Scene { app, ada, key, market } = Scene::on(store).await;
        let poor = app.user("bob").funded("3").await;
        let poor = app.key(&poor, Tier::Mm).await;
        let (capped, paused) = (app.key(&ada, Tier::Free).await, app.key(&ada, Tier::Mm).await);
        capped.buy(&market, 0, "500").await;
        capped.buy(&market, 0, "499").await;
        // The callers below hold the key's row from before the pause.
        paused.pause().await;
        let before = app.rows().await;
        let mut sent = Vec::new();
        for n in 0..30 {
            sent.push((None, send(&key, &market, "1", Some(format!("good {n}")))));
            if n % 3 == 0 {
                let rejected = [
                    (&capped, "1.000001", ErrorCode::SpendingLimitExceeded),
                    (&poor, "3.000001", ErrorCode::InsufficientBalance),
                    (&paused, "1", ErrorCode::ApiKeyPaused),
                ];
                for (key, usdc, code) in rejected {
                    sent.push((Some(code), send(key, &market, usdc, Some(format!("bad {n} {code:?}")))));
                }
            }
        }
        let (expected, sent): (Vec<_>, Vec<_>) = sent.into_iter().unzip();
        for (expected, outcome) in expected.into_iter().zip(outcomes(sent).await) {
            match (expected, outcome) {
                (None, Ok(Accepted::Created(_))) => {}
                (Some(code), Err(refusal)) => {
                    assert_eq!(refusal.code, code, "{refusal} {:?}", refusal.source);
                    assert_eq!(refusal.extensions["submission"], "not_submitted");
                }
                (expected, outcome) => panic!("{expected:?}: {outcome:?}"),
            }
        }
        let after = app.rows().await;
        // Each has a trade, its key and two events of its trace. The rejected ones have left nothing.
        assert_eq!(after.trades, before.trades + 30);
        assert_eq!(after.idempotency, before.idempotency + 30);
        assert_eq!(after.trace_events, before.trace_events + 60);
        assert_eq!((app.spent(&key).await, app.spent(&capped).await), (Usdc::from_whole(30), Usdc::from_whole(999)));
        // A rejected request has not used up its key.
        app::keys::resume(&app.ctx, paused.caller.key.id).await.unwrap();
        paused.buy(&market, 0, "1").idempotent("bad 0 ApiKeyPaused").await;
        app.run_workers().await;
        app.assert_ledger_equals_chain().await;
    }

    async fn equal_idempotency_keys_that_arrive_together_create_one_trade_each(store: Store) {
        let Scene { app, key, market, .. } = Scene::on(store).await;
        let sent = (0..120).map(|n| send(&key, &market, "1", Some(format!("key {}", n % 40))));
        let mut created = 0;
        let mut ids: Vec<std::collections::HashSet<_>> = vec![Default::default(); 40];
        for (n, outcome) in outcomes(sent.collect()).await.into_iter().enumerate() {
            let trade = match outcome.unwrap() {
                Accepted::Created(trade) => {
                    created += 1;
                    trade
                }
                Accepted::ReplayedByKey(trade) => trade,
                other => panic!("{other:?}"),
            };
            ids[n % 40].insert(trade.id);
        }
        assert!(ids.iter().all(|ids| ids.len() == 1), "{ids:?}");
        assert_eq!((created, app.rows().await.trades), (40, 40));
        assert_eq!(app.spent(&key).await, Usdc::from_whole(40));
    }

    async fn two_hundred_parallel_buys_at_the_edge_fill_the_cap_to_the_micro_usdc(store: Store) {
        let app = TestApp::with().on(store).start().await;
        let Scene { app, key, market, .. } = Scene::with(app, "100000", Tier::Free).await;
        let sent = (0..200).map(|n| send(&key, &market, "7.000001", Some(format!("{n}"))));
        let outcomes = outcomes(sent.collect()).await;
        for refusal in outcomes.iter().filter_map(|outcome| outcome.as_ref().err()) {
            assert_eq!(refusal.code, ErrorCode::SpendingLimitExceeded, "{refusal} {:?}", refusal.source);
        }
        // The cap is 1,000: 142 times 7.000001 leave 5.999858.
        assert_eq!(outcomes.iter().filter(|outcome| outcome.is_ok()).count(), 142);
        let refusal = key.buy(&market, 0, "5.999859").refused().await;
        assert_eq!(refusal.code, ErrorCode::SpendingLimitExceeded);
        key.buy(&market, 0, "5.999858").await;
        assert_eq!(app.spent(&key).await, Usdc::from_whole(1_000));
        app.run_workers().await;
        app.assert_ledger_equals_chain().await;
    }

    async fn a_client_that_hangs_up_leaves_a_whole_trade_or_nothing(store: Store) {
        let Scene { app, key, market, .. } = Scene::on(store).await;
        let cut = (0..60_usize).map(|n| {
            let key = key.clone();
            tokio::spawn(async move {
                let name = format!("{n}");
                let mut request = Box::pin(key.buy(&market, 0, "1").idempotent(&name).send());
                // Polled a few times, and then dropped.
                let mut left = n % 12;
                poll_fn(|context| {
                    if left == 0 {
                        return std::task::Poll::Ready(());
                    }
                    left -= 1;
                    request.poll_unpin(context).map(drop)
                })
                .await;
            })
        });
        for task in join_all(cut).await {
            task.unwrap();
        }
        let retried: Vec<_> = (0..60).map(|n| send(&key, &market, "1", Some(format!("{n}")))).collect();
        for outcome in outcomes(retried).await {
            assert!(matches!(outcome, Ok(Accepted::Created(_) | Accepted::ReplayedByKey(_))), "{outcome:?}");
        }
        let rows = app.rows().await;
        assert_eq!((rows.trades, rows.idempotency, rows.trace_events), (60, 60, 120));
        assert_eq!(app.spent(&key).await, Usdc::from_whole(60));
        app.run_workers().await;
        app.assert_ledger_equals_chain().await;
    }

    async fn a_client_request_id_is_found_with_another_key_after_the_cap_is_used_up(store: Store) {
        let app = TestApp::with().on(store).start().await;
        let Scene { key, market, .. } = Scene::with(app, "100000", Tier::Free).await;
        let buy = |name: &str| key.buy(&market, 0, "500").named("mine").idempotent(name);
        let first = buy("first").await;
        key.buy(&market, 0, "499").await;
        assert_eq!(buy("second").found().await.id, first.id);
        // The first request of that key has created nothing, so the key is free.
        key.buy(&market, 0, "1").idempotent("second").await;
    }

    async fn trades_of_one_group_join_the_queue_in_their_order(store: Store) {
        let Scene { app, key, market, .. } = Scene::on(store).await;
        let sent = (0..50).map(|n| send(&key, &market, "1", Some(format!("{n}")))).collect();
        outcomes(sent).await.into_iter().for_each(|outcome| drop(outcome.unwrap()));
        const SQL: &str = "SELECT queue_rank FROM trades ORDER BY queue_rank";
        let ranks: Result<Vec<i64>, store::StoreError> =
            app.ctx.store.read((), |tx, ()| Box::pin(tx.list(SQL, &[], |row| row.only()))).await;
        assert_eq!(ranks, Ok((0..50).collect()));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_unanswered_commit_is_unknown_to_every_request_of_its_group() {
    let Some((store, proxy)) = proxied_postgres("").await else { return };
    let Scene { app, key, market, .. } = Scene::on(store).await;
    for (round, fault) in [ProxyFault::CutAfter, ProxyFault::CutBefore].into_iter().enumerate() {
        proxy.plan("COMMIT\0", fault, 1);
        let name = |n: usize| Some(format!("{round} {n}"));
        let sent = (0..40).map(|n| send(&key, &market, "1", name(n))).collect();
        let mut unknown = Vec::new();
        for (n, outcome) in outcomes(sent).await.into_iter().enumerate() {
            if let Err(refusal) = outcome {
                assert_eq!(refusal.code, ErrorCode::DependencyUnavailable, "{refusal}");
                assert_eq!(refusal.extensions["submission"], "unknown");
                unknown.push(n);
            }
        }
        assert!(!unknown.is_empty());
        let again = unknown.iter().map(|n| send(&key, &market, "1", name(*n))).collect();
        for outcome in outcomes(again).await {
            match fault {
                ProxyFault::CutAfter => {
                    assert!(matches!(outcome, Ok(Accepted::ReplayedByKey(_))), "{outcome:?}")
                }
                _ => assert!(matches!(outcome, Ok(Accepted::Created(_))), "{outcome:?}"),
            }
        }
    }
    assert_eq!(app.rows().await.trades, 80);
    assert_eq!(app.spent(&key).await, Usdc::from_whole(80));
}

#[tokio::test(flavor = "multi_thread")]
async fn requests_that_arrive_together_share_a_transaction() {
    let Some(store) = store::testing::postgres().await else { return };
    let Scene { app, key, market, .. } = Scene::on(store).await;
    let sent = (0..200).map(|n| send(&key, &market, "1", Some(format!("{n}")))).collect();
    outcomes(sent).await.into_iter().for_each(|outcome| drop(outcome.unwrap()));
    let text = app.ctx.process.metrics.text();
    let read = |series: &str| -> usize {
        let line = text.lines().find_map(|line| line.strip_prefix(series)).unwrap();
        line.trim().parse::<f64>().unwrap() as usize
    };
    assert_eq!(read("foretell_desk_group_size_sum"), 200, "{text}");
    let (groups, of_one) =
        (read("foretell_desk_group_size_count"), read("foretell_desk_group_size_bucket{le=\"1.0\"}"));
    assert!(of_one < groups && groups < 200, "{of_one} of {groups}");
    let bounded = read("foretell_desk_group_size_bucket{le=\"64.0\"}");
    assert_eq!(bounded, groups);
}

#[tokio::test]
async fn first_requests_are_not_looked_up() {
    let Scene { app, key, market, .. } = Scene::new().await;
    let looked_up = || {
        let text = app.ctx.process.metrics.text();
        let series = r#"foretell_store_seconds_count{unit="app::trades::replay"}"#;
        text.lines().find_map(|line| line.strip_prefix(series)?.trim().parse::<u32>().ok()).unwrap_or(0)
    };
    for n in 0..20 {
        key.buy(&market, 0, "1").idempotent(&format!("{n}")).await;
    }
    // A request whose checks take long is looked up, so a busy machine may have some.
    let of_first = looked_up();
    assert!(of_first < 20, "{of_first}");
    key.buy(&market, 0, "1").idempotent("0").replayed().await;
    assert_eq!(looked_up(), of_first + 1);
}
