//! Looks up names for users. A name server can keep a lookup waiting for as long as it likes, and the
//! thread that waits cannot be stopped. So each user has a share of the lookups at the same time, a
//! lookup counts until it has really ended, and attempts for the same name share one lookup.

use std::collections::HashMap;
use std::net::IpAddr;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use domain::key::Tier;
use parking_lot::Mutex;
use tokio::sync::{Notify, watch};
use tokio::time::Instant;

use super::Endpoint;
use super::resolver::Resolver;
use crate::limits::budget::Budget;
use crate::limits::{Budgets, Place, Refused};

/// The duration from which a lookup is slow. Its result is kept, so that the next attempts do not
/// occupy a thread again. Other results are not kept: a changed address counts at once.
const SLOW: Duration = Duration::from_secs(1);
/// The time for which the result of a slow lookup is kept.
const KEPT: Duration = Duration::from_secs(30);

/// The addresses of a name, once they are known. Empty if the lookup failed.
type Found = Option<Vec<IpAddr>>;

/// A running lookup, or the result of a slow one.
struct Lookup {
    found: watch::Receiver<Found>,
    /// `None` while it runs.
    kept_until: Option<Instant>,
}

#[derive(Default)]
struct Shared {
    by_name: Mutex<HashMap<String, Lookup>>,
    /// Notifies those who wait for a place.
    ended: Notify,
}

pub(super) struct Lookups {
    resolver: Arc<dyn Resolver>,
    shared: Arc<Shared>,
}

impl Lookups {
    pub fn new(resolver: Arc<dyn Resolver>) -> Self {
        Self { resolver, shared: Arc::default() }
    }

    /// Returns the addresses of the endpoint's host. Waits while its user, or all users together, have
    /// used up their share of the lookups.
    pub async fn find(&self, budgets: &Budgets, endpoint: Endpoint<'_>, name: &str) -> Vec<IpAddr> {
        let mut found = loop {
            // Enabled before the attempt to begin, so that no end is missed in between.
            let mut ended = pin!(self.shared.ended.notified());
            ended.as_mut().enable();
            match self.join_or_begin(budgets, endpoint, name) {
                Ok(found) => break found,
                Err(_) => ended.await,
            }
        };
        let found = found.wait_for(Option::is_some).await.ok().and_then(|found| found.clone());
        found.unwrap_or_default()
    }

    fn join_or_begin(
        &self,
        budgets: &Budgets,
        endpoint: Endpoint<'_>,
        name: &str,
    ) -> Result<watch::Receiver<Found>, Refused> {
        let mut by_name = self.shared.by_name.lock();
        let known = by_name.get(name).filter(|known| known.counts_at(Instant::now()));
        if let Some(known) = known {
            return Ok(known.found.clone());
        }
        let place = match endpoint.tier {
            Tier::Free => budgets.enter(Budget::Lookups, endpoint.user_id)?,
            _ => budgets.enter(Budget::PaidLookups, endpoint.user_id)?,
        };
        let (sender, found) = watch::channel(None);
        by_name.insert(name.to_owned(), Lookup { found: found.clone(), kept_until: None });
        drop(by_name);
        let (resolver, shared) = (Arc::clone(&self.resolver), Arc::clone(&self.shared));
        // In a task of its own, which goes on when nobody waits for it any more.
        tokio::spawn(look_up(resolver, shared, name.to_owned(), sender, place));
        Ok(found)
    }
}

async fn look_up(
    resolver: Arc<dyn Resolver>,
    shared: Arc<Shared>,
    name: String,
    sender: watch::Sender<Found>,
    place: Place,
) {
    let began_at = Instant::now();
    let found = resolver.resolve(&name).await.unwrap_or_else(|error| {
        tracing::debug!(%error, "could not resolve the host of a webhook target");
        Vec::new()
    });
    sender.send_replace(Some(found));
    shared.end(&name, began_at);
    drop(place);
    shared.ended.notify_waiters();
}

impl Shared {
    /// Removes a lookup that has ended, or keeps it if it was slow.
    fn end(&self, name: &str, began_at: Instant) {
        let now = Instant::now();
        let mut by_name = self.by_name.lock();
        if now.duration_since(began_at) < SLOW {
            by_name.remove(name);
            return;
        }
        by_name.retain(|_, lookup| lookup.counts_at(now));
        if let Some(lookup) = by_name.get_mut(name) {
            lookup.kept_until = Some(now + KEPT);
        }
    }
}

impl Lookup {
    fn counts_at(&self, now: Instant) -> bool {
        self.kept_until.is_none_or(|until| now < until)
    }
}
