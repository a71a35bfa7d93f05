//! The webhook sender against real sockets: receivers that break every rule, and addresses that
//! must never be called.
//!
//! Deadlines are tested on a clock that only the test advances.
#![expect(clippy::unwrap_used, reason = "what a test cannot do without fails it")]

mod answers;
mod clock;
mod deadline;
mod faults;
mod internal;
mod lookups;
mod receiver;
mod reuse;
mod tls;

use std::collections::HashMap;
use std::io;
use std::net::IpAddr;
use std::sync::Arc;

use app::limits::Limits;
use app::webhooks::sender::{Attempt, Endpoint, NetworkFault, PostOutcome, Resolver, WebhookSender};
use bytes::Bytes;
use domain::ids::{KeyId, UserId};
use domain::key::Tier;
use domain::webhook::target::{Target, TargetPolicy};
use futures::future::BoxFuture;
use http::HeaderMap;
use parking_lot::Mutex;
use tokio_rustls::rustls::crypto::aws_lc_rs;
use tokio_rustls::rustls::{ClientConfig, RootCertStore};

const BODY: &[u8] = br#"{"id":"evt_1"}"#;

/// The addresses of each name: the first list for the first lookup, the last list for all further
/// lookups.
#[derive(Default)]
struct Names {
    answers: HashMap<String, Vec<Vec<IpAddr>>>,
    asked: Mutex<Vec<String>>,
}

impl Names {
    fn with(mut self, name: &str, answers: &[&[&str]]) -> Self {
        let parsed = |list: &&[&str]| list.iter().map(|ip| ip.parse().unwrap()).collect();
        self.answers.insert(name.to_owned(), answers.iter().map(parsed).collect());
        self
    }

    fn asked(&self, name: &str) -> usize {
        self.asked.lock().iter().filter(|asked| *asked == name).count()
    }
}

impl Resolver for Names {
    fn resolve<'a>(&'a self, name: &'a str) -> BoxFuture<'a, io::Result<Vec<IpAddr>>> {
        let before = self.asked(name);
        self.asked.lock().push(name.to_owned());
        let answers = self.answers.get(name);
        let answer = answers.and_then(|all| all.get(before).or(all.last())).cloned();
        Box::pin(async move { answer.ok_or_else(|| io::ErrorKind::NotFound.into()) })
    }
}

/// Trusts the certificate authorities in `roots`.
fn trusting(roots: RootCertStore) -> ClientConfig {
    ClientConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth()
}

fn sender(policy: TargetPolicy, names: Arc<Names>) -> WebhookSender {
    WebhookSender::with_tls(policy, names, trusting(RootCertStore::empty()))
}

/// Returns a sender that may call this machine.
fn local_sender() -> WebhookSender {
    sender(TargetPolicy::development(), Arc::default())
}

fn local_target(url: &str) -> Target {
    Target::parse(url, &TargetPolicy::development()).unwrap()
}

async fn post(sender: &WebhookSender, target: &Target) -> Attempt {
    post_for(sender, 1, target).await
}

/// Posts an event of the user with this number, who has one key of the tier `free`.
async fn post_for(sender: &WebhookSender, user: u128, target: &Target) -> Attempt {
    let (limits, body) = (Limits::memory(), Bytes::from_static(BODY));
    sender.post(limits.budgets(), endpoint(user, target), HeaderMap::new(), body).await
}

fn endpoint(user: u128, target: &Target) -> Endpoint<'_> {
    let id = uuid::Uuid::from_u128(user);
    Endpoint { user_id: UserId(id), tier: Tier::Free, key_id: KeyId(id), url: target.as_str() }
}

fn answered(status: u16) -> PostOutcome {
    PostOutcome::Answered { status, retry_after: None }
}

const CUT: PostOutcome = PostOutcome::Unreachable(NetworkFault::Cut);
