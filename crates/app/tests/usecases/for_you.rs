//! Markets for a person.

use app::for_you::list_for_you;
use store::Store;

use crate::scene::Scene;

store::on_each_engine! {
    async fn markets_for_a_person_are_open_and_like_those_that_were_traded(store: Store) {
        let scene = Scene::on(store).await;
        let of = async |category: &str| {
            let category = category.to_owned();
            scene.app.market_with(&["Yes", "No"], move |new| new.category = Some(category.clone())).await
        };
        let (rain, snow, cup, closed) = (of("weather").await, of("weather").await, of("sports").await, of("weather").await);
        assert_eq!(list_for_you(&scene.app.ctx, scene.ada.id).await.unwrap(), []);
        scene.key.buy(&rain, 0, "5").await;
        scene.app.resolve(closed, 0).await;
        scene.app.run_workers().await;
        let listed = list_for_you(&scene.app.ctx, scene.ada.id).await.unwrap();
        let ids: Vec<_> = listed.iter().map(|listed| listed.market.id).collect();
        assert_eq!(ids, [rain.id, snow.id], "the traded market has more volume");
        assert!(!ids.contains(&cup.id));
    }
}
