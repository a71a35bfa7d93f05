//! Lanes whose keys a remote signer holds. Its answers are checked, it never signs two transactions
//! with one nonce, and without it only its lane stops.

use std::collections::BTreeSet;

use app::lanes::{self, ServerSettings, SignerPlace};
use app::trades::Executor;
use app::worker::Worker;
use chain::LaneSigner;
use domain::ids::TradeId;
use domain::key::Tier;
use domain::trade::Status;
use store::Store;
use testkit::{FakeWeb3signer, Fault, SignerMode, TestApp, TestKey, TestMarket};

/// A service whose lane 1 is signed by a web3signer, with a key of an account in each lane.
struct Remote {
    app: TestApp,
    server: FakeWeb3signer,
    market: TestMarket,
    keys: [TestKey; 2],
}

impl Remote {
    async fn on(store: Store) -> Self {
        let mut app = TestApp::with().on(store).lanes(2).start().await;
        let market = app.market(&["Yes", "No"]).await;
        let server = FakeWeb3signer::start(&app.roles.executors[1]).await;
        let place = SignerPlace::Web3signer(ServerSettings { url: server.url.clone() });
        lanes::activate(&app.ctx, app.roles.executors[1].address(), &place).await.unwrap();
        app.workers.executors[1] = Executor::new(1, signer(&app), "one".to_owned());
        app.workers.executors[1].tick(&app.ctx).await.unwrap();
        let keys = [key_in(&app, 0).await, key_in(&app, 1).await];
        Self { app, server, market, keys }
    }

    async fn buys(&self, count: usize) -> Vec<TradeId> {
        let mut trades = Vec::with_capacity(count);
        for _ in 0..count {
            self.app.clock.advance(1);
            trades.push(self.keys[1].buy(&self.market, 0, "1").await.id);
        }
        trades
    }

    async fn assert_completed(&self, trades: &[TradeId]) {
        for id in trades {
            assert_eq!(self.app.status(*id).await, Status::Completed);
        }
        assert_eq!(self.app.rows().await.movements, i64::try_from(trades.len()).unwrap());
        self.app.assert_ledger_equals_chain().await;
    }

    /// The number of different transactions that the server was asked to sign.
    fn different(&self) -> usize {
        self.server.asked().into_iter().collect::<BTreeSet<_>>().len()
    }
}

/// Returns the signer of lane 1 as a process builds it at its start.
fn signer(app: &TestApp) -> LaneSigner {
    let mut remote = lanes::remote(&app.ctx);
    assert_eq!(remote.len(), 1);
    let (lane, signer) = remote.remove(0);
    assert_eq!((lane, signer.address()), (1, app.roles.executors[1].address()));
    signer
}

async fn key_in(app: &TestApp, lane: u16) -> TestKey {
    for n in 0..64 {
        let user = app.user(&format!("user {n} of {lane}")).await;
        if app.ctx.process.lanes.of(user.account) == lane {
            app.mint(user.account, domain::Usdc::from_whole(1_000)).await;
            return app.key(&user, Tier::Mm).await;
        }
    }
    panic!("no account is assigned to lane {lane}");
}

store::on_each_engine! {
    async fn a_web3signer_signs_the_batches_of_its_lane(store: Store) {
        let scene = Remote::on(store).await;
        let trades = scene.buys(3).await;
        scene.app.run_workers().await;
        assert_eq!(scene.server.asked().len(), 1, "one batch");
        scene.assert_completed(&trades).await;
    }

    async fn a_signer_that_lies_or_fails_stops_only_its_lane(store: Store) {
        let scene = Remote::on(store).await;
        let app = &scene.app;
        let trades = scene.buys(2).await;
        let other = scene.keys[0].buy(&scene.market, 0, "1").await.id;
        let sent = app.faults.sent().len();
        let modes =
            [SignerMode::OtherKey, SignerMode::Garbage, SignerMode::Broken, SignerMode::WithoutKey];
        for mode in modes {
            scene.server.becomes(mode);
            let error = app.workers.executors[1].tick(&app.ctx).await.unwrap_err();
            assert!(error.to_string().contains("signer of 0x"), "{error}");
            assert_eq!(app.faults.sent().len(), sent, "{mode:?}: nothing is sent");
        }
        app.workers.executors[0].tick(&app.ctx).await.unwrap();
        app.workers.synchronise(&app.ctx).await;
        assert_eq!(app.status(other).await, Status::Completed, "the other lane works");
        scene.server.becomes(SignerMode::Honest);
        app.run_workers().await;
        assert_eq!(scene.different(), 1, "the same transaction each time");
        scene.assert_completed(&[trades, vec![other]].concat()).await;
    }

    async fn a_lost_signature_is_asked_for_again_after_a_crash(store: Store) {
        let mut scene = Remote::on(store).await;
        let trades = scene.buys(2).await;
        scene.server.becomes(SignerMode::LostAnswer);
        scene.app.workers.executors[1].tick(&scene.app.ctx).await.unwrap_err();
        scene.app.restart("two").await;
        scene.app.workers.executors[1] = Executor::new(1, signer(&scene.app), "two".to_owned());
        scene.server.becomes(SignerMode::Honest);
        let later = scene.buys(1).await;
        scene.app.run_workers().await;
        let asked = scene.server.asked();
        assert_eq!(asked[0], asked[1], "the same nonce, calls and fees");
        assert_eq!(scene.different(), 2, "and a second batch");
        scene.assert_completed(&[trades, later].concat()).await;
    }

    async fn trades_of_a_lane_without_its_signer_continue_in_another_lane_when_it_is_removed(store: Store) {
        let scene = Remote::on(store).await;
        let app = &scene.app;
        let trades = scene.buys(3).await;
        scene.server.becomes(SignerMode::Broken);
        app.workers.executors[1].tick(&app.ctx).await.unwrap_err();
        let nonce = app.trade(trades[0]).await.nonce;
        assert!(nonce.is_some());
        lanes::remove(&app.ctx, app.roles.executors[1].address()).await.unwrap();
        for _ in 0..4 {
            app.run_workers().await;
        }
        let first = app.trade(trades[0]).await;
        assert_eq!((first.lane, first.nonce), (0, nonce), "the same intent");
        scene.assert_completed(&trades).await;
    }

    async fn an_unmined_batch_gets_higher_fees_from_its_signer(store: Store) {
        let scene = Remote::on(store).await;
        let app = &scene.app;
        let trades = scene.buys(1).await;
        app.faults.next_send(Fault::LostRequest);
        app.workers.executors[1].tick(&app.ctx).await.unwrap();
        assert_eq!(app.status(trades[0]).await, Status::Executing);
        app.advance_ms(app.ctx.config.replace_after_ms).await;
        app.run_workers().await;
        assert_eq!(scene.different(), 2, "with other fees");
        scene.assert_completed(&trades).await;
    }
}

#[tokio::test]
async fn a_lane_is_not_added_if_its_signer_lacks_the_key() {
    let app = TestApp::with().lanes(2).start().await;
    let server = FakeWeb3signer::start(&app.roles.executors[0]).await;
    let place = SignerPlace::Web3signer(ServerSettings { url: server.url.clone() });
    let executor = app.roles.executors[1].address();
    let refused = lanes::activate(&app.ctx, executor, &place).await.unwrap_err();
    assert!(refused.to_string().contains("does not have the executor's key"), "{refused}");
}
