//! Organizations, with their threads and partners.

use axum::extract::State;
use axum::response::Response;
use domain::ids::OrganizationId;
use domain::{Cents, Timestamp};
use http_kit::{NamedQuery, NoParameters, Parameters, PathId, Problem, PublicCode, RawQuery, Shared};
use serde::Serialize;
use store::StoreError;
use store::public::{OrganizationRow, PageRange, PartnerFilter};
use utoipa::ToSchema;

use super::answer::{Meta, Pagination};
use super::partners::PartnerRecord;
use super::threads::{ThreadsAnswer, ThreadsWithinQuery, listed};

/// One organization.
#[derive(Debug, Serialize, ToSchema)]
pub struct OrganizationAnswer {
    organization: OrganizationRecord,
}

/// An organization.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Organization)]
#[serde(rename_all = "camelCase")]
struct OrganizationRecord {
    id: OrganizationId,
    name: String,
    /// The name in URLs.
    slug: String,
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

/// `GET /api/organizations/{id}`.
#[utoipa::path(
    get, path = "/api/organizations/{id}", operation_id = "getOrganization", tag = "Organizations",
    summary = "Read one organization", description = "The organization with the totals of its threads and markets.",
    params(("id" = OrganizationId, Path, description = "The organization's id.")),
    responses((status = 200, description = "The organization.", body = OrganizationAnswer)),
    extensions(("x-error-codes" = json!(["ORGANIZATION_NOT_FOUND"]))),
)]
pub async fn find(
    State(app): State<Shared>,
    PathId(id): PathId,
    query: NamedQuery<NoParameters>,
    meta: Meta,
) -> Result<Response, Problem> {
    let read = async || {
        let row = get_organization(&app, &id).await?;
        Ok((OrganizationAnswer { organization: OrganizationRecord::new(row) }, None))
    };
    meta.kept(&app, &query.name, read).await
}

/// `GET /api/organizations/{id}/threads`.
#[utoipa::path(
    get, path = "/api/organizations/{id}/threads", operation_id = "listOrganizationThreads", tag = "Organizations",
    summary = "List an organization's threads",
    description = "The organization's threads. Default: active threads, newest first. Equal threads are \
        ordered by id.",
    params(
        ("id" = OrganizationId, Path, description = "The organization's id."),
        ("status" = Option<String>, Query, pattern = "^(active|upcoming|closed|all)$", example = "active",
            description = "active (the default), upcoming, closed, all."),
        ("sortBy" = Option<String>, Query, pattern = "^(created_at|start_time|total_volume)$",
            description = "created_at (the default), start_time, total_volume."),
        ("sortOrder" = Option<String>, Query, pattern = "^(asc|desc)$", description = "desc (the default) or asc."),
    ),
    responses((status = 200, description = "A page of threads.", body = ThreadsAnswer)),
    extensions(("x-error-codes" = json!(["ORGANIZATION_NOT_FOUND"]))),
)]
pub async fn threads(
    State(app): State<Shared>,
    PathId(id): PathId,
    query: NamedQuery<ThreadsWithinQuery>,
    meta: Meta,
) -> Result<Response, Problem> {
    let NamedQuery { parameters: ThreadsWithinQuery(chosen), name } = query;
    let read = async || {
        let id = get_organization(&app, &id).await?.organization.id;
        listed(&app, chosen.of_organization(id)).await
    };
    meta.kept(&app, &name, read).await
}

/// A page of partners.
#[derive(Debug, Serialize, ToSchema)]
pub struct PartnersAnswer {
    partners: Vec<PartnerRecord>,
    pagination: Pagination,
}

const STATUSES: &[(&str, Option<bool>)] = &[("active", Some(true)), ("inactive", Some(false)), ("all", None)];

/// The parameters `status`, `limit` and `offset`.
#[derive(Debug)]
pub struct PartnersQuery {
    active: Option<bool>,
    window: PageRange,
}

impl Parameters for PartnersQuery {
    const NAMES: &'static [&'static str] = &["status", "limit", "offset"];

    fn read(asked: &mut RawQuery<'_>) -> Option<Self> {
        let (active, window) = (asked.word("status", STATUSES), asked.extent());
        Some(Self { active: active?, window: window? })
    }
}

/// `GET /api/organizations/{id}/partners`.
#[utoipa::path(
    get, path = "/api/organizations/{id}/partners", operation_id = "listOrganizationPartners", tag = "Organizations",
    summary = "List an organization's partners", description = "The organization's partners, newest first.",
    params(
        ("id" = OrganizationId, Path, description = "The organization's id."),
        ("status" = Option<String>, Query, pattern = "^(active|inactive|all)$", example = "active",
            description = "active (the default), inactive, all."),
    ),
    responses((status = 200, description = "A page of partners.", body = PartnersAnswer)),
    extensions(("x-error-codes" = json!(["ORGANIZATION_NOT_FOUND"]))),
)]
pub async fn partners(
    State(app): State<Shared>,
    PathId(id): PathId,
    query: NamedQuery<PartnersQuery>,
    meta: Meta,
) -> Result<Response, Problem> {
    let NamedQuery { parameters: PartnersQuery { active, window }, name } = query;
    let read = async || {
        let organization_id = get_organization(&app, &id).await?.organization.id;
        let filter = PartnerFilter { organization_id, active };
        let read: Result<_, StoreError> = app
            .ctx
            .store
            .for_public()
            .read(filter, move |tx, filter| Box::pin(store::public::list_partners(tx, filter, window)))
            .await;
        let listed = read?;
        let pagination = Pagination::new(window, listed.items.len(), listed.total);
        let partners = listed.items.into_iter().map(PartnerRecord::new).collect();
        Ok((PartnersAnswer { partners, pagination }, None))
    };
    meta.kept(&app, &name, read).await
}

/// Returns the organization with this id.
///
/// # Errors
///
/// `ORGANIZATION_NOT_FOUND` if the id is unknown or malformed.
pub async fn get_organization(app: &Shared, id: &str) -> Result<OrganizationRow, Problem> {
    let not_found = || Problem::from(PublicCode::OrganizationNotFound);
    let id: OrganizationId = id.parse().map_err(|_| not_found())?;
    let found: Result<_, StoreError> = app
        .ctx
        .store
        .for_public()
        .read(id, |tx, id| Box::pin(store::public::get_organization(tx, *id)))
        .await;
    found?.ok_or_else(not_found)
}

impl OrganizationRecord {
    fn new(row: OrganizationRow) -> Self {
        let OrganizationRow { organization, created_at, updated_at, threads, totals } = row;
        Self {
            id: organization.id,
            name: organization.name,
            slug: organization.slug,
            description: organization.description,
            logo: organization.logo,
            website: organization.website,
            thread_count: threads,
            market_count: totals.markets,
            total_volume: totals.volume.to_cents_floor(),
            created_at,
            updated_at,
        }
    }
}
