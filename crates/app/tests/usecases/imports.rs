//! Importing catalogs: completely or not at all if possible, and never twice.

use std::future::Future;
use std::pin::pin;
use std::task::Poll;

use app::import::{self, Catalog, Format, ImportAction, ImportError, ImportPlan};
use domain::ids::{MarketId, ThreadId};
use domain::{Timestamp, Usdc};
use store::Store;
use store::catalog::Thread;
use store::markets::{Market, Outcome};
use testkit::{Fault, TestApp, signer};

use crate::aggregates::organization;

const EXAMPLE: &str = include_str!("../../../../examples/catalog/catalog.yaml");

fn yaml(text: &str) -> Catalog {
    import::read(text, Format::Yaml).unwrap_or_else(|problems| panic!("{problems:?}"))
}

fn example() -> Catalog {
    yaml(EXAMPLE)
}

async fn started(store: Store) -> TestApp {
    TestApp::with().on(store).start().await
}

async fn run(app: &TestApp, catalog: &Catalog) -> Result<Vec<String>, ImportError> {
    let plan = import::plan(&app.ctx, catalog).await?;
    let mut done = Vec::new();
    let resolver = &app.roles.resolver;
    import::run(&app.ctx, &plan, resolver, None, &mut |step| {
        done.push(format!("{} {} {}", step.action.as_str(), step.kind, step.key()));
    })
    .await?;
    app.workers.synchronise(&app.ctx).await;
    Ok(done)
}

/// Returns the problems, one per line.
async fn refused(app: &TestApp, catalog: &Catalog) -> Vec<String> {
    match import::plan(&app.ctx, catalog).await {
        Err(ImportError::Refused(problems)) => problems.iter().map(ToString::to_string).collect(),
        other => panic!("{other:?}"),
    }
}

fn id_of(plan: &ImportPlan, key: &str) -> String {
    plan.steps.iter().find(|step| step.key() == key).unwrap().id().to_owned()
}

async fn plan(app: &TestApp, catalog: &Catalog) -> ImportPlan {
    import::plan(&app.ctx, catalog).await.unwrap()
}

fn everything_is(plan: &ImportPlan, action: ImportAction) -> bool {
    plan.count(action) == plan.steps.len()
}

/// Returns the markets on chain, newest first.
async fn markets(app: &TestApp) -> Vec<(Market, Vec<Outcome>)> {
    let page = domain::page::Page { limit: 100, after: None };
    let listed = app
        .ctx
        .store
        .read(page, |tx, page| {
            Box::pin(async move {
                store::markets::list(tx, &store::markets::MarketListFilter::default(), page).await
            })
        })
        .await;
    listed.unwrap()
}

async fn threads(app: &TestApp) -> Vec<Thread> {
    let listed =
        app.ctx.store.read((), |tx, ()| Box::pin(store::catalog::list_threads(tx, None, None, 100))).await;
    listed.unwrap()
}

/// Polls a future a number of times and then drops it, like a process that dies. Returns whether it
/// had finished.
async fn cut_short(mut polls: usize, future: impl Future) -> bool {
    let mut future = pin!(future);
    std::future::poll_fn(move |context| match polls.checked_sub(1) {
        None => Poll::Ready(false),
        Some(left) => {
            polls = left;
            future.as_mut().poll(context).map(|_| true)
        }
    })
    .await
}

store::on_each_engine! {
    async fn a_catalog_is_imported_once(store: Store) {
        let app = started(store).await;
        assert!(everything_is(&plan(&app, &example()).await, ImportAction::Create));
        let done = run(&app, &example()).await.unwrap();
        assert_eq!(done.len(), 9);
        assert_eq!(done[0], "create organization harbour");
        assert_eq!(done[8], "create market town-hall/bridge");

        let sent = app.faults.sent().len();
        assert!(everything_is(&plan(&app, &example()).await, ImportAction::Skip));
        run(&app, &example()).await.unwrap();
        assert_eq!(app.faults.sent().len(), sent, "nothing is asked of the chain");

        let made = markets(&app).await;
        assert_eq!((made.len(), threads(&app).await.len()), (3, 2));
        let (winner, outcomes) = made.iter().find(|(market, _)| market.question == "Who wins the cup?").unwrap();
        let labels: Vec<_> = outcomes.iter().map(|outcome| outcome.label.as_str()).collect();
        assert_eq!(labels, ["Albatross", "Bonito", "Cormorant", "Dolphin"]);
        assert_eq!((winner.liquidity, winner.fee_bps), (Usdc::from_whole(2_500), 150));
        assert_eq!(winner.end_time, "2030-08-20T10:00:00Z".parse::<Timestamp>().unwrap());
        assert_eq!(winner.featured_position, Some(1));
        assert_eq!(winner.source_url.as_deref(), Some("https://social.example/@regatta/1"));
        assert_eq!((winner.category.as_deref(), winner.tags.join(" ")), (Some("sports"), "sailing regatta".to_owned()));
        let regatta = threads(&app).await.into_iter().find(|thread| thread.category.as_deref() == Some("sports"));
        let regatta = regatta.unwrap();
        assert_eq!((winner.thread_id, winner.partner_id), (Some(regatta.id), regatta.partner_id));
        assert!(winner.chapter_id.is_some() && winner.organization_id.is_some());
        let (bridge, outcomes) = made.iter().find(|(market, _)| market.category.as_deref() == Some("local")).unwrap();
        assert_eq!(bridge.liquidity.atomic(), 1_000_500_000);
        assert!(outcomes[0].opening > outcomes[1].opening, "the odds are those of the file");
    }

    async fn changes_are_applied_and_forbidden_ones_are_rejected(store: Store) {
        let app = started(store).await;
        run(&app, &example()).await.unwrap();
        let ids = plan(&app, &example()).await;

        let mut changed = example();
        changed.organizations[0].name = "Harbour Daily".to_owned();
        changed.partners[0].active = false;
        changed.threads[0].category = Some("boats".to_owned());
        changed.chapters.swap(0, 1);
        changed.markets[0].featured = None;
        changed.markets[1].description = Some("Storms of **force 10**.".to_owned());
        changed.markets[2].thread = None;
        let done = run(&app, &changed).await.unwrap();
        let updated: Vec<_> = done.iter().filter_map(|line| line.strip_prefix("update ")).collect();
        assert_eq!(
            updated,
            [
                "organization harbour",
                "partner harbour/sports",
                "thread regatta-2030",
                "chapter regatta-2030/weather",
                "chapter regatta-2030/cup",
                // The thread provides its category.
                "market regatta-2030/winner",
                "market regatta-2030/storm",
                "market town-hall/bridge"
            ]
        );
        assert!(everything_is(&plan(&app, &changed).await, ImportAction::Skip));
        let made = markets(&app).await;
        let market = |key: &str| made.iter().find(|(market, _)| market.id.to_string() == id_of(&ids, key)).unwrap();
        assert_eq!(market("regatta-2030/winner").0.featured_position, None);
        assert_eq!(market("regatta-2030/storm").0.category.as_deref(), Some("boats"));
        assert_eq!(market("town-hall/bridge").0.organization_id, None);

        let mut wrong = changed.clone();
        wrong.markets[0].question = "Who loses the cup?".to_owned();
        wrong.markets[0].outcomes.swap(0, 1);
        wrong.markets[1].liquidity = "2000".into();
        wrong.markets[1].fee_bps = 5;
        wrong.markets[2].opening_odds = vec!["0.5".into(), "0.5".into()];
        wrong.organizations.push(import::OrganizationItem {
            key: "other".to_owned(),
            slug: "other".to_owned(),
            ..changed.organizations[0].clone()
        });
        wrong.partners[0].organization = "other".to_owned();
        wrong.chapters[0].thread = "town-hall".to_owned();
        let fixed = |path: &str| format!("{path}: cannot change: the market already exists");
        assert_eq!(
            refused(&app, &wrong).await,
            [
                "/partners/0/organization: cannot change: the organization of the partner is fixed".to_owned(),
                "/chapters/0/thread: cannot change: the thread of the chapter is fixed".to_owned(),
                fixed("/markets/0/question"),
                fixed("/markets/0/outcomes"),
                fixed("/markets/1/liquidity"),
                fixed("/markets/1/feeBps"),
                fixed("/markets/2/openingOdds"),
            ]
        );
        assert_eq!(markets(&app).await, made);
    }

    async fn equal_odds_in_another_notation_are_the_same_terms(store: Store) {
        let app = started(store).await;
        run(&app, &example()).await.unwrap();
        let mut same = example();
        same.markets[0].opening_odds = ["0.40", "0.300", "0.2", "0.10"].map(Into::into).to_vec();
        same.markets[0].liquidity = "2500.000000".into();
        assert!(everything_is(&plan(&app, &same).await, ImportAction::Skip));
    }

    async fn a_file_can_refer_to_entries_of_an_earlier_one(store: Store) {
        let app = started(store).await;
        run(&app, &example()).await.unwrap();
        let later = "
chapters:
  - {key: town-hall/roads, thread: town-hall, title: Roads}
markets:
  - {key: m, chapter: regatta-2030/cup, question: q, outcomes: [a, b], liquidity: 10, feeBps: 0, endTime: 2030-01-01T00:00:00Z}
";
        run(&app, &yaml(later)).await.unwrap();
        let made = markets(&app).await;
        assert_eq!(made.len(), 4);
        assert_eq!(made.iter().filter(|(market, _)| market.category.as_deref() == Some("sports")).count(), 3);
    }

    async fn a_new_market_has_the_current_owner_of_its_thread(store: Store) {
        let app = started(store).await;
        run(&app, &example()).await.unwrap();
        let known = plan(&app, &example()).await;
        let (club, thread) = (organization(&app, "club").await, id_of(&known, "regatta-2030").parse().unwrap());
        let change = move |thread: &mut Thread| {
            (thread.organization_id, thread.partner_id) = (Some(club), None);
            (thread.category, thread.tags) = (Some("boats".to_owned()), vec!["sails".to_owned()]);
        };
        app::catalog::change_thread(&app.ctx, thread, change).await.unwrap();
        assert!(everything_is(&plan(&app, &example()).await, ImportAction::Skip), "the file says what it said");

        let mut more = example();
        let new = import::MarketItem { key: "new".to_owned(), category: None, tags: None, ..more.markets[0].clone() };
        more.markets.push(new);
        let done = run(&app, &more).await.unwrap();
        assert_eq!(done.iter().filter(|line| !line.starts_with("skip ")).collect::<Vec<_>>(), ["create market new"]);
        let id: MarketId = id_of(&plan(&app, &more).await, "new").parse().unwrap();
        let made = markets(&app).await.into_iter().find(|(market, _)| market.id == id).unwrap().0;
        assert_eq!((made.thread_id, made.organization_id, made.partner_id), (Some(thread), Some(club), None));
        assert_eq!((made.category.as_deref(), made.tags.join(" ")), (Some("boats"), "sails".to_owned()));
        assert!(everything_is(&plan(&app, &more).await, ImportAction::Skip));
        app.assert_aggregates().await;
    }

    async fn a_thread_moved_after_the_plan_takes_its_new_markets(store: Store) {
        let app = started(store).await;
        run(&app, &example()).await.unwrap();
        let mut more = example();
        let new = import::MarketItem { key: "new".to_owned(), ..more.markets[0].clone() };
        more.markets.push(new);
        more.markets[1].description = Some("Storms of **force 10**.".to_owned());
        let stale = plan(&app, &more).await;
        let (club, thread) = (organization(&app, "club").await, id_of(&stale, "regatta-2030").parse().unwrap());
        let change = move |thread: &mut Thread| (thread.organization_id, thread.partner_id) = (Some(club), None);
        app::catalog::change_thread(&app.ctx, thread, change).await.unwrap();
        import::run(&app.ctx, &stale, &app.roles.resolver, None, &mut |_| ()).await.unwrap();
        app.workers.synchronise(&app.ctx).await;
        let of_thread = markets(&app).await.into_iter().filter(|(market, _)| market.thread_id == Some(thread));
        let owners: Vec<_> = of_thread.map(|(market, _)| (market.organization_id, market.partner_id)).collect();
        assert_eq!(owners, [(Some(club), None); 3]);
        app.assert_aggregates().await;
    }

    async fn an_ended_market_can_stay_in_the_file(store: Store) {
        let app = started(store).await;
        run(&app, &example()).await.unwrap();
        app.clock.advance(Timestamp::from_s(2_000_000_000).since_ms(app.ctx.now()));
        assert!(everything_is(&plan(&app, &example()).await, ImportAction::Skip));
        let mut more = example();
        let again = import::MarketItem { key: "again".to_owned(), ..more.markets[0].clone() };
        more.markets.push(again);
        assert_eq!(refused(&app, &more).await, ["/markets/3/endTime: must be in the future, got \"2030-08-20T10:00:00.000Z\""]);
    }

    async fn a_transaction_with_a_lost_answer_is_not_repeated(store: Store) {
        let app = started(store).await;
        for (skipped, fault) in [
            (0, Fault::LostRequest),
            (1, Fault::LostAnswer),
            (1, Fault::LostRequest),
            (2, Fault::LostAnswer),
        ] {
            app.faults.after(skipped, "eth_sendRawTransaction", fault);
            app.faults.next("eth_getTransactionReceipt", Fault::LostRequest);
            drop(run(&app, &example()).await);
            app.faults.heal();
        }
        run(&app, &example()).await.unwrap();
        assert!(everything_is(&plan(&app, &example()).await, ImportAction::Skip));
        assert_three_on_chain(&app).await;
    }

    async fn the_next_run_resumes_after_a_crash_anywhere(store: Store) {
        let app = started(store).await;
        let mut deaths = 0;
        for polls in 0.. {
            let catalog = numbered(polls);
            let ended = cut_short(polls, run(&app, &catalog)).await;
            // Writes of the dead run may still be in progress.
            if run(&app, &catalog).await.is_err() {
                run(&app, &catalog).await.unwrap();
            }
            assert!(everything_is(&plan(&app, &catalog).await, ImportAction::Skip), "after {polls} steps");
            if ended {
                break;
            }
            deaths += 1;
        }
        assert!(deaths >= 6, "a run is long enough to die at many places: {deaths}");
        let made = markets_of_all(&app).await;
        let mut numbers: Vec<_> = made.iter().map(|(market, _)| market.chain_market_id.unwrap()).collect();
        numbers.sort_unstable();
        let first = numbers[0];
        assert_eq!(numbers, (first..first + 2 * (deaths + 1)).collect::<Vec<_>>(), "each market is made once");
        assert_eq!(threads(&app).await.len() as u64, deaths + 1);
    }
}

/// Returns a small catalog of its own.
fn numbered(number: usize) -> Catalog {
    yaml(&format!(
        "
threads:
  - {{key: t{number}, title: t}}
markets:
  - &m {{key: m{number}, thread: t{number}, question: q, outcomes: [a, b], liquidity: 10, feeBps: 0, endTime: 2030-01-01T00:00:00Z}}
  - {{<<: *m, key: n{number}}}
"
    ))
}

async fn markets_of_all(app: &TestApp) -> Vec<(Market, Vec<Outcome>)> {
    app.workers.synchronise(&app.ctx).await;
    let made = markets(app).await;
    assert!(made.len() < 100, "one page holds them all");
    made
}

/// Asserts three markets, each with its own number, and no fourth one on chain.
async fn assert_three_on_chain(app: &TestApp) {
    app.workers.synchronise(&app.ctx).await;
    let made = markets(app).await;
    let mut numbers: Vec<_> = made.iter().map(|(market, _)| market.chain_market_id.unwrap()).collect();
    numbers.sort_unstable();
    numbers.dedup();
    assert_eq!((made.len(), numbers.len()), (3, 3));
    let mut more = example();
    more.markets.push(import::MarketItem { key: "next".to_owned(), ..more.markets[0].clone() });
    run(app, &more).await.unwrap();
    let next = markets(app).await.iter().filter_map(|(market, _)| market.chain_market_id).max();
    assert_eq!(next, Some(numbers[2] + 1), "the hub has made no other market");
}

#[tokio::test]
async fn missing_funding_for_a_market_creates_nothing() {
    let app = TestApp::new().await;
    let plan = plan(&app, &example()).await;
    assert!(plan.funding > Usdc::from_whole(4_000) && plan.funding < Usdc::from_whole(8_000));
    let poor = signer(77);
    let refusal = import::check_funding(&app.ctx, &plan, &poor, None).await.unwrap_err();
    let ImportError::Refused(problems) = refusal else { panic!("{refusal}") };
    assert_eq!(problems[0].path, "/markets");
    assert!(problems[0].detail.contains("the 3 new markets need up to"), "{}", problems[0]);
    import::run(&app.ctx, &plan, &poor, None, &mut |_| panic!("something was made")).await.unwrap_err();
    assert!(threads(&app).await.is_empty());
    assert!(markets(&app).await.is_empty());
    // A minter of test USDC provides what is missing.
    assert!(import::check_funding(&app.ctx, &plan, &poor, Some(&app.roles.deployer)).await.is_ok());
}

#[tokio::test]
async fn json_and_yaml_files_are_equivalent() {
    let app = TestApp::new().await;
    let json = serde_json::to_string_pretty(&example()).unwrap();
    let read = import::read(&json, Format::Json).unwrap();
    assert_eq!(read, example());
    run(&app, &read).await.unwrap();
    assert!(everything_is(&plan(&app, &example()).await, ImportAction::Skip));
}

#[tokio::test]
async fn changes_of_the_operator_stay_until_the_file_changes() {
    let app = TestApp::new().await;
    run(&app, &example()).await.unwrap();
    let id: ThreadId = id_of(&plan(&app, &example()).await, "town-hall").parse().unwrap();
    app::catalog::change_thread(&app.ctx, id, |thread| thread.title = "Corrected".to_owned()).await.unwrap();
    run(&app, &example()).await.unwrap();
    let title = |threads: Vec<Thread>| threads.into_iter().find(|thread| thread.id == id).unwrap().title;
    assert_eq!(title(threads(&app).await), "Corrected");
    let mut changed = example();
    changed.threads[1].tags.push("bridge".to_owned());
    let planned = plan(&app, &changed).await;
    let changes: Vec<_> = planned.steps.iter().filter(|step| !step.changed().is_empty()).collect();
    let changed_of: Vec<_> =
        changes.iter().map(|step| format!("{}: {}", step.key(), step.changed().join(" "))).collect();
    // The thread provides the market's tags.
    assert_eq!(changed_of, ["town-hall: tags title", "town-hall/bridge: tags"]);
    run(&app, &changed).await.unwrap();
    assert_eq!(title(threads(&app).await), "Town hall");
}

#[tokio::test]
async fn an_import_updates_the_listing_of_a_market() {
    let app = TestApp::new().await;
    run(&app, &example()).await.unwrap();
    let known = plan(&app, &example()).await;
    let id: MarketId = id_of(&known, "regatta-2030/winner").parse().unwrap();
    let town_hall: ThreadId = id_of(&known, "town-hall").parse().unwrap();
    let moved = app::catalog::change_market(&app.ctx, id, move |listing| {
        listing.thread_id = Some(town_hall);
        listing.featured_position = Some(7);
        listing.tags = vec!["moved".to_owned()];
    })
    .await
    .unwrap();
    assert_eq!((moved.thread_id, moved.chapter_id, moved.partner_id), (Some(town_hall), None, None));
    assert!(moved.organization_id.is_some());
    let (row, _) = app::markets::find(&app.ctx, id).await.unwrap().unwrap().as_ref().clone();
    assert_eq!((row.featured_position, row.tags.join(" ")), (Some(7), "moved".to_owned()));

    let cup = id_of(&known, "regatta-2030/cup");
    let back =
        app::catalog::change_market(&app.ctx, id, move |listing| listing.chapter_id = Some(cup.clone()));
    let back = back.await.unwrap();
    assert_eq!(
        back.thread_id.unwrap().to_string(),
        id_of(&known, "regatta-2030"),
        "a chapter names its thread"
    );
    let cup = back.chapter_id.unwrap();
    let wrong = app::catalog::change_market(&app.ctx, id, move |listing| {
        listing.thread_id = Some(town_hall);
        listing.chapter_id = Some(format!("{cup}x"));
    });
    assert!(wrong.await.is_err());
    let alone = app::catalog::change_market(&app.ctx, id, |listing| listing.thread_id = None).await.unwrap();
    assert_eq!((alone.organization_id, alone.partner_id, alone.chapter_id), (None, None, None));
    for position in [0, 1_000_001] {
        let change = app::catalog::change_market(&app.ctx, id, move |l| l.featured_position = Some(position));
        assert!(change.await.is_err(), "{position}");
    }
}
