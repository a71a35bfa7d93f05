//! A process of the service that comes back whenever it ends.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use tokio::process::{Child, Command};

use super::pass;

/// One process at a fixed address.
pub struct Member {
    command: Box<dyn Fn() -> Command + Send + Sync>,
    child: Mutex<Option<Child>>,
    /// Where it listens.
    pub base_url: String,
}

impl Member {
    /// Starts the command; `base_url` is where it will listen.
    pub fn start(base_url: String, command: impl Fn() -> Command + Send + Sync + 'static) -> Self {
        let member = Self { command: Box::new(command), child: Mutex::new(None), base_url };
        member.revive();
        member
    }

    /// Starts the process again if it has ended: without its database it may give up at its start.
    pub fn revive(&self) {
        let mut child = self.child.lock();
        let ended = child.as_mut().is_none_or(|child| child.try_wait().unwrap().is_some());
        if ended {
            *child = Some((self.command)().spawn().unwrap());
        }
    }

    /// Ends the process as a power cut would.
    pub async fn kill(&self) {
        let child = self.child.lock().take();
        if let Some(mut child) = child {
            // It may have ended by itself.
            drop(child.kill().await);
        }
    }

    /// Stops the process where it stands.
    pub async fn freeze(&self) {
        self.signal("-STOP").await;
    }

    /// Lets a frozen process go on.
    pub async fn thaw(&self) {
        self.signal("-CONT").await;
    }

    async fn signal(&self, signal: &str) {
        let id = self.child.lock().as_ref().and_then(Child::id);
        let Some(id) = id else { return };
        // It may have ended by itself.
        drop(Command::new("kill").args([signal, &id.to_string()]).status().await);
    }

    /// Waits until the process is ready.
    pub async fn ready(&self) {
        let end = Instant::now() + Duration::from_secs(60);
        assert!(self.answers("/v1/ready", end).await, "a process is not ready after a minute");
    }

    /// Waits until the process listens, at most until `end`.
    pub async fn listens(&self, end: Instant) {
        // The storm may end first.
        let _: bool = self.answers("/v1/health", end).await;
    }

    async fn answers(&self, path: &str, end: Instant) -> bool {
        let http = reqwest::Client::builder().no_proxy().timeout(Duration::from_secs(5)).build().unwrap();
        while Instant::now() < end {
            self.revive();
            let answer = http.get(format!("{}{path}", self.base_url)).send().await;
            if answer.is_ok_and(|answer| answer.status() == 200) {
                return true;
            }
            // Without a key an address has 300 requests a minute.
            pass(Duration::from_millis(300)).await;
        }
        false
    }
}

/// A script of the repository.
pub async fn script(name: &str, args: &[&str]) -> String {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../scripts").join(name);
    let output = Command::new(path).args(args).output().await.unwrap();
    assert!(output.status.success(), "{name} {args:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}
