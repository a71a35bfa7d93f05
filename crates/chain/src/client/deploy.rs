//! Putting the contracts on a chain: USDC's stand-in where there is none, hub, Gate and the factory of
//! accounts.
//!
//! Hub and Gate name each other for good, so each one's address is foretold from the deployer's nonce before
//! either exists. That also makes a deployment that broke off resumable: the same first nonce gives the same
//! addresses, and what stands at them is passed over. The deployer's key must do nothing else meanwhile.

use alloy::providers::{DynProvider, Provider};
use alloy::sol_types::SolConstructor;
use alloy_primitives::{Address, Bytes};

use super::bindings::{AccountFactory, Gate, MarketHub, TestUSDC};
use super::chain::{Chain, Contracts};
use super::error::ChainError;
use super::signer::Signer;

/// What the contracts are deployed with. None of it but the roles, the executors and the volume cap can be
/// changed later.
#[derive(Debug, Clone)]
pub struct DeploySettings {
    /// The chain's USDC; `None` deploys the test token, which the deployer owns and may mint.
    pub usdc: Option<Address>,
    /// Creates, resolves and cancels markets, and pays their funding.
    pub resolver: Address,
    /// Pauses, freezes and vetoes.
    pub guardian: Address,
    /// Receives fees and surplus.
    pub treasury: Address,
    /// May send intents to the Gate.
    pub executors: Vec<Address>,
    /// How much USDC all accounts together may move in an hour.
    pub hourly_volume_cap_usdc_atomic: u64,
    /// How long a market is listed before it may open, seconds.
    pub listing_delay_s: u32,
    /// How long a resolution may be vetoed, seconds.
    pub veto_window_s: u32,
}

/// Deploys from the deployer's next nonce and verifies the outcome. Three transactions, or four with the test
/// token.
///
/// # Errors
/// As [`Chain::transact`]; `Rejected` where what stands there afterwards is not as it should be.
pub async fn deploy(
    provider: DynProvider,
    chain_id: u64,
    deployer: &Signer,
    settings: DeploySettings,
) -> Result<Contracts, ChainError> {
    let count = provider.get_transaction_count(deployer.address()).await;
    deploy_from(provider, chain_id, deployer, settings, count.map_err(ChainError::of_read)?).await
}

/// The same from a given nonce of the deployer's: goes on with a deployment that broke off, given the nonce
/// it began at (logged as `deploy.first_nonce`).
///
/// # Errors
/// As [`deploy`]; `Rejected` where the nonces were spent on something else.
pub async fn deploy_from(
    provider: DynProvider,
    chain_id: u64,
    deployer: &Signer,
    settings: DeploySettings,
    first_nonce: u64,
) -> Result<Contracts, ChainError> {
    let address = deployer.address();
    tracing::info!(deploy.first_nonce = first_nonce, deployer = %address, "deploying the contracts");
    let hub_nonce = first_nonce + u64::from(settings.usdc.is_none());
    let contracts = Contracts {
        usdc: settings.usdc.unwrap_or_else(|| address.create(first_nonce)),
        hub: address.create(hub_nonce),
        gate: address.create(hub_nonce + 1),
        account_factory: address.create(hub_nonce + 2),
    };
    let chain = Chain::of(provider, contracts, chain_id);
    let Contracts { usdc, hub, gate, account_factory } = *chain.contracts();

    if settings.usdc.is_none() {
        let code = with_arguments(&TestUSDC::BYTECODE, &TestUSDC::constructorCall { owner_: address });
        create(&chain, deployer, first_nonce, usdc, code).await?;
    }
    create(&chain, deployer, hub_nonce, hub, hub_code(usdc, gate, &settings)).await?;
    create(&chain, deployer, hub_nonce + 1, gate, gate_code(usdc, hub, &settings)).await?;
    create(&chain, deployer, hub_nonce + 2, account_factory, AccountFactory::BYTECODE.clone()).await?;
    verify(&chain).await?;
    Ok(chain.contracts)
}

/// Checks that the contracts are there and name each other: a wrong address in the configuration is found at
/// the start and not by the first trade.
///
/// # Errors
/// `Rejected` where they do not fit together, `Decode` where nothing answers there, and what else a read
/// gives.
pub async fn verify(chain: &Chain) -> Result<(), ChainError> {
    let Contracts { usdc, hub, gate, account_factory } = *chain.contracts();
    let (hub_usdc, hub_gate, gate_usdc, gate_hub, _) = tokio::try_join!(
        chain.view(hub, MarketHub::usdcCall {}),
        chain.view(hub, MarketHub::gateCall {}),
        chain.view(gate, Gate::usdcCall {}),
        chain.view(gate, Gate::hubCall {}),
        chain.view(account_factory, AccountFactory::implementationCall {}),
    )?;
    if (hub_usdc, hub_gate, gate_usdc, gate_hub) == (usdc, gate, usdc, hub) {
        return Ok(());
    }
    Err(ChainError::Rejected(format!(
        "the contracts do not name each other: hub {hub} has USDC {hub_usdc} and Gate {hub_gate}, \
         Gate {gate} has USDC {gate_usdc} and hub {gate_hub}"
    )))
}

fn hub_code(usdc: Address, gate: Address, settings: &DeploySettings) -> Bytes {
    let arguments = MarketHub::constructorCall {
        usdc_: usdc,
        gate_: gate,
        roles: MarketHub::Roles {
            resolver: settings.resolver,
            guardian: settings.guardian,
            treasury: settings.treasury,
        },
        listingDelay_: settings.listing_delay_s,
        vetoWindow_: settings.veto_window_s,
    };
    with_arguments(&MarketHub::BYTECODE, &arguments)
}

fn gate_code(usdc: Address, hub: Address, settings: &DeploySettings) -> Bytes {
    let arguments = Gate::constructorCall {
        usdc_: usdc,
        hub_: hub,
        guardian_: settings.guardian,
        executors: settings.executors.clone(),
        hourlyVolumeCap_: settings.hourly_volume_cap_usdc_atomic,
    };
    with_arguments(&Gate::BYTECODE, &arguments)
}

fn with_arguments(bytecode: &Bytes, arguments: &impl SolConstructor) -> Bytes {
    [bytecode.as_ref(), &arguments.abi_encode()].concat().into()
}

/// Creates the contract that the nonce puts at `expected`, unless it stands there already.
async fn create(
    chain: &Chain,
    deployer: &Signer,
    nonce: u64,
    expected: Address,
    code: Bytes,
) -> Result<(), ChainError> {
    let present = chain.provider().get_code_at(expected).await.map_err(ChainError::of_read)?;
    if !present.is_empty() {
        return Ok(());
    }
    let receipt = chain.transact_at(deployer, nonce, None, code).await?;
    match receipt.contract_address {
        Some(address) if address == expected => Ok(()),
        other => Err(ChainError::Rejected(format!("nonce {nonce} gave {other:?} instead of {expected}"))),
    }
}
