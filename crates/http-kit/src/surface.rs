//! The surfaces of the service, whose conventions differ.

/// The conventions of a route's errors, queries and headers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Surface {
    /// The trading API: problem documents, API versions, and no unknown query parameters.
    Trading,
    /// The public read API and the pages for people: errors as `{error, message, code}`, access from
    /// every origin, and responses that shared caches may store. Unknown query parameters are
    /// ignored, because web pages append their own.
    Public,
}
