//! Deploys the contracts to a chain: test USDC if the chain has no USDC, Authority, hub, Gate and
//! the account factory.
//!
//! The hub and the Gate contain each other's address, so both addresses must be known before either
//! contract exists. The `Deployer` contract therefore creates each contract at an address that
//! depends only on the deploying key and a salt. The `Deployer` itself and the account factory are
//! created by the deterministic deployer that most chains have.
//!
//! The same key gets the same addresses on every chain. An interrupted deployment resumes when it
//! is started again: existing contracts are not deployed twice.

use std::collections::BTreeMap;

use alloy::providers::{DynProvider, Provider};
use alloy::sol_types::{SolCall, SolConstructor, SolValue};
use alloy_primitives::{Address, B256, Bytes, b256, keccak256};
use embedded_chain::CREATE2_DEPLOYER;
use futures::FutureExt;
use futures::future::BoxFuture;

use super::chain::{Chain, Contracts};
use super::signer::Signer;
use crate::bindings::{AccountFactory, Authority, Deployer, Gate, MarketHub, TestUSDC};
use crate::error::ChainError;
use crate::nodes::DeploymentVerifier;

/// The hash of the proxy's creation code, through which the `Deployer` creates a contract (CREATE3
/// of solady).
const PROXY_HASH: B256 = b256!("21c35dbe1b344a2488cf3321d6ce542f8e9f305544ff09e4993a62319a497c1f");
/// The proxy's nonce when it creates the contract, which is the only one it creates.
const PROXY_NONCE: u64 = 1;

/// The constructor arguments of the contracts. Only the roles, the executors and the volume cap can
/// change after the deployment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeploySettings {
    /// The chain's USDC; `None` deploys the test token, which the deployer owns and can mint.
    pub usdc: Option<Address>,
    /// Proposes new role holders and new executors.
    pub owner: Address,
    /// Creates, resolves and cancels markets, and pays their funding.
    pub resolver: Address,
    /// Pauses, freezes and vetoes.
    pub guardian: Address,
    /// Receives fees and surplus.
    pub treasury: Address,
    /// May send intents to the Gate.
    pub executors: Vec<Address>,
    /// The net amount of USDC that may leave accounts per hour through each executor.
    pub hourly_volume_cap_usdc_atomic: u64,
    /// The caps of executors that have had another one since the deployment. Empty when the contracts
    /// are deployed.
    pub other_hourly_caps: BTreeMap<Address, u64>,
    /// The delay before a new role holder or executor takes effect, in seconds.
    pub role_delay_s: u32,
    /// The minimum time between listing a market and opening it, in seconds.
    pub listing_delay_s: u32,
    /// The time in which a proposed result or cancel can be vetoed, in seconds.
    pub veto_window_s: u32,
    /// The minimum time that a market must be frozen before its cancel can be proposed, in seconds.
    pub min_freeze_s: u32,
    /// The length of a reference period in seconds, at least 1. A cancel pays the prices at the
    /// start of the period before the one in which trading ended.
    pub reference_period_s: u32,
    /// The time after a market's close time in which it can be resolved, in seconds. Afterwards any
    /// address can propose its cancel.
    pub result_deadline_s: u32,
    /// Distinguishes deployments of the same key: each salt gives different addresses.
    pub salt: B256,
}

impl DeploySettings {
    /// One day.
    pub const DEFAULT_REFERENCE_PERIOD_S: u32 = 86_400;
    /// Ninety days.
    pub const DEFAULT_RESULT_DEADLINE_S: u32 = 7_776_000;
    /// One century: disables the deadline for development, where tests move the clock.
    pub const NO_RESULT_DEADLINE_S: u32 = 3_153_600_000;

    /// Returns the hourly cap of an executor in atomic USDC.
    pub fn hourly_cap_of(&self, executor: Address) -> u64 {
        self.other_hourly_caps.get(&executor).copied().unwrap_or(self.hourly_volume_cap_usdc_atomic)
    }
}

/// Returns the addresses that a deployment by `deployer` has on every chain.
pub fn addresses(deployer: Address, settings: &DeploySettings) -> Contracts {
    let address = |name| created_address(deployer, salt_of(settings, name));
    Contracts {
        usdc: settings.usdc.unwrap_or_else(|| address("TestUSDC")),
        authority: address("Authority"),
        hub: address("MarketHub"),
        gate: address("Gate"),
        account_factory: CREATE2_DEPLOYER.create2_from_code(B256::ZERO, &AccountFactory::BYTECODE),
    }
}

/// Deploys the missing contracts and verifies the result. Sends at most six transactions, at the
/// deployer's next nonces.
///
/// # Errors
///
/// As for [`Chain::transact`]. `Rejected` if the chain lacks the deterministic deployer or the
/// deployed contracts do not match.
pub async fn deploy(
    provider: DynProvider,
    chain_id: u64,
    deployer: &Signer,
    settings: DeploySettings,
) -> Result<Contracts, ChainError> {
    let contracts = addresses(deployer.address(), &settings);
    let chain = Chain::of(provider, contracts, chain_id);
    let Contracts { usdc, authority, hub, gate, account_factory } = *chain.contracts();
    tracing::info!(deployer = %deployer.address(), "deploying the contracts");
    if !is_there(&chain, CREATE2_DEPLOYER).await? {
        return Err(ChainError::Rejected(format!(
            "the chain lacks the deterministic deployer {CREATE2_DEPLOYER}: see https://github.com/Arachnid/deterministic-deployment-proxy"
        )));
    }
    // Boxed, so that the callers' futures stay small.
    Box::pin(create2(&chain, deployer, deployer_address(), &Deployer::BYTECODE)).await?;
    if settings.usdc.is_none() {
        let code =
            with_arguments(&TestUSDC::BYTECODE, &TestUSDC::constructorCall { owner_: deployer.address() });
        Box::pin(create(&chain, deployer, usdc, salt_of(&settings, "TestUSDC"), code)).await?;
    }
    let code = authority_code(&settings);
    Box::pin(create(&chain, deployer, authority, salt_of(&settings, "Authority"), code)).await?;
    let code = hub_code(chain.contracts(), &settings);
    Box::pin(create(&chain, deployer, hub, salt_of(&settings, "MarketHub"), code)).await?;
    let code = gate_code(chain.contracts(), &settings);
    Box::pin(create(&chain, deployer, gate, salt_of(&settings, "Gate"), code)).await?;
    Box::pin(create2(&chain, deployer, account_factory, &AccountFactory::BYTECODE)).await?;
    verify(&chain).await?;
    Ok(chain.contracts)
}

// Hashes the name too, so that each contract of a deployment has an address of its own.
fn salt_of(settings: &DeploySettings, name: &str) -> B256 {
    keccak256((settings.salt, name.to_owned()).abi_encode())
}

fn deployer_address() -> Address {
    CREATE2_DEPLOYER.create2_from_code(B256::ZERO, &Deployer::BYTECODE)
}

/// The address at which the `Deployer` creates a contract for `sender`.
fn created_address(sender: Address, salt: B256) -> Address {
    // The `Deployer` includes the sender in the salt: no other key can occupy the address.
    let salt = keccak256((sender, salt).abi_encode());
    deployer_address().create2(salt, PROXY_HASH).create(PROXY_NONCE)
}

/// Checks that the contracts exist and refer to each other, so that a wrong address in the
/// configuration is found at startup and not by the first trade.
///
/// # Errors
///
/// `Rejected` if the contracts do not refer to each other. `Decode` if an address has no contract.
pub async fn verify(chain: &Chain) -> Result<(), ChainError> {
    let Contracts { usdc, authority, hub, gate, account_factory } = *chain.contracts();
    let (hub_usdc, hub_gate, hub_authority, gate_usdc, gate_hub, gate_authority, _) = tokio::try_join!(
        chain.view(hub, MarketHub::usdcCall {}),
        chain.view(hub, MarketHub::gateCall {}),
        chain.view(hub, MarketHub::authorityCall {}),
        chain.view(gate, Gate::usdcCall {}),
        chain.view(gate, Gate::hubCall {}),
        chain.view(gate, Gate::authorityCall {}),
        chain.view(account_factory, AccountFactory::implementationCall {}),
    )?;
    let found = (hub_usdc, hub_gate, hub_authority, gate_usdc, gate_hub, gate_authority);
    if found == (usdc, gate, authority, usdc, hub, authority) {
        return Ok(());
    }
    Err(ChainError::Rejected(format!(
        "the contracts do not refer to each other: hub {hub} has USDC {hub_usdc}, Gate {hub_gate} and Authority {hub_authority}, \
         Gate {gate} has USDC {gate_usdc}, hub {gate_hub} and Authority {gate_authority}"
    )))
}

impl DeploymentVerifier for Contracts {
    fn verify(&self, provider: DynProvider) -> BoxFuture<'_, Result<(), ChainError>> {
        // The chain id is not used by the reads of this check.
        let chain = Chain::of(provider, self.clone(), 0);
        async move { verify(&chain).await }.boxed()
    }
}

fn authority_code(settings: &DeploySettings) -> Bytes {
    let arguments = Authority::constructorCall {
        roles: Authority::Roles {
            owner: settings.owner,
            resolver: settings.resolver,
            guardian: settings.guardian,
            treasury: settings.treasury,
        },
        delay_: settings.role_delay_s,
    };
    with_arguments(&Authority::BYTECODE, &arguments)
}

fn hub_code(contracts: &Contracts, settings: &DeploySettings) -> Bytes {
    let arguments = MarketHub::constructorCall {
        usdc_: contracts.usdc,
        gate_: contracts.gate,
        authority_: contracts.authority,
        settings_: MarketHub::HubSettings {
            listingDelay: settings.listing_delay_s,
            vetoWindow: settings.veto_window_s,
            minFreeze: settings.min_freeze_s,
            period: settings.reference_period_s,
            resultDeadline: settings.result_deadline_s,
        },
    };
    with_arguments(&MarketHub::BYTECODE, &arguments)
}

fn gate_code(contracts: &Contracts, settings: &DeploySettings) -> Bytes {
    let arguments = Gate::constructorCall {
        authority_: contracts.authority,
        usdc_: contracts.usdc,
        hub_: contracts.hub,
        executors_: settings.executors.clone(),
        hourlyCap: settings.hourly_volume_cap_usdc_atomic,
    };
    with_arguments(&Gate::BYTECODE, &arguments)
}

fn with_arguments(bytecode: &Bytes, arguments: &impl SolConstructor) -> Bytes {
    [bytecode.as_ref(), &arguments.abi_encode()].concat().into()
}

async fn is_there(chain: &Chain, address: Address) -> Result<bool, ChainError> {
    let code = chain.provider().get_code_at(address).await.map_err(ChainError::of_read)?;
    Ok(!code.is_empty())
}

/// Creates a contract through the `Deployer`, unless it exists.
async fn create(
    chain: &Chain,
    deployer: &Signer,
    address: Address,
    salt: B256,
    code: Bytes,
) -> Result<(), ChainError> {
    if is_there(chain, address).await? {
        return Ok(());
    }
    let call = Deployer::deployCall { salt, initCode: code };
    // Boxed, so that the callers' futures stay small.
    Box::pin(chain.transact(deployer, Some(deployer_address()), call.abi_encode().into())).await?;
    expect(chain, address).await
}

/// Creates a contract without constructor arguments through the deterministic deployer, unless it
/// exists.
async fn create2(chain: &Chain, sender: &Signer, address: Address, code: &Bytes) -> Result<(), ChainError> {
    if is_there(chain, address).await? {
        return Ok(());
    }
    // The deployer reads the salt from the first 32 bytes, and the creation code from the rest.
    let call = [B256::ZERO.as_slice(), code.as_ref()].concat();
    Box::pin(chain.transact(sender, Some(CREATE2_DEPLOYER), call.into())).await?;
    expect(chain, address).await
}

async fn expect(chain: &Chain, address: Address) -> Result<(), ChainError> {
    if is_there(chain, address).await? {
        return Ok(());
    }
    Err(ChainError::Rejected(format!("there is no contract at {address} after its creation")))
}
