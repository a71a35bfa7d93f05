//! The authenticator data: the part of an answer that the authenticator itself wrote.

use sha2::{Digest, Sha256};

use super::{PasskeyRefusal, RelyingParty};
use crate::words::words;

/// The length of the parts that are always present.
const HEAD_LENGTH: usize = 37;

const USER_PRESENT: u8 = 0x01;
const USER_VERIFIED: u8 = 0x04;
const BACKUP_ELIGIBLE: u8 = 0x08;
const BACKED_UP: u8 = 0x10;
const HAS_CREDENTIAL: u8 = 0x40;
const HAS_EXTENSIONS: u8 = 0x80;

words! {
    /// The copies of a passkey.
    BackupState, UnknownBackupState {
        /// It never leaves its device.
        DeviceBound = "device_bound",
        /// It can be synced to other devices, but is not yet.
        Eligible = "eligible",
        BackedUp = "backed_up",
    }
}

/// Authenticator data in parts.
#[derive(Debug)]
pub(super) struct AuthenticatorData<'a> {
    rp_id_hash: &'a [u8],
    flags: u8,
    pub(super) counter: u32,
    /// The new credential and the extensions.
    pub(super) rest: &'a [u8],
}

impl<'a> AuthenticatorData<'a> {
    pub(super) fn read(bytes: &'a [u8]) -> Result<Self, PasskeyRefusal> {
        let malformed = PasskeyRefusal::AuthenticatorDataMalformed;
        let (head, rest) = bytes.split_at_checked(HEAD_LENGTH).ok_or(malformed)?;
        let [rp_id_hash @ .., flags, a, b, c, d] = head else { return Err(malformed) };
        Ok(Self { rp_id_hash, flags: *flags, counter: u32::from_be_bytes([*a, *b, *c, *d]), rest })
    }

    pub(super) const fn has_credential(&self) -> bool {
        self.flags & HAS_CREDENTIAL != 0
    }

    pub(super) const fn has_extensions(&self) -> bool {
        self.flags & HAS_EXTENSIONS != 0
    }

    /// Checks the relying party and the flags, as the contract does.
    pub(super) fn verify(&self, party: &RelyingParty) -> Result<BackupState, PasskeyRefusal> {
        if self.rp_id_hash != Sha256::digest(party.id()).as_slice() {
            return Err(PasskeyRefusal::WrongRelyingParty);
        }
        if self.flags & USER_PRESENT == 0 {
            return Err(PasskeyRefusal::UserAbsent);
        }
        if self.flags & USER_VERIFIED == 0 {
            return Err(PasskeyRefusal::UserNotVerified);
        }
        match (self.flags & BACKUP_ELIGIBLE != 0, self.flags & BACKED_UP != 0) {
            (false, false) => Ok(BackupState::DeviceBound),
            (true, false) => Ok(BackupState::Eligible),
            (true, true) => Ok(BackupState::BackedUp),
            (false, true) => Err(PasskeyRefusal::BackupContradictory),
        }
    }
}
