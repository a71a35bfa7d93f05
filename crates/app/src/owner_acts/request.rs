//! Requests for acts, and the calls that they consist of.

use alloy_primitives::{Address, U256};
use chain::{AccountOwner, Call, KeyPolicy, calls, provision};
use domain::ids::{KeyId, MarketId, UserId};
use domain::key::KeyLimits;
use domain::owner_act::OwnerActKind;
use domain::trade::Side;
use domain::{ErrorCode, Usdc, Wad};
use store::keys::Key;
use store::users::Account;

use crate::accounts::{self, MAX_OWNERS, Owners, policy_of, policy_with};
use crate::markets::QuoteRequest;
use crate::{AppError, Ctx, markets};

/// An act that an owner is asked to sign.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum OwnerActRequest {
    /// Deploys the account if necessary, lets the Gate move its USDC and enables these keys.
    Enable {
        keys: Vec<KeyId>,
    },
    /// Enables one key.
    EnableKey {
        key: KeyId,
    },
    /// Enables one key with these caps, which must be within the key's limits.
    RaiseCaps {
        key: KeyId,
        caps: Caps,
    },
    /// Sends USDC to another address.
    Withdraw {
        to: Address,
        amount: WithdrawalAmount,
    },
    /// Sends tokens of an outcome to another address.
    SendPosition {
        to: Address,
        market_id: MarketId,
        outcome_index: u8,
        tokens: Wad,
    },
    AddOwner(AccountOwner),
    RemoveOwner(AccountOwner),
    /// Takes the USDC approval from the Gate, which ends all trading of the account.
    EndApproval,
    /// Trades directly at the hub, beyond the caps of every key.
    Trade {
        market_id: MarketId,
        outcome_index: u8,
        order: OwnerOrder,
    },
}

/// An order with the worst result that its owner accepts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OwnerOrder {
    /// Spends this USDC, the fee included.
    Buy { usdc: Usdc, min_tokens: Wad },
    /// Sells these tokens.
    Sell { tokens: Wad, min_usdc: Usdc },
}

/// Spending caps of a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Caps {
    /// The cap on one trade.
    pub per_trade: Usdc,
    /// The cap on the cost of all buys within 24 hours.
    pub daily: Usdc,
}

/// The amount of a withdrawal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WithdrawalAmount {
    /// Everything that open trades have not reserved.
    All,
    Exact(Usdc),
}

/// The facts that decide which calls a request needs.
pub(super) struct CallBuilder<'a> {
    pub ctx: &'a Ctx,
    pub user_id: UserId,
    pub owners: &'a Owners,
    /// The deadline of the act. The longest expiry of a delegation is counted from it.
    pub deadline_s: u64,
}

impl OwnerActRequest {
    pub const fn kind(&self) -> OwnerActKind {
        match self {
            Self::Enable { .. } => OwnerActKind::Enable,
            Self::EnableKey { .. } => OwnerActKind::EnableKey,
            Self::RaiseCaps { .. } => OwnerActKind::RaiseCaps,
            Self::Withdraw { .. } => OwnerActKind::Withdraw,
            Self::SendPosition { .. } => OwnerActKind::SendPosition,
            Self::AddOwner(_) => OwnerActKind::AddOwner,
            Self::RemoveOwner(_) => OwnerActKind::RemoveOwner,
            Self::EndApproval => OwnerActKind::EndApproval,
            Self::Trade { .. } => OwnerActKind::Trade,
        }
    }

    /// Returns the caps that the act sets, and their key.
    pub(super) const fn caps(&self) -> Option<(KeyId, Caps)> {
        match self {
            Self::RaiseCaps { key, caps } => Some((*key, *caps)),
            _ => None,
        }
    }
}

impl CallBuilder<'_> {
    /// Checks a request and returns its calls.
    ///
    /// # Errors
    /// A field error for a value that the contracts would reject, `RESOURCE_NOT_FOUND` for a key
    /// that is not an active key of the user, `INSUFFICIENT_BALANCE`.
    pub async fn calls_of(&self, request: &OwnerActRequest) -> Result<Vec<Call>, AppError> {
        match request {
            OwnerActRequest::Enable { keys } => self.enable(keys).await,
            OwnerActRequest::EnableKey { key } => self.enable(std::slice::from_ref(key)).await,
            OwnerActRequest::RaiseCaps { key, caps } => self.raise_caps(*key, *caps).await,
            OwnerActRequest::Withdraw { to, amount } => self.withdraw(*to, *amount).await,
            OwnerActRequest::SendPosition { to, market_id, outcome_index, tokens } => {
                self.send_position(*to, *market_id, *outcome_index, *tokens).await
            }
            OwnerActRequest::AddOwner(owner) => self.add_owner(owner),
            OwnerActRequest::RemoveOwner(owner) => self.remove_owner(owner),
            OwnerActRequest::EndApproval => {
                let gate = self.ctx.chain.contracts().gate;
                Ok(vec![self.call_of_usdc(calls::approve(gate, U256::ZERO))])
            }
            OwnerActRequest::Trade { market_id, outcome_index, order } => {
                self.trade(*market_id, *outcome_index, *order).await
            }
        }
    }

    const fn account(&self) -> &Account {
        &self.owners.account
    }

    fn call_of_usdc(&self, data: alloy_primitives::Bytes) -> Call {
        Call::new(self.ctx.chain.contracts().usdc, data)
    }

    async fn enable(&self, ids: &[KeyId]) -> Result<Vec<Call>, AppError> {
        let mut policies = Vec::with_capacity(ids.len());
        for key in self.active_keys(ids).await? {
            policies.push(policy_of(&key, self.deadline_s));
        }
        self.enabling(&policies).await
    }

    async fn raise_caps(&self, id: KeyId, caps: Caps) -> Result<Vec<Call>, AppError> {
        let mut policies = Vec::new();
        for key in self.active_keys(&[id]).await? {
            // The limits of the tier, not those that the user has chosen before.
            check_caps(&key.tier.limits(&key.overrides), caps)?;
            policies.push(policy_with(&key, caps.per_trade, caps.daily, self.deadline_s));
        }
        self.enabling(&policies).await
    }

    /// Returns the calls that set policies, after the approval of USDC if that is missing.
    async fn enabling(&self, policies: &[KeyPolicy]) -> Result<Vec<Call>, AppError> {
        let chain = &self.ctx.chain;
        let mut calls = provision::enabling_calls(chain.contracts(), policies);
        // The first call is the approval. Without policies it is the only purpose of the act.
        if !policies.is_empty() && self.owners.provisioned {
            let state = chain.account_state(self.account().address, 0).await?;
            if state.gate_allowance_atomic == U256::MAX {
                calls.remove(0);
            }
        }
        Ok(calls)
    }

    /// Returns the user's active keys with these ids.
    async fn active_keys(&self, ids: &[KeyId]) -> Result<Vec<Key>, AppError> {
        let all = self.ctx.store.read(self.user_id, |tx, id| Box::pin(store::keys::list(tx, *id))).await?;
        let now = self.ctx.now();
        let is_active =
            |key: &Key| key.revoked_at.is_none() && key.expires_at.is_none_or(|expires_at| expires_at > now);
        let mut keys = Vec::with_capacity(ids.len());
        for id in ids {
            let key = all.iter().find(|key| key.id == *id && is_active(key));
            keys.push(key.cloned().ok_or_else(|| {
                AppError::new(ErrorCode::ResourceNotFound).detail("The user has no active key with this id.")
            })?);
        }
        Ok(keys)
    }

    async fn withdraw(&self, to: Address, amount: WithdrawalAmount) -> Result<Vec<Call>, AppError> {
        self.check_recipient(to)?;
        let available = self.available().await?;
        let amount = match amount {
            WithdrawalAmount::All => available,
            WithdrawalAmount::Exact(amount) => amount,
        };
        if amount == Usdc::ZERO {
            return Err(AppError::field("/amount", "must be above 0"));
        }
        check_available(amount, available)?;
        Ok(vec![self.call_of_usdc(calls::transfer(to, U256::from(amount.atomic())))])
    }

    async fn send_position(
        &self,
        to: Address,
        market_id: MarketId,
        outcome_index: u8,
        tokens: Wad,
    ) -> Result<Vec<Call>, AppError> {
        self.check_recipient(to)?;
        let (rows, number) = markets::get(self.ctx, &market_id.to_string()).await?;
        let outcome = markets::outcome_of(rows.1.len(), i64::from(outcome_index))?;
        self.check_held(number, outcome, tokens).await?;
        let data = calls::transfer_position(to, number, outcome, tokens.0);
        Ok(vec![Call::new(self.ctx.chain.contracts().hub, data)])
    }

    /// Returns the calls of an order. The hub takes exactly the USDC that the order spends.
    async fn trade(
        &self,
        market_id: MarketId,
        outcome_index: u8,
        order: OwnerOrder,
    ) -> Result<Vec<Call>, AppError> {
        self.ctx.process.switches.check_new_trade()?;
        if self.ctx.process.switches.is_trading_halted() {
            return Err(AppError::new(ErrorCode::ApiTradeProcessingHalted));
        }
        let (_, number) = markets::get(self.ctx, &market_id.to_string()).await?;
        let (side, amount) = match order {
            OwnerOrder::Buy { usdc, .. } => (Side::Buy, U256::from(usdc.atomic())),
            OwnerOrder::Sell { tokens, .. } => (Side::Sell, tokens.0),
        };
        let asked = QuoteRequest { side, amount };
        let quote =
            markets::quote(self.ctx, &market_id.to_string(), i64::from(outcome_index), asked, None).await?;
        let hub = self.ctx.chain.contracts().hub;
        let moved = || AppError::new(ErrorCode::SlippageExceeded);
        match order {
            OwnerOrder::Buy { usdc, min_tokens } => {
                check_available(usdc, self.available().await?)?;
                if quote.fill.tokens_wad < min_tokens.0 {
                    return Err(moved());
                }
                let buy = calls::buy(number, quote.outcome_index, usdc.atomic(), min_tokens.0);
                let allow = self.call_of_usdc(calls::approve(hub, U256::from(usdc.atomic())));
                Ok(vec![allow, Call::new(hub, buy)])
            }
            OwnerOrder::Sell { tokens, min_usdc } => {
                self.check_held(number, quote.outcome_index, tokens).await?;
                if quote.fill.usdc_atomic < min_usdc.atomic() {
                    return Err(moved());
                }
                let sell = calls::sell(number, quote.outcome_index, tokens.0, min_usdc.atomic());
                Ok(vec![Call::new(hub, sell)])
            }
        }
    }

    /// Returns the USDC that open trades have not reserved.
    async fn available(&self) -> Result<Usdc, AppError> {
        let account = self.account();
        let balance = accounts::balance_of(self.ctx, account.address).await?;
        Ok(balance.saturating_sub(account.reserved))
    }

    async fn check_held(&self, number: u64, outcome: u8, tokens: Wad) -> Result<(), AppError> {
        if tokens == Wad::ZERO {
            return Err(AppError::field("/tokens", "must be above 0"));
        }
        let held = Wad(self.ctx.chain.position(self.account().address, number, outcome).await?);
        if tokens > held {
            return Err(AppError::new(ErrorCode::InsufficientBalance)
                .detail("The account does not hold this many tokens of the outcome.")
                .with("requiredTokens", tokens.to_string())
                .with("availableTokens", held.to_string()));
        }
        Ok(())
    }

    /// Rejects recipients that could never send the funds on.
    fn check_recipient(&self, to: Address) -> Result<(), AppError> {
        let contracts = self.ctx.chain.contracts();
        let detail = if to == Address::ZERO {
            "must not be the zero address"
        } else if to == self.account().address {
            "must not be the account itself"
        } else if [
            contracts.usdc,
            contracts.gate,
            contracts.hub,
            contracts.authority,
            contracts.account_factory,
        ]
        .contains(&to)
        {
            "must not be a contract of the service: it could never send the funds on"
        } else {
            return Ok(());
        };
        Err(AppError::field("/to", detail))
    }

    fn add_owner(&self, owner: &AccountOwner) -> Result<Vec<Call>, AppError> {
        if self.owners.owners.contains(owner) {
            return Err(AppError::field("/owner", "must not be an owner already"));
        }
        if self.owners.owners.len() >= MAX_OWNERS {
            return Err(AppError::field(
                "/owner",
                "must not be added: the account has the maximum of 16 owners",
            ));
        }
        Ok(vec![Call::new(self.account().address, calls::add_owner(owner))])
    }

    fn remove_owner(&self, owner: &AccountOwner) -> Result<Vec<Call>, AppError> {
        if !self.owners.owners.contains(owner) {
            return Err(AppError::field("/owner", "must be an owner"));
        }
        if self.owners.owners.len() == 1 {
            return Err(AppError::field("/owner", "must not be the only owner"));
        }
        Ok(vec![Call::new(self.account().address, calls::remove_owner(owner))])
    }
}

fn check_available(amount: Usdc, available: Usdc) -> Result<(), AppError> {
    if amount > available {
        return Err(AppError::new(ErrorCode::InsufficientBalance)
            .detail("The account does not hold this much USDC beyond what open trades have reserved.")
            .with("requiredUsdc", amount.to_string())
            .with("availableUsdc", available.to_string()));
    }
    Ok(())
}

/// Rejects caps outside the key's limits.
fn check_caps(limits: &KeyLimits, caps: Caps) -> Result<(), AppError> {
    for (pointer, cap, limit) in
        [("/perTradeUsdc", caps.per_trade, limits.per_trade), ("/dailyUsdc", caps.daily, limits.daily)]
    {
        if cap == Usdc::ZERO {
            return Err(AppError::field(pointer, "must be above 0"));
        }
        if cap > limit {
            return Err(AppError::field(pointer, "must be at most the limit of the key's tier"));
        }
    }
    if caps.per_trade > caps.daily {
        return Err(AppError::field("/perTradeUsdc", "must be at most the daily cap"));
    }
    Ok(())
}
