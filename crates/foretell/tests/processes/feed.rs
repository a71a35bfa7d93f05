//! A reader of a user's feed over HTTP that is disconnected and resumes.

use std::collections::BTreeSet;
use std::time::Duration;

use axum::body::Body;
use axum::http::Response;
use http_testkit::EventStream;

/// The feed of a key's user.
pub struct Feed {
    http: reqwest::Client,
    url: String,
    key: String,
}

impl Feed {
    pub fn new(base_url: &str, key: &str) -> Self {
        let http = reqwest::Client::builder().no_proxy().build().unwrap();
        Self { http, url: format!("{base_url}/v1/events?types=*"), key: key.to_owned() }
    }

    /// Returns the number of the latest event.
    pub async fn latest(&self) -> u64 {
        let mut stream = self.open(None).await;
        let sent = stream.next().await.unwrap();
        assert_eq!(sent.name, "heartbeat", "nothing is behind the latest");
        sent.data["sequence"].as_u64().unwrap()
    }

    /// Returns the ids of the `count` events after the number `behind`, and asserts that their
    /// numbers have no gap. The reader disconnects after each event in `cuts` and resumes.
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

    /// Opens a stream after a number, or after the latest event.
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
            // A stream that was just disconnected counts until the service notices it.
            if answer.status() != 429 {
                assert_eq!(answer.status(), 200);
                return EventStream::read(streamed(answer));
            }
        }
        panic!("streams that were cut off still count after ten seconds");
    }
}

/// Converts the response to a streamed body. Dropping it closes the connection.
fn streamed(answer: reqwest::Response) -> Response<Body> {
    let status = answer.status();
    let pieces = futures::stream::try_unfold(answer, async |mut answer| {
        Ok::<_, reqwest::Error>(answer.chunk().await?.map(|piece| (piece, answer)))
    });
    Response::builder().status(status).body(Body::from_stream(pieces)).unwrap()
}
