//! What strangers can make the service pay for owner acts: its gas is bounded by the money that came
//! from outside, and by budgets.

use std::net::IpAddr;

use alloy_primitives::{Address, U256};
use app::AppError;
use app::config::OwnerActLimits;
use app::limits::budget::Budget;
use app::owner_acts::{self, ActOrigin, OwnerActRequest, PreparedAct, WithdrawalAmount};
use chain::AccountOwner;
use domain::key::Tier;
use domain::owner_act::OwnerActStatus;
use domain::time::{DAY_MS, HOUR_MS};
use domain::{ErrorCode, Usdc};
use store::owner_acts::OwnerAct;
use testkit::{CLIENT_IP, TestApp, TestUser, wallet_signature};

const OUTSIDE: Address = Address::repeat_byte(0xaa);

fn one_usdc() -> OwnerActLimits {
    OwnerActLimits { per_day: 20, min_balance: Usdc::from_whole(1) }
}

fn everything_to(to: Address) -> OwnerActRequest {
    OwnerActRequest::Withdraw { to, amount: WithdrawalAmount::All }
}

fn deploys() -> OwnerActRequest {
    OwnerActRequest::Enable { keys: Vec::new() }
}

/// Prepares, signs and executes an act of a user at an address.
async fn try_act(
    app: &TestApp,
    user: &TestUser,
    request: &OwnerActRequest,
    ip: &str,
) -> Result<OwnerAct, AppError> {
    let origin = ActOrigin::User(ip.parse::<IpAddr>().unwrap());
    let PreparedAct { act, .. } = owner_acts::prepare(&app.ctx, user.id, request, origin, None).await?;
    let signature = wallet_signature(&user.owner, &act);
    let signed = owner_acts::sign(&app.ctx, user.id, act.id, &signature, origin).await?;
    app.workers.execute(&app.ctx).await;
    Ok(app.stored_act(signed.id).await)
}

/// Returns the number of acts that the service has paid for.
async fn acts_sent(app: &TestApp, users: &[TestUser]) -> usize {
    let mut sent = 0;
    for user in users {
        let acts = owner_acts::list(&app.ctx, user.id, None, 100).await.unwrap();
        sent += acts.iter().filter(|act| act.status == OwnerActStatus::Done).count();
    }
    sent
}

#[tokio::test]
async fn one_usdc_that_is_passed_on_pays_for_the_acts_of_one_account() {
    let app = TestApp::with().owner_acts(one_usdc()).start().await;
    let mut users = Vec::new();
    for n in 0..10 {
        users.push(app.user(&format!("user{n}")).await);
    }
    app.mint(users[0].account, Usdc::from_whole(1)).await;
    let act = try_act(&app, &users[0], &everything_to(users[1].account), "192.0.2.1").await.unwrap();
    assert_eq!(act.status, OwnerActStatus::Done);
    // From here on the money came from an account of this service, however it goes round.
    for (from, to) in [(1, 2), (2, 3), (1, 0)] {
        let refused = try_act(&app, &users[from], &everything_to(users[to].account), "192.0.2.1").await;
        let refused = refused.expect_err("the service does not pay");
        assert_eq!(refused.code, ErrorCode::InsufficientBalance);
        // An owner who pays the gas can move it.
        if app.ctx.chain.usdc_balance(users[from].account).await.unwrap().is_zero() {
            continue;
        }
        assert!(refused.detail.contains("from other accounts of this service do not count"), "{refused}");
        let one_usdc = U256::from(Usdc::from_whole(1).atomic());
        let transfer = chain::calls::transfer(users[to].account, one_usdc);
        app.as_owner(&users[from], app.ctx.chain.contracts().usdc, transfer).await;
    }
    assert_eq!(acts_sent(&app, &users).await, 1);
}

#[tokio::test]
async fn money_from_outside_makes_an_account_eligible_whatever_else_it_received() {
    let app = TestApp::with().owner_acts(one_usdc()).start().await;
    let ada = app.user("ada").funded("5").await;
    let bob = app.user("bob").await;
    try_act(&app, &ada, &everything_to(bob.account), "192.0.2.1").await.unwrap();
    assert!(try_act(&app, &bob, &deploys(), "192.0.2.1").await.is_err());
    // The operator pays for anybody.
    owner_acts::prepare(&app.ctx, bob.id, &deploys(), ActOrigin::Operator, None).await.unwrap();
    app.mint(bob.account, Usdc::from_atomic(999_999)).await;
    assert!(try_act(&app, &bob, &deploys(), "192.0.2.1").await.is_err());
    app.mint(bob.account, Usdc::from_atomic(1)).await;
    assert_eq!(try_act(&app, &bob, &deploys(), "192.0.2.1").await.unwrap().status, OwnerActStatus::Done);
}

#[tokio::test]
async fn a_signature_is_refused_if_the_account_became_ineligible_since_it_was_prepared() {
    let app = TestApp::with().owner_acts(one_usdc()).start().await;
    let (ada, bob) = (app.user("ada").funded("1").await, app.user("bob").await);
    let origin = ActOrigin::User(CLIENT_IP);
    let by_operator =
        owner_acts::prepare(&app.ctx, bob.id, &deploys(), ActOrigin::Operator, None).await.unwrap();
    try_act(&app, &ada, &everything_to(bob.account), "192.0.2.1").await.unwrap();
    let signature = wallet_signature(&bob.owner, &by_operator.act);
    let refused =
        owner_acts::sign(&app.ctx, bob.id, by_operator.act.id, &signature, origin).await.unwrap_err();
    assert_eq!(refused.code, ErrorCode::InsufficientBalance);
}

#[tokio::test]
async fn gas_is_limited_for_a_user_an_address_a_network_and_in_total() {
    for (setting, ips, spent_by_another) in [
        ("act-gas.user=1000000", ["192.0.2.1", "198.51.100.1"], "192.0.2.1"),
        ("act-gas.address=1000000", ["192.0.2.1", "192.0.2.1"], "192.0.2.2"),
        ("act-gas.network=1000000", ["192.0.2.1", "192.0.2.2"], "192.0.3.1"),
        ("act-gas.total=1000000", ["192.0.2.1", "198.51.100.1"], ""),
    ] {
        let app = TestApp::with().owner_acts(one_usdc()).budgets([setting]).start().await;
        let ada = app.user("ada").funded("100").await;
        let mut acts = 0;
        let refused = loop {
            let ip = ips[acts % 2];
            match try_act(&app, &ada, &everything_or_some(acts), ip).await {
                Ok(act) => assert_eq!(act.status, OwnerActStatus::Done),
                Err(refused) => break refused,
            }
            acts += 1;
            assert!(acts < 20, "{setting}");
        };
        assert!(acts >= 2, "{setting}: {acts}");
        assert_eq!(refused.code, ErrorCode::RateLimitExceeded, "{setting}: {refused:?}");
        assert_eq!(refused.extensions["limiter"], "act-gas");
        assert!(refused.detail.starts_with("At most 1000000 units of gas for acts of "), "{refused}");
        // The operator has no limits, and others have their own shares.
        owner_acts::prepare(&app.ctx, ada.id, &deploys(), ActOrigin::Operator, None).await.unwrap();
        let other = app.user("bob").funded("2").await;
        if !spent_by_another.is_empty() {
            try_act(&app, &other, &deploys(), spent_by_another).await.unwrap();
        }
        // A slot of two hours later than a day, the shares are whole again.
        app.clock.advance(DAY_MS + 2 * HOUR_MS);
        try_act(&app, &ada, &everything_or_some(0), ips[0]).await.unwrap();
    }
}

fn everything_or_some(act: usize) -> OwnerActRequest {
    let cents = 10_000 * (1 + act as u64);
    OwnerActRequest::Withdraw { to: OUTSIDE, amount: WithdrawalAmount::Exact(Usdc::from_atomic(cents)) }
}

#[tokio::test]
async fn a_refused_signature_gives_its_gas_back() {
    let app = TestApp::with().owner_acts(one_usdc()).start().await;
    let ada = app.user("ada").funded("100").await;
    let origin = ActOrigin::User(CLIENT_IP);
    // The first act is signed and waits: the account can have no second one.
    app.signed_act(&ada, &deploys()).await;
    let used = || {
        let uses = app.ctx.budgets().largest_uses(app.ctx.now());
        uses.get(&(Budget::ActGas, domain::rate::Scope::Total)).copied().unwrap_or_default()
    };
    let before = used();
    assert!(before > 50_000, "{before}");
    let PreparedAct { act, .. } =
        owner_acts::prepare(&app.ctx, ada.id, &everything_or_some(0), origin, None).await.unwrap();
    let signature = wallet_signature(&ada.owner, &act);
    for _ in 0..3 {
        owner_acts::sign(&app.ctx, ada.id, act.id, &signature, origin).await.unwrap_err();
    }
    assert_eq!(used(), before);
}

#[tokio::test]
async fn free_users_use_up_no_gas_of_users_of_a_paid_tier() {
    let app = TestApp::with().budgets(["act-gas.total=0"]).start().await;
    let (ada, bob) = (app.user("ada").await, app.user("bob").await);
    app::people::set_tier(&app.ctx, bob.id, Tier::Developer).await.unwrap();
    let refused = try_act(&app, &ada, &deploys(), "192.0.2.1").await.unwrap_err();
    assert_eq!(refused.code, ErrorCode::RateLimitExceeded);
    assert_eq!(try_act(&app, &bob, &deploys(), "192.0.2.1").await.unwrap().status, OwnerActStatus::Done);
}

#[tokio::test]
async fn leaving_does_not_depend_on_what_strangers_use() {
    let app = TestApp::with().budgets(["act-gas.total=1000000"]).start().await;
    let (ada, eve) = (app.user("ada").funded("100").await, app.user("eve").await);
    try_act(&app, &ada, &deploys(), "192.0.2.1").await.unwrap();
    let add = |n: u8| OwnerActRequest::AddOwner(AccountOwner::Eoa(Address::repeat_byte(n)));
    let mut acts = 0;
    while try_act(&app, &eve, &add(acts + 1), "198.51.100.1").await.is_ok() {
        acts += 1;
        assert!(acts < 15, "the gas of a day ends before the owners of an account");
    }
    let refused = try_act(&app, &ada, &add(1), "192.0.2.1").await.unwrap_err();
    assert_eq!(refused.code, ErrorCode::RateLimitExceeded);
    let left = try_act(&app, &ada, &everything_or_some(0), "192.0.2.1").await.unwrap();
    assert_eq!(left.status, OwnerActStatus::Done);
}
