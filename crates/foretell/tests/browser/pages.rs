//! Every public page is accessible, fits its window, logs nothing and needs no other host.

use std::collections::BTreeSet;

use crate::chromium::{self, Chromium};
use crate::site::Site;

/// Pages with fixed paths.
const PAGES: [&str; 14] = [
    "/",
    "/markets",
    "/threads",
    "/leaderboard",
    "/search",
    "/search?q=the",
    "/status",
    "/settings/preferences",
    "/design",
    "/docs",
    "/docs/trading-api",
    "/docs/api/trades",
    "/docs/operating",
    MISSING,
];
/// A market that does not exist.
const MISSING: &str = "/markets/00000000-0000-7000-8000-000000000000";
/// Pages of one thing each, found through the links of other pages.
const LINKED: [&str; 5] = ["/threads/", "/organizations/", "/partners/", "/traders/", "/tx/"];

/// Returns the paths of one page of each kind.
pub async fn find_pages(site: &Site, browser: &Chromium) -> Vec<String> {
    let mut pages: Vec<String> = PAGES.map(str::to_owned).to_vec();
    for status in ["OPEN", "FROZEN", "RESOLVED"] {
        pages.push(site.market(status, status != "RESOLVED"));
    }
    pages.push(site.market("OPEN", false));
    let mut missing: BTreeSet<&str> = LINKED.into();
    let mut opened = 0;
    while !missing.is_empty() {
        let path = pages.get(opened).unwrap_or_else(|| panic!("no page links to {missing:?}"));
        browser.open(&site.url(path)).await;
        let links: Vec<String> = browser.value("[...document.links].map((link) => link.pathname)").await;
        for link in links {
            let kind = missing.iter().find(|kind| link.len() > kind.len() && link.starts_with(**kind));
            if let Some(kind) = kind.copied() {
                missing.remove(kind);
                pages.push(link);
            }
        }
        opened += 1;
    }
    pages
}

/// Rules of accessibility.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Rules {
    All,
    /// The rules that can differ between two themes of the same page.
    Colors,
}

/// Returns what is wrong with the open page.
pub async fn find_faults(browser: &Chromium, axe: &str, rules: Rules) -> Vec<String> {
    let rules = if rules == Rules::All { "" } else { "runOnly: ['color-contrast', 'link-in-text-block']" };
    let run = format!(
        "axe.run({{ resultTypes: ['violations'], {rules} }}).then(({{ violations }}) => violations.map(
        ({{ id, nodes }}) => `axe: ${{id}}: ${{nodes.length}}: ${{nodes[0].html.slice(0, 200)}}`))"
    );
    let script = format!("{axe}; return {run}");
    let mut faults: Vec<String> = browser.execute(&script).await;
    let root = "document.documentElement";
    let beyond: i64 = browser.value(&format!("{root}.scrollWidth - {root}.clientWidth")).await;
    if beyond > 0 {
        faults.push(format!("{beyond} pixels wider than the window"));
    }
    let foreign = "performance.getEntriesByType('resource').map(({ name }) => name)
        .filter((name) => !name.startsWith(location.origin))";
    let foreign: Vec<String> = browser.value(foreign).await;
    faults.extend(foreign.into_iter().map(|url| format!("requests {url}")));
    faults
}

/// Checks all pages in windows of this width.
async fn check_pages(width: u32) {
    let Some((site, browser)) = chromium::start().await else { return };
    let axe = chromium::axe();
    browser.set_width(width).await;
    let pages = find_pages(&site, &browser).await;
    browser.warnings().await;
    let mut faults = Vec::new();
    for path in pages {
        browser.set_system_theme("light").await;
        browser.open(&site.url(&path)).await;
        for (theme, rules) in [("light", Rules::All), ("dark", Rules::Colors)] {
            browser.set_system_theme(theme).await;
            let found = find_faults(&browser, &axe, rules).await;
            faults.extend(found.into_iter().map(|fault| format!("{path}, {theme}: {fault}")));
        }
        let warnings = browser.warnings().await.into_iter();
        // The browser logs the status of a missing page.
        let warnings = warnings.filter(|warning| path != MISSING || !warning.contains("404"));
        faults.extend(warnings.map(|warning| format!("{path}: console: {warning}")));
    }
    assert!(faults.is_empty(), "{width} pixels wide:\n{}", faults.join("\n"));
}

#[tokio::test]
async fn pages_in_a_wide_window_are_accessible_and_log_nothing() {
    check_pages(1280).await;
}

#[tokio::test]
async fn pages_on_a_phone_are_accessible_and_log_nothing() {
    check_pages(390).await;
}
