//! A proxy in front of the tests' Redis that can fail.

use std::sync::atomic::{AtomicU32, Ordering};

use app::limits::Limits;
use tokio::io::copy_bidirectional;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;

/// The environment variable with the URL of the tests' Redis.
pub const REDIS_URL: &str = "FORETELL_TEST_REDIS_URL";

static NEXT: AtomicU32 = AtomicU32::new(0);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Way {
    Open,
    Cut,
    Silent,
}

/// The tests' Redis behind a proxy. Each value has its own key prefix.
#[derive(Debug)]
pub struct TestRedis {
    prefix: String,
    url: String,
    way: watch::Sender<Way>,
}

impl TestRedis {
    /// Connects to the Redis at `FORETELL_TEST_REDIS_URL`, such as `redis://127.0.0.1:6379`.
    /// Returns `None` if the variable is not set.
    pub async fn start() -> Option<Self> {
        let Some(url) = std::env::var(REDIS_URL).ok().filter(|url| !url.is_empty()) else {
            eprintln!("{REDIS_URL} is not set: not run on Redis");
            return None;
        };
        let target = url.trim_start_matches("redis://").trim_end_matches('/').to_owned();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let here = listener.local_addr().unwrap();
        let (way, ways) = watch::channel(Way::Open);
        tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                tokio::spawn(carry(client, target.clone(), ways.clone()));
            }
        });
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let prefix = format!("foretell-test-{}-{number}", std::process::id());
        Some(Self { prefix, url: format!("redis://{here}"), way })
    }

    /// Returns the limiters of another process.
    pub fn limits(&self) -> Limits {
        Limits::redis(&self.url, &self.prefix).unwrap()
    }

    /// Returns limiters that share nothing with those of [`limits`](Self::limits).
    pub fn limits_below(&self, name: &str) -> Limits {
        Limits::redis(&self.url, &format!("{}:{name}", self.prefix)).unwrap()
    }

    /// Closes every connection and accepts no new one, like a stopped Redis.
    pub fn cut(&self) {
        self.way.send_replace(Way::Cut);
    }

    /// Accepts requests without replying, like a hung Redis.
    pub fn silence(&self) {
        self.way.send_replace(Way::Silent);
    }

    /// Restores normal operation.
    pub fn heal(&self) {
        self.way.send_replace(Way::Open);
    }
}

/// Forwards one connection until the mode changes.
async fn carry(mut client: TcpStream, target: String, mut ways: watch::Receiver<Way>) {
    let way = *ways.borrow_and_update();
    if way == Way::Open {
        let mut redis = TcpStream::connect(target).await.unwrap();
        tokio::select! {
            // The client or Redis closed the connection.
            _ = copy_bidirectional(&mut client, &mut redis) => return,
            _ = ways.changed() => {}
        }
    }
    if *ways.borrow_and_update() == Way::Silent {
        // Keep the connection open until the mode changes.
        drop(ways.changed().await);
    }
}
