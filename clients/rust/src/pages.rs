use std::collections::VecDeque;
use std::sync::Arc;

use futures::Stream;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::error::Error;
use crate::response::ResponseInfo;
use crate::transport::{Answer, Call, Transport};
use crate::types::Query;

/// A page of a list.
#[derive(Debug, Clone)]
pub struct Page<T> {
    /// The records.
    pub items: Vec<T>,
    /// The records as the service sent them.
    pub json: Vec<Value>,
    /// The position of the next page. `None` if this is the last one.
    pub cursor: Option<String>,
    /// The circumstances of the response.
    pub info: ResponseInfo,
}

/// A list, read page by page.
pub struct Pages<T> {
    transport: Arc<Transport>,
    call: Call,
    first: usize,
    has_more: bool,
    items: VecDeque<T>,
}

impl<T: DeserializeOwned> Pages<T> {
    pub(crate) fn new(transport: Arc<Transport>, path: impl Into<String>, query: &impl Query) -> Self {
        let query = query.pairs();
        let first = query.len();
        let call = Call { query, ..Call::get(path, "data") };
        Self { transport, call, first, has_more: true, items: VecDeque::new() }
    }

    /// Reads the next page. Returns `None` after the last one.
    ///
    /// # Errors
    ///
    /// If the page cannot be read. Another call tries again.
    pub async fn next_page(&mut self) -> Result<Option<Page<T>>, Error> {
        if !self.has_more {
            return Ok(None);
        }
        let page = self.transport.send_with(&self.call, read_page).await?;
        self.has_more = page.cursor.is_some();
        self.call.query.truncate(self.first);
        self.call.query.extend(page.cursor.clone().map(|cursor| ("cursor", cursor)));
        Ok(Some(page))
    }

    /// Returns the next record, and reads a page if necessary. Returns `None` after the last one.
    ///
    /// # Errors
    ///
    /// If a page cannot be read. Another call tries again.
    pub async fn try_next(&mut self) -> Result<Option<T>, Error> {
        while self.items.is_empty() {
            let Some(page) = self.next_page().await? else { return Ok(None) };
            self.items.extend(page.items);
        }
        Ok(self.items.pop_front())
    }

    /// Reads all records.
    ///
    /// # Errors
    ///
    /// If a page cannot be read.
    pub async fn all(mut self) -> Result<Vec<T>, Error> {
        let mut all = Vec::new();
        while let Some(item) = self.try_next().await? {
            all.push(item);
        }
        Ok(all)
    }

    /// Converts the list to a stream of records.
    pub fn into_stream(self) -> impl Stream<Item = Result<T, Error>> {
        futures::stream::try_unfold(self, async |mut pages| {
            Ok(pages.try_next().await?.map(|item| (item, pages)))
        })
    }
}

fn read_page<T: DeserializeOwned>(mut answer: Answer) -> Result<Page<T>, serde_json::Error> {
    let json: Vec<Value> = serde_json::from_value(answer.json.remove("data").unwrap_or_default())?;
    let items = json.iter().map(T::deserialize).collect::<Result<_, _>>()?;
    let pagination = answer.json.get("pagination");
    let has_more = pagination.and_then(|of| of.get("hasMore")) == Some(&Value::Bool(true));
    let cursor = pagination.and_then(|of| of.get("cursor")).and_then(Value::as_str);
    let cursor = cursor.filter(|_| has_more).map(str::to_owned);
    Ok(Page { items, json, cursor, info: answer.info })
}
