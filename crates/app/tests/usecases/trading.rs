//! A trade from the request to the settled position.

use alloy_primitives::U256;
use chain::IntentSide;
use domain::trade::{State, Status};
use domain::{Usdc, Wad};
use store::trades::Trade;

use crate::scene::Scene;

fn settlement(trade: &Trade) -> &domain::trade::Settlement {
    match &trade.state {
        State::Completed(settlement) => settlement,
        other => panic!("not completed: {other:?}"),
    }
}

#[tokio::test]
async fn a_buy_completes_with_the_quoted_amounts() {
    let Scene { app, ada, key, market } = Scene::new().await;
    let quote = app.quote(market, 0, IntentSide::BuyForUsdc, U256::from(25_000_000)).await;

    let trade = key.buy(&market, 0, "25.00").await;
    assert_eq!(trade.state, State::Pending);
    app.run_workers().await;

    let trade = app.trade(trade.id).await;
    let settled = settlement(&trade);
    assert_eq!(settled.tokens.0, quote.tokens_wad);
    assert_eq!(settled.usdc.atomic(), quote.usdc_atomic);
    assert_eq!(settled.fee.atomic(), quote.fee_atomic);
    let receipt = app.ctx.chain.receipt(settled.tx_hash).await.unwrap().unwrap();
    assert_eq!((receipt.success, receipt.block_number), (true, settled.block_number));
    let history = [Status::Pending, Status::Validating, Status::Executing, Status::Completed];
    assert_eq!(app.history(trade.id).await, history);
    assert_eq!(app.tokens(&ada, market, 0).await, settled.tokens);
    app.assert_ledger_equals_chain().await;
}

#[tokio::test]
async fn a_buy_of_exact_tokens_completes_with_the_quoted_cost() {
    let Scene { app, ada, key, market } = Scene::new().await;
    let quote = app.quote(market, 1, IntentSide::BuyTokens, Wad::from_amount(Usdc::from_whole(50)).0).await;

    let trade = key.buy(&market, 1, "50").in_tokens().await;
    app.run_workers().await;

    let trade = app.trade(trade.id).await;
    assert_eq!(settlement(&trade).tokens, Wad::from_amount(Usdc::from_whole(50)));
    assert_eq!(settlement(&trade).usdc.atomic(), quote.usdc_atomic);
    // The bound above the quote was reserved. The unspent part no longer counts.
    assert_eq!(app.spent(&key).await, settlement(&trade).usdc);
    assert_eq!(app.reserved(&ada).await, Usdc::ZERO);
    app.assert_ledger_equals_chain().await;
}

#[tokio::test]
async fn a_sale_for_usdc_pays_exactly_that_amount() {
    let Scene { app, ada, key, market } = Scene::new().await;
    key.buy(&market, 0, "100").await;
    app.run_workers().await;
    let before = app.balance(&ada).await;
    let quote = app.quote(market, 0, IntentSide::SellForUsdc, U256::from(40_000_000)).await;

    let trade = key.sell(&market, 0, "40").await;
    app.run_workers().await;

    let trade = app.trade(trade.id).await;
    assert_eq!(settlement(&trade).tokens.0, quote.tokens_wad);
    assert_eq!(settlement(&trade).usdc, Usdc::from_whole(40));
    assert_eq!(app.balance(&ada).await.saturating_sub(before), Usdc::from_whole(40));
    app.assert_ledger_equals_chain().await;
}

#[tokio::test]
async fn a_sale_of_tokens_completes_with_the_quoted_proceeds() {
    let Scene { app, ada, key, market } = Scene::new().await;
    key.buy(&market, 0, "100").await;
    app.run_workers().await;
    let before = app.tokens(&ada, market, 0).await;
    let thirty = Wad::from_amount(Usdc::from_whole(30));
    let quote = app.quote(market, 0, IntentSide::SellTokens, thirty.0).await;

    let trade = key.sell(&market, 0, "30").in_tokens().await;
    app.run_workers().await;

    let trade = app.trade(trade.id).await;
    assert_eq!((settlement(&trade).tokens, settlement(&trade).usdc.atomic()), (thirty, quote.usdc_atomic));
    assert_eq!(before.checked_sub(app.tokens(&ada, market, 0).await), Some(thirty));
    app.assert_ledger_equals_chain().await;
}

#[tokio::test]
async fn a_sale_of_everything_leaves_no_dust() {
    let Scene { app, ada, key, market } = Scene::new().await;
    key.buy(&market, 0, "33.333333").await;
    key.buy(&market, 0, "0.000007").await;
    app.run_workers().await;
    let held = app.tokens(&ada, market, 0).await;

    let trade = key.sell_all(&market, 0).await;
    app.run_workers().await;

    assert_eq!(settlement(&app.trade(trade.id).await).tokens, held);
    assert_eq!(app.tokens(&ada, market, 0).await, Wad::ZERO);
    app.assert_ledger_equals_chain().await;
}

#[tokio::test]
async fn many_outcomes_trade_like_two() {
    let Scene { app, key, .. } = Scene::new().await;
    let market = app.market(&["A", "B", "C", "D", "E", "F", "G"]).await;
    for outcome in 0..7 {
        key.buy(&market, outcome, "11.5").await;
    }
    app.run_workers().await;
    key.sell_all(&market, 3).await;
    app.run_workers().await;
    let (row, outcomes) = app.market_row(market).await;
    assert_eq!((row.trade_count, outcomes[3].trade_count, outcomes[6].trade_count), (8, 2, 1));
    app.assert_ledger_equals_chain().await;
}
