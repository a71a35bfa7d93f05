//! Kill switches: routes or all trading, turned off by the operator.

use domain::Timestamp;

use crate::record::{Record, record};
use crate::{StoreError, Tx, params};

/// An upper bound on the number of switches, far above the number of routes.
const MOST: i64 = 1_000;

record! {
    #[derive(Debug, Clone, PartialEq, Eq)]
    pub struct KillSwitch {
        /// The route or function that it turns off.
        pub name: String,
        /// The time since which it is off. `None` if it is on.
        pub thrown_at: Option<Timestamp> = "thrown_at_ms",
        /// The time at which it was last turned off or on.
        pub changed_at: Timestamp = "changed_at_ms",
        /// The operator who changed it last.
        pub changed_by: String,
        pub reason: Option<String>,
    }
}

/// Lists all switches that were ever turned off, sorted by name.
pub async fn list(tx: &mut Tx) -> Result<Vec<KillSwitch>, StoreError> {
    const SQL: &str =
        const_format::concatcp!("SELECT ", KillSwitch::COLUMNS, " FROM kill_switches ORDER BY name LIMIT $1");
    tx.list(SQL, &params![MOST], KillSwitch::from_row).await
}

/// Stores a switch's new state and returns the stored row. Turning off a switch that is already off
/// does not change the original time.
pub async fn set(tx: &mut Tx, switch: &KillSwitch) -> Result<KillSwitch, StoreError> {
    const SQL: &str = const_format::concatcp!(
        "INSERT INTO kill_switches (name, thrown_at_ms, changed_at_ms, changed_by, reason)
        VALUES ($1, $2, $3, $4, $5)
        ON CONFLICT (name) DO UPDATE SET changed_at_ms = excluded.changed_at_ms, changed_by = excluded.changed_by,
        reason = excluded.reason, thrown_at_ms = CASE WHEN excluded.thrown_at_ms IS NULL THEN NULL
        ELSE COALESCE(kill_switches.thrown_at_ms, excluded.thrown_at_ms) END
        RETURNING ",
        KillSwitch::COLUMNS
    );
    let KillSwitch { name, thrown_at, changed_at, changed_by, reason } = switch;
    let values = params![name, *thrown_at, *changed_at, changed_by, reason.as_deref()];
    tx.find(SQL, &values, KillSwitch::from_row).await?.ok_or_else(|| StoreError::missing("kill_switches"))
}
