//! `foretell serve`: the service.

use std::sync::Arc;

use domain::time::SystemClock;

use super::{make_data_dir, start_logging};
use crate::config::Config;
use crate::entropy::SystemEntropy;
use crate::run::{Parts, Running, StartError, listen, signalled};
use crate::secrets::Secrets;
use crate::service_file::ServiceFile;

pub async fn run(config: Config) -> Result<(), StartError> {
    start_logging("info");
    make_data_dir(&config)?;
    let entropy = Arc::new(SystemEntropy::default());
    // Beside a node of one's own the secrets are part of the deployment and are never made up.
    let secrets = match config.rpc_urls.is_empty() {
        false => Secrets::load(&config.secrets_file)?,
        true => Secrets::load_or_generate(&config.secrets_file, entropy.as_ref(), 1)?,
    };
    let parts = Parts::open(&config, secrets, Arc::new(SystemClock::default()), entropy).await?;
    let (listener, address) = listen(config.listen)?;
    let base_url = format!("http://{address}");
    let beside =
        parts.node.as_ref().map_or_else(axum::Router::new, |node| crate::dev::rpc_route(Arc::clone(node)));
    ServiceFile::new(&parts, &config, &base_url).write(&config.data_dir)?;
    let running =
        Running::start(&parts, parts.state(&config, &base_url)?, listener, beside, config.first_block)?;
    tracing::info!(address = %address, chain.id = parts.ctx.chain.chain_id(), "foretell serves");
    signalled().await;
    tracing::info!("stopping");
    running.stop().await;
    Ok(())
}
