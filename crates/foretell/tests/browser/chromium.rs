//! A headless Chromium, driven through chromedriver.

use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use store::testing::TestFolder;
use tokio::io::{AsyncBufReadExt, BufReader, Lines};
use tokio::process::{Child, ChildStdout, Command};

use crate::driver::Driver;
use crate::site::Site;

/// The environment variable with the path of chromedriver.
const CHROMEDRIVER: &str = "FORETELL_CHROMEDRIVER";

/// The environment variable with a folder for pictures of the pages, for people to look at.
pub const SCREENSHOTS: &str = "FORETELL_SCREENSHOTS";

/// Finds no host but this machine, so that a request to any other host fails and is logged.
const HOSTS: &str = "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE localhost, EXCLUDE 127.0.0.1";

/// A browser with one page, and its own profile.
pub struct Chromium {
    driver: Driver,
    chromedriver: Child,
    // Open as long as the browser, which writes to it too.
    _output: Lines<BufReader<ChildStdout>>,
    _folder: TestFolder,
}

/// Starts a copy of the demonstration and a browser. `None` if the tests have no browser.
pub async fn start() -> Option<(Site, Chromium)> {
    let Ok(path) = std::env::var(CHROMEDRIVER) else {
        eprintln!("skipped: {CHROMEDRIVER} is not set");
        return None;
    };
    let (site, browser) = tokio::join!(Site::start(), Chromium::start(&path));
    Some((site, browser))
}

impl Chromium {
    /// Starts another browser. The tests have one: [`start`] has returned it.
    pub async fn launch() -> Self {
        Self::start(&std::env::var(CHROMEDRIVER).unwrap()).await
    }

    async fn start(path: &str) -> Self {
        let folder = TestFolder::create();
        let mut command = Command::new(path);
        command
            .arg("--port=0")
            .env("TMPDIR", folder.path())
            .process_group(0)
            .stdout(Stdio::piped())
            .kill_on_drop(true);
        let mut chromedriver = command.spawn().unwrap_or_else(|error| panic!("{path}: {error}"));
        let mut lines = BufReader::new(chromedriver.stdout.take().unwrap()).lines();
        let port = loop {
            let line = lines.next_line().await.unwrap().expect("chromedriver starts");
            if let Some((_, port)) = line.split_once("started successfully on port ") {
                break port.trim_end_matches('.').to_owned();
            }
        };
        // Chromium's sandbox rejects root, and the pages are our own.
        let arguments = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", HOSTS];
        let driver = Driver::start(&format!("http://127.0.0.1:{port}"), &arguments).await;
        Self { driver, chromedriver, _output: lines, _folder: folder }
    }

    /// Opens a page and waits until it has loaded.
    pub async fn open(&self, url: &str) {
        self.driver.open(url).await;
    }

    /// Returns the value of an expression in the page. A promise is awaited.
    pub async fn value<T: DeserializeOwned>(&self, expression: &str) -> T {
        let result = self.driver.execute(&format!("return ({expression})")).await;
        result.unwrap_or_else(|error| panic!("{expression}: {error}"))
    }

    /// Waits until an expression is true in the page.
    pub async fn wait_for(&self, condition: &str) {
        let mut polls = tokio::time::interval(Duration::from_millis(50));
        for _ in 0..600 {
            polls.tick().await;
            // Not available for a moment while another page loads.
            let result = self.driver.execute(&format!("return Boolean({condition})")).await;
            if result == Ok(true) {
                return;
            }
        }
        panic!("after 30 seconds, this is not true: {condition}");
    }

    /// Clicks the first element that matches a CSS selector.
    pub async fn click(&self, selector: &str) {
        self.driver.click(selector).await;
    }

    /// Types into the focused element, or presses the keys of shortcuts.
    pub async fn press(&self, keys: &str) {
        self.driver.press(keys).await;
    }

    /// Runs a script in the page and returns its value.
    pub async fn execute<T: DeserializeOwned>(&self, script: &str) -> T {
        self.driver.execute(script).await.unwrap()
    }

    /// Runs a script in each page that is opened from now on, before the page's own.
    pub async fn run_before_pages(&self, script: &str) {
        self.send("Page.addScriptToEvaluateOnNewDocument", json!({ "source": script })).await;
    }

    /// Opens a tab and returns its handle.
    pub async fn add_tab(&self) -> String {
        self.driver.open_tab().await;
        self.driver.tab().await
    }

    /// Opens a second tab and returns the handles of the first and the second.
    pub async fn open_tab(&self) -> [String; 2] {
        let first = self.driver.tab().await;
        self.driver.open_tab().await;
        [first, self.driver.tab().await]
    }

    pub async fn tab(&self) -> String {
        self.driver.tab().await
    }

    /// Closes the current tab. Another one must be chosen after it.
    pub async fn close_tab(&self) {
        self.driver.close_tab().await;
    }

    pub async fn switch_to(&self, tab: &str) {
        self.driver.switch_to(tab).await;
    }

    /// Saves a picture of the whole page, if a folder for pictures is set.
    pub async fn save_screenshot(&self, name: &str) {
        let Ok(folder) = std::env::var(SCREENSHOTS) else { return };
        let options = json!({ "format": "png", "captureBeyondViewport": true });
        let taken = self.send("Page.captureScreenshot", options).await;
        let png = BASE64_STANDARD.decode(taken["data"].as_str().unwrap()).unwrap();
        std::fs::write(Path::new(&folder).join(format!("{name}.png")), png).unwrap();
    }

    /// Sends a command of the Chrome DevTools Protocol.
    pub async fn send(&self, method: &str, parameters: Value) -> Value {
        self.driver.send(method, parameters).await
    }

    pub async fn set_width(&self, width: u32) {
        let screen = json!({ "width": width, "height": 900, "deviceScaleFactor": 1, "mobile": false });
        self.send("Emulation.setDeviceMetricsOverride", screen).await;
    }

    /// Sets the theme of the system, which pages follow unless the reader chose another. Colors change
    /// at once, because the system also asks for reduced motion.
    pub async fn set_system_theme(&self, theme: &str) {
        let features = json!({ "features": [
            { "name": "prefers-color-scheme", "value": theme },
            { "name": "prefers-reduced-motion", "value": "reduce" },
        ] });
        self.send("Emulation.setEmulatedMedia", features).await;
    }

    /// Returns the errors and warnings on the console since the last call.
    pub async fn warnings(&self) -> Vec<String> {
        let entries = self.driver.console().await.into_iter();
        let severe = entries.filter(|(level, _)| matches!(level.as_str(), "WARNING" | "SEVERE"));
        severe.map(|(_, message)| message).collect()
    }
}

impl Drop for Chromium {
    /// Kills chromedriver and the browser, which are one process group.
    fn drop(&mut self) {
        let Some(id) = self.chromedriver.id() else { return };
        drop(std::process::Command::new("kill").args(["-KILL", "--", &format!("-{id}")]).status());
    }
}

/// Reads axe-core, which `npm ci` installs.
pub fn axe() -> String {
    let path =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tools/reference/node_modules/axe-core/axe.min.js");
    std::fs::read_to_string(&path)
        .unwrap_or_else(|error| panic!("{}: {error}: run `npm --prefix tools/reference ci`", path.display()))
}
