//! The surfaces of the service, whose conventions differ.

/// The conventions of a route's errors, queries and headers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Surface {
    /// The trading API: problem documents, API versions, and no unknown query parameters.
    Trading,
    /// The public read API, embeds and documents for crawlers: errors as `{error, message, code}`, access from
    /// every origin, and responses that shared caches may store. Unknown query parameters are
    /// ignored, because web pages append their own.
    Public,
    /// The web application: pages for people, and the requests of their scripts. Errors are problem
    /// documents, which an error page replaces. Nothing is shared with other origins, and no shared
    /// cache stores a response. Unknown query parameters
    /// and empty ones, which forms send, are ignored.
    Web,
}
