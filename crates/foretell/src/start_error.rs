//! The error that ends a start or a command.

/// An error that prevents the service or a command from starting.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// A file of the data folder could not be read or written.
    #[error("{path}: {source}")]
    File { path: String, source: std::io::Error },
    #[error(transparent)]
    Secrets(#[from] crate::secrets::SecretsError),
    #[error(transparent)]
    Config(#[from] crate::config::ConfigError),
    #[error("database: {0}")]
    Store(#[from] store::StoreError),
    #[error("embedded chain: {0}")]
    Embedded(#[from] embedded_chain::EmbeddedError),
    /// The chain or its contracts failed.
    #[error("chain: {0}")]
    Chain(#[from] chain::ChainError),
    /// A use case that a command runs failed.
    #[error("{0}")]
    App(#[from] app::AppError),
    #[error(transparent)]
    RelyingParty(#[from] app::passkeys::RelyingPartyError),
    /// The problems that prevent the import of a catalog.
    #[error("nothing was imported:{}", .0.iter().map(|problem| format!("\n  {problem}")).collect::<String>())]
    Import(Vec<app::import::ImportProblem>),
    /// The current state of the resource does not allow the command.
    #[error("{0}")]
    InvalidState(String),
    /// The operator did not confirm an irreversible action.
    #[error("{0}")]
    Unconfirmed(String),
    /// Any other error, as a message for the operator.
    #[error("{0}")]
    Other(String),
}

impl StartError {
    /// Returns the error as JSON, for scripts.
    pub fn to_json(&self) -> serde_json::Value {
        let message = match self {
            Self::App(error) => error.detail.clone(),
            other => other.to_string(),
        };
        let mut error = serde_json::json!({ "code": self.code(), "message": message });
        if let Self::Import(problems) = self {
            let problem = |of: &app::import::ImportProblem| {
                let mut problem = serde_json::json!({ "path": of.path, "detail": of.detail });
                if let Some(line) = of.line {
                    problem["line"] = line.into();
                }
                problem
            };
            error["problems"] = problems.iter().map(problem).collect();
        }
        serde_json::json!({ "error": error })
    }

    /// Returns a machine-readable error code.
    pub fn code(&self) -> &'static str {
        match self {
            Self::App(error) => error.code.as_str(),
            Self::Chain(_) | Self::Embedded(_) => "CHAIN",
            Self::Store(_) => "DATABASE",
            Self::Config(_) | Self::Secrets(_) | Self::File { .. } | Self::RelyingParty(_) => "CONFIGURATION",
            Self::Import(_) => "IMPORT_REFUSED",
            Self::InvalidState(_) => "INVALID_STATE",
            Self::Unconfirmed(_) => "NOT_CONFIRMED",
            Self::Other(_) => "COMMAND",
        }
    }

    /// Returns the exit code of a command that failed with this error. Code 2 is reserved by clap
    /// for arguments that cannot be parsed.
    pub const fn exit_code(&self) -> u8 {
        match self {
            Self::InvalidState(_) => 3,
            Self::Unconfirmed(_) => 4,
            _ => 1,
        }
    }
}
