//! Parses server-sent events from chunks that end anywhere.

/// One event of a stream.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServerSentEvent {
    pub id: Option<String>,
    pub name: String,
    pub data: String,
}

/// The longest event that is read.
const MAX_PENDING: usize = 4 * 1024 * 1024;

/// An event that is longer than any of the service's.
#[derive(Debug)]
pub struct TooLong;

/// The parser of one connection. It drops unfinished events.
#[derive(Debug, Default)]
pub struct EventParser {
    pending: Vec<u8>,
    /// The bytes of `pending` that have no end of a line.
    scanned: usize,
    has_begun: bool,
    id: Option<String>,
    name: String,
    data: Option<String>,
}

impl EventParser {
    /// Returns the events that the chunk completes.
    pub fn push(&mut self, chunk: &[u8]) -> Result<Vec<ServerSentEvent>, TooLong> {
        self.pending.extend_from_slice(chunk);
        let mut pending = std::mem::take(&mut self.pending);
        let mut events = Vec::new();
        let mut start = self.byte_order_mark(&pending);
        let mut from = self.scanned.max(start);
        while let Some(length) = pending[from..].iter().position(|byte| matches!(byte, b'\n' | b'\r')) {
            let end = from + length;
            let is_cr = pending[end] == b'\r';
            // The next chunk may begin with the LF of this CR.
            if is_cr && end + 1 == pending.len() {
                break;
            }
            events.extend(self.line(&String::from_utf8_lossy(&pending[start..end])));
            start = end + 1 + usize::from(is_cr && pending[end + 1] == b'\n');
            from = start;
        }
        pending.drain(..start);
        // The last byte may be such a CR.
        self.scanned = pending.len().saturating_sub(1);
        self.pending = pending;
        let size = self.pending.len() + self.data.as_ref().map_or(0, String::len);
        if size > MAX_PENDING { Err(TooLong) } else { Ok(events) }
    }

    /// Returns the length of the mark at the beginning of the stream.
    fn byte_order_mark(&mut self, pending: &[u8]) -> usize {
        const MARK: &[u8] = "\u{feff}".as_bytes();
        if self.has_begun || (pending.len() < MARK.len() && MARK.starts_with(pending)) {
            return 0;
        }
        self.has_begun = true;
        if pending.starts_with(MARK) { MARK.len() } else { 0 }
    }

    fn line(&mut self, line: &str) -> Option<ServerSentEvent> {
        if line.is_empty() {
            return self.finish();
        }
        let (field, value) = line.split_once(':').unwrap_or((line, ""));
        let value = value.strip_prefix(' ').unwrap_or(value);
        match field {
            "data" => match &mut self.data {
                Some(data) => {
                    data.push('\n');
                    data.push_str(value);
                }
                None => self.data = Some(value.to_owned()),
            },
            "event" => value.clone_into(&mut self.name),
            "id" if !value.contains('\0') => self.id = Some(value.to_owned()),
            _ => {}
        }
        None
    }

    fn finish(&mut self) -> Option<ServerSentEvent> {
        let name = std::mem::take(&mut self.name);
        let data = self.data.take()?;
        let name = if name.is_empty() { "message".to_owned() } else { name };
        Some(ServerSentEvent { id: self.id.clone(), name, data })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_are_the_same_for_any_split_of_their_bytes() {
        let text = "\u{feff}: a\r\nid: 1-1\revent: a\r\ndata: {\ndata:\"\u{e9}\"}\n\nid: 1-2\n\nevent: b\ndata\r\rdata: unfinished\n";
        let event = |id: &str, name: &str, data: &str| ServerSentEvent {
            id: Some(id.to_owned()),
            name: name.to_owned(),
            data: data.to_owned(),
        };
        for size in 1..text.len() {
            let mut parser = EventParser::default();
            let events: Vec<_> =
                text.as_bytes().chunks(size).flat_map(|chunk| parser.push(chunk).unwrap()).collect();
            assert_eq!(events, [event("1-1", "a", "{\n\"\u{e9}\"}"), event("1-2", "b", "")], "{size}");
        }
    }

    #[test]
    fn endless_lines_and_events_are_rejected() {
        for end in ["", "\n"] {
            let mut parser = EventParser::default();
            let chunk = format!("data: {}{end}", "x".repeat(1000));
            assert!((0..10_000).any(|_| parser.push(chunk.as_bytes()).is_err()), "{end:?}");
        }
    }
}
