//! A way to the tests' Redis that can break.

use std::sync::atomic::{AtomicU32, Ordering};

use app::limits::Limits;
use tokio::io::copy_bidirectional;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;

/// The variable that names the tests' Redis.
pub const REDIS_URL: &str = "FORETELL_TEST_REDIS_URL";

static NEXT: AtomicU32 = AtomicU32::new(0);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Way {
    Open,
    Cut,
    Silent,
}

/// The tests' Redis, as a client sees it whose network can fail. Its keys are this value's own.
#[derive(Debug)]
pub struct TestRedis {
    prefix: String,
    url: String,
    way: watch::Sender<Way>,
}

impl TestRedis {
    /// The Redis that `FORETELL_TEST_REDIS_URL` names, such as `redis://127.0.0.1:6379`; `None` where it names none.
    ///
    /// # Panics
    /// Where no port can be had.
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

    /// The limiters of one more process.
    ///
    /// # Panics
    /// Never for this URL.
    pub fn limits(&self) -> Limits {
        Limits::redis(&self.url, &self.prefix).unwrap()
    }

    /// Ends every connection and takes no new one, as a Redis that is stopped.
    pub fn cut(&self) {
        self.way.send_replace(Way::Cut);
    }

    /// Takes what is sent and answers nothing, as a Redis that hangs.
    pub fn silence(&self) {
        self.way.send_replace(Way::Silent);
    }

    /// Everything is well again.
    pub fn heal(&self) {
        self.way.send_replace(Way::Open);
    }
}

/// Carries one connection while the way is as it was when the connection began.
async fn carry(mut client: TcpStream, target: String, mut ways: watch::Receiver<Way>) {
    let way = *ways.borrow_and_update();
    if way == Way::Open {
        let mut redis = TcpStream::connect(target).await.unwrap();
        tokio::select! {
            // It may end in any way.
            _ = copy_bidirectional(&mut client, &mut redis) => return,
            _ = ways.changed() => {}
        }
    }
    if *ways.borrow_and_update() == Way::Silent {
        // Open until something changes.
        drop(ways.changed().await);
    }
}
