//! The text that a wallet signs to sign in, in the form of EIP-4361.
//!
//! The service writes the text itself, and checks the signature against the same bytes. So it needs
//! no parser, and a wallet that signed any other text does not sign in.

use alloy_primitives::Address;

use crate::Timestamp;
use crate::passkey::{Challenge, ChallengePurpose, RelyingParty};

/// The parts of the text.
#[derive(Debug, Clone, Copy)]
pub struct WalletText<'a> {
    pub party: &'a RelyingParty,
    pub address: Address,
    pub chain_id: u64,
    pub challenge: &'a Challenge,
    pub issued_at: Timestamp,
    pub expires_at: Timestamp,
}

impl WalletText<'_> {
    /// Returns the text. The wallet displays it.
    pub fn write(&self) -> String {
        let Self { party, address, chain_id, challenge, issued_at, expires_at } = self;
        let origin = party.origin();
        // The first line has the host and port, without the scheme.
        let authority = origin.split_once("://").map_or(origin, |(_, authority)| authority);
        let (statement, nonce) = (statement(challenge.purpose()), challenge.nonce());
        format!(
            "{authority} wants you to sign in with your Ethereum account:\n{address}\n\n{statement}\n\n\
             URI: {origin}\nVersion: 1\nChain ID: {chain_id}\nNonce: {nonce}\nIssued At: {issued_at}\n\
             Expiration Time: {expires_at}"
        )
    }
}

/// Returns the statement that names the purpose, so that a signature is valid only for it and the
/// user reads what it is for.
const fn statement(purpose: ChallengePurpose) -> &'static str {
    match purpose {
        ChallengePurpose::SignUp => "Create a Foretell account that this wallet owns.",
        ChallengePurpose::SignIn => "Sign in to Foretell.",
        ChallengePurpose::StepUp => "Confirm that it is you, to change security settings of Foretell.",
        ChallengePurpose::AddKey => "Let this wallet sign in to your Foretell account.",
        // Only passkeys confirm acts of admins.
        ChallengePurpose::Admin => "Confirm nothing: a wallet cannot act for an admin of Foretell.",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(purpose: ChallengePurpose) -> String {
        let party = RelyingParty::new("https://foretell.example:8443", None).unwrap();
        WalletText {
            party: &party,
            address: Address::repeat_byte(0xab),
            chain_id: 31_337,
            challenge: &Challenge::new(purpose, [7; 32]),
            issued_at: Timestamp::from_ms(1_777_464_000_000),
            expires_at: Timestamp::from_ms(1_777_464_300_000),
        }
        .write()
    }

    #[test]
    fn the_text_has_the_form_of_eip_4361() {
        insta::assert_snapshot!(text(ChallengePurpose::SignIn), @r"
        foretell.example:8443 wants you to sign in with your Ethereum account:
        0xABaBaBaBABabABabAbAbABAbABabababaBaBABaB

        Sign in to Foretell.

        URI: https://foretell.example:8443
        Version: 1
        Chain ID: 31337
        Nonce: 0707070707070707070707070707070707070707070707070707070707070707
        Issued At: 2026-04-29T12:00:00.000Z
        Expiration Time: 2026-04-29T12:05:00.000Z
        ");
    }

    #[test]
    fn the_texts_of_two_purposes_differ() {
        let texts: std::collections::BTreeSet<_> = ChallengePurpose::ALL.iter().copied().map(text).collect();
        assert_eq!(texts.len(), ChallengePurpose::ALL.len());
    }
}
