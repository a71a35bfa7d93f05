//! An outage of the database that all processes share, behind a load balancer that obeys the probe of
//! each process: no process is removed, and all trade again by themselves.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use reqwest::Client;
use serde_json::{Value, json};
use store::testing::{Link, PostgresProxy, TestDatabase};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::{interval, timeout};

use crate::clients::post;
use crate::cluster::Cluster;
use crate::service::{Process, read_json};

/// Three times the ten seconds after which an exhausted pool makes a process unready.
const OUTAGE: Duration = Duration::from_secs(30);
/// Time between two probes of the balancer, and between two requests.
const EVERY: Duration = Duration::from_millis(100);

/// A process behind the balancer.
struct Member {
    address: String,
    ops_url: String,
}

impl Member {
    fn of(cluster: &Cluster, index: usize, process: &Process) -> Self {
        let service = read_json(&cluster.folder(index).join("service.json")).unwrap();
        let ops_url = service["opsUrl"].as_str().unwrap().to_owned();
        Self { address: process.base_url.trim_start_matches("http://").to_owned(), ops_url }
    }

    async fn readiness(&self, http: &Client) -> (u16, Value) {
        let answer = http.get(format!("{}/readyz", self.ops_url)).send().await.unwrap();
        (answer.status().as_u16(), answer.json().await.unwrap())
    }
}

/// A load balancer that sends requests only to processes whose probe answers 200.
struct Balancer {
    url: String,
    /// The number of looks at which no process was ready.
    looks_without_process: Arc<AtomicUsize>,
}

impl Balancer {
    async fn start(http: Client, members: Arc<Vec<Member>>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let ready: Arc<parking_lot::Mutex<Vec<usize>>> = Arc::default();
        let looks_without_process = Arc::<AtomicUsize>::default();
        let (probed, without) = (Arc::clone(&ready), Arc::clone(&looks_without_process));
        let of_probes = Arc::clone(&members);
        ready.lock().extend(0..members.len());
        tokio::spawn(async move {
            let mut looks = interval(EVERY);
            loop {
                looks.tick().await;
                let mut up = Vec::new();
                for (index, member) in of_probes.iter().enumerate() {
                    if member.readiness(&http).await.0 == 200 {
                        up.push(index);
                    }
                }
                without.fetch_add(usize::from(up.is_empty()), Ordering::Relaxed);
                *probed.lock() = up;
            }
        });
        tokio::spawn(async move {
            let mut turn = 0;
            while let Ok((client, _)) = listener.accept().await {
                turn += 1;
                let up = ready.lock().clone();
                let target = up.get(turn % up.len().max(1)).map(|index| members[*index].address.clone());
                tokio::spawn(carry(client, target));
            }
        });
        Self { url, looks_without_process }
    }
}

/// Forwards a connection, or answers like a load balancer without a process.
async fn carry(mut client: TcpStream, target: Option<String>) {
    let Some(target) = target else {
        drop(client.read(&mut [0; 4_096]).await);
        let page = "<html>no process</html>";
        let answer = format!("HTTP/1.1 503 Unavailable\r\ncontent-length: {}\r\n\r\n{page}", page.len());
        drop(client.write_all(answer.as_bytes()).await);
        return;
    };
    let mut service = TcpStream::connect(target).await.unwrap();
    drop(tokio::io::copy_bidirectional(&mut client, &mut service).await);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_outage_of_the_database_removes_no_process_and_all_trade_again_by_themselves() {
    let Some(database) = TestDatabase::create().await else { return };
    let proxy = PostgresProxy::start(&database).await;
    let Some(cluster) = Cluster::prepare_on(proxy.url.clone(), Some(database)).await else { return };
    let (first, second) = (cluster.serve(0).await, cluster.serve(1).await);
    let members = Arc::new(vec![Member::of(&cluster, 0, &first), Member::of(&cluster, 1, &second)]);
    let http = Client::builder().no_proxy().pool_max_idle_per_host(0).timeout(Duration::from_secs(20));
    let http = http.build().unwrap();
    let balancer = Balancer::start(http.clone(), Arc::clone(&members)).await;

    // Connections hang instead of being refused, so that requests queue for them.
    proxy.set_link(Link::Silent);
    let trader = &cluster.traders[0];
    let body = json!({ "marketId": trader.markets[0], "outcomeIndex": 0, "side": "buy", "amount": "0.50" });
    let mut asked = tokio::task::JoinSet::new();
    let load = async {
        let mut ticks = interval(EVERY);
        for number in 0.. {
            ticks.tick().await;
            let (http, url, key, body) =
                (http.clone(), balancer.url.clone(), trader.key.clone(), body.clone());
            asked.spawn(async move { post(&http, &url, &key, &format!("during-{number}"), &body).await });
        }
    };
    timeout(OUTAGE, load).await.unwrap_err();
    for member in members.iter() {
        let (status, body) = member.readiness(&http).await;
        assert_eq!(status, 200, "{body}");
        let reasons: Vec<&str> =
            body["degraded"].as_array().unwrap().iter().map(|it| it["reason"].as_str().unwrap()).collect();
        assert!(reasons.contains(&"database_unavailable"), "{body}");
    }
    assert_eq!(balancer.looks_without_process.load(Ordering::Relaxed), 0);
    proxy.set_link(Link::Up);
    let mut answers = 0;
    for answer in asked.join_all().await {
        // A problem document, never the balancer's page: `post` returns only JSON.
        let (status, answer) = answer.expect("a problem document");
        let says_why = matches!(answer["code"].as_str(), Some("DEPENDENCY_UNAVAILABLE" | "REQUEST_TIMEOUT"));
        assert!(status == 201 || says_why, "{status} {answer}");
        answers += 1;
    }
    assert!(answers > 50, "{answers} requests during the outage");

    // Both are themselves again within seconds, without a request.
    for (index, member) in members.iter().enumerate() {
        let recovered = async {
            let mut looks = interval(EVERY);
            loop {
                looks.tick().await;
                let (status, body) = member.readiness(&http).await;
                assert_eq!(status, 200, "{body}");
                if !body["degraded"].to_string().contains("database") {
                    return;
                }
            }
        };
        timeout(Duration::from_secs(20), recovered).await.expect("the process recovers");
        let url = format!("http://{}", member.address);
        let (status, answer) =
            post(&http, &url, &trader.key, &format!("after-{index}"), &body).await.unwrap();
        assert_eq!(status, 201, "{answer}");
    }
    first.terminate().await;
    second.terminate().await;
}
