//! What the contracts hold now.

use alloy::eips::BlockId;
use alloy::providers::Provider;
use alloy_primitives::{Address, B256, U256};

use super::batch::Call;
use super::bindings::token::Token;
use super::bindings::{Account, AccountFactory, Gate, MarketHub};
use super::chain::{Chain, Contracts};
use super::error::ChainError;
use super::intent::Side;
use super::owner::Owner;
use super::revert::Revert;
use super::state::{
    AccountState, Fill, HourlyVolume, MarketOnChain, MarketStatus, OutcomeOnChain, Policy, Position,
    Resolution, token_id, u64_of,
};

impl Chain {
    /// What a trade would move now. `amount` is USDC atomic or tokens WAD, as the side's exact amount is; for
    /// `SellAll` it is the balance in tokens.
    ///
    /// # Errors
    /// `Reverted` with the same reasons as the trade's, and what else a read gives.
    pub async fn quote(
        &self,
        market_id: u64,
        outcome: u8,
        side: Side,
        amount: U256,
    ) -> Result<Fill, ChainError> {
        self.quote_in(self.reads_at, market_id, outcome, side, amount).await
    }

    /// What a trade would have moved right after the block with this hash.
    ///
    /// # Errors
    /// As [`Self::quote`]; `Rejected` where the node does not have that block's state, `Decode` where the hub was not there.
    pub async fn quote_at(
        &self,
        block: B256,
        market_id: u64,
        outcome: u8,
        side: Side,
        amount: U256,
    ) -> Result<Fill, ChainError> {
        self.quote_in(BlockId::hash(block), market_id, outcome, side, amount).await
    }

    async fn quote_in(
        &self,
        block: BlockId,
        market_id: u64,
        outcome: u8,
        side: Side,
        amount: U256,
    ) -> Result<Fill, ChainError> {
        let side = if side == Side::SellAll { Side::SellTokens } else { side };
        let call = MarketHub::quoteCall { marketId: market_id, index: outcome, side: side as u8, amount };
        let fill = self.view_at(self.contracts.hub, call, block).await?;
        Ok(Fill {
            usdc_atomic: u64_of(fill.usdc, "usdc")?,
            tokens_wad: fill.tokens,
            fee_atomic: u64_of(fill.fee, "fee")?,
            cost_before_wad: fill.costBefore,
            cost_after_wad: fill.costAfter,
            quantity_before_wad: fill.quantityBefore,
            quantity_after_wad: fill.quantityAfter,
        })
    }

    /// Each outcome's quantity `q_i` right after the block with this hash.
    ///
    /// # Errors
    /// As [`Self::quote_at`].
    pub async fn quantities_at(&self, block: B256, market_id: u64) -> Result<Vec<U256>, ChainError> {
        let call = MarketHub::outcomesCall { marketId: market_id };
        let outcomes = self.view_at(self.contracts.hub, call, BlockId::hash(block)).await?;
        Ok(outcomes.into_iter().map(|outcome| outcome.quantity).collect())
    }

    /// A market's state and its outcomes'. Two reads: a trade between them shows in one half only, so what
    /// must agree is built from events instead.
    ///
    /// # Errors
    /// `Reverted(MarketUnknown)` where there is none, and what else a read gives.
    pub async fn market(&self, market_id: u64) -> Result<MarketOnChain, ChainError> {
        self.market_in(self.reads_at, market_id).await
    }

    /// The same right after the block with this hash: both halves agree.
    ///
    /// # Errors
    /// As [`Self::market`]; `Rejected` if the node does not have that block's state.
    pub async fn market_at(&self, market_id: u64, block: B256) -> Result<MarketOnChain, ChainError> {
        self.market_in(BlockId::hash(block), market_id).await
    }

    async fn market_in(&self, block: BlockId, market_id: u64) -> Result<MarketOnChain, ChainError> {
        let hub = self.contracts.hub;
        let (state, outcomes) = tokio::try_join!(
            self.view_at(hub, MarketHub::marketCall { marketId: market_id }, block),
            self.view_at(hub, MarketHub::outcomesCall { marketId: market_id }, block),
        )?;
        let outcomes = outcomes.into_iter().map(|outcome| OutcomeOnChain {
            quantity_wad: outcome.quantity,
            supply_wad: outcome.supply,
            basis_usdc_atomic: outcome.basis,
            volume_usdc_atomic: outcome.volume,
            trades: outcome.trades,
        });
        Ok(MarketOnChain {
            status: MarketStatus::from_wire(state.status)?,
            fee_bps: state.feeBps,
            close_time_s: state.closeTime.into(),
            liquidity_usdc_atomic: state.liquidity,
            fees_usdc_atomic: state.fees,
            cost_wad: state.cost,
            outcomes: outcomes.collect(),
        })
    }

    /// The market created under that reference.
    ///
    /// # Errors
    /// What a read gives.
    pub async fn market_of(&self, reference: B256) -> Result<Option<u64>, ChainError> {
        let call = MarketHub::marketOfCall { r#ref: reference };
        let market_id = self.view(self.contracts.hub, call).await?;
        Ok((market_id != 0).then_some(market_id))
    }

    /// How many markets there are; their ids run from 1.
    ///
    /// # Errors
    /// What a read gives.
    pub async fn market_count(&self) -> Result<u64, ChainError> {
        self.view(self.contracts.hub, MarketHub::marketCountCall {}).await
    }

    /// Each outcome's price, WAD.
    ///
    /// # Errors
    /// `Reverted(MarketUnknown)`, and what else a read gives.
    pub async fn prices(&self, market_id: u64) -> Result<Vec<U256>, ChainError> {
        self.view(self.contracts.hub, MarketHub::pricesCall { marketId: market_id }).await
    }

    /// How the market ended.
    ///
    /// # Errors
    /// What a read gives.
    pub async fn resolution(&self, market_id: u64) -> Result<Resolution, ChainError> {
        let call = MarketHub::resolutionCall { marketId: market_id };
        let resolution = self.view(self.contracts.hub, call).await?;
        Ok(Resolution { payouts_wad: resolution.payouts, scale_wad: resolution.scale })
    }

    /// How the market had ended after the block of this height; `None` where it had not.
    ///
    /// # Errors
    /// What a read gives; `Rejected` where the node no longer has that block's state.
    pub async fn resolution_at(&self, market_id: u64, block: u64) -> Result<Option<Resolution>, ChainError> {
        let (hub, block) = (self.contracts.hub, BlockId::number(block));
        let read = tokio::try_join!(
            self.view_at(hub, MarketHub::marketCall { marketId: market_id }, block),
            self.view_at(hub, MarketHub::resolutionCall { marketId: market_id }, block),
        );
        let (state, resolution) = match read {
            Err(ChainError::Reverted(Revert::MarketUnknown)) => return Ok(None),
            read => read?,
        };
        let status = MarketStatus::from_wire(state.status)?;
        let ended = matches!(status, MarketStatus::Resolved | MarketStatus::Cancelled);
        let resolution = Resolution { payouts_wad: resolution.payouts, scale_wad: resolution.scale };
        Ok(ended.then_some(resolution))
    }

    /// What a key needs in order to trade for an account; four reads side by side.
    ///
    /// # Errors
    /// What a read gives.
    pub async fn account_state(&self, account: Address, key_index: u32) -> Result<AccountState, ChainError> {
        let Contracts { usdc, gate, .. } = self.contracts;
        let code = async {
            self.provider.get_code_at(account).block_id(self.reads_at).await.map_err(ChainError::of_read)
        };
        let (code, balance, allowance, policy) = tokio::try_join!(
            code,
            self.view(usdc, Token::balanceOfCall { account }),
            self.view(usdc, Token::allowanceCall { owner: account, spender: gate }),
            self.policy(account, key_index),
        )?;
        Ok(AccountState {
            provisioned: !code.is_empty(),
            usdc_balance_atomic: balance,
            gate_allowance_atomic: allowance,
            policy,
        })
    }

    /// A key's policy; all zero where it never had one.
    ///
    /// # Errors
    /// What a read gives.
    pub async fn policy(&self, account: Address, key_index: u32) -> Result<Policy, ChainError> {
        let policy = self.view(self.contracts.gate, Gate::policyCall { account, key: key_index }).await?;
        Ok(Policy {
            per_trade_usdc_atomic: policy.perTrade,
            daily_usdc_atomic: policy.daily,
            spent_usdc_atomic: policy.spent,
            window_start_s: policy.windowStart.into(),
            expiry_s: policy.expiry.into(),
            nonce_top: policy.nonceTop,
            nonce_bitmap: policy.nonceBitmap,
        })
    }

    /// What all delegated trades of the Gate's present hour have moved and may move; two reads side by side.
    ///
    /// # Errors
    /// What a read gives.
    pub async fn hourly_volume(&self) -> Result<HourlyVolume, ChainError> {
        let gate = self.contracts.gate;
        let (cap, volume) = tokio::try_join!(
            self.view(gate, Gate::hourlyVolumeCapCall {}),
            self.view(gate, Gate::hourlyVolumeCall {}),
        )?;
        Ok(HourlyVolume {
            cap_usdc_atomic: cap,
            used_usdc_atomic: volume.used,
            window_start_s: volume.windowStart.into(),
        })
    }

    /// What any address holds of USDC, atomic.
    ///
    /// # Errors
    /// What a read gives.
    pub async fn usdc_balance(&self, holder: Address) -> Result<U256, ChainError> {
        self.view(self.contracts.usdc, Token::balanceOfCall { account: holder }).await
    }

    /// What an address held of USDC, atomic, after the block of this height.
    ///
    /// # Errors
    /// What a read gives; `Rejected` where the node no longer has that block's state.
    pub async fn usdc_balance_at(&self, holder: Address, block: u64) -> Result<U256, ChainError> {
        let call = Token::balanceOfCall { account: holder };
        self.view_at(self.contracts.usdc, call, BlockId::number(block)).await
    }

    /// What an account holds of one outcome.
    ///
    /// # Errors
    /// What a read gives.
    pub async fn position(
        &self,
        account: Address,
        market_id: u64,
        outcome: u8,
    ) -> Result<Position, ChainError> {
        let call = MarketHub::positionCall { account, tokenId: token_id(market_id, outcome) };
        let position = self.view(self.contracts.hub, call).await?;
        Ok(Position {
            tokens_wad: position.balance,
            basis_usdc_atomic: u64_of(position.basis, "cost basis")?,
        })
    }

    /// USDC atomic that `redeem` would pay now; zero where it would revert.
    ///
    /// # Errors
    /// What a read gives.
    pub async fn redeemable(&self, account: Address, market_id: u64, outcome: u8) -> Result<u64, ChainError> {
        let call = MarketHub::redeemableCall { account, marketId: market_id, index: outcome };
        u64_of(self.view(self.contracts.hub, call).await?, "redeemable")
    }

    /// The same after the block of this height.
    ///
    /// # Errors
    /// What a read gives; `Rejected` where the node no longer has that block's state.
    pub async fn redeemable_at(
        &self,
        account: Address,
        market_id: u64,
        outcome: u8,
        block: u64,
    ) -> Result<u64, ChainError> {
        let call = MarketHub::redeemableCall { account, marketId: market_id, index: outcome };
        u64_of(self.view_at(self.contracts.hub, call, BlockId::number(block)).await?, "redeemable")
    }

    /// USDC atomic that a batch of redemptions would really pay now, position by position: zero where nothing is due, and
    /// where the payment itself would be refused.
    ///
    /// # Errors
    /// What a read gives.
    pub async fn simulate_redemptions(
        &self,
        positions: &[(Address, u64, u8)],
    ) -> Result<Vec<u64>, ChainError> {
        let call = MarketHub::redeemBatchCall {
            accounts: positions.iter().map(|(account, ..)| *account).collect(),
            tokenIds: positions
                .iter()
                .map(|(_, market_id, outcome)| token_id(*market_id, *outcome))
                .collect(),
        };
        let paid = self.view(self.contracts.hub, call).await?;
        paid.into_iter().map(|usdc| u64_of(usdc, "payment")).collect()
    }

    /// The address that the owner's account has or will have.
    ///
    /// # Errors
    /// What a read gives.
    pub async fn account_address(&self, owner: &Owner, salt: B256) -> Result<Address, ChainError> {
        let call = AccountFactory::accountAddressCall { owner: owner.to_bytes(), salt };
        self.view(self.contracts.account_factory, call).await
    }

    /// The nonce of the next batch that the account's owner signs; zero before the account exists.
    ///
    /// # Errors
    /// What a read gives.
    pub async fn account_nonce(&self, account: Address) -> Result<u64, ChainError> {
        let code =
            self.provider.get_code_at(account).block_id(self.reads_at).await.map_err(ChainError::of_read)?;
        if code.is_empty() {
            return Ok(0);
        }
        u64_of(self.view(account, Account::nonceCall {}).await?, "account nonce")
    }

    /// Whether an intent with that nonce was settled, or can no longer be: nonces begin at one, and those
    /// more than 32 below the highest one used are gone.
    ///
    /// # Errors
    /// What a read gives.
    pub async fn is_nonce_used(
        &self,
        account: Address,
        key_index: u32,
        nonce: u32,
    ) -> Result<bool, ChainError> {
        self.view(self.contracts.gate, Gate::isNonceUsedCall { account, key: key_index, nonce }).await
    }

    /// The digest of a batch as the account itself computes it; see [`super::batch_digest`] for the one that
    /// needs no account.
    ///
    /// # Errors
    /// What a read gives.
    pub async fn digest_of(
        &self,
        account: Address,
        calls: &[Call],
        nonce: u64,
        deadline_s: u64,
    ) -> Result<B256, ChainError> {
        let calls = calls.iter().cloned().map(|call| Account::Call {
            target: call.target,
            value: call.value,
            data: call.data,
        });
        let call = Account::digestOfCall {
            calls: calls.collect(),
            nonce_: U256::from(nonce),
            deadline: U256::from(deadline_s),
        };
        self.view(account, call).await
    }
}
