//! `foretell admin key`.

use app::keys::{IssueKey, issue};
use app::owner_acts::OwnerActRequest;
use clap::{Args, Subcommand};
use domain::ErrorCode;
use domain::Usdc;
use domain::ids::{KeyId, UserId};
use domain::key::{IpAllowlist, LimitOverrides, Scope, Scopes, Tier};
use domain::version::VERSIONS;
use store::keys::Key;

use super::consent::{ConsentArgs, WithoutTerminal};
use super::ctx::AdminCtx;
use super::delegation::{self, WaitArgs};
use super::output::{CommandOutput, OutputRecord};
use super::owner_batch::authorise;
use super::subject::{self, Subject};
use super::values::{BadValue, When, usdc_text};
use super::{explain, missing, refuse, user};
use crate::start_error::StartError;

/// Commands for keys.
#[derive(Debug, Subcommand)]
pub enum KeyCommand {
    /// Issue a key. The key and its webhook secret are printed once and cannot be shown again
    Issue(Box<IssueArgs>),
    /// List a user's keys, including revoked ones
    List {
        /// The user
        #[arg(long, value_name = "ID")]
        user: UserId,
    },
    /// List a key's failed authentications of the last 90 days, newest first
    Audit {
        #[command(flatten)]
        key: Subject<subject::Key>,
        /// The maximum number of rows
        #[arg(long, default_value_t = 100, value_parser = clap::value_parser!(u32).range(1..=1000))]
        limit: u32,
    },
    /// Show a key and the last change of its delegation on chain
    Show {
        #[command(flatten)]
        key: Subject<subject::Key>,
    },
    /// Revoke a key. It is rejected within a second, and the running service ends its delegation on
    /// chain
    Revoke {
        #[command(flatten)]
        key: Subject<subject::Key>,
        #[command(flatten)]
        wait: WaitArgs,
        #[command(flatten)]
        consent: ConsentArgs,
    },
    /// Set or remove a key's webhook URL
    #[command(group(clap::ArgGroup::new("where").required(true)))]
    Webhook {
        #[command(flatten)]
        key: Subject<subject::Key>,
        /// The webhook URL
        #[arg(long, value_name = "URL", group = "where")]
        url: Option<String>,
        /// Remove the webhook URL
        #[arg(long, group = "where")]
        none: bool,
    },
    /// Mark a key as an agent's: only the account's owner confirms its large trades. The mark stays
    Agent {
        #[command(flatten)]
        key: Subject<subject::Key>,
    },
    /// Resume trading with a key that its holder has paused
    Resume {
        #[command(flatten)]
        key: Subject<subject::Key>,
    },
}

/// The properties of a new key.
#[derive(Debug, Args)]
pub struct IssueArgs {
    /// The user that owns the key
    #[arg(long, value_name = "ID")]
    user: UserId,
    /// free, developer, enterprise or mm
    #[arg(long)]
    tier: Tier,
    /// A label for the key
    #[arg(long)]
    name: String,
    /// Comma-separated scopes, or all [default: the tier's scopes]
    #[arg(long)]
    scopes: Option<Scopes>,
    /// When the key expires: an instant such as 2027-01-01T00:00:00Z, or a time from now such as
    /// 30d
    #[arg(long)]
    expires: Option<When>,
    /// Comma-separated IP addresses and CIDR ranges from which the key may be used [default: any
    /// address]
    #[arg(long, value_name = "LIST")]
    allow_ip: Option<IpAllowlist>,
    /// The URL that receives the key's events
    #[arg(long, value_name = "URL")]
    webhook_url: Option<String>,
    /// USDC that the key may spend on buys in any 24 hours. Like the other limits, only for
    /// enterprise and mm
    #[arg(long, value_name = "USDC")]
    daily_spend_limit: Option<Usdc>,
    /// The maximum USDC of one trade
    #[arg(long, value_name = "USDC")]
    per_trade_limit: Option<Usdc>,
    /// USDC from which on a trade is held for confirmation
    #[arg(long, value_name = "USDC")]
    high_value_threshold: Option<Usdc>,
    /// The maximum number of requests per minute
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    requests_per_minute: Option<u32>,
    /// The API version for requests that name none [default: the current version]
    #[arg(long, value_name = "DATE", value_parser = api_version)]
    api_version: Option<String>,
    /// The key is for an agent: only the account's owner confirms its large trades, in the web
    /// application
    #[arg(long)]
    agent: bool,
}

/// Parses a version that this service supports.
fn api_version(name: &str) -> Result<String, BadValue> {
    let served = || VERSIONS.served().collect::<Vec<_>>().join(", ");
    VERSIONS.find(name).map(str::to_owned).map_err(|_| BadValue::new(format!("served are {}", served())))
}

pub async fn run(command: KeyCommand, admin: &AdminCtx) -> Result<CommandOutput, StartError> {
    match command {
        KeyCommand::Issue(args) => issue_key(*args, admin).await.map(CommandOutput::One),
        KeyCommand::List { user } => list(user, admin).await,
        KeyCommand::Audit { key: Subject(key), limit } => audit(key, limit, admin).await,
        KeyCommand::Show { key: Subject(key) } => show(key, admin).await.map(CommandOutput::One),
        KeyCommand::Revoke { key: Subject(key), wait, consent } => {
            revoke(key, wait, consent, admin).await.map(CommandOutput::One)
        }
        KeyCommand::Webhook { key: Subject(key), url, none: _ } => {
            let set = app::webhooks::set_webhook_url(&admin.ctx()?, key, url).await?;
            Ok(CommandOutput::One(key_record(&set)))
        }
        KeyCommand::Agent { key: Subject(key) } => {
            Ok(CommandOutput::One(key_record(&app::keys::mark_agent(&admin.ctx()?, key).await?)))
        }
        KeyCommand::Resume { key: Subject(key) } => {
            Ok(CommandOutput::One(key_record(&app::keys::resume(&admin.ctx()?, key).await?)))
        }
    }
}

async fn issue_key(args: IssueArgs, admin: &AdminCtx) -> Result<OutputRecord, StartError> {
    let online = admin.online().await;
    let ctx = match &online {
        Ok(ctx) => ctx.clone(),
        // A key can be issued without a reachable chain. Its delegation follows later.
        Err(_) => admin.ctx()?,
    };
    let expires_at = args.expires.map(|when| when.from(ctx.now()));
    if expires_at.is_some_and(|at| at <= ctx.now()) {
        return Err(refuse(ErrorCode::ValidationFailed, "--expires must be in the future."));
    }
    let wanted = IssueKey {
        user_id: args.user,
        name: args.name,
        tier: args.tier,
        scopes: args.scopes,
        expires_at,
        ip_allowlist: args.allow_ip.unwrap_or_default(),
        webhook_url: args.webhook_url,
        overrides: LimitOverrides {
            requests_per_minute: args.requests_per_minute,
            daily: args.daily_spend_limit,
            per_trade: args.per_trade_limit,
            high_value: args.high_value_threshold,
        },
        api_version: args.api_version,
        is_agent: args.agent,
    };
    let issued = issue(&ctx, wanted).await?;
    // From here on the key exists. Its secrets must be printed even if the delegation fails.
    let delegation = delegate(admin, online, &issued.key).await;
    Ok(OutputRecord::new()
        .with("key", issued.plaintext.expose())
        .with("webhookSecret", issued.webhook_secret.expose())
        .and(key_record(&issued.key))
        .with("delegation", delegation))
}

/// Enables the new key if an owner's key is available locally, otherwise reports the missing step.
async fn delegate(admin: &AdminCtx, online: Result<app::Ctx, StartError>, key: &Key) -> OutputRecord {
    let later = format!("foretell admin delegation enable --user {} --key {}", key.user_id, key.id);
    let not_enabled = |why: String| OutputRecord::new().with("enabled", false).with("why", why);
    // Only trading keys spend funds.
    if !key.scopes.contains(Scope::TradesWrite) {
        return not_enabled(
            "The key does not have the scope trades:write and needs no delegation.".to_owned(),
        );
    }
    let request = OwnerActRequest::Enable { keys: vec![key.id] };
    let consent = match &online {
        Ok(ctx) => authorise(admin, ctx, key.user_id, &request, None).await,
        Err(error) => return not_enabled(error.to_string()).with("next", later),
    };
    match consent {
        Ok(consent) if consent.is_done() => OutputRecord::new().with("enabled", true).and(consent.record()),
        Ok(consent) => not_enabled("An owner of the account must sign.".to_owned())
            .and(consent.record())
            .with("command", later),
        Err(error) => not_enabled(explain(error).to_string()).with("next", later),
    }
}

async fn list(user: UserId, admin: &AdminCtx) -> Result<CommandOutput, StartError> {
    user::find(admin, user).await?;
    let keys = admin.store.read(user, |tx, id| Box::pin(store::keys::list(tx, *id))).await;
    let records = keys?.iter().map(key_record).collect();
    Ok(CommandOutput::Many(records, &["id", "name", "tier", "scopes", "expiresAt", "revokedAt"]))
}

async fn audit(key: KeyId, limit: u32, admin: &AdminCtx) -> Result<CommandOutput, StartError> {
    find(admin, key).await?;
    let entries =
        admin.store.read((key, limit), |tx, (id, limit)| Box::pin(store::audit::list(tx, *id, *limit))).await;
    let record = |entry: &store::audit::AuditEntry| {
        OutputRecord::new()
            .with("lastAt", entry.last_at)
            .with("firstAt", entry.first_at)
            .with("failures", entry.failures)
            .with("code", entry.code.as_str())
            .with("ip", entry.ip)
            .with("route", &entry.route)
            .with("requestId", &entry.request_id)
    };
    let columns = &["lastAt", "failures", "code", "ip", "route", "requestId"];
    Ok(CommandOutput::Many(entries?.iter().map(record).collect(), columns))
}

async fn show(key: KeyId, admin: &AdminCtx) -> Result<OutputRecord, StartError> {
    let key = find(admin, key).await?;
    let last = admin.store.read(key.id, |tx, id| Box::pin(store::delegations::find_last(tx, *id))).await;
    Ok(key_record(&key).with("delegation", last?.as_ref().map(delegation::record)))
}

async fn revoke(
    key: KeyId,
    wait: WaitArgs,
    consent: ConsentArgs,
    admin: &AdminCtx,
) -> Result<OutputRecord, StartError> {
    let found = find(admin, key).await?;
    if found.revoked_at.is_none() {
        // A script that revokes a stolen key must not be blocked by a prompt.
        let act = format!("Revokes the key {key}, {:?}. This cannot be undone.", found.name);
        consent.obtain(&act, &key.to_string(), WithoutTerminal::Proceed)?;
    }
    let revoked = app::keys::revoke(&admin.ctx()?, key).await?;
    let on_chain = delegation::follow(admin, revoked.on_chain, wait).await?;
    Ok(key_record(&revoked.key).with("delegation", delegation::record(&on_chain)))
}

/// Returns the key with this id, or a not-found error.
pub async fn find(admin: &AdminCtx, key: KeyId) -> Result<Key, StartError> {
    let found = admin.store.read(key, |tx, id| Box::pin(store::keys::find(tx, *id))).await;
    found?.ok_or_else(|| missing("key"))
}

/// Returns the printable properties of a key, without any secret.
pub fn key_record(key: &Key) -> OutputRecord {
    // The effective limits: the key's own or its tier's.
    let limits = key.limits();
    OutputRecord::new()
        .with("id", key.id)
        .with("userId", key.user_id)
        .with("kind", key.kind)
        .with("hint", &key.hint)
        .with("name", &key.name)
        .with("tier", key.tier)
        .with("scopes", key.scopes)
        .with("keyIndex", key.key_index)
        .with("allowIp", (!key.ip_allowlist.is_empty()).then(|| key.ip_allowlist.to_string()))
        .with("webhookUrl", &key.webhook_url)
        .with("requestsPerMinute", limits.requests_per_minute)
        .with("dailySpendLimitUsdc", usdc_text(limits.daily))
        .with("perTradeLimitUsdc", usdc_text(limits.per_trade))
        .with("highValueThresholdUsdc", limits.high_value.map(usdc_text))
        .with("apiVersion", &key.api_version)
        .with("agent", key.is_agent)
        .with("expiresAt", key.expires_at)
        .with("revokedAt", key.revoked_at)
        .with("pausedAt", key.paused_at)
        .with("createdAt", key.created_at)
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;
    use crate::cli::Cli;

    #[test]
    fn a_key_is_pinned_to_a_version_that_is_served() {
        assert_eq!(api_version("2026-04-29"), Ok("2026-04-29".to_owned()));
        assert!(api_version("2026-04-30").is_err());
    }

    #[test]
    fn an_empty_allowlist_or_entry_issues_no_key() {
        let parse = |list: &str| {
            let user = "0198f3a0-0000-7000-8000-000000000001";
            let issue =
                ["foretell", "admin", "key", "issue", "--user", user, "--tier", "mm", "--name", "desk"];
            Cli::try_parse_from(issue.into_iter().chain(["--allow-ip", list])).map(drop)
        };
        assert!(parse("192.0.2.0/24, 2001:db8::1").is_ok());
        for list in ["", " ", ",", "192.0.2.1,"] {
            let error = parse(list).unwrap_err().to_string();
            assert!(error.contains("there must be at least one"), "{list:?}: {error}");
        }
    }
}
