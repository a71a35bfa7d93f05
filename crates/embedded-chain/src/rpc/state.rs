//! Methods that read balances, code and storage, and run calls and estimates, at the newest or a
//! past block.

use std::borrow::Cow;

use alloy::eips::BlockId;
use alloy::rpc::types::state::{AccountOverride, StateOverride};
use alloy::rpc::types::{BlockOverrides, TransactionRequest};
use alloy_primitives::{Address, B256, Bytes, U64, U256};
use rusqlite::Connection;

use super::blocks::{BlockRef, is_newest};
use super::params::Params;
use super::{RpcResult, json};
use crate::EmbeddedNode;
use crate::account::{self, AccountView, Bytecode};
use crate::block;
use crate::error::{EmbeddedError, RpcError};
use crate::evm::{self, BlockContext, Execution, ExecutionOutcome, ReadState, TransactionFault};
use crate::state::ChainState;
use crate::storage;

/// The gas cap per transaction since Osaka (EIP-7825). An estimate must not exceed it.
const TRANSACTION_GAS_CAP: u64 = 1 << 24;
/// The gas of a transfer to an account without code.
const TRANSFER_GAS: u64 = 21_000;
/// The stipend of an inner call: gas that must be available even if the call does not use it.
const CALL_STIPEND: u64 = 2_300;
/// An estimate may exceed the lowest sufficient gas by this fraction of itself: 1.5%, the same as
/// geth's.
const ESTIMATE_TOLERANCE_PER_MILLE: u64 = 15;

impl EmbeddedNode {
    /// Runs `read` on the state at `id`, with the environment of a call at that block.
    ///
    /// At the newest block, the environment has the clock's time instead of the block's. The newest
    /// block may be hours old, and a call is meant to predict the next transaction.
    fn at<T>(
        &self,
        id: Option<BlockId>,
        read: impl FnOnce(&BlockContext, &dyn ReadState) -> Result<T, RpcError>,
    ) -> Result<T, RpcError> {
        let id = id.unwrap_or_default();
        let chain = self.shared.chain.read();
        if is_newest(&id) {
            let mut context = block::context_of(self.chain_id(), chain.head());
            context.timestamp = context.timestamp.max(self.shared.clock.now().s());
            return read(&context, &*chain);
        }
        let block = self.find_block(&chain, id)?.ok_or_else(|| RpcError::refused("header not found"))?;
        let context = block::context_of(self.chain_id(), &block);
        if context.number == chain.head().header.number {
            return read(&context, &*chain);
        }
        // The inner result is the caller's error, such as a rejected call. The outer one is the
        // archive's.
        self.shared.archive.read(|connection| {
            let past = Past { chain: &chain, connection, number: context.number };
            Ok(read(&context, &past))
        })?
    }

    /// Returns data of the account in the first parameter. `block` is the index of the block
    /// parameter.
    fn account<T>(
        &self,
        params: &Params<'_>,
        block: usize,
        view: impl FnOnce(AccountView) -> T,
    ) -> Result<T, RpcError> {
        let address: Address = params.get(0)?;
        let id = params.find::<BlockRef>(block)?.map(BlockId::from);
        self.at(id, |_, state| Ok(view(state.account(address)?.unwrap_or_default())))
    }

    pub(super) fn balance(&self, params: &Params<'_>) -> RpcResult {
        json(&self.account(params, 1, |account| account.balance)?)
    }

    pub(super) fn code(&self, params: &Params<'_>) -> RpcResult {
        json(&self.account(params, 1, |account| account.code.original_bytes())?)
    }

    pub(super) fn transaction_count(&self, params: &Params<'_>) -> RpcResult {
        json(&U64::from(self.account(params, 1, |account| account.nonce)?))
    }

    pub(super) fn storage_at(&self, params: &Params<'_>) -> RpcResult {
        let (address, slot): (Address, U256) = (params.get(0)?, params.get(1)?);
        let id = params.find::<BlockRef>(2)?.map(BlockId::from);
        let value = self.at(id, |_, state| Ok(state.slot(address, slot)?))?;
        json(&B256::from(value))
    }

    pub(super) fn message_call(&self, params: &Params<'_>, max_gas: u64) -> RpcResult {
        let mut message = Message::parse(params)?;
        message.block_overrides = params.find(3)?;
        json(&self.called(&message, max_gas)?)
    }

    /// Runs `eth_call` with `request` at the newest block, without JSON encoding.
    ///
    /// # Errors
    ///
    /// The error object of the JSON-RPC response.
    pub fn call_newest(&self, request: TransactionRequest) -> Result<Bytes, RpcError> {
        let overrides = StateOverride::default();
        self.called(&Message { request, block: None, overrides, block_overrides: None }, u64::MAX)
    }

    fn called(&self, message: &Message, max_gas: u64) -> Result<Bytes, RpcError> {
        let execution = self.at(message.block, |context, state| {
            let context = message.context(context)?;
            let gas = message.request.gas.unwrap_or(context.gas_limit).min(context.gas_limit).min(max_gas);
            message.run(&context, state, gas)
        })?;
        returned(execution)
    }

    /// Returns the lowest gas with which the message succeeds, within geth's tolerance.
    ///
    /// Bisects with full executions, because less gas can change a contract's behavior and not only
    /// make it fail. After the runs have used `max_gas`, returns the best estimate so far.
    pub(super) fn estimate_gas(&self, params: &Params<'_>, max_gas: u64) -> RpcResult {
        let message = Message::parse(params)?;
        let gas = self.at(message.block, |context, state| message.estimate(context, state, max_gas))?;
        json(&U64::from(gas))
    }
}

struct Message {
    request: TransactionRequest,
    block: Option<BlockId>,
    overrides: StateOverride,
    block_overrides: Option<BlockOverrides>,
}

impl Message {
    fn parse(params: &Params<'_>) -> Result<Self, RpcError> {
        let request: TransactionRequest = params.get(0)?;
        if let (Some(input), Some(data)) = (&request.input.input, &request.input.data)
            && input != data
        {
            return Err(RpcError::params("both \"data\" and \"input\" are set and not equal"));
        }
        if request.gas_price.is_some() && request.max_fee_per_gas.is_some() {
            return Err(RpcError::params(
                "both gasPrice and (maxFeePerGas or maxPriorityFeePerGas) specified",
            ));
        }
        let overrides: StateOverride = params.find(2)?.unwrap_or_default();
        if overrides.values().any(|account| account.move_precompile_to.is_some()) {
            return Err(RpcError::params("precompiles cannot be moved"));
        }
        let block = params.find::<BlockRef>(1)?.map(BlockId::from);
        Ok(Self { request, block, overrides, block_overrides: None })
    }

    fn context<'a>(&self, context: &'a BlockContext) -> Result<Cow<'a, BlockContext>, RpcError> {
        let Some(overrides) = &self.block_overrides else { return Ok(Cow::Borrowed(context)) };
        let small =
            |number: U256| u64::try_from(number).map_err(|_| RpcError::params("block override out of range"));
        let mut context = context.clone();
        context.number = overrides.number.map_or(Ok(context.number), small)?;
        context.base_fee = overrides.base_fee.map_or(Ok(context.base_fee), small)?;
        context.timestamp = overrides.time.unwrap_or(context.timestamp);
        context.gas_limit = overrides.gas_limit.unwrap_or(context.gas_limit).min(context.gas_limit);
        context.beneficiary = overrides.coinbase.unwrap_or(context.beneficiary);
        context.prevrandao = overrides.random.unwrap_or(context.prevrandao);
        Ok(Cow::Owned(context))
    }

    fn run(&self, context: &BlockContext, state: &dyn ReadState, gas: u64) -> Result<Execution, RpcError> {
        // Declared here so that it outlives the reference to it below.
        let overridden;
        let state = match self.overrides.is_empty() {
            true => state,
            false => {
                overridden = Overridden { base: state, overrides: &self.overrides };
                &overridden
            }
        };
        evm::call(context, &self.request, gas, state).map_err(|fault| match fault {
            TransactionFault::Refused(why) => RpcError::refused(why),
            // Unreachable: a call does not check the nonce.
            TransactionFault::NonceTooLow { .. } => RpcError::refused("nonce too low"),
            TransactionFault::Failed(error) => error.into(),
        })
    }

    fn estimate(&self, context: &BlockContext, state: &dyn ReadState, max_gas: u64) -> Result<u64, RpcError> {
        let asked = self.request.gas.filter(|gas| *gas >= TRANSFER_GAS);
        let cap = asked.unwrap_or(u64::MAX).min(context.gas_limit).min(TRANSACTION_GAS_CAP);
        let mut enough = cap.min(self.affordable(context, state)?);

        let first = self.run(context, state, enough)?;
        let needed = first.gas_needed;
        let used = first.gas_used;
        if let ExecutionOutcome::Halted(_) = first.ending {
            return Err(RpcError::refused(format!("gas required exceeds allowance ({enough})")));
        }
        returned(first)?;
        // A plain transfer needs no search.
        if used == TRANSFER_GAS && needed == TRANSFER_GAS {
            return Ok(TRANSFER_GAS);
        }
        let mut short = used.saturating_sub(1);
        let mut spent = used;

        // This guess usually suffices: the needed gas plus the 1/64 that each inner call leaves to
        // its caller.
        let guess = (needed + CALL_STIPEND) / 63 * 64 + 64;
        if guess < enough {
            spent = spent.saturating_add(guess);
            match self.suffices(context, state, guess)? {
                true => enough = guess,
                false => short = short.max(guess),
            }
        }
        while spent < max_gas
            && short + 1 < enough
            && (enough - short) * 1_000 > enough * ESTIMATE_TOLERANCE_PER_MILLE
        {
            // Most messages need little more than they use, so stay close to the lower bound
            // instead of halving.
            let middle = (short + (enough - short) / 2).min(short.saturating_mul(2)).max(short + 1);
            spent = spent.saturating_add(middle);
            match self.suffices(context, state, middle)? {
                true => enough = middle,
                false => short = middle,
            }
        }
        Ok(enough)
    }

    fn suffices(&self, context: &BlockContext, state: &dyn ReadState, gas: u64) -> Result<bool, RpcError> {
        match self.run(context, state, gas) {
            Ok(execution) => Ok(matches!(execution.ending, ExecutionOutcome::Returned(_))),
            // Below the intrinsic gas, the machine rejects the message with this code.
            Err(error) if error.code == -32000 => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Returns the gas that the sender can pay for, if the message names a gas price.
    fn affordable(&self, context: &BlockContext, state: &dyn ReadState) -> Result<u64, RpcError> {
        let price = self.request.max_fee_per_gas.or(self.request.gas_price).unwrap_or_default();
        if price == 0 {
            return Ok(u64::MAX);
        }
        let sender = self.request.from.unwrap_or_default();
        let overridden = self.overrides.get(&sender).and_then(|account| account.balance);
        let balance = match overridden {
            Some(balance) => balance,
            None => state.account(sender)?.unwrap_or_default().balance,
        };
        let value = self.request.value.unwrap_or_default();
        let left =
            balance.checked_sub(value).ok_or_else(|| RpcError::refused("insufficient funds for transfer"))?;
        let gas = u64::try_from(left / U256::from(price)).unwrap_or(u64::MAX);
        match gas < TRANSFER_GAS {
            true => Err(RpcError::refused(format!(
                "gas required exceeds allowance ({})",
                gas.min(context.gas_limit)
            ))),
            false => Ok(gas),
        }
    }
}

fn returned(execution: Execution) -> Result<Bytes, RpcError> {
    match execution.ending {
        ExecutionOutcome::Returned(output) => Ok(output),
        ExecutionOutcome::Reverted(output) => Err(RpcError::reverted(&output)),
        ExecutionOutcome::Halted(why) => Err(RpcError::refused(why)),
    }
}

/// The state right after a past block.
struct Past<'a> {
    chain: &'a ChainState,
    connection: &'a Connection,
    number: u64,
}

impl ReadState for Past<'_> {
    fn account(&self, address: Address) -> Result<Option<AccountView>, EmbeddedError> {
        // Accounts are never removed, only emptied. An account unknown now never existed.
        let Some(account) = self.chain.account(&address) else { return Ok(None) };
        storage::past_account(self.connection, account.id, self.number, |hash| self.chain.code(hash).cloned())
    }

    fn slot(&self, address: Address, slot: U256) -> Result<U256, EmbeddedError> {
        let Some(account) = self.chain.account(&address) else { return Ok(U256::ZERO) };
        storage::past_slot(self.connection, account.id, slot, self.number)
    }

    fn block_hash(&self, number: u64) -> Result<B256, EmbeddedError> {
        storage::past_hash(self.connection, number)
    }
}

/// A state with the caller's overrides of some accounts.
struct Overridden<'a> {
    base: &'a dyn ReadState,
    overrides: &'a StateOverride,
}

impl ReadState for Overridden<'_> {
    fn account(&self, address: Address) -> Result<Option<AccountView>, EmbeddedError> {
        let account = self.base.account(address)?;
        let Some(AccountOverride { balance, nonce, code, .. }) = self.overrides.get(&address) else {
            return Ok(account);
        };
        let mut account = account.unwrap_or_default();
        account.balance = balance.unwrap_or(account.balance);
        account.nonce = nonce.unwrap_or(account.nonce);
        if let Some(code) = code {
            let code: Bytecode = account::stored_code(code.clone()).unwrap_or_default();
            account = AccountView {
                nonce: account.nonce,
                balance: account.balance,
                ..AccountView::with_code(code)
            };
        }
        Ok(Some(account))
    }

    fn slot(&self, address: Address, slot: U256) -> Result<U256, EmbeddedError> {
        let key = B256::from(slot);
        if let Some(account) = self.overrides.get(&address) {
            // `state` replaces the whole storage; `state_diff` replaces single slots.
            if let Some(slots) = &account.state {
                return Ok(slots.get(&key).copied().unwrap_or_default().into());
            }
            if let Some(value) = account.state_diff.as_ref().and_then(|slots| slots.get(&key)) {
                return Ok((*value).into());
            }
        }
        self.base.slot(address, slot)
    }

    fn block_hash(&self, number: u64) -> Result<B256, EmbeddedError> {
        self.base.block_hash(number)
    }
}
