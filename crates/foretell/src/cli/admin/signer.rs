//! The holder of an executor's key, as options.

use alloy_primitives::Address;
use app::lanes::{AwsKeySettings, GcpKeySettings, ServerSettings, SignerPlace};
use clap::Args;
use domain::ErrorCode;
use domain::lane::SignerKind;

use super::refuse;
use crate::start_error::StartError;

/// Options for the holder of an executor's key.
#[derive(Debug, Args)]
pub struct SignerArgs {
    /// The holder of the executor's key: file (the secrets file), web3signer, aws-kms or gcp-kms
    #[arg(long, value_name = "KIND", default_value_t = SignerKind::File)]
    signer: SignerKind,
    /// The URL of a web3signer server, without a user name or a password. With aws-kms, an endpoint
    /// instead of that of the region
    #[arg(long, value_name = "URL")]
    signer_url: Option<String>,
    /// The key in a key service: with aws-kms an ARN, an id or alias/NAME, with gcp-kms the resource
    /// name of a key's version
    #[arg(long, value_name = "KEY")]
    signer_key: Option<String>,
    /// The region of a key in AWS KMS, if it is not an ARN
    #[arg(long, value_name = "REGION")]
    signer_region: Option<String>,
}

impl SignerArgs {
    pub const fn kind(&self) -> SignerKind {
        self.signer
    }

    /// Returns the place of the key, if the options fit each other.
    pub fn place(&self) -> Result<SignerPlace, StartError> {
        let Self { signer, signer_url, signer_key, signer_region } = self;
        let (url, key, region) = (signer_url.clone(), signer_key.clone(), signer_region.clone());
        let used = match signer {
            SignerKind::File => [false, false, false],
            SignerKind::Web3signer => [true, false, false],
            SignerKind::AwsKms => [true, true, true],
            SignerKind::GcpKms => [false, true, false],
        };
        let given = [url.is_some(), key.is_some(), region.is_some()];
        let names = ["--signer-url", "--signer-key", "--signer-region"];
        let unused = names.iter().zip(given.into_iter().zip(used)).find(|(_, (given, used))| *given && !used);
        if let Some((name, _)) = unused {
            let why = format!("{name} cannot be used with --signer {signer}.");
            return Err(refuse(ErrorCode::ValidationFailed, why));
        }
        match (signer, url, key) {
            (SignerKind::File, ..) => Ok(SignerPlace::File),
            (SignerKind::Web3signer, Some(url), _) => Ok(SignerPlace::Web3signer(ServerSettings { url })),
            (SignerKind::AwsKms, url, Some(key)) => {
                Ok(SignerPlace::AwsKms(AwsKeySettings { key, region, url }))
            }
            (SignerKind::GcpKms, _, Some(key)) => Ok(SignerPlace::GcpKms(GcpKeySettings { key })),
            (SignerKind::Web3signer, ..) => Err(refuse(
                ErrorCode::ValidationFailed,
                "Set --signer-url: the URL of the web3signer server.",
            )),
            (SignerKind::AwsKms | SignerKind::GcpKms, ..) => {
                Err(refuse(ErrorCode::ValidationFailed, "Set --signer-key: the key in the key service."))
            }
        }
    }
}

/// Returns the executor: the given one, or that whose key a key service holds at the place.
pub async fn find_executor(place: &SignerPlace, given: Option<Address>) -> Result<Address, StartError> {
    match (given, place.find_address().await?) {
        (Some(given), Some(held)) if given != held => {
            let why = format!("The signer has the key of {held}, not of {given}.");
            Err(refuse(ErrorCode::ValidationFailed, why))
        }
        (_, Some(executor)) | (Some(executor), None) => Ok(executor),
        (None, None) => {
            let why = format!("Give the address of the executor: --signer {} needs it.", place.kind());
            Err(refuse(ErrorCode::ValidationFailed, why))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[derive(Debug, Parser)]
    struct Command {
        #[command(flatten)]
        signer: SignerArgs,
    }

    fn place(line: &str) -> Result<SignerPlace, String> {
        let words = std::iter::once("add").chain(line.split_whitespace());
        Command::try_parse_from(words).unwrap().signer.place().map_err(|error| error.to_string())
    }

    #[test]
    fn each_holder_of_a_key_has_its_own_options() {
        for line in [
            "",
            "--signer web3signer --signer-url https://signer",
            "--signer aws-kms --signer-key arn",
            "--signer aws-kms --signer-key id --signer-region eu-west-1 --signer-url https://kms",
            "--signer gcp-kms --signer-key name",
        ] {
            assert!(place(line).is_ok(), "{line}");
        }
        for (line, reason) in [
            ("--signer-key key", "--signer-key cannot be used with --signer file."),
            ("--signer web3signer", "Set --signer-url:"),
            ("--signer web3signer --signer-url u --signer-region r", "--signer-region cannot be used"),
            ("--signer aws-kms --signer-url https://kms", "Set --signer-key:"),
            ("--signer gcp-kms --signer-key k --signer-url u", "--signer-url cannot be used"),
        ] {
            let error = place(line).unwrap_err();
            assert!(error.contains(reason), "{line}: {error}");
        }
    }
}
