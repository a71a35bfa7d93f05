//! Buying, selling a part for a USDC amount, and selling the rest.

use domain::Usdc;
use serde_json::Value;

use crate::scene::{Scene, atomic};

fn signed(value: &Value) -> i128 {
    value.as_str().unwrap().parse().unwrap()
}

#[tokio::test]
async fn figures_follow_a_position_that_is_bought_halved_and_closed() {
    let scene = Scene::new().await;
    let (client, market) = (&scene.client, scene.market);
    let start = scene.app.balance(&scene.ada).await;

    let bought = scene.settled(client.buy(market, 0, "200")).await;
    assert_eq!(bought["usdcAmount"], "200000000");
    let [position] = scene.positions().await.try_into().unwrap();
    assert_eq!((&position["tokens"], &position["costBasis"]), (&bought["tokensOut"], &bought["usdcAmount"]));
    assert_eq!(scene.app.balance(&scene.ada).await, start.saturating_sub(Usdc::from_whole(200)));

    let half = scene.settled(client.sell(market, 0, "100")).await;
    assert_eq!(half["usdcAmount"], "100000000");
    let [position] = scene.positions().await.try_into().unwrap();
    assert_eq!(atomic(&position["tokens"]), atomic(&bought["tokensOut"]) - atomic(&half["tokensOut"]));

    let rest = scene.settled(client.sell_all(market, 0)).await;
    assert_eq!(rest["tokensOut"], position["tokens"]);
    assert_eq!((&rest["amount"], &rest["amountType"]), (&Value::Null, &"all".into()));
    let [position] = scene.positions().await.try_into().unwrap();
    assert_eq!(
        (&position["tokens"], &position["costBasis"], &position["value"]),
        (&"0".into(), &"0".into(), &"0".into())
    );

    let received = atomic(&half["usdcAmount"]) + atomic(&rest["usdcAmount"]);
    let gained = received as i128 - 200_000_000;
    assert!(gained < 0, "fees were paid three times and nobody else traded");
    assert_eq!(signed(&position["realizedPnl"]), gained);
    let portfolio = scene.portfolio().await;
    assert_eq!((signed(&portfolio["realizedPnl"]), &portfolio["openPositions"]), (gained, &0.into()));
    let fees: u128 = [&bought, &half, &rest].iter().map(|trade| atomic(&trade["fee"])).sum();
    assert_eq!(atomic(&portfolio["feesPaid"]), fees);
    let now = i128::from(scene.app.balance(&scene.ada).await.atomic());
    assert_eq!(now - i128::from(start.atomic()), gained);
    assert_eq!(atomic(&portfolio["usdcBalance"]) as i128, now);
    scene.app.assert_ledger_equals_chain().await;
}
