//! Acts of roles: sent with a key, or printed for the wallet that holds the role.

use std::path::Path;

use alloy_primitives::{Address, B256, keccak256};
use app::roles::{ActSender, Senders};
use app::{AppError, Ctx};
use chain::{Call, Role, Signer};
use clap::Args;
use domain::ErrorCode;
use serde_json::{Value, json};

use super::ctx::AdminCtx;
use super::output::{CommandOutput, OutputRecord};
use super::{read_key, refuse};
use crate::secrets::{RoleSecrets, SecretsError};
use crate::start_error::StartError;

/// Options of commands that act in a role.
#[derive(Debug, Clone, Args)]
pub struct ActArgs {
    /// Print the transactions instead of sending them, in the format of the Safe Transaction
    /// Builder. Needs no key
    #[arg(long)]
    print_transactions: bool,
    /// The role to act in, if several roles may: owner, resolver or guardian
    #[arg(long = "as", value_name = "ROLE")]
    as_role: Option<Role>,
}

/// The sender of an act.
pub struct NamedSender {
    /// The sender in words, such as "the guardian 0x…".
    name: String,
    address: Address,
    /// The key of the address; `None` if the act is printed.
    key: Option<Signer>,
}

impl ActArgs {
    pub const fn is_printed(&self) -> bool {
        self.print_transactions
    }

    /// Selects the sender of an act. `key_file` contains the key of a proposed address.
    ///
    /// # Errors
    /// `NoKey` if the act must be sent and no key of an allowed sender is present.
    pub async fn acting(
        &self,
        admin: &AdminCtx,
        ctx: &Ctx,
        senders: Senders,
        key_file: Option<&Path>,
    ) -> Result<NamedSender, StartError> {
        let keys = admin.secrets()?.roles;
        match senders {
            Senders::Roles(roles) => self.as_role(ctx, &keys, roles).await,
            _ if self.as_role.is_some() => {
                Err(refuse(ErrorCode::ValidationFailed, "--as cannot be used here: this act needs no role."))
            }
            Senders::Proposed(address) => {
                let given = key_file.map(read_key).transpose()?;
                let given = given.map(|key| key.signer()).transpose()?;
                // Without a file, the proposed address may be one whose key is present anyway.
                let keys = given.map_or_else(|| present(&keys), |key| Ok(vec![key]))?;
                let key = keys.into_iter().find(|key| key.address() == address);
                let missing = format!("the key of the proposed address {address} is missing");
                self.with_key(format!("the proposed address {address}"), address, key, || {
                    no_key(&missing, "--key-file")
                })
            }
            Senders::Anyone => {
                let key = present(&keys)?.into_iter().next();
                let address = key.as_ref().map(Signer::address).unwrap_or_default();
                self.with_key("any address".to_owned(), address, key, || {
                    no_key("a key that pays for the transaction is missing", "--resolver-key-file")
                })
            }
        }
    }

    async fn as_role(
        &self,
        ctx: &Ctx,
        keys: &RoleSecrets,
        roles: &'static [Role],
    ) -> Result<NamedSender, StartError> {
        let roles = match &self.as_role {
            None => roles,
            Some(chosen) => {
                roles.iter().find(|role| *role == chosen).map(std::slice::from_ref).ok_or_else(|| {
                    refuse(ErrorCode::ValidationFailed, format!("--as must be {}.", any_of(roles, "")))
                })?
            }
        };
        let mut missing = Vec::new();
        for role in roles {
            let holder = ctx.chain.role_holder(*role).await.map_err(AppError::from)?;
            let name = format!("the {role} {holder}");
            match keys.find(*role)? {
                // A wallet is the sender even if its key is present here.
                _ if self.print_transactions => return Ok(NamedSender { name, address: holder, key: None }),
                Some(key) if key.address() == holder => {
                    return Ok(NamedSender { name, address: holder, key: Some(key) });
                }
                Some(other) => {
                    let other = other.address();
                    missing.push(format!("the {role} is {holder}, but the key is that of {other}"));
                }
                None => missing.push(format!("the key of {name} is missing")),
            }
        }
        Err(no_key(&missing.join("; "), &any_of(roles, "-key-file")))
    }

    fn with_key(
        &self,
        name: String,
        address: Address,
        key: Option<Signer>,
        missing: impl FnOnce() -> StartError,
    ) -> Result<NamedSender, StartError> {
        match key {
            _ if self.print_transactions => Ok(NamedSender { name, address, key: None }),
            Some(key) => Ok(NamedSender { name, address, key: Some(key) }),
            None => Err(missing()),
        }
    }
}

impl NamedSender {
    pub fn sender(&self) -> ActSender<'_> {
        self.key.as_ref().map_or(ActSender::Wallet(self.address), ActSender::Key)
    }

    pub const fn address(&self) -> Address {
        self.address
    }

    /// Returns the calls as a file that the Safe Transaction Builder imports. `about` has additional
    /// members for programs.
    pub fn print(&self, ctx: &Ctx, title: &str, calls: &[Call], about: OutputRecord) -> CommandOutput {
        let description = format!("To be sent by {}.", self.name);
        let transactions: Vec<Value> = calls
            .iter()
            .map(|Call { target, value, data }| {
                json!({ "to": target.to_string(), "value": value.to_string(), "data": data.to_string() })
            })
            .collect();
        let file = |meta: Value| {
            OutputRecord::new()
                .with("version", "1.0")
                .with("chainId", ctx.chain.chain_id().to_string())
                .with("createdAt", ctx.now().ms())
                .with("meta", meta)
                .with("transactions", &transactions)
                .and(about.clone())
        };
        let nameless = file(json!({ "name": null, "description": description }));
        let checksum = checksum(&serde_json::to_value(nameless).unwrap_or_default());
        CommandOutput::Json(file(json!({
            "name": title,
            "description": description,
            "checksum": checksum.to_string(),
        })))
    }
}

/// Returns the checksum by which the Safe Transaction Builder recognizes a changed file. The name
/// must be null in it.
fn checksum(file: &Value) -> B256 {
    keccak256(canonical(file))
}

/// Returns the text of which the checksum is taken. An object is the list of its sorted names,
/// followed by each value and a comma.
fn canonical(value: &Value) -> String {
    match value {
        Value::Array(items) => {
            format!("[{}]", items.iter().map(canonical).collect::<Vec<_>>().join(","))
        }
        Value::Object(members) => {
            let mut members: Vec<_> = members.iter().collect();
            // Sorted, so that the order of members does not change the checksum.
            members.sort_unstable_by_key(|(name, _)| *name);
            let names: Value = members.iter().map(|(name, _)| name.as_str()).collect();
            let values: String = members.iter().map(|(_, value)| canonical(value) + ",").collect();
            format!("{{{names}{values}}}")
        }
        other => other.to_string(),
    }
}

/// Returns every key that is present, those of roles first.
fn present(keys: &RoleSecrets) -> Result<Vec<Signer>, StartError> {
    let of_roles = Role::ALL.into_iter().filter_map(|role| keys.find(role).transpose());
    let relayer = keys.relayer.is_some().then(|| keys.relayer());
    Ok(of_roles.chain(relayer).collect::<Result<_, SecretsError>>()?)
}

fn no_key(missing: &str, files: &str) -> StartError {
    SecretsError::NoKey(format!("{missing}: set {files}, or use --print-transactions")).into()
}

/// Joins the roles' names with "or". With a suffix they are names of options.
fn any_of(roles: &[Role], suffix: &str) -> String {
    let dashes = if suffix.is_empty() { "" } else { "--" };
    roles.iter().map(|role| format!("{dashes}{role}{suffix}")).collect::<Vec<_>>().join(" or ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_checksum_equals_that_of_the_transaction_builder() {
        let file = json!({
            "version": "1.0",
            "chainId": "8453",
            "createdAt": 1_800_000_000_000u64,
            "meta": { "name": null, "description": "To be sent by the \"guardian\"." },
            "transactions": [{ "to": "0x49d4450977E2c95362C13D3a31a09311E0Ea26A6", "value": "0", "data": "0x62a5af3b" }],
            "marketId": "0198f3a0-0000-7000-8000-000000000001",
        });
        // Computed by a second implementation, which reproduces the checksums of two files that the
        // Transaction Builder has written.
        let expected = "0x4b3df863122e36c5416dea81ac378adfee021ad2e6a32545637e3b359d9653d5";
        assert_eq!(checksum(&file).to_string(), expected);
    }
}
