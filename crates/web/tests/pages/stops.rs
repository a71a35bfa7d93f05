//! Pages while nobody can trade: they stay readable and say why.

use std::time::Duration;

use app::kill_switches::{Setting, TRADING, set};
use testkit::{RpcFault, TestApp};

use crate::people::{Browser, trader};

const TICKET: &str = "id=\"ticket\"";
const CLOSED: &str = "Trading is closed";

/// A node that failed is paused, in real time, before it is asked again.
async fn until_a_node_is_available(app: &TestApp) {
    let mut looks = tokio::time::interval(Duration::from_millis(20));
    for _ in 0..1_500 {
        looks.tick().await;
        app::nodes::refresh(&app.ctx).await.unwrap();
        if app.ctx.chain.nodes().unwrap().is_available() {
            return;
        }
    }
    panic!("no node is available after 30 seconds");
}

#[tokio::test]
async fn a_halt_is_shown_everywhere_in_the_operators_words_and_closes_tickets() {
    let app = TestApp::new().await;
    let market = format!("/markets/{}", app.market(&["Yes", "No"]).await.id);
    let (mut ada, mut reader) = (trader(&app, 100).await, Browser::new(&app));
    assert!(ada.get(&market).await.text.contains(TICKET));

    let reason = Some("The oracle is <wrong>.".to_owned());
    set(&app.ctx, TRADING, Setting::Off, "Olga", reason).await.unwrap();
    for path in ["/", "/markets", &market, "/status"] {
        let page = reader.get(path).await;
        assert_eq!(page.status.as_u16(), 200, "{path}\n{page}");
        assert!(page.text.contains("Trading is halted"), "{path}\n{page}");
        assert!(page.text.contains("The oracle is &#60;wrong&#62;."), "{path}\n{page}");
        assert!(!page.text.contains("Olga"), "{path}\n{page}");
    }
    let page = ada.get(&market).await;
    assert!(page.text.contains(CLOSED) && !page.text.contains(TICKET), "{page}");

    set(&app.ctx, TRADING, Setting::On, "Olga", None).await.unwrap();
    let page = ada.get(&market).await;
    assert!(page.text.contains(TICKET) && !page.text.contains("Trading is halted"), "{page}");
}

#[tokio::test]
async fn pages_stay_readable_while_no_node_of_the_chain_answers() {
    let app = TestApp::with().forkable().nodes(1).start().await;
    app::nodes::refresh(&app.ctx).await.unwrap();
    let market = format!("/markets/{}", app.market(&["Yes", "No"]).await.id);
    let mut ada = trader(&app, 100).await;
    assert!(ada.get(&market).await.text.contains(TICKET));

    app.proxies[0].set(RpcFault::Refused).await;
    app::nodes::refresh(&app.ctx).await.unwrap();
    for path in ["/", "/markets", &market, "/notifications"] {
        let page = ada.get(path).await;
        assert_eq!(page.status.as_u16(), 200, "{path}\n{page}");
        assert!(page.text.contains("The chain does not answer"), "{path}\n{page}");
        assert!(page.text.contains("Prices are those of "), "{path}\n{page}");
    }
    let page = ada.get(&market).await;
    assert!(page.text.contains(CLOSED) && !page.text.contains(TICKET), "{page}");
    // What only the chain knows is not guessed.
    for path in ["/portfolio", "/withdraw"] {
        let page = ada.get(path).await;
        assert_eq!(page.status.as_u16(), 503, "{path}\n{page}");
        assert!(page.header("retry-after").is_some(), "{path}\n{page}");
        assert!(page.text.contains("DEPENDENCY_UNAVAILABLE"), "{path}\n{page}");
    }

    app.proxies[0].heal();
    until_a_node_is_available(&app).await;
    assert!(ada.get(&market).await.text.contains(TICKET));
    assert_eq!(ada.get("/portfolio").await.status.as_u16(), 200);
}
