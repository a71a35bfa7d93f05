//! Keyboard shortcuts, and the chart by keyboard.

use crate::chromium;

#[tokio::test]
async fn shortcuts_focus_the_search_and_open_the_markets() {
    let Some((site, browser)) = chromium::start().await else { return };
    browser.open(&site.url("/")).await;
    browser.press("/").await;
    browser.wait_for("document.activeElement.matches('input[type=search]')").await;
    // A shortcut in a field is text.
    browser.press("gm/").await;
    assert_eq!(browser.value::<String>("document.activeElement.value").await, "gm/");
    browser.value::<()>("document.activeElement.blur()").await;
    browser.press("gm").await;
    browser.wait_for("location.pathname === '/markets'").await;
}

#[tokio::test]
async fn arrow_keys_move_the_crosshair_of_a_chart() {
    let Some((site, browser)) = chromium::start().await else { return };
    browser.open(&site.url(&site.market("OPEN", true))).await;
    // The chart's module loads on first use.
    browser.value::<()>("document.querySelector('#chart a').focus()").await;
    browser.wait_for("document.querySelector('#chart svg.plot[tabindex]')").await;
    browser.value::<()>("document.querySelector('#chart svg.plot').focus()").await;
    let readout = "document.querySelector('[data-readout]').textContent";
    let newest: String = browser.value(readout).await;
    assert!(newest.contains('%'), "{newest}");
    browser.press("\u{e012}").await;
    let before: String = browser.value(readout).await;
    assert!(before.contains('%') && before != newest, "{before}");
    browser.press("\u{e010}").await;
    assert_eq!(browser.value::<String>(readout).await, newest);
}
