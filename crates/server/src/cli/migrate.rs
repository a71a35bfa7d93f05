//! `foretell migrate`: the database's schema.

use domain::Clock;
use domain::time::SystemClock;
use store::Store;

use super::make_data_dir;
use crate::config::Config;
use crate::run::StartError;

pub async fn run(config: &Config) -> Result<(), StartError> {
    make_data_dir(config)?;
    let store = Store::open(&config.database_url).await?;
    let applied = store.migrate(SystemClock::default().now()).await?;
    for name in &applied {
        println!("applied {name}");
    }
    if applied.is_empty() {
        println!("the schema is up to date");
    }
    store.close().await;
    Ok(())
}
