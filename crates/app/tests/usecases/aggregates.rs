//! Aggregates over markets and movements: updated at once, taken back with reorganized blocks, and
//! rebuilt from nothing.

use alloy_primitives::U256;
use app::catalog;
use app::leaderboard::{Ranked, leaderboard};
use app::ledger::aggregates::{AggregatesVerification, rebuild, verify};
use domain::ids::{MarketId, OrganizationId, ThreadId};
use domain::time::{DAY_MS, HOUR_MS};
use domain::{Usdc, UsdcDelta};
use store::Store;
use store::catalog::{Organization, Thread};
use store::listed::{ListStatus, ScopeKind, Totals};
use store::public::{
    LeaderSort, ListedMarket, MarketFilter, MarketSort, Order, PageRange, RankingWindow, ThreadFilter,
    ThreadSort, Timeframe, TrendingMarket,
};
use store::traders::kept::Kept;
use testkit::{TestApp, TestMarket};

use crate::scene::Scene;

pub async fn organization(app: &TestApp, slug: &str) -> OrganizationId {
    let id = OrganizationId(app.ctx.uuid());
    let organization = Organization {
        id,
        name: slug.to_owned(),
        slug: slug.to_owned(),
        description: None,
        logo: None,
        website: None,
    };
    catalog::add_organization(&app.ctx, organization).await.unwrap();
    id
}

pub async fn thread(app: &TestApp, organization_id: Option<OrganizationId>, title: &str) -> ThreadId {
    let id = ThreadId(app.ctx.uuid());
    let thread = Thread {
        id,
        organization_id,
        partner_id: None,
        title: title.to_owned(),
        description: None,
        image: None,
        background_image: None,
        category: None,
        tags: vec!["cup".to_owned()],
        start_time: None,
        end_time: None,
    };
    catalog::add_thread(&app.ctx, thread).await.unwrap();
    id
}

pub async fn put_under(app: &TestApp, market: MarketId, thread_id: Option<ThreadId>) {
    catalog::change_market(&app.ctx, market, move |listing| listing.thread_id = thread_id).await.unwrap();
}

pub async fn totals(app: &TestApp, kind: ScopeKind, id: impl ToString) -> Totals {
    let read = app
        .ctx
        .store
        .read((kind, id.to_string()), |tx, (kind, id)| Box::pin(store::listed::find_totals(tx, *kind, id)))
        .await;
    read.unwrap()
}

async fn listed(app: &TestApp, market: TestMarket) -> ListedMarket {
    let read = app.ctx.store.read(market.id, |tx, id| Box::pin(store::public::get_market(tx, *id))).await;
    read.unwrap().expect("the market is listed")
}

async fn trending(app: &TestApp, window: RankingWindow) -> Vec<(MarketId, u64, u64, u64)> {
    let read = app
        .ctx
        .store
        .read(window, |tx, window| Box::pin(store::public::list_trending(tx, *window, None, 10)))
        .await;
    let row = |m: TrendingMarket| (m.listed.market.id, m.trade_count, m.volume.atomic(), m.unique_traders);
    read.unwrap().into_iter().map(row).collect()
}

async fn leaders(app: &TestApp, timeframe: Timeframe, sort: LeaderSort) -> Vec<Ranked> {
    let extent = PageRange { limit: 10, offset: 0 };
    // Another process, with an empty cache.
    leaderboard(&app.ctx_of_another_process(), timeframe, sort, extent).await.unwrap().items
}

/// Returns every stored aggregate. Rows of zeros count as missing.
async fn sums(app: &TestApp) -> Kept {
    let read = app.ctx.store.read((), |tx, ()| Box::pin(store::traders::kept::all(tx))).await;
    let (mut sums, _) = read.unwrap();
    sums.retain(|_, row| row.iter().any(|n| *n != 0));
    sums
}

async fn spoil(app: &TestApp, sql: &'static str) -> AggregatesVerification {
    let spoilt = app.ctx.store.write((), move |tx, ()| Box::pin(tx.exec(sql, &[]))).await;
    assert!(spoilt.unwrap() > 0, "{sql}");
    verify(&app.ctx).await.unwrap()
}

/// Ranking is expensive, so it runs at most once in five seconds.
#[tokio::test]
async fn a_leaderboard_is_at_most_five_seconds_old() {
    let Scene { app, key, market, .. } = Scene::new().await;
    let volumes = async |sort| {
        let page = PageRange { limit: 10, offset: 0 };
        let read = leaderboard(&app.ctx, Timeframe::All, sort, page).await.unwrap();
        let volumes: Vec<_> = read.items.iter().map(|ranked| ranked.leader.volume).collect();
        assert_eq!(read.total, volumes.len() as u64);
        volumes
    };
    let usdc = |whole: u32| vec![Usdc::from_whole(whole)];
    assert_eq!(volumes(LeaderSort::Volume).await, []);
    key.buy(&market, 0, "10").await;
    app.run_workers().await;
    // Another order is another leaderboard.
    assert_eq!(volumes(LeaderSort::Realized).await, usdc(10));
    app.clock.advance(4_999);
    assert_eq!(volumes(LeaderSort::Volume).await, []);
    app.clock.advance(1);
    assert_eq!(volumes(LeaderSort::Volume).await, usdc(10));
}

store::on_each_engine! {
    async fn the_sums_of_a_market_move_with_its_thread(store: Store) {
        let Scene { app, key, market, .. } = Scene::on(store).await;
        let other = app.market_with(&["Yes", "No"], |new| new.question = "Will it last?".to_owned()).await;
        let (club, league) = (organization(&app, "club").await, organization(&app, "league").await);
        let (one, two) = (thread(&app, Some(club), "One").await, thread(&app, Some(league), "Two").await);
        put_under(&app, market.id, Some(one)).await;
        put_under(&app, other.id, Some(one)).await;
        key.buy(&market, 0, "10").await;
        key.buy(&other, 0, "5").await;
        app.stranger_buys(market, 1, "20").await;
        app.run_workers().await;
        let sums = |markets, usdc, participants| Totals { markets, volume: Usdc::from_whole(usdc), participants };
        // Ada trades in both markets and is counted once.
        assert_eq!(totals(&app, ScopeKind::Thread, one).await, sums(2, 35, 2));
        assert_eq!(totals(&app, ScopeKind::Organization, club).await, sums(2, 35, 2));
        assert_eq!(listed(&app, market).await.participants, 2);

        put_under(&app, market.id, Some(two)).await;
        assert_eq!(totals(&app, ScopeKind::Thread, one).await, sums(1, 5, 1));
        assert_eq!(totals(&app, ScopeKind::Thread, two).await, sums(1, 30, 2));
        assert_eq!(totals(&app, ScopeKind::Organization, league).await, sums(1, 30, 2));
        app.assert_aggregates().await;

        // A thread's markets move to another organization with it.
        catalog::change_thread(&app.ctx, two, move |thread| thread.organization_id = Some(club)).await.unwrap();
        assert_eq!(totals(&app, ScopeKind::Organization, club).await, sums(2, 35, 2));
        assert_eq!(totals(&app, ScopeKind::Organization, league).await, sums(0, 0, 0));
        put_under(&app, market.id, None).await;
        assert_eq!(totals(&app, ScopeKind::Organization, club).await, sums(1, 5, 1));
        app.stranger_buys(other, 0, "1").await;
        app.run_workers().await;
        assert_eq!(totals(&app, ScopeKind::Thread, one).await, sums(1, 6, 2));
        app.assert_ledger_equals_chain().await;
    }

    async fn a_window_counts_only_the_trades_of_its_time(store: Store) {
        let Scene { app, key, market, .. } = Scene::on(store).await;
        key.buy(&market, 0, "10").await;
        app.run_workers().await;
        app.stranger_buys(market, 1, "20").await;
        app.run_workers().await;
        for window in RankingWindow::ALL {
            assert_eq!(trending(&app, window).await, [(market.id, 2, 30_000_000, 2)]);
        }
        app.advance_ms(HOUR_MS + 600_000).await;
        key.buy(&market, 0, "1").await;
        app.run_workers().await;
        assert_eq!(trending(&app, RankingWindow::OneHour).await, [(market.id, 1, 1_000_000, 1)]);
        assert_eq!(trending(&app, RankingWindow::OneDay).await, [(market.id, 3, 31_000_000, 2)]);
        app.assert_aggregates().await;
        app.advance_ms(DAY_MS + 600_000).await;
        app.run_workers().await;
        assert_eq!(trending(&app, RankingWindow::OneDay).await, []);
        assert_eq!(trending(&app, RankingWindow::SevenDays).await, [(market.id, 3, 31_000_000, 2)]);
        app.advance_ms(7 * DAY_MS).await;
        app.run_workers().await;
        assert_eq!(trending(&app, RankingWindow::SevenDays).await, []);
        app.assert_aggregates().await;
    }

    async fn a_frozen_market_does_not_trend(store: Store) {
        let Scene { app, key, market, .. } = Scene::on(store).await;
        key.buy(&market, 0, "10").await;
        app.run_workers().await;
        app.freeze(market).await;
        app.run_workers().await;
        assert_eq!(trending(&app, RankingWindow::OneHour).await, []);
        app.unfreeze(market).await;
        app.run_workers().await;
        assert_eq!(trending(&app, RankingWindow::OneHour).await.len(), 1);
    }

    async fn leaders_are_ranked_by_total_or_realized_profit(store: Store) {
        let Scene { app, ada, key, market } = Scene::on(store).await;
        let bob = app.user("bob").funded("1000").await;
        let bobs = app.key(&bob, domain::key::Tier::Mm).await;
        for (key, usdc) in [(&key, "10"), (&bobs, "10")] {
            key.buy(&market, 0, usdc).await;
            app.run_workers().await;
        }
        app.stranger_buys(market, 0, "200").await;
        app.run_workers().await;
        bobs.sell_all(&market, 0).await;
        app.run_workers().await;
        // Bob has realized a profit, and buys at a price that falls again.
        bobs.buy(&market, 0, "300").await;
        app.run_workers().await;
        app.stranger_buys(market, 1, "300").await;
        app.run_workers().await;
        let by_total = leaders(&app, Timeframe::All, LeaderSort::Total).await;
        let by_realized = leaders(&app, Timeframe::All, LeaderSort::Realized).await;
        assert_eq!(by_realized[0].leader.account, bob.account);
        assert!(by_realized[0].unrealized_pnl < UsdcDelta(0));
        let rank = |account| by_total.iter().position(|ranked| ranked.leader.account == account);
        assert!(rank(ada.account) < rank(bob.account), "{by_total:?}");
        let total = |ranked: &Ranked| ranked.leader.realized_pnl.0 + ranked.unrealized_pnl.0;
        assert!(by_total.windows(2).all(|pair| total(&pair[0]) >= total(&pair[1])), "{by_total:?}");
        assert_eq!(by_total.len(), by_realized.len());
    }

    async fn leaders_are_ranked_by_profit_or_volume_of_the_period(store: Store) {
        let Scene { app, ada, key, market } = Scene::on(store).await;
        key.buy(&market, 0, "10").await;
        app.run_workers().await;
        app.stranger_buys(market, 0, "200").await;
        app.run_workers().await;
        key.sell_all(&market, 0).await;
        app.run_workers().await;
        let by_profit = leaders(&app, Timeframe::All, LeaderSort::Realized).await;
        assert_eq!(by_profit[0].leader.account, ada.account, "she sold for more than she had paid");
        assert!(by_profit[0].leader.realized_pnl > UsdcDelta(0));
        assert_eq!((by_profit[0].rank, by_profit[0].unrealized_pnl), (1, UsdcDelta(0)));
        assert_ne!(by_profit[1].unrealized_pnl, UsdcDelta(0));
        let by_volume = leaders(&app, Timeframe::OneDay, LeaderSort::Volume).await;
        assert_eq!((by_volume[0].leader.volume, by_volume[1].leader.account), (Usdc::from_whole(200), ada.account));

        app.advance_ms(2 * DAY_MS).await;
        app.run_workers().await;
        assert_eq!(leaders(&app, Timeframe::OneDay, LeaderSort::Realized).await, []);
        assert_eq!(leaders(&app, Timeframe::SevenDays, LeaderSort::Realized).await, by_profit);
        app.advance_ms(32 * DAY_MS).await;
        app.run_workers().await;
        assert_eq!(leaders(&app, Timeframe::ThirtyDays, LeaderSort::Realized).await, []);
        app.assert_aggregates().await;
    }

    async fn a_cancelled_market_is_refunded_once_all_holders_are_paid(store: Store) {
        let Scene { app, ada, key, market } = Scene::on(store).await;
        let untraded = app.market(&["Yes", "No"]).await;
        key.buy(&market, 0, "10").await;
        app.run_workers().await;
        app.cancel(market).await;
        app.cancel(untraded).await;
        app.run_workers().await;
        assert_eq!(listed(&app, market).await.status, ListStatus::Cancelled);
        assert_eq!(listed(&app, untraded).await.status, ListStatus::Refunded);
        let redeem = chain::calls::redeem(ada.account, market.number, 0);
        app.send(&app.roles.relayer, app.ctx.chain.contracts().hub, redeem).await;
        app.run_workers().await;
        assert_eq!(listed(&app, market).await.status, ListStatus::Refunded);
        app.assert_aggregates().await;
    }

    async fn rebuilt_sums_equal_the_stored_ones(store: Store) {
        let Scene { app, key, market, .. } = Scene::on(store).await;
        let one = thread(&app, None, "One").await;
        put_under(&app, market.id, Some(one)).await;
        key.buy(&market, 0, "10").await;
        app.stranger_buys(market, 1, "20").await;
        app.run_workers().await;
        key.sell_all(&market, 0).await;
        app.run_workers().await;
        app.assert_aggregates().await;
        let before = (totals(&app, ScopeKind::Thread, one).await, trending(&app, RankingWindow::OneDay).await);
        rebuild(&app.ctx).await.unwrap();
        assert_eq!((totals(&app, ScopeKind::Thread, one).await, trending(&app, RankingWindow::OneDay).await), before);
        key.buy(&market, 0, "1").await;
        app.run_workers().await;
        app.assert_ledger_equals_chain().await;
    }

    async fn corrupted_sums_are_found_and_repaired(store: Store) {
        let Scene { app, key, market, .. } = Scene::on(store).await;
        key.buy(&market, 0, "10").await;
        app.run_workers().await;
        for (sql, what) in [
            ("UPDATE totals SET volume_usdc_atomic = volume_usdc_atomic + 1 WHERE scope = 'all'", "totals all "),
            ("UPDATE listed_markets SET probability_ppm = 3 WHERE probability_ppm > 0", "list row of market"),
            ("UPDATE listed_markets SET participants = 9", "participants of market"),
            ("UPDATE traders SET trade_count = 7", "traders "),
            ("UPDATE trending_markets SET unique_traders = 7 WHERE window_ms = 3600000", "trending 3600000"),
            ("UPDATE market_buckets SET volume_usdc_atomic = 7", "buckets "),
            ("UPDATE leaderboard SET realized_pnl_usdc_atomic = 7", "leaderboard "),
            ("DELETE FROM leaderboard_spans WHERE span_ms = 3600000", "spans 3600000"),
            ("DELETE FROM search_terms WHERE kind = 'market'", "list row of market"),
        ] {
            let verified = spoil(&app, sql).await;
            assert_eq!(verified.differences.len(), 1, "{sql}: {:#?}", verified.differences);
            assert!(verified.differences[0].what.starts_with(what), "{:?}", verified.differences);
            rebuild(&app.ctx).await.unwrap();
            app.assert_aggregates().await;
        }
        // The aggregates are right; only the movement differs from the chain.
        let verified = spoil(&app, "UPDATE movements SET fee_atomic = fee_atomic + 1").await;
        assert!(verified.differences.iter().any(|d| d.what.starts_with("movement ")), "{verified:?}");
    }

    async fn a_market_has_the_organization_of_its_thread(store: Store) {
        let Scene { app, market, .. } = Scene::on(store).await;
        let (club, league) = (organization(&app, "club").await, organization(&app, "league").await);
        let one = thread(&app, Some(club), "One").await;
        put_under(&app, market.id, Some(one)).await;
        // The market's creator has read the thread before it was moved.
        catalog::change_thread(&app.ctx, one, move |thread| thread.organization_id = Some(league)).await.unwrap();
        let late = app.market_with(&["Yes", "No"], |new| {
            (new.thread_id, new.organization_id) = (Some(one), Some(club));
            new.question = "Will it last?".to_owned();
        });
        let late = late.await;
        assert_eq!(app.market_row(late).await.0.organization_id, Some(league));
        app.assert_aggregates().await;

        let verified = spoil(&app, "UPDATE threads SET organization_id = NULL").await;
        let of = |id: MarketId| format!("organization and partner of market {id}");
        let told: Vec<_> = verified.differences.iter().map(|difference| difference.what.clone()).collect();
        assert_eq!(told, [of(market.id), of(late.id)]);
        // Any change of the thread corrects its markets.
        catalog::change_thread(&app.ctx, one, |thread| thread.title = "Two".to_owned()).await.unwrap();
        assert_eq!(app.market_row(late).await.0.organization_id, None);
        app.assert_aggregates().await;
    }

    async fn lists_are_filtered_sorted_and_counted(store: Store) {
        let Scene { app, key, market, .. } = Scene::on(store).await;
        let named = |question: &'static str, category: &'static str| {
            move |new: &mut app::markets::NewMarket| {
                new.question = question.to_owned();
                new.category = Some(category.to_owned());
                new.tags = vec!["final".to_owned()];
            }
        };
        let apple = app.market_with(&["Yes", "No"], named("apple pie?", "food")).await;
        let zebra = app.market_with(&["Yes", "No"], named("Zebra crossing?", "sports")).await;
        key.buy(&zebra, 1, "50").await;
        key.buy(&apple, 0, "5").await;
        app.run_workers().await;
        app.resolve(apple, 1).await;
        app.run_workers().await;
        let list = async |filter: MarketFilter, sort: MarketSort, order: Order| {
            let extent = PageRange { limit: 10, offset: 0 };
            let read = app
                .ctx
                .store
                .read((filter, sort, order, extent), |tx, (filter, sort, order, extent)| {
                    Box::pin(store::public::list_markets(tx, filter, *sort, *order, *extent))
                })
                .await;
            let list = read.unwrap();
            assert_eq!(list.total, list.items.len() as u64);
            list.items.into_iter().map(|m| m.market.id).collect::<Vec<_>>()
        };
        let all = MarketFilter::default;
        let open = || MarketFilter { statuses: vec![ListStatus::Open], ..all() };
        let (m, a, z) = (market.id, apple.id, zebra.id);
        assert_eq!(list(all(), MarketSort::CreatedAt, Order::Asc).await, [m, a, z]);
        assert_eq!(list(all(), MarketSort::CreatedAt, Order::Desc).await, [z, a, m]);
        assert_eq!(list(all(), MarketSort::TotalVolume, Order::Desc).await, [z, a, m]);
        assert_eq!(list(all(), MarketSort::Title, Order::Asc).await, [a, m, z], "whatever its case");
        assert_eq!(list(open(), MarketSort::CurrentProbability, Order::Asc).await, [z, m]);
        let by_probability = list(all(), MarketSort::CurrentProbability, Order::Asc).await;
        assert_eq!(by_probability, [a, z, m], "a settled market stands at what it pays");
        let food = MarketFilter { category: Some("food".to_owned()), ..all() };
        assert_eq!(list(food.clone(), MarketSort::EndTime, Order::Desc).await, [a]);
        assert_eq!(list(MarketFilter { statuses: vec![ListStatus::Open], ..food }, MarketSort::EndTime, Order::Desc).await, []);
        let resolved_at = listed(&app, apple).await.market.resolved_at.unwrap();
        let bounds = |after: i64, before: i64| MarketFilter {
            resolved_after: Some(resolved_at.plus_ms(after)),
            resolved_before: Some(resolved_at.plus_ms(before)),
            ..all()
        };
        assert_eq!(list(bounds(0, 0), MarketSort::CreatedAt, Order::Asc).await, [m, a, z], "both inclusive");
        assert_eq!(list(bounds(1, 9), MarketSort::CreatedAt, Order::Asc).await, [m, z]);
        assert_eq!(list(bounds(-9, -1), MarketSort::CreatedAt, Order::Asc).await, [m, z]);
        let text = |text: &str| MarketFilter { text: Some(text.to_owned()), ..all() };
        let sort = MarketSort::default();
        assert_eq!(list(text("ZEBR"), sort, Order::Asc).await, [z]);
        assert_eq!(list(text("final"), sort, Order::Asc).await, [z, a], "a tag, ties by id");
        assert_eq!(list(text("pie final"), sort, Order::Asc).await, [a], "every word");
        assert_eq!(list(text("will"), sort, Order::Asc).await, [m]);
        for nothing in ["", "--", "pies", "zebra pie", "%"] {
            assert_eq!(list(text(nothing), sort, Order::Asc).await, [], "{nothing}");
        }
        assert_eq!(list(MarketFilter { statuses: vec![ListStatus::Open], ..text("final") }, sort, Order::Asc).await, [z]);
    }

    async fn threads_are_found_by_words_and_tags(store: Store) {
        let app = TestApp::with().on(store).start().await;
        let (one, two) = (thread(&app, None, "World Cup").await, thread(&app, None, "Rain in May").await);
        let list = async |filter: ThreadFilter| {
            let extent = PageRange { limit: 10, offset: 0 };
            let read = app
                .ctx
                .store
                .read((filter, extent), |tx, (filter, extent)| {
                    let (sort, order) = (ThreadSort::TotalVolume, Order::Desc);
                    Box::pin(store::public::list_threads(tx, filter, sort, order, *extent))
                })
                .await;
            read.unwrap().items.into_iter().map(|row| row.thread.id).collect::<Vec<_>>()
        };
        let text = |text: &str| ThreadFilter { text: Some(text.to_owned()), ..ThreadFilter::default() };
        let tags = |tags: &[&str]| ThreadFilter {
            tags: tags.iter().map(|tag| (*tag).to_owned()).collect(),
            ..ThreadFilter::default()
        };
        assert_eq!(list(text("cup")).await, [one, two], "a title's word before a tag");
        assert_eq!(list(text("rai")).await, [two]);
        assert_eq!(list(tags(&["none", "cup"])).await, [two, one], "any of them, ties by id");
        assert_eq!(list(tags(&["cu", "c_p", "%", "Cup", "CUP", "cup\"", "\"cup", ""])).await, []);
        let odd = ["c_p", "Cup", "100%", "say \"cup", "say; \"so\"", "back\\slash", "tab tab", "[", "é"];
        let tags_of_one = odd.map(str::to_owned).to_vec();
        catalog::change_thread(&app.ctx, one, move |thread| thread.tags = tags_of_one.clone()).await.unwrap();
        for tag in odd {
            assert_eq!(list(tags(&[tag])).await, [one], "{tag}");
        }
        assert_eq!(list(tags(&["cup"])).await, [two], "not where it ends another tag's quotation");
        assert_eq!(list(tags(&["cap", "c__", "100", "É", "so", "so\"", "back"])).await, []);
        assert_eq!(list(tags(&[&"_".repeat(25_000), &"%".repeat(60_000)])).await, []);
        catalog::change_thread(&app.ctx, two, |thread| thread.title = "Snow".to_owned()).await.unwrap();
        assert_eq!(list(text("rai")).await, []);
        assert_eq!(list(text("sno")).await, [two]);
    }

    async fn a_reorg_removes_its_trades_from_every_sum(store: Store) {
        let app = TestApp::with().on(store).forkable().confirmations(40).start().await;
        let Scene { app, key, market, .. } = Scene::of(app).await;
        let club = organization(&app, "club").await;
        let one = thread(&app, Some(club), "One").await;
        let other = app.market_with(&["Yes", "No"], |new| new.question = "Will it last?".to_owned()).await;
        put_under(&app, market.id, Some(one)).await;
        put_under(&app, other.id, Some(one)).await;
        key.buy(&market, 0, "10").await;
        app.run_workers().await;
        app.mine(40).await;
        app.run_workers().await;
        app.stranger_buys(market, 0, "50").await;
        app.run_workers().await;
        let before = sums(&app).await;
        let sum = Totals { markets: 2, volume: Usdc::from_whole(60), participants: 2 };
        assert_eq!(totals(&app, ScopeKind::Organization, club).await, sum);

        app.branches().part();
        let (hub, stranger) = (app.ctx.chain.contracts().hub, app.roles.stranger.clone());
        app.stranger_buys(other, 1, "5").await;
        let some = U256::from(10u64.pow(19));
        app.send(&stranger, hub, testkit::hub::sell(market, 0, some)).await;
        app.run_workers().await;
        assert_eq!(listed(&app, other).await.participants, 1);
        app.assert_aggregates().await;
        app.resolve(market, 0).await;
        app.send(&stranger, hub, chain::calls::redeem(stranger.address(), market.number, 0)).await;
        app.run_workers().await;
        assert_eq!(listed(&app, market).await.status, ListStatus::Resolved);
        let richest = leaders(&app, Timeframe::All, LeaderSort::Realized).await.remove(0).leader;
        assert_eq!(richest.account, stranger.address());
        assert!(richest.realized_pnl > UsdcDelta(0), "{richest:?}");
        app.assert_aggregates().await;

        app.branches().switch();
        app.mine(20).await;
        app.run_workers().await;
        assert_eq!(listed(&app, other).await.participants, 0);
        assert_eq!(listed(&app, market).await.status, ListStatus::Open);
        assert_eq!(sums(&app).await, before);
        app.assert_ledger_equals_chain().await;
    }
}
