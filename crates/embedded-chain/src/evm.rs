//! Runs the virtual machine. The only file that uses revm, because revm publishes breaking releases
//! about monthly.
//!
//! Everything runs on a `dyn` [`ReadState`], so that the interpreter is compiled once for the
//! current state, the overlay, past states and overridden states. The indirect call is not
//! measurable next to a storage read.

use alloy::consensus::{Transaction as _, TxEnvelope, Typed2718 as _};
use alloy::rpc::types::TransactionRequest;
use alloy_primitives::{Address, B256, Bytes, KECCAK256_EMPTY, Log, TxKind, U256};
use revm::bytecode::Bytecode;
use revm::context::either::Either;
use revm::context::result::{
    EVMError, ExecutionResult, HaltReason, InvalidTransaction, OutOfGasError, ResultAndState,
};
use revm::context::{BlockEnv, CfgEnv, Context, TxEnv};
use revm::context_interface::block::BlobExcessGasAndPrice;
use revm::database_interface::{DBErrorMarker, DatabaseRef, WrapDatabaseRef};
use revm::primitives::hardfork::SpecId;
use revm::state::{Account, AccountInfo, EvmState};
use revm::{ExecuteEvm as _, Journal, MainBuilder as _};

use crate::account::{AccountChange, AccountView};
use crate::error::EmbeddedError;

/// Osaka adds the P-256 precompile at 0x100 and a gas cap per transaction.
const SPEC: SpecId = SpecId::OSAKA;

/// A read-only state to execute on.
pub(super) trait ReadState {
    fn account(&self, address: Address) -> Result<Option<AccountView>, EmbeddedError>;
    fn slot(&self, address: Address, slot: U256) -> Result<U256, EmbeddedError>;
    /// Returns the hash of one of the previous 256 blocks, or zero for any other number.
    fn block_hash(&self, number: u64) -> Result<B256, EmbeddedError>;
}

/// The block environment of an execution.
#[derive(Debug, Clone)]
pub(super) struct BlockContext {
    pub chain_id: u64,
    pub number: u64,
    /// In Unix seconds.
    pub timestamp: u64,
    pub gas_limit: u64,
    /// In wei per gas.
    pub base_fee: u64,
    pub beneficiary: Address,
    pub prevrandao: B256,
}

/// The reason why a transaction was not executed.
#[derive(Debug)]
pub(super) enum TransactionFault {
    /// The transaction is invalid. The message is geth's if geth has one.
    Refused(String),
    /// The nonce is below the account's. The transaction itself may already be mined.
    NonceTooLow {
        state: u64,
        transaction: u64,
    },
    Failed(EmbeddedError),
}

/// The result of an execution.
#[derive(Debug)]
pub(super) enum ExecutionOutcome {
    Returned(Bytes),
    Reverted(Bytes),
    /// An exceptional halt, such as out of gas, with geth's message.
    Halted(String),
}

#[derive(Debug)]
pub(super) struct Execution {
    pub ending: ExecutionOutcome,
    /// The gas that the sender pays for.
    pub gas_used: u64,
    /// The gas that was needed while running, before refunds.
    pub gas_needed: u64,
    pub logs: Vec<Log>,
}

/// Executes a signed transaction with all protocol checks. Returns the changes sorted by address,
/// with ids not yet assigned.
pub(super) fn transact(
    block: &BlockContext,
    transaction: &TxEnvelope,
    sender: Address,
    state: &dyn ReadState,
) -> Result<(Execution, Vec<AccountChange>), TransactionFault> {
    let authorizations = transaction.authorization_list().unwrap_or_default();
    let environment = TxEnv {
        tx_type: transaction.ty(),
        caller: sender,
        gas_limit: transaction.gas_limit(),
        gas_price: transaction.max_fee_per_gas(),
        kind: transaction.kind(),
        value: transaction.value(),
        data: transaction.input().clone(),
        nonce: transaction.nonce(),
        chain_id: transaction.chain_id(),
        access_list: transaction.access_list().cloned().unwrap_or_default(),
        gas_priority_fee: transaction.max_priority_fee_per_gas(),
        authorization_list: authorizations.iter().cloned().map(Either::Left).collect(),
        // `rpc::send` rejects blob transactions.
        blob_hashes: Vec::new(),
        max_fee_per_blob_gas: 0,
    };
    let (execution, touched) = run(configuration(block.chain_id), block, environment, state)?;
    Ok((execution, changes(touched)))
}

/// Executes a message without storing its changes. Skips the checks of signature, nonce and
/// transaction gas cap, and charges a fee only if the request names a gas price. `gas` is in gas
/// units.
pub(super) fn call(
    block: &BlockContext,
    request: &TransactionRequest,
    gas: u64,
    state: &dyn ReadState,
) -> Result<Execution, TransactionFault> {
    let gas_price = request.max_fee_per_gas.or(request.gas_price).unwrap_or_default();
    // A message without a gas price pays nothing. Its base fee must then be 0 too.
    let free = gas_price == 0;
    let block = if free { &BlockContext { base_fee: 0, ..block.clone() } } else { block };

    let mut configuration = configuration(block.chain_id);
    configuration.disable_nonce_check = true;
    // EIP-3607 rejects senders with code, but a call may name a smart account as its sender.
    configuration.disable_eip3607 = true;
    configuration.disable_base_fee = free;
    configuration.tx_gas_limit_cap = Some(u64::MAX);

    let authorizations = request.authorization_list.clone().unwrap_or_default();
    let mut environment = TxEnv {
        tx_type: 0,
        caller: request.from.unwrap_or_default(),
        gas_limit: gas,
        gas_price,
        kind: request.to.unwrap_or(TxKind::Create),
        value: request.value.unwrap_or_default(),
        data: request.input.input().cloned().unwrap_or_default(),
        nonce: request.nonce.unwrap_or_default(),
        chain_id: Some(block.chain_id),
        access_list: request.access_list.clone().unwrap_or_default(),
        gas_priority_fee: request.max_priority_fee_per_gas.or(request.max_fee_per_gas.map(|_| 0)),
        authorization_list: authorizations.into_iter().map(Either::Left).collect(),
        blob_hashes: Vec::new(),
        max_fee_per_blob_gas: 0,
    };
    environment.derive_tx_type().map_err(|error| TransactionFault::Refused(error.to_string()))?;
    run(configuration, block, environment, state).map(|(execution, _)| execution)
}

fn configuration(chain_id: u64) -> CfgEnv {
    CfgEnv::new_with_spec(SPEC).with_chain_id(chain_id)
}

fn run(
    configuration: CfgEnv,
    block: &BlockContext,
    transaction: TxEnv,
    state: &dyn ReadState,
) -> Result<(Execution, EvmState), TransactionFault> {
    let environment = BlockEnv {
        number: U256::from(block.number),
        beneficiary: block.beneficiary,
        timestamp: U256::from(block.timestamp),
        gas_limit: block.gas_limit,
        basefee: block.base_fee,
        difficulty: U256::ZERO,
        prevrandao: Some(block.prevrandao),
        blob_excess_gas_and_price: Some(BlobExcessGasAndPrice { excess_blob_gas: 0, blob_gasprice: 1 }),
        slot_num: 0,
    };
    let sender = transaction.caller;
    // `transact` consumes the transaction: copy what the error message needs.
    let priced = (transaction.gas_price, transaction.gas_priority_fee);
    let context: Context<BlockEnv, TxEnv, CfgEnv, _, Journal<_>> =
        Context::new(WrapDatabaseRef(Db(state)), SPEC);
    let mut machine = context.with_cfg(configuration).with_block(environment).build_mainnet();
    let ResultAndState { result, state: touched } =
        machine.transact(transaction).map_err(|error| match error {
            EVMError::Transaction(invalid) => refusal(invalid, sender, priced, block.base_fee),
            EVMError::Database(error) => TransactionFault::Failed(error),
            EVMError::Header(error) => TransactionFault::Failed(EmbeddedError::Machine(error.to_string())),
            EVMError::Custom(error) => TransactionFault::Failed(EmbeddedError::Machine(error)),
            EVMError::CustomAny(error) => TransactionFault::Failed(EmbeddedError::Machine(error.to_string())),
        })?;
    let gas = *result.gas();
    let (ending, logs) = match result {
        ExecutionResult::Success { output, logs, .. } => {
            (ExecutionOutcome::Returned(output.into_data()), logs)
        }
        ExecutionResult::Revert { output, .. } => (ExecutionOutcome::Reverted(output), Vec::new()),
        ExecutionResult::Halt { reason, .. } => (ExecutionOutcome::Halted(halt(&reason)), Vec::new()),
    };
    let gas_used = gas.tx_gas_used();
    let gas_needed = gas.total_gas_spent().max(gas_used);
    Ok((Execution { ending, gas_used, gas_needed, logs }, touched))
}

/// Extracts the changes from the machine's journal: accounts with a new nonce, balance or code, and
/// slots with a new value.
fn changes(touched: EvmState) -> Vec<AccountChange> {
    let mut changes: Vec<AccountChange> =
        touched.into_iter().filter_map(|(address, account)| change(address, account)).collect();
    changes.sort_by_key(|change| change.address);
    changes
}

fn change(address: Address, account: Account) -> Option<AccountChange> {
    if !account.is_touched() {
        return None;
    }
    let before = account.original_info();
    // Since EIP-6780 only a contract created in the same transaction is removed. No stored slot is
    // orphaned.
    if account.is_selfdestructed() {
        let existed = !before.is_empty();
        return existed.then(|| AccountChange {
            id: 0,
            address,
            after: AccountView::default(),
            info_changed: true,
            new_code: false,
            slots: Vec::new(),
        });
    }
    let info_changed = before != account.info;
    let new_code = before.code_hash != account.info.code_hash && account.info.code_hash != KECCAK256_EMPTY;
    let mut slots: Vec<(U256, U256)> =
        account.changed_storage_slots().map(|(slot, value)| (*slot, value.present_value)).collect();
    if !info_changed && slots.is_empty() {
        return None;
    }
    // The state root hashes the slots in this order.
    slots.sort_unstable_by_key(|(slot, _)| *slot);
    let AccountInfo { balance, nonce, code_hash, code, .. } = account.info;
    let code = code.unwrap_or_default();
    Some(AccountChange {
        id: 0,
        address,
        after: AccountView { nonce, balance, code_hash, code },
        info_changed,
        new_code,
        slots,
    })
}

/// Converts an error to geth's message, because wallets and libraries recognize the cases by their
/// text.
fn refusal(
    invalid: InvalidTransaction,
    sender: Address,
    priced: (u128, Option<u128>),
    base_fee: u64,
) -> TransactionFault {
    use InvalidTransaction as I;
    let (max_fee, tip) = priced;
    TransactionFault::Refused(match invalid {
        I::NonceTooLow { tx, state } => return TransactionFault::NonceTooLow { state, transaction: tx },
        I::NonceTooHigh { tx, state } => format!("nonce too high: address {sender}, tx: {tx} state: {state}"),
        I::NonceOverflowInTransaction => format!("nonce has max value: address {sender}"),
        I::LackOfFundForMaxFee { fee, balance } => format!(
            "insufficient funds for gas * price + value: balance {balance}, tx cost {fee}, overshot {}",
            fee.saturating_sub(*balance)
        ),
        I::CallGasCostMoreThanGasLimit { initial_gas, gas_limit } => {
            format!("intrinsic gas too low: gas {gas_limit}, minimum needed {initial_gas}")
        }
        I::GasFloorMoreThanGasLimit { gas_floor, gas_limit } => {
            format!("insufficient gas for floor data gas cost: gas {gas_limit}, minimum needed {gas_floor}")
        }
        I::CallerGasLimitMoreThanBlock => "exceeds block gas limit".to_owned(),
        I::TxGasLimitGreaterThanCap { gas_limit, cap } => {
            format!("transaction gas limit too high (cap: {cap}, tx: {gas_limit})")
        }
        I::GasPriceLessThanBasefee => format!(
            "max fee per gas less than block base fee: address {sender}, maxFeePerGas: {max_fee}, baseFee: {base_fee}"
        ),
        I::PriorityFeeGreaterThanMaxFee => format!(
            "max priority fee per gas higher than max fee per gas: address {sender}, maxPriorityFeePerGas: {}, \
             maxFeePerGas: {max_fee}",
            tip.unwrap_or_default()
        ),
        I::CreateInitCodeSizeLimit => "max initcode size exceeded".to_owned(),
        I::RejectCallerWithCode => format!("sender not an eoa: address {sender}"),
        I::InvalidChainId => "invalid chain id for signer".to_owned(),
        other => other.to_string(),
    })
}

fn halt(reason: &HaltReason) -> String {
    match reason {
        HaltReason::OutOfGas(
            OutOfGasError::Basic
            | OutOfGasError::Memory
            | OutOfGasError::Precompile
            | OutOfGasError::ReentrancySentry,
        ) => "out of gas".to_owned(),
        HaltReason::OutOfGas(_) => "gas uint64 overflow".to_owned(),
        HaltReason::OpcodeNotFound | HaltReason::NotActivated => "invalid opcode".to_owned(),
        HaltReason::InvalidFEOpcode => "invalid opcode: INVALID".to_owned(),
        HaltReason::StackOverflow => "stack limit reached".to_owned(),
        HaltReason::OutOfOffset => "return data out of bounds".to_owned(),
        HaltReason::CreateCollision => "contract address collision".to_owned(),
        HaltReason::CreateContractSizeLimit => "max code size exceeded".to_owned(),
        HaltReason::CreateContractStartingWithEF => "invalid code: must not begin with 0xef".to_owned(),
        HaltReason::StateChangeDuringStaticCall => "write protection".to_owned(),
        HaltReason::OutOfFunds => "insufficient balance for transfer".to_owned(),
        HaltReason::CallTooDeep => "max call depth exceeded".to_owned(),
        other => other.to_string(),
    }
}

struct Db<'a>(&'a dyn ReadState);

impl DBErrorMarker for EmbeddedError {}

impl DatabaseRef for Db<'_> {
    type Error = EmbeddedError;

    fn basic_ref(&self, address: Address) -> Result<Option<AccountInfo>, EmbeddedError> {
        let account = self.0.account(address)?;
        Ok(account.map(|AccountView { nonce, balance, code_hash, code }| AccountInfo {
            nonce,
            balance,
            code_hash,
            code: Some(code),
            account_id: None,
        }))
    }

    /// Never called, because `basic_ref` returns every account with its code.
    fn code_by_hash_ref(&self, code_hash: B256) -> Result<Bytecode, EmbeddedError> {
        Err(EmbeddedError::Machine(format!("code {code_hash} was asked for by its hash")))
    }

    fn storage_ref(&self, address: Address, index: U256) -> Result<U256, EmbeddedError> {
        self.0.slot(address, index)
    }

    fn block_hash_ref(&self, number: u64) -> Result<B256, EmbeddedError> {
        self.0.block_hash(number)
    }
}
