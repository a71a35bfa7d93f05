//! The operator's rule about countries: from some, nobody may sign up or buy.

use crate::PersonError;

/// Whether the operator allows signing up and buying from the country of a request. Selling, claiming
/// and withdrawing are always allowed: nobody's money is kept.
#[derive(Debug, Clone, Copy, Default)]
pub struct Country {
    pub is_refused: bool,
}

impl Country {
    /// # Errors
    /// `CountryRefused`
    pub(super) const fn require_allowed(self) -> Result<(), PersonError> {
        if self.is_refused { Err(PersonError::CountryRefused) } else { Ok(()) }
    }
}
