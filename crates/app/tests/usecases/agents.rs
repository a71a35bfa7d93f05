//! Trades of agents: only a person confirms the large ones.

use app::caller::Caller;
use app::people::{Country, confirm_trade};
use app::sessions::Person;
use app::trades::{confirm, confirmation_of};
use app::{AppError, PersonError};
use domain::ErrorCode;
use domain::ids::TradeId;
use domain::key::Tier;
use domain::session::STEP_UP_MS;
use domain::trade::{ConfirmationKey, Status};
use store::Store;
use store::trades::Trade;
use testkit::{TestApp, TestKey, device, key_of};

use crate::scene::Scene;

/// Returns the token that a program would confirm the trade with.
fn token_of(app: &TestApp, trade: &Trade) -> String {
    ConfirmationKey::derive(app.ctx.config.pepper().unwrap().expose()).token(trade.id)
}

/// Asserts that this caller gets no token of a held trade, and cannot confirm it with the right one.
async fn assert_needs_owner(app: &TestApp, caller: &Caller, trade: &Trade) {
    assert!(confirmation_of(&app.ctx, caller, trade).unwrap().token.is_none());
    let token = token_of(app, trade);
    let refused = confirm(&app.ctx, caller, &trade.id.to_string(), &token).await.unwrap_err();
    assert_eq!(refused.code, ErrorCode::OwnerConfirmationRequired);
    assert_eq!(refused.extensions["submission"], "not_submitted");
    assert_eq!(app.status(trade.id).await, Status::PendingConfirmation);
}

/// Confirms a trade on its page.
async fn confirm_on_page(app: &TestApp, person: &Person, id: TradeId) -> Result<(), PersonError> {
    confirm_trade(&app.ctx, person, Country::default(), id).await
}

/// Returns the key of an agent, with the limits of the scene's key.
async fn agent(scene: &Scene) -> TestKey {
    let overrides = scene.key.caller.key.overrides;
    let wanted = app::keys::IssueKey { overrides, is_agent: true, ..key_of(&scene.ada, Tier::Enterprise) };
    let key = scene.app.issue(wanted).await.unwrap();
    scene.app.enable(&scene.ada, &key).await;
    key
}

store::on_each_engine! {
    async fn only_the_owner_confirms_a_trade_of_an_agents_key(store: Store) {
        let scene = Scene::gated(store).await;
        let agent = agent(&scene).await;
        let Scene { app, ada, key, market } = &scene;
        let trade = agent.buy(market, 0, "100").await;
        for caller in [&agent.caller, &key.caller] {
            assert_needs_owner(app, caller, &trade).await;
        }
        let person = app.person_of(ada).await;
        confirm_on_page(app, &person, trade.id).await.unwrap();
        assert_eq!(app.status(trade.id).await, Status::Pending);
        app.run_workers().await;
        assert_eq!(app.status(trade.id).await, Status::Completed);
        app.assert_ledger_equals_chain().await;
    }

    async fn only_the_owner_confirms_a_trade_that_came_through_the_tools_for_agents(store: Store) {
        let Scene { app, ada, mut key, market } = Scene::gated(store).await;
        let program = key.caller.clone();
        key.caller = program.clone().through_agent_tools();
        let trade = key.buy(&market, 0, "100").idempotent("k").await;
        // The same request of the same key, past the tools.
        key.caller = program.clone();
        let replayed = key.buy(&market, 0, "100").idempotent("k").replayed().await;
        assert_eq!(replayed.id, trade.id);
        assert_needs_owner(&app, &program, &replayed).await;
        confirm_on_page(&app, &app.person_of(&ada).await, trade.id).await.unwrap();
        assert_eq!(app.status(trade.id).await, Status::Pending);
    }

    async fn an_agent_confirms_no_trade_of_a_program(store: Store) {
        let scene = Scene::gated(store).await;
        let agent = agent(&scene).await;
        let Scene { app, key, market, .. } = &scene;
        let trade = key.buy(market, 0, "100").await;
        assert_needs_owner(app, &agent.caller, &trade).await;
        assert_needs_owner(app, &key.caller.clone().through_agent_tools(), &trade).await;
        // A key that is marked later stops confirming, too.
        let marked = app::keys::mark_agent(&app.ctx, key.caller.key.id).await.unwrap();
        assert_needs_owner(app, &Caller::new(marked.into(), device().ip), &trade).await;
    }

    async fn a_session_alone_confirms_nothing_and_another_person_finds_nothing(store: Store) {
        let scene = Scene::gated(store).await;
        let agent = agent(&scene).await;
        let Scene { app, ada, market, .. } = &scene;
        let (person, (_, other)) = (app.person_of(ada).await, app.sign_up().await);
        let trade = agent.buy(market, 0, "100").await;
        let refused = confirm_on_page(app, &other, trade.id).await.unwrap_err();
        assert!(matches!(refused, PersonError::App(AppError { code: ErrorCode::ResourceNotFound, .. })));
        app.clock.advance(STEP_UP_MS);
        let trade = agent.buy(market, 0, "100").await;
        let refused = confirm_on_page(app, &person, trade.id).await.unwrap_err();
        assert!(matches!(refused, PersonError::StepUpRequired));
        assert_eq!(app.status(trade.id).await, Status::PendingConfirmation);
    }
}
