//! A thread as this surface shows it.

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
    /// USDC traded on its markets.
    total_volume: Cents,
    market_count: u64,
    /// Accounts that have traded on any of its markets.
    participant_count: u64,
    /// In seconds since 1970.
    #[serde(skip_serializing_if = "Option::is_none")]
    start_time: Option<u64>,
    /// In seconds since 1970.
    #[serde(skip_serializing_if = "Option::is_none")]
    end_time: Option<u64>,
    status: ThreadStatus,
    #[serde(skip_serializing_if = "Option::is_none")]
    category: Option<String>,
    tags: Vec<String>,
    created_at: Timestamp,
    updated_at: Timestamp,
}

/// One thread with all that is shown of it.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct ThreadDetail {
    id: ThreadId,
    title: String,
    /// Markdown.
    #[serde(skip_serializing_if = "Option::is_none")]
    description: Option<String>,
    /// A cover's address.
    #[serde(skip_serializing_if = "Option::is_none")]
    image: Option<String>,
    /// A background's address.
    #[serde(skip_serializing_if = "Option::is_none")]
    background_image: Option<String>,
    /// USDC traded on its markets.
    total_volume: Cents,
    market_count: u64,
    /// Accounts that have traded on any of its markets.
    participant_count: u64,
    /// In seconds since 1970.
    #[serde(skip_serializing_if = "Option::is_none")]
    start_time: Option<u64>,
    /// In seconds since 1970.
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
    /// With includeMarkets: the newest 100, whatever their status.
    #[serde(skip_serializing_if = "Option::is_none")]
    markets: Option<Vec<MarketRecord>>,
    /// With includeMarkets: whether the thread has more markets than these. GET /api/threads/{id}/markets lists all.
    #[serde(skip_serializing_if = "Option::is_none")]
    has_more_markets: Option<bool>,
}

impl ThreadRecord {
    /// `listed` as it reads at `now`.
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
    /// `listed` as it reads at `now`, with its markets where they are asked for.
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

/// When the first of these threads begins or ends and reads otherwise.
pub fn next_turn<'a>(threads: impl Iterator<Item = &'a ThreadRow>, now: Timestamp) -> Option<Timestamp> {
    let turns = threads.flat_map(|listed| [listed.thread.start_time, listed.thread.end_time]);
    turns.flatten().filter(|turn| *turn > now).min()
}
