//! A TCP proxy in front of the test cluster that fails at a chosen statement.

use std::net::SocketAddr;
use std::sync::Arc;

use parking_lot::Mutex;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio_postgres::Config;
use tokio_postgres::config::Host;

use super::TestDatabase;

/// The fault of a connection whose client sends the chosen statement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProxyFault {
    /// The connection is closed before the server receives the statement.
    CutBefore,
    /// The server executes the statement, and the connection is closed before the client receives
    /// the answer.
    CutAfter,
    /// The client receives a PANIC error, and the connection is closed.
    Panic,
    /// The server executes the statement, and the client receives a PANIC error instead of the answer.
    /// A pooler does this if it loses the server.
    PanicAfter,
    /// The server receives the statement with a spelling mistake. The connection stays open.
    Misspell,
    /// The server receives the statement, but its answer is never read, as if the client were
    /// frozen.
    TakeNothing,
}

struct Plan {
    statement: &'static str,
    fault: ProxyFault,
    times: usize,
}

/// The proxy. It stops with the runtime in which it was started.
#[derive(Clone)]
pub struct PostgresProxy {
    /// The database's URL through this proxy, for [`crate::Store::open`].
    pub url: String,
    plans: Arc<Mutex<Vec<Plan>>>,
    link: Arc<watch::Sender<Link>>,
}

/// The way from the proxy to the cluster.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Link {
    Up,
    /// Open connections are closed, and new ones are closed at once.
    Cut,
    /// Nothing is carried in either direction, and no connection is closed.
    Silent,
}

impl PostgresProxy {
    /// Starts a proxy in front of a test database, over TCP.
    ///
    /// # Panics
    /// If no port is free, or if the cluster is reached over a Unix socket.
    pub async fn start(database: &TestDatabase) -> Self {
        let config: Config = database.url.parse().expect("the test cluster's URL is understood");
        let [Host::Tcp(host)] = config.get_hosts() else {
            panic!("the test cluster is not reached over TCP")
        };
        let port = config.get_ports().first().copied().unwrap_or(5432);
        let cluster = format!("{host}:{port}");
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port is free");
        let here: SocketAddr = listener.local_addr().expect("the listener has an address");
        let url = database.url.replace(&cluster, &here.to_string());
        let (link, up) = watch::channel(Link::Up);
        let proxy = Self { url, plans: Arc::default(), link: Arc::new(link) };
        let plans = Arc::clone(&proxy.plans);
        tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                let carried = carry(client, cluster.clone(), Arc::clone(&plans), up.clone());
                let mut link = up.clone();
                tokio::spawn(async move {
                    tokio::select! {
                        () = carried => {}
                        _ = link.wait_for(|link| *link == Link::Cut) => {}
                    }
                });
            }
        });
        proxy
    }

    /// Changes the way to the cluster, for all connections.
    pub fn set_link(&self, link: Link) {
        self.link.send_replace(link);
    }

    /// Applies `fault` to the next `times` connections whose client sends `statement`.
    pub fn plan(&self, statement: &'static str, fault: ProxyFault, times: usize) {
        self.plans.lock().push(Plan { statement, fault, times });
    }
}

fn contains(bytes: &[u8], part: &[u8]) -> bool {
    bytes.windows(part.len()).any(|window| window == part)
}

/// Returns the fault that is planned for the sent bytes. Spelling mistakes are made in them.
fn fault_of(plans: &Mutex<Vec<Plan>>, sent: &mut [u8]) -> Option<ProxyFault> {
    let mut plans = plans.lock();
    let place = |statement: &str| sent.windows(statement.len()).position(|part| part == statement.as_bytes());
    let mut left = plans.iter_mut().filter(|plan| plan.times > 0);
    let (at, plan) = left.find_map(|plan| Some((place(plan.statement)?, plan)))?;
    plan.times -= 1;
    if plan.fault == ProxyFault::Misspell {
        sent[at] = b'?';
    }
    Some(plan.fault)
}

/// A server error message that ends the session.
const PANIC: &[u8] = b"E\0\0\0\x2cSPANIC\0VPANIC\0CXX000\0Mthe disk is gone\0\0";

async fn unless_silent(link: &mut watch::Receiver<Link>) {
    // An error means that the proxy was dropped. Its open connections go on.
    drop(link.wait_for(|link| *link != Link::Silent).await);
}

/// Forwards one connection until an error on either side.
async fn carry(
    mut client: TcpStream,
    cluster: String,
    plans: Arc<Mutex<Vec<Plan>>>,
    mut link: watch::Receiver<Link>,
) {
    let Ok(mut server) = TcpStream::connect(cluster).await else { return };
    let (mut sent, mut answered) = (vec![0; 65_536], vec![0; 65_536]);
    loop {
        tokio::select! {
            read = client.read(&mut sent) => {
                let Ok(length @ 1..) = read else { return };
                unless_silent(&mut link).await;
                let fault = fault_of(&plans, &mut sent[..length]);
                if matches!(fault, Some(ProxyFault::CutBefore)) {
                    return;
                }
                if matches!(fault, Some(ProxyFault::Panic)) {
                    drop(client.write_all(PANIC).await);
                    return;
                }
                if server.write_all(&sent[..length]).await.is_err() {
                    return;
                }
                match fault {
                    None | Some(ProxyFault::Misspell) => {}
                    Some(ProxyFault::TakeNothing) => return std::future::pending().await,
                    Some(_) => {
                        // The server's answer shows that the statement was executed. A COMMIT may
                        // have been sent together with others, so wait for its own answer.
                        let commits = contains(&sent[..length], b"COMMIT\0");
                        while let Ok(length @ 1..) = server.read(&mut answered).await {
                            let answer = &answered[..length];
                            if !commits || contains(answer, b"COMMIT\0") || contains(answer, b"ROLLBACK\0") {
                                break;
                            }
                        }
                        if fault == Some(ProxyFault::PanicAfter) {
                            drop(client.write_all(PANIC).await);
                        }
                        return;
                    }
                }
            }
            read = server.read(&mut answered) => {
                let Ok(length @ 1..) = read else { return };
                unless_silent(&mut link).await;
                if client.write_all(&answered[..length]).await.is_err() {
                    return;
                }
            }
        }
    }
}
