//! Many tabs of one browser.

use crate::chromium;

const TABS: usize = 8;
/// The price of a market's first outcome.
const PRICE: &str = "document.querySelector('[data-price=\"0\"]').textContent";
/// Counts the streams that a tab opens.
const COUNT: &str = "window.streams = 0;
    window.EventSource = class extends EventSource {
        constructor(...options) { super(...options); window.streams += 1; }
    };";

#[tokio::test]
async fn eight_tabs_share_one_stream_and_another_takes_over_if_its_tab_closes() {
    let Some((site, browser)) = chromium::start().await else { return };
    let market = site.market("OPEN", true);
    browser.run_before_pages(COUNT).await;
    browser.open(&site.url(&market)).await;
    let mut tabs = vec![browser.tab().await];
    while tabs.len() < TABS {
        tabs.push(browser.add_tab().await);
        browser.run_before_pages(COUNT).await;
        // A browser opens at most six connections to a host: with a stream each, the seventh tab would
        // never load.
        browser.open(&site.url(&market)).await;
    }
    let mut price: String = browser.value(PRICE).await;
    site.buy(&market, "200.00").await;
    for tab in &tabs {
        browser.switch_to(tab).await;
        browser.wait_for(&format!("{PRICE} !== '{price}'")).await;
    }
    // The first tab opened the stream, and the others share it.
    browser.switch_to(&tabs[0]).await;
    assert_eq!(browser.value::<usize>("window.streams").await, 1);
    price = browser.value(PRICE).await;
    browser.close_tab().await;
    tabs.remove(0);
    site.buy(&market, "300.00").await;
    for tab in &tabs {
        browser.switch_to(tab).await;
        browser.wait_for(&format!("{PRICE} !== '{price}'")).await;
    }
    let mut streams = 0;
    for tab in &tabs {
        browser.switch_to(tab).await;
        streams += browser.value::<usize>("window.streams").await;
    }
    assert_eq!(streams, 1, "streams of {} tabs", tabs.len());
    assert_eq!(browser.warnings().await, Vec::<String>::new());
}
