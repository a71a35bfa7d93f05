//! Reading a catalogue's text: what stands in it must have a place in the catalogue, and the first that has none is told by
//! its path and its line.

use std::fmt;

use serde::Deserialize;
use serde_path_to_error::{Deserializer, Track};

use super::document::Catalogue;

/// The languages of a catalogue's text. They say the same things.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// JSON.
    Json,
    /// YAML 1.2: `yes` and `no` are texts there, and `true` and `false` are not.
    Yaml,
}

/// A text that is no catalogue.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unreadable {
    /// Where in the catalogue, such as `threads[0].title`; empty where the text is not even of its language.
    pub path: String,
    /// The line, from one, where it is known.
    pub line: Option<u64>,
    /// Why.
    pub detail: String,
}

impl fmt::Display for Unreadable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(line) = self.line {
            write!(f, "line {line}: ")?;
        }
        if !self.path.is_empty() {
            write!(f, "{}: ", self.path)?;
        }
        f.write_str(&self.detail)
    }
}

impl std::error::Error for Unreadable {}

/// Reads a catalogue.
pub fn read(text: &str, format: Format) -> Result<Catalogue, Unreadable> {
    match format {
        Format::Json => read_json(text),
        Format::Yaml => read_yaml(text),
    }
}

fn read_json(text: &str) -> Result<Catalogue, Unreadable> {
    let mut track = Track::new();
    let mut json = serde_json::Deserializer::from_str(text);
    let read = Catalogue::deserialize(Deserializer::new(&mut json, &mut track));
    let catalogue = read.and_then(|catalogue| json.end().map(|()| catalogue)).map_err(|error| {
        let line = u64::try_from(error.line()).ok().filter(|line| *line > 0);
        Unreadable { path: path(track), line, detail: without_place(&error.to_string()) }
    })?;
    match not_an_object(text) {
        None => Ok(catalogue),
        Some(path) => Err(Unreadable { path, line: None, detail: "is an object".to_owned() }),
    }
}

/// JSON's reader takes a list for an object with its members in order. A catalogue does not.
fn not_an_object(text: &str) -> Option<String> {
    let value: serde_json::Value = serde_json::from_str(text).ok()?;
    let Some(lists) = value.as_object() else { return Some("the file".to_owned()) };
    lists.iter().find_map(|(list, items)| {
        let index = items.as_array()?.iter().position(|item| !item.is_object())?;
        Some(format!("{list}[{index}]"))
    })
}

fn read_yaml(text: &str) -> Result<Catalogue, Unreadable> {
    let mut found = String::new();
    let options = serde_saphyr::options! { strict_booleans: true, with_snippet: false };
    let read = serde_saphyr::with_deserializer_from_str_with_options(text, options, |yaml| {
        let mut track = Track::new();
        let read = Catalogue::deserialize(Deserializer::new(yaml, &mut track));
        if read.is_err() {
            found = path(track);
        }
        read
    });
    read.map_err(|error| {
        let line = error.location().map(|at| at.line()).filter(|line| *line > 0);
        Unreadable { path: found, line, detail: without_place(&error.to_string()) }
    })
}

/// The path, without the marks for what has no name yet.
fn path(track: Track) -> String {
    track.path().to_string().trim_end_matches(['?', '.']).to_owned()
}

/// The reader's message without the place at its end, which is told in its own words, and without its advice to programs.
fn without_place(message: &str) -> String {
    let message = message.lines().next().unwrap_or_default();
    let ends = [" at line ", "; use from_str", ", set DuplicateKeyPolicy"];
    let end = ends.into_iter().filter_map(|end| message.find(end)).min();
    end.map_or(message, |end| &message[..end]).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(text: &str, format: Format) -> String {
        read(text, format).map_or_else(|error| error.to_string(), |_| "read".to_owned())
    }

    #[test]
    fn what_has_no_place_is_told_by_its_path_and_its_line() {
        const WINDOW: &str = "not an ISO 8601 instant such as 2026-04-29T12:00:00Z";
        for (text, message) in [
            ("threads:\n  - key: a\n", "line 2: threads[0]: missing field `title`".to_owned()),
            (
                "threads:\n  - key: a\n    title: x\n    endTime: soon\n",
                format!("line 4: threads[0].endTime: {WINDOW}"),
            ),
            (
                "threads:\n  - key: a\n    key: b\n",
                "line 3: threads[0]: duplicate mapping key: key".to_owned(),
            ),
            ("threads: 3\n", "line 1: threads: expected sequence start".to_owned()),
            ("- 1\n", "line 1: expected mapping start".to_owned()),
            ("---\n---\n", "line 2: multiple YAML documents detected".to_owned()),
        ] {
            assert_eq!(told(text, Format::Yaml), message, "{text}");
        }
        let titel = "threads[0].titel: unknown field `titel`, expected one of";
        for (text, format) in [
            ("threads:\n  - key: a\n    titel: x\n", Format::Yaml),
            ("{\"threads\":\n\n[{\"key\": \"a\", \"titel\": 1}]}", Format::Json),
        ] {
            assert!(
                told(text, format).starts_with(&format!("line 3: {titel}")),
                "{text}: {}",
                told(text, format)
            );
        }
    }

    #[test]
    fn json_is_held_to_the_same_form() {
        for (text, message) in [
            ("{\"threads\": [\n{\"key\": \"a\"}]}", "line 2: threads[0]: missing field `title`"),
            ("{\"threads\": 3}", "line 1: threads: invalid type: integer `3`, expected a sequence"),
            ("{\"threads\": [], \"threads\": []}", "line 1: duplicate field `threads`"),
            ("{", "line 1: EOF while parsing an object"),
            ("{} {}", "line 1: trailing characters"),
            ("[]", "the file: is an object"),
            ("{\"chapters\": [[\"a\", \"b\", \"c\", 1]]}", "chapters[0]: is an object"),
        ] {
            assert_eq!(told(text, Format::Json), message, "{text}");
        }
    }

    #[test]
    fn unquoted_words_are_texts() {
        let text = "threads:\n  - {key: 2030, title: yes, tags: [no, 1.50, null, 2030-01-01]}\n";
        let thread = read(text, Format::Yaml).unwrap().threads.remove(0);
        assert_eq!((thread.key.as_str(), thread.title.as_str()), ("2030", "yes"));
        assert_eq!(thread.tags[..2], ["no", "1.50"]);
        let active = "partners:\n  - {key: a, organization: b, name: c, slug: d, active: yes}\n";
        assert!(told(active, Format::Yaml).starts_with("line 2: partners[0].active: invalid boolean"));
    }
}
