//! Owner acts: batches of calls of a smart account that one of its owners signs and the executor of
//! the account's lane sends.

use crate::words::words;

/// The maximum number of signed acts per user within 24 hours that the service pays for.
pub const DEFAULT_ACTS_PER_DAY: u32 = 20;

words! {
    /// The purpose of an act.
    OwnerActKind, UnknownOwnerActKind {
        /// Deploys the account if necessary, lets the Gate move its USDC and enables keys.
        Enable = "enable",
        /// Enables one key.
        EnableKey = "enable_key",
        /// Sets higher caps of a key.
        RaiseCaps = "raise_caps",
        /// Sends USDC to another address.
        Withdraw = "withdraw",
        /// Sends tokens of an outcome to another address.
        SendPosition = "send_position",
        AddOwner = "add_owner",
        RemoveOwner = "remove_owner",
        /// Takes the USDC approval from the Gate.
        EndApproval = "end_approval",
        /// Buys or sells directly at the hub, beyond the caps of every key.
        Trade = "trade",
    }
}

words! {
    /// The status of an act.
    OwnerActStatus, UnknownOwnerActStatus {
        /// Waits for an owner's signature.
        Prepared = "prepared",
        /// Signed by an owner, and in no transaction yet.
        Signed = "signed",
        /// In a signed transaction that is not final yet.
        Sent = "sent",
        /// Executed in a final block.
        Done = "done",
        /// Cannot be executed.
        Failed = "failed",
        /// Its deadline passed before it was executed.
        Expired = "expired",
    }
}

words! {
    /// The reason why an act failed.
    OwnerActFailure, UnknownOwnerActFailure {
        /// The account executed another batch with the act's nonce.
        NonceUsed = "nonce_used",
        /// The account no longer accepts the signature: its owner was removed.
        SignatureInvalid = "signature_invalid",
        /// One of the calls reverts.
        CallReverted = "call_reverted",
    }
}

impl OwnerActStatus {
    /// Returns true if an act may move from this status to `next`.
    ///
    /// A signed act may be `Done` before this service has sent it, because any address can relay
    /// an owner's signature. A sent act is `Signed` again if its transaction did not execute it and
    /// another one may.
    pub const fn may_become(self, next: Self) -> bool {
        matches!(
            (self, next),
            (Self::Prepared, Self::Signed | Self::Expired)
                | (Self::Signed, Self::Sent | Self::Done | Self::Failed | Self::Expired)
                | (Self::Sent, Self::Signed | Self::Done | Self::Failed | Self::Expired)
        )
    }

    /// Returns true if this status is final.
    pub const fn is_terminal(self) -> bool {
        matches!(self, Self::Done | Self::Failed | Self::Expired)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_documented_act_transitions_are_allowed() {
        let moves: Vec<_> = OwnerActStatus::ALL
            .iter()
            .flat_map(|from| OwnerActStatus::ALL.iter().map(move |to| (*from, *to)))
            .filter(|(from, to)| from.may_become(*to))
            .map(|(from, to)| format!("{from} {to}"))
            .collect();
        assert_eq!(
            moves,
            [
                "prepared signed",
                "prepared expired",
                "signed sent",
                "signed done",
                "signed failed",
                "signed expired",
                "sent signed",
                "sent done",
                "sent failed",
                "sent expired"
            ]
        );
    }

    #[test]
    fn a_terminal_act_never_changes() {
        for from in OwnerActStatus::ALL.iter().filter(|status| status.is_terminal()) {
            assert!(OwnerActStatus::ALL.iter().all(|to| !from.may_become(*to)), "{from}");
        }
    }

    #[test]
    fn every_word_round_trips() {
        for kind in OwnerActKind::ALL {
            assert_eq!(kind.to_string().parse(), Ok(*kind));
        }
        for status in OwnerActStatus::ALL {
            assert_eq!(status.to_string().parse(), Ok(*status));
        }
        for failure in OwnerActFailure::ALL {
            assert_eq!(failure.to_string().parse(), Ok(*failure));
        }
    }
}
