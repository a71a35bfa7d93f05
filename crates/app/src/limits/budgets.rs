//! Enforces the [budgets](super::budget).
//!
//! What is in use at the same time is counted in this process: [`Budgets::enter`] returns a
//! [`Place`], which frees itself when it is dropped. Uses within a minute or a day are counted by
//! [`Budgets::spend`]; those of a day in Redis, if there is one.
//!
//! A use counts for its user, its address, its networks and the total, or for none of them: a client
//! that is refused takes nothing from its neighbors.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::Arc;

use domain::ids::UserId;
use domain::rate::{NoRoom, Scope, SlotWindow, network_in};
use domain::{ErrorCode, Timestamp};
use parking_lot::Mutex;

use super::budget::{Budget, BudgetShares, Counting, Share};
use super::redis::Redis;
use super::table::{Idle, Table};
use super::{MAX_ADDRESSES, Unavailable, retry_after_s};
use crate::AppError;
use crate::metrics::Metrics;

/// The retry time, in seconds, when too many are in use at the same time.
const CONCURRENT_RETRY_S: u32 = 10;

/// The budgets of what holds a connection until its client closes it.
const STREAMS: [Budget; 4] = [Budget::Streams, Budget::MarketStreams, Budget::Feed, Budget::PaidFeed];

/// The client whose use is counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Client {
    /// `None` if the use comes from no address, because the service does it later.
    pub ip: Option<IpAddr>,
    /// The user, if the request is authenticated.
    pub user: Option<UserId>,
}

impl From<IpAddr> for Client {
    fn from(ip: IpAddr) -> Self {
        Self { ip: Some(ip), user: None }
    }
}

impl From<(IpAddr, UserId)> for Client {
    fn from((ip, user): (IpAddr, UserId)) -> Self {
        Self { ip: Some(ip), user: Some(user) }
    }
}

impl From<UserId> for Client {
    fn from(user: UserId) -> Self {
        Self { ip: None, user: Some(user) }
    }
}

/// The one whose uses are counted together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Holder {
    User(UserId),
    /// The first address of a network.
    Network(IpAddr),
    Everyone,
}

impl std::fmt::Display for Holder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::User(id) => write!(f, "{id}"),
            Self::Network(ip) => write!(f, "{ip}"),
            Self::Everyone => f.write_str("all"),
        }
    }
}

impl Client {
    /// Returns the holder of this client's uses in a scope, if it has one.
    fn holder(self, scope: Scope) -> Option<Holder> {
        match scope {
            Scope::User => self.user.map(Holder::User),
            Scope::Address | Scope::Network | Scope::Site => network_in(scope, self.ip?).map(Holder::Network),
            Scope::Total => Some(Holder::Everyone),
        }
    }
}

/// A use that a budget has no room for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the share {budget}.{scope} of {limit} is used up")]
pub struct Refused {
    pub budget: Budget,
    pub scope: Scope,
    pub limit: u64,
    pub retry_after_s: u32,
}

impl Refused {
    /// Says what is limited and what to do.
    fn detail(&self) -> String {
        let Self { budget, scope, limit, retry_after_s } = self;
        let whose = match scope {
            Scope::User => "one user",
            Scope::Address => "one address",
            Scope::Network | Scope::Site => "one network",
            Scope::Total => "all clients together",
        };
        let remedy = match budget.counting() {
            Counting::Concurrent => "Close one, or try again later.".to_owned(),
            _ => format!("Try again in {retry_after_s} seconds."),
        };
        let (counts, phrase) = (budget.counts(), budget.counting().phrase());
        format!("At most {limit} {counts} of {whose} are allowed {phrase}. {remedy}")
    }
}

impl From<Refused> for AppError {
    fn from(refused: Refused) -> Self {
        Self::new(ErrorCode::RateLimitExceeded)
            .detail(refused.detail())
            .with("limiter", refused.budget.limiter())
            .retry_after_s(refused.retry_after_s)
    }
}

/// The reason why nothing was spent.
#[derive(Debug, thiserror::Error)]
pub enum NotSpent {
    #[error(transparent)]
    Refused(#[from] Refused),
    /// The budget's storage does not answer.
    #[error(transparent)]
    Unavailable(#[from] Unavailable),
}

impl From<NotSpent> for AppError {
    fn from(error: NotSpent) -> Self {
        match error {
            NotSpent::Refused(refused) => refused.into(),
            NotSpent::Unavailable(unavailable) => unavailable.into(),
        }
    }
}

/// A counted scope of a use.
#[derive(Debug, Clone, Copy)]
pub struct Counted {
    pub scope: Scope,
    pub holder: Holder,
    pub limit: u64,
}

/// A use within a window.
#[derive(Debug)]
pub struct Use {
    pub budget: Budget,
    /// The route, for budgets that every route has for itself.
    pub part: &'static str,
    pub counted: Vec<Counted>,
    pub amount: u64,
}

type WindowKey = (Budget, &'static str, Holder);

impl Idle for SlotWindow {
    fn idle_at(&self) -> Timestamp {
        self.idle_at()
    }
}

/// What is in use at the same time.
type InUse = HashMap<(Budget, Scope, Holder), u64>;

/// All budgets of this process.
#[derive(Debug)]
pub struct Budgets {
    shares: BudgetShares,
    in_use: Arc<Mutex<InUse>>,
    /// A table for each scope, so that a client with many addresses evicts no network's state.
    windows: [Table<WindowKey, SlotWindow>; 5],
    redis: Option<Arc<Redis>>,
    metrics: Arc<Metrics>,
}

/// A concurrent use. Dropping it frees it.
#[derive(Debug)]
pub struct Place {
    in_use: Arc<Mutex<InUse>>,
    budget: Budget,
    counted: Vec<Counted>,
    amount: u64,
}

impl Budgets {
    pub(crate) fn new(shares: BudgetShares, redis: Option<Arc<Redis>>, metrics: Arc<Metrics>) -> Self {
        let windows = [(); 5].map(|()| Table::bounded(MAX_ADDRESSES));
        for (budget, scope, limit) in limited(&shares) {
            metrics.budget_share(budget.as_str(), scope.as_str(), limit);
        }
        Self { shares, in_use: Arc::default(), windows, redis, metrics }
    }

    pub fn share(&self, budget: Budget, scope: Scope) -> Share {
        self.shares.share(budget, scope)
    }

    /// Counts one more concurrent use of `client` until the place is dropped.
    ///
    /// # Errors
    /// [`Refused`] if the user, the address, one of its networks or all together have used up their
    /// share.
    pub fn enter(&self, budget: Budget, client: impl Into<Client>) -> Result<Place, Refused> {
        self.enter_many(budget, client, 1)
    }

    /// Counts several concurrent uses together.
    ///
    /// # Errors
    /// Those of [`enter`](Self::enter).
    pub fn enter_many(
        &self,
        budget: Budget,
        client: impl Into<Client>,
        amount: u64,
    ) -> Result<Place, Refused> {
        let counted = self.counted(budget, client.into(), 1);
        self.occupy(budget, &counted, amount)?;
        Ok(Place { in_use: Arc::clone(&self.in_use), budget, counted, amount })
    }

    /// Counts more concurrent uses with a place, such as the bytes of a body that arrive.
    ///
    /// # Errors
    /// Those of [`enter`](Self::enter). The place then keeps what it had.
    pub fn enlarge(&self, place: &mut Place, amount: u64) -> Result<(), Refused> {
        self.occupy(place.budget, &place.counted, amount)?;
        place.amount += amount;
        Ok(())
    }

    /// Counts a concurrent use that other code has admitted by the shares of the budget. With
    /// `only_total`, it uses no share of its address and networks.
    pub fn count_admitted(&self, budget: Budget, client: impl Into<Client>, only_total: bool) -> Place {
        let mut counted = self.counted(budget, client.into(), 1);
        counted.retain(|counted| !only_total || counted.scope == Scope::Total);
        add_uses(&mut self.in_use.lock(), budget, &counted, 1);
        Place { in_use: Arc::clone(&self.in_use), budget, counted, amount: 1 }
    }

    /// Records that other code has refused a use by the share of a scope.
    pub fn count_refused(&self, budget: Budget, scope: Scope) {
        self.metrics.budget_refusal(budget.as_str(), scope.as_str());
    }

    /// Counts concurrent uses in all scopes, or in none.
    fn occupy(&self, budget: Budget, counted: &[Counted], amount: u64) -> Result<(), Refused> {
        let mut in_use = self.in_use.lock();
        let used = |counted: &Counted| {
            in_use.get(&(budget, counted.scope, counted.holder)).copied().unwrap_or_default()
        };
        let full = counted.iter().find(|counted| used(counted).saturating_add(amount) > counted.limit);
        let full = full.copied().or_else(|| self.find_full_streams(budget, &in_use, amount));
        if let Some(full) = full {
            // Unlock before counting: metrics have a lock of their own.
            drop(in_use);
            return Err(self.refuse(budget, full, CONCURRENT_RETRY_S));
        }
        add_uses(&mut in_use, budget, counted, amount);
        Ok(())
    }

    /// Returns the limit of all streams together if a stranger's stream does not fit into it. Each holds
    /// a connection for as long as its client likes, and a quarter of the connections is for requests.
    fn find_full_streams(&self, budget: Budget, in_use: &InUse, amount: u64) -> Option<Counted> {
        if budget == Budget::PaidFeed || !STREAMS.contains(&budget) {
            return None;
        }
        let connections = self.share(Budget::Connections, Scope::Total).limit()?;
        let (scope, holder, limit) = (Scope::Total, Holder::Everyone, connections - connections / 4);
        let open = STREAMS.iter().map(|it| in_use.get(&(*it, scope, holder)).copied().unwrap_or_default());
        let is_full = open.sum::<u64>().saturating_add(amount) > limit;
        is_full.then_some(Counted { scope, holder, limit })
    }

    /// Counts one use of `client` within the budget's window.
    ///
    /// # Errors
    /// [`NotSpent::Refused`] if a share is used up. [`NotSpent::Unavailable`] if Redis counts the
    /// budget and does not answer.
    pub async fn spend(
        &self,
        budget: Budget,
        client: impl Into<Client>,
        now: Timestamp,
    ) -> Result<(), NotSpent> {
        self.spend_amount(budget, client, 1, now).await
    }

    /// Counts several uses together, such as units of gas.
    ///
    /// # Errors
    /// Those of [`spend`](Self::spend).
    pub async fn spend_amount(
        &self,
        budget: Budget,
        client: impl Into<Client>,
        amount: u64,
        now: Timestamp,
    ) -> Result<(), NotSpent> {
        self.spend_multiple(budget, client, (amount, 1), now).await
    }

    /// Like [`spend_amount`](Self::spend_amount), within so many times each share. Uses with a larger
    /// multiple are still possible when others have used the shares up.
    ///
    /// # Errors
    /// Those of [`spend`](Self::spend).
    pub async fn spend_multiple(
        &self,
        budget: Budget,
        client: impl Into<Client>,
        (amount, multiple): (u64, u64),
        now: Timestamp,
    ) -> Result<(), NotSpent> {
        let counted = self.counted(budget, client.into(), multiple);
        self.take(&Use { budget, part: "", counted, amount }, now).await
    }

    /// Gives back an amount that was spent for something that then did not happen.
    pub async fn give_back(&self, budget: Budget, client: impl Into<Client>, amount: u64, now: Timestamp) {
        // Redis compares with the limit also when it subtracts, and a multiple of the share may be used.
        let counted = self.counted(budget, client.into(), u64::MAX);
        for Counted { scope, holder, .. } in &counted {
            let table = &self.windows[*scope as usize];
            table.find(&(budget, "", *holder), |window| window.give_back(amount));
        }
        let Some(redis) = self.redis.as_ref().filter(|_| budget.counting().is_shared()) else { return };
        let given = Use { budget, part: "", counted, amount };
        if let Err(error) = redis.give_back_slots(&given, now).await {
            // The client has less than its share until the window has passed.
            tracing::debug!(%error, %budget, "could not give back what was not used of a budget");
        }
    }

    /// Counts one use within a minute, in this process. It never waits.
    ///
    /// # Errors
    /// [`Refused`] if a share is used up.
    pub fn spend_here(
        &self,
        budget: Budget,
        client: impl Into<Client>,
        now: Timestamp,
    ) -> Result<(), Refused> {
        let counted = self.counted(budget, client.into(), 1);
        self.take_here(&Use { budget, part: "", counted, amount: 1 }, now)
    }

    /// Counts a request on the networks of an address, and in total. The address itself has a window
    /// that is exact to the millisecond, because answers show its state.
    pub(super) async fn spend_wider(
        &self,
        budget: Budget,
        (part, multiple): (&'static str, u64),
        ip: IpAddr,
        now: Timestamp,
    ) -> Result<(), NotSpent> {
        self.take(&self.wider_use(budget, (part, multiple), ip), now).await
    }

    /// Like [`spend_wider`](Self::spend_wider), in this process.
    pub(super) fn spend_wider_here(&self, budget: Budget, ip: IpAddr, now: Timestamp) -> Result<(), Refused> {
        self.take_here(&self.wider_use(budget, ("", 1), ip), now)
    }

    fn wider_use(&self, budget: Budget, (part, multiple): (&'static str, u64), ip: IpAddr) -> Use {
        let mut counted = self.counted(budget, ip.into(), multiple);
        counted.retain(|counted| counted.scope != Scope::Address);
        Use { budget, part, counted, amount: 1 }
    }

    async fn take(&self, wanted: &Use, now: Timestamp) -> Result<(), NotSpent> {
        let Use { budget, counted, .. } = wanted;
        let Some(redis) = self.redis.as_ref().filter(|_| budget.counting().is_shared()) else {
            return Ok(self.take_here(wanted, now)?);
        };
        let Err((place, NoRoom { retry_after_ms })) = redis.take_slots(wanted, now).await? else {
            self.note_here(wanted, now);
            return Ok(());
        };
        match counted.get(place) {
            Some(full) => Err(self.refuse(*budget, *full, retry_after_s(retry_after_ms)).into()),
            None => Ok(()),
        }
    }

    /// Records a use that Redis has allowed, for the metrics of this process.
    fn note_here(&self, wanted: &Use, now: Timestamp) {
        let Use { budget, part, counted, amount } = wanted;
        let period_ms = budget.counting().period_ms().unwrap_or_default();
        for Counted { scope, holder, .. } in counted {
            let table = &self.windows[*scope as usize];
            // Never refused: Redis has compared it with the limit.
            let _ = table.with((*budget, *part, *holder), now, |window| {
                window.take(*amount, u64::MAX, period_ms, now)
            });
        }
    }

    fn take_here(&self, wanted: &Use, now: Timestamp) -> Result<(), Refused> {
        let Use { budget, part, counted, amount } = wanted;
        let Some(period_ms) = budget.counting().period_ms() else { return Ok(()) };
        for (done, counting) in counted.iter().enumerate() {
            let Counted { scope, holder, limit } = *counting;
            let taken = self.windows[scope as usize]
                .with((*budget, *part, holder), now, |window| window.take(*amount, limit, period_ms, now));
            let Err(NoRoom { retry_after_ms }) = taken else { continue };
            for Counted { scope, holder, .. } in counted.iter().take(done) {
                let table = &self.windows[*scope as usize];
                table.find(&(*budget, *part, *holder), |window| window.give_back(*amount));
            }
            return Err(self.refuse(*budget, *counting, retry_after_s(retry_after_ms)));
        }
        Ok(())
    }

    /// Returns the limited scopes of a use, with their limits times `multiple`.
    fn counted(&self, budget: Budget, client: Client, multiple: u64) -> Vec<Counted> {
        let limit = |scope| match self.share(budget, scope).limit() {
            Some(limit) => Some(limit.saturating_mul(multiple)),
            // The total in use is counted even if it is not limited.
            None => (scope == Scope::Total && budget.counting() == Counting::Concurrent).then_some(u64::MAX),
        };
        let counted = |scope: &Scope| {
            Some(Counted { scope: *scope, holder: client.holder(*scope)?, limit: limit(*scope)? })
        };
        Scope::ALL.iter().filter_map(counted).collect()
    }

    fn refuse(&self, budget: Budget, full: Counted, retry_after_s: u32) -> Refused {
        self.metrics.budget_refusal(budget.as_str(), full.scope.as_str());
        Refused { budget, scope: full.scope, limit: full.limit, retry_after_s }
    }

    /// Returns how much of a concurrent budget is in use in this process.
    pub fn in_use(&self, budget: Budget) -> u64 {
        let total = (budget, Scope::Total, Holder::Everyone);
        self.in_use.lock().get(&total).copied().unwrap_or_default()
    }

    /// Returns the number of open streams of all kinds.
    pub fn open_streams(&self) -> u64 {
        STREAMS.iter().map(|it| self.in_use(*it)).sum()
    }

    /// Records the use of each limited share by the one who uses most of it.
    pub(super) fn record(&self, largest: &HashMap<(Budget, Scope), u64>) {
        for (budget, scope, _) in limited(&self.shares) {
            let used = largest.get(&(budget, scope)).copied().unwrap_or_default();
            self.metrics.budget_use(budget.as_str(), scope.as_str(), used);
        }
    }

    /// Returns the largest use of one holder in each scope, as this process has counted it.
    pub fn largest_uses(&self, now: Timestamp) -> HashMap<(Budget, Scope), u64> {
        let mut largest: HashMap<(Budget, Scope), u64> = HashMap::new();
        let mut note = |key: (Budget, Scope), used: u64| {
            let most = largest.entry(key).or_default();
            *most = used.max(*most);
        };
        for ((budget, scope, _), used) in self.in_use.lock().iter() {
            note((*budget, *scope), *used);
        }
        for scope in Scope::ALL {
            self.windows[*scope as usize].for_each(|(budget, part, _), window| {
                // The shares of a route are multiples of its limit, which a sum does not show.
                if part.is_empty() {
                    note((*budget, *scope), window.used(now));
                }
            });
        }
        largest
    }
}

fn add_uses(in_use: &mut InUse, budget: Budget, counted: &[Counted], amount: u64) {
    for Counted { scope, holder, .. } in counted {
        *in_use.entry((budget, *scope, *holder)).or_default() += amount;
    }
}

/// Returns the shares that have a limit.
fn limited(shares: &BudgetShares) -> impl Iterator<Item = (Budget, Scope, u64)> {
    let pairs = Budget::ALL.iter().flat_map(|budget| Scope::ALL.iter().map(|scope| (*budget, *scope)));
    pairs.filter_map(|(budget, scope)| Some((budget, scope, shares.share(budget, scope).limit()?)))
}

impl Place {
    fn free(&self, amount: u64) {
        let mut in_use = self.in_use.lock();
        for Counted { scope, holder, .. } in &self.counted {
            let key = (self.budget, *scope, *holder);
            if let Some(used) = in_use.get_mut(&key) {
                *used = used.saturating_sub(amount);
                // Empty entries would keep every address that ever came.
                if *used == 0 {
                    in_use.remove(&key);
                }
            }
        }
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.free(self.amount);
    }
}
