//! `foretell app`: the web application, seen from outside.

use clap::Subcommand;
use reqwest::{Client, Response};
use web::own_files;

use crate::start_error::StartError;

#[derive(Debug, Subcommand)]
pub enum AppCommand {
    /// Compare a site's pages and files with those of this program
    ///
    /// A passkey cannot display what it signs: the site's scripts describe it. This command checks that
    /// a site serves the scripts of this version, unchanged. It fails if it finds a difference.
    Verify {
        /// The address of the site, such as <https://foretell.example>
        url: String,
    },
}

pub async fn run(command: AppCommand) -> Result<(), StartError> {
    let AppCommand::Verify { url } = command;
    let base = url.trim_end_matches('/');
    let client = Client::builder().redirect(reqwest::redirect::Policy::none()).no_proxy().build();
    let client = client.map_err(|error| StartError::Other(error.to_string()))?;
    let mut faults = Vec::new();
    for path in own_files::PAGES {
        let page = get(&client, base, path).await?;
        let headers = page.headers().clone();
        let found = match text(page).await {
            Ok(html) => own_files::faults_of(&headers, &html),
            Err(error) => vec![error],
        };
        faults.extend(found.into_iter().map(|fault| format!("{path}: {fault}")));
    }
    let mut count = 0;
    for (path, bytes) in own_files::files() {
        count += 1;
        let fault = match text(get(&client, base, &path).await?).await {
            Ok(served) if served.as_bytes() == bytes => continue,
            Ok(_) => "other bytes".to_owned(),
            Err(error) => error,
        };
        faults.push(format!("{path}: {fault}"));
    }
    let version = env!("CARGO_PKG_VERSION");
    if faults.is_empty() {
        println!("{base} serves the {count} files of foretell {version}, unchanged.");
        return Ok(());
    }
    let list: String = faults.iter().map(|fault| format!("\n  {fault}")).collect();
    Err(StartError::Other(format!("{base} differs from foretell {version}:{list}")))
}

async fn get(client: &Client, base: &str, path: &str) -> Result<Response, StartError> {
    let sent = client.get(format!("{base}{path}")).send().await;
    sent.map_err(|error| StartError::Other(error.to_string()))
}

/// Returns the body of a success, or why there is none.
async fn text(response: Response) -> Result<String, String> {
    if response.status() != 200 {
        return Err(format!("HTTP {}", response.status().as_u16()));
    }
    response.text().await.map_err(|error| error.to_string())
}
