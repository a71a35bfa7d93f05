//! The text that a wallet signs to sign in, in the form of EIP-4361.
//!
//! The service writes the text itself, and checks the signature against the same bytes. So it needs
//! no parser, and a wallet that signed any other text does not sign in.

use std::borrow::Cow;

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
    /// The account that the wallet confirms: the one that it is added to, or the one that it asks to
    /// sign in to.
    pub account: Option<Address>,
    pub issued_at: Timestamp,
    pub expires_at: Timestamp,
}

impl WalletText<'_> {
    /// Returns the text. The wallet displays it.
    pub fn write(&self) -> String {
        let Self { party, address, chain_id, challenge, account, issued_at, expires_at } = self;
        let origin = party.origin();
        // The first line has the host and port, without the scheme.
        let authority = origin.split_once("://").map_or(origin, |(_, authority)| authority);
        let (statement, nonce) = (statement(challenge.purpose(), *account), challenge.nonce());
        format!(
            "{authority} wants you to sign in with your Ethereum account:\n{address}\n\n{statement}\n\n\
             URI: {origin}\nVersion: 1\nChain ID: {chain_id}\nNonce: {nonce}\nIssued At: {issued_at}\n\
             Expiration Time: {expires_at}"
        )
    }
}

/// Returns the statement that names the purpose and the account, so that a signature is valid only
/// for them and the user reads what it is for.
fn statement(purpose: ChallengePurpose, account: Option<Address>) -> Cow<'static, str> {
    Cow::Borrowed(match (purpose, account) {
        (ChallengePurpose::SignUp, _) => "Create a Foretell account that this wallet owns.",
        (ChallengePurpose::SignIn, None) => "Sign in to Foretell.",
        (ChallengePurpose::SignIn, Some(account)) => {
            return Cow::Owned(format!("Sign in to the Foretell account {account}, which this wallet owns."));
        }
        (ChallengePurpose::StepUp, _) => "Confirm that it is you, to change security settings of Foretell.",
        (ChallengePurpose::AddKey, Some(account)) => {
            return Cow::Owned(format!("Let this wallet sign in to the Foretell account {account}."));
        }
        // A wallet is always added to an account that the text names.
        (ChallengePurpose::AddKey, None) => "Confirm nothing: a wallet needs an account to sign in to.",
        // Only passkeys confirm acts of admins.
        (ChallengePurpose::Admin, _) => "Confirm nothing: a wallet cannot act for an admin of Foretell.",
    })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    fn text(purpose: ChallengePurpose, account: Option<Address>) -> String {
        let party = RelyingParty::new("https://foretell.example:8443", None).unwrap();
        WalletText {
            party: &party,
            address: Address::repeat_byte(0xab),
            chain_id: 31_337,
            challenge: &Challenge::new(purpose, [7; 32]),
            account,
            issued_at: Timestamp::from_ms(1_777_464_000_000),
            expires_at: Timestamp::from_ms(1_777_464_300_000),
        }
        .write()
    }

    #[test]
    fn the_text_has_the_form_of_eip_4361() {
        insta::assert_snapshot!(text(ChallengePurpose::SignIn, None), @r"
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
    fn the_texts_of_two_purposes_or_accounts_differ() {
        let texts = |account| ChallengePurpose::ALL.iter().map(move |purpose| text(*purpose, account));
        assert_eq!(texts(None).collect::<BTreeSet<_>>().len(), ChallengePurpose::ALL.len());
        for purpose in [ChallengePurpose::SignIn, ChallengePurpose::AddKey] {
            let accounts = [None, Some(Address::repeat_byte(1)), Some(Address::repeat_byte(2))];
            let texts: BTreeSet<_> = accounts.into_iter().map(|account| text(purpose, account)).collect();
            assert_eq!(texts.len(), 3, "{purpose:?}");
        }
        let confirmed = text(ChallengePurpose::AddKey, Some(Address::repeat_byte(1)));
        assert!(confirmed.contains("0x0101010101010101010101010101010101010101"), "{confirmed}");
    }
}
