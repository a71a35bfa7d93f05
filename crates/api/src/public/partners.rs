//! Partners, which belong to organizations, and their threads.

use axum::extract::State;
use axum::response::Response;
use domain::ids::{OrganizationId, PartnerId};
use domain::{Cents, Timestamp};
use http_kit::{NamedQuery, NoParameters, PathId, Problem, PublicCode, Shared};
use serde::Serialize;
use store::StoreError;
use store::public::PartnerRow;
use utoipa::ToSchema;

use super::answer::Meta;
use super::threads::{ThreadsAnswer, ThreadsWithinQuery, listed};

/// One partner.
#[derive(Debug, Serialize, ToSchema)]
pub struct PartnerAnswer {
    partner: PartnerRecord,
}

/// A partner of an organization.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Partner)]
#[serde(rename_all = "camelCase")]
pub struct PartnerRecord {
    id: PartnerId,
    organization_id: OrganizationId,
    name: String,
    /// The name in URLs.
    slug: String,
    /// `active` or `inactive`.
    status: &'static str,
    /// Markdown.
    #[serde(skip_serializing_if = "Option::is_none")]
    description: Option<String>,
    /// The URL of an image.
    #[serde(skip_serializing_if = "Option::is_none")]
    logo: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    website: Option<String>,
    thread_count: u64,
    market_count: u64,
    /// USDC traded in its markets.
    total_volume: Cents,
    created_at: Timestamp,
    updated_at: Timestamp,
}

/// `GET /api/partners/{id}`.
#[utoipa::path(
    get, path = "/api/partners/{id}", operation_id = "getPartner", tag = "Organizations", summary = "Read one partner",
    description = "The partner, active or not, with the totals of its threads and markets.",
    params(("id" = PartnerId, Path, description = "The partner's id.")),
    responses((status = 200, description = "The partner.", body = PartnerAnswer)),
    extensions(("x-error-codes" = json!(["PARTNER_NOT_FOUND"]))),
)]
pub async fn find(
    State(app): State<Shared>,
    PathId(id): PathId,
    query: NamedQuery<NoParameters>,
    meta: Meta,
) -> Result<Response, Problem> {
    let read = async || {
        let row = get_partner(&app, &id).await?;
        Ok((PartnerAnswer { partner: PartnerRecord::new(row) }, None))
    };
    meta.kept(&app, &query.name, read).await
}

/// `GET /api/partners/{id}/threads`.
#[utoipa::path(
    get, path = "/api/partners/{id}/threads", operation_id = "listPartnerThreads", tag = "Organizations",
    summary = "List a partner's threads",
    description = "The partner's threads. Default: active threads, newest first. Equal threads are ordered \
        by id.",
    params(
        ("id" = PartnerId, Path, description = "The partner's id."),
        ("status" = Option<String>, Query, pattern = "^(active|upcoming|closed|all)$", example = "active",
            description = "active (the default), upcoming, closed, all."),
        ("sortBy" = Option<String>, Query, pattern = "^(created_at|start_time|total_volume)$",
            description = "created_at (the default), start_time, total_volume."),
        ("sortOrder" = Option<String>, Query, pattern = "^(asc|desc)$", description = "desc (the default) or asc."),
    ),
    responses((status = 200, description = "A page of threads.", body = ThreadsAnswer)),
    extensions(("x-error-codes" = json!(["PARTNER_NOT_FOUND"]))),
)]
pub async fn threads(
    State(app): State<Shared>,
    PathId(id): PathId,
    query: NamedQuery<ThreadsWithinQuery>,
    meta: Meta,
) -> Result<Response, Problem> {
    let NamedQuery { parameters: ThreadsWithinQuery(chosen), name } = query;
    let read = async || {
        let id = get_partner(&app, &id).await?.partner.id;
        listed(&app, chosen.of_partner(id)).await
    };
    meta.kept(&app, &name, read).await
}

async fn get_partner(app: &Shared, id: &str) -> Result<PartnerRow, Problem> {
    let not_found = || Problem::from(PublicCode::PartnerNotFound);
    let id: PartnerId = id.parse().map_err(|_| not_found())?;
    let found: Result<_, StoreError> =
        app.ctx.store.for_public().read(id, |tx, id| Box::pin(store::public::get_partner(tx, *id))).await;
    found?.ok_or_else(not_found)
}

impl PartnerRecord {
    pub fn new(row: PartnerRow) -> Self {
        let PartnerRow { partner, created_at, updated_at, threads, totals } = row;
        Self {
            id: partner.id,
            organization_id: partner.organization_id,
            status: partner.status(),
            name: partner.name,
            slug: partner.slug,
            description: partner.description,
            logo: partner.logo,
            website: partner.website,
            thread_count: threads,
            market_count: totals.markets,
            total_volume: totals.volume.to_cents_floor(),
            created_at,
            updated_at,
        }
    }
}
