//! Parses server-sent events from the bytes of a response as they arrive.

use domain::event::FeedPosition;

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SseEvent {
    pub id: Option<FeedPosition>,
    pub name: String,
    pub data: String,
}

/// Received bytes that are not a complete event yet.
#[derive(Debug, Default)]
pub struct Incoming(Vec<u8>);

impl Incoming {
    pub fn push(&mut self, bytes: &[u8]) {
        self.0.extend_from_slice(bytes);
    }

    /// Returns the next complete event with data, if there is one.
    pub fn next(&mut self) -> Option<SseEvent> {
        loop {
            let end = self.0.windows(2).position(|pair| pair == b"\n\n")?;
            let block: Vec<u8> = self.0.drain(..end + 2).collect();
            let sent = read(&String::from_utf8_lossy(&block));
            // Blocks without data, such as `retry`, are not events.
            if !sent.data.is_empty() {
                return Some(sent);
            }
        }
    }
}

fn read(block: &str) -> SseEvent {
    let mut sent = SseEvent::default();
    for line in block.lines() {
        let Some((field, value)) = line.split_once(':') else { continue };
        let value = value.strip_prefix(' ').unwrap_or(value);
        match field {
            "id" => sent.id = value.parse().ok(),
            "event" => value.clone_into(&mut sent.name),
            "data" => value.clone_into(&mut sent.data),
            _ => {}
        }
    }
    sent
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_are_complete_for_any_split_of_their_bytes() {
        let text = "retry: 2000\n\nid: 3-7\nevent: trade.failed\ndata: {\"a\":\"\u{e9}\"}\n\n: a comment\n\nevent: closing\ndata: {}\n\nid: 3-8\n";
        for size in 1..text.len() {
            let mut incoming = Incoming::default();
            let mut found = Vec::new();
            for bytes in text.as_bytes().chunks(size) {
                incoming.push(bytes);
                found.extend(std::iter::from_fn(|| incoming.next()));
            }
            let id = Some(FeedPosition { generation: 3, sequence: 7 });
            let failed = SseEvent { id, name: "trade.failed".into(), data: "{\"a\":\"\u{e9}\"}".into() };
            let closing = SseEvent { id: None, name: "closing".into(), data: "{}".into() };
            assert_eq!(found, [failed, closing], "{size}");
        }
    }
}
