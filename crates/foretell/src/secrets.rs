//! The service's secrets: one file that only its owner can read. None of these keys can move a
//! user's funds.

use std::fs;
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use app::encryption::{SealingKey, SealingKeys};
use app::entropy::Entropy;
use chain::{ChainError, Role, Signer};
use domain::SecretKey;
use secrecy::zeroize::Zeroizing;
use secrecy::{ExposeSecret, SecretString};
use serde::{Deserialize, Serialize, Serializer};

use crate::process_roles::{ProcessRoles, SecretName};

/// A key as the secrets file spells it: 32 bytes in hex. `Debug` does not print it, and it is
/// zeroized on drop.
#[derive(Debug, Clone, Deserialize)]
#[serde(transparent)]
pub struct KeyText(SecretString);

impl KeyText {
    fn expose(&self) -> &str {
        self.0.expose_secret()
    }

    /// Returns the signer with this private key.
    pub fn signer(&self) -> Result<Signer, ChainError> {
        Signer::from_hex(self.expose())
    }
}

impl From<&str> for KeyText {
    fn from(text: &str) -> Self {
        Self(text.into())
    }
}

/// Writes the key itself: only the secrets file is serialized.
impl Serialize for KeyText {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.expose())
    }
}

/// Keys for signing and sealing. Each value is 32 bytes in hex.
/// A process that lacks a role may lack the secrets of the role.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Secrets {
    /// Pepper of the API key digests.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key_pepper: Option<KeyText>,
    /// Key that encrypts the stored webhook secrets.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sealing_key: Option<KeyText>,
    /// Keys that only decrypt: the predecessors of `sealingKey`, and during a rotation also its
    /// successor.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub other_sealing_keys: Vec<KeyText>,
    /// MAC key of pagination cursors.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cursor_key: Option<KeyText>,
    /// Private keys of the executors, one per lane.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub executors: Vec<KeyText>,
    /// Private keys of the operator's roles. A service that only trades needs none of them.
    #[serde(default)]
    pub roles: RoleSecrets,
}

/// The private keys of the operator's roles on chain.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct RoleSecrets {
    /// Deployed the contracts. On test chains it is also the USDC minter.
    pub deployer: Option<KeyText>,
    /// Proposes holders of roles and executors. Defaults to the deployer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub owner: Option<KeyText>,
    /// Creates and resolves markets.
    pub resolver: Option<KeyText>,
    /// Freezes markets, pauses and vetoes.
    pub guardian: Option<KeyText>,
    /// Receives fees and surplus.
    pub treasury: Option<KeyText>,
    /// Submits batches that owners have signed, and pays their gas.
    pub relayer: Option<KeyText>,
}

/// A missing or invalid secret. Its message never contains the secret.
#[derive(Debug, thiserror::Error)]
pub enum SecretsError {
    #[error("{path}: {source}")]
    File { path: String, source: std::io::Error },
    /// The file does not have the documented form.
    #[error("{path} is not a secrets file: {detail}")]
    Form { path: String, detail: String },
    /// A value is not 32 bytes in hex. Holds the name of the setting.
    #[error("the secret {0} must be 32 bytes in hex")]
    Value(&'static str),
    /// No key that may act is present. Holds the roles and what to set.
    #[error("{0}")]
    NoKey(String),
    /// The secrets file lacks a secret that roles of the process need.
    #[error("the secret {} is missing: the roles that need it are {}. Copy it from the secrets file of the deployment. Only executors can be in remote signers instead",
        .0.as_str(), .0.roles().iter().map(|role| role.as_str()).collect::<Vec<_>>().join(", "))]
    Absent(SecretName),
    /// The key of the named role is missing.
    #[error("the key of the role {0} is missing: set --{0}-key-file")]
    Missing(&'static str),
}

impl Secrets {
    /// Generates new secrets with the given number of executors.
    pub fn generate(entropy: &dyn Entropy, executors: u16) -> Self {
        let random = || {
            let mut bytes = Zeroizing::new([0; 32]);
            entropy.fill(bytes.as_mut());
            KeyText(hex::encode(bytes).into())
        };
        Self {
            key_pepper: Some(random()),
            sealing_key: Some(random()),
            other_sealing_keys: Vec::new(),
            cursor_key: Some(random()),
            executors: (0..executors).map(|_| random()).collect(),
            roles: RoleSecrets {
                deployer: Some(random()),
                owner: None,
                resolver: Some(random()),
                guardian: Some(random()),
                treasury: Some(random()),
                relayer: Some(random()),
            },
        }
    }

    /// Generates secrets for a deployment whose role keys are stored elsewhere. Of the operator's
    /// keys only the relayer's is included, because it has no privileges: it only pays gas for
    /// batches that owners have signed.
    pub fn generate_without_roles(entropy: &dyn Entropy, executors: u16) -> Self {
        let secrets = Self::generate(entropy, executors);
        let roles = RoleSecrets { relayer: secrets.roles.relayer, ..RoleSecrets::default() };
        Self { roles, ..secrets }
    }

    pub fn load(path: &Path) -> Result<Self, SecretsError> {
        let text = fs::read_to_string(path)
            .map(Zeroizing::new)
            .map_err(|source| SecretsError::File { path: path.display().to_string(), source })?;
        serde_json::from_str(&text).map_err(|error| SecretsError::Form {
            path: path.display().to_string(),
            // The parser's own message could quote a secret.
            detail: format!("line {} column {}", error.line(), error.column()),
        })
    }

    /// Loads the secrets that `roles` need. The file may lack the others, and need not exist if there
    /// are none.
    ///
    /// # Errors
    /// If one of them is missing or invalid.
    pub fn load_for(path: &Path, roles: &ProcessRoles) -> Result<Self, SecretsError> {
        if roles.secrets().is_empty() {
            return Ok(Self::default());
        }
        let secrets = Self::load(path)?;
        secrets.check(roles)?;
        let surplus: Vec<_> = secrets.surplus(roles).into_iter().map(SecretName::as_str).collect();
        if !surplus.is_empty() {
            let (file, secrets, roles) = (path.display(), surplus.join(", "), roles.to_string());
            tracing::warn!(%file, secrets, roles, "the secrets file has secrets that no role of this process needs: remove them from this machine");
        }
        Ok(secrets.only_for(roles))
    }

    /// Checks that the secrets that `roles` need are present and valid.
    pub fn check(&self, roles: &ProcessRoles) -> Result<(), SecretsError> {
        for secret in roles.secrets() {
            match secret {
                SecretName::KeyPepper => drop(self.key_pepper()?),
                SecretName::SealingKey => drop(self.sealing_keys()?),
                SecretName::CursorKey => drop(self.cursor_key()?),
                // The keys may be in remote signers, which only the database knows.
                SecretName::Executors => drop(self.executors()?),
            }
        }
        Ok(())
    }

    /// Returns the present secrets that `roles` do not need.
    pub fn surplus(&self, roles: &ProcessRoles) -> Vec<SecretName> {
        let is_present = |secret: &SecretName| match secret {
            SecretName::KeyPepper => self.key_pepper.is_some(),
            SecretName::SealingKey => self.sealing_key.is_some(),
            SecretName::CursorKey => self.cursor_key.is_some(),
            SecretName::Executors => !self.executors.is_empty(),
        };
        roles.other_secrets().into_iter().filter(is_present).collect()
    }

    /// Drops the secrets that `roles` do not need. The keys of the operator's roles stay, because a
    /// live service rejects them.
    #[must_use]
    pub fn only_for(mut self, roles: &ProcessRoles) -> Self {
        for secret in roles.other_secrets() {
            match secret {
                SecretName::KeyPepper => self.key_pepper = None,
                SecretName::SealingKey => {
                    (self.sealing_key, self.other_sealing_keys) = (None, Vec::new());
                }
                SecretName::CursorKey => self.cursor_key = None,
                SecretName::Executors => self.executors.clear(),
            }
        }
        self
    }

    pub fn save(&self, path: &Path) -> Result<(), SecretsError> {
        let text = Zeroizing::new(serde_json::to_string_pretty(self).unwrap_or_default());
        write_private(path, &text)
            .map_err(|source| SecretsError::File { path: path.display().to_string(), source })
    }

    /// Loads the secrets file, or creates it if it does not exist.
    pub fn load_or_generate(
        path: &Path,
        entropy: &dyn Entropy,
        executors: u16,
    ) -> Result<Self, SecretsError> {
        if path.exists() {
            return Self::load(path);
        }
        let secrets = Self::generate(entropy, executors);
        secrets.save(path)?;
        Ok(secrets)
    }

    pub fn key_pepper(&self) -> Result<SecretKey, SecretsError> {
        key_of(present(self.key_pepper.as_ref(), SecretName::KeyPepper)?, "keyPepper")
    }

    /// Returns the keys that encrypt and decrypt stored webhook secrets.
    pub fn sealing_keys(&self) -> Result<SealingKeys, SecretsError> {
        let others = self.other_sealing_keys.iter().map(|key| sealing_key_of(key, "otherSealingKeys"));
        Ok(SealingKeys::new(
            sealing_key_of(present(self.sealing_key.as_ref(), SecretName::SealingKey)?, "sealingKey")?,
            others.collect::<Result<_, _>>()?,
        ))
    }

    pub fn cursor_key(&self) -> Result<SecretKey, SecretsError> {
        key_of(present(self.cursor_key.as_ref(), SecretName::CursorKey)?, "cursorKey")
    }

    /// Returns the executors' signers, indexed by lane.
    pub fn executors(&self) -> Result<Vec<Signer>, SecretsError> {
        self.executors.iter().map(|key| signer_of(key, "executors")).collect()
    }
}

impl RoleSecrets {
    /// Returns the names of the roles whose keys are present. The relayer is not included, because
    /// it has no privileges on the contracts.
    pub fn present(&self) -> Vec<&'static str> {
        let keys = [
            ("deployer", &self.deployer),
            ("owner", &self.owner),
            ("resolver", &self.resolver),
            ("guardian", &self.guardian),
            ("treasury", &self.treasury),
        ];
        keys.into_iter().filter(|(_, key)| key.is_some()).map(|(name, _)| name).collect()
    }

    /// A role's key; `None` if it is not present.
    pub fn find(&self, role: Role) -> Result<Option<Signer>, SecretsError> {
        let key = match role {
            Role::Owner => self.owner(),
            Role::Resolver => self.resolver(),
            Role::Guardian => self.guardian(),
            Role::Treasury => self.treasury(),
        };
        match key {
            Err(SecretsError::Missing(_)) => Ok(None),
            key => key.map(Some),
        }
    }

    pub fn deployer(&self) -> Result<Signer, SecretsError> {
        role(self.deployer.as_ref(), "deployer")
    }

    /// The owner's key; in development the deployer's.
    pub fn owner(&self) -> Result<Signer, SecretsError> {
        role(self.owner.as_ref().or(self.deployer.as_ref()), "owner")
    }

    pub fn resolver(&self) -> Result<Signer, SecretsError> {
        role(self.resolver.as_ref(), "resolver")
    }

    pub fn guardian(&self) -> Result<Signer, SecretsError> {
        role(self.guardian.as_ref(), "guardian")
    }

    pub fn treasury(&self) -> Result<Signer, SecretsError> {
        role(self.treasury.as_ref(), "treasury")
    }

    pub fn relayer(&self) -> Result<Signer, SecretsError> {
        role(self.relayer.as_ref(), "relayer")
    }
}

fn present(key: Option<&KeyText>, name: SecretName) -> Result<&KeyText, SecretsError> {
    key.ok_or(SecretsError::Absent(name))
}

/// Reads the private key in a file.
pub fn read_key_file(path: &Path) -> Result<Signer, SecretsError> {
    let text = fs::read_to_string(path)
        .map(Zeroizing::new)
        .map_err(|source| SecretsError::File { path: path.display().to_string(), source })?;
    signer_of(&KeyText::from(text.trim()), "gas-treasury")
}

fn role(key: Option<&KeyText>, name: &'static str) -> Result<Signer, SecretsError> {
    signer_of(key.ok_or(SecretsError::Missing(name))?, name)
}

fn signer_of(key: &KeyText, name: &'static str) -> Result<Signer, SecretsError> {
    key.signer().map_err(|_| SecretsError::Value(name))
}

/// Parses a sealing key. Its id is a prefix of its digest, so the id changes only if the key does.
fn sealing_key_of(text: &KeyText, name: &'static str) -> Result<SealingKey, SecretsError> {
    use sha2::Digest;
    let key = key_of(text, name)?;
    let id = hex::encode(&sha2::Sha256::digest(key.expose())[..4]);
    Ok(SealingKey { id, key })
}

fn key_of(text: &KeyText, name: &'static str) -> Result<SecretKey, SecretsError> {
    // Accepts `0x`, because wallets and other tools print keys with it.
    SecretKey::from_hex(text.expose()).ok_or(SecretsError::Value(name))
}

/// Atomically writes a file that only its owner can read.
pub fn write_private(path: &Path, text: &str) -> std::io::Result<()> {
    // Write to a temporary file and rename it, so that a crash leaves the old or the new file.
    let beside = path.with_extension("new");
    let mut file =
        fs::OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&beside)?;
    file.write_all(text.as_bytes())?;
    file.write_all(b"\n")?;
    // Sync before the rename, or a power failure could leave an empty file under the final name.
    file.sync_all()?;
    fs::rename(&beside, path)
}

#[cfg(test)]
mod tests {
    use super::*;
    use app::entropy::SeededEntropy;

    use crate::process_roles::ProcessRole;

    #[test]
    fn a_malformed_secret_is_reported_by_name_without_its_value() {
        let secrets =
            Secrets { key_pepper: Some("hunter2".into()), ..Secrets::generate(&SeededEntropy::new(1), 1) };
        let error = secrets.key_pepper().unwrap_err().to_string();
        assert!(error.contains("keyPepper") && !error.contains("hunter2"), "{error}");
        assert!(!format!("{secrets:?}").contains("hunter2"));
    }

    #[test]
    fn a_replaced_key_still_decrypts_its_secrets() {
        let old = Secrets::generate(&SeededEntropy::new(1), 1);
        let sealed = old.sealing_keys().unwrap().seal(b"whsec", "row", [0; 24]).unwrap();
        let json = serde_json::to_string(&old).unwrap();
        assert!(!json.contains("otherSealingKeys"), "a file without others is as it always was");
        let mut new: Secrets = serde_json::from_str(&json).unwrap();
        new.sealing_key = Secrets::generate(&SeededEntropy::new(2), 1).sealing_key;
        assert!(new.sealing_keys().unwrap().unseal(&sealed, "row").is_err());
        new.other_sealing_keys = old.sealing_key.into_iter().collect();
        let keys = new.sealing_keys().unwrap();
        assert_eq!(keys.unseal(&sealed, "row").unwrap().expose_secret(), b"whsec");
        assert!(!sealed.starts_with(&keys.current_prefix()));
        new.other_sealing_keys.push("hunter2".into());
        let error = new.sealing_keys().err().unwrap().to_string();
        assert_eq!(error, "the secret otherSealingKeys must be 32 bytes in hex");
    }

    #[test]
    fn secrets_of_a_deployment_hold_executors_and_no_role() {
        let secrets = Secrets::generate_without_roles(&SeededEntropy::new(1), 2);
        assert_eq!(secrets.executors().unwrap().len(), 2);
        assert!(secrets.roles.present().is_empty() && secrets.roles.relayer().is_ok());
        let error = secrets.roles.resolver().unwrap_err().to_string();
        assert_eq!(error, "the key of the role resolver is missing: set --resolver-key-file");
    }

    #[test]
    fn roles_get_only_their_secrets_and_need_no_others() {
        let all = Secrets::generate(&SeededEntropy::new(1), 2);
        for role in [ProcessRole::Api, ProcessRole::Executor, ProcessRole::Sync, ProcessRole::Dispatcher] {
            let roles = ProcessRoles::new(Some(vec![role])).unwrap();
            let own = all.clone().only_for(&roles);
            own.check(&roles).unwrap();
            assert_eq!(own.surplus(&roles), []);
            assert_eq!(all.surplus(&roles), roles.other_secrets());
            let text = serde_json::to_string(&own).unwrap();
            assert!(roles.other_secrets().iter().all(|secret| !text.contains(secret.as_str())), "{role:?}");
        }
        let api = ProcessRoles::new(Some(vec![ProcessRole::Api])).unwrap();
        let executor = ProcessRoles::new(Some(vec![ProcessRole::Executor])).unwrap();
        all.clone().only_for(&api).check(&executor).expect("remote signers can have the keys");
        let missing = all.only_for(&executor).check(&api).unwrap_err().to_string();
        assert!(missing.starts_with("the secret keyPepper is missing: the roles that need it are api."));
    }

    #[test]
    fn a_process_without_secrets_needs_no_file() {
        let nowhere = Path::new("/nonexistent/secrets.json");
        let of = |role| Secrets::load_for(nowhere, &ProcessRoles::new(Some(vec![role])).unwrap());
        assert!(of(ProcessRole::Sync).is_ok() && of(ProcessRole::Upkeep).is_ok());
        assert!(matches!(of(ProcessRole::Dispatcher), Err(SecretsError::File { .. })));
    }

    #[test]
    fn generated_secrets_are_complete_and_distinct() {
        let secrets = Secrets::generate(&SeededEntropy::new(1), 2);
        assert_eq!(secrets.executors().unwrap().len(), 2);
        assert_ne!(secrets.key_pepper().unwrap().expose(), secrets.cursor_key().unwrap().expose());
        assert_ne!(secrets.roles.resolver().unwrap().address(), secrets.roles.guardian().unwrap().address());
    }
}
