//! What the pages weigh, and how stable they are while they load. The time until the largest content
//! is painted is printed, because it depends on the machine.

use serde::Deserialize;
use serde_json::json;

use crate::chromium::{self, Chromium};

/// Limits of the HTML of a page, in bytes, plain and compressed.
const HTML: u64 = 60_000;
const HTML_COMPRESSED: u64 = 15_000;
/// Limit of the style sheet, compressed.
const CSS: u64 = 8_000;
/// Limit of the layout shift, as Chromium scores it.
const SHIFT: f64 = 0.05;

/// What a page loaded.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Weight {
    html: u64,
    html_compressed: u64,
    css: u64,
    /// Requests to other hosts.
    foreign: u64,
    shift: f64,
    /// The name, id and class of what moved.
    shifted: Vec<String>,
    largest_paint_ms: f64,
}

/// Collects entries from the beginning of a page on.
const OBSERVE: &str = "window.shift = 0;
    window.shifted = [];
    window.largestPaint = 0;
    new PerformanceObserver((list) => {
        for (const entry of list.getEntries()) {
            if (entry.hadRecentInput) continue;
            window.shift += entry.value;
            for (const { node, previousRect: from, currentRect: to } of entry.sources) {
                const place = ({ x, y, width, height }) => [x, y, width, height].map(Math.round).join(' ');
                window.shifted.push(`${node?.nodeName}.${node?.className} from ${place(from)} to ${place(to)}`);
            }
        }
    }).observe({ type: 'layout-shift', buffered: true });
    new PerformanceObserver((list) => {
        for (const entry of list.getEntries()) window.largestPaint = entry.startTime;
    }).observe({ type: 'largest-contentful-paint', buffered: true });";

const WEIGH: &str = "(() => {
    const [page] = performance.getEntriesByType('navigation');
    const files = performance.getEntriesByType('resource');
    const css = files.filter(({ name }) => name.endsWith('.css'));
    return {
        html: page.decodedBodySize, htmlCompressed: page.encodedBodySize,
        css: css.reduce((sum, { encodedBodySize }) => sum + encodedBodySize, 0),
        foreign: files.filter(({ name }) => new URL(name).origin !== location.origin).length,
        shift: window.shift, shifted: window.shifted, largestPaintMs: window.largestPaint,
    };
})()";

/// Opens a page as over a slow connection on a slow machine.
async fn weigh(browser: &Chromium, url: &str) -> Weight {
    let network = json!({ "offline": false, "latency": 150, "downloadThroughput": 200_000, "uploadThroughput": 90_000 });
    browser.send("Network.enable", json!({})).await;
    browser.send("Network.setCacheDisabled", json!({ "cacheDisabled": true })).await;
    browser.send("Network.emulateNetworkConditions", network).await;
    browser.send("Emulation.setCPUThrottlingRate", json!({ "rate": 4 })).await;
    browser.open(url).await;
    browser.wait_for("window.largestPaint > 0").await;
    browser.value(WEIGH).await
}

#[tokio::test]
async fn pages_are_light_and_do_not_shift_while_they_load() {
    let Some((site, browser)) = chromium::start().await else { return };
    browser.run_before_pages(OBSERVE).await;
    for width in [1_280, 390] {
        browser.set_width(width).await;
        for path in
            ["/".to_owned(), site.market("OPEN", true), site.market("OPEN", false), "/markets".to_owned()]
        {
            let weight = weigh(&browser, &site.url(&path)).await;
            let Weight { html_compressed, css, shift, largest_paint_ms, ref shifted, .. } = weight;
            eprintln!(
                "{path} at {width} px: {html_compressed} bytes of HTML, {css} of CSS, shift {shift}, painted after {largest_paint_ms} ms"
            );
            assert!(weight.html <= HTML && weight.html_compressed <= HTML_COMPRESSED, "{path}: {weight:?}");
            assert!(weight.html_compressed < weight.html, "{path} is not compressed: {weight:?}");
            assert!((1..=CSS).contains(&weight.css), "{path}: {weight:?}");
            assert!(shift < SHIFT, "{path} at {width} px moved by {shift}: {shifted:?}");
            assert_eq!(weight.foreign, 0, "{path}");
        }
    }
}
