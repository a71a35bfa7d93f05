//! stub
#[derive(Debug, clap::Args)] pub struct AdminArgs { #[arg(long)] pub json: bool }
pub async fn run(_: AdminArgs, _: crate::config::Config) -> Result<(), crate::run::StartError> { Ok(()) }
