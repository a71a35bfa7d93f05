//! The service's own secrets: one file that only its owner can read. None of them can move a user's funds.

use std::fs;
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use app::entropy::Entropy;
use app::sealed::{SealingKey, SealingKeys};
use chain::Signer;
use serde::{Deserialize, Serialize};

/// What the service signs and seals with. Every value is 32 bytes in hex.
#[derive(Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Secrets {
    /// The pepper of API keys' digests.
    pub key_pepper: String,
    /// The key under which webhook secrets are stored.
    pub sealing_key: String,
    /// Keys that open what they have sealed and seal nothing: those that `sealingKey` has followed, and the one that is to
    /// follow it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub other_sealing_keys: Vec<String>,
    /// The key of cursors' MACs.
    pub cursor_key: String,
    /// The executors' private keys, one lane each.
    pub executors: Vec<String>,
    /// Private keys of the operator's roles; a service that only trades needs none of them.
    #[serde(default)]
    pub roles: Roles,
}

/// The operator's roles on chain.
#[derive(Clone, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Roles {
    /// Deployed the contracts; on test chains the USDC's minter.
    pub deployer: Option<String>,
    /// Creates and resolves markets.
    pub resolver: Option<String>,
    /// Freezes, pauses and vetoes.
    pub guardian: Option<String>,
    /// Receives fees and surplus.
    pub treasury: Option<String>,
    /// Carries owners' signed batches.
    pub relayer: Option<String>,
}

/// A secret that is missing or has the wrong form. Never shows the secret.
#[derive(Debug, thiserror::Error)]
pub enum SecretsError {
    /// The file cannot be read or written.
    #[error("{path}: {source}")]
    File {
        /// The file.
        path: String,
        /// Why.
        source: std::io::Error,
    },
    /// The file is not of the documented form.
    #[error("{path} is not a secrets file: {detail}")]
    Form {
        /// The file.
        path: String,
        /// What is wrong.
        detail: String,
    },
    /// A value is not 32 bytes in hex.
    #[error("the secret {0} is not 32 bytes in hex")]
    Value(&'static str),
    /// A role's key is not there.
    #[error("the secrets hold no key for the role {0}")]
    Missing(&'static str),
}

impl Secrets {
    /// New secrets with this many executors.
    pub fn generate(entropy: &dyn Entropy, executors: u16) -> Self {
        let random = || {
            let mut bytes = [0; 32];
            entropy.fill(&mut bytes);
            hex::encode(bytes)
        };
        Self {
            key_pepper: random(),
            sealing_key: random(),
            other_sealing_keys: Vec::new(),
            cursor_key: random(),
            executors: (0..executors).map(|_| random()).collect(),
            roles: Roles {
                deployer: Some(random()),
                resolver: Some(random()),
                guardian: Some(random()),
                treasury: Some(random()),
                relayer: Some(random()),
            },
        }
    }

    /// Reads the file.
    pub fn load(path: &Path) -> Result<Self, SecretsError> {
        let text = fs::read_to_string(path)
            .map_err(|source| SecretsError::File { path: path.display().to_string(), source })?;
        serde_json::from_str(&text).map_err(|error| SecretsError::Form {
            path: path.display().to_string(),
            // The parser's own words could quote the file.
            detail: format!("line {} column {}", error.line(), error.column()),
        })
    }

    /// Writes the file so that only its owner can read it.
    pub fn save(&self, path: &Path) -> Result<(), SecretsError> {
        let text = serde_json::to_string_pretty(self).unwrap_or_default();
        write_private(path, &text)
            .map_err(|source| SecretsError::File { path: path.display().to_string(), source })
    }

    /// Reads the file, or makes it where there is none.
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

    /// The pepper of API keys' digests.
    pub fn key_pepper(&self) -> Result<[u8; 32], SecretsError> {
        bytes_of(&self.key_pepper, "keyPepper")
    }

    /// The keys under which webhook secrets are stored.
    pub fn sealing_keys(&self) -> Result<SealingKeys, SecretsError> {
        let others = self.other_sealing_keys.iter().map(|key| sealing_key_of(key, "otherSealingKeys"));
        Ok(SealingKeys::new(
            sealing_key_of(&self.sealing_key, "sealingKey")?,
            others.collect::<Result<_, _>>()?,
        ))
    }

    /// The key of cursors' MACs.
    pub fn cursor_key(&self) -> Result<[u8; 32], SecretsError> {
        bytes_of(&self.cursor_key, "cursorKey")
    }

    /// The executors, by lane.
    pub fn executors(&self) -> Result<Vec<Signer>, SecretsError> {
        self.executors.iter().map(|key| signer_of(key, "executors")).collect()
    }
}

impl Roles {
    /// Deployed the contracts; on test chains the USDC's minter.
    pub fn deployer(&self) -> Result<Signer, SecretsError> {
        role(self.deployer.as_deref(), "deployer")
    }

    /// Creates and resolves markets.
    pub fn resolver(&self) -> Result<Signer, SecretsError> {
        role(self.resolver.as_deref(), "resolver")
    }

    /// Freezes, pauses and vetoes.
    pub fn guardian(&self) -> Result<Signer, SecretsError> {
        role(self.guardian.as_deref(), "guardian")
    }

    /// Receives fees and surplus.
    pub fn treasury(&self) -> Result<Signer, SecretsError> {
        role(self.treasury.as_deref(), "treasury")
    }

    /// Carries owners' signed batches.
    pub fn relayer(&self) -> Result<Signer, SecretsError> {
        role(self.relayer.as_deref(), "relayer")
    }
}

fn role(key: Option<&str>, name: &'static str) -> Result<Signer, SecretsError> {
    signer_of(key.ok_or(SecretsError::Missing(name))?, name)
}

fn signer_of(key: &str, name: &'static str) -> Result<Signer, SecretsError> {
    Signer::from_hex(key).map_err(|_| SecretsError::Value(name))
}

/// A sealing key. Its name is the start of its digest, so that it never changes unless the key does.
fn sealing_key_of(text: &str, name: &'static str) -> Result<SealingKey, SecretsError> {
    use sha2::Digest;
    let key = bytes_of(text, name)?;
    let id = hex::encode(&sha2::Sha256::digest(key)[..4]);
    Ok(SealingKey { id, key })
}

fn bytes_of(text: &str, name: &'static str) -> Result<[u8; 32], SecretsError> {
    let bytes = hex::decode(text.trim_start_matches("0x")).map_err(|_| SecretsError::Value(name))?;
    bytes.try_into().map_err(|_| SecretsError::Value(name))
}

/// Writes a file that only its owner can read, whole or not at all.
pub fn write_private(path: &Path, text: &str) -> std::io::Result<()> {
    let beside = path.with_extension("new");
    let mut file =
        fs::OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&beside)?;
    file.write_all(text.as_bytes())?;
    file.write_all(b"\n")?;
    file.sync_all()?;
    fs::rename(&beside, path)
}

#[cfg(test)]
mod tests {
    use super::*;
    use app::entropy::SeededEntropy;

    #[test]
    fn a_value_of_the_wrong_form_is_named_and_never_shown() {
        let secrets =
            Secrets { key_pepper: "hunter2".into(), ..Secrets::generate(&SeededEntropy::new(1), 1) };
        let error = secrets.key_pepper().unwrap_err().to_string();
        assert!(error.contains("keyPepper") && !error.contains("hunter2"), "{error}");
    }

    #[test]
    fn a_key_that_was_replaced_still_opens_what_it_has_sealed() {
        let old = Secrets::generate(&SeededEntropy::new(1), 1);
        let sealed = old.sealing_keys().unwrap().seal(b"whsec", "row", [0; 24]).unwrap();
        let json = serde_json::to_string(&old).unwrap();
        assert!(!json.contains("otherSealingKeys"), "a file without others is as it always was");
        let mut new: Secrets = serde_json::from_str(&json).unwrap();
        new.sealing_key = Secrets::generate(&SeededEntropy::new(2), 1).sealing_key;
        assert!(new.sealing_keys().unwrap().unseal(&sealed, "row").is_err());
        new.other_sealing_keys = vec![old.sealing_key];
        let keys = new.sealing_keys().unwrap();
        assert_eq!(keys.unseal(&sealed, "row"), Ok(b"whsec".to_vec()));
        assert!(!sealed.starts_with(&keys.current_prefix()));
        new.other_sealing_keys.push("hunter2".to_owned());
        let error = new.sealing_keys().err().unwrap().to_string();
        assert_eq!(error, "the secret otherSealingKeys is not 32 bytes in hex");
    }

    #[test]
    fn generated_secrets_are_whole_and_all_different() {
        let secrets = Secrets::generate(&SeededEntropy::new(1), 2);
        assert_eq!(secrets.executors().unwrap().len(), 2);
        assert_ne!(secrets.key_pepper().unwrap(), secrets.cursor_key().unwrap());
        assert_ne!(secrets.roles.resolver().unwrap().address(), secrets.roles.guardian().unwrap().address());
    }
}
