//! The budgets of strangers: each share is enforced, with both storages, for one user, one address,
//! one network and all together.

use std::net::IpAddr;
use std::sync::Arc;

use app::AppError;
use app::limits::budget::{Budget, BudgetSetting, BudgetShares, Counting, Share};
use app::limits::{Client, FailureKind, Limits, Place};
use app::metrics::Metrics;
use domain::ErrorCode;
use domain::ids::UserId;
use domain::rate::{Scope, SlotWindow};
use domain::time::DAY_MS;
use testkit::{START, TestRedis};
use uuid::Uuid;

const LIMIT: u64 = 3;

/// Allows `LIMIT` uses in one scope, and any number in the others.
fn only(budget: Budget, scope: Scope) -> BudgetShares {
    let share = |of: Scope| if of == scope { Share::new(LIMIT) } else { Share::OFF };
    let setting = |of: &Scope| BudgetSetting { budget, scope: *of, share: share(*of) };
    BudgetShares::default().with(Scope::ALL.iter().map(setting))
}

fn client(ip: &str, user: u128) -> Client {
    (ip.parse::<IpAddr>().unwrap(), UserId(Uuid::from_u128(user))).into()
}

/// Returns clients that a scope counts together, more than the limit, and one that it does not.
fn clients(scope: Scope) -> (Vec<Client>, Option<Client>) {
    let number = 0..u8::try_from(LIMIT).unwrap() + 1;
    let each = |of: &dyn Fn(u8) -> String, same_user: bool| -> Vec<Client> {
        number.clone().map(|n| client(&of(n), if same_user { 1 } else { 100 + u128::from(n) })).collect()
    };
    match scope {
        Scope::User => (each(&|n| format!("2001:db8:{n}::1"), true), Some(client("2001:db8:0::1", 2))),
        Scope::Address => {
            (each(&|n| format!("2001:db8:0:7::{n}"), false), Some(client("2001:db8:0:8::1", 2)))
        }
        Scope::Network => (each(&|n| format!("192.0.2.{n}"), false), Some(client("192.0.3.1", 2))),
        Scope::Site => (each(&|n| format!("2001:db8:7:{n}00::1"), false), Some(client("2001:db8:8::1", 2))),
        Scope::Total => (each(&|n| format!("10.{n}.0.1"), false), None),
    }
}

/// Uses a budget once, like the code that it protects.
async fn use_once(limits: &Limits, budget: Budget, client: Client) -> Result<Option<Place>, AppError> {
    let (budgets, ip) = (limits.budgets(), client.ip.unwrap());
    match budget {
        Budget::Requests => {
            let decision = limits.take_address(ip, START);
            assert_eq!(decision.rate.allowed, decision.refused.is_none(), "{decision:?}");
            decision.refused.map_or(Ok(None), |refused| Err(refused.into()))
        }
        Budget::Routes => {
            let decision = limits.take_route(ip, "/route", 1, START).await?;
            decision.refused.map_or(Ok(None), |refused| Err(refused.into()))
        }
        Budget::FailedSignIns => {
            if let Some(until) = limits.shut_out(FailureKind::ApiKey, ip, START).await? {
                return Err(app::limits::shut_out(until, START));
            }
            limits.fail(FailureKind::ApiKey, ip, START).await?;
            Ok(None)
        }
        _ => match budget.counting() {
            Counting::Concurrent => Ok(Some(budgets.enter(budget, client)?)),
            Counting::PerMinute => Ok(budgets.spend_here(budget, client, START).map(|()| None)?),
            _ => Ok(budgets.spend(budget, client, START).await.map(|()| None)?),
        },
    }
}

/// Returns whether the address's share is a window of its own, whose state the headers show.
fn has_own_window(budget: Budget, scope: Scope) -> bool {
    matches!(budget, Budget::Requests | Budget::Routes) && matches!(scope, Scope::Address | Scope::User)
}

/// Failures are counted by network, because no user has signed in. The share of a user is that of a
/// passkey or wallet: see `limits`. Users' logs refuse nothing: see `user_log`.
fn has_no_such_share(budget: Budget, scope: Scope) -> bool {
    let failures = budget.counting() == Counting::Failures && matches!(scope, Scope::User | Scope::Total);
    failures || budget.counting() == Counting::Kept
}

async fn assert_every_share_is_enforced(limits: impl Fn() -> Limits) {
    for budget in Budget::ALL {
        for scope in Scope::ALL {
            if has_own_window(*budget, *scope) || has_no_such_share(*budget, *scope) {
                continue;
            }
            let metrics: Arc<Metrics> = Arc::default();
            let limits = limits().with_budgets(only(*budget, *scope), Arc::clone(&metrics));
            let (together, other) = clients(*scope);
            let (last, first) = together.split_last().unwrap();
            let mut places = Vec::new();
            for client in first {
                let used = use_once(&limits, *budget, *client).await;
                places.push(used.unwrap_or_else(|error| panic!("{budget}.{scope} {client:?}: {error:?}")));
            }
            let refused = use_once(&limits, *budget, *last).await.expect_err("the share is used up");
            assert_eq!(refused.code, ErrorCode::RateLimitExceeded, "{budget}.{scope}");
            assert_eq!(refused.extensions["limiter"], budget.limiter(), "{budget}.{scope}");
            assert!(refused.retry_after_s.is_some_and(|seconds| seconds > 0), "{budget}.{scope}");
            if budget.counting() != Counting::Failures {
                assert!(refused.detail.starts_with("At most 3 "), "{budget}.{scope}: {}", refused.detail);
                let line =
                    format!(r#"foretell_budget_refusals_total{{budget="{budget}",scope="{scope}"}} 1"#);
                assert!(metrics.text().contains(&line), "{line}");
            }
            if let Some(other) = other {
                assert!(use_once(&limits, *budget, other).await.is_ok(), "{budget}.{scope}");
            }
        }
    }
}

#[tokio::test]
async fn every_share_of_every_budget_is_enforced_in_memory() {
    assert_every_share_is_enforced(Limits::memory).await;
}

#[tokio::test]
async fn every_share_of_every_budget_is_enforced_on_redis() {
    let Some(redis) = TestRedis::start().await else { return };
    // Each pair of budget and scope has keys of its own, but one budget is walked scope by scope.
    let number = std::sync::atomic::AtomicU32::new(0);
    assert_every_share_is_enforced(|| {
        let number = number.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        redis.limits_below(&format!("walk{number}"))
    })
    .await;
}

#[tokio::test]
async fn processes_that_share_a_redis_share_the_budgets_of_a_day() {
    let Some(redis) = TestRedis::start().await else { return };
    let shares = only(Budget::SignUps, Scope::Network);
    let [one, other] = [(); 2].map(|()| redis.limits().with_budgets(shares.clone(), Arc::default()));
    let ip: IpAddr = "192.0.2.1".parse().unwrap();
    for limits in [&one, &other, &one] {
        limits.budgets().spend(Budget::SignUps, ip, START).await.unwrap();
    }
    assert!(other.budgets().spend(Budget::SignUps, ip, START).await.is_err());
}

#[tokio::test]
async fn redis_counts_amounts_like_the_pure_window() {
    let Some(redis) = TestRedis::start().await else { return };
    let limit = 1_000;
    let setting = |scope, share| BudgetSetting { budget: Budget::ActGas, scope, share };
    let shares = BudgetShares::default().with(Scope::ALL.iter().map(|scope| setting(*scope, Share::OFF)));
    let shares = shares.with([setting(Scope::Total, Share::new(limit))]);
    let limits = redis.limits().with_budgets(shares, Arc::default());
    let ip: IpAddr = "192.0.2.1".parse().unwrap();
    let (mut window, mut now, mut dice) = (SlotWindow::default(), START, 0x5eed_u64);
    let mut roll = |below: u64| {
        dice = dice.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (dice >> 33) % below
    };
    for step in 0..1_500 {
        let amount = 1 + roll(400);
        let expected = window.take(amount, limit, DAY_MS, now);
        let found = limits.budgets().spend_amount(Budget::ActGas, ip, amount, now).await;
        assert_eq!(found.is_ok(), expected.is_ok(), "step {step}: {found:?} {expected:?}");
        now = now.plus_ms(roll(3 * 3_600_000).cast_signed());
    }
}

/// Uses with a multiple of the share go on when it is used up, and are given back from beyond it.
async fn assert_multiples_go_beyond_a_share(limits: Limits) {
    let limits = limits.with_budgets(only(Budget::Trades, Scope::User), Arc::default());
    let (budgets, ada) = (limits.budgets(), client("192.0.2.1", 1));
    let single = async || budgets.spend(Budget::Trades, ada, START).await;
    let double = async |amount| budgets.spend_multiple(Budget::Trades, ada, (amount, 2), START).await;
    single().await.unwrap();
    double(2 * LIMIT).await.unwrap_err();
    double(2 * LIMIT - 1).await.unwrap();
    double(1).await.unwrap_err();
    single().await.unwrap_err();
    for given in [1, LIMIT - 1] {
        budgets.give_back(Budget::Trades, ada, given, START).await;
    }
    single().await.unwrap_err();
    budgets.give_back(Budget::Trades, ada, 1, START).await;
    single().await.unwrap();
    single().await.unwrap_err();
    double(LIMIT).await.unwrap();
}

#[tokio::test]
async fn uses_with_a_multiple_go_beyond_a_share_in_memory() {
    assert_multiples_go_beyond_a_share(Limits::memory()).await;
}

#[tokio::test]
async fn uses_with_a_multiple_go_beyond_a_share_on_redis() {
    let Some(redis) = TestRedis::start().await else { return };
    assert_multiples_go_beyond_a_share(redis.limits()).await;
}

#[test]
fn a_dropped_place_is_free_again_and_a_refusal_takes_nothing() {
    let limits = Limits::memory().with_budgets(only(Budget::Feed, Scope::Network), Arc::default());
    let enter = |ip: &str| limits.budgets().enter(Budget::Feed, client(ip, 1));
    let places = [enter("192.0.2.1"), enter("192.0.2.2"), enter("192.0.2.3")].map(Result::unwrap);
    assert!(enter("192.0.2.4").is_err() && enter("192.0.2.4").is_err());
    assert_eq!(limits.budgets().in_use(Budget::Feed), LIMIT);
    drop(places);
    assert_eq!(limits.budgets().in_use(Budget::Feed), 0);
    assert!(enter("192.0.2.4").is_ok());
}

#[test]
fn a_refused_use_of_a_window_takes_nothing_from_the_neighbors() {
    let shares = BudgetShares::default()
        .with(["searches.address=2", "searches.network=3"].map(|text| text.parse().unwrap()));
    let limits = Limits::memory().with_budgets(shares, Arc::default());
    let search =
        |ip: &str| limits.budgets().spend_here(Budget::Searches, ip.parse::<IpAddr>().unwrap(), START);
    for _ in 0..9 {
        let _ = search("192.0.2.1");
    }
    assert!(search("192.0.2.2").is_ok());
    assert_eq!(search("192.0.2.3").unwrap_err().scope, Scope::Network);
}

#[test]
fn metrics_show_the_limit_and_the_largest_use_of_each_share() {
    let metrics: Arc<Metrics> = Arc::default();
    let limits = Limits::memory().with_budgets(BudgetShares::default(), Arc::clone(&metrics));
    let ip = |text: &str| text.parse::<IpAddr>().unwrap();
    let places =
        ["192.0.2.1", "192.0.2.1", "192.0.2.2"].map(|it| limits.budgets().enter(Budget::Streams, ip(it)));
    limits.budgets().spend_here(Budget::Searches, ip("192.0.2.1"), START).unwrap();
    limits.record_uses(START);
    let text = metrics.text();
    for line in [
        r#"foretell_budget_limit{budget="streams",scope="address"} 100"#,
        r#"foretell_budget_used{budget="streams",scope="address"} 2"#,
        r#"foretell_budget_used{budget="streams",scope="network"} 3"#,
        r#"foretell_budget_used{budget="searches",scope="total"} 1"#,
        r#"foretell_budget_used{budget="sign-ups",scope="total"} 0"#,
        r#"foretell_budget_refusals_total{budget="act-gas",scope="user"} 0"#,
    ] {
        assert!(text.contains(line), "{line}");
    }
    drop(places);
    limits.record_uses(START);
    let line = r#"foretell_budget_used{budget="streams",scope="network"} 0"#;
    assert!(metrics.text().contains(line));
}

#[test]
fn streams_of_strangers_leave_connections_to_requests() {
    let total = BudgetSetting { budget: Budget::Connections, scope: Scope::Total, share: Share::new(8) };
    let limits = Limits::memory().with_budgets(BudgetShares::default().with([total]), Arc::default());
    let enter = |budget, n: u8| limits.budgets().enter(budget, client(&format!("10.{n}.0.1"), u128::from(n)));
    let mut open = Vec::new();
    for n in 0..2 {
        for budget in [Budget::Streams, Budget::MarketStreams, Budget::Feed] {
            open.push(enter(budget, n).unwrap());
        }
    }
    for budget in [Budget::Streams, Budget::MarketStreams, Budget::Feed] {
        let refused = enter(budget, 2).unwrap_err();
        assert_eq!((refused.budget, refused.scope, refused.limit), (budget, Scope::Total, 6));
    }
    open.push(enter(Budget::PaidFeed, 2).unwrap());
    drop(open);
    drop(enter(Budget::Streams, 2).unwrap());
}
