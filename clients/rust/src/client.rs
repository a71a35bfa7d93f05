use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use crate::clock::Clock;
use crate::resources::{Account, Events, Keys, Markets, Redemptions, Webhooks};
use crate::response::RateLimit;
use crate::secret::Secret;
use crate::trades::Trades;
use crate::transport::{ConfigError, EtagStore, Settings, Transport};

/// A client of the Foretell trading API. Clones share connections.
#[derive(Clone)]
#[non_exhaustive]
pub struct Foretell {
    /// Creates, confirms and reads trades.
    pub trades: Trades,
    /// Finds and quotes markets.
    pub markets: Markets,
    /// Reads the balance and the positions.
    pub account: Account,
    /// Claims the payouts of ended markets.
    pub redemptions: Redemptions,
    /// Reads and pauses the key.
    pub keys: Keys,
    /// Follows the feed of events.
    pub events: Events,
    /// Manages the webhook of the key.
    pub webhooks: Webhooks,
    transport: Arc<Transport>,
}

impl Foretell {
    /// Makes a client for a service, such as `https://api.example`.
    ///
    /// # Errors
    ///
    /// If the key or the address is malformed, or the address is neither https nor on this machine.
    pub fn new(base_url: impl Into<String>, api_key: impl Into<Secret>) -> Result<Self, ConfigError> {
        Self::builder(base_url, api_key).build()
    }

    /// Makes a client with further options.
    pub fn builder(base_url: impl Into<String>, api_key: impl Into<Secret>) -> Builder {
        Builder { settings: Settings::new(base_url.into(), api_key.into()) }
    }

    /// The state of the rate limit after the newest response of this client.
    #[must_use]
    pub fn rate_limit(&self) -> Option<RateLimit> {
        self.transport.rate_limit()
    }
}

impl fmt::Debug for Foretell {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Foretell")
            .field("base_url", &self.transport.settings.base_url)
            .finish_non_exhaustive()
    }
}

/// The options of a [`Foretell`] client.
#[must_use]
pub struct Builder {
    settings: Settings,
}

impl Builder {
    /// Signs each request with the key.
    pub fn sign(mut self, sign: bool) -> Self {
        self.settings.sign = sign;
        self
    }

    /// Stores the ETags of reads, so that unchanged answers are not transferred again.
    pub fn etags(mut self, store: Arc<dyn EtagStore>) -> Self {
        self.settings.etags = Some(store);
        self
    }

    /// Sets the API version to request. Default: the key's.
    pub fn api_version(mut self, version: impl Into<String>) -> Self {
        self.settings.api_version = Some(version.into());
        self
    }

    /// Sets the time within which the attempts of one call must begin. Default: 30 seconds.
    pub fn deadline(mut self, deadline: Duration) -> Self {
        self.settings.deadline = deadline;
        self
    }

    /// Sets the longest time of one attempt. Default: 15 seconds.
    pub fn attempt_timeout(mut self, timeout: Duration) -> Self {
        self.settings.attempt_timeout = timeout;
        self
    }

    /// Sets the first pause between attempts, and the longest one that the service did not ask for.
    /// Each pause is twice as long as the one before. Default: 1 and 8 seconds.
    pub fn pauses(mut self, first: Duration, max: Duration) -> Self {
        (self.settings.first_pause, self.settings.max_pause) = (first, max);
        self
    }

    /// Sets the time without a byte after which a stream is dead. Default: 45 seconds.
    pub fn idle_timeout(mut self, timeout: Duration) -> Self {
        self.settings.idle_timeout = timeout;
        self
    }

    /// Sets the time for which [`Trades::create_and_wait`] waits for a stream before it polls.
    /// Default: 3 seconds.
    pub fn stream_patience(mut self, patience: Duration) -> Self {
        self.settings.stream_patience = patience;
        self
    }

    /// Replaces the clock of this machine.
    pub fn clock(mut self, clock: Arc<dyn Clock>) -> Self {
        self.settings.clock = clock;
        self
    }

    /// Makes the client.
    ///
    /// # Errors
    ///
    /// As [`Foretell::new`].
    pub fn build(self) -> Result<Foretell, ConfigError> {
        let transport = Arc::new(Transport::new(self.settings)?);
        Ok(Foretell {
            trades: Trades::new(transport.clone()),
            markets: Markets::new(transport.clone()),
            account: Account::new(transport.clone()),
            redemptions: Redemptions::new(transport.clone()),
            keys: Keys::new(transport.clone()),
            events: Events::new(transport.clone()),
            webhooks: Webhooks::new(transport.clone()),
            transport,
        })
    }
}
