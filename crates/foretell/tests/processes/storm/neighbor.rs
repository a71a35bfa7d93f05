//! An uninvolved user, whose reads need neither a node nor a process or database that is currently
//! failing.

use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use tokio::sync::watch;
use tokio::task::JoinHandle;

use super::pass;
use super::stage::Stage;

/// Maximum time until a process responds again after an outage.
const AFTERMATH: Duration = Duration::from_secs(3);
/// The number of reads in a row that may be answered 503. On a machine that runs other tests too, Redis may
/// answer too late for a read, which a client then repeats after the time that the answer names.
const MAX_REFUSED: u32 = 2;
const RETRY_AFTER: Duration = Duration::from_secs(1);

/// The outages of single processes or of all of them.
#[derive(Clone, Default)]
pub struct Outages(Arc<Mutex<Vec<Outage>>>);

struct Outage {
    /// The affected process, or `None` if all are affected.
    member: Option<usize>,
    began: Instant,
    ended: Option<Instant>,
}

impl Outages {
    /// Records the start of an outage. Returns its number for [`Outages::end`].
    pub fn begin(&self, member: Option<usize>) -> usize {
        let mut outages = self.0.lock();
        outages.push(Outage { member, began: Instant::now(), ended: None });
        outages.len() - 1
    }

    pub fn end(&self, number: usize) {
        self.0.lock()[number].ended = Some(Instant::now());
    }

    /// Returns whether the process was affected at any time in the interval.
    fn affected(&self, member: usize, from: Instant, to: Instant) -> bool {
        self.0.lock().iter().any(|outage| {
            outage.member.is_none_or(|one| one == member)
                && outage.began <= to
                && outage.ended.is_none_or(|ended| ended + AFTERMATH >= from)
        })
    }
}

/// Measured latencies.
pub struct Latency {
    count: usize,
    /// 99th percentile.
    pub p99: Duration,
}

impl Latency {
    fn of(mut samples: Vec<Duration>) -> Self {
        samples.sort_unstable();
        let p99 = samples.get((samples.len() * 99) / 100).copied().unwrap_or_default();
        Self { count: samples.len(), p99 }
    }
}

impl fmt::Display for Latency {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} answers, p99 {:?}", self.count, self.p99)
    }
}

/// The user's reads, one after the other at each process.
pub struct Neighbor {
    samples: Arc<Mutex<Vec<Duration>>>,
    stop: watch::Sender<bool>,
    tasks: Vec<JoinHandle<()>>,
}

pub fn start(stage: &Stage) -> Neighbor {
    let samples = Arc::new(Mutex::new(Vec::new()));
    let (stop, stopped) = watch::channel(false);
    let user = &stage.traders[0];
    let tasks = stage.targets().into_iter().enumerate().map(|(member, base_url)| {
        let urls =
            [format!("{base_url}/v1/markets/{}", user.markets[0]), format!("{base_url}/v1/trades?limit=20")];
        let reads = Reads { member, urls, key: user.key.clone(), outages: stage.outages.clone() };
        tokio::spawn(read(reads, Arc::clone(&samples), stopped.clone()))
    });
    Neighbor { tasks: tasks.collect(), samples, stop }
}

struct Reads {
    member: usize,
    urls: [String; 2],
    key: String,
    outages: Outages,
}

async fn read(reads: Reads, samples: Arc<Mutex<Vec<Duration>>>, stopped: watch::Receiver<bool>) {
    let http = reqwest::Client::builder().no_proxy().timeout(Duration::from_secs(10)).build().unwrap();
    let mut refused = 0;
    for url in reads.urls.iter().cycle() {
        if *stopped.borrow() {
            return;
        }
        let began = Instant::now();
        let answer = http.get(url).header("X-API-Key", &reads.key).send().await;
        let status = match answer {
            Ok(answer) => {
                let status = answer.status().as_u16();
                answer.bytes().await.map(|_| status)
            }
            Err(error) => Err(error),
        };
        let ended = Instant::now();
        if !reads.outages.affected(reads.member, began, ended) {
            match status {
                Ok(200) => {
                    refused = 0;
                    samples.lock().push(ended - began);
                }
                Ok(503) if refused < MAX_REFUSED => {
                    refused += 1;
                    pass(RETRY_AFTER).await;
                }
                _ => panic!("{url} was answered {status:?} although its process and database were in order"),
            }
        }
        pass(Duration::from_millis(25)).await;
    }
}

impl Neighbor {
    /// Returns the latencies since the last call.
    pub fn take(&self) -> Latency {
        Latency::of(std::mem::take(&mut *self.samples.lock()))
    }

    pub async fn stop(self) {
        self.stop.send_replace(true);
        for task in self.tasks {
            task.await.unwrap();
        }
    }
}
