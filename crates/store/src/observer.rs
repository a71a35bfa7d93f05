//! Reports the store's work, for metrics.

use std::time::Duration;

use domain::Timestamp;
use domain::ids::{BatchId, CorrelationId, TradeId};
use domain::trade::Status;

/// Receives reports. Its methods are called on the path of every unit of work, so they must be quick.
pub trait StoreObserver: Send + Sync {
    /// A unit of work has ended, with or without an error. `unit` names the code that runs it.
    fn unit(&self, unit: &'static str, took: Duration);

    /// A unit of work runs again.
    fn retried(&self, why: RetryReason);

    /// A trade has a new state. Called after the commit.
    fn trade(&self, moved: &TradeMove);
}

/// The reason for which a unit of work runs again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RetryReason {
    /// A deadlock or a serialization failure.
    Conflict,
    /// The connection was lost before the commit.
    ConnectionLost,
    /// A pooler had given the connection a session without the prepared statement.
    StatementLost,
}

impl RetryReason {
    pub const ALL: &[Self] = &[Self::Conflict, Self::ConnectionLost, Self::StatementLost];

    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Conflict => "conflict",
            Self::ConnectionLost => "connection_lost",
            Self::StatementLost => "statement_lost",
        }
    }
}

/// A trade and its new state.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TradeMove {
    pub trade_id: TradeId,
    pub to: Status,
    pub created_at: Timestamp,
    /// The time of the status change before this one. Equals `at` for a new trade.
    pub since: Timestamp,
    pub at: Timestamp,
    pub correlation_id: CorrelationId,
    /// The code of the failure, or the reason of the rejection.
    pub error: Option<&'static str>,
    /// The batch that the trade is or was in.
    pub batch_id: Option<BatchId>,
    /// True if the trade was held for its confirmation.
    pub was_held: bool,
}

/// Returns the module of a unit's code, at most two levels below its crate, such as
/// `app::trades::create`. The type of a closure contains the path of the function around it.
pub fn module_of<U>(_: &U) -> &'static str {
    let path = std::any::type_name::<U>();
    // The type of a method of a trait is `<module::Type as Trait>::method`.
    let path = path.strip_prefix('<').unwrap_or(path);
    let end = path.find(|c: char| !c.is_ascii_alphanumeric() && c != '_' && c != ':').unwrap_or(path.len());
    let path = path.get(..end).unwrap_or_default().trim_end_matches(':');
    // The last name is the function's, or a type's.
    let modules = path.split("::").take_while(|name| !name.starts_with(|c: char| c.is_ascii_uppercase()));
    let function =
        usize::from(!path.split("::").any(|name| name.starts_with(|c: char| c.is_ascii_uppercase())));
    let count = modules.clone().count().saturating_sub(function).clamp(1, 3);
    let length = modules.take(count).map(|name| name.len() + 2).sum::<usize>().saturating_sub(2);
    path.get(..length).unwrap_or(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    trait Named {
        fn unit(&self) -> &'static str;
    }

    struct OfTrait;

    impl Named for OfTrait {
        fn unit(&self) -> &'static str {
            module_of(&|| 1)
        }
    }

    impl OfTrait {
        fn own(&self) -> &'static str {
            module_of(&|| 1)
        }
    }

    #[test]
    fn a_unit_is_named_by_its_module() {
        let names = [module_of(&|| 1), module_of(&async || 1), OfTrait.unit(), OfTrait.own()];
        assert_eq!(names, ["store::observer::tests"; 4]);
    }
}
