//! Connections that another machine could read or change.

use secrecy::ExposeSecret;

use super::{Checked, Verdict};
use crate::config::ResolvedConfig;
use crate::database::transport_warning;
use crate::nats::NatsSettings;

/// Returns a warning for each connection that is not protected.
pub(super) fn warnings(config: &ResolvedConfig) -> Vec<Checked> {
    // An invalid URL is reported when the database is opened.
    let of_database = |url| transport_warning(config, url).unwrap_or_default();
    let found = [
        ("database", of_database(&config.database_url)),
        ("replica", config.database_read_url.as_ref().and_then(of_database)),
        ("rate limiter", redis_warning(config)),
        ("nats", config.nats.as_ref().and_then(nats_warning)),
    ];
    let warning = |(what, text): (_, Option<String>)| Some(Checked::new(what, Verdict::Warning(text?)));
    found.into_iter().filter_map(warning).collect()
}

fn is_this_machine(url: &reqwest::Url) -> bool {
    let is_loopback =
        |host: &str| host.trim_matches(['[', ']']).parse().is_ok_and(|ip: std::net::IpAddr| ip.is_loopback());
    url.host_str().is_none_or(|host| host == "localhost" || is_loopback(host))
}

/// Returns a warning if another machine could read or change what is sent to Redis.
fn redis_warning(config: &ResolvedConfig) -> Option<String> {
    let url = reqwest::Url::parse(config.redis_url.as_ref()?.expose_secret()).ok()?;
    let is_plaintext = matches!(url.scheme(), "redis" | "valkey") && !is_this_machine(&url);
    is_plaintext.then(|| "redis: everything is sent in plaintext. Use rediss://".to_owned())
}

/// Returns a warning if another machine could read or change what is sent to NATS.
fn nats_warning(nats: &NatsSettings) -> Option<String> {
    let is_plaintext = |server: &&String| {
        let url = reqwest::Url::parse(server).ok();
        url.is_some_and(|url| url.scheme() == "nats" && !is_this_machine(&url))
    };
    nats.servers.iter().find(is_plaintext).map(|server| {
        format!("{server} may be sent everything in plaintext, unless it requires TLS. Use tls://")
    })
}

#[cfg(test)]
mod tests {
    use crate::config::Settings;

    use super::*;

    #[test]
    fn connections_to_other_machines_that_are_not_verified_are_reported() {
        let warnings = |environment: &str, database: &str, redis: &str| {
            let text = format!(
                "environment = \"{environment}\"\ndatabase-url = \"{database}\"\nredis-url = \"{redis}\""
            );
            let config = toml::from_str::<Settings>(&text).unwrap().decide().unwrap();
            (transport_warning(&config, &config.database_url).unwrap(), redis_warning(&config))
        };
        for (environment, database, redis, are_weak) in [
            ("live", "postgres://db.internal/d", "rediss://cache.internal", false),
            ("live", "postgres://localhost/d", "redis://127.0.0.1", false),
            ("live", "sqlite:/d.db", "redis://[::1]", false),
            ("live", "postgres://db.internal/d?sslmode=require", "redis://cache.internal", true),
            ("live", "postgres://db.internal/d?sslmode=disable", "redis://10.0.0.7", true),
            ("test", "postgres://db.internal/d", "redis://cache.internal", true),
        ] {
            let (of_database, of_redis) = warnings(environment, database, redis);
            assert_eq!((of_database.is_some(), of_redis.is_some()), (are_weak, are_weak), "{database}");
        }
        let (of_database, _) = warnings("live", "postgres://db.internal/d?sslmode=require", "redis://h");
        let expected = "sslmode=require: the server's certificate is not verified. Use sslmode=verify-full";
        assert_eq!(of_database.as_deref(), Some(expected));
    }
}
