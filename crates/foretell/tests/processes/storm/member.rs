//! A process of the service that is restarted whenever it ends.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use tokio::process::{Child, Command};

use super::pass;

/// A process at a fixed address.
pub struct Member {
    command: Box<dyn Fn() -> Command + Send + Sync>,
    child: Mutex<Option<Child>>,
    pub base_url: String,
}

impl Member {
    /// Starts the command. `base_url` is the address that it will listen on.
    pub fn start(base_url: String, command: impl Fn() -> Command + Send + Sync + 'static) -> Self {
        let member = Self { command: Box::new(command), child: Mutex::new(None), base_url };
        member.revive();
        member
    }

    /// Restarts the process if it has ended. Without its database, it may exit during its start.
    pub fn revive(&self) {
        let mut child = self.child.lock();
        let ended = child.as_mut().is_none_or(|child| child.try_wait().unwrap().is_some());
        if ended {
            *child = Some((self.command)().spawn().unwrap());
        }
    }

    /// Kills the process, like a power failure.
    pub async fn kill(&self) {
        let child = self.child.lock().take();
        if let Some(mut child) = child {
            // It may already have ended by itself.
            drop(child.kill().await);
        }
    }

    /// Freezes the process.
    pub async fn freeze(&self) {
        self.signal("-STOP").await;
    }

    /// Resumes a frozen process.
    pub async fn thaw(&self) {
        self.signal("-CONT").await;
    }

    async fn signal(&self, signal: &str) {
        let id = self.child.lock().as_ref().and_then(Child::id);
        let Some(id) = id else { return };
        // It may already have ended by itself.
        drop(Command::new("kill").args([signal, &id.to_string()]).status().await);
    }

    /// Waits until the process is ready.
    pub async fn ready(&self) {
        self.answers("/v1/ready").await;
    }

    /// Waits until the process listens.
    pub async fn listens(&self) {
        self.answers("/v1/health").await;
    }

    async fn answers(&self, path: &str) {
        let http = reqwest::Client::builder().no_proxy().timeout(Duration::from_secs(5)).build().unwrap();
        let end = Instant::now() + Duration::from_secs(60);
        let mut last = String::new();
        while Instant::now() < end {
            self.revive();
            match http.get(format!("{}{path}", self.base_url)).send().await {
                Ok(answer) if answer.status() == 200 => return,
                Ok(answer) => last = answer.text().await.unwrap_or_default(),
                Err(error) => last = error.to_string(),
            }
            // An address without a key has 300 requests per minute.
            pass(Duration::from_millis(300)).await;
        }
        panic!("{path} of a process did not answer 200 within a minute: {last}");
    }
}

/// Runs a script of the repository and returns its output.
pub async fn script(name: &str, args: &[&str]) -> String {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../scripts").join(name);
    let output = Command::new(path).args(args).output().await.unwrap();
    assert!(output.status.success(), "{name} {args:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}
