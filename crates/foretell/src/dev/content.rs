//! Sample content of the demonstration: organizations, threads and markets, and the catalog that is
//! built from them.

use app::import::{Catalog, ChapterItem, Decimal, MarketItem, OrganizationItem, PartnerItem, ThreadItem};
use domain::Timestamp;
use domain::time::DAY_MS;

/// The state of a sample market after its first week.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SampleEnding {
    /// Still open for trading.
    Open,
    /// Frozen by the guardian.
    Frozen,
    /// Resolved to the outcome with this index.
    Resolved(usize),
    /// Cancelled, with refunds.
    Cancelled,
}

pub struct Organization {
    pub name: &'static str,
    pub slug: &'static str,
    pub description: &'static str,
    pub partners: &'static [(&'static str, &'static str)],
}

/// A thread. `organization` and `partner` are indexes; the window is in days relative to now.
pub struct Thread {
    pub title: &'static str,
    pub description: &'static str,
    pub category: &'static str,
    pub tags: &'static [&'static str],
    pub organization: usize,
    pub partner: Option<usize>,
    pub chapters: &'static [&'static str],
    pub starts_in_days: i64,
    pub ends_in_days: Option<i64>,
}

/// A market. `thread` and `chapter` are indexes, `odds` the opening odds in percent (equal if
/// empty), and `liquidity` is `b` in whole USDC.
pub struct Market {
    pub question: &'static str,
    pub thread: usize,
    pub chapter: usize,
    pub outcomes: &'static [&'static str],
    pub odds: &'static [u64],
    pub liquidity: u32,
    pub fee_bps: u16,
    pub ends_in_days: i64,
    pub ending: SampleEnding,
}

pub const ORGANIZATIONS: [Organization; 2] = [
    Organization {
        name: "Northlight Media",
        slug: "northlight",
        description: "A newsroom that lets its readers put a number on the news.",
        partners: &[
            ("Northlight Science", "northlight-science"),
            ("Northlight Politics", "northlight-politics"),
        ],
    },
    Organization {
        name: "Touchline Sports",
        slug: "touchline",
        description: "Match coverage for people who keep the score.",
        partners: &[("Touchline Football", "touchline-football")],
    },
];

/// Sample threads: active, upcoming and closed ones.
pub const THREADS: [Thread; 9] = [
    Thread {
        title: "The year in space",
        description: "Launches, landings and first light.\n\nEvery market closes **before** the event it asks about is decided. Results are taken from the agencies' own reports.",
        category: "science",
        tags: &["space", "launches"],
        organization: 0,
        partner: Some(0),
        chapters: &["Crewed flights", "Robots and telescopes"],
        starts_in_days: -30,
        ends_in_days: Some(300),
    },
    Thread {
        title: "Elections ahead",
        description: "Who governs next, and by how much.\n\n- Seats count as the electoral commission publishes them.\n- A market on turnout takes the final figure.",
        category: "politics",
        tags: &["elections"],
        organization: 0,
        partner: Some(1),
        chapters: &["Parliaments", "Presidents"],
        starts_in_days: -20,
        ends_in_days: None,
    },
    Thread {
        title: "Football, season finale",
        description: "Titles, relegation and the top scorers.",
        category: "sports",
        tags: &["football", "league"],
        organization: 1,
        partner: Some(0),
        chapters: &["The title", "The rest of the table"],
        starts_in_days: -60,
        ends_in_days: Some(90),
    },
    Thread {
        title: "Summer tournament",
        description: "Opens when the groups are drawn.",
        category: "sports",
        tags: &["football", "tournament"],
        organization: 1,
        partner: None,
        chapters: &["Groups"],
        starts_in_days: 30,
        ends_in_days: Some(120),
    },
    Thread {
        title: "The budget debate",
        description: "Opens with the first reading.",
        category: "politics",
        tags: &["budget"],
        organization: 0,
        partner: Some(1),
        chapters: &[],
        starts_in_days: 14,
        ends_in_days: Some(60),
    },
    Thread {
        title: "Meteor showers of next year",
        description: "Counts are those of the observers' network.",
        category: "science",
        tags: &["sky"],
        organization: 0,
        partner: Some(0),
        chapters: &[],
        starts_in_days: 45,
        ends_in_days: Some(400),
    },
    Thread {
        title: "The sample return",
        description: "One capsule, one landing. It is over.",
        category: "science",
        tags: &["space", "landing"],
        organization: 0,
        partner: Some(0),
        chapters: &[],
        starts_in_days: -60,
        ends_in_days: Some(-1),
    },
    Thread {
        title: "The first debate",
        description: "Both candidates, ninety minutes. It is over.",
        category: "politics",
        tags: &["elections", "debates"],
        organization: 0,
        partner: Some(1),
        chapters: &[],
        starts_in_days: -30,
        ends_in_days: Some(-2),
    },
    Thread {
        title: "The spring round",
        description: "The table as it stood after the last round.",
        category: "sports",
        tags: &["football", "league"],
        organization: 1,
        partner: Some(0),
        chapters: &["The last places"],
        starts_in_days: -90,
        ends_in_days: Some(-1),
    },
];

const YES_NO: &[&str] = &["Yes", "No"];

const fn binary(question: &'static str, thread: usize, chapter: usize, odds: &'static [u64]) -> Market {
    Market {
        question,
        thread,
        chapter,
        outcomes: YES_NO,
        odds,
        liquidity: 5_000,
        fee_bps: 100,
        ends_in_days: 60,
        ending: SampleEnding::Open,
    }
}

const fn many(
    question: &'static str,
    thread: usize,
    chapter: usize,
    outcomes: &'static [&'static str],
) -> Market {
    Market { outcomes, liquidity: 8_000, fee_bps: 150, ..binary(question, thread, chapter, &[]) }
}

const fn ended(market: Market, ending: SampleEnding) -> Market {
    Market { ending, ..market }
}

/// Indexes of the featured markets, in their order.
const FEATURED: [usize; 4] = [0, 7, 12, 15];

pub const MARKETS: [Market; 20] = [
    binary("Will the next crewed lunar flyby launch before July?", 0, 0, &[35, 65]),
    binary("Will a private station module reach orbit this year?", 0, 0, &[]),
    many(
        "Which vehicle flies the most missions this year?",
        0,
        1,
        &["Falcon 9", "Long March 2", "Electron", "Starship", "Another"],
    ),
    binary("Will the new infrared telescope publish first light by spring?", 0, 1, &[70, 30]),
    ended(binary("Does the sample capsule land intact?", 6, 0, &[80, 20]), SampleEnding::Resolved(0)),
    ended(binary("Is the crew rotation flown in its first window?", 0, 0, &[]), SampleEnding::Cancelled),
    binary("Does the governing coalition keep its majority?", 1, 0, &[45, 55]),
    many(
        "Who leads the largest parliamentary group?",
        1,
        0,
        &["Centre", "Left", "Right", "Greens", "Liberals", "Regional list", "Nobody above 20%"],
    ),
    binary("Is turnout above 70%?", 1, 0, &[]),
    many(
        "Who wins the presidential run-off?",
        1,
        1,
        &["The incumbent", "The challenger", "No run-off is held"],
    ),
    ended(binary("Is the first debate held as planned?", 7, 0, &[90, 10]), SampleEnding::Resolved(1)),
    ended(binary("Is the recount finished within the month?", 1, 1, &[]), SampleEnding::Frozen),
    many("Who wins the league?", 2, 0, &["Rovers", "Athletic", "City", "United"]),
    binary("Do the leaders stay unbeaten at home?", 2, 0, &[55, 45]),
    binary("Is the title decided before the last matchday?", 2, 0, &[]),
    many(
        "Who is the top scorer?",
        2,
        1,
        &["Okafor", "Lindqvist", "Moreau", "Tanaka", "Silva", "Another player"],
    ),
    binary("Does a promoted side finish in the top half?", 2, 1, &[20, 80]),
    ended(
        many("Who is relegated last?", 8, 0, &["Harbour", "Wanderers", "Albion", "County"]),
        SampleEnding::Resolved(2),
    ),
    ended(binary("Is the derby moved to Monday?", 2, 1, &[30, 70]), SampleEnding::Frozen),
    binary("Does the host nation win its group?", 3, 0, &[60, 40]),
];

/// Returns the content as an import catalog, with times relative to `end`.
pub fn catalogue(end: Timestamp) -> Catalog {
    let day = |days: i64| end.plus_ms(days * DAY_MS);
    Catalog {
        organizations: ORGANIZATIONS.iter().map(organization).collect(),
        partners: ORGANIZATIONS.iter().flat_map(partners).collect(),
        threads: THREADS.iter().zip(0..).map(|(of, index)| thread(of, index, &day)).collect(),
        chapters: THREADS.iter().zip(0..).flat_map(|(of, index)| chapters(of, index)).collect(),
        markets: MARKETS.iter().zip(0..).map(|(of, index)| market(of, index, &day)).collect(),
    }
}

fn organization(of: &Organization) -> OrganizationItem {
    OrganizationItem {
        key: of.slug.to_owned(),
        name: of.name.to_owned(),
        slug: of.slug.to_owned(),
        description: Some(of.description.to_owned()),
        logo: None,
        website: Some(format!("https://{}.example", of.slug)),
    }
}

fn partners(of: &Organization) -> impl Iterator<Item = PartnerItem> {
    of.partners.iter().map(|(name, slug)| PartnerItem {
        key: (*slug).to_owned(),
        organization: of.slug.to_owned(),
        name: (*name).to_owned(),
        slug: (*slug).to_owned(),
        description: None,
        logo: None,
        website: None,
        active: true,
    })
}

fn thread(of: &Thread, index: usize, day: &impl Fn(i64) -> Timestamp) -> ThreadItem {
    let organization = &ORGANIZATIONS[of.organization];
    let partner = of.partner.and_then(|index| organization.partners.get(index));
    ThreadItem {
        key: format!("thread-{index}"),
        title: of.title.to_owned(),
        organization: Some(organization.slug.to_owned()),
        partner: partner.map(|(_, slug)| (*slug).to_owned()),
        description: Some(of.description.to_owned()),
        image: None,
        background_image: None,
        category: Some(of.category.to_owned()),
        tags: of.tags.iter().map(|tag| (*tag).to_owned()).collect(),
        start_time: Some(day(of.starts_in_days)),
        end_time: of.ends_in_days.map(day),
    }
}

fn chapters(of: &Thread, thread: usize) -> impl Iterator<Item = ChapterItem> {
    of.chapters.iter().zip(0..).map(move |(title, index)| ChapterItem {
        key: chapter_key(thread, index),
        thread: format!("thread-{thread}"),
        title: (*title).to_owned(),
        position: None,
    })
}

fn chapter_key(thread: usize, chapter: usize) -> String {
    format!("thread-{thread}/chapter-{chapter}")
}

fn market(of: &Market, index: usize, day: &impl Fn(i64) -> Timestamp) -> MarketItem {
    let featured = FEATURED.iter().zip(1..).find(|(featured, _)| **featured == index);
    let has_chapter = of.chapter < THREADS[of.thread].chapters.len();
    MarketItem {
        key: format!("market-{index}"),
        question: of.question.to_owned(),
        outcomes: of.outcomes.iter().map(|label| (*label).to_owned()).collect(),
        opening_odds: of.odds.iter().map(|odds| Decimal(format!("0.{odds:02}"))).collect(),
        liquidity: Decimal(of.liquidity.to_string()),
        fee_bps: of.fee_bps,
        end_time: day(of.ends_in_days),
        thread: Some(format!("thread-{}", of.thread)),
        chapter: has_chapter.then(|| chapter_key(of.thread, of.chapter)),
        description: None,
        category: None,
        tags: None,
        featured: featured.map(|(_, place)| place),
        source_url: None,
    }
}

/// Names of the sample users. The first one has a key of every tier.
pub const USERS: [&str; 12] =
    ["ada", "bruno", "chiyo", "dara", "emil", "farah", "goran", "hana", "ines", "jonas", "kemal", "lena"];

#[cfg(test)]
mod tests {
    use domain::thread::ThreadStatus;

    use super::*;

    #[test]
    fn the_demonstration_has_three_threads_of_every_status() {
        let now = Timestamp::from_ms(1_800_000_000_000);
        let threads = catalogue(now).threads;
        for status in ThreadStatus::ALL {
            let of_status = threads
                .iter()
                .filter(|thread| ThreadStatus::at(now, thread.start_time, thread.end_time) == status);
            assert_eq!(of_status.count(), 3, "{status}");
        }
    }
}
