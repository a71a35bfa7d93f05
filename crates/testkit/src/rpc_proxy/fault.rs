//! The faults of a node's responses.

/// A fault of a node's responses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RpcFault {
    /// The node is this many blocks behind.
    Stale(u64),
    /// The node's newest block is the one at the time when the fault was set.
    Stalled,
    /// Every second response comes from a node that is this many blocks behind, as from a load
    /// balancer.
    Contradictory(u64),
    /// Logs are `[]`. Blocks, receipts and transactions are `null`.
    Empty,
    /// The node is on another fork: every block from this height on has a different hash.
    Forked(u64),
    /// The node reports a different chain id.
    OtherChain,
    /// Every result is `{}`, regardless of its type.
    WrongType,
    /// The body is `{}` instead of a JSON-RPC response.
    EmptyObject,
    /// The body is empty.
    NoBody,
    /// The body is an HTML page.
    Html,
    /// The response has the id of another request.
    OtherId,
    /// The body is cut off in the middle.
    Truncated,
    /// The body never ends.
    Endless,
    /// Status 429 with a plain text body.
    Busy,
    /// The JSON-RPC error -32603.
    InternalError,
    /// The response is delayed by this many milliseconds.
    Late(u64),
    /// The response is sent byte by byte, ten per second.
    Slow,
    /// There is no response. The node did not receive the request.
    Frozen,
    /// The connection is closed without a response. The node did not receive the request.
    Refused,
    /// The connection is closed without a response. The node has executed the request.
    LostAnswer,
    /// The connection is closed in the middle of the response. The node has executed the request.
    Cut,
}

impl RpcFault {
    /// All faults, with small numbers.
    pub const ALL: &[Self] = &[
        Self::Stale(3),
        Self::Stale(20),
        Self::Stalled,
        Self::Contradictory(2),
        Self::Contradictory(20),
        Self::Empty,
        Self::Forked(0),
        Self::OtherChain,
        Self::WrongType,
        Self::EmptyObject,
        Self::NoBody,
        Self::Html,
        Self::OtherId,
        Self::Truncated,
        Self::Endless,
        Self::Busy,
        Self::InternalError,
        Self::Late(50),
        Self::Late(2_500),
        Self::Slow,
        Self::Frozen,
        Self::Refused,
        Self::LostAnswer,
        Self::Cut,
    ];

    /// Faults that make a response detectably invalid.
    pub const BROKEN: &[Self] = &[
        Self::EmptyObject,
        Self::WrongType,
        Self::NoBody,
        Self::Html,
        Self::OtherId,
        Self::Truncated,
        Self::Busy,
        Self::InternalError,
        Self::Refused,
        Self::LostAnswer,
        Self::Cut,
    ];
}
