//! The operator's keys.

use chain::Signer;

/// Derives a key from a number: 1 to 7 are the roles' keys, 100 and above the executors'.
pub fn signer(number: u8) -> Signer {
    Signer::random([number; 32]).expect("a number's key is below the group's order")
}

/// The operator's keys.
#[derive(Debug, Clone)]
pub struct Roles {
    /// Deploys the contracts and mints USDC.
    pub deployer: Signer,
    /// Proposes role holders and executors.
    pub owner: Signer,
    /// Creates and settles markets.
    pub resolver: Signer,
    /// Freezes markets and pauses contracts.
    pub guardian: Signer,
    /// Receives fees.
    pub treasury: Signer,
    /// Sends the account owners' batches.
    pub relayer: Signer,
    /// Has no role, but has native currency.
    pub stranger: Signer,
    /// The lanes' keys.
    pub executors: Vec<Signer>,
}

impl Roles {
    pub(crate) fn new(lanes: u16) -> Self {
        let lanes = u8::try_from(lanes).expect("a test has few lanes");
        Self {
            deployer: signer(1),
            owner: signer(7),
            resolver: signer(2),
            guardian: signer(3),
            treasury: signer(4),
            relayer: signer(5),
            stranger: signer(6),
            executors: (0..lanes).map(|lane| signer(100 + lane)).collect(),
        }
    }

    /// All keys that send transactions.
    pub fn all(&self) -> impl Iterator<Item = &Signer> {
        let roles = [
            &self.deployer,
            &self.owner,
            &self.resolver,
            &self.guardian,
            &self.treasury,
            &self.relayer,
            &self.stranger,
        ];
        roles.into_iter().chain(&self.executors)
    }
}
