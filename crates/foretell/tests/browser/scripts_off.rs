//! The public pages work without scripts.

use serde_json::json;

use crate::chromium;

#[tokio::test]
async fn a_reader_without_scripts_finds_a_market_and_chooses_range_and_theme() {
    let Some((site, browser)) = chromium::start().await else { return };
    browser.send("Emulation.setScriptExecutionDisabled", json!({ "value": true })).await;
    browser.open(&site.url("/")).await;
    browser.click("input[type=search]").await;
    browser.press("derby\u{e007}").await;
    browser.wait_for("location.pathname === '/search'").await;
    browser.click("main a[href^='/markets/']").await;
    browser.wait_for("location.pathname.startsWith('/markets/')").await;
    // The module of every page sets the titles of times.
    assert!(browser.value::<bool>("document.querySelector('time[data-time]').title === ''").await);

    browser.click("a[data-range]:not([aria-current])").await;
    browser.wait_for("location.search !== ''").await;
    let is_current = "document.querySelector('a[data-range][aria-current]').href === location.href
        && document.querySelector('#chart path.line') !== null";
    assert!(browser.value::<bool>(is_current).await);

    let address: String = browser.value("location.pathname + location.search").await;
    browser.click("button[name=theme][value=dark]").await;
    browser.wait_for("document.documentElement.dataset.theme === 'dark'").await;
    assert_eq!(browser.value::<String>("location.pathname + location.search").await, address);
}
