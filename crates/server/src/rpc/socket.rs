//! JSON-RPC over a Unix socket that only its owner can open: one request or batch per line, and its answer as a line.

use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use chain::embedded::{Access, EmbeddedNode};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;

use crate::run::StartError;

/// The socket's name in the data folder.
const NAME: &str = "rpc.sock";
/// Connections at once.
const CONNECTIONS: usize = 16;
/// The longest line.
const MAX_LINE_BYTES: u64 = 4 << 20;
/// How long a client may take for a request, and for reading its answer.
const TIMEOUT: Duration = Duration::from_secs(30);
/// How long to wait after the listener failed.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// Binds the socket and returns its URL. A path that the system finds too long only costs the operator's commands.
pub fn bind(data_dir: &Path) -> Result<(Option<UnixListener>, String), StartError> {
    let fail = |source| StartError::File { path: data_dir.join(NAME).display().to_string(), source };
    let path = data_dir.canonicalize().map_err(fail)?.join(NAME);
    match std::fs::remove_file(&path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(fail(error)),
        _ => {}
    }
    let url = chain::socket_url(&path);
    match UnixListener::bind(&path) {
        Ok(listener) => {
            std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600)).map_err(fail)?;
            Ok((Some(listener), url))
        }
        Err(error) if error.kind() == io::ErrorKind::InvalidInput => {
            tracing::warn!(path = %path.display(), %error, "no socket for `foretell admin`: use a shorter data folder");
            Ok((None, url))
        }
        Err(error) => Err(fail(error)),
    }
}

/// Serves until `stop` is cancelled.
pub async fn serve(listener: UnixListener, node: Arc<EmbeddedNode>, stop: CancellationToken) {
    let open = Arc::new(Semaphore::new(CONNECTIONS));
    let accept = async {
        while let Ok(permit) = Arc::clone(&open).acquire_owned().await {
            let Ok((stream, _)) = listener.accept().await else {
                // Out of descriptors, which only closing connections can cure.
                drop(tokio::time::timeout(ACCEPT_PAUSE, stop.cancelled()).await);
                continue;
            };
            let (node, stop) = (Arc::clone(&node), stop.clone());
            tokio::spawn(async move {
                tokio::select! {
                    served = converse(stream, node) => drop(served),
                    () = stop.cancelled() => {}
                }
                drop(permit);
            });
        }
    };
    tokio::select! {
        () = accept => {}
        () = stop.cancelled() => {}
    }
}

async fn converse(mut stream: UnixStream, node: Arc<EmbeddedNode>) -> io::Result<()> {
    let (reader, mut writer) = stream.split();
    let mut reader = BufReader::new(reader);
    loop {
        let mut line = Vec::new();
        let mut limited = (&mut reader).take(MAX_LINE_BYTES);
        let read = tokio::time::timeout(TIMEOUT, limited.read_until(b'\n', &mut line)).await??;
        if read == 0 {
            return Ok(());
        }
        let node = Arc::clone(&node);
        // A send waits for its durable block: not on a thread that serves others.
        let answer = tokio::task::spawn_blocking(move || node.handle_http(&line, &Access::OPERATOR)).await;
        let mut answer = answer.map_err(io::Error::other)?;
        answer.push(b'\n');
        tokio::time::timeout(TIMEOUT, writer.write_all(&answer)).await??;
    }
}
