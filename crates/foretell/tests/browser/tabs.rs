//! Many tabs of one browser.

use crate::chromium::{self, Chromium};

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
    // On a slow machine, another than the first tab can have opened it.
    let streams = streams_of(&browser, &tabs).await;
    assert_eq!(streams.iter().sum::<usize>(), 1, "{streams:?}");
    let owner = streams.iter().position(|count| *count == 1).unwrap();
    browser.switch_to(&tabs[owner]).await;
    price = browser.value(PRICE).await;
    browser.close_tab().await;
    tabs.remove(owner);
    site.buy(&market, "300.00").await;
    for tab in &tabs {
        browser.switch_to(tab).await;
        browser.wait_for(&format!("{PRICE} !== '{price}'")).await;
    }
    let streams = streams_of(&browser, &tabs).await;
    assert_eq!(streams.iter().sum::<usize>(), 1, "{streams:?}");
    assert_eq!(browser.warnings().await, Vec::<String>::new());
}

/// Returns how many streams each tab has opened.
async fn streams_of(browser: &Chromium, tabs: &[String]) -> Vec<usize> {
    let mut streams = Vec::new();
    for tab in tabs {
        browser.switch_to(tab).await;
        streams.push(browser.value("window.streams").await);
    }
    streams
}
