//! `foretell serve`: runs the service.

use std::sync::Arc;

use domain::time::SystemClock;

use super::start_logging;
use crate::config::ResolvedConfig;
use crate::data_folder;
use crate::entropy::SystemEntropy;
use crate::rpc::{RpcEndpoints, RpcListen};
use crate::run::{Parts, Running, listen, signalled};
use crate::secrets::Secrets;
use crate::service_file::ServiceFile;
use crate::start_error::StartError;

pub async fn run(config: ResolvedConfig) -> Result<(), StartError> {
    start_logging("info");
    data_folder::prepare(&config)?;
    let entropy = Arc::new(SystemEntropy::default());
    // With external nodes, the secrets belong to the deployment, so they are never generated.
    let secrets = match config.rpc_urls.is_empty() {
        false => Secrets::load(&config.secrets_file)?,
        true => Secrets::load_or_generate(&config.secrets_file, entropy.as_ref(), 1)?,
    };
    let parts = Parts::open(&config, secrets, Arc::new(SystemClock::default()), entropy).await?;
    // Listen after the migrations, so that no client connects to a service that cannot respond yet.
    let (listener, address) = listen(config.listen)?;
    let base_url = format!("http://{address}");
    let state = parts.state(&config, &base_url)?;
    let endpoints = match parts.node {
        Some(_) => Some(RpcEndpoints::bind(&config.data_dir, config.rpc_listen.unwrap_or(RpcListen::Off))?),
        None => None,
    };
    let socket_url = endpoints.as_ref().map_or("", RpcEndpoints::socket_url);
    ServiceFile::new(&parts, &config, &base_url, socket_url).write(&config.data_dir)?;
    if let Some(url) = endpoints.as_ref().and_then(RpcEndpoints::http_url) {
        tracing::info!(%url, "serving the chain's JSON-RPC");
    }
    let rpc = endpoints.zip(parts.node.clone()).map(|(endpoints, node)| endpoints.serve(node, false));
    let running = Running::start(&parts, state, listener, axum::Router::new(), config.first_block)?;
    tracing::info!(address = %address, chain.id = parts.ctx.chain.chain_id(), "foretell serves");
    signalled().await;
    tracing::info!("stopping");
    running.stop().await;
    if let Some(rpc) = rpc {
        rpc.stop().await;
    }
    Ok(())
}
