//! A hundred invalid catalogs: each is a valid one with one replacement. None of them creates
//! anything, and each reports the problem and its place.

use app::import::{self, Format, ImportError, ImportProblem};
use testkit::{TestApp, market_of};

const EXAMPLE: &str = include_str!("../../../../examples/catalog/catalog.yaml");

/// The text in the example, and its replacement.
const EDITS: [(&str, &str); 105] = [
    // Invalid YAML.
    ("organizations:", "organizations: ["),
    ("organizations:", "organizations"),
    ("  - key: harbour\n", "\t- key: harbour\n"),
    ("name: Harbour Weekly", "name: \"Harbour Weekly"),
    ("name: Harbour Weekly", "name: Harbour: Weekly"),
    ("name: Harbour Weekly", "name: *harbour"),
    ("organizations:", "---\norganizations: []\n---\norganizations:"),
    ("\npartners:", "\norganizations:"),
    ("# A small", "- A small"),
    // Wrong type.
    ("organizations:", "organisations:"),
    ("partners:", "partner:"),
    ("threads:", "threads: {}\nx:"),
    ("markets:", "markets: 3\nx:"),
    ("name: Harbour Weekly", "name: [Harbour, Weekly]"),
    ("name: Harbour Weekly", "name: {en: Harbour Weekly}"),
    ("name: Harbour Weekly", "title: Harbour Weekly"),
    ("name: Harbour Weekly", "id: 7\n    name: Harbour Weekly"),
    ("name: Harbour Weekly", "key: again\n    name: Harbour Weekly"),
    ("    slug: harbour-weekly\n", ""),
    ("  - key: harbour\n    name", "  - name"),
    ("    organization: harbour\n", ""),
    ("slug: harbour-sports", "slug: harbour-sports\n    active: perhaps"),
    ("slug: harbour-sports", "slug: harbour-sports\n    active: yes"),
    ("title: Town hall", "subtitle: Town hall"),
    ("tags: [sailing, regatta]", "tags: sailing"),
    ("tags: [sailing, regatta]", "tags: [[sailing]]"),
    ("startTime: 2026-01-01T00:00:00Z", "startTime: 2026-01-01"),
    ("startTime: 2026-01-01T00:00:00Z", "startTime: 1767225600"),
    ("startTime: 2026-01-01T00:00:00Z", "startTime: 2026-13-01T00:00:00Z"),
    ("startTime: 2026-01-01T00:00:00Z", "start_time: 2026-01-01T00:00:00Z"),
    ("endTime: 2030-09-01T00:00:00Z", "endTime: 2030-09-01T00:00:00"),
    ("title: The cup", "title: The cup\n    position: -1"),
    ("title: The cup", "title: The cup\n    position: first"),
    ("title: The cup", "title: The cup\n    position: 4294967296"),
    ("    thread: regatta-2030\n", ""),
    ("outcomes: [Yes, No]", "outcomes: Yes"),
    ("outcomes: [Yes, No]", "outcomes: {Yes: 0.5, No: 0.5}"),
    ("    outcomes: [Yes, No]\n", ""),
    ("    question: Who wins the cup?\n", ""),
    ("    liquidity: 2500\n", ""),
    ("    feeBps: 150\n", ""),
    ("    endTime: 2030-12-01T00:00:00Z\n", ""),
    ("feeBps: 150", "feeBps: 1.5"),
    ("feeBps: 150", "feeBps: -1"),
    ("feeBps: 150", "feeBps: 65536"),
    ("liquidity: 2500", "liquidity: [2500]"),
    ("liquidity: 2500", "liquidity: true"),
    ("liquidity: 1000.50", "liquidity: 1234567890123.123456"),
    ("openingOdds: [0.4,", "openingOdds: [0.3333333333333333333,"),
    ("openingOdds: [0.4,", "openingOdds: [.nan,"),
    ("featured: 1", "featured: true"),
    ("featured: 1", "featured: 1st"),
    ("featured: 1", "featured: -1"),
    ("sourceUrl:", "sourceTweetUrl:"),
    // Wrong format.
    ("name: Harbour Weekly", "name: \"  \""),
    ("name: Harbour Weekly", "name: \"\\0\""),
    ("slug: harbour-weekly", "slug: Harbour Weekly"),
    ("slug: harbour-weekly", "slug: \"\""),
    ("logo: https://harbour.example/logo.png", "logo: /logo.png"),
    ("logo: https://harbour.example/logo.png", "logo: javascript:alert(1)"),
    ("website: https://harbour.example", "website: \"https://harbour example\""),
    ("image: https://harbour.example/regatta.jpg", "image: \"data:image/png;base64,AA==\""),
    ("backgroundImage: https://", "backgroundImage: ftp://"),
    ("sourceUrl: https://social.example/@regatta/1", "sourceUrl: social.example"),
    ("- key: harbour\n", "- key: \"\"\n"),
    ("- key: harbour\n", "- key: harbour weekly\n"),
    ("- key: harbour\n", "- key: -harbour\n"),
    ("- key: harbour\n", "- key: hafen-köln\n"),
    ("tags: [council]", "tags: [\"\"]"),
    ("tags: [council]", "tags: [council, \" \"]"),
    ("category: politics", "category: \"\""),
    ("title: Town hall", "title: \"\""),
    ("title: The cup", "title: \" \""),
    ("endTime: 2030-09-01T00:00:00Z", "endTime: 2026-01-01T00:00:00Z"),
    ("endTime: 2030-09-01T00:00:00Z", "endTime: 2025-09-01T00:00:00Z"),
    ("question: Who wins the cup?", "question: \"\""),
    ("outcomes: [Yes, No]", "outcomes: [Yes]"),
    ("outcomes: [Yes, No]", "outcomes: []"),
    ("outcomes: [Yes, No]", "outcomes: [Yes, \"\"]"),
    ("outcomes: [Yes, No]", "outcomes: [Yes, Yes]"),
    ("outcomes: [Yes, No]", "outcomes: [Yes, \" yes\"]"),
    ("outcomes: [Yes, No]", "outcomes: [Yes, \"No\\u202e\"]"),
    ("question: Who wins the cup?", "question: \"Who wins\\e[1m the cup?\""),
    ("tags: [council]", "tags: [\"council, town\"]"),
    ("openingOdds: [0.4, 0.3, 0.2, 0.1]", "openingOdds: [0.4, 0.3, 0.2]"),
    ("openingOdds: [0.4, 0.3, 0.2, 0.1]", "openingOdds: [0.4, 0.3, 0.2, 0.2]"),
    ("openingOdds: [0.4, 0.3, 0.2, 0.1]", "openingOdds: [0.4, 0.3, 0.2, 0.099999]"),
    ("openingOdds: [0.4, 0.3, 0.2, 0.1]", "openingOdds: [0.7, 0.3, 0, 0]"),
    ("openingOdds: [0.4, 0.3, 0.2, 0.1]", "openingOdds: [40, 30, 20, 10]"),
    ("openingOdds: [0.4, 0.3, 0.2, 0.1]", "openingOdds: [-0.4, 0.8, 0.5, 0.1]"),
    ("openingOdds: [0.4, 0.3, 0.2, 0.1]", "openingOdds: [40%, 30%, 20%, 10%]"),
    ("liquidity: 2500", "liquidity: 0"),
    ("liquidity: 2500", "liquidity: -2500"),
    ("liquidity: 2500", "liquidity: \"2,500\""),
    ("liquidity: 1000.50", "liquidity: 1000.1234567"),
    ("liquidity: 2500", "liquidity: \"999999999999999\""),
    ("feeBps: 150", "feeBps: 1001"),
    ("endTime: 2030-12-01T00:00:00Z", "endTime: 2026-12-01T00:00:00Z"),
    ("endTime: 2030-12-01T00:00:00Z", "endTime: 2107-01-01T00:00:00Z"),
    ("featured: 1", "featured: 0"),
    // References to missing items, or duplicate names.
    ("- key: harbour/sports", "- key: harbour/news"),
    ("organization: harbour\n    name", "organization: port\n    name"),
    ("- key: town-hall\n", "- key: regatta-2030\n"),
    (
        "slug: harbour-sports",
        "slug: harbour-sports\n  - {key: again, organization: harbour, name: A, slug: harbour-sports}",
    ),
    ("chapter: regatta-2030/weather", "thread: town-hall\n    chapter: regatta-2030/weather"),
];

fn edited(from: &str, to: &str) -> String {
    assert!(EXAMPLE.contains(from), "{from:?} stands in the example");
    EXAMPLE.replacen(from, to, 1)
}

async fn told(app: &TestApp, text: &str) -> String {
    let lines = |problems: Vec<ImportProblem>| {
        problems.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n    ")
    };
    let catalog = match import::read(text, Format::Yaml) {
        Ok(catalog) => catalog,
        Err(problems) => return lines(problems),
    };
    match import::plan(&app.ctx, &catalog).await {
        Err(ImportError::Refused(problems)) => lines(problems),
        other => panic!("{text}\n{other:?}"),
    }
}

#[tokio::test]
async fn each_error_is_reported_with_its_place() {
    let app = TestApp::new().await;
    let sent = app.faults.sent().len();
    let mut all = String::new();
    for (from, to) in EDITS {
        let text = edited(from, to);
        let told = told(&app, &text).await;
        all.push_str(&format!("{from:?} -> {to:?}\n    {told}\n"));
    }
    insta::assert_snapshot!(all);
    assert_eq!(app.faults.sent().len(), sent);
    let rows =
        app.ctx.store.read((), |tx, ()| Box::pin(store::catalog::list_organizations(tx, None, 10))).await;
    assert!(rows.unwrap().is_empty(), "nothing was made");
}

#[tokio::test]
async fn all_errors_are_reported_at_once() {
    let app = TestApp::new().await;
    let edits = [
        ("slug: harbour-weekly", "slug: Harbour"),
        ("logo: https://harbour.example/logo.png", "logo: logo.png"),
        ("partner: harbour/sports", "partner: nobody"),
        ("liquidity: 2500", "liquidity: 0.5"),
        ("openingOdds: [0.4,", "openingOdds: [0.5,"),
        ("endTime: 2030-12-01T00:00:00Z", "endTime: 2020-12-01T00:00:00Z"),
        ("category: local", "featured: 0"),
    ];
    let text = edits.iter().fold(EXAMPLE.to_owned(), |text, (from, to)| text.replacen(from, to, 1));
    insta::assert_snapshot!(told(&app, &text).await, @r#"
    /organizations/0/slug: must be lower-case words of a-z and 0-9 joined by hyphens, at most 100 characters, got "Harbour"
        /organizations/0/logo: must be an http or https address of at most 2000 characters, got "logo.png"
        /threads/0/partner: must be the key of a known partner, in this file or in a file imported earlier, got "nobody"
        /markets/0/openingOdds: must sum to exactly 1
        /markets/0/liquidity: must be at least 1 USDC, got "0.5"
        /markets/2/featured: must be a position from 1 to 1000000, got "0"
        /markets/2/endTime: must be in the future, got "2020-12-01T00:00:00.000Z"
    "#);
}

#[tokio::test]
async fn a_catalog_has_size_limits() {
    let app = TestApp::new().await;
    let line = |n: usize| format!("  - {{key: t{n}, title: t}}\n");
    let text = format!("threads:\n{}", (0..10_001).map(line).collect::<String>());
    assert_eq!(told(&app, &text).await, "the file: must have at most 10000 items, got 10001");
}

#[tokio::test]
async fn outcomes_do_not_look_like_each_other() {
    let app = TestApp::new().await;
    let check = |labels: &[&str]| app::markets::check(&market_of(&app, labels), app.ctx.now());
    // With a Cyrillic letter.
    check(&["Paris", "P\u{430}ris"]).unwrap_err();
    // Two words of one alphabet, and two of two.
    for labels in [["Modern", "Modem"], ["Moskva", "\u{41c}\u{43e}\u{441}\u{43a}\u{432}\u{430}"]] {
        check(&labels).unwrap();
    }
}
