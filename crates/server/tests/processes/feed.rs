//! A reader of a user's feed over HTTP, which is cut off and goes on where it was.

use std::collections::BTreeSet;
use std::time::Duration;

use axum::body::Body;
use axum::http::Response;
use testkit::http::EventStream;

/// The feed of a key's user at a service.
pub struct Feed {
    http: reqwest::Client,
    url: String,
    key: String,
}

impl Feed {
    /// With the key's text.
    pub fn new(base_url: &str, key: &str) -> Self {
        let http = reqwest::Client::builder().no_proxy().build().unwrap();
        Self { http, url: format!("{base_url}/v1/events?types=*"), key: key.to_owned() }
    }

    /// The number of the last event so far.
    pub async fn latest(&self) -> u64 {
        let mut stream = self.open(None).await;
        let sent = stream.next().await.unwrap();
        assert_eq!(sent.name, "heartbeat", "nothing is behind the latest");
        sent.data["sequence"].as_u64().unwrap()
    }

    /// The ids of the `count` events behind a number, numbered without a gap. The reader is cut off behind each of so many of
    /// them, and begins behind the last one that it has.
    pub async fn read(&self, behind: u64, count: u64, cuts: &BTreeSet<u64>) -> Vec<String> {
        let (mut read, mut ids) = (0, Vec::new());
        while read < count {
            let mut stream = self.open(Some(behind + read)).await;
            while read < count {
                let sent = stream.news().await;
                read += 1;
                assert_eq!(sent.id, Some(format!("1-{}", behind + read)), "a gap or a double");
                ids.push(sent.data["id"].as_str().unwrap().to_owned());
                if cuts.contains(&read) {
                    break;
                }
            }
        }
        ids
    }

    /// A stream behind a number, or behind the latest event.
    async fn open(&self, behind: Option<u64>) -> EventStream {
        let mut polls = tokio::time::interval(Duration::from_millis(20));
        for _ in 0..500 {
            polls.tick().await;
            let request = match behind {
                Some(number) => self.http.get(&self.url).header("Last-Event-ID", number),
                None => self.http.get(format!("{}&from=latest", self.url)),
            };
            let request = request.header("X-API-Key", &self.key).header("Accept", "text/event-stream");
            let answer = request.send().await.unwrap();
            // A stream that was just cut off counts until the service has noticed.
            if answer.status() != 429 {
                assert_eq!(answer.status(), 200);
                return EventStream::read(streamed(answer));
            }
        }
        panic!("streams that were cut off still count after ten seconds");
    }
}

/// The answer with its body as it comes. Whoever drops it hangs up.
fn streamed(answer: reqwest::Response) -> Response<Body> {
    let status = answer.status();
    let pieces = futures::stream::try_unfold(answer, async |mut answer| {
        Ok::<_, reqwest::Error>(answer.chunk().await?.map(|piece| (piece, answer)))
    });
    Response::builder().status(status).body(Body::from_stream(pieces)).unwrap()
}
