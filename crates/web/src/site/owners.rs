//! The pages of organizations and partners.

use askama::Template;
use axum::extract::State;
use axum::response::Response;
use domain::Timestamp;
use domain::ids::{OrganizationId, PartnerId};
use http_kit::{NamedQuery, NoParameters, PathId, Problem, Shared};
use presentation::{MarketTile, amounts, markdown, next_end};
use store::listed::Totals;
use store::public::{
    Listed, ListedMarket, MarketFilter, MarketSort, Order, PageRange, PartnerFilter, PartnerRow,
    ThreadFilter, ThreadRow, ThreadSort, get_organization, get_partner, list_markets, list_partners,
    list_threads,
};
use store::{StoreError, Tx};

use super::home::{ThreadLine, pairs};
use super::shell::{Reader, Section, Shell, cached};

const MOST_MARKETS: u32 = 12;
const MOST_THREADS: u32 = 12;
const MOST_PARTNERS: u32 = 50;

/// The facts of an organization or a partner.
#[derive(Debug, Clone)]
struct Owner {
    name: String,
    description: Option<String>,
    website: Option<String>,
    since: Timestamp,
    totals: Totals,
}

/// A link to a partner.
#[derive(Debug)]
struct PartnerLink {
    id: String,
    name: String,
}

#[derive(Debug, Template)]
#[template(path = "site/owner.html")]
struct OwnerPage {
    shell: Shell,
    kind: &'static str,
    name: String,
    about: Option<String>,
    website: Option<String>,
    since: String,
    markets: String,
    volume: String,
    traders: String,
    tiles: Vec<MarketTile>,
    threads: Vec<ThreadLine>,
    partners: Vec<PartnerLink>,
}

struct Rows {
    owner: Owner,
    markets: Listed<ListedMarket>,
    threads: Listed<ThreadRow>,
    partners: Vec<PartnerRow>,
}

/// `GET /organizations/{id}`.
pub async fn organization(
    State(app): State<Shared>,
    reader: Reader,
    PathId(id): PathId,
    query: NamedQuery<NoParameters>,
) -> Result<Response, Problem> {
    let id: OrganizationId = id.parse().map_err(|_| Problem::not_found())?;
    let read = async || {
        let rows = read_organization(&app, id).await?.ok_or_else(Problem::not_found)?;
        OwnerPage::read(&app, &reader, "Organization", &format!("/organizations/{id}"), rows).await
    };
    cached(&app, &reader, &query.name, read).await
}

/// `GET /partners/{id}`.
pub async fn partner(
    State(app): State<Shared>,
    reader: Reader,
    PathId(id): PathId,
    query: NamedQuery<NoParameters>,
) -> Result<Response, Problem> {
    let id: PartnerId = id.parse().map_err(|_| Problem::not_found())?;
    let read = async || {
        let rows = read_partner(&app, id).await?.ok_or_else(Problem::not_found)?;
        OwnerPage::read(&app, &reader, "Partner", &format!("/partners/{id}"), rows).await
    };
    cached(&app, &reader, &query.name, read).await
}

async fn read_organization(app: &Shared, id: OrganizationId) -> Result<Option<Rows>, StoreError> {
    app.ctx
        .store
        .read(id, |tx, id| {
            Box::pin(async move {
                let Some(row) = get_organization(tx, *id).await? else { return Ok(None) };
                let partners = PartnerFilter { organization_id: *id, active: Some(true) };
                let extent = PageRange { limit: MOST_PARTNERS, offset: 0 };
                let owner = Owner {
                    name: row.organization.name,
                    description: row.organization.description,
                    website: row.organization.website,
                    since: row.created_at,
                    totals: row.totals,
                };
                let markets = MarketFilter { organization_id: Some(*id), ..MarketFilter::default() };
                let threads = ThreadFilter { organization_id: Some(*id), ..ThreadFilter::default() };
                let partners = list_partners(tx, &partners, extent).await?.items;
                with_lists(tx, owner, (markets, threads), partners).await.map(Some)
            })
        })
        .await
}

async fn read_partner(app: &Shared, id: PartnerId) -> Result<Option<Rows>, StoreError> {
    app.ctx
        .store
        .read(id, |tx, id| {
            Box::pin(async move {
                let Some(row) = get_partner(tx, *id).await? else { return Ok(None) };
                let owner = Owner {
                    name: row.partner.name,
                    description: row.partner.description,
                    website: row.partner.website,
                    since: row.created_at,
                    totals: row.totals,
                };
                let markets = MarketFilter { partner_id: Some(*id), ..MarketFilter::default() };
                let threads = ThreadFilter { partner_id: Some(*id), ..ThreadFilter::default() };
                with_lists(tx, owner, (markets, threads), Vec::new()).await.map(Some)
            })
        })
        .await
}

async fn with_lists(
    tx: &mut Tx,
    owner: Owner,
    (markets, threads): (MarketFilter, ThreadFilter),
    partners: Vec<PartnerRow>,
) -> Result<Rows, StoreError> {
    let extent = |limit| PageRange { limit, offset: 0 };
    Ok(Rows {
        owner,
        markets: list_markets(tx, &markets, MarketSort::TotalVolume, Order::Desc, extent(MOST_MARKETS))
            .await?,
        threads: list_threads(tx, &threads, ThreadSort::TotalVolume, Order::Desc, extent(MOST_THREADS))
            .await?,
        partners,
    })
}

impl OwnerPage {
    async fn read(
        app: &Shared,
        reader: &Reader,
        kind: &'static str,
        path: &str,
        rows: Rows,
    ) -> Result<(Self, Option<Timestamp>), Problem> {
        let Rows { owner, markets, threads, partners } = rows;
        let now = app.ctx.now();
        let until = next_end(markets.items.iter().map(|listed| &listed.market), now);
        let links = partners
            .into_iter()
            .map(|row| PartnerLink { id: row.partner.id.to_string(), name: row.partner.name });
        let markets_text = amounts::grouped(owner.totals.markets);
        let page = Self {
            shell: Shell::new(reader, Section::None, owner.name.clone())
                .described(&format!("{kind}: {}", amounts::count(owner.totals.markets, "market")))
                .listed_at(app, path),
            kind,
            name: owner.name,
            about: markdown::about(owner.description.as_deref()),
            website: owner.website,
            since: amounts::day(owner.since),
            markets: markets_text,
            volume: presentation::market_face::dollars(owner.totals.volume),
            traders: amounts::grouped(owner.totals.participants),
            tiles: MarketTile::read_all(&app.ctx, &pairs(markets.items), now).await?,
            threads: threads.items.into_iter().map(ThreadLine::new).collect(),
            partners: links.collect(),
        };
        Ok((page, until))
    }
}
