//! Threads as the public API returns them.

use domain::ids::{OrganizationId, PartnerId, ThreadId};
use domain::thread::ThreadStatus;
use domain::{Cents, Timestamp};
use serde::Serialize;
use store::public::ThreadRow;
use utoipa::ToSchema;

use super::market_record::MarketRecord;

/// A thread of a list.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Thread)]
#[serde(rename_all = "camelCase")]
pub struct ThreadRecord {
    id: ThreadId,
    title: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    description: Option<String>,
    /// USDC traded in its markets.
    total_volume: Cents,
    market_count: u64,
    /// The number of accounts that have traded in its markets.
    participant_count: u64,
    /// Seconds since the Unix epoch.
    #[serde(skip_serializing_if = "Option::is_none")]
    start_time: Option<u64>,
    /// Seconds since the Unix epoch.
    #[serde(skip_serializing_if = "Option::is_none")]
    end_time: Option<u64>,
    status: ThreadStatus,
    #[serde(skip_serializing_if = "Option::is_none")]
    category: Option<String>,
    tags: Vec<String>,
    created_at: Timestamp,
    updated_at: Timestamp,
}

/// A thread with all of its details.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct ThreadDetail {
    id: ThreadId,
    title: String,
    /// Markdown.
    #[serde(skip_serializing_if = "Option::is_none")]
    description: Option<String>,
    /// The URL of the cover image.
    #[serde(skip_serializing_if = "Option::is_none")]
    image: Option<String>,
    /// The URL of the background image.
    #[serde(skip_serializing_if = "Option::is_none")]
    background_image: Option<String>,
    /// USDC traded in its markets.
    total_volume: Cents,
    market_count: u64,
    /// The number of accounts that have traded in its markets.
    participant_count: u64,
    /// Seconds since the Unix epoch.
    #[serde(skip_serializing_if = "Option::is_none")]
    start_time: Option<u64>,
    /// Seconds since the Unix epoch.
    #[serde(skip_serializing_if = "Option::is_none")]
    end_time: Option<u64>,
    status: ThreadStatus,
    #[serde(skip_serializing_if = "Option::is_none")]
    category: Option<String>,
    tags: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    organization_id: Option<OrganizationId>,
    #[serde(skip_serializing_if = "Option::is_none")]
    partner_id: Option<PartnerId>,
    created_at: Timestamp,
    updated_at: Timestamp,
    /// With includeMarkets: the newest 100 markets of any status.
    #[serde(skip_serializing_if = "Option::is_none")]
    markets: Option<Vec<MarketRecord>>,
    /// With includeMarkets: true if the thread has more markets. GET /api/threads/{id}/markets
    /// lists all of them.
    #[serde(skip_serializing_if = "Option::is_none")]
    has_more_markets: Option<bool>,
}

impl ThreadRecord {
    /// Builds the record of `listed` as of `now`.
    pub fn new(listed: ThreadRow, now: Timestamp) -> Self {
        let ThreadRow { thread, created_at, updated_at, totals } = listed;
        Self {
            id: thread.id,
            status: ThreadStatus::at(now, thread.start_time, thread.end_time),
            title: thread.title,
            description: thread.description,
            total_volume: totals.volume.to_cents_floor(),
            market_count: totals.markets,
            participant_count: totals.participants,
            start_time: thread.start_time.map(Timestamp::s),
            end_time: thread.end_time.map(Timestamp::s),
            category: thread.category,
            tags: thread.tags,
            created_at,
            updated_at,
        }
    }
}

impl ThreadDetail {
    /// Builds the record of `listed` as of `now`, with its markets if requested.
    pub fn new(listed: ThreadRow, markets: Option<Vec<MarketRecord>>, now: Timestamp) -> Self {
        let ThreadRow { thread, created_at, updated_at, totals } = listed;
        let has_more_markets = markets.as_ref().map(|markets| totals.markets > markets.len() as u64);
        Self {
            id: thread.id,
            status: ThreadStatus::at(now, thread.start_time, thread.end_time),
            title: thread.title,
            description: thread.description,
            image: thread.image,
            background_image: thread.background_image,
            total_volume: totals.volume.to_cents_floor(),
            market_count: totals.markets,
            participant_count: totals.participants,
            start_time: thread.start_time.map(Timestamp::s),
            end_time: thread.end_time.map(Timestamp::s),
            category: thread.category,
            tags: thread.tags,
            organization_id: thread.organization_id,
            partner_id: thread.partner_id,
            created_at,
            updated_at,
            markets,
            has_more_markets,
        }
    }
}
