//! Positions in a user's feed.

use std::fmt;
use std::str::FromStr;

/// The generation of a feed whose data was never restored.
pub const FIRST_GENERATION: u64 = 1;

/// A position in a user's feed: after all events up to `sequence`. Its text is
/// `generation-sequence`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct FeedPosition {
    /// Restoring data starts a new generation, so that positions from before it are recognized.
    pub generation: u64,
    /// The event's number within the generation; 0 means before the first event.
    pub sequence: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("not a position in a feed")]
pub struct ParsePositionError;

impl fmt::Display for FeedPosition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}", self.generation, self.sequence)
    }
}

impl FromStr for FeedPosition {
    type Err = ParsePositionError;

    /// Reads a number without a generation as a position of the first generation. Clients may have
    /// stored such positions before generations were introduced.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text.split_once('-') {
            Some((generation, sequence)) => {
                Ok(Self { generation: number(generation)?, sequence: number(sequence)? })
            }
            None => Ok(Self { generation: FIRST_GENERATION, sequence: number(text)? }),
        }
    }
}

fn number(text: &str) -> Result<u64, ParsePositionError> {
    // `u64::from_str` also accepts a leading `+`.
    let is_number = text.bytes().all(|byte| byte.is_ascii_digit());
    text.parse().ok().filter(|_| is_number).ok_or(ParsePositionError)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn positions_round_trip_and_plain_numbers_are_generation_0() {
        let position = FeedPosition { generation: 1_790_000_000, sequence: 42 };
        assert_eq!(position.to_string(), "1790000000-42");
        assert_eq!("1790000000-42".parse(), Ok(position));
        assert_eq!("42".parse(), Ok(FeedPosition { generation: 1, sequence: 42 }));
        for text in ["", "-", "1-", "-1", "+1", "1-+1", "1-2-3", "1.5", "x", "1 - 2", "18446744073709551616"]
        {
            assert_eq!(text.parse::<FeedPosition>(), Err(ParsePositionError), "{text}");
        }
    }
}
