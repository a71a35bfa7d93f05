//! Seeds the demonstration: creates markets, funds accounts and executes a week of trades. It uses
//! the same contracts and use cases as a real service, with a clock that runs from a week ago to
//! now.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr};
use std::path::Path;
use std::sync::Arc;

use alloy_primitives::U256;
use app::caller::Caller;
use app::entropy::SeededEntropy;
use app::import::{self, ImportError, ImportKind, Step};
use app::keys::{IssueKey, issue};
use app::ledger::Sync;
use app::markets::{self, Move};
use app::owner_acts::{self, ActOrigin, OwnerActRequest, OwnerSignature, PreparedAct};
use app::trades::{Executor, NewTrade, create};
use app::worker::{Progress, Worker};
use app::{AppError, Ctx, accounts};
use chain::{AccountOwner, Signer, calls};
use domain::ids::{MarketId, UserId};
use domain::key::{IpAllowlist, LimitOverrides, Scopes, Tier};
use domain::time::{HOUR_MS, ManualClock};
use domain::trade::Draft;
use domain::{ErrorCode, Usdc};

use super::content::{self, MARKETS, SampleEnding, USERS};
use super::file::{DevKey, DevUser, write_owners};
use super::roll;
use crate::run::Parts;
use crate::secrets::Secrets;
use crate::start_error::StartError;

const HOURS: i64 = 7 * 24;
/// Initial balance of each account.
const FUNDS: Usdc = Usdc::from_whole(50_000);

/// A sample user during seeding.
struct Trader {
    name: &'static str,
    account: store::users::Account,
    owners: Vec<AccountOwner>,
    callers: Vec<Caller>,
    keys: Vec<DevKey>,
}

/// Seeds the demonstration and returns its users. `clock` must start one week in the past and is
/// moved to the present. The markets are read from the database afterwards.
pub async fn seed(parts: &Parts, clock: &ManualClock, data_dir: &Path) -> Result<Vec<DevUser>, StartError> {
    let ctx = &parts.ctx;
    let workers = Workers::new(&parts.secrets)?;
    let markets = make_markets(ctx, clock, &parts.secrets).await?;
    let (traders, owners) = make_traders(ctx, &parts.secrets, &workers).await?;
    workers.run(ctx).await?;
    trade(ctx, clock, &workers, &traders, &markets).await?;
    end_markets(ctx, &parts.secrets, &markets).await?;
    workers.run(ctx).await?;
    redeem(ctx, &parts.secrets, &traders, &markets).await?;
    workers.run(ctx).await?;
    workers.release(ctx).await?;
    write_owners(data_dir, &owners)?;
    let users = traders.into_iter().map(|trader| DevUser {
        name: trader.name.to_owned(),
        user_id: trader.account.user_id.to_string(),
        address: format!("{:#x}", trader.account.address),
        owners: trader.owners,
        keys: trader.keys,
    });
    Ok(users.collect())
}

fn clock_end(ctx: &Ctx) -> domain::Timestamp {
    ctx.now().plus_ms(HOURS * HOUR_MS)
}

/// The workers, run step by step instead of as tasks.
struct Workers {
    executors: Vec<Executor>,
    sync: Sync,
}

impl Workers {
    fn new(secrets: &Secrets) -> Result<Self, StartError> {
        let owner = "seed".to_owned();
        let lanes = (0u16..).zip(secrets.executors()?);
        let executors = lanes.map(|(lane, signer)| Executor::new(lane, signer, owner.clone())).collect();
        Ok(Self { executors, sync: Sync::new(owner, 0) })
    }

    async fn run(&self, ctx: &Ctx) -> Result<(), AppError> {
        for executor in &self.executors {
            while executor.tick(ctx).await? == Progress::More {}
        }
        while self.sync.tick(ctx).await? == Progress::More {}
        Ok(())
    }

    async fn release(&self, ctx: &Ctx) -> Result<(), AppError> {
        for executor in &self.executors {
            executor.release(ctx).await?;
        }
        self.sync.release(ctx).await
    }
}

/// Imports the content in the same way as an operator's file. Returns the markets in their order.
async fn make_markets(
    ctx: &Ctx,
    clock: &ManualClock,
    secrets: &Secrets,
) -> Result<Vec<MarketId>, StartError> {
    let catalogue = content::catalogue(clock_end(ctx));
    let failed = |error: ImportError| match error {
        ImportError::Refused(problems) => StartError::Import(problems),
        ImportError::Failed(error) => error.into(),
    };
    let plan = import::plan(ctx, &catalogue).await.map_err(failed)?;
    let (resolver, deployer) = (secrets.roles.resolver()?, secrets.roles.deployer()?);
    let mut ids = Vec::new();
    let mut done = |step: &Step| {
        if step.kind == ImportKind::Market {
            // Different creation times, so that lists show the markets in this order.
            clock.advance(1_000);
            ids.extend(step.id().parse::<MarketId>());
        }
    };
    import::run(ctx, &plan, &resolver, Some(&deployer), &mut done).await.map_err(failed)?;
    Ok(ids)
}

async fn make_traders(
    ctx: &Ctx,
    secrets: &Secrets,
    workers: &Workers,
) -> Result<(Vec<Trader>, BTreeMap<String, Vec<String>>), StartError> {
    let deployer = secrets.roles.deployer()?;
    let mut traders = Vec::new();
    let mut owners = BTreeMap::new();
    for (index, name) in USERS.iter().enumerate() {
        let owner = Signer::random(ctx.random())?;
        let (user, account) = accounts::create_user(ctx, name, &owner.owner()).await?;
        let mint = calls::mint(account.address, U256::from(FUNDS.atomic()));
        ctx.chain.transact(&deployer, Some(ctx.chain.contracts().usdc), mint).await?;
        let tiers: &[Tier] = if index == 0 { &Tier::ALL } else { &[Tier::Developer] };
        let mut trader = Trader { name, account, owners: Vec::new(), callers: Vec::new(), keys: Vec::new() };
        for tier in tiers {
            let wanted = IssueKey {
                user_id: user.id,
                name: format!("{name} {tier}"),
                tier: *tier,
                scopes: Some(Scopes::all()),
                expires_at: None,
                ip_allowlist: IpAllowlist::default(),
                webhook_url: None,
                overrides: LimitOverrides::default(),
                api_version: None,
                is_agent: false,
            };
            let issued = issue(ctx, wanted).await?;
            trader.keys.push(DevKey {
                name: issued.key.name.clone(),
                tier: tier.to_string(),
                scopes: issued.key.scopes.iter().map(|scope| scope.as_str().to_owned()).collect(),
                key: issued.plaintext.expose().to_owned(),
            });
            trader.callers.push(Caller::new(Arc::new(issued.key), IpAddr::from(Ipv4Addr::LOCALHOST)));
        }
        let keys = trader.callers.iter().map(|caller| caller.key.id).collect();
        // As for a second device.
        let second = match index {
            0 => Some(Signer::random(ctx.random())?),
            _ => None,
        };
        if let Some(second) = &second {
            let add = OwnerActRequest::AddOwner(second.owner());
            act(ctx, workers, &owner, user.id, &add).await?;
        }
        // Any owner can sign, so if there is a second one, it enables the keys.
        let signer = second.as_ref().unwrap_or(&owner);
        act(ctx, workers, signer, user.id, &OwnerActRequest::Enable { keys }).await?;
        trader.owners = accounts::owners(ctx, user.id).await?.owners;
        let signers = std::iter::once(&owner).chain(&second);
        owners.insert(user.id.to_string(), signers.map(|it| hex::encode(it.to_bytes())).collect());
        traders.push(trader);
    }
    Ok((traders, owners))
}

/// Signs an act as an owner and executes it. The first act of an account deploys it.
async fn act(
    ctx: &Ctx,
    workers: &Workers,
    owner: &Signer,
    user_id: UserId,
    request: &OwnerActRequest,
) -> Result<(), StartError> {
    let PreparedAct { act, .. } =
        owner_acts::prepare(ctx, user_id, request, ActOrigin::Operator, None).await?;
    let signature = OwnerSignature::Encoded(owner.sign_digest(act.digest)?);
    owner_acts::sign(ctx, user_id, act.id, &signature, ActOrigin::Operator).await?;
    workers.run(ctx).await?;
    let ended = owner_acts::find(ctx, user_id, act.id).await?;
    owner_acts::error_of(&ended).map_or(Ok(()), |error| Err(error.into()))
}

/// Executes a week of trades, one hour at a time. A fixed seed selects the trades, so that every
/// demonstration is identical.
async fn trade(
    ctx: &Ctx,
    clock: &ManualClock,
    workers: &Workers,
    traders: &[Trader],
    markets: &[MarketId],
) -> Result<(), StartError> {
    let dice = SeededEntropy::new(7);
    let roll = |sides| roll(&dice, sides);
    for _ in 0..HOURS {
        clock.advance(HOUR_MS);
        for _ in 0..1 + roll(3) {
            let trader = &traders[roll(traders.len())];
            let market = roll(markets.len());
            let outcome = roll(MARKETS[market].outcomes.len());
            let sells = roll(5) == 0;
            let draft = Draft {
                market_id: Some(markets[market].to_string()),
                outcome_index: i64::try_from(outcome).ok(),
                amount: (!sells).then(|| format!("{}.{:02}", 5 + roll(200), roll(100))),
                side: Some(if sells { "sell" } else { "buy" }.to_owned()),
                amount_type: sells.then(|| "all".to_owned()),
                // The trades of an hour execute together and move each other's prices, and none of
                // them may fail.
                max_slippage_bps: Some(10_000),
                ..Draft::default()
            };
            let new = NewTrade { draft, idempotency_key: None, dry_run: false, correlation_id: None };
            match create(ctx, &trader.callers[trader.callers.len() / 2], new).await {
                Ok(_) => {}
                // The trader does not hold the outcome to sell, or has reached the daily cap: skip
                // the trade.
                Err(error)
                    if matches!(
                        error.code,
                        ErrorCode::InsufficientBalance | ErrorCode::SpendingLimitExceeded
                    ) => {}
                Err(error) => return Err(error.into()),
            }
        }
        workers.run(ctx).await?;
    }
    Ok(())
}

async fn end_markets(ctx: &Ctx, secrets: &Secrets, markets: &[MarketId]) -> Result<(), StartError> {
    let (resolver, guardian) = (secrets.roles.resolver()?, secrets.roles.guardian()?);
    for (planned, id) in MARKETS.iter().zip(markets) {
        match planned.ending {
            SampleEnding::Open => {}
            SampleEnding::Frozen => drop(markets::make_move(ctx, &guardian, *id, Move::FREEZE).await?),
            SampleEnding::Cancelled => drop(markets::cancel(ctx, &resolver, *id, None).await?),
            SampleEnding::Resolved(winner) => {
                let one = U256::from(10u64.pow(18));
                let payouts =
                    (0..planned.outcomes.len()).map(|index| if index == winner { one } else { U256::ZERO });
                let source = Some("The organiser's own report".to_owned());
                let result = Move::Resolve { payouts: payouts.collect(), source };
                markets::make_move(ctx, &resolver, *id, result).await?;
            }
        }
    }
    Ok(())
}

/// Claims the payouts of every second trader.
async fn redeem(
    ctx: &Ctx,
    secrets: &Secrets,
    traders: &[Trader],
    markets: &[MarketId],
) -> Result<(), StartError> {
    let relayer = secrets.roles.relayer()?;
    for (planned, id) in MARKETS.iter().zip(markets) {
        if !matches!(planned.ending, SampleEnding::Resolved(_) | SampleEnding::Cancelled) {
            continue;
        }
        let Some(number) = ctx.chain.market_of(markets::reference_of(*id)).await? else { continue };
        let mut owed = Vec::new();
        for trader in traders.iter().step_by(2) {
            let address = trader.account.address;
            for (outcome, _) in (0u8..).zip(planned.outcomes) {
                if ctx.chain.redeemable(address, number, outcome).await? > 0 {
                    owed.push((address, number, outcome));
                }
            }
        }
        if !owed.is_empty() {
            ctx.chain.transact(&relayer, Some(ctx.chain.contracts().hub), calls::redeem_batch(&owed)).await?;
        }
    }
    Ok(())
}
