//! The settings `rpc-listen` and `ops-listen`.

use std::net::{AddrParseError, SocketAddr};
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// An address to listen on, or off.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub enum OptionalListen {
    Off,
    At(SocketAddr),
}

impl FromStr for OptionalListen {
    type Err = AddrParseError;

    fn from_str(text: &str) -> Result<Self, AddrParseError> {
        if text == "off" { Ok(Self::Off) } else { text.parse().map(Self::At) }
    }
}

impl TryFrom<String> for OptionalListen {
    type Error = AddrParseError;

    fn try_from(text: String) -> Result<Self, AddrParseError> {
        text.parse()
    }
}

impl std::fmt::Display for OptionalListen {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Off => f.write_str("off"),
            Self::At(address) => address.fmt(f),
        }
    }
}

impl From<OptionalListen> for String {
    fn from(listen: OptionalListen) -> Self {
        listen.to_string()
    }
}
