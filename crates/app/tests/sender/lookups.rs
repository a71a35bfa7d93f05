//! Lookups of names that a slow name server keeps waiting.

use std::io;
use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;
use std::time::Duration;

use app::limits::Limits;
use app::limits::budget::{Budget, BudgetShares};
use app::webhooks::sender::{Attempt, Endpoint, PostOutcome, Resolver, WebhookSender};
use bytes::Bytes;
use domain::key::Tier;
use domain::webhook::target::{Target, TargetPolicy};
use futures::future::{BoxFuture, join_all};
use http::HeaderMap;
use parking_lot::Mutex;
use tokio::sync::Semaphore;
use tokio::task::{JoinHandle, yield_now};
use tokio_rustls::rustls::RootCertStore;

use crate::clock::StoppedClock;
use crate::receiver::Receiver;
use crate::{BODY, answered, endpoint, local_target, trusting};

const OK: &str = "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n";

/// All names are this machine's. Those below `slow.example` wait until the semaphore is closed.
struct SlowNames {
    asked: Mutex<Vec<String>>,
    held: Semaphore,
}

impl Resolver for SlowNames {
    fn resolve<'a>(&'a self, name: &'a str) -> BoxFuture<'a, io::Result<Vec<IpAddr>>> {
        self.asked.lock().push(name.to_owned());
        Box::pin(async move {
            if name.ends_with(".slow.example") {
                drop(self.held.acquire().await);
            }
            Ok(vec![IpAddr::V4(Ipv4Addr::LOCALHOST)])
        })
    }
}

struct Scene {
    names: Arc<SlowNames>,
    sender: Arc<WebhookSender>,
    limits: Arc<Limits>,
    receiver: Receiver,
}

impl Scene {
    /// A service that allows this number of lookups of all users together.
    async fn with(total: u32) -> Self {
        let names = Arc::new(SlowNames { asked: Mutex::default(), held: Semaphore::new(0) });
        let resolver = Arc::<SlowNames>::clone(&names);
        let tls = trusting(RootCertStore::empty());
        let sender = WebhookSender::with_tls(TargetPolicy::development(), resolver, tls);
        let shares = BudgetShares::default().with([format!("lookups.total={total}").parse().unwrap()]);
        let limits = Limits::memory().with_budgets(shares, Arc::default());
        let receiver = Receiver::answering(OK).await;
        Self { names, sender: Arc::new(sender), limits: Arc::new(limits), receiver }
    }

    /// Begins an attempt of the free user with this number for a host.
    fn begin(&self, user: u128, host: &str) -> JoinHandle<Attempt> {
        self.begin_of(Tier::Free, user, host)
    }

    fn begin_of(&self, tier: Tier, user: u128, host: &str) -> JoinHandle<Attempt> {
        let (sender, limits) = (Arc::clone(&self.sender), Arc::clone(&self.limits));
        let target: Target = local_target(&format!("http://{host}:{}/", self.receiver.address.port()));
        tokio::spawn(async move {
            let (headers, body) = (HeaderMap::new(), Bytes::from_static(BODY));
            let endpoint = Endpoint { tier, ..endpoint(user, &target) };
            sender.post(limits.budgets(), endpoint, headers, body).await
        })
    }

    fn asked(&self) -> usize {
        self.names.asked.lock().len()
    }

    fn running(&self) -> u64 {
        self.limits.budgets().in_use(Budget::Lookups)
    }

    async fn until_running(&self, lookups: u64) {
        while self.running() != lookups {
            yield_now().await;
        }
    }
}

#[tokio::test]
async fn slow_names_of_one_user_delay_nobody_else() {
    let scene = Scene::with(5).await;
    let slow: Vec<_> = (0..20).map(|n| scene.begin(1, &format!("a{n}.slow.example"))).collect();
    scene.until_running(4).await;
    for n in 0..10 {
        let other = scene.begin(2, &format!("b{n}.example")).await.unwrap();
        assert_eq!(other.outcome, answered(200));
    }
    assert_eq!((scene.asked(), scene.running()), (14, 4));
    // Those that wait for a place get it as soon as others end.
    scene.names.held.close();
    for attempt in join_all(slow).await {
        assert_eq!(attempt.unwrap().outcome, answered(200));
    }
    assert_eq!(scene.asked(), 30);
    scene.until_running(0).await;
}

#[tokio::test]
async fn slow_names_of_all_free_users_together_delay_no_user_of_a_paid_tier() {
    let scene = Scene::with(5).await;
    let slow: Vec<_> = (0..5).map(|n| scene.begin(n, &format!("a{n}.slow.example"))).collect();
    scene.until_running(5).await;
    let waits = scene.begin(6, "b.example");
    let paid = scene.begin_of(Tier::Developer, 7, "c.example").await.unwrap();
    assert_eq!((paid.outcome, waits.is_finished(), scene.asked()), (answered(200), false, 6));
    scene.names.held.close();
    for attempt in slow.into_iter().chain([waits]) {
        assert_eq!(attempt.await.unwrap().outcome, answered(200));
    }
}

#[tokio::test(start_paused = true)]
async fn a_lookup_counts_until_it_has_ended() {
    let clock = StoppedClock::new();
    let scene = Scene::with(5).await;
    let slow: Vec<_> = (0..6).map(|n| scene.begin(1, &format!("a{n}.slow.example"))).collect();
    scene.until_running(4).await;
    clock.pass(Duration::from_secs(11)).await;
    for attempt in join_all(slow).await {
        assert_eq!(attempt.unwrap().outcome, PostOutcome::TimedOut);
    }
    assert_eq!((scene.asked(), scene.running()), (4, 4));
    assert_eq!(scene.begin(2, "b.example").await.unwrap().outcome, answered(200));
    scene.names.held.close();
    scene.until_running(0).await;
    assert_eq!(scene.begin(1, "c.example").await.unwrap().outcome, answered(200));
}

#[tokio::test(start_paused = true)]
async fn attempts_for_a_slow_name_share_one_lookup_and_its_result() {
    let clock = StoppedClock::new();
    let scene = Scene::with(5).await;
    let first = scene.begin(1, "a.slow.example");
    scene.until_running(1).await;
    clock.pass(Duration::from_secs(11)).await;
    assert_eq!(first.await.unwrap().outcome, PostOutcome::TimedOut);
    let (own, others) = (scene.begin(1, "a.slow.example"), scene.begin(2, "a.slow.example"));
    clock.pass(Duration::from_secs(5)).await;
    assert_eq!((scene.asked(), scene.running()), (1, 1));
    scene.names.held.close();
    for attempt in [own, others] {
        assert_eq!(attempt.await.unwrap().outcome, answered(200));
    }
    // Each has its own connection, so it needs the name.
    for user in 3..6 {
        assert_eq!(scene.begin(user, "a.slow.example").await.unwrap().outcome, answered(200));
    }
    assert_eq!(scene.asked(), 1);
    clock.pass(Duration::from_secs(30)).await;
    assert_eq!(scene.begin(6, "a.slow.example").await.unwrap().outcome, answered(200));
    assert_eq!(scene.asked(), 2);
}
