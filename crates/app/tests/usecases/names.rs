//! Titles of open threads, and questions within a thread, that people can take for each other.

use app::import::{self, Catalog, Format, ImportAction, ImportError};
use app::markets::NewMarket;
use app::{AppError, catalog};
use domain::Usdc;
use domain::ids::{MarketId, ThreadId};
use domain::time::MINUTE_MS;
use store::Store;
use store::catalog::Thread;
use testkit::TestApp;

use crate::aggregates::{put_under, thread};

/// Names that people can tell apart.
const DIFFERENT: [&str; 6] = ["C", "C++", "C#", "Выборы 2031", "Погода 2031", "天気 2031"];

/// Names and others that people can take for them.
const ALIKE: [(&str, &str); 5] = [
    ("José wins", "Jose\u{301} wins"),
    ("Town hall", " TOWN  hall "),
    ("Paris in May", "P\u{430}ris in May"),
    ("The cup", "\u{422}he cup"),
    ("Выборы", "ВЫБОРЫ"),
];

fn new_thread(app: &TestApp, title: &str) -> Thread {
    Thread {
        id: ThreadId(app.ctx.uuid()),
        organization_id: None,
        partner_id: None,
        title: title.to_owned(),
        description: None,
        image: None,
        background_image: None,
        category: None,
        tags: Vec::new(),
        start_time: None,
        end_time: None,
    }
}

async fn add(app: &TestApp, title: &str) -> Result<Thread, AppError> {
    catalog::add_thread(&app.ctx, new_thread(app, title)).await
}

async fn rename(app: &TestApp, id: ThreadId, title: &'static str) -> Result<Thread, AppError> {
    catalog::change_thread(&app.ctx, id, move |thread| thread.title = title.to_owned()).await
}

async fn create(app: &TestApp, thread_id: Option<ThreadId>, question: &str) -> Result<MarketId, AppError> {
    let new = NewMarket {
        question: question.to_owned(),
        thread_id,
        liquidity: Usdc::from_whole(10),
        ..testkit::market_of(app, &["Yes", "No"])
    };
    app::markets::create(&app.ctx, &app.roles.resolver, new).await.map(|created| created.id)
}

/// Approves the funding of another market: an import approves only what it needs.
async fn approve(app: &TestApp) {
    app::markets::fund(&app.ctx, &app.roles.resolver, None, Usdc::from_whole(100)).await.unwrap();
}

/// Returns the titles of all open threads, sorted.
async fn titles(app: &TestApp) -> Vec<String> {
    let now = app.ctx.now();
    let read = app.ctx.store.read(now, |tx, now| Box::pin(store::catalog::open_titles(tx, *now)));
    let mut titles: Vec<_> = read.await.unwrap().into_iter().map(|(_, title)| title).collect();
    titles.sort_unstable();
    titles
}

fn assert_fault(error: &AppError, pointer: &str, other: &str) {
    let fault = &error.extensions["errors"][0];
    assert_eq!(fault["pointer"], pointer, "{fault}");
    assert!(fault["detail"].as_str().is_some_and(|detail| detail.contains(other)), "{fault}");
}

fn yaml(text: &str) -> Catalog {
    import::read(text, Format::Yaml).unwrap_or_else(|problems| panic!("{problems:?}"))
}

/// Returns the problems of a catalog, sorted.
async fn refused(app: &TestApp, text: &str) -> Vec<String> {
    let error = import::plan(&app.ctx, &yaml(text)).await.unwrap_err();
    let ImportError::Refused(problems) = error.locate(text, Format::Yaml) else { panic!("{text}") };
    let mut problems: Vec<_> = problems.iter().map(ToString::to_string).collect();
    problems.sort_unstable();
    problems
}

async fn import(app: &TestApp, text: &str) -> Result<(), ImportError> {
    let plan = import::plan(&app.ctx, &yaml(text)).await?;
    import::run(&app.ctx, &plan, &app.roles.resolver, None, &mut |_| ()).await
}

store::on_each_engine! {
    async fn titles_of_open_threads_can_be_told_apart(store: Store) {
        let app = TestApp::with().on(store).start().await;
        for title in DIFFERENT {
            add(&app, title).await.unwrap();
        }
        for (first, second) in ALIKE {
            let made = add(&app, first).await.unwrap();
            let refused = add(&app, second).await.unwrap_err();
            assert_fault(&refused, "/title", &format!("the title of the thread {}", made.id));
        }
        assert_eq!(titles(&app).await.len(), DIFFERENT.len() + ALIKE.len());
    }

    async fn a_thread_can_be_renamed_and_opened_again_only_beside_other_titles(store: Store) {
        let app = TestApp::with().on(store).start().await;
        let end_time = Some(app.ctx.now().plus_ms(MINUTE_MS));
        let ending = Thread { end_time, ..new_thread(&app, "The cup") };
        let ending = catalog::add_thread(&app.ctx, ending).await.unwrap();
        add(&app, "The cup").await.unwrap_err();
        app.clock.advance(MINUTE_MS);
        let next = add(&app, "The cup").await.unwrap();

        let opened = catalog::change_thread(&app.ctx, ending.id, |thread| thread.end_time = None).await;
        assert_fault(&opened.unwrap_err(), "/title", &next.id.to_string());
        let other = add(&app, "The race").await.unwrap();
        let renamed = rename(&app, other.id, "\u{422}he cup").await.unwrap_err();
        assert_fault(&renamed, "/title", &next.id.to_string());
        assert_eq!(titles(&app).await, ["The cup", "The race"]);
        // A thread does not stand in its own way.
        rename(&app, next.id, "THE CUP").await.unwrap();
        rename(&app, ending.id, "The race").await.unwrap();
        rename(&app, next.id, "The final").await.unwrap();
        rename(&app, ending.id, "The cup").await.unwrap();
        catalog::change_thread(&app.ctx, ending.id, |thread| thread.end_time = None).await.unwrap();
        assert_eq!(titles(&app).await, ["The cup", "The final", "The race"]);
    }

    async fn equal_titles_of_an_older_version_do_not_prevent_other_changes(store: Store) {
        let app = TestApp::with().on(store).start().await;
        for _ in 0..2 {
            let old = new_thread(&app, "The cup");
            let insert = app.ctx.store.write(old, |tx, old| {
                Box::pin(store::catalog::insert_thread(tx, old, testkit::START))
            });
            insert.await.unwrap();
        }
        let read = app.ctx.store.read((), |tx, ()| Box::pin(store::catalog::list_threads(tx, None, None, 10)));
        for old in read.await.unwrap() {
            let change = |thread: &mut Thread| thread.description = Some("Of the year.".to_owned());
            catalog::change_thread(&app.ctx, old.id, change).await.unwrap();
        }
        import(&app, "threads: [{key: race, title: The race}]").await.unwrap();
        assert_eq!(titles(&app).await, ["The cup", "The cup", "The race"]);
    }

    async fn questions_of_a_thread_can_be_told_apart(store: Store) {
        let app = TestApp::with().on(store).start().await;
        let (one, two) = (thread(&app, None, "One").await, thread(&app, None, "Two").await);
        for question in DIFFERENT {
            create(&app, Some(one), question).await.unwrap();
        }
        for (first, second) in ALIKE {
            let made = create(&app, Some(one), first).await.unwrap();
            let sent = app.faults.sent().len();
            let refused = create(&app, Some(one), second).await.unwrap_err();
            assert_fault(&refused, "/question", &format!("the question of the market {made} in the same thread"));
            assert_eq!(app.faults.sent().len(), sent, "nothing is created on chain");
        }
        // In another thread and without one, any question is allowed.
        let moved = create(&app, Some(two), "\u{422}he cup").await.unwrap();
        create(&app, None, "The cup").await.unwrap();
        let change = catalog::change_market(&app.ctx, moved, move |listing| listing.thread_id = Some(one));
        assert_fault(&change.await.unwrap_err(), "/question", "in the same thread");
        put_under(&app, moved, None).await;
        put_under(&app, moved, Some(two)).await;
    }

    async fn a_cancelled_market_can_be_replaced(store: Store) {
        let app = TestApp::with().on(store).start().await;
        let one = thread(&app, None, "One").await;
        let old = app.market_with(&["Yes", "No"], |new| new.thread_id = Some(one)).await;
        let question = app.market_row(old).await.0.question;
        create(&app, Some(one), &question).await.unwrap_err();
        app.cancel(old).await;
        app.run_workers().await;
        create(&app, Some(one), &question).await.unwrap();
        create(&app, Some(one), &question).await.unwrap_err();
    }

    async fn an_interrupted_creation_is_finished_under_its_own_question(store: Store) {
        let app = TestApp::with().on(store).start().await;
        let one = thread(&app, None, "One").await;
        let id = MarketId(app.ctx.uuid());
        let new = NewMarket { id: Some(id), thread_id: Some(one), ..testkit::market_of(&app, &["Yes", "No"]) };
        for _ in 0..2 {
            app::markets::check_question(&app.ctx, &new).await.unwrap();
            app::markets::create(&app.ctx, &app.roles.resolver, new.clone()).await.unwrap();
        }
        let again = NewMarket { id: None, ..new };
        let refused = app::markets::check_question(&app.ctx, &again).await.unwrap_err();
        assert_fault(&refused, "/question", &id.to_string());
    }

    async fn a_catalog_with_names_alike_creates_nothing(store: Store) {
        let app = TestApp::with().on(store).start().await;
        let made = add(&app, "José wins").await.unwrap();
        let alike = "
threads:
  - {key: a, title: Jose\u{301} wins}
  - {key: b, title: The cup}
  - {key: c, title: \u{422}he cup}
markets:
  - &m {key: m, thread: b, question: Who wins, outcomes: [a, b], liquidity: 10, feeBps: 0, endTime: 2030-01-01T00:00:00Z}
  - {<<: *m, key: n, question: WHO wins}
  - {<<: *m, key: o, thread: c}
";
        assert_eq!(
            refused(&app, alike).await,
            [
                format!(
                    "line 3: /threads/0/title: must differ from the title of the thread {} in more than blanks, case and encoding, got \"Jose\u{301} wins\"",
                    made.id
                ),
                "line 5: /threads/2/title: must not look like the title of /threads/1: one of them has letters of another alphabet, got \"\u{422}he cup\"".to_owned(),
                "line 8: /markets/1/question: must differ from the question of /markets/0 in the same thread in more than blanks, case and encoding, got \"WHO wins\"".to_owned(),
            ]
        );
        assert_eq!(titles(&app).await, ["José wins"]);
    }

    async fn a_later_file_neither_renames_nor_repeats_what_an_earlier_one_made(store: Store) {
        const FIRST: &str = "
threads:
  - {key: c, title: C}
  - {key: c-plus-plus, title: C++}
  - {key: c-sharp, title: \"C#\"}
  - {key: elections, title: Выборы 2031}
  - {key: weather, title: Погода 2031}
markets:
  - {key: m, thread: elections, question: Кто победит, outcomes: [a, b], liquidity: 10, feeBps: 0, endTime: 2030-01-01T00:00:00Z}
";
        let app = TestApp::with().on(store).start().await;
        import(&app, FIRST).await.unwrap();
        app.workers.synchronise(&app.ctx).await;
        let again = import::plan(&app.ctx, &yaml(FIRST)).await.unwrap();
        assert_eq!(again.count(ImportAction::Skip), 6);
        let made = titles(&app).await;
        assert_eq!(made, ["C", "C#", "C++", "Выборы 2031", "Погода 2031"]);

        let second = "
threads:
  - {key: other, title: ВЫБОРЫ 2031}
markets:
  - {key: n, thread: elections, question: КТО победит, outcomes: [a, b], liquidity: 10, feeBps: 0, endTime: 2030-01-01T00:00:00Z}
";
        let problems = refused(&app, second).await;
        assert_eq!(problems.len(), 2, "{problems:?}");
        assert!(problems[0].starts_with("line 3: /threads/0/title: must differ from the title of the thread "));
        assert!(problems[1].starts_with("line 5: /markets/0/question: must differ from the question of the market "));
        assert_eq!(titles(&app).await, made);
    }

    async fn a_name_that_appears_after_the_plan_stops_the_run(store: Store) {
        let app = TestApp::with().on(store).start().await;
        let file = yaml("threads: [{key: a, title: The race}, {key: b, title: Paris}]");
        let plan = import::plan(&app.ctx, &file).await.unwrap();
        let made = add(&app, "P\u{430}ris").await.unwrap();
        let run = import::run(&app.ctx, &plan, &app.roles.resolver, None, &mut |_| ()).await;
        let Err(ImportError::Failed(error)) = run else { panic!("{run:?}") };
        assert_fault(&error, "/title", &made.id.to_string());
        assert_eq!(titles(&app).await, ["P\u{430}ris"]);
    }

    async fn a_moved_market_meets_a_question_that_appeared_after_the_plan(store: Store) {
        const FILE: &str = "
threads: [{key: cup, title: The cup}, {key: race, title: The race}]
markets:
  - {key: m, thread: cup, question: Who wins?, outcomes: [a, b], liquidity: 10, feeBps: 0, endTime: 2030-01-01T00:00:00Z}
";
        let app = TestApp::with().on(store).start().await;
        import(&app, FILE).await.unwrap();
        app.workers.synchronise(&app.ctx).await;
        let now = app.ctx.now();
        let read = app.ctx.store.read(now, |tx, now| Box::pin(store::catalog::open_titles(tx, *now)));
        let race = read.await.unwrap().into_iter().find(|(_, title)| title == "The race").unwrap().0;
        let plan = import::plan(&app.ctx, &yaml(&FILE.replace("thread: cup", "thread: race"))).await.unwrap();
        approve(&app).await;
        let made = create(&app, Some(race), "WHO wins?").await.unwrap();
        let run = import::run(&app.ctx, &plan, &app.roles.resolver, None, &mut |_| ()).await;
        let Err(ImportError::Failed(error)) = run else { panic!("{run:?}") };
        assert_fault(&error, "/question", &made.to_string());
    }

    async fn a_file_changes_a_market_beside_one_with_the_same_question(store: Store) {
        const MOVE: &str = "UPDATE markets SET thread_id = (SELECT id FROM threads)";
        const FILE: &str = "
threads: [{key: cup, title: The cup}]
markets:
  - {key: m, thread: cup, question: Who wins?, outcomes: [a, b], liquidity: 10, feeBps: 0, endTime: 2030-01-01T00:00:00Z}
";
        let app = TestApp::with().on(store).start().await;
        import(&app, FILE).await.unwrap();
        app.workers.synchronise(&app.ctx).await;
        // As an older version allowed.
        approve(&app).await;
        create(&app, None, "Who wins?").await.unwrap();
        let moved = app.ctx.store.write((), |tx, ()| Box::pin(tx.exec(MOVE, &[]))).await;
        assert_eq!(moved.unwrap(), 2);
        import(&app, &FILE.replace("question:", "description: The final., question:")).await.unwrap();
    }

    async fn of_two_concurrent_names_one_is_refused(store: Store) {
        let app = TestApp::with().on(store).start().await;
        let (one, two) = tokio::join!(add(&app, "Paris"), add(&app, "P\u{430}ris"));
        assert_eq!([one.is_ok(), two.is_ok()].into_iter().filter(|is_ok| *is_ok).count(), 1);
        let thread = Some(one.or(two).unwrap().id);
        let (one, two) = tokio::join!(create(&app, thread, "Who wins?"), create(&app, thread, "Who  WINS?"));
        assert_eq!([one.is_ok(), two.is_ok()].into_iter().filter(|is_ok| *is_ok).count(), 1);
    }
}
