//! Acts on markets: creating, editing, and all moves on chain.

use alloy_primitives::{Address, U256};
use chain::{Role, Signer};
use domain::ids::{MarketId, ThreadId};
use domain::key::Environment;
use domain::market::MarketStatus;
use domain::{ErrorCode, Timestamp, Usdc, Wad};
use serde::{Deserialize, Serialize};
use store::catalog::Listing;
use store::markets::{Market, Outcome as MarketOutcome};

use super::summary::{Outcome, Summary, decimal, mined, percent};
use crate::markets::{self, Cancelling, Move, NewMarket};
use crate::roles::{ActSender, Senders};
use crate::{AppError, Ctx, catalog};

/// The sender of an act on chain.
enum Acting {
    Key(Signer),
    /// This process does not have the key of this role's holder.
    Wallet(Address),
}

impl Acting {
    /// Selects a key that may act, or else the usual sender's wallet.
    async fn select(ctx: &Ctx, senders: Senders) -> Result<Self, AppError> {
        let keys = ctx.config.web.as_ref().map(|web| &web.role_keys);
        let find = |role| keys.and_then(|keys| keys.find(role));
        let roles = match senders {
            Senders::Roles(roles) => roles,
            Senders::Proposed(address) => return Ok(Self::Wallet(address)),
            Senders::Anyone => match find(Role::Resolver).or_else(|| find(Role::Guardian)) {
                Some(key) => return Ok(Self::Key(key.clone())),
                None => &[Role::Resolver],
            },
        };
        let mut usual = None;
        for role in roles {
            let holder = ctx.chain.role_holder(*role).await?;
            if let Some(key) = find(*role).filter(|key| key.address() == holder) {
                return Ok(Self::Key(key.clone()));
            }
            usual.get_or_insert(holder);
        }
        usual.map(Self::Wallet).ok_or_else(|| AppError::new(ErrorCode::InternalError))
    }

    const fn sender(&self) -> ActSender<'_> {
        match self {
            Self::Key(key) => ActSender::Key(key),
            Self::Wallet(address) => ActSender::Wallet(*address),
        }
    }

    /// The same sender, for a check without a transaction.
    fn unsent(&self) -> ActSender<'static> {
        ActSender::Wallet(self.sender().address())
    }

    fn tell(&self, summary: Summary) -> Summary {
        match self {
            Self::Key(_) => summary,
            Self::Wallet(address) => summary.then(format!(
                "This service does not have the key of {address}. It shows the transaction, and that wallet must send it."
            )),
        }
    }
}

fn page_of(id: MarketId) -> String {
    format!("/admin/markets/{id}")
}

async fn read(ctx: &Ctx, id: MarketId) -> Result<(Market, Vec<MarketOutcome>), AppError> {
    let found = ctx.store.read(id, |tx, id| {
        Box::pin(async move {
            Ok((store::markets::find(tx, *id).await?, store::markets::outcomes(tx, *id).await?))
        })
    });
    let (market, outcomes) = found.await?;
    Ok((market.ok_or_else(|| AppError::new(ErrorCode::MarketNotFound))?, outcomes))
}

/// The terms that the admin enters for a new market.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NewTerms {
    pub question: String,
    pub outcomes: Vec<String>,
    /// The opening odds in WAD. Empty if all are equal.
    pub opening_odds: Vec<U256>,
    pub liquidity_usdc_atomic: u64,
    pub fee_bps: u16,
    pub end_time: Timestamp,
    pub description: Option<String>,
    pub category: Option<String>,
    pub tags: Vec<String>,
    pub source_url: Option<String>,
    pub thread_id: Option<ThreadId>,
    pub chapter_id: Option<String>,
    pub featured_position: Option<u32>,
}

/// The creation of a market.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct MarketTerms {
    pub id: MarketId,
    pub terms: NewTerms,
}

impl MarketTerms {
    async fn new_market(&self, ctx: &Ctx) -> Result<NewMarket, AppError> {
        let terms = self.terms.clone();
        let (thread, chapter) =
            catalog::place_of_market(ctx, terms.thread_id, terms.chapter_id.clone()).await?;
        let of_thread = thread.as_ref();
        let new = NewMarket {
            id: Some(self.id),
            question: terms.question,
            description: terms.description,
            category: terms.category.or_else(|| of_thread.and_then(|thread| thread.category.clone())),
            tags: match of_thread {
                Some(thread) if terms.tags.is_empty() => thread.tags.clone(),
                _ => terms.tags,
            },
            outcomes: terms.outcomes,
            opening_odds: terms.opening_odds,
            liquidity: Usdc::from_atomic(terms.liquidity_usdc_atomic),
            fee_bps: terms.fee_bps,
            end_time: terms.end_time,
            thread_id: of_thread.map(|thread| thread.id),
            organization_id: of_thread.and_then(|thread| thread.organization_id),
            partner_id: of_thread.and_then(|thread| thread.partner_id),
            chapter_id: chapter.map(|chapter| chapter.id),
            source_url: terms.source_url,
            featured_position: terms.featured_position,
        };
        markets::check(&new, ctx.now())?;
        markets::check_question(ctx, &new).await?;
        Ok(new)
    }

    pub(super) async fn describe(&self, ctx: &Ctx) -> Result<Summary, AppError> {
        let new = self.new_market(ctx).await?;
        let needed = funding_of(&new)?;
        let acting = Acting::select(ctx, Senders::Roles(&[Role::Resolver])).await?;
        let resolver = acting.sender().address();
        let balance = ctx.chain.usdc_balance(resolver).await?;
        let is_funded = balance >= U256::from(needed.atomic());
        let minter = minter_of(ctx);
        if !is_funded && minter.is_none() {
            return Err(unfunded(needed, resolver, balance));
        }
        let mut summary = Summary::new(format!("Create the market “{}”", new.question), "/admin/markets");
        for (index, label) in new.outcomes.iter().enumerate() {
            let equal = || Wad::ONE.0 / U256::from(new.outcomes.len().max(1));
            let odds = new.opening_odds.get(index).copied().unwrap_or_else(equal);
            summary = summary.fact(format!("Starting price of {label}"), percent(odds));
        }
        summary = summary
            .fact("Trading ends", new.end_time)
            .fact("Liquidity", format!("{} USDC", new.liquidity.to_decimal()))
            .fact("Fee", percent(U256::from(new.fee_bps) * Wad::ONE.0 / U256::from(10_000)))
            .fact("Funding and largest loss", format!("{} USDC", needed.to_decimal()))
            .maybe("Category", new.category)
            .maybe("Tags", Some(new.tags.join(", ")).filter(|tags| !tags.is_empty()))
            .maybe("Source", new.source_url)
            .maybe("Rules", new.description)
            .maybe("Thread", new.thread_id)
            .maybe("Featured position", new.featured_position)
            .then("Creates the market on chain. Question, outcomes, liquidity, fee and end can never change.")
            .then(format!(
                "Takes up to {} USDC from the resolver {resolver}. The market maker can lose all of it, and never more.",
                needed.to_decimal()
            ));
        if !is_funded {
            summary = summary.then("Mints the test USDC that the resolver lacks.");
        }
        Ok(acting.tell(summary))
    }

    pub(super) async fn run(self, ctx: &Ctx) -> Result<Outcome, AppError> {
        let new = self.new_market(ctx).await?;
        let needed = funding_of(&new)?;
        let acting = Acting::select(ctx, Senders::Roles(&[Role::Resolver])).await?;
        let sender = acting.sender();
        let funded = markets::fund(ctx, sender, minter_of(ctx), needed).await?;
        if funded.balance < funded.needed {
            return Err(unfunded(needed, sender.address(), U256::from(funded.balance.atomic())));
        }
        let created = markets::create(ctx, sender, new).await?;
        let mut outcome = Outcome::default();
        outcome.add(sender, funded.approval);
        if let Some(sent) = created.sent {
            outcome.add(sender, sent);
        }
        outcome.notes.push(format!("The market has the id {}.", created.id));
        Ok(outcome)
    }
}

fn minter_of(ctx: &Ctx) -> Option<&Signer> {
    let minter = ctx.config.web.as_ref().and_then(|web| web.role_keys.minter.as_ref());
    minter.filter(|_| ctx.config.environment == Environment::Test)
}

fn funding_of(new: &NewMarket) -> Result<Usdc, AppError> {
    let funding = markets::funding_ceil(new.liquidity, new.outcomes.len(), &new.opening_odds);
    funding.ok_or_else(|| AppError::field("/liquidity", "must be less: no market can have as much"))
}

fn unfunded(needed: Usdc, resolver: Address, balance: U256) -> AppError {
    let balance = Usdc::from_atomic(u64::try_from(balance).unwrap_or(i64::MAX as u64)).to_decimal();
    AppError::new(ErrorCode::InsufficientBalance).detail(format!(
        "The market takes up to {} USDC from the resolver {resolver}, which has {balance} USDC.",
        needed.to_decimal()
    ))
}

/// A new listing of a market.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ListingEdit {
    pub market_id: MarketId,
    pub description: Option<String>,
    pub category: Option<String>,
    pub tags: Vec<String>,
    pub source_url: Option<String>,
    pub thread_id: Option<ThreadId>,
    pub chapter_id: Option<String>,
    pub featured_position: Option<u32>,
}

impl ListingEdit {
    fn apply(&self, listing: &mut Listing) {
        let edit = self.clone();
        listing.description = edit.description;
        listing.category = edit.category;
        listing.tags = edit.tags;
        listing.source_url = edit.source_url;
        listing.thread_id = edit.thread_id;
        listing.chapter_id = edit.chapter_id;
        listing.featured_position = edit.featured_position;
    }

    pub(super) async fn describe(&self, ctx: &Ctx) -> Result<Summary, AppError> {
        let (market, _) = read(ctx, self.market_id).await?;
        let mut new = Listing {
            market_id: market.id,
            description: market.description.clone(),
            category: market.category.clone(),
            tags: market.tags.clone(),
            thread_id: market.thread_id,
            organization_id: market.organization_id,
            partner_id: market.partner_id,
            chapter_id: market.chapter_id.clone(),
            source_url: market.source_url.clone(),
            featured_position: market.featured_position,
        };
        let old = new.clone();
        self.apply(&mut new);
        catalog::checked(catalog::check::listing(&new))?;
        if old == new {
            return Err(AppError::new(ErrorCode::ValidationFailed).detail("Nothing would change."));
        }
        let text = |value: &Option<String>| value.clone().unwrap_or_default();
        let shown = |value: Option<&dyn ToString>| value.map(ToString::to_string).unwrap_or_default();
        Ok(Summary::new(format!("Edit the market “{}”", market.question), page_of(market.id))
            .change("Rules", &text(&old.description), &text(&new.description))
            .change("Category", &text(&old.category), &text(&new.category))
            .change("Tags", &old.tags.join(", "), &new.tags.join(", "))
            .change("Source", &text(&old.source_url), &text(&new.source_url))
            .change(
                "Thread",
                &shown(old.thread_id.as_ref().map(|id| id as &dyn ToString)),
                &shown(new.thread_id.as_ref().map(|id| id as &dyn ToString)),
            )
            .change("Chapter", &text(&old.chapter_id), &text(&new.chapter_id))
            .change(
                "Featured position",
                &shown(old.featured_position.as_ref().map(|place| place as &dyn ToString)),
                &shown(new.featured_position.as_ref().map(|place| place as &dyn ToString)),
            )
            .then("Changes what everyone reads on the market's page. Its terms on chain stay the same."))
    }

    pub(super) async fn run(self, ctx: &Ctx) -> Result<Outcome, AppError> {
        catalog::change_market(ctx, self.market_id, move |listing| self.apply(listing)).await?;
        Ok(Outcome::done("The listing was changed."))
    }
}

/// A move of a market on chain.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "step", rename_all = "kebab-case")]
pub enum MarketMove {
    Freeze {
        market: MarketId,
    },
    Unfreeze {
        market: MarketId,
    },
    Open {
        market: MarketId,
    },
    /// Payouts in WAD per token, which sum to one.
    Resolve {
        market: MarketId,
        payouts: Vec<U256>,
        source: Option<String>,
    },
    Cancel {
        market: MarketId,
        reason: Option<String>,
    },
    Veto {
        market: MarketId,
    },
    Finalize {
        market: MarketId,
    },
}

impl MarketMove {
    const fn market(&self) -> MarketId {
        match self {
            Self::Freeze { market }
            | Self::Unfreeze { market }
            | Self::Open { market }
            | Self::Resolve { market, .. }
            | Self::Cancel { market, .. }
            | Self::Veto { market }
            | Self::Finalize { market } => *market,
        }
    }

    /// The move. `None` for a cancel, which has several steps.
    fn single(&self) -> Option<Move> {
        Some(match self {
            Self::Freeze { .. } => Move::FREEZE,
            Self::Unfreeze { .. } => Move::Unfreeze,
            Self::Open { .. } => Move::Open,
            Self::Resolve { payouts, source, .. } => {
                Move::Resolve { payouts: payouts.clone(), source: source.clone() }
            }
            Self::Veto { .. } => Move::Veto,
            Self::Finalize { .. } => Move::Finalize,
            Self::Cancel { .. } => return None,
        })
    }

    async fn acting(&self, ctx: &Ctx) -> Result<Acting, AppError> {
        let senders = match self.single() {
            Some(wanted) => wanted.senders(),
            None => markets::cancel_senders(ctx, self.market()).await?,
        };
        Acting::select(ctx, senders).await
    }

    pub(super) async fn describe(&self, ctx: &Ctx) -> Result<Summary, AppError> {
        let (market, outcomes) = read(ctx, self.market()).await?;
        if matches!(market.status, MarketStatus::Resolved | MarketStatus::Cancelled) {
            let state = format!("the market is {}", market.status);
            return Err(AppError::invalid_state(ErrorCode::MarketNotTradeable, state));
        }
        if let Self::Resolve { payouts, .. } = self {
            check_payouts(payouts, outcomes.len())?;
        }
        let acting = self.acting(ctx).await?;
        self.check(ctx, &market, acting.unsent()).await?;
        let summary = Summary::new(format!("{} “{}”", self.verb(), market.question), page_of(market.id))
            .fact("Status now", market.status);
        let summary = match self {
            Self::Freeze { .. } => summary
                .then("Stops trading in this market. Orders that wait to be signed are rejected.")
                .then("Positions stay as they are. Trading can be resumed."),
            Self::Unfreeze { .. } => summary.then("Resumes trading in this market."),
            Self::Open { .. } => summary.then("Opens the listed market for trading."),
            Self::Resolve { payouts, source, .. } => paying(summary, &outcomes, payouts)
                .maybe("Source of the result", source.as_ref())
                .then("Freezes trading and proposes these payouts. They cannot be changed after the veto window.")
                .then("Without a veto window, the result is final at once. This cannot be undone."),
            Self::Cancel { reason, .. } => {
                let number = market.chain_market_id.ok_or_else(|| AppError::new(ErrorCode::MarketNotFound))?;
                let prices = ctx.chain.reference_prices(number).await?;
                paying(summary, &outcomes, &prices)
                    .maybe("Reason", reason.as_ref())
                    .then("Makes the steps of the cancel that are possible now: freeze, propose, and finalize after the veto window.")
                    .then("Every token pays its reference price, as shown. A final cancel cannot be undone.")
            }
            Self::Veto { .. } => proposed(ctx, summary, &market, &outcomes)
                .await?
                .then("Removes this proposal. The market stays frozen, and another one can be proposed."),
            Self::Finalize { .. } => proposed(ctx, summary, &market, &outcomes)
                .await?
                .then("Makes this proposal final. Holders can claim what their tokens pay. This cannot be undone."),
        };
        Ok(acting.tell(summary))
    }

    const fn verb(&self) -> &'static str {
        match self {
            Self::Freeze { .. } => "Freeze",
            Self::Unfreeze { .. } => "Unfreeze",
            Self::Open { .. } => "Open",
            Self::Resolve { .. } => "Resolve",
            Self::Cancel { .. } => "Cancel",
            Self::Veto { .. } => "Veto the proposal for",
            Self::Finalize { .. } => "Finalize the proposal for",
        }
    }

    /// Checks on chain that the move would succeed now.
    async fn check(&self, ctx: &Ctx, market: &Market, sender: ActSender<'_>) -> Result<(), AppError> {
        let wanted = match self.single() {
            // The check must not store the source.
            Some(Move::Resolve { payouts, .. }) => {
                Move::Resolve { payouts, source: market.resolution_source.clone() }
            }
            Some(wanted) => wanted,
            None => return markets::cancel(ctx, sender, market.id, None).await.map(drop),
        };
        markets::make_move(ctx, sender, market.id, wanted).await.map(drop)
    }

    pub(super) async fn run(self, ctx: &Ctx) -> Result<Outcome, AppError> {
        let acting = self.acting(ctx).await?;
        let sender = acting.sender();
        let mut outcome = Outcome::default();
        let market = self.market();
        if let Some(wanted) = self.single() {
            outcome.add(sender, markets::make_move(ctx, sender, market, wanted).await?);
            return Ok(outcome);
        }
        let Self::Cancel { reason, .. } = self else { return Ok(outcome) };
        let (receipt, note) = match markets::cancel(ctx, sender, market, reason).await? {
            Cancelling::Printed(call) => {
                outcome.add(sender, crate::roles::ActResult::Printed(call));
                return Ok(outcome);
            }
            Cancelling::Cancelled(receipt) => (Some(receipt), "The market is cancelled.".to_owned()),
            Cancelling::Frozen { receipt, cancellable_at } => {
                (receipt, format!("The market is frozen. Its cancel can be proposed from {cancellable_at}."))
            }
            Cancelling::Proposed { receipt, finalizable_at } => {
                (receipt, format!("The cancel is proposed. It can be finalized from {finalizable_at}."))
            }
        };
        outcome.notes.push(note);
        outcome.notes.extend(receipt.as_ref().map(mined));
        Ok(outcome)
    }
}

fn check_payouts(payouts: &[U256], outcomes: usize) -> Result<(), AppError> {
    let sum = payouts.iter().fold(U256::ZERO, |sum, payout| sum.saturating_add(*payout));
    if payouts.len() != outcomes {
        return Err(AppError::field("/payouts", "must be as many as the outcomes"));
    }
    if sum != Wad::ONE.0 {
        return Err(AppError::field("/payouts", "must sum to exactly 1"));
    }
    Ok(())
}

/// Adds what one token of each outcome pays, and what all its tokens pay.
fn paying(mut summary: Summary, outcomes: &[MarketOutcome], payouts: &[U256]) -> Summary {
    for (outcome, payout) in outcomes.iter().zip(payouts) {
        let all = Usdc::from_atomic(
            u64::try_from(
                outcome.supply().0.saturating_mul(*payout) / Wad::ONE.0 / U256::from(1_000_000_000_000_u64),
            )
            .unwrap_or(i64::MAX as u64),
        );
        let text = format!(
            "{} USDC per token, {} USDC for all {} tokens",
            decimal(Wad(*payout)),
            all.to_decimal(),
            decimal(outcome.supply())
        );
        summary = summary.fact(format!("{} pays", outcome.label), text);
    }
    summary
}

/// Adds the pending proposal.
async fn proposed(
    ctx: &Ctx,
    summary: Summary,
    market: &Market,
    outcomes: &[MarketOutcome],
) -> Result<Summary, AppError> {
    let found = markets::proposal(ctx, market.id).await?;
    let none = || AppError::invalid_state(ErrorCode::MarketNotTradeable, "the market has no proposal");
    let proposal = found.ok_or_else(none)?;
    let kind = if proposal.is_cancel { "a cancel" } else { "a result" };
    let summary = summary.fact("Proposal", kind);
    let payouts = match proposal.is_cancel {
        true => {
            let number = market.chain_market_id.ok_or_else(|| AppError::new(ErrorCode::MarketNotFound))?;
            ctx.chain.reference_prices(number).await?
        }
        false => proposal.payouts_wad,
    };
    Ok(paying(summary, outcomes, &payouts)
        .fact("Can be finalized from", Timestamp::from_s(proposal.finalizable_at_s)))
}
