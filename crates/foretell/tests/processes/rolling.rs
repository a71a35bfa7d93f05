//! Rolling restarts of two processes behind HAProxy under load: no request fails.

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;

use reqwest::Method;
use serde_json::json;
use tokio::process::{Child, Command};
use tokio::sync::{Semaphore, watch};
use tokio::task::{JoinHandle, JoinSet};
use tokio::time::{MissedTickBehavior, interval, timeout};

use crate::clients::Trader;
use crate::cluster::Cluster;
use crate::service::{Process, read_json};

/// The time between two requests: 100 per second.
const PAUSE: Duration = Duration::from_millis(10);
/// A machine that runs other tests too can be slower than the rate. Then requests wait here, not in a queue
/// of connections that the service must refuse.
const MAX_IN_FLIGHT: usize = 64;
/// Every so many requests, one is a trade.
const TRADES: u64 = 10;

/// The addresses of a service and of its operator's listener. They stay the same over restarts.
struct Addresses {
    listen: String,
    ops: String,
}

impl Addresses {
    fn reserve() -> Self {
        // While a process restarts, its port is free. Connections of other tests to 127.0.0.1 must not
        // take it.
        let free = || std::net::TcpListener::bind("127.0.0.2:0").unwrap().local_addr().unwrap().to_string();
        Self { listen: free(), ops: free() }
    }

    async fn serve(&self, cluster: &Cluster, index: usize) -> Process {
        let settings = ["--listen", &self.listen, "--ops-listen", &self.ops, "--shutdown-delay-s", "2"];
        cluster.serve_with(index, &cluster.anvil.url, &settings).await
    }
}

/// A load balancer that checks each process twice a second and never repeats a request.
struct Proxy {
    _process: Child,
    url: String,
    /// The same processes, with a new connection to them for each request.
    fresh_url: String,
    statistics: String,
}

impl Proxy {
    /// Starts HAProxy, or returns `None` if it is not installed.
    fn start(folder: &Path, services: &[Addresses]) -> Option<Self> {
        let program = ["/usr/sbin/haproxy", "/usr/local/sbin/haproxy"].map(PathBuf::from);
        let program = program.into_iter().find(|path| path.exists())?;
        let Addresses { listen: address, ops: statistics } = Addresses::reserve();
        let fresh = Addresses::reserve().listen;
        let port = |address: &str| address.rsplit_once(':').unwrap().1.to_owned();
        let server = |(index, of): (usize, &Addresses)| {
            format!("  server s{index} {} check port {}\n", of.listen, port(&of.ops))
        };
        let servers: String = services.iter().enumerate().map(server).collect();
        let same = |(index, of): (usize, &Addresses)| {
            format!("  server s{index} {} track services/s{index}\n", of.listen)
        };
        let same: String = services.iter().enumerate().map(same).collect();
        let config = format!(
            "defaults\n  mode http\n  retries 0\n  timeout connect 2s\n  timeout client 20s\n  timeout server 20s
frontend public\n  bind {address}\n  default_backend services
frontend statistics\n  bind {statistics}\n  stats enable\n  stats uri /
backend services\n  balance roundrobin\n  option httpchk GET /readyz
  default-server inter 500ms fall 1 rise 1\n{servers}
frontend fresh\n  bind {fresh}\n  default_backend fresh_services
backend fresh_services\n  balance roundrobin\n  http-reuse never\n  option http-server-close\n{same}"
        );
        let path = folder.join("haproxy.cfg");
        std::fs::write(&path, config).unwrap();
        let mut command = Command::new(program);
        command.arg("-db").arg("-f").arg(path).stdout(Stdio::null()).stderr(Stdio::null()).kill_on_drop(true);
        let process = command.spawn().unwrap();
        Some(Self {
            _process: process,
            url: format!("http://{address}"),
            fresh_url: format!("http://{fresh}"),
            statistics: format!("http://{statistics}/;csv"),
        })
    }

    /// Waits until the proxy sends requests to both processes.
    async fn until_both_are_up(&self) {
        let http = reqwest::Client::builder().no_proxy().build().unwrap();
        let both = async {
            let mut looks = interval(Duration::from_millis(50));
            loop {
                looks.tick().await;
                let Ok(answer) = http.get(&self.statistics).send().await else { continue };
                let text = answer.text().await.unwrap();
                // The last check of each server was successful: its layer-7 status and code.
                let servers = text.lines().filter(|line| line.starts_with("services,s"));
                if servers.filter(|line| line.contains(",UP,") && line.contains(",L7OK,200,")).count() == 2 {
                    return;
                }
            }
        };
        timeout(Duration::from_secs(30), both).await.expect("both processes are up");
    }
}

/// Requests at a constant rate, unless [`MAX_IN_FLIGHT`] have no answer yet.
struct Load {
    stop: watch::Sender<bool>,
    task: JoinHandle<Vec<Result<(), String>>>,
}

impl Load {
    /// Starts to send, to the base URLs in turn.
    fn start(base_urls: Vec<String>, trader: Trader) -> Self {
        let (stop, mut stopped) = watch::channel(false);
        let task = tokio::spawn(async move {
            let http =
                reqwest::Client::builder().no_proxy().timeout(Duration::from_secs(20)).build().unwrap();
            let mut ticks = interval(PAUSE);
            ticks.set_missed_tick_behavior(MissedTickBehavior::Burst);
            let mut requests = JoinSet::new();
            let places = Arc::new(Semaphore::new(MAX_IN_FLIGHT));
            for number in 0_u64.. {
                tokio::select! {
                    _ = ticks.tick() => {}
                    _ = stopped.changed() => break,
                }
                let place = Arc::clone(&places).acquire_owned().await.unwrap();
                // Not in step with the trades, so that each URL gets some of them.
                let base_url = base_urls[(number / 3) as usize % base_urls.len()].clone();
                let request = send(http.clone(), base_url, trader.clone(), number);
                requests.spawn(async move {
                    let result = request.await;
                    drop(place);
                    result
                });
            }
            requests.join_all().await
        });
        Self { stop, task }
    }

    /// Stops and returns the number of requests and the failed ones.
    async fn finish(self) -> (usize, Vec<String>) {
        self.stop.send_replace(true);
        let results = self.task.await.unwrap();
        (results.len(), results.into_iter().filter_map(Result::err).collect())
    }
}

async fn send(http: reqwest::Client, base_url: String, trader: Trader, number: u64) -> Result<(), String> {
    let is_trade = number.is_multiple_of(TRADES);
    let (method, path) = if is_trade { (Method::POST, "/v1/trades") } else { (Method::GET, "/v1/markets") };
    let mut request = http.request(method, format!("{base_url}{path}")).header("X-API-Key", trader.key);
    if is_trade {
        let market = &trader.markets[0];
        let body = json!({ "marketId": market, "outcomeIndex": number % 2, "side": "buy", "amount": "0.05" });
        request = request.header("Idempotency-Key", format!("rolling-{number}")).json(&body);
    }
    let answer = request.send().await.map_err(|error| format!("{number}: {error:?}"))?;
    let status = answer.status();
    let text = answer.text().await.map_err(|error| format!("{number}: {error:?}"))?;
    if status.is_success() { Ok(()) } else { Err(format!("{number}: {status} {text}")) }
}

#[tokio::test(flavor = "multi_thread")]
async fn rolling_restarts_behind_a_load_balancer_fail_no_request() {
    let Some(cluster) = Cluster::prepare().await else { return };
    let addresses = [Addresses::reserve(), Addresses::reserve()];
    let folder = store::testing::TestFolder::create();
    let Some(proxy) = Proxy::start(folder.path(), &addresses) else { return };
    let mut processes = Vec::new();
    for (index, of) in addresses.iter().enumerate() {
        processes.push(of.serve(&cluster, index).await);
    }
    proxy.until_both_are_up().await;
    let urls = vec![proxy.url.clone(), proxy.fresh_url.clone()];
    let load = Load::start(urls, cluster.traders[0].clone());
    let restarts = std::env::var("FORETELL_ROLLING_RESTARTS").map_or(3, |count| count.parse().unwrap());
    for restart in 0..restarts {
        let index = restart % addresses.len();
        processes.remove(0).terminate().await;
        processes.push(addresses[index].serve(&cluster, index).await);
        proxy.until_both_are_up().await;
    }
    let (sent, failed) = load.finish().await;
    eprintln!("{restarts} rolling restarts: {} of {sent} requests failed", failed.len());
    assert!(failed.is_empty(), "{} of {sent} failed, first: {}", failed.len(), failed[0]);
    assert!(sent > 100 * restarts, "{sent} requests over {restarts} restarts");
}

/// The operator's listener of a process.
struct Operator {
    http: reqwest::Client,
    url: String,
}

impl Operator {
    async fn of(cluster: &Cluster, index: usize) -> Self {
        let service = read_json(&cluster.folder(index).join("service.json")).unwrap();
        let http = reqwest::Client::builder().no_proxy().build().unwrap();
        Self { http, url: service["opsUrl"].as_str().unwrap().to_owned() }
    }

    async fn answer(&self, method: Method, path: &str, body: &'static str) -> (u16, String) {
        let answer =
            self.http.request(method, format!("{}{path}", self.url)).body(body).send().await.unwrap();
        (answer.status().as_u16(), answer.text().await.unwrap())
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_drain_is_requested_only_on_the_operators_listener() {
    let Some(cluster) = Cluster::prepare().await else { return };
    let settings = ["--listen", "127.0.0.1:0", "--shutdown-delay-s", "2"];
    let process = cluster.serve_with(0, &cluster.anvil.url, &settings).await;
    let operator = Operator::of(&cluster, 0).await;
    assert_eq!(operator.answer(Method::GET, "/livez", "").await.0, 200);
    let ready = r#"{"roles":["api","executor","sync","dispatcher","upkeep"],"status":"ready"}"#;
    assert_eq!(operator.answer(Method::GET, "/readyz", "").await, (200, ready.to_owned()));
    for (method, path) in [
        (Method::GET, "/livez"),
        (Method::GET, "/readyz"),
        (Method::GET, "/metrics"),
        (Method::POST, "/drain"),
        (Method::PUT, "/log-level"),
    ] {
        let public =
            operator.http.request(method, format!("{}{path}", process.base_url)).send().await.unwrap();
        assert_eq!(public.status(), 404, "{path} is not on the public listener");
    }
    // A page of another site must not be able to stop the service.
    let of_page =
        operator.http.post(format!("{}/drain", operator.url)).header("origin", "https://evil.example");
    assert_eq!(of_page.send().await.unwrap().status(), 403);
    assert_eq!(operator.answer(Method::PUT, "/log-level", "inf").await.0, 400);
    assert_eq!(operator.answer(Method::PUT, "/log-level", "error").await.0, 200);

    let (status, text) = operator.answer(Method::POST, "/drain", "").await;
    assert_eq!((status, text.as_str()), (202, r#"{"closesInS":2,"status":"draining"}"#));
    let (status, text) = operator.answer(Method::GET, "/readyz", "").await;
    assert!(status == 503 && text.contains("this process is draining"), "{status} {text}");
    // The public listener still serves, and asks clients to leave.
    let answer = operator.http.get(format!("{}/v1/health", process.base_url)).send().await.unwrap();
    assert_eq!((answer.status().as_u16(), answer.headers()["connection"].to_str().unwrap()), (200, "close"));
    process.ended().await;
}
