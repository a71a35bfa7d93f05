//! `foretell serve`: runs the service.

use std::sync::Arc;
use std::time::Duration;

use domain::time::SystemClock;
use http_kit::TrustedProxies;

use crate::config::ResolvedConfig;
use crate::data_folder;
use crate::entropy::SystemEntropy;
use crate::ops::{Ops, OpsEndpoint};
use crate::private_hosts::PrivateHosts;
use crate::process_roles::ProcessRole;
use crate::reload::{ConfigSource, Reload};
use crate::rpc::{OptionalListen, RpcEndpoints};
use crate::run::{Parts, PublicEndpoint, Running, listen};
use crate::secrets::Secrets;
use crate::service_file::ServiceFile;
use crate::start_checks;
use crate::start_error::StartError;
use crate::storage_files;

/// The log level if none is configured.
const LOG_LEVEL: &str = "info";

pub async fn run(config: ResolvedConfig, source: ConfigSource) -> Result<(), StartError> {
    let log_level = crate::logging::start(config.log_level.as_deref().unwrap_or(LOG_LEVEL));
    config.check_roles()?;
    data_folder::prepare(&config)?;
    let entropy = Arc::new(SystemEntropy::default());
    // With external nodes, the secrets belong to the deployment, so they are never generated.
    let secrets = match config.rpc_urls.is_empty() {
        false => Secrets::load_for(&config.secrets_file, &config.roles)?,
        true => {
            storage_files::require_secrets(&config)?;
            Secrets::load_or_generate(&config.secrets_file, entropy.as_ref(), 1)?
        }
    };
    let mut parts = Parts::open(&config, secrets, Arc::new(SystemClock::default()), entropy).await?;
    start_checks::log(&start_checks::run(Some(&parts.ctx), &config).await)?;
    parts.limit_connections(start_checks::fitting_connections(&parts.ctx, &config));
    // Listen after the migrations, so that no client connects to a service that cannot respond yet.
    let endpoint = match config.roles.has(ProcessRole::Api) {
        true => Some(public_endpoint(&parts, &config)?),
        false => None,
    };
    let (base_url, endpoint) = endpoint.unzip();
    let reload = Reload {
        source,
        log_level: log_level.clone(),
        trusted_proxies: endpoint
            .as_ref()
            .map_or_else(TrustedProxies::default, |endpoint| endpoint.state.trusted_proxies.clone()),
        sealing_keys: parts.ctx.config.sealing_keys.clone(),
    };
    let reload = tokio::spawn(reload.on_hangup(LOG_LEVEL));
    let endpoints = match parts.node {
        Some(_) => {
            Some(RpcEndpoints::bind(&config.data_dir, config.rpc_listen.unwrap_or(OptionalListen::Off))?)
        }
        None => None,
    };
    let socket_url = endpoints.as_ref().map_or("", RpcEndpoints::socket_url);
    let ops = OpsEndpoint::bind(&config)?;
    let ops_url = ops.as_ref().map(OpsEndpoint::url);
    ServiceFile::new(&parts, &config, base_url.clone(), socket_url)
        .at_ops(ops_url)
        .write(&config.data_dir)?;
    if let Some(url) = endpoints.as_ref().and_then(RpcEndpoints::http_url) {
        tracing::info!(%url, "serving the chain's JSON-RPC");
    }
    let hosts = PrivateHosts::new(&config.private_hosts);
    let rpc = endpoints
        .zip(parts.node.clone())
        .map(|(endpoints, node)| endpoints.serve(node, false, hosts.clone()));
    let traces = parts.export_traces(&config)?;
    let mut running = Running::start(&parts, endpoint, config.first_block)?;
    let (roles, url) = (config.roles.to_string(), base_url.unwrap_or_default());
    tracing::info!(roles, url, chain.id = parts.ctx.chain.chain_id(), "foretell serves");
    // Only a process that gets requests must wait until load balancers send it none.
    let shutdown_delay =
        if config.roles.has(ProcessRole::Api) { config.shutdown_delay } else { Duration::ZERO };
    let ops = ops.map(|endpoint| {
        endpoint.serve(Ops {
            ctx: parts.ctx.clone(),
            roles: config.roles.clone(),
            draining: running.draining(),
            shutdown_delay,
            log_level,
            hosts,
        })
    });
    running.serve_until_stopped(shutdown_delay).await;
    running.stop().await;
    // After the last requests and ticks, whose spans it sends.
    if let Some(traces) = traces {
        traces.stop().await;
    }
    reload.abort();
    if let Some(ops) = ops {
        ops.stop().await;
    }
    if let Some(rpc) = rpc {
        rpc.stop().await;
    }
    Ok(())
}

/// Binds the public listener. Returns its URL too.
fn public_endpoint(parts: &Parts, config: &ResolvedConfig) -> Result<(String, PublicEndpoint), StartError> {
    let (listener, address) = listen(config.listen)?;
    let base_url = format!("http://{address}");
    let state = parts.state(config, &base_url)?;
    Ok((base_url, PublicEndpoint { state, listener }))
}
