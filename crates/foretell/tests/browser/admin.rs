//! An admin who creates, freezes and resolves a market in the operators' pages.

use crate::chromium::{self, Chromium};
use crate::pages::{Rules, find_faults};
use crate::site::Site;

const PAGES: [&str; 10] = [
    "/admin",
    "/admin/markets",
    "/admin/markets/new",
    "/admin/users",
    "/admin/catalog",
    "/admin/catalog/threads/new",
    "/admin/switches",
    "/admin/webhooks",
    "/admin/quarantine",
    "/admin/audit",
];

impl Chromium {
    /// Confirms the shown act with the passkey, and waits for its result.
    pub async fn confirm_act(&self, axe: &str, consequence: &str) {
        self.wait_for_path("/admin/acts/").await;
        let shown = self.text_of(".consequence").await;
        assert!(shown.contains(consequence), "{shown}");
        self.assert_accessible(axe).await;
        self.click("form[data-act] button").await;
        self.wait_for("document.querySelector('main [role=status]')").await;
        assert_eq!(self.text_of("main [role=status] b").await, "Done");
        self.assert_accessible(axe).await;
    }

    /// Opens the market's page until it has this status: the sync may read its block a moment later.
    pub async fn wait_for_status(&self, site: &Site, path: &str, status: &str) {
        self.open(&site.url(path)).await;
        let is_shown = format!("document.querySelector('main .badge')?.textContent === '{status}'");
        self.wait_for(&format!("{is_shown} || (setTimeout(() => location.reload(), 200), false)")).await;
    }
}

async fn start_as_admin() -> Option<(Site, Chromium)> {
    let (site, browser) = chromium::start().await?;
    browser.add_authenticator().await;
    browser.open(&site.url("/sign-up")).await;
    browser.click("form button.main").await;
    browser.wait_for_path("/welcome").await;
    browser.open(&site.url("/admin")).await;
    assert_eq!(browser.text_of("h1").await, "This page does not exist");
    let newest = site.admin(&["user", "list", "--limit", "1"]).await;
    site.admin(&["user", "promote", newest[0]["id"].as_str().unwrap()]).await;
    browser.open(&site.url("/")).await;
    browser
        .wait_for("!!document.querySelector('a[href=\"/admin\"]') || (setTimeout(() => location.reload(), 200), false)")
        .await;
    browser.warnings().await;
    Some((site, browser))
}

#[tokio::test]
async fn an_admin_creates_freezes_and_resolves_a_market_with_a_passkey() {
    let Some((site, browser)) = start_as_admin().await else { return };
    let axe = chromium::axe();
    browser.click("details.menu summary").await;
    browser.click("a[href=\"/admin\"]").await;
    browser.wait_for_path("/admin").await;
    browser.open(&site.url("/admin/markets/new")).await;
    browser.click("#question").await;
    browser.press("Will the bridge open this year?").await;
    browser.click("#odds").await;
    browser.press("60, 40").await;
    browser.click("#new-market button.main").await;
    browser.confirm_act(&axe, "Takes up to").await;

    browser.open(&site.url("/admin/markets?q=bridge")).await;
    browser
        .wait_for("!!document.querySelector('td a') || (setTimeout(() => location.reload(), 200), false)")
        .await;
    browser.click("td a").await;
    browser.wait_for("location.pathname.length > 40").await;
    let path: String = browser.value("location.pathname").await;
    browser.assert_accessible(&axe).await;
    browser.click("input[value=freeze] ~ button").await;
    browser.confirm_act(&axe, "Stops trading").await;
    browser.wait_for_status(&site, &path, "Frozen").await;
    browser.assert_accessible(&axe).await;
    browser.click("input[name=winner][value='0']").await;
    browser.click("input[value=resolve] ~ button").await;
    browser.confirm_act(&axe, "This cannot be undone").await;
    browser.wait_for_status(&site, &path, "Resolved").await;
    browser.assert_accessible(&axe).await;
    assert_eq!(browser.warnings().await, Vec::<String>::new());
}

#[tokio::test]
async fn a_catalog_is_imported_from_a_file() {
    const CHOOSE: &str = "
        const files = new DataTransfer();
        files.items.add(new File(['{\"threads\":[{\"key\":\"cup\",\"title\":\"The cup\",\"category\":\"sports\"}]}'], 'cup.json'));
        const input = document.querySelector('#file');
        input.files = files.files;
        input.dispatchEvent(new Event('change', { bubbles: true }));";
    let Some((site, browser)) = start_as_admin().await else { return };
    let axe = chromium::axe();
    browser.open(&site.url("/admin/catalog")).await;
    browser.execute::<()>(CHOOSE).await;
    browser.wait_for("document.querySelector('#text').value.includes('The cup')").await;
    browser.assert_accessible(&axe).await;
    browser.click("form[action=\"/admin/catalog/plan\"] button.btn").await;
    browser.wait_for_path("/admin/catalog/plan").await;
    assert!(browser.text_of("main").await.contains("The cup"));
    browser.assert_accessible(&axe).await;
    assert_eq!(browser.warnings().await, Vec::<String>::new());
}

#[tokio::test]
async fn the_operators_pages_are_accessible_and_fit_their_window() {
    let Some((site, browser)) = start_as_admin().await else { return };
    let axe = chromium::axe();
    let market = format!("/admin{}", site.market("OPEN", false));
    let user = site.admin(&["user", "list", "--limit", "1"]).await;
    let user = format!("/admin/users/{}", user[0]["id"].as_str().unwrap());
    let mut faults = Vec::new();
    for width in [1280, 390] {
        browser.set_width(width).await;
        for path in PAGES.into_iter().chain([market.as_str(), user.as_str()]) {
            for (theme, rules) in [("light", Rules::All), ("dark", Rules::Colors)] {
                browser.set_system_theme(theme).await;
                browser.open(&site.url(path)).await;
                let found = find_faults(&browser, &axe, rules).await;
                faults.extend(found.into_iter().map(|fault| format!("{path}, {width}, {theme}: {fault}")));
            }
        }
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
    assert_eq!(browser.warnings().await, Vec::<String>::new());
}
