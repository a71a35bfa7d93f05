//! Reads the members of an object one by one and collects all of their faults.

use std::collections::{BTreeMap, HashSet};
use std::str::FromStr;

use super::{DocumentNode, DocumentValue};
use domain::field_error::segment;
use domain::text::OutsideText;
use domain::trade::FieldError;

/// The maximum number of listed faults. A summary states the number of further ones.
const MAX_FAULTS: usize = 100;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DocumentFault {
    /// The location and the violated requirement.
    pub error: FieldError,
    /// The line in the document, if known.
    pub line: Option<u32>,
}

/// The faults of a document in document order.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DocumentFaults {
    list: Vec<DocumentFault>,
    unlisted: usize,
}

impl DocumentFaults {
    pub const fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    pub fn add(&mut self, error: FieldError, line: Option<u32>) {
        if self.list.len() < MAX_FAULTS {
            self.list.push(DocumentFault { error, line });
        } else {
            self.unlisted += 1;
        }
    }

    /// Returns true if there is a fault at `pointer`, inside it, or at a member that contains it.
    pub fn has(&self, pointer: &str) -> bool {
        let within = |inner: &str, outer: &str| {
            inner.strip_prefix(outer).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        };
        self.list
            .iter()
            .any(|fault| within(&fault.error.pointer, pointer) || within(pointer, &fault.error.pointer))
    }

    /// Returns the listed faults, followed by a summary if some were not listed.
    pub fn into_list(mut self) -> Vec<DocumentFault> {
        if self.unlisted > 0 {
            let error = FieldError::new("", format!("must be corrected in {} more places", self.unlisted));
            self.list.push(DocumentFault { error, line: None });
        }
        self.list
    }

    /// Like [`Self::into_list`], without lines.
    pub fn into_errors(self) -> Vec<FieldError> {
        self.into_list().into_iter().map(|fault| fault.error).collect()
    }
}

/// The members of an object that have not been read yet. A `null` member counts as absent. Reading
/// a member with the wrong type adds a fault and returns `None`.
#[derive(Debug)]
pub struct Members<'a> {
    pointer: String,
    line: Option<u32>,
    given: Vec<(String, DocumentNode)>,
    known: Vec<&'static str>,
    faulty: HashSet<&'static str>,
    faults: &'a mut DocumentFaults,
}

impl<'a> Members<'a> {
    /// Creates a reader of the object at `pointer`. Repeated members are faults; only the first is
    /// read.
    pub fn new(node: DocumentNode, pointer: &str, faults: &'a mut DocumentFaults) -> Option<Self> {
        let (line, shown) = (node.line, node.shown());
        let DocumentValue::Object(members) = node.value else {
            let detail = format!("must be an object, got {shown}");
            faults.add(FieldError::new(pointer, detail), line);
            return None;
        };
        let mut names = HashSet::new();
        let mut given = Vec::with_capacity(members.len());
        for (name, node) in members {
            if names.insert(name.clone()) {
                given.push((name, node));
            } else {
                let at = format!("{pointer}/{}", segment(&name));
                faults.add(FieldError::new(at, "must be sent only once"), node.line);
            }
        }
        let pointer = pointer.to_owned();
        Some(Self { pointer, line, given, known: Vec::new(), faulty: HashSet::new(), faults })
    }

    fn take(&mut self, name: &'static str) -> Option<DocumentNode> {
        // Absent members count too: the error for an unknown member lists all known ones.
        self.known.push(name);
        let index = self.given.iter().position(|(given, _)| given == name)?;
        let (_, node) = self.given.remove(index);
        (!node.is_null()).then_some(node)
    }

    fn at(&self, name: &str) -> String {
        format!("{}/{name}", self.pointer)
    }

    fn wrong<T>(&mut self, name: &'static str, node: &DocumentNode, requirement: &str) -> Option<T> {
        self.faulty.insert(name);
        let detail = format!("{requirement}, got {}", node.shown());
        self.faults.add(FieldError::new(self.at(name), detail), node.line);
        None
    }

    /// Reads a string.
    pub fn text(&mut self, name: &'static str) -> Option<String> {
        let node = self.take(name)?;
        let line = node.line;
        match node.into_text().map(OutsideText::new) {
            Ok(Ok(text)) => Some(text.into_string()),
            Ok(Err(fault)) => {
                self.faulty.insert(name);
                self.faults.add(FieldError::new(self.at(name), fault.to_string()), line);
                None
            }
            Err(node) => self.wrong(name, &node, "must be a string"),
        }
    }

    /// Reads a string that must not appear in any error message.
    pub fn secret(&mut self, name: &'static str) -> Option<String> {
        let node = self.take(name)?;
        let line = node.line;
        // Unlike `text`, the fault does not show the value.
        let text = outside_text(node);
        if text.is_none() {
            self.faulty.insert(name);
            self.faults.add(FieldError::new(self.at(name), "must be a string"), line);
        }
        text
    }

    /// Reads an integer. Values outside of 64 bits are clamped.
    pub fn integer(&mut self, name: &'static str) -> Option<i64> {
        let node = self.take(name)?;
        node.as_integer().or_else(|| self.wrong(name, &node, "must be an integer"))
    }

    /// Reads an integer from 0 to `most`.
    pub fn number(&mut self, name: &'static str, most: u32) -> Option<u32> {
        let node = self.take(name)?;
        let number = node.as_integer().and_then(|number| u32::try_from(number).ok());
        let requirement = || format!("must be an integer from 0 to {most}");
        number.filter(|number| *number <= most).or_else(|| self.wrong(name, &node, &requirement()))
    }

    /// Reads a boolean.
    pub fn flag(&mut self, name: &'static str) -> Option<bool> {
        let node = self.take(name)?;
        node.as_flag().or_else(|| self.wrong(name, &node, "must be true or false"))
    }

    /// Reads a decimal exactly as it was written.
    pub fn decimal(&mut self, name: &'static str) -> Option<String> {
        let node = self.take(name)?;
        node.as_decimal().or_else(|| self.wrong(name, &node, DECIMAL))
    }

    /// Reads a string and parses it as a `T`.
    pub fn parsed<T: FromStr>(&mut self, name: &'static str, requirement: &str) -> Option<T> {
        let node = self.take(name)?;
        let (line, shown) = (node.line, node.shown());
        let parsed = node.into_text().ok().and_then(|text| text.parse().ok());
        if parsed.is_none() {
            self.faulty.insert(name);
            let detail = format!("{requirement}, got {shown}");
            self.faults.add(FieldError::new(self.at(name), detail), line);
        }
        parsed
    }

    /// Reads a list of strings.
    pub fn texts(&mut self, name: &'static str) -> Option<Vec<String>> {
        self.list_of(name, "must be a string", outside_text)
    }

    /// Reads a list of decimals.
    pub fn decimals(&mut self, name: &'static str) -> Option<Vec<String>> {
        self.list_of(name, DECIMAL, |node| node.as_decimal())
    }

    fn list_of<T>(
        &mut self,
        name: &'static str,
        requirement: &str,
        read: impl Fn(DocumentNode) -> Option<T>,
    ) -> Option<Vec<T>> {
        let items = self.items(name)?;
        let mut list = Vec::with_capacity(items.len());
        for (index, node) in items.into_iter().enumerate() {
            let (line, shown) = (node.line, node.shown());
            // Continue after a faulty item, so that all faults are reported.
            let item = read(node);
            if item.is_none() {
                let at = format!("{}/{index}", self.at(name));
                self.faults.add(FieldError::new(at, format!("{requirement}, got {shown}")), line);
            }
            list.extend(item);
        }
        Some(list)
    }

    /// Reads a list of arbitrary values.
    pub fn items(&mut self, name: &'static str) -> Option<Vec<DocumentNode>> {
        let node = self.take(name)?;
        match node.value {
            DocumentValue::List(items) => Some(items),
            _ => self.wrong(name, &node, "must be a list"),
        }
    }

    /// Reads a list of objects with `read`. The faults of each object are added to the document's.
    pub fn objects<T>(&mut self, name: &'static str, read: impl Fn(&mut Members<'_>) -> T) -> Vec<T> {
        let items = self.items(name).unwrap_or_default();
        let mut list = Vec::with_capacity(items.len());
        for (index, node) in items.into_iter().enumerate() {
            let at = format!("{}/{index}", self.at(name));
            if let Some(mut members) = Members::new(node, &at, self.faults) {
                list.push(read(&mut members));
                members.finish();
            }
        }
        list
    }

    /// Reads an object whose members are strings.
    pub fn text_map(&mut self, name: &'static str) -> Option<BTreeMap<String, String>> {
        let node = self.take(name)?;
        if !matches!(node.value, DocumentValue::Object(_)) {
            return self.wrong(name, &node, "must be an object of strings");
        }
        let mut map = BTreeMap::new();
        let at = self.at(name);
        let members = Members::new(node, &at, self.faults)?;
        // Any name is allowed here, so `finish` and its check for unknown members are not needed.
        for (key, node) in members.given {
            let at = format!("{at}/{}", segment(&key));
            let (line, shown) = (node.line, node.shown());
            let Ok(text) = node.into_text() else {
                members.faults.add(FieldError::new(at, format!("must be a string, got {shown}")), line);
                continue;
            };
            match (OutsideText::new(key), OutsideText::new(text)) {
                (Ok(key), Ok(text)) => drop(map.insert(key.into_string(), text.into_string())),
                (Err(fault), _) | (_, Err(fault)) => {
                    members.faults.add(FieldError::new(at, fault.to_string()), line);
                }
            }
        }
        Some(map)
    }

    /// Adds a fault if `value` is missing. `what` describes the member.
    pub fn required<T>(&mut self, name: &'static str, value: Option<T>, what: &str) -> Option<T> {
        // A member of the wrong type already has its own fault.
        if value.is_none() && !self.faulty.contains(name) {
            self.faults.add(FieldError::new(self.at(name), format!("is required: {what}")), self.line);
        }
        value
    }

    /// Reports all members that were not read as unknown. Call this after reading the object.
    pub fn finish(self) {
        let known = if self.known.is_empty() { "none".to_owned() } else { self.known.join(", ") };
        for (name, node) in self.given {
            let at = format!("{}/{}", self.pointer, segment(&name));
            let detail = format!("must not be sent: it is not a known member (known: {known})");
            self.faults.add(FieldError::new(at, detail), node.line);
        }
    }
}

fn outside_text(node: DocumentNode) -> Option<String> {
    let text = node.into_text().ok()?;
    OutsideText::new(text).ok().map(OutsideText::into_string)
}

const DECIMAL: &str = "must be a decimal, in quotes if it is a JSON number of more than 15 digits";

#[cfg(test)]
mod tests {
    use super::super::from_json;
    use super::*;

    fn faults(json: &str, read: impl FnOnce(&mut Members<'_>)) -> Vec<String> {
        let mut faults = DocumentFaults::default();
        if let Some(mut members) = Members::new(from_json(json.as_bytes()).unwrap(), "", &mut faults) {
            read(&mut members);
            members.finish();
        }
        faults.into_errors().into_iter().map(|error| format!("{} {}", error.pointer, error.detail)).collect()
    }

    #[test]
    fn all_errors_of_an_object_are_reported_with_truncated_values() {
        let long = "x".repeat(20_000);
        let json = format!(
            r#"{{"name": 7, "name": 8, "index": "{long}", "on": "yes", "map": {{"k": 1, "k": "2"}}, "lsit": []}}"#
        );
        let found = faults(&json, |members| {
            members.text("name");
            members.integer("index");
            members.flag("on");
            members.text_map("map");
            let size = members.text("size");
            members.required("size", size, "a string");
            members.text("list");
        });
        let cut = format!("\"{}…\"", "x".repeat(60));
        assert_eq!(
            found,
            [
                "/name must be sent only once",
                "/name must be a string, got 7",
                &format!("/index must be an integer, got {cut}"),
                "/on must be true or false, got \"yes\"",
                "/map/k must be sent only once",
                "/map/k must be a string, got 1",
                "/size is required: a string",
                "/lsit must not be sent: it is not a known member (known: name, index, on, map, size, list)",
            ]
        );
    }

    #[test]
    fn null_is_absent() {
        assert!(faults(r#"{"name": null}"#, |members| assert_eq!(members.text("name"), None)).is_empty());
    }

    #[test]
    fn a_secret_value_is_not_echoed() {
        let found = faults(r#"{"token": 123456}"#, |members| drop(members.secret("token")));
        assert_eq!(found, ["/token must be a string"]);
    }

    #[test]
    fn the_number_of_reported_errors_is_bounded() {
        let members: Vec<_> = (0..5_000).map(|n| format!("\"m{n}\": 1")).collect();
        let found = faults(&format!("{{{}}}", members.join(",")), |_| {});
        assert_eq!(found.len(), MAX_FAULTS + 1);
        assert_eq!(found.last().unwrap(), " must be corrected in 4900 more places");
    }
}
