//! Creates trades from requests.
//!
//! The checks run in the documented order. One transaction writes every row that makes up a trade.
//! A request that fails a check is looked up before it is rejected, so that a client's retry still
//! succeeds after the market froze.

use std::pin::pin;
use std::time::{Duration, Instant};

use alloy_primitives::Address;
use chain::{AccountState, ChainError, Fill, IntentSide};
use domain::ids::{CorrelationId, TradeId};
use domain::key::Scope;
use domain::market::MarketStatus;
use domain::sandbox::Scenario;
use domain::trade::{AmountType, Draft, Side, State, TradeRequest, TradeWarning};
use domain::{ErrorCode, Usdc, Wad, limits};
use futures::future::{Either, pending, select};
use store::markets::Market;
use store::trades::{Creation, Idempotency, Trade};
use tokio::time::timeout;

use super::desk;
use super::funds::{Funds, delegated_account, insufficient, too_few_tokens};
use super::plan::{Sellable, TradePlan, plan, quoted_amount, sells_whole_position, side_of};
use super::replay::{find_replay, find_replay_of_unjudged, in_progress};
use super::sandbox;
use super::share::TakenShare;
use crate::caller::Caller;
use crate::keys::stopped;
use crate::process::desk::{Refused, Submitted};
use crate::traces::CreatedTrade;
use crate::{AppError, Ctx, Submission, markets, minimum, nodes};

/// The route under which idempotency keys of trades are stored.
pub const IDEMPOTENCY_ROUTE: &str = "POST /v1/trades";

/// The time after which a request with an idempotency key is looked up although its checks are still
/// running. A replay must not wait for a node that does not answer.
const REPLAY_PATIENCE: Duration = Duration::from_millis(100);

/// A request to create a trade, before any check.
#[derive(Debug, Clone)]
pub struct NewTrade {
    /// The request's fields, not yet validated.
    pub draft: Draft,
    /// The `Idempotency-Key` header, with its format already checked.
    pub idempotency_key: Option<String>,
    /// If set, run every check but create nothing.
    pub dry_run: bool,
    /// The correlation id from the client's trace context.
    pub correlation_id: Option<CorrelationId>,
}

/// The result of an accepted request.
#[derive(Debug)]
pub enum Accepted {
    /// A new trade, either `pending` or held for confirmation.
    Created(Trade),
    /// The trade that an earlier, identical request with this idempotency key created, in its
    /// current state.
    ReplayedByKey(Trade),
    /// The trade with this `clientRequestId`, in its current state.
    FoundByClientRequest(Trade),
    /// Every check passed and nothing was created.
    DryRun(Box<DryRun>),
}

/// The trade that a request would create now.
#[derive(Debug)]
pub struct DryRun {
    pub request: TradeRequest,
    pub market: Market,
    /// The amounts and bounds that would be sent to the chain.
    pub plan: TradePlan,
    /// The amounts that the trade would move at the current price.
    pub quote: Fill,
    pub is_held: bool,
}

impl DryRun {
    pub fn warnings(&self) -> Vec<TradeWarning> {
        let (usdc, tokens) = (Usdc::from_atomic(self.quote.usdc_atomic), Wad(self.quote.tokens_wad));
        TradeWarning::list(self.request.side, usdc, tokens)
    }
}

/// Validates a request and creates its trade, unless the request is a replay or a dry run.
pub async fn create(ctx: &Ctx, caller: &Caller, new: NewTrade) -> Result<Accepted, AppError> {
    let not_submitted = |error: AppError| error.submission(Submission::NotSubmitted);
    caller.require(Scope::TradesWrite).map_err(not_submitted)?;
    ctx.process.switches.check_new_trade().map_err(not_submitted)?;
    let began = Instant::now();
    let accepted = create_or_find(ctx, caller, new).await?;
    if let Accepted::Created(trade) = &accepted {
        ctx.process.metrics.trade_accepted(began.elapsed(), trade.correlation_id);
        ctx.process.traces.trade_created(&CreatedTrade {
            trade_id: trade.id,
            correlation_id: trade.correlation_id,
            lane: trade.lane,
            created_at: trade.created_at,
            began,
        });
    }
    Ok(accepted)
}

async fn create_or_find(ctx: &Ctx, caller: &Caller, new: NewTrade) -> Result<Accepted, AppError> {
    // Wait for earlier requests with the same key in this process. Otherwise a retry would repeat
    // the whole work and lose at the insert below.
    let _turn = match &new.idempotency_key {
        Some(key) => {
            Some(ctx.process.idempotency_locks.take(caller.user_id(), key).await.ok_or_else(in_progress)?)
        }
        None => None,
    };
    let request = TradeRequest::new(new.draft.clone());
    let fingerprint = request.as_ref().ok().map(|request| hex::encode(request.fingerprint()));
    let replay = async || find_replay(ctx, caller, &new, fingerprint.as_deref()).await;
    let judge = judge(ctx, caller, &new, request, fingerprint.clone().unwrap_or_default());
    // A replay must succeed even if the request would be rejected now.
    let judged = if new.dry_run {
        judge.await
    } else if new.idempotency_key.is_some() {
        // The transaction that creates the trade finds a replay when it takes the key, so a first
        // request needs no read of its own. Both futures are polled until they are dropped: each
        // may hold a connection that the other one waits for.
        let slow = Box::pin(async {
            let _ = timeout(REPLAY_PATIENCE, pending::<()>()).await;
            replay().await
        });
        match select(pin!(judge), slow).await {
            Either::Left((Ok(judged), _)) => Ok(judged),
            Either::Left((Err(refused), slow)) => {
                drop(slow);
                match replay().await? {
                    Some(replayed) => return Ok(replayed),
                    None => Err(refused),
                }
            }
            Either::Right((replayed, judge)) => match replayed? {
                Some(replayed) => return Ok(replayed),
                None => judge.await,
            },
        }
    } else {
        if let Some(replayed) = replay().await? {
            return Ok(replayed);
        }
        judge.await
    };
    let created = match judged {
        // After every check that needs no other request's rows: what fails before takes nothing.
        Ok(judged) => match TakenShare::take(ctx, caller, &judged.trade).await {
            Ok(share) => create_judged(ctx, caller, &new, judged, share).await,
            // A replay takes nothing either.
            Err(refused) => match replay().await? {
                Some(replayed) => return Ok(replayed),
                None => Err(refused.into()),
            },
        },
        Err(refused) => Err(refused),
    };
    match created {
        // Another request with the same key was faster: answer with the trade that it created.
        Err(Refused::Raced) => match find_replay_of_unjudged(ctx, caller, &new).await? {
            Some(replayed) => Ok(replayed),
            None => Err(in_progress()),
        },
        Err(Refused::Because(error)) => {
            Err(nodes::of_right_chain(ctx, error).await.submission(Submission::NotSubmitted))
        }
        Err(Refused::Settled) => {
            let busy = AppError::new(ErrorCode::DependencyUnavailable).retry_after_s(1);
            Err(busy.submission(Submission::NotSubmitted))
        }
        Err(Refused::InProgress) => Err(in_progress()),
        Err(Refused::Lost(error)) => Err(AppError::from(error).submission(Submission::Unknown)),
        Ok(accepted) => Ok(accepted),
    }
}

/// A request that has passed all checks except those in the transaction that creates its trade.
struct Judged {
    trade: Trade,
    account: AccountState,
    request: TradeRequest,
    market: Market,
    plan: TradePlan,
    quote: Fill,
    /// The outcome that the client provokes. Always `None` outside of the sandbox.
    scenario: Option<Scenario>,
}

/// Checks a request.
async fn judge(
    ctx: &Ctx,
    caller: &Caller,
    new: &NewTrade,
    request: Result<TradeRequest, domain::trade::RequestRefusal>,
    request_hash: String,
) -> Result<Judged, Refused> {
    // Check early to fail fast. The transaction that inserts the trade checks the key again.
    if let Some(stop) = caller.key.trading_stop(ctx.now()) {
        return Err(stopped(stop).into());
    }
    let request = request.map_err(AppError::from)?;
    let scenario = sandbox::scenario_of(ctx, &request)?;
    let now = ctx.now();
    // A replay never gets here, so a deadline that has passed since the first request does not
    // break a retry.
    if request.deadline.is_some_and(|deadline| deadline <= now) {
        let past = request.deadline.unwrap_or(now).to_string();
        return Err(AppError::wrong_value("/deadline", "must be in the future", &past).into());
    }
    if request.side == Side::Buy && request.amount_type == AmountType::Usdc {
        minimum::check_buy(ctx, request.amount)?;
    }
    let (market, outcome_index) = tradeable_market(ctx, &request).await?;
    let chain_market_id = market.chain_market_id.unwrap_or_default();
    let side = side_of(&request);
    // Read the account and the quote concurrently. Account errors are still reported first.
    let (account, quote) = tokio::join!(delegated_account(ctx, caller), async {
        let amount = quoted_amount(&request)?;
        Some(ctx.chain.quote(chain_market_id, outcome_index, side, amount).await)
    });
    let (account, state) = account?;
    let address = account.address;
    if request.amount_type == AmountType::Usdc {
        // The documented order is caps before balance. An amount in USDC can be checked before the
        // quote.
        limits::check_per_trade(&caller.limits(), request.amount).map_err(AppError::from)?;
    }

    let sells = request.side == Side::Sell;
    let balance = if sells {
        let held =
            ctx.chain.position(address, chain_market_id, outcome_index).await.map_err(AppError::from)?;
        Wad(held)
    } else {
        Wad::ZERO
    };
    if request.amount_type == AmountType::All && balance == Wad::ZERO {
        return Err(AppError::new(ErrorCode::InsufficientBalance)
            .detail("There are no tokens to sell.")
            .into());
    }
    let quote = match quote {
        Some(quote) => quote,
        None => ctx.chain.quote(chain_market_id, outcome_index, side, balance.0).await,
    };
    let sellable = Sellable::of(&state.policy, now);
    let place = (chain_market_id, outcome_index);
    let (side, quote) = match quote_whole_position(ctx, &request, &quote, place, (balance, sellable)).await? {
        Some(whole) => (IntentSide::SellTokens, whole),
        None => (side, quote.map_err(|error| minimum::refused_quote(ctx, error))?),
    };
    let plan = plan(&request, side, &quote, ctx.config.default_slippage_bps, sellable)?;
    let quoted = Usdc::from_atomic(quote.usdc_atomic);
    if sells {
        minimum::check_sale(ctx, quoted, plan.gives, balance)?;
    } else {
        minimum::check_buy(ctx, quoted)?;
    }
    limits::check_per_trade(&caller.limits(), plan.counted).map_err(AppError::from)?;
    if sells && balance < plan.gives {
        return Err(too_few_tokens().into());
    }

    let trade_id = TradeId(ctx.uuid());
    let is_held = limits::is_high_value(&caller.limits(), plan.counted);
    let held_until = is_held.then(|| now.plus_ms(ctx.config.confirmation_window_ms));
    // While the trade is held, use the latest deadline that it could get on release. `confirm`
    // replaces it by a full lifetime from the moment of release, unless the client's own deadline
    // is earlier.
    let lifetime = held_until.unwrap_or(now).plus_ms(ctx.config.intent_lifetime_ms);
    let mut trade = Trade {
        id: trade_id,
        user_id: caller.user_id(),
        key_id: caller.key.id,
        lane: ctx.process.lanes.of(address),
        account: address,
        market_id: market.id,
        outcome_index,
        side: request.side,
        amount_text: request.amount_text.clone(),
        amount_type: request.amount_type,
        metadata: request.metadata.clone(),
        client_request_id: request.client_request_id.clone(),
        request_hash,
        correlation_id: new.correlation_id.unwrap_or(CorrelationId::of(trade_id)),
        intent_side: side as u8,
        intent_usdc: plan.usdc,
        intent_tokens: plan.tokens,
        max_slippage_bps: plan.slippage_bps,
        volume: plan.reserved,
        waiting_for: None,
        deadline: request.deadline.map_or(lifetime, |deadline| deadline.min(lifetime)),
        key_index: caller.key.key_index,
        nonce: None,
        batch_id: None,
        reserved: plan.reserved,
        state: held_until.map_or(State::Pending, |expires_at| State::PendingConfirmation { expires_at }),
        held_until,
        created_at: now,
        updated_at: now,
        ended_at: None,
        recovered_at: None,
        is_from_agent: caller.is_agent(),
    };
    if let Some(scenario) = scenario {
        sandbox::apply(ctx, caller, &request, chain_market_id, scenario, &mut trade).await?;
    }
    Ok(Judged { trade, account: state, request, market, plan, quote, scenario })
}

/// Returns the quote of a sale of the whole position, if the request means it: it would leave, or
/// lack, less than an amount can name. Nobody could sell or claim what it left.
async fn quote_whole_position(
    ctx: &Ctx,
    request: &TradeRequest,
    quote: &Result<Fill, ChainError>,
    (chain_market_id, outcome_index): (u64, u8),
    (held, sellable): (Wad, Sellable),
) -> Result<Option<Fill>, AppError> {
    let tokens = match (request.side, request.amount_type, quote) {
        (Side::Buy, ..) | (_, AmountType::All, _) | (_, AmountType::Usdc, Err(_)) => return Ok(None),
        (_, AmountType::Tokens, _) => Wad::from_amount(request.amount),
        (_, AmountType::Usdc, Ok(quote)) => Wad(quote.tokens_wad),
    };
    if tokens == held || !sells_whole_position(request, tokens, held, sellable) {
        return Ok(None);
    }
    let whole = ctx.chain.quote(chain_market_id, outcome_index, IntentSide::SellTokens, held.0).await?;
    let pays_enough = request.amount_type != AmountType::Usdc || whole.usdc_atomic >= request.amount.atomic();
    Ok(pays_enough.then_some(whole))
}

/// Creates the trade of a request that has been judged, unless it is a dry run. Gives its share of the
/// budgets back if there is no trade.
async fn create_judged(
    ctx: &Ctx,
    caller: &Caller,
    new: &NewTrade,
    judged: Judged,
    share: TakenShare,
) -> Result<Accepted, Refused> {
    let Judged { trade, account, request, market, plan, quote, scenario } = judged;
    let funds = Funds::newest(&account);
    let is_held = trade.held_until.is_some();
    if new.dry_run {
        share.give_back(ctx).await;
        check_dry(ctx, caller, &trade, funds.spendable).await?;
        return Ok(Accepted::DryRun(Box::new(DryRun { request, market, plan, quote, is_held })));
    }
    // The newest balance may be too low by the trades that are mined but not settled (see `Funds`),
    // so an insufficient balance is checked once more at the last settled block.
    let inserted = match insert(ctx, caller, new, &trade, funds).await {
        Err(Refused::Because(error))
            if error.code == ErrorCode::InsufficientBalance && trade.side == Side::Buy =>
        {
            insert_on_settled_funds(ctx, caller, new, &trade, (trade.account, &account), error).await
        }
        inserted => inserted,
    };
    // A trade whose commit was not answered may exist.
    if !matches!(inserted, Ok(()) | Err(Refused::Lost(_))) {
        share.give_back(ctx).await;
    }
    inserted?;
    if !is_held {
        ctx.wake.executor.notify_waiters();
    }
    sandbox::answer(scenario)?;
    Ok(Accepted::Created(trade))
}

/// Loads the requested market and outcome. The market must be open, not quarantined and on this
/// chain.
async fn tradeable_market(ctx: &Ctx, request: &TradeRequest) -> Result<(Market, u8), AppError> {
    let (rows, _) = markets::get(ctx, &request.market_id).await?;
    let (market, outcomes) = rows.as_ref();
    let status = market.status_at(ctx.now());
    if status != MarketStatus::Open {
        return Err(markets::not_open(status));
    }
    if market.quarantined_at.is_some() {
        let detail = "Trading in this market is suspended while its records are compared with the chain. Try again later.";
        return Err(AppError::new(ErrorCode::MarketNotTradeable)
            .detail(detail)
            .with("marketStatus", status.as_str())
            .with("reason", "quarantined"));
    }
    let outcome_index = markets::outcome_of(outcomes.len(), request.outcome_index)?;
    Ok((market.clone(), outcome_index))
}

/// Checks the daily cap and the balance without reserving anything.
async fn check_dry(ctx: &Ctx, caller: &Caller, trade: &Trade, spendable: Usdc) -> Result<(), AppError> {
    if trade.reserved == Usdc::ZERO {
        return Ok(());
    }
    let input = (trade.key_id, trade.user_id, trade.created_at);
    let (spent, reserved) = ctx
        .store
        .read(input, |tx, (key_id, user_id, now)| {
            Box::pin(async move {
                let spent = store::keys::find_spent(tx, *key_id, *now).await?;
                let account = store::users::find_account(tx, *user_id).await?;
                Ok((spent, account.map_or(Usdc::ZERO, |account| account.reserved)))
            })
        })
        .await?;
    limits::check_daily(&caller.limits(), spent, trade.reserved)?;
    match reserved.checked_add(trade.reserved) {
        Some(needed) if needed <= spendable => Ok(()),
        _ => Err(insufficient(trade.reserved, spendable, reserved)),
    }
}

/// The number of attempts when new blocks are settled between the balance read and the insert.
const SETTLED_TRIES: u32 = 8;

/// Inserts the trade if the balance at the last settled block covers it.
///
/// A trade that is mined but not settled has already left the newest balance and is still reserved.
/// At the settled block it counts only once.
async fn insert_on_settled_funds(
    ctx: &Ctx,
    caller: &Caller,
    new: &NewTrade,
    trade: &Trade,
    (address, state): (Address, &AccountState),
    refusal: AppError,
) -> Result<(), Refused> {
    for _ in 0..SETTLED_TRIES {
        // The node no longer has the state of the settled block: return the rejection from the
        // newest balance.
        let Ok(Some(funds)) = Funds::settled(ctx, address, state).await else { return Err(refusal.into()) };
        match insert(ctx, caller, new, trade, funds).await {
            Err(Refused::Settled) => {}
            inserted => return inserted,
        }
    }
    Err(Refused::Settled)
}

/// Writes the trade, its first trace event, its idempotency key and its reservation in one
/// transaction.
async fn insert(
    ctx: &Ctx,
    caller: &Caller,
    new: &NewTrade,
    trade: &Trade,
    funds: Funds,
) -> Result<(), Refused> {
    let idempotency = new.idempotency_key.clone().map(|key| Idempotency {
        route: IDEMPOTENCY_ROUTE,
        key,
        lifetime_ms: ctx.config.idempotency_ms,
    });
    let creation = Creation { trade: trade.clone(), idempotency, settled: funds.settled };
    desk::create(ctx, Submitted { creation, limits: caller.limits(), spendable: funds.spendable }).await
}
