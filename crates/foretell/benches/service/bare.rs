//! The baseline for all reads: plain axum with a prepared response of 2 KB or a requested length,
//! and a webhook receiver that ignores its input. It runs as a second process of this binary.

use std::process::Stdio;

use axum::Router;
use axum::body::Bytes;
use axum::extract::Path;
use axum::http::StatusCode;
use axum::http::header::CONTENT_TYPE;
use axum::routing::{get, post};
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::net::TcpListener;
use tokio::process::{Child, Command};

use crate::process::Process;

const ANSWER_BYTES: usize = 2_048;
/// Maximum length of a requested response.
const MOST_BYTES: usize = 1 << 20;

/// Serves until the process is killed. Prints only its address.
pub async fn serve() {
    let filler = "x".repeat(ANSWER_BYTES - r#"{"data":""}"#.len());
    let answer: &'static str = format!(r#"{{"data":"{filler}"}}"#).leak();
    let handler = move || async move { ([(CONTENT_TYPE, "application/json")], answer) };
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port is free");
    println!("{}", listener.local_addr().expect("a bound address"));
    let many: &'static [u8] = vec![b'x'; MOST_BYTES].leak();
    let of_size = move |Path(bytes): Path<usize>| async move {
        ([(CONTENT_TYPE, "application/json")], Bytes::from_static(&many[..bytes]))
    };
    let routes = Router::new()
        .route("/", get(handler))
        .route("/bytes/{bytes}", get(of_size))
        .route("/hook", post(|_: Bytes| async { StatusCode::OK }));
    axum::serve(listener, routes).await.expect("it serves");
}

/// The baseline server as a process.
#[derive(Debug)]
pub struct Bare {
    child: Child,
    address: String,
}

impl Bare {
    pub async fn start() -> Self {
        let own = std::env::current_exe().expect("this program's path");
        let mut command = Command::new(own);
        command.arg("--bare-axum").stdout(Stdio::piped()).kill_on_drop(true);
        let mut child = command.spawn().expect("this program starts again");
        let stdout = child.stdout.take().expect("a pipe");
        let line = BufReader::new(stdout).lines().next_line().await.expect("it can be read");
        Self { child, address: line.expect("its address") }
    }

    pub fn address(&self) -> &str {
        &self.address
    }

    pub fn process(&self) -> Process {
        Process::of(self.child.id().expect("it runs"))
    }
}
