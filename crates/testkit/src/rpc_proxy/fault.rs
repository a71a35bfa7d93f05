//! The ways in which a node's answers go wrong.

/// What is wrong with a node's answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RpcFault {
    /// The node's newest block is this many blocks below the real one.
    Stale(u64),
    /// The node's newest block stays the one of the moment at which the fault was set.
    Stalled,
    /// Every second answer is that of a node this many blocks behind, as a load balancer's can be.
    Contradictory(u64),
    /// Logs are `[]`; blocks, receipts and transactions are `null`.
    Empty,
    /// Every block from this height on has another hash: the node is on another fork.
    Forked(u64),
    /// The node says another chain id.
    OtherChain,
    /// Every result is `{}`, whatever type it should have.
    WrongType,
    /// The body is `{}` instead of a JSON-RPC answer.
    EmptyObject,
    /// The body is empty.
    NoBody,
    /// The body is an HTML page.
    Html,
    /// The answer carries the id of another request.
    OtherId,
    /// The body is the first half of the JSON.
    Truncated,
    /// The body never ends.
    Endless,
    /// Status 429 with a text.
    Busy,
    /// The JSON-RPC error -32603.
    InternalError,
    /// The answer comes this many milliseconds late.
    Late(u64),
    /// The answer comes byte by byte, ten in a second.
    Slow,
    /// The answer never comes. The node has not got the request.
    Frozen,
    /// The connection is closed without an answer. The node has not got the request.
    Refused,
    /// The connection is closed without an answer. The node has done what it was asked.
    LostAnswer,
    /// The connection is closed in the middle of the answer. The node has done what it was asked.
    Cut,
}

impl RpcFault {
    /// Every fault, with small numbers.
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

    /// The faults that break an answer in a way that its reader sees at once.
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
