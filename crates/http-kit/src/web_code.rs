//! The error codes that only the web application has. All others are those of the trading API.

domain::error_codes! {
    /// A machine-readable error code of the web application. Its scripts branch on it.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
    pub enum WebCode;

    AdminRequired = "ADMIN_REQUIRED", 403, "Admin required", "Only an admin may do this.";
    ChallengeUnusable = "CHALLENGE_UNUSABLE", 409, "Challenge unusable", "The request was answered already, or took longer than five minutes. Begin again.";
    CountryRefused = "COUNTRY_REFUSED", 451, "Country refused", "The operator does not allow this from your country. Selling, claiming and withdrawing are always possible.";
    CredentialOwnsAccount = "CREDENTIAL_OWNS_ACCOUNT", 409, "Owner of the account", "This passkey or wallet owns the account, so it must be able to sign in. Remove the owner first: an owner signs that.";
    CredentialTaken = "CREDENTIAL_TAKEN", 409, "Already in use", "This passkey or wallet already signs in. Sign in with it.";
    LastCredential = "LAST_CREDENTIAL", 409, "Last credential", "The last passkey or wallet must not be removed. Add another one first.";
    OwnersChanging = "OWNERS_CHANGING", 409, "Owners are changing", "A signed act that changes the owners of the account has not ended yet. Wait for it, then try again.";
    PasskeyRejected = "PASSKEY_REJECTED", 403, "Passkey rejected", "The passkey's answer is not valid here. Try again, or use another one.";
    PasskeyRequired = "PASSKEY_REQUIRED", 403, "Passkey required", "Confirm this with a passkey, not with a wallet.";
    SeveralAccounts = "SEVERAL_ACCOUNTS", 409, "Several accounts", "This wallet signs in to several accounts. Choose one.";
    SignedOut = "SIGNED_OUT", 401, "Signed out", "Sign in to continue.";
    StepUpRequired = "STEP_UP_REQUIRED", 403, "Confirmation required", "Confirm this with your passkey or wallet first. The confirmation holds for five minutes.";
    TooManyCredentials = "TOO_MANY_CREDENTIALS", 409, "Too many credentials", "The account has the largest number of passkeys and wallets. Remove one first.";
    UnknownCredential = "UNKNOWN_CREDENTIAL", 403, "Unknown credential", "Nobody signs in with this passkey or wallet here. Sign up first.";
    WalletSignatureInvalid = "WALLET_SIGNATURE_INVALID", 403, "Wallet signature invalid", "The wallet must sign the shown text, unchanged.";
    WebOff = "WEB_OFF", 404, "Web application off", "The operator has switched accounts of the web application off.";
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_codes_are_sorted_and_not_in_the_catalog() {
        let codes: Vec<_> = WebCode::ALL.iter().map(|code| code.as_str()).collect();
        assert!(codes.is_sorted(), "{codes:?}");
        for code in codes {
            assert!(code.parse::<domain::ErrorCode>().is_err(), "{code}");
        }
    }
}
