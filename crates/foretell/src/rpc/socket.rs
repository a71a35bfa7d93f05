//! JSON-RPC over a Unix socket that only its owner can open. Each request or batch is one line, and
//! so is its response.

use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use embedded_chain::{Access, EmbeddedNode};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;

use crate::start_error::StartError;

/// Name of the socket in the data folder.
const NAME: &str = "rpc.sock";
/// Maximum number of concurrent connections.
const CONNECTIONS: usize = 16;
/// Maximum length of a line.
const MAX_LINE_BYTES: u64 = 4 << 20;
/// Maximum time for a client to send a request and to read its response.
const TIMEOUT: Duration = Duration::from_secs(30);
/// Pause after a failed accept.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// Binds the socket and returns its URL. If the system rejects the path as too long, the service
/// starts without a socket and only the operator's commands are unavailable.
pub fn bind(data_dir: &Path) -> Result<(Option<UnixListener>, String), StartError> {
    let fail = |source| StartError::File { path: data_dir.join(NAME).display().to_string(), source };
    let path = data_dir.canonicalize().map_err(fail)?.join(NAME);
    // Remove the socket of an earlier run: binding to an existing path fails.
    match std::fs::remove_file(&path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(fail(error)),
        _ => {}
    }
    let url = chain::socket_url(&path);
    match UnixListener::bind(&path) {
        Ok(listener) => {
            // The folder is private too, so no other user can connect before this call.
            std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600)).map_err(fail)?;
            Ok((Some(listener), url))
        }
        Err(error) if error.kind() == io::ErrorKind::InvalidInput => {
            tracing::warn!(path = %path.display(), %error, "could not open the socket for `foretell admin`: use a data folder with a shorter path");
            Ok((None, url))
        }
        Err(error) => Err(fail(error)),
    }
}

/// Serves JSON-RPC until `stop` is cancelled.
pub async fn serve(listener: UnixListener, node: Arc<EmbeddedNode>, stop: CancellationToken) {
    let open = Arc::new(Semaphore::new(CONNECTIONS));
    let accept = async {
        while let Ok(permit) = Arc::clone(&open).acquire_owned().await {
            let Ok((stream, _)) = listener.accept().await else {
                // Usually out of file descriptors. Retrying at once would spin until a connection
                // closes.
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
        // Without a limit, a line without an end would use all memory.
        let mut limited = (&mut reader).take(MAX_LINE_BYTES);
        let read = tokio::time::timeout(TIMEOUT, limited.read_until(b'\n', &mut line)).await??;
        if read == 0 {
            return Ok(());
        }
        let node = Arc::clone(&node);
        // Sending a transaction blocks until its block is durable, so it must not block an async
        // worker thread.
        let answer = tokio::task::spawn_blocking(move || node.handle_http(&line, &Access::OPERATOR)).await;
        let mut answer = answer.map_err(io::Error::other)?;
        answer.push(b'\n');
        tokio::time::timeout(TIMEOUT, writer.write_all(&answer)).await??;
    }
}
