//! File descriptors. A process that has none left accepts no connection, not even that of a probe,
//! and says nothing.

use app::Ctx;
use app::config::WebhookSettings;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use super::Verdict;
use crate::config::ResolvedConfig;
use crate::ops;
use crate::optional_listen::OptionalListen;
use crate::process_roles::ProcessRole;

/// Descriptors for everything that has no setting: files of SQLite, connections to Redis, NATS and the
/// collector, timers and pipes of the runtime.
const RESERVED: u64 = 128;
/// With fewer connections of clients, a process is of no use.
const MIN_CONNECTIONS: u64 = 64;

/// Raises the limit of open files to the highest that the process may set itself. Shells and service
/// managers set a low one for programs that use `select`, which we don't.
pub fn raise_limit() {
    let limit = getrlimit(Resource::Nofile);
    if limit.current == limit.maximum {
        return;
    }
    // Some systems allow less than they say. The check names the limit that is in force.
    if let Err(error) = setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, ..limit }) {
        tracing::debug!(%error, "the limit of open files could not be raised");
    }
}

/// What a process may and must have open.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Descriptors {
    /// The limit of the process. `None` if there is none.
    allowed: Option<u64>,
    /// The configured maximum of connections of clients.
    connections: u64,
    /// The maximum of connections to webhook receivers.
    webhooks: u64,
    /// Everything else, without which the process does not work.
    others: u64,
}

impl Descriptors {
    fn of(ctx: Option<&Ctx>, config: &ResolvedConfig) -> Self {
        let count = |number: usize| u64::try_from(number).unwrap_or(u64::MAX);
        let pools = ctx.map(|ctx| ctx.store.pool_limits()).unwrap_or_default();
        let pools: usize = pools.iter().map(|(_, connections)| connections).sum();
        let operators = if config.ops_listen == Some(OptionalListen::Off) { 0 } else { ops::MAX_CONNECTIONS };
        let nodes = config.rpc_urls.len().saturating_mul(chain::MAX_NODE_CONNECTIONS);
        let of_role = |role, number| if config.roles.has(role) { number } else { 0 };
        Self {
            allowed: getrlimit(Resource::Nofile).current,
            connections: of_role(ProcessRole::Api, count(config.connections.connections.total)),
            webhooks: of_role(ProcessRole::Dispatcher, WebhookSettings::default().max_in_flight.into()),
            others: RESERVED + count(pools) + count(nodes) + count(operators),
        }
    }

    const fn needed(self) -> u64 {
        self.connections.saturating_add(self.webhooks).saturating_add(self.others)
    }

    /// Returns how many connections of clients fit, at most the configured number. If there are too few
    /// descriptors, webhooks get their share of them: an attempt that gets none is repeated.
    fn fitting(self) -> u64 {
        let Some(allowed) = self.allowed.filter(|allowed| *allowed < self.needed()) else {
            return self.connections;
        };
        let left = allowed.saturating_sub(self.others);
        let shared = self.connections.saturating_add(self.webhooks);
        left.saturating_mul(self.connections).checked_div(shared).unwrap_or_default()
    }

    fn judge(self) -> Verdict {
        let Self { allowed, connections, webhooks, others } = self;
        let (needed, fitting) = (self.needed(), self.fitting());
        let Some(allowed) = allowed.filter(|allowed| *allowed < needed) else {
            let allowed = allowed
                .map_or_else(|| "without a limit".to_owned(), |allowed| format!("{allowed} are allowed"));
            return Verdict::Passed(format!("{needed} are needed at most, {allowed}"));
        };
        let what = format!(
            "{allowed} are allowed, but {connections} connections of clients, {webhooks} of webhooks and {others} others need {needed}."
        );
        let raise = format!("Raise the limit to {needed} (LimitNOFILE= in systemd, `ulimit -n`)");
        if allowed < others || fitting < MIN_CONNECTIONS.min(connections) {
            return Verdict::Fatal(format!("{what} {raise}."));
        }
        if fitting == 0 {
            return Verdict::Warning(format!("{what} {raise}."));
        }
        Verdict::Warning(format!(
            "{what} This process accepts {fitting} connections. {raise}, or set max-connections to {fitting}."
        ))
    }
}

pub(super) fn check(ctx: Option<&Ctx>, config: &ResolvedConfig) -> Verdict {
    raise_limit();
    Descriptors::of(ctx, config).judge()
}

/// Returns how many connections of clients the process can have, at most the configured number.
pub fn fitting_connections(ctx: &Ctx, config: &ResolvedConfig) -> usize {
    let fitting = Descriptors::of(Some(ctx), config).fitting();
    usize::try_from(fitting).unwrap_or(usize::MAX).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with(allowed: Option<u64>) -> Descriptors {
        Descriptors { allowed, connections: 4_096, webhooks: 1_024, others: 192 }
    }

    #[test]
    fn a_limit_that_is_too_low_is_named_with_what_is_needed() {
        let text = "64 are allowed, but 4096 connections of clients, 1024 of webhooks and 192 others need 5312. \
            Raise the limit to 5312 (LimitNOFILE= in systemd, `ulimit -n`).";
        assert_eq!(with(Some(64)).judge(), Verdict::Fatal(text.to_owned()));
        assert!(matches!(with(Some(192 + 79)).judge(), Verdict::Fatal(_)), "63 connections are too few");
    }

    #[test]
    fn a_process_accepts_only_connections_for_which_it_has_descriptors() {
        let Verdict::Warning(text) = with(Some(1_024)).judge() else { panic!() };
        assert!(text.contains("This process accepts 665 connections."), "{text}");
        assert_eq!(with(Some(1_024)).fitting(), 665);
        for enough in [Some(5_312), Some(1_048_576), None] {
            assert_eq!(with(enough).fitting(), 4_096);
            assert!(matches!(with(enough).judge(), Verdict::Passed(_)), "{enough:?}");
        }
    }

    #[test]
    fn a_process_without_clients_needs_only_the_others() {
        let worker = |allowed| Descriptors { connections: 0, webhooks: 0, ..with(Some(allowed)) }.judge();
        assert!(matches!(worker(191), Verdict::Fatal(_)));
        assert!(matches!(worker(192), Verdict::Passed(_)));
        let dispatcher = |allowed| Descriptors { connections: 0, ..with(Some(allowed)) }.judge();
        assert!(matches!(dispatcher(192), Verdict::Warning(_)));
    }
}
