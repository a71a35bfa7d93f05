//! `foretell migrate`: applies pending database migrations.

use std::sync::Arc;

use domain::Clock;
use domain::time::SystemClock;
use store::Store;
use store::audit_log::Actor;
use store::publication::{PublicationName, Published};

use crate::config::ResolvedConfig;
use crate::data_folder;
use crate::database;
use crate::migrate;
use crate::start_error::StartError;

pub async fn run(
    config: &ResolvedConfig,
    actor: Actor,
    publication: Option<PublicationName>,
) -> Result<(), StartError> {
    data_folder::prepare(config)?;
    let store = database::open(config).await?;
    let clock: Arc<dyn Clock> = Arc::<SystemClock>::default();
    let applied = migrate::apply(&store, &clock, actor.clone(), &config.deployment).await?;
    for name in &applied {
        println!("applied {name}");
    }
    if applied.is_empty() {
        println!("the schema is up to date");
    }
    if let Some(name) = publication {
        publish(&store, &clock, actor, name).await?;
    }
    store.close().await;
    Ok(())
}

async fn publish(
    store: &Store,
    clock: &Arc<dyn Clock>,
    actor: Actor,
    name: PublicationName,
) -> Result<(), StartError> {
    let acting = store.acting_as(actor, Arc::clone(clock));
    let Some(Published { is_new, wal_level }) = acting.publish(&name).await? else {
        let message = "a publication needs PostgreSQL: set database-url, or leave out --publication";
        return Err(StartError::Other(message.to_owned()));
    };
    println!("{} publication {name}", if is_new { "created" } else { "updated" });
    if wal_level != "logical" {
        println!(
            "the server's wal_level is {wal_level}: set it to logical and restart the server before you read"
        );
    }
    Ok(())
}
