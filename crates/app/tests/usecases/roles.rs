//! Acts of roles that wallets hold: printed, sent by the holder, and followed by the service.

use alloy_primitives::{Address, U256};
use app::markets::{self, Cancelling, Move};
use app::roles::{ActResult, ActSender, RoleChange, Senders};
use app::{AppError, InvalidState};
use chain::{Call, Role, Signer, calls};
use domain::market::MarketStatus;
use domain::{Usdc, Wad};
use store::Store;
use testkit::{TestApp, TestMarket, market_of};

use crate::audit_log::{entries, operator, told};
use crate::scene::Scene;

const DELAY_S: u32 = 3_600;
const DELAY_MS: i64 = DELAY_S as i64 * 1_000;

fn wallet(signer: &Signer) -> ActSender<'static> {
    ActSender::Wallet(signer.address())
}

fn printed(sent: ActResult) -> Call {
    match sent {
        ActResult::Printed(call) => call,
        ActResult::Mined(receipt) => panic!("it was sent: {receipt:?}"),
    }
}

/// The state that did not allow an act.
fn state(refused: &AppError) -> &str {
    let state = refused.source.as_ref().and_then(|source| source.downcast_ref::<InvalidState>());
    &state.unwrap_or_else(|| panic!("not a state: {refused:?}")).0
}

async fn send(app: &TestApp, signer: &Signer, call: Call) {
    app.send(signer, call.target, call.data).await;
}

/// Prints a move for the wallet of a role and sends it with the role's key.
async fn make_move(app: &TestApp, signer: &Signer, market: TestMarket, wanted: Move) {
    let call = printed(markets::make_move(&app.ctx, wallet(signer), market.id, wanted).await.unwrap());
    send(app, signer, call).await;
    app.run_workers().await;
}

/// Prints a change for the wallet of a role and sends it with the role's key.
async fn change(app: &TestApp, signer: &Signer, wanted: RoleChange) {
    let call = printed(wanted.make(&app.ctx, wallet(signer)).await.unwrap());
    send(app, signer, call).await;
}

async fn status(app: &TestApp, market: TestMarket) -> MarketStatus {
    app.market_row(market).await.0.status
}

fn winner_0() -> Move {
    Move::Resolve { payouts: vec![Wad::ONE.0, U256::ZERO], source: Some("the office".to_owned()) }
}

store::on_each_engine! {
    async fn a_printed_creation_makes_a_market_once_it_is_sent(store: Store) {
        let app = TestApp::with().on(store).start().await;
        let (ctx, resolver) = (operator(&app.ctx), &app.roles.resolver);
        let contracts = app.ctx.chain.contracts();
        app.send(resolver, contracts.usdc, calls::approve(contracts.hub, U256::ZERO)).await;
        let sent_before = ctx.chain.transaction_count(resolver.address()).await.unwrap();

        let needed = markets::funding_ceil(Usdc::from_whole(1_000), 2, &[]).unwrap();
        let funded = markets::fund(&ctx, wallet(resolver), None, needed).await.unwrap();
        let created = markets::create(&ctx, wallet(resolver), market_of(&app, &["Yes", "No"])).await.unwrap();
        let market = TestMarket { id: created.id, number: 1 };
        app.run_workers().await;
        assert_eq!(app.market_row(market).await.0.chain_market_id, None, "the row waits for its market");
        assert_eq!(ctx.chain.transaction_count(resolver.address()).await.unwrap(), sent_before);
        let mut other = market_of(&app, &["Yes", "Maybe"]);
        other.id = Some(market.id);
        let rejected = markets::create(&ctx, wallet(resolver), other).await.unwrap_err();
        assert_eq!(rejected.code, domain::ErrorCode::ValidationFailed, "{rejected:?}");
        assert_eq!(told(&entries(&ctx).await), [
            format!("market.add market:{} done", market.id),
            format!("market.create market:{} printed", market.id),
        ]);

        send(&app, resolver, printed(funded.approval)).await;
        send(&app, resolver, printed(created.sent.unwrap())).await;
        app.run_workers().await;
        let (row, _) = app.market_row(market).await;
        assert_eq!((row.chain_market_id, row.status), (Some(1), MarketStatus::Open));
        let ada = app.user("ada").funded("100").await;
        let key = app.key(&ada, domain::key::Tier::Mm).await;
        key.buy(&market, 0, "10").await;
        app.run_workers().await;
        app.assert_ledger_equals_chain().await;
    }

    async fn a_printed_act_is_logged_and_takes_effect_only_when_it_is_sent(store: Store) {
        let Scene { app, market, .. } = Scene::on(store).await;
        let ctx = operator(&app.ctx);
        let source = "the office".to_owned();
        let resolved = markets::make_move(&ctx, wallet(&app.roles.resolver), market.id, winner_0()).await.unwrap();
        app.run_workers().await;
        let (row, _) = app.market_row(market).await;
        assert_eq!((row.status, row.resolution_source), (MarketStatus::Open, Some(source.clone())));
        let logged = entries(&ctx).await;
        assert_eq!(told(&logged), [format!("market.resolve market:{} printed", market.id)]);
        let after = logged[0].after.clone().unwrap();
        let resolver = app.roles.resolver.address().to_string().to_lowercase();
        assert!(after.contains(&source) && after.contains(&resolver), "{after}");

        send(&app, &app.roles.resolver, printed(resolved)).await;
        app.run_workers().await;
        let (row, _) = app.market_row(market).await;
        assert_eq!((row.status, row.resolution_source), (MarketStatus::Resolved, Some(source)));
    }
}

#[tokio::test]
async fn a_reverting_act_is_neither_printed_nor_logged() {
    let Scene { app, market, .. } = Scene::new().await;
    let ctx = operator(&app.ctx);
    let guardian = wallet(&app.roles.guardian);
    let refused = markets::make_move(&ctx, guardian, market.id, Move::Unfreeze).await.unwrap_err();
    assert_eq!(state(&refused), "the market is OPEN");
    let refused = markets::make_move(&ctx, guardian, market.id, Move::Veto).await.unwrap_err();
    assert_eq!(state(&refused), "the market is OPEN and has no proposal");
    let stranger = wallet(&app.roles.stranger);
    let refused = markets::make_move(&ctx, stranger, market.id, Move::FREEZE).await.unwrap_err();
    assert!(state(&refused).ends_with("does not hold a role that may do this"), "{refused}");
    let refused = RoleChange::Resume.make(&ctx, wallet(&app.roles.owner)).await.unwrap_err();
    assert!(state(&refused).ends_with("does not hold a role that may do this"), "{refused}");
    let missing_funds = market_of(&app, &["Yes", "No"]);
    markets::create(&ctx, stranger, missing_funds).await.unwrap_err();
    assert!(entries(&ctx).await.iter().all(|entry| entry.phase != "printed"));
}

#[tokio::test]
async fn a_proposed_result_is_shown_and_the_guardian_vetoes_it() {
    let Scene { app, market, .. } = Scene::of(TestApp::with().veto_window_s(600).start().await).await;
    let (resolver, guardian) = (&app.roles.resolver, &app.roles.guardian);
    assert_eq!(markets::proposal(&app.ctx, market.id).await.unwrap(), None);
    make_move(&app, resolver, market, winner_0()).await;
    let proposal = markets::proposal(&app.ctx, market.id).await.unwrap().unwrap();
    assert!(!proposal.is_cancel && proposal.payouts_wad == [Wad::ONE.0, U256::ZERO], "{proposal:?}");
    let early = markets::make_move(&app.ctx, wallet(resolver), market.id, Move::Finalize).await.unwrap_err();
    assert!(
        state(&early).starts_with("the market is FROZEN, and its proposal can be vetoed until "),
        "{early}"
    );
    let again = markets::make_move(&app.ctx, wallet(resolver), market.id, winner_0()).await.unwrap_err();
    assert_eq!(state(&again), "the market is FROZEN and has a proposal");
    make_move(&app, guardian, market, Move::Veto).await;
    assert_eq!(markets::proposal(&app.ctx, market.id).await.unwrap(), None);
    assert_eq!(status(&app, market).await, MarketStatus::Frozen);
    make_move(&app, guardian, market, Move::Unfreeze).await;
    assert_eq!(status(&app, market).await, MarketStatus::Open);
    make_move(&app, guardian, market, Move::FREEZE).await;
    let held = markets::make_move(&app.ctx, wallet(resolver), market.id, Move::Unfreeze).await.unwrap_err();
    assert_eq!(state(&held), "the market is frozen by the guardian, and only the guardian can unfreeze it");
    make_move(&app, resolver, market, winner_0()).await;
    app.advance_ms(601_000).await;
    // Any address may finalize.
    make_move(&app, &app.roles.stranger, market, Move::Finalize).await;
    assert_eq!(status(&app, market).await, MarketStatus::Resolved);
}

#[tokio::test]
async fn a_cancel_is_printed_step_by_step() {
    let Scene { app, market, .. } = Scene::of(TestApp::with().veto_window_s(600).start().await).await;
    let ctx = operator(&app.ctx);
    let resolver = &app.roles.resolver;
    assert_eq!(markets::cancel_senders(&ctx, market.id).await.unwrap(), Senders::Roles(&[Role::Resolver]));
    let reason = || Some("the match was called off".to_owned());
    let cancel = async || markets::cancel(&ctx, wallet(resolver), market.id, reason()).await.unwrap();
    for expected in [calls::freeze(market.number), calls::propose_cancel(market.number)] {
        let Cancelling::Printed(call) = cancel().await else { panic!("there is a next step") };
        assert_eq!(call.data, expected);
        send(&app, resolver, call).await;
    }
    assert!(matches!(cancel().await, Cancelling::Proposed { receipt: None, .. }));
    app.advance_ms(601_000).await;
    let Cancelling::Printed(call) = cancel().await else { panic!("there is a next step") };
    send(&app, &app.roles.stranger, call).await;
    app.run_workers().await;
    assert_eq!(status(&app, market).await, MarketStatus::Cancelled);
    assert_eq!(markets::cancel_reason(&ctx, market.id).await.unwrap(), reason());
}

#[tokio::test]
async fn a_role_is_handed_over_after_the_delay() {
    let Scene { app, market, .. } = Scene::of(TestApp::with().role_delay_s(DELAY_S).start().await).await;
    let ctx = operator(&app.ctx);
    let (old, new) = (&app.roles.guardian, &app.roles.stranger);
    let accept = RoleChange::AcceptRole(Role::Guardian);
    let nothing = accept.senders(&ctx).await.unwrap_err();
    assert_eq!(state(&nothing), "there is no proposal of a new guardian");
    change(&app, &app.roles.owner, RoleChange::ProposeRole(Role::Guardian, new.address())).await;
    assert_eq!(accept.senders(&ctx).await.unwrap(), Senders::Proposed(new.address()));
    let proposal = ctx.chain.role_proposal(Role::Guardian).await.unwrap().unwrap();
    assert_eq!(proposal.acceptable_at_s, ctx.chain.head().await.unwrap().timestamp_s + u64::from(DELAY_S));

    let early = accept.make(&ctx, new).await.unwrap_err();
    assert!(state(&early).starts_with("the delay of the proposal is not over before 20"), "{early}");
    app.advance_ms(DELAY_MS).await;
    accept.make(&ctx, new).await.unwrap();
    let seats = ctx.chain.seats().await.unwrap();
    let guardian = seats.all.iter().find(|seat| seat.role == Role::Guardian).unwrap();
    assert_eq!((guardian.holder, guardian.proposal), (new.address(), None));

    let refused = markets::make_move(&ctx, wallet(old), market.id, Move::FREEZE).await.unwrap_err();
    assert!(state(&refused).ends_with("does not hold a role that may do this"), "{refused}");
    make_move(&app, new, market, Move::FREEZE).await;
    assert_eq!(status(&app, market).await, MarketStatus::Frozen);
    let phases: Vec<_> = entries(&ctx).await.into_iter().map(|entry| (entry.action, entry.phase)).collect();
    let accepted =
        ["begun", "failed", "begun", "done"].map(|phase| ("role.accept".to_owned(), phase.to_owned()));
    assert_eq!(phases, accepted);
}

#[tokio::test]
async fn role_proposals_can_be_vetoed_by_their_watchers() {
    let app = TestApp::with().role_delay_s(DELAY_S).start().await;
    let ctx = &app.ctx;
    let (owner, guardian, resolver) = (&app.roles.owner, &app.roles.guardian, &app.roles.resolver);
    let thief = Address::repeat_byte(9);
    for (role, watcher) in
        [(Role::Guardian, resolver), (Role::Resolver, guardian), (Role::Treasury, guardian)]
    {
        change(&app, owner, RoleChange::ProposeRole(role, thief)).await;
        change(&app, watcher, RoleChange::VetoRole(role)).await;
        assert_eq!(ctx.chain.role_proposal(role).await.unwrap(), None);
    }
    let refused = RoleChange::VetoRole(Role::Owner).make(ctx, wallet(guardian)).await.unwrap_err();
    assert_eq!(state(&refused), "there is no proposal of a new owner");

    change(&app, guardian, RoleChange::ProposeRecovery(thief)).await;
    change(&app, resolver, RoleChange::VetoRecovery).await;
    assert_eq!(ctx.chain.seats().await.unwrap().recovery, None);
    change(&app, guardian, RoleChange::ProposeRecovery(app.roles.stranger.address())).await;
    app.advance_ms(DELAY_MS).await;
    change(&app, &app.roles.stranger, RoleChange::AcceptRecovery).await;
    assert_eq!(ctx.chain.role_holder(Role::Owner).await.unwrap(), app.roles.stranger.address());
}

#[tokio::test]
async fn an_act_of_a_suspended_resolver_reports_the_suspension() {
    let Scene { app, market, .. } = Scene::new().await;
    change(&app, &app.roles.guardian, RoleChange::SuspendResolver).await;
    assert!(app.ctx.chain.seats().await.unwrap().is_resolver_suspended);
    let resolver = wallet(&app.roles.resolver);
    let refused = markets::make_move(&app.ctx, resolver, market.id, winner_0()).await.unwrap_err();
    assert_eq!(state(&refused), "the resolver is suspended");
}

#[tokio::test]
async fn an_executor_is_proposed_enacted_lowered_and_removed() {
    let app = TestApp::with().role_delay_s(DELAY_S).start().await;
    let (owner, guardian) = (&app.roles.owner, &app.roles.guardian);
    let new = Address::repeat_byte(9);
    let executor = async || app.ctx.chain.executor(new).await.unwrap();
    let cap = async || executor().await.volume.map(|volume| volume.cap_usdc_atomic);

    change(&app, owner, RoleChange::ProposeExecutor(new, 7_000_000)).await;
    change(&app, guardian, RoleChange::VetoExecutor(new)).await;
    assert_eq!(executor().await.proposal, None);
    change(&app, owner, RoleChange::ProposeExecutor(new, 5_000_000)).await;
    assert_eq!(executor().await.proposal.unwrap().hourly_cap_usdc_atomic, 5_000_000);
    assert_eq!(app.ctx.chain.ever_proposed_executors().await.unwrap(), [new]);
    let early = RoleChange::EnactExecutor(new).make(&app.ctx, wallet(owner)).await.unwrap_err();
    assert!(state(&early).starts_with("the delay of the proposal is not over before 20"), "{early}");
    app.advance_ms(DELAY_MS).await;
    change(&app, &app.roles.relayer, RoleChange::EnactExecutor(new)).await;
    assert_eq!(cap().await, Some(5_000_000));

    let higher =
        RoleChange::LowerExecutor(new, 6_000_000).make(&app.ctx, wallet(guardian)).await.unwrap_err();
    assert!(state(&higher).ends_with("is 5 USDC, and can only be lowered at once"), "{higher}");
    change(&app, guardian, RoleChange::LowerExecutor(new, 4_000_000)).await;
    assert_eq!(cap().await, Some(4_000_000));
    change(&app, owner, RoleChange::RemoveExecutor(new)).await;
    assert_eq!(cap().await, None);
    let again = RoleChange::RemoveExecutor(new).make(&app.ctx, wallet(owner)).await.unwrap_err();
    assert_eq!(state(&again), format!("{new} is not an executor"));
}

#[tokio::test]
async fn the_owner_can_pause_the_gate_and_only_the_guardian_resumes_it() {
    let app = TestApp::new().await;
    let (owner, guardian) = (&app.roles.owner, &app.roles.guardian);
    change(&app, owner, RoleChange::Pause).await;
    assert!(app.ctx.chain.is_gate_paused().await.unwrap());
    RoleChange::Resume.make(&app.ctx, wallet(owner)).await.unwrap_err();
    change(&app, guardian, RoleChange::Resume).await;
    assert!(!app.ctx.chain.is_gate_paused().await.unwrap());
}
