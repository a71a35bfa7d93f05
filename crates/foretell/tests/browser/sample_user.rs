//! The sample users of the demonstration.

use crate::chromium;

#[tokio::test]
async fn a_visitor_trades_as_a_sample_user_at_the_press_of_two_buttons() {
    let Some((site, browser)) = chromium::start().await else { return };
    browser.open(&site.url("/sign-in")).await;
    browser.click("form[action=\"/sign-in/sample\"] button").await;
    browser.wait_for_path("/portfolio").await;
    browser.open(&site.url(&site.market("OPEN", true))).await;
    // The act that lets the site trade may still be in progress.
    browser
        .wait_for("!!document.querySelector('#amount') || (setTimeout(() => location.reload(), 200), false)")
        .await;
    browser.click("#amount").await;
    browser.press("20").await;
    browser.wait_for("document.querySelector('[data-quote=loss]').textContent === '20.00 USDC'").await;
    browser.click("[data-part=submit]").await;
    browser.wait_for("document.querySelector('[data-part=state]').textContent === 'Done'").await;
    assert_eq!(browser.warnings().await, Vec::<String>::new());
}
