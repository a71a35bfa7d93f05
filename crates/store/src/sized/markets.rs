//! Organizations, partners, threads, chapters and markets, without trades.

use domain::market::probability_ppm;
use domain::{Timestamp, Usdc, Wad};

use super::{
    CATEGORIES, FURTHER_CHAPTERS, FURTHER_PARTNERS, MARKETS, MOST_FEATURED, MOST_ORGANIZATIONS, OF_THREAD,
    ORGANIZATIONS, PARTNERS, Size, THREADS, trust_references,
};
use crate::search::Texts;
use crate::{SqlValue, Store, StoreError, Tx, params};

/// The market maker's state: a cost of ten times its liquidity.
pub const LIQUIDITY_USDC: u32 = 1_000;
pub const COST_WAD: &str = "10000000000000000000000";
/// The number of markets written per unit of work.
const CHUNK: u32 = 2_000;

/// Every tenth market is resolved, every hundredth cancelled, and some are frozen.
const fn status_of(number: u32) -> &'static str {
    match number {
        n if n % 100 == 50 => "CANCELLED",
        n if n % 10 == 5 => "RESOLVED",
        n if n % 100 == 33 => "FROZEN",
        _ => "OPEN",
    }
}

fn category_of(number: u32) -> String {
    format!("category{}", number % CATEGORIES)
}

/// Returns a thread's organization and partner. Every fifth thread has none.
fn owners_of(thread: u32) -> (Option<String>, Option<String>) {
    let owner = thread % MOST_ORGANIZATIONS;
    let owned = thread % 5 != 4;
    (owned.then(|| format!("{ORGANIZATIONS}{owner:012}")), owned.then(|| format!("{PARTNERS}{owner:012}")))
}

/// Writes all rows.
pub async fn fill(store: &Store, size: Size, now: Timestamp) -> Result<(), StoreError> {
    store.write(now, |tx, now| Box::pin(owners(tx, *now))).await?;
    store.write((size, now), |tx, (size, now)| Box::pin(threads(tx, *size, *now))).await?;
    for first in (0..size.markets).step_by(CHUNK as usize) {
        let numbers = first..(first + CHUNK).min(size.markets);
        store
            .write((numbers, now), |tx, (numbers, now)| {
                Box::pin(markets(tx, numbers.clone().collect(), *now))
            })
            .await?;
    }
    Ok(())
}

async fn owners(tx: &mut Tx, now: Timestamp) -> Result<(), StoreError> {
    const ORGANIZATION: &str = "INSERT INTO organizations (id, name, slug, created_at_ms, updated_at_ms)
        VALUES ($1, $2, $2, $3, $3)";
    const PARTNER: &str =
        "INSERT INTO partners (id, organization_id, name, slug, status, created_at_ms, updated_at_ms)
        VALUES ($1, $2, $3, $3, $4, $5, $5)";
    let (mut organizations, mut partners) = (Vec::new(), Vec::new());
    for number in 0..MOST_ORGANIZATIONS {
        let id = format!("{ORGANIZATIONS}{number:012}");
        organizations.push(params![id, format!("sized-organization-{number}"), now].to_vec());
    }
    for number in 0..MOST_ORGANIZATIONS + FURTHER_PARTNERS {
        let (owner, status) = if number < MOST_ORGANIZATIONS { (number, "active") } else { (0, "inactive") };
        let (id, organization) = (format!("{PARTNERS}{number:012}"), format!("{ORGANIZATIONS}{owner:012}"));
        partners.push(params![id, organization, format!("sized-partner-{number}"), status, now].to_vec());
    }
    tx.exec_each(ORGANIZATION, &organizations).await?;
    tx.exec_each(PARTNER, &partners).await.map(drop)
}

async fn threads(tx: &mut Tx, size: Size, now: Timestamp) -> Result<(), StoreError> {
    const THREAD: &str = "INSERT INTO threads (id, organization_id, partner_id, title, description, category, tags,
        start_time_ms, created_at_ms, updated_at_ms) VALUES ($1, $2, $3, $4, 'What belongs together.', $5, $6, $7, $8, $8)";
    const CHAPTER: &str =
        "INSERT INTO chapters (id, thread_id, title, position) VALUES ($1, $2, 'All of them', $3)";
    let (mut rows, mut chapters, mut terms) = (Vec::new(), Vec::new(), Vec::new());
    for number in 0..size.threads() {
        let id = format!("{THREADS}{number:012}");
        let (organization, partner) = owners_of(number);
        let texts = Texts {
            title: format!("Thread {number} of group w{}", number % 97),
            tags: vec![format!("tag{}", number % 11)],
            category: Some(category_of(number)),
        };
        let tags = serde_json::to_string(&texts.tags).map_err(|error| StoreError::unwritable(&error))?;
        let created = now.plus_ms(-i64::from(size.threads() - number) * 60_000);
        let start = now.plus_ms(i64::from(number % 1_009) * 3_600_000 - 2_000_000_000);
        add_terms(&mut terms, "thread", &id, &texts);
        chapters.push(params![format!("sized-chapter-{number}"), id.clone(), 0i64].to_vec());
        for further in 1..=if number == 0 { FURTHER_CHAPTERS } else { 0 } {
            chapters.push(params![format!("sized-chapter-{number}-{further}"), id.clone(), further].to_vec());
        }
        rows.push(
            params![id, organization, partner, texts.title, texts.category, tags, start, created].to_vec(),
        );
    }
    tx.exec_each(THREAD, &rows).await?;
    tx.exec_each(CHAPTER, &chapters).await?;
    put_terms(tx, &terms).await
}

fn add_terms(terms: &mut Vec<Vec<SqlValue<'static>>>, kind: &'static str, id: &str, texts: &Texts) {
    let rows = texts.weights().into_iter();
    terms.extend(rows.map(|(term, weight)| params![kind, id.to_owned(), term, weight].to_vec()));
}

async fn put_terms(tx: &mut Tx, terms: &[Vec<SqlValue<'_>>]) -> Result<(), StoreError> {
    const TERM: &str = "INSERT INTO search_terms (kind, id, term, weight) VALUES ($1, $2, $3, $4)";
    tx.exec_each(TERM, terms).await.map(drop)
}

async fn markets(tx: &mut Tx, numbers: Vec<u32>, now: Timestamp) -> Result<(), StoreError> {
    const MARKET: &str = "INSERT INTO markets (id, chain_id, contract_address, chain_market_id, question, description,
        category, tags, thread_id, organization_id, partner_id, chapter_id, status, fee_bps, liquidity_usdc_atomic,
        opening_cost_wad, cost_wad, volume_usdc_atomic, trade_count, payouts, end_time_ms, frozen_at_ms, resolved_at_ms,
        as_of_block, as_of_ms, created_at_ms, featured_position)
        VALUES ($1, 1, '0x0000000000000000000000000000000000000000', $2, $3, 'A description of some length, as
        descriptions are: what counts, who says so, and what happens if nobody does.', $4, '[]', $5, $6, $7, $8, $9, 0,
        $10, $11, $11, 0, 0, $12, $13, $14, $15, 0, $16, $17, $18)";
    const OUTCOME: &str = "INSERT INTO outcomes (market_id, outcome_index, label, opening_wad, quantity_wad,
        volume_usdc_atomic, trade_count) VALUES ($1, $2, $3, '0', $4, 0, 0)";
    const LISTED: &str = "INSERT INTO listed_markets (market_id, list_status, category, thread_id, organization_id,
        partner_id, chapter_id, tags, title_key, probability_ppm, volume_usdc_atomic, participants, end_time_ms,
        resolved_at_ms, created_at_ms) VALUES ($1, $2, $3, $4, $5, $6, $7, '[]', $8, $9, 0, 0, $10, $11, $12)";
    let unreadable = |_| StoreError::driver("a number is not written as it should be");
    let liquidity = Usdc::from_whole(LIQUIDITY_USDC);
    let cost: Wad = COST_WAD.parse().map_err(unreadable)?;
    let (mut rows, mut outcomes, mut listed, mut terms) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    for number in numbers {
        let id = format!("{MARKETS}{number:012}");
        let thread = number / OF_THREAD;
        let (thread_id, chapter) = (format!("{THREADS}{thread:012}"), format!("sized-chapter-{thread}"));
        let (organization, partner) = owners_of(thread);
        let status = status_of(number);
        let settled =
            matches!(status, "RESOLVED" | "CANCELLED").then(|| now.plus_ms(-i64::from(number) * 1_000));
        let payouts = (status == "RESOLVED").then_some(r#"["1000000000000000000","0"]"#);
        let frozen = settled.or((status == "FROZEN").then_some(now));
        let end = now.plus_ms(86_400_000 + i64::from(number * 31 % 10_007) * 600_000);
        let created = now.plus_ms(-i64::from(number) * 40_000);
        let texts = Texts {
            title: format!("Will w{} come to pass in case {number}?", number % 997),
            tags: Vec::new(),
            category: Some(category_of(number)),
        };
        // The lower the quantity is below the cost, the less likely is the outcome.
        let below = Usdc::from_atomic(1_000_000 + u64::from(number * 17 % 4_999) * 1_000_000);
        let quantity = cost.checked_sub(Wad::from_amount(below)).unwrap_or_default();
        let key = texts.title.to_lowercase();
        let ppm = if payouts.is_some() { 1_000_000 } else { probability_ppm(quantity, cost, liquidity) };
        add_terms(&mut terms, "market", &id, &texts);
        let category = texts.category;
        for (index, label) in [(0u8, "Yes"), (1, "No")] {
            outcomes.push(params![id.clone(), index, label, quantity].to_vec());
        }
        listed.push(
            params![
                id.clone(),
                status,
                category.clone(),
                thread_id.clone(),
                organization.clone(),
                partner.clone(),
                chapter.clone(),
                key,
                ppm,
                end,
                settled,
                created
            ]
            .to_vec(),
        );
        rows.push(
            params![
                id,
                number,
                texts.title,
                category,
                thread_id,
                organization,
                partner,
                chapter,
                status,
                liquidity,
                cost,
                payouts,
                end,
                frozen,
                settled,
                now,
                created,
                (number < MOST_FEATURED).then_some(number)
            ]
            .to_vec(),
        );
    }
    trust_references(tx).await?;
    tx.exec_each(MARKET, &rows).await?;
    tx.exec_each(OUTCOME, &outcomes).await?;
    tx.exec_each(LISTED, &listed).await?;
    put_terms(tx, &terms).await
}
