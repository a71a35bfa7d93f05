//! Kill switches: they reach every process. A halt stops new trades and leaves everything else
//! alone.

use app::kill_switches::{Setting, TRADING, refresh, set};
use domain::ErrorCode;
use domain::trade::Status;
use store::Store;
use testkit::Fault;

use crate::scene::Scene;

const WHY: &str = "the oracle is wrong";

store::on_each_engine! {
    async fn a_switch_takes_effect_in_other_processes_at_their_next_read(store: Store) {
        let Scene { app, .. } = Scene::on(store).await;
        let other = app.ctx_of_another_process();
        let check = |ctx: &app::Ctx| ctx.process.switches.check("GET", "/v1/markets", false).err().map(|e| (e.code, e.retry_after_s));
        let name = "GET /v1/markets";
        let thrown = set(&app.ctx, name, Setting::Off, "ada", Some(WHY.to_owned())).await.unwrap();
        assert_eq!((thrown.thrown_at, thrown.changed_by.as_str()), (Some(app.ctx.now()), "ada"));
        assert_eq!(check(&app.ctx), Some((ErrorCode::RouteDisabled, Some(30))));
        assert_eq!(check(&other), None);
        refresh(&other).await.unwrap();
        assert_eq!(check(&other), Some((ErrorCode::RouteDisabled, Some(30))));
        assert!(other.process.switches.check("POST", "/v1/markets", true).is_ok());
        assert!(other.process.switches.check("GET", "/v1/markets/{id}", false).is_ok());

        app.clock.advance(1_000);
        let again = set(&app.ctx, name, Setting::Off, "bob", None).await.unwrap();
        assert_eq!((again.thrown_at, again.changed_by.as_str(), again.reason), (thrown.thrown_at, "bob", None));
        let back = set(&other, name, Setting::On, "bob", None).await.unwrap();
        assert_eq!((back.thrown_at, back.changed_at), (None, app.ctx.now()));
        app.run_workers().await;
        assert_eq!((check(&app.ctx), check(&other)), (None, None));
        let rows =
            app.ctx.store.read((), |tx, ()| Box::pin(store::kill_switches::list(tx))).await;
        assert_eq!(rows.unwrap(), [back]);
    }

    async fn a_halt_delays_pending_trades_and_signed_ones_continue(store: Store) {
        let Scene { app, key, market, .. } = Scene::on(store).await;
        let signed = key.buy(&market, 0, "5").await.id;
        app.faults.next_send(Fault::LostRequest);
        drop(app.workers.try_run(&app.ctx).await);
        assert_eq!(app.status(signed).await, Status::Executing);
        let pending = key.buy(&market, 0, "7").await.id;
        set(&app.ctx, TRADING, Setting::Off, "ada", None).await.unwrap();
        app.run_workers().await;
        app.advance_ms(app.ctx.config.resend_after_ms).await;
        app.run_workers().await;
        assert_eq!(app.status(signed).await, Status::Completed);
        assert_eq!(app.status(pending).await, Status::Pending);
        set(&app.ctx, TRADING, Setting::On, "ada", None).await.unwrap();
        app.run_workers().await;
        assert_eq!(app.status(pending).await, Status::Completed);
        app.assert_ledger_equals_chain().await;
    }
}

#[tokio::test]
async fn a_failed_read_keeps_the_known_switches() {
    let Scene { app, .. } = Scene::new().await;
    set(&app.ctx, TRADING, Setting::Off, "ada", None).await.unwrap();
    app.ctx.store.close().await;
    assert!(refresh(&app.ctx).await.is_err());
    assert!(app.ctx.process.switches.is_trading_halted());
}
