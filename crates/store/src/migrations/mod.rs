//! The schema migrations, in the order in which they are applied.

/// Each migration's name and SQL. A released migration must never change, because its checksum is
/// stored in the database. Add a new one at the end instead.
pub const MIGRATIONS: &[(&str, &str)] = &[
    ("0001_core", include_str!("0001_core.sql")),
    ("0002_protocol", include_str!("0002_protocol.sql")),
    ("0003_gate", include_str!("0003_gate.sql")),
    ("0004_redemptions", include_str!("0004_redemptions.sql")),
    ("0005_usage", include_str!("0005_usage.sql")),
    ("0006_candles", include_str!("0006_candles.sql")),
    ("0007_events", include_str!("0007_events.sql")),
    ("0008_catalogue", include_str!("0008_catalogue.sql")),
    ("0009_aggregates", include_str!("0009_aggregates.sql")),
    ("0010_deliveries", include_str!("0010_deliveries.sql")),
    ("0011_feed", include_str!("0011_feed.sql")),
    ("0012_deliveries_status", include_str!("0012_deliveries_status.sql")),
    ("0013_search_terms", include_str!("0013_search_terms.sql")),
    ("0014_threads_category", include_str!("0014_threads_category.sql")),
    ("0015_open_ends", include_str!("0015_open_ends.sql")),
    ("0016_quarantine", include_str!("0016_quarantine.sql")),
    ("0024_delegation_changes", include_str!("0024_delegation_changes.sql")),
    ("0025_fair_queue", include_str!("0025_fair_queue.sql")),
    ("0029_intents", include_str!("0029_intents.sql")),
    ("0030_audit_log", include_str!("0030_audit_log.sql")),
    ("0044_trade_slippage", include_str!("0044_trade_slippage.sql")),
    ("0045_held_trades", include_str!("0045_held_trades.sql")),
    ("0046_usage_gas", include_str!("0046_usage_gas.sql")),
    ("0049_feed_generation", include_str!("0049_feed_generation.sql")),
    ("0050_recoveries", include_str!("0050_recoveries.sql")),
    ("0060_account_owners", include_str!("0060_account_owners.sql")),
    ("0070_reference_prices", include_str!("0070_reference_prices.sql")),
    ("0090_holders", include_str!("0090_holders.sql")),
];
