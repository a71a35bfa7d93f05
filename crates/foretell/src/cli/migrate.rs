//! `foretell migrate`: applies pending database migrations.

use std::sync::Arc;

use domain::Clock;
use domain::time::SystemClock;
use secrecy::ExposeSecret;
use store::Store;
use store::audit_log::Actor;

use crate::config::ResolvedConfig;
use crate::data_folder;
use crate::migrate;
use crate::start_error::StartError;

pub async fn run(config: &ResolvedConfig, actor: Actor) -> Result<(), StartError> {
    data_folder::prepare(config)?;
    let store = Store::open(config.database_url.expose_secret()).await?;
    let clock: Arc<dyn Clock> = Arc::<SystemClock>::default();
    let applied = migrate::apply(&store, &clock, actor, &config.data_dir).await?;
    for name in &applied {
        println!("applied {name}");
    }
    if applied.is_empty() {
        println!("the schema is up to date");
    }
    store.close().await;
    Ok(())
}
