//! The settings of the service.

use alloy_primitives::Address;
use chain::{Role, Signer};
use domain::ids::UserId;
use domain::key::Environment;
use domain::owner_act::DEFAULT_ACTS_PER_DAY;
use domain::passkey::RelyingParty;
use domain::webhook::target::TargetPolicy;
use domain::{SecretKey, Usdc};

use crate::AppError;
use crate::encryption::SealingKeys;
use crate::limits::budget::BudgetShares;

/// The default minimum of trades and claims: 0.01 USDC.
pub const DEFAULT_MINIMUM: Usdc = Usdc::from_atomic(10_000);
/// The default slippage if neither the request nor the operator sets one.
pub const DEFAULT_SLIPPAGE_BPS: u16 = 200;

#[derive(Clone)]
pub struct Config {
    /// The environment (live or test) whose keys are accepted.
    pub environment: Environment,
    /// The pepper of API key digests. `None` in a process that authenticates no requests.
    pub key_pepper: Option<SecretKey>,
    /// The keys that encrypt webhook secrets. Empty in a process that neither issues keys nor sends
    /// webhooks.
    pub sealing_keys: SealingKeys,
    /// The addresses of the executors whose keys this process has. Each gets a lane when the process
    /// starts: see [`crate::lanes`].
    pub executors: Vec<Address>,
    /// The number of blocks, including the trade's own, that make a trade final. The default
    /// depends on the chain.
    pub confirmations: Option<u64>,
    /// Additional requirements for finality.
    pub finality: Finality,
    /// The time that a trade of high value waits for its confirmation.
    pub confirmation_window_ms: i64,
    /// The lifetime of an intent if the client sets no deadline.
    pub intent_lifetime_ms: i64,
    /// The time after which a worker's lease expires unless it is renewed.
    pub lease_ms: i64,
    /// The maximum number of open batches per lane.
    pub max_batches_in_flight: u32,
    /// The time after which an unmined batch is sent again.
    pub resend_after_ms: i64,
    /// The time after which an unmined batch is signed again with higher fees.
    pub replace_after_ms: i64,
    /// The retention of idempotency keys.
    pub idempotency_ms: i64,
    /// Settings of automatic redemption.
    pub redemptions: Redemptions,
    /// The minimum USDC of a buy, and of a sale that leaves tokens.
    pub min_trade: Usdc,
    /// The minimum USDC that the service pays without a claim, if payment is automatic.
    pub min_claim: Usdc,
    /// The slippage of trades without a price bound, in basis points.
    pub default_slippage_bps: u16,
    /// The maximum fee per gas in wei. The default depends on the chain.
    pub max_fee_per_gas: Option<u128>,
    /// Settings of webhook deliveries.
    pub webhooks: WebhookSettings,
    /// Limits of the acts that the service pays for.
    pub owner_acts: OwnerActLimits,
    /// Settings of the web application. `None` switches it off.
    pub web: Option<WebSettings>,
    /// The key that sends native currency to executors that are low on gas, and its daily cap in wei.
    pub gas_treasury: Option<(Signer, u128)>,
    /// The minter of test USDC. Only `foretell dev` has one.
    pub faucet: Option<Signer>,
    /// Only `foretell dev` has sample users.
    pub sample_users: Vec<SampleUser>,
    /// The shares of resources that free and anonymous clients may use.
    pub budgets: BudgetShares,
    /// Clients may provoke outcomes of trades: see [`domain::sandbox`]. Never in the environment live.
    pub sandbox: bool,
}

impl Config {
    /// Returns the settings of a service with one executor on the embedded chain.
    pub fn new(
        environment: Environment,
        key_pepper: impl Into<SecretKey>,
        sealing_keys: impl Into<SealingKeys>,
    ) -> Self {
        Self {
            key_pepper: Some(key_pepper.into()),
            sealing_keys: sealing_keys.into(),
            ..Self::without_secrets(environment)
        }
    }

    /// Returns the pepper of API key digests.
    ///
    /// # Errors
    /// If this process has none.
    pub fn pepper(&self) -> Result<&SecretKey, AppError> {
        self.key_pepper.as_ref().ok_or_else(|| AppError::internal(NoPepper))
    }

    /// Like [`Self::new`], for a process that authenticates no requests and seals nothing.
    pub fn without_secrets(environment: Environment) -> Self {
        Self {
            environment,
            key_pepper: None,
            sealing_keys: SealingKeys::none(),
            executors: Vec::new(),
            confirmations: Some(1),
            finality: Finality::default(),
            confirmation_window_ms: 5 * domain::time::MINUTE_MS,
            intent_lifetime_ms: 10 * domain::time::MINUTE_MS,
            lease_ms: 15_000,
            max_batches_in_flight: 4,
            resend_after_ms: 5_000,
            replace_after_ms: 30_000,
            idempotency_ms: domain::time::DAY_MS,
            redemptions: Redemptions::default(),
            min_trade: DEFAULT_MINIMUM,
            min_claim: DEFAULT_MINIMUM,
            default_slippage_bps: DEFAULT_SLIPPAGE_BPS,
            max_fee_per_gas: None,
            webhooks: WebhookSettings::default(),
            owner_acts: OwnerActLimits::of(environment),
            web: None,
            gas_treasury: None,
            faucet: None,
            sample_users: Vec::new(),
            budgets: BudgetShares::default(),
            sandbox: false,
        }
    }
}

/// A process without the pepper was asked to authenticate a request or to issue a key.
#[derive(Debug, thiserror::Error)]
#[error("this process has no pepper of API keys: only processes with the role api have it")]
struct NoPepper;

const GWEI: u128 = 1_000_000_000;

/// Returns the default maximum fee per gas in wei: several times the usual fee of a busy day.
/// Unlimited on embedded and developer chains, where gas has no cost.
pub const fn default_max_fee_per_gas(chain_id: u64) -> u128 {
    match chain_id {
        31_337 | 1_337 => u128::MAX,
        1 => 100 * GWEI,
        137 => 1_000 * GWEI,
        10 | 8_453 | 42_161 => 5 * GWEI,
        _ => 500 * GWEI,
    }
}

/// The condition for finality.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Finality {
    /// The depth below the newest block.
    #[default]
    Depth,
    /// The depth, and the chain's own `finalized` tag.
    Finalized,
}

/// Returns the default number of confirmations. Embedded and developer chains never reorganize by
/// themselves.
pub const fn default_confirmations(chain_id: u64) -> u64 {
    match chain_id {
        31_337 | 1_337 => 1,
        1 => 12,
        137 => 64,
        10 | 8_453 | 42_161 => 20,
        _ => 6,
    }
}

/// The actor that claims settled positions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Redemptions {
    /// The owners, through the API.
    #[default]
    SelfService,
    /// The service itself.
    Automatic,
}

/// Limits of the acts whose gas the service pays. They do not apply to the operator.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OwnerActLimits {
    /// The maximum number of signed acts per user within 24 hours.
    pub per_day: u32,
    /// The minimum USDC of an account.
    pub min_balance: Usdc,
}

impl OwnerActLimits {
    /// Returns the default limits. Gas has no cost on test chains, so accounts may be empty there.
    pub const fn of(environment: Environment) -> Self {
        let min_balance = match environment {
            Environment::Live => Usdc::from_whole(1),
            Environment::Test => Usdc::ZERO,
        };
        Self { per_day: DEFAULT_ACTS_PER_DAY, min_balance }
    }
}

/// A user of the demonstration, for whom the service can sign.
#[derive(Debug, Clone)]
pub struct SampleUser {
    pub name: String,
    pub user_id: UserId,
    /// An owner of the user's account.
    pub owner: Signer,
}

/// Settings of the web application.
#[derive(Debug, Clone)]
pub struct WebSettings {
    /// The domain that passkeys are bound to, and the origin of the pages.
    pub party: RelyingParty,
    /// The operator's pages are switched on.
    pub is_admin_on: bool,
    /// The keys with which admins act on chain.
    pub role_keys: RoleKeys,
    /// URL of the terms of use that everyone who signs up must accept.
    pub terms_url: Option<String>,
    /// The countries from which nobody may sign up or buy.
    pub country_rule: Option<CountryRule>,
}

/// Refuses signing up and buying from some countries.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CountryRule {
    /// The header in which the operator's proxy names the country of a request.
    pub header: String,
    /// Codes as the proxy writes them, in capitals.
    pub refused: Vec<String>,
}

/// The country of a request whose proxy names none.
const UNKNOWN_COUNTRY: &str = "XX";

impl CountryRule {
    /// Returns true if a request with these values of the header is refused. A client may have sent one
    /// of them, so each must be allowed.
    pub fn refuses<'a>(&self, mut countries: impl Iterator<Item = &'a str>) -> bool {
        let is_refused =
            |country: &str| self.refused.iter().any(|it| it.eq_ignore_ascii_case(country.trim()));
        countries.next().map_or_else(|| is_refused(UNKNOWN_COUNTRY), is_refused) || countries.any(is_refused)
    }
}

/// The keys of the operator's roles that this process has. For a role without a key, the pages show
/// the transaction that the holder's wallet must send.
#[derive(Debug, Clone, Default)]
pub struct RoleKeys {
    pub resolver: Option<Signer>,
    pub guardian: Option<Signer>,
    /// Mints missing USDC on test chains.
    pub minter: Option<Signer>,
}

impl RoleKeys {
    /// Returns the key of a role, if it is present.
    pub const fn find(&self, role: Role) -> Option<&Signer> {
        match role {
            Role::Resolver => self.resolver.as_ref(),
            Role::Guardian => self.guardian.as_ref(),
            Role::Owner | Role::Treasury => None,
        }
    }
}

/// Settings of webhook deliveries.
#[derive(Debug, Clone)]
pub struct WebhookSettings {
    /// The addresses that deliveries may go to.
    pub targets: TargetPolicy,
    /// The maximum number of queues that one process works through at once, each with one running
    /// attempt.
    pub max_in_flight: u32,
    /// The duration of a hold. It must be long enough for several attempts to begin.
    pub hold_ms: i64,
}

impl Default for WebhookSettings {
    fn default() -> Self {
        Self { targets: TargetPolicy::public(), max_in_flight: 1_024, hold_ms: 20_000 }
    }
}
