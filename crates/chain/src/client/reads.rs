//! Reads the current state of the contracts.

use alloy::eips::BlockId;
use alloy::providers::Provider;
use alloy::sol_types::SolCall;
use alloy_primitives::{Address, B256, Bytes, U256};

use super::batch::Call;
use super::chain::{Chain, Contracts};
use super::owner::AccountOwner;
use super::state::{
    AccountState, ChainMarketStatus, ExecutorVolume, MarketOnChain, MarketSchedule, OutcomeOnChain, Policy,
    Proposal, token_id, u64_of,
};
use crate::bindings::token::Token;
use crate::bindings::{Account, AccountFactory, Gate, MarketHub};
use crate::error::ChainError;
use crate::revert::Revert;

/// The maximum number of views in one call. Nodes limit the gas of a call, often to 50 million. The
/// prices of a market with 250 outcomes use about one million.
const MARKETS_PER_CALL: usize = 25;
const POSITIONS_PER_CALL: usize = 500;

impl Chain {
    /// Returns the quantity `q_i` of each outcome right after the block with this hash.
    ///
    /// # Errors
    ///
    /// As for [`Self::quote_at`].
    pub async fn quantities_at(&self, block: B256, market_id: u64) -> Result<Vec<U256>, ChainError> {
        let call = MarketHub::outcomesCall { marketId: market_id };
        let outcomes = self.view_at(self.contracts.hub, call, BlockId::hash(block)).await?;
        Ok(outcomes.into_iter().map(|outcome| outcome.quantity).collect())
    }

    /// Returns the state of a market and of its outcomes, both from the same block.
    ///
    /// # Errors
    ///
    /// `Reverted(MarketUnknown)` if the market does not exist.
    pub async fn market(&self, market_id: u64) -> Result<MarketOnChain, ChainError> {
        self.market_in(self.reads_at, market_id).await
    }

    /// Like [`Self::market`], right after the block with this hash.
    ///
    /// # Errors
    ///
    /// As for [`Self::market`]. `Rejected` if the node lacks that block's state.
    pub async fn market_at(&self, market_id: u64, block: B256) -> Result<MarketOnChain, ChainError> {
        self.market_in(BlockId::hash(block), market_id).await
    }

    async fn market_in(&self, block: BlockId, market_id: u64) -> Result<MarketOnChain, ChainError> {
        let (state, outcomes) =
            (MarketHub::marketCall { marketId: market_id }, MarketHub::outcomesCall { marketId: market_id });
        let [state, outcomes] = self.views_in(block, [state.abi_encode(), outcomes.abi_encode()]).await?;
        let state = MarketHub::marketCall::abi_decode_returns(&state)?;
        let outcomes = MarketHub::outcomesCall::abi_decode_returns(&outcomes)?;
        let outcomes = outcomes.into_iter().map(|outcome| OutcomeOnChain {
            quantity_wad: outcome.quantity,
            supply_wad: outcome.supply,
            volume_usdc_atomic: outcome.volume,
            trades: outcome.trades,
        });
        Ok(MarketOnChain {
            status: ChainMarketStatus::from_wire(state.status)?,
            fee_bps: state.feeBps,
            close_time_s: state.closeTime.into(),
            liquidity_usdc_atomic: state.liquidity,
            fees_usdc_atomic: state.fees,
            cost_wad: state.cost,
            outcomes: outcomes.collect(),
        })
    }

    /// Returns the id of the market created under this reference.
    pub async fn market_of(&self, reference: B256) -> Result<Option<u64>, ChainError> {
        let call = MarketHub::marketOfCall { r#ref: reference };
        let market_id = self.view(self.contracts.hub, call).await?;
        Ok((market_id != 0).then_some(market_id))
    }

    /// Returns the number of markets. Market ids run from 1 to this number.
    pub async fn market_count(&self) -> Result<u64, ChainError> {
        self.view(self.contracts.hub, MarketHub::marketCountCall {}).await
    }

    /// Returns the price of each outcome, WAD.
    ///
    /// # Errors
    ///
    /// `Reverted(MarketUnknown)`
    pub async fn prices(&self, market_id: u64) -> Result<Vec<U256>, ChainError> {
        self.view(self.contracts.hub, MarketHub::pricesCall { marketId: market_id }).await
    }

    /// Returns the payment for one token of each outcome of a settled market, WAD. Empty before the
    /// market is settled.
    pub async fn resolution(&self, market_id: u64) -> Result<Vec<U256>, ChainError> {
        self.view(self.contracts.hub, MarketHub::resolutionCall { marketId: market_id }).await
    }

    /// Like [`Self::resolution`], after the block of this height. `None` if the market was not
    /// settled then.
    ///
    /// # Errors
    ///
    /// `Rejected` if the node no longer has that block's state.
    pub async fn resolution_at(&self, market_id: u64, block: u64) -> Result<Option<Vec<U256>>, ChainError> {
        let call = MarketHub::resolutionCall { marketId: market_id };
        match self.view_at(self.contracts.hub, call, BlockId::number(block)).await {
            // The market did not exist yet at that block.
            Err(ChainError::Reverted(Revert::MarketUnknown)) => Ok(None),
            payouts => Ok(Some(payouts?).filter(|payouts| !payouts.is_empty())),
        }
    }

    /// Returns the payment for one token of each outcome if the market were cancelled now, WAD.
    ///
    /// # Errors
    ///
    /// `Reverted(MarketUnknown)`
    pub async fn reference_prices(&self, market_id: u64) -> Result<Vec<U256>, ChainError> {
        self.view(self.contracts.hub, MarketHub::referencePricesCall { marketId: market_id }).await
    }

    /// Returns the market's times and its pending proposal, both from the same block.
    ///
    /// # Errors
    ///
    /// `Reverted(MarketUnknown)`
    pub async fn schedule(&self, market_id: u64) -> Result<MarketSchedule, ChainError> {
        let (times, proposal) = (
            MarketHub::scheduleCall { marketId: market_id },
            MarketHub::proposalCall { marketId: market_id },
        );
        let [times, proposal] =
            self.views_in(self.reads_at, [times.abi_encode(), proposal.abi_encode()]).await?;
        let times = MarketHub::scheduleCall::abi_decode_returns(&times)?;
        let proposal = MarketHub::proposalCall::abi_decode_returns(&proposal)?;
        let some = |at_s: u64| (at_s != 0).then_some(at_s);
        Ok(MarketSchedule {
            frozen_at_s: some(times.frozenAt),
            cancellable_at_s: some(times.cancellableAt),
            result_due_at_s: times.resultDueAt,
            is_held: times.isHeld,
            proposal: some(proposal.finalizableAt).map(|finalizable_at_s| Proposal {
                is_cancel: proposal.isCancel,
                finalizable_at_s,
                payouts_wad: proposal.payouts,
            }),
        })
    }

    /// Runs several views of the hub in one call, so that all results come from the same block.
    async fn views_in<const N: usize>(
        &self,
        block: BlockId,
        calls: [Vec<u8>; N],
    ) -> Result<[Bytes; N], ChainError> {
        let call = MarketHub::viewBatchCall { calls: calls.into_iter().map(Bytes::from).collect() };
        let results = self.view_at(self.contracts.hub, call, block).await?;
        let count = results.len();
        results.try_into().map_err(|_| ChainError::Decode(format!("{count} results of {N} views")))
    }

    /// Returns the state that decides whether a key can trade for an account. Runs four reads
    /// concurrently: on a live chain they may see different blocks.
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

    /// Returns a key's policy; all zero if the key never had one.
    pub async fn policy(&self, account: Address, key_index: u32) -> Result<Policy, ChainError> {
        let policy = self.view(self.contracts.gate, Gate::policyCall { account, key: key_index }).await?;
        Ok(Policy {
            per_trade_usdc_atomic: policy.perTrade,
            daily_usdc_atomic: policy.daily,
            spent_usdc_atomic: policy.spent,
            window_start_s: policy.windowStart.into(),
            sale_per_trade_usdc_atomic: policy.salePerTrade,
            sale_daily_usdc_atomic: policy.saleDaily,
            sold_usdc_atomic: policy.sold,
            sale_window_start_s: policy.saleWindowStart.into(),
            expiry_s: policy.expiry.into(),
            nonce_top: policy.nonceTop,
            nonce_bitmap: policy.nonceBitmap,
        })
    }

    /// Returns an executor's hourly cap and its used part.
    pub async fn executor_volume(&self, executor: Address) -> Result<ExecutorVolume, ChainError> {
        let right = self.view(self.contracts.gate, Gate::executorCall { executor_: executor }).await?;
        Ok(ExecutorVolume {
            cap_usdc_atomic: right.hourlyCap,
            used_usdc_atomic: right.used,
            as_of_s: right.asOf.into(),
        })
    }

    /// Returns the USDC balance of any address, atomic.
    pub async fn usdc_balance(&self, holder: Address) -> Result<U256, ChainError> {
        self.view(self.contracts.usdc, Token::balanceOfCall { account: holder }).await
    }

    /// Returns the USDC balance of an address after the block of this height, atomic.
    ///
    /// # Errors
    ///
    /// `Rejected` if the node no longer has that block's state.
    pub async fn usdc_balance_at(&self, holder: Address, block: u64) -> Result<U256, ChainError> {
        let call = Token::balanceOfCall { account: holder };
        self.view_at(self.contracts.usdc, call, BlockId::number(block)).await
    }

    /// Returns the tokens of one outcome that an account holds, WAD.
    pub async fn position(&self, account: Address, market_id: u64, outcome: u8) -> Result<U256, ChainError> {
        let call = MarketHub::balanceOfCall { owner: account, id: token_id(market_id, outcome) };
        self.view(self.contracts.hub, call).await
    }

    /// Returns the tokens (WAD) of each of these positions. Batches many positions into one call.
    pub async fn tokens_of(&self, positions: &[(Address, u64, u8)]) -> Result<Vec<U256>, ChainError> {
        let calls = positions.iter().map(|(account, market_id, outcome)| MarketHub::balanceOfCall {
            owner: *account,
            id: token_id(*market_id, *outcome),
        });
        self.view_each(&calls.collect::<Vec<_>>(), POSITIONS_PER_CALL).await
    }

    /// Returns the USDC (atomic) that `redeem` would pay now for each of these positions; 0 if it
    /// would revert. Batches many positions into one call.
    pub async fn redeemable_of(&self, positions: &[(Address, u64, u8)]) -> Result<Vec<u64>, ChainError> {
        let calls = positions.iter().map(|(account, market_id, outcome)| MarketHub::redeemableCall {
            account: *account,
            marketId: *market_id,
            index: *outcome,
        });
        let paid = self.view_each(&calls.collect::<Vec<_>>(), POSITIONS_PER_CALL).await?;
        paid.into_iter().map(|usdc| u64_of(usdc, "redeemable")).collect()
    }

    /// Returns the prices of each of these markets, WAD. Batches many markets into one call.
    ///
    /// # Errors
    ///
    /// As for [`Self::prices`].
    pub async fn prices_of(&self, market_ids: &[u64]) -> Result<Vec<Vec<U256>>, ChainError> {
        let calls = market_ids.iter().map(|id| MarketHub::pricesCall { marketId: *id });
        self.view_each(&calls.collect::<Vec<_>>(), MARKETS_PER_CALL).await
    }

    /// Runs the same view of the hub with many arguments, `per_call` at a time.
    ///
    /// # Errors
    ///
    /// The first error of a view.
    pub(super) async fn view_each<C: SolCall>(
        &self,
        calls: &[C],
        per_call: usize,
    ) -> Result<Vec<C::Return>, ChainError> {
        let mut results = Vec::with_capacity(calls.len());
        // On a live chain, several calls may see different blocks.
        for page in calls.chunks(per_call) {
            let call = MarketHub::viewBatchCall {
                calls: page.iter().map(|call| Bytes::from(call.abi_encode())).collect(),
            };
            let page = self.view(self.contracts.hub, call).await?;
            for result in page {
                results.push(C::abi_decode_returns(&result)?);
            }
        }
        Ok(results)
    }

    /// Returns the USDC (atomic) that `redeem` would pay now; 0 if it would revert.
    pub async fn redeemable(&self, account: Address, market_id: u64, outcome: u8) -> Result<u64, ChainError> {
        let call = MarketHub::redeemableCall { account, marketId: market_id, index: outcome };
        u64_of(self.view(self.contracts.hub, call).await?, "redeemable")
    }

    /// Like [`Self::redeemable`], after the block of this height.
    ///
    /// # Errors
    ///
    /// `Rejected` if the node no longer has that block's state.
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

    /// Returns the USDC (atomic) that a batch of redemptions would pay now, for each position. A
    /// position counts 0 if no payment is due or if the transfer itself would fail. Unlike
    /// [`Self::redeemable_of`], this runs the transfers.
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

    /// Returns the address that the owner's account has or will have.
    pub async fn account_address(&self, owner: &AccountOwner, salt: B256) -> Result<Address, ChainError> {
        let call = AccountFactory::accountAddressCall { owner: owner.to_bytes(), salt };
        self.view(self.contracts.account_factory, call).await
    }

    /// Returns the account's nonce for its next signed batch; 0 before the account exists.
    pub async fn account_nonce(&self, account: Address) -> Result<u64, ChainError> {
        let code =
            self.provider.get_code_at(account).block_id(self.reads_at).await.map_err(ChainError::of_read)?;
        if code.is_empty() {
            // Calling an account without code would return an empty output, which does not decode.
            return Ok(0);
        }
        u64_of(self.view(account, Account::nonceCall {}).await?, "account nonce")
    }

    /// Returns the current owners of an account, with the first owner first if it still is one.
    /// `None` if the account does not exist on chain.
    pub async fn account_owners(&self, account: Address) -> Result<Option<Vec<AccountOwner>>, ChainError> {
        let code =
            self.provider.get_code_at(account).block_id(self.reads_at).await.map_err(ChainError::of_read)?;
        if code.is_empty() {
            return Ok(None);
        }
        let owners = self.view(account, Account::ownersCall {}).await?;
        let owners: Result<Vec<AccountOwner>, _> =
            owners.iter().map(|owner| AccountOwner::from_bytes(owner)).collect();
        owners.map(Some).map_err(|error| ChainError::Decode(format!("owners of {account}: {error}")))
    }

    /// Returns true if an intent with that nonce was settled or can no longer be executed. Nonces
    /// start at 1. Nonces more than 32 below the highest used one count as used.
    pub async fn is_nonce_used(
        &self,
        account: Address,
        key_index: u32,
        nonce: u32,
    ) -> Result<bool, ChainError> {
        self.view(self.contracts.gate, Gate::isNonceUsedCall { account, key: key_index, nonce }).await
    }

    /// Returns the digest of a batch as the account contract computes it. [`super::batch_digest`]
    /// computes the same digest without the account.
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
