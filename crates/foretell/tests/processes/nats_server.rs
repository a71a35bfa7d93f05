//! A NATS server with JetStream for a test.

use std::process::Stdio;

use async_nats::jetstream::message::StreamMessage;
use async_nats::jetstream::{self, Context};
use store::testing::TestFolder;
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::{Child, Command};

/// A server that can be killed and started again, on the same port and with the same streams.
pub struct NatsServer {
    path: String,
    folder: TestFolder,
    port: u16,
    process: Option<Child>,
}

impl NatsServer {
    /// Starts the binary that `FORETELL_NATS_SERVER` names, or returns `None` if it is not set.
    pub async fn start() -> Option<Self> {
        let path = std::env::var("FORETELL_NATS_SERVER").ok().filter(|path| !path.is_empty());
        let Some(path) = path else {
            eprintln!("FORETELL_NATS_SERVER is not set: not run with NATS");
            return None;
        };
        let mut server = Self { path, folder: TestFolder::create(), port: 0, process: None };
        server.start_again().await;
        Some(server)
    }

    pub async fn start_again(&mut self) {
        // -1 is any free port.
        let port = if self.port == 0 { "-1".to_owned() } else { self.port.to_string() };
        let mut command = Command::new(&self.path);
        command.args(["--addr", "127.0.0.1", "--port", &port, "--jetstream", "--store_dir"]);
        command.arg(self.folder.path()).stderr(Stdio::piped()).kill_on_drop(true);
        let mut process = command.spawn().unwrap();
        let mut lines = BufReader::new(process.stderr.take().unwrap()).lines();
        while let Some(line) = lines.next_line().await.unwrap() {
            if let Some((_, address)) = line.split_once("Listening for client connections on ") {
                self.port = address.rsplit(':').next().unwrap().trim().parse().unwrap();
            }
            if line.contains("Server is ready") {
                // The server must not wait for a reader of its log.
                tokio::spawn(async move { while let Ok(Some(_)) = lines.next_line().await {} });
                self.process = Some(process);
                return;
            }
        }
        panic!("the NATS server ended by itself");
    }

    /// Kills the server, like a power failure of its process.
    pub async fn kill(&mut self) {
        self.process.take().unwrap().kill().await.unwrap();
    }

    pub fn url(&self) -> String {
        format!("nats://127.0.0.1:{}", self.port)
    }

    pub async fn jetstream(&self) -> Context {
        jetstream::new(async_nats::connect(self.url()).await.unwrap())
    }

    /// Returns all messages of a stream, in its order.
    pub async fn messages(&self, stream: &str) -> Vec<StreamMessage> {
        let stream = self.jetstream().await.get_stream(stream).await.unwrap();
        let state = &stream.cached_info().state;
        let mut messages = Vec::new();
        for sequence in state.first_sequence..=state.last_sequence {
            messages.push(stream.get_raw_message(sequence).await.unwrap());
        }
        messages
    }
}
