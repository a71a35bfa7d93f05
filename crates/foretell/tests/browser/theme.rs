//! The reader's choice of a theme.

use crate::chromium;

#[tokio::test]
async fn a_chosen_theme_applies_at_once_and_on_other_pages() {
    let Some((site, browser)) = chromium::start().await else { return };
    browser.set_system_theme("light").await;
    browser.open(&site.url("/")).await;
    let background = "getComputedStyle(document.body).backgroundColor";
    let light: String = browser.value(background).await;
    browser.click("button[name=theme][value=dark]").await;
    browser.wait_for("document.documentElement.dataset.theme === 'dark'").await;
    let dark: String = browser.value(background).await;
    assert_ne!(dark, light);

    browser.open(&site.url("/leaderboard")).await;
    assert_eq!(browser.value::<String>(background).await, dark);
    let pressed = "document.querySelector('button[name=theme][aria-pressed=true]').value";
    assert_eq!(browser.value::<String>(pressed).await, "dark");

    browser.click("button[name=theme][value=auto]").await;
    browser.wait_for("document.documentElement.dataset.theme === undefined").await;
    assert_eq!(browser.value::<String>(background).await, light);
}
