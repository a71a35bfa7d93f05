//! What a user did with their own account, as lines of a page.

use app::user_log::UserLogEntry;
use presentation::amounts;

/// The number of entries that a page shows.
pub const MAX_ENTRIES: u32 = 20;

/// An entry of the user's log.
#[derive(Debug)]
pub struct ActivityLine {
    pub what: String,
    pub at: String,
    pub ip: String,
    /// Further ones of this kind that were only counted.
    pub more: u64,
}

impl ActivityLine {
    pub fn new(entry: &UserLogEntry) -> Self {
        Self {
            what: words(&entry.action).map_or_else(|| entry.action.clone(), str::to_owned),
            at: amounts::minute(entry.at),
            ip: entry.ip.to_string(),
            more: entry.more,
        }
    }
}

/// Returns what the user did, in words.
fn words(action: &str) -> Option<&'static str> {
    Some(match action {
        "user.sign-up" => "Signed up",
        "user.rename" => "Changed the name",
        "user.public-name" => "Changed the name on the leaderboard",
        "terms.accept" => "Accepted the terms of use",
        "session.begin" => "Signed in",
        "session.step-up" => "Confirmed by passkey or wallet",
        "session.end" => "Ended a session",
        "session.end-others" => "Ended all other sessions",
        "credential.add" => "Added a sign-in key",
        "credential.remove" => "Removed a sign-in key",
        "account.second_owner" => "Chose a second owner",
        "key.issue" => "Created an API key",
        "key.access" => "Changed what an API key may do",
        "key.caps" => "Lowered the limits of a key",
        "key.pause" => "Paused a key",
        "key.resume" => "Resumed a key",
        "key.revoke" => "Revoked a key",
        "key.webhook" => "Changed the webhook of a key",
        "key.webhook-secret" => "Replaced the webhook secret of a key",
        "key.agent" => "Marked a key as an agent's",
        _ => return None,
    })
}
