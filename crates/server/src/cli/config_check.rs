//! `foretell config check`: every setting as it will be used, and whether what it leads to answers.

use chain::Chain;
use store::Store;

use crate::config::Config;
use crate::run::{StartError, limits, read_contracts};
use crate::secrets::Secrets;

pub async fn run(config: &Config) -> Result<(), StartError> {
    println!("data folder    {}", config.data_dir.display());
    println!("listen         {}", config.listen);
    println!("environment    {:?}", config.environment);
    println!("secrets file   {}", config.secrets_file.display());
    println!(
        "confirmations  {}",
        config.confirmations.map_or("by chain".to_owned(), |depth| depth.to_string())
    );
    println!(
        "confirm within {}",
        config.confirmation_window_s.map_or("5 minutes".to_owned(), |window_s| format!("{window_s} s"))
    );
    println!("redemptions    {}", config.redemptions.as_str());
    let mut wrong = 0;
    wrong += report("secrets", check_secrets(config));
    wrong += report("database", check_database(config).await);
    wrong += report("chain", check_chain(config).await);
    wrong += report("rate limiter", check_limits(config).await);
    match wrong {
        0 => Ok(()),
        _ => Err(StartError::Other(format!("{wrong} of 4 checks failed"))),
    }
}

fn report(what: &str, found: Result<String, StartError>) -> u32 {
    match found {
        Ok(found) => {
            println!("{what:<14} ok: {found}");
            0
        }
        Err(error) => {
            println!("{what:<14} FAILED: {error}");
            1
        }
    }
}

fn check_secrets(config: &Config) -> Result<String, StartError> {
    if config.rpc_url.is_none() && !config.secrets_file.exists() {
        return Ok("to be made at the first start".to_owned());
    }
    let secrets = Secrets::load(&config.secrets_file)?;
    secrets.key_pepper()?;
    secrets.sealing_keys()?;
    secrets.cursor_key()?;
    Ok(format!("{} executors", secrets.executors()?.len()))
}

async fn check_database(config: &Config) -> Result<String, StartError> {
    let path = config.database_url.strip_prefix("sqlite:").map(std::path::Path::new);
    if path.is_some_and(|path| !path.exists()) {
        return Ok("SQLite, to be made at the first start".to_owned());
    }
    let store = Store::open(&config.database_url).await?;
    store.ping().await?;
    let engine = format!("{:?}", store.engine());
    store.close().await;
    Ok(engine)
}

async fn check_chain(config: &Config) -> Result<String, StartError> {
    let Some(url) = &config.rpc_url else { return Ok("embedded".to_owned()) };
    let chain = Chain::connect(chain::http_provider(url)?, read_contracts(&config.contracts)?).await?;
    chain::deploy::verify(&chain).await?;
    let head = chain.head().await?;
    Ok(format!("chain {} at block {}", chain.chain_id(), head.number))
}

async fn check_limits(config: &Config) -> Result<String, StartError> {
    let limits = limits(config)?;
    limits.ping().await.map_err(|error| StartError::Other(error.to_string()))?;
    Ok(format!("in {}", limits.place()))
}
