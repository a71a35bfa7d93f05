//! Pages follow prices without a reload.

use crate::chromium;

/// The price of a market's first outcome.
const PRICE: &str = "document.querySelector('[data-price=\"0\"]').textContent";
/// True as long as the page has not been loaded again.
const IS_SAME_PAGE: &str = "window.isSamePage === true";

#[tokio::test]
async fn a_trade_changes_the_price_in_all_tabs_also_after_a_restart() {
    let Some((mut site, browser)) = chromium::start().await else { return };
    let market = site.market("OPEN", true);
    browser.open(&site.url(&market)).await;
    browser.value::<bool>("window.isSamePage = true").await;
    let tabs = browser.open_tab().await;
    browser.open(&site.url(&market)).await;
    browser.value::<bool>("window.isSamePage = true").await;

    let mut price: String = browser.value(PRICE).await;
    for usdc in ["200.00", "300.00"] {
        site.buy(&market, usdc).await;
        for tab in &tabs {
            browser.switch_to(tab).await;
            browser.wait_for(&format!("{PRICE} !== '{price}'")).await;
            assert!(browser.value::<bool>(IS_SAME_PAGE).await);
        }
        price = browser.value(PRICE).await;
        // The second trade happens after another process has taken over.
        site.restart().await;
    }
}

#[tokio::test]
async fn a_page_offers_to_reload_after_a_trade_in_another_tab() {
    let Some((site, browser)) = chromium::start().await else { return };
    browser.start_trading(&site).await;
    browser.open(&site.url("/portfolio")).await;
    let [portfolio, _] = browser.open_tab().await;
    browser.open(&site.url(&site.market("OPEN", true))).await;
    browser.click("#amount").await;
    browser.press("5").await;
    browser.wait_for("document.querySelector('[data-quote=loss]').textContent === '5.00 USDC'").await;
    browser.click("[data-part=submit]").await;
    browser.wait_for("document.querySelector('[data-part=state]').textContent === 'Done'").await;
    browser.switch_to(&portfolio).await;
    browser.wait_for("!document.querySelector('[data-module=own]').hidden").await;
    browser.click("[data-module=own] a").await;
    browser.wait_for("document.querySelector('main table')?.textContent.includes('Yes')").await;
}
