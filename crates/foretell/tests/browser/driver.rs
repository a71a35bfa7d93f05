//! A client of the WebDriver protocol with only what these tests need. The published clients change
//! features of `serde_json` for the whole workspace, and with them the order of members in answers.

use std::time::Duration;

use reqwest::Client;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

/// The key of an element's id in the protocol.
const ELEMENT: &str = "element-6066-11e4-a52e-4f735466cecf";
/// A command may load a whole page.
const TIMEOUT: Duration = Duration::from_secs(60);

/// A session with one browser.
pub struct Driver {
    http: Client,
    /// The URL of the session.
    session: String,
}

impl Driver {
    /// Opens a browser with these arguments.
    pub async fn start(server: &str, arguments: &[&str]) -> Self {
        let http = Client::builder().no_proxy().timeout(TIMEOUT).build().unwrap();
        let capabilities = json!({ "capabilities": { "alwaysMatch": {
            "browserName": "chrome",
            "goog:chromeOptions": { "args": arguments },
            "goog:loggingPrefs": { "browser": "ALL" },
        } } });
        let mut driver = Self { http, session: format!("{server}/session") };
        let made: Value = driver.post("", capabilities).await.unwrap();
        driver.session = format!("{server}/session/{}", made["sessionId"].as_str().unwrap());
        driver
    }

    async fn read<T: DeserializeOwned>(&self, request: reqwest::RequestBuilder) -> Result<T, String> {
        let mut answer: Value = request.send().await.unwrap().json().await.unwrap();
        let value = answer["value"].take();
        match value.get("error") {
            Some(error) => Err(format!("{error}: {}", value["message"])),
            None => Ok(serde_json::from_value(value).unwrap()),
        }
    }

    async fn post<T: DeserializeOwned>(&self, command: &str, body: Value) -> Result<T, String> {
        self.read(self.http.post(format!("{}{command}", self.session)).json(&body)).await
    }

    pub async fn open(&self, url: &str) {
        self.post::<Value>("/url", json!({ "url": url })).await.unwrap();
    }

    /// Runs a script in the page and returns its value. A promise is awaited.
    pub async fn execute<T: DeserializeOwned>(&self, script: &str) -> Result<T, String> {
        self.post("/execute/sync", json!({ "script": script, "args": [] })).await
    }

    /// Clicks the first element that matches a CSS selector.
    pub async fn click(&self, selector: &str) {
        let found: Value =
            self.post("/element", json!({ "using": "css selector", "value": selector })).await.unwrap();
        let id = found[ELEMENT].as_str().unwrap();
        self.post::<Value>(&format!("/element/{id}/click"), json!({}))
            .await
            .unwrap_or_else(|error| panic!("{selector}: {error}"));
    }

    /// Presses and releases each key of a text.
    pub async fn press(&self, keys: &str) {
        let press =
            |key| [json!({ "type": "keyDown", "value": key }), json!({ "type": "keyUp", "value": key })];
        let actions: Vec<Value> = keys.chars().flat_map(|key| press(key.to_string())).collect();
        let keyboard = json!({ "actions": [{ "type": "key", "id": "keyboard", "actions": actions }] });
        self.post::<Value>("/actions", keyboard).await.unwrap();
    }

    /// Returns the handle of the current tab.
    pub async fn tab(&self) -> String {
        self.read(self.http.get(format!("{}/window", self.session))).await.unwrap()
    }

    /// Opens a tab and switches to it.
    pub async fn open_tab(&self) {
        let made: Value = self.post("/window/new", json!({ "type": "tab" })).await.unwrap();
        self.switch_to(made["handle"].as_str().unwrap()).await;
    }

    pub async fn switch_to(&self, tab: &str) {
        self.post::<Value>("/window", json!({ "handle": tab })).await.unwrap();
    }

    /// Closes the current tab. No tab is current after it.
    pub async fn close_tab(&self) {
        self.read::<Value>(self.http.delete(format!("{}/window", self.session))).await.unwrap();
    }

    /// Sends a command of the Chrome DevTools Protocol.
    pub async fn send(&self, method: &str, parameters: Value) -> Value {
        let command = json!({ "cmd": method, "params": parameters });
        self.post("/goog/cdp/execute", command).await.unwrap()
    }

    /// Returns the levels and messages on the console since the last call.
    pub async fn console(&self) -> Vec<(String, String)> {
        let entries: Vec<Value> = self.post("/se/log", json!({ "type": "browser" })).await.unwrap();
        let text = |entry: &Value, member: &str| entry[member].as_str().unwrap().to_owned();
        entries.iter().map(|entry| (text(entry, "level"), text(entry, "message"))).collect()
    }
}
