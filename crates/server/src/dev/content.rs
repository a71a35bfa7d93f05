//! What the demonstration is about: organizations, threads, markets. Data, and nothing else.

/// How a market of the demonstration ends its first week.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ending {
    /// Still traded.
    Open,
    /// Frozen by the guardian.
    Frozen,
    /// Resolved to this outcome.
    Resolved(usize),
    /// Called off, holders refunded.
    Cancelled,
}

/// An organization with its partners.
pub struct Organization {
    pub name: &'static str,
    pub slug: &'static str,
    pub description: &'static str,
    pub partners: &'static [(&'static str, &'static str)],
}

/// A thread: which organization and partner it belongs to, its chapters, and its window in days around now.
pub struct Thread {
    pub title: &'static str,
    pub description: &'static str,
    pub category: &'static str,
    pub tags: &'static [&'static str],
    pub organization: usize,
    pub partner: Option<usize>,
    pub chapters: &'static [&'static str],
    pub starts_in_days: i64,
    pub ends_in_days: i64,
}

/// A market: its thread and chapter, outcomes with opening odds in hundredths (all equal where empty), `b` in whole USDC.
pub struct Market {
    pub question: &'static str,
    pub thread: usize,
    pub chapter: usize,
    pub outcomes: &'static [&'static str],
    pub odds: &'static [u64],
    pub liquidity: u32,
    pub fee_bps: u16,
    pub ends_in_days: i64,
    pub ending: Ending,
}

/// The organizations.
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

/// The threads.
pub const THREADS: [Thread; 4] = [
    Thread {
        title: "The year in space",
        description: "Launches, landings and first light.\n\nEvery market closes before the event it asks about is decided.",
        category: "science",
        tags: &["space", "launches"],
        organization: 0,
        partner: Some(0),
        chapters: &["Crewed flights", "Robots and telescopes"],
        starts_in_days: -30,
        ends_in_days: 300,
    },
    Thread {
        title: "Elections ahead",
        description: "Who governs next, and by how much.",
        category: "politics",
        tags: &["elections"],
        organization: 0,
        partner: Some(1),
        chapters: &["Parliaments", "Presidents"],
        starts_in_days: -20,
        ends_in_days: 200,
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
        ends_in_days: 90,
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
        ends_in_days: 120,
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
        ending: Ending::Open,
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

const fn ended(market: Market, ending: Ending) -> Market {
    Market { ending, ..market }
}

/// The markets.
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
    ended(binary("Does the sample capsule land intact?", 0, 1, &[80, 20]), Ending::Resolved(0)),
    ended(binary("Is the crew rotation flown in its first window?", 0, 0, &[]), Ending::Cancelled),
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
    ended(binary("Is the first debate held as planned?", 1, 1, &[90, 10]), Ending::Resolved(1)),
    ended(binary("Is the recount finished within the month?", 1, 1, &[]), Ending::Frozen),
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
        many("Who is relegated last?", 2, 1, &["Harbour", "Wanderers", "Albion", "County"]),
        Ending::Resolved(2),
    ),
    ended(binary("Is the derby moved to Monday?", 2, 1, &[30, 70]), Ending::Frozen),
    binary("Does the host nation win its group?", 3, 0, &[60, 40]),
];

/// The names of the demonstration's users; the first has a key of every tier.
pub const USERS: [&str; 12] =
    ["ada", "bruno", "chiyo", "dara", "emil", "farah", "goran", "hana", "ines", "jonas", "kemal", "lena"];
