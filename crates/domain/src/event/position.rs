//! Positions in a user's feed.

use std::fmt;
use std::str::FromStr;

/// The generation of a feed whose data was never restored.
pub const FIRST_GENERATION: u64 = 1;

/// A position in a user's feed: everything up to an event of one generation. It is written `generation-sequence`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct FeedPosition {
    /// The generation of the feed. Restoring data begins a new one.
    pub generation: u64,
    /// The event's number within the generation; 0 is before the first event.
    pub sequence: u64,
}

/// The text is not a position in a feed.
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

    /// Reads a number without a generation as one of the first generation: positions were written so before there were
    /// generations.
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
    let is_number = text.bytes().all(|byte| byte.is_ascii_digit());
    text.parse().ok().filter(|_| is_number).ok_or(ParsePositionError)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_position_is_read_as_it_is_written_and_a_number_belongs_to_the_first_generation() {
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
