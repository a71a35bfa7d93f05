//! The setting `rpc-listen`.

use std::net::{AddrParseError, SocketAddr};
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// Address of the embedded chain's JSON-RPC over HTTP, or off.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub enum RpcListen {
    Off,
    At(SocketAddr),
}

impl FromStr for RpcListen {
    type Err = AddrParseError;

    fn from_str(text: &str) -> Result<Self, AddrParseError> {
        if text == "off" { Ok(Self::Off) } else { text.parse().map(Self::At) }
    }
}

impl TryFrom<String> for RpcListen {
    type Error = AddrParseError;

    fn try_from(text: String) -> Result<Self, AddrParseError> {
        text.parse()
    }
}

impl std::fmt::Display for RpcListen {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Off => f.write_str("off"),
            Self::At(address) => address.fmt(f),
        }
    }
}

impl From<RpcListen> for String {
    fn from(listen: RpcListen) -> Self {
        listen.to_string()
    }
}
