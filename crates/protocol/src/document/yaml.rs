//! Parses YAML 1.2 into nodes. Plain scalars stay texts, so that a number is read exactly as
//! written.
//!
//! An alias repeats a whole node, so nested ones can ask for terabytes in a few lines. Nothing is
//! copied before it is counted: a document's nodes take memory in proportion to its length, plus
//! [`MAX_COPIED_BYTES`] for all that its anchors and aliases copy.

use std::collections::{HashMap, HashSet};

use domain::trade::FieldError;
use granit_parser::{Event, Parser, ScalarStyle, Span};

use super::{DocumentFault, DocumentNode, DocumentValue, MAX_LEVELS, TOO_DEEP};

/// The maximum size of all copies that anchors and aliases make.
const MAX_COPIED_BYTES: usize = 8 << 20;
/// What a node costs in addition to its text.
const NODE_BYTES: usize = size_of::<DocumentNode>() + size_of::<String>();
const COPIES_TOO_MUCH: &str = "must not copy more than 8 MiB through anchors and aliases";

/// Parses the single document of `text`. An empty text is null.
///
/// # Errors
/// The first fault, with its line.
pub fn from_yaml(text: &str) -> Result<DocumentNode, DocumentFault> {
    let mut reader = Reader::default();
    for event in Parser::new_from_str(text) {
        let (event, span) = event.map_err(|error| {
            let detail = format!("must be valid YAML: {}", error.info().lines().next().unwrap_or_default());
            fault(u32::try_from(error.marker().line()).ok(), detail)
        })?;
        reader.take(event, span)?;
    }
    Ok(reader.root.unwrap_or(DocumentNode::new(DocumentValue::Null)))
}

fn fault(line: Option<u32>, detail: impl Into<String>) -> DocumentFault {
    DocumentFault { error: FieldError::new("", detail), line }
}

#[derive(Debug, Default)]
struct Reader {
    root: Option<DocumentNode>,
    documents: u32,
    open: Vec<Open>,
    anchors: HashMap<usize, Anchored>,
    copied_bytes: usize,
}

/// A node that aliases can repeat.
#[derive(Debug)]
struct Anchored {
    node: DocumentNode,
    extent: Extent,
}

/// The size of a node with everything in it.
#[derive(Debug, Clone, Copy)]
struct Extent {
    bytes: usize,
    /// The number of lists and objects inside each other.
    levels: usize,
}

impl Extent {
    fn of(node: &DocumentNode) -> Self {
        let (bytes, inner) = match &node.value {
            DocumentValue::Text(text) | DocumentValue::Plain(text) => (text.len(), None),
            DocumentValue::List(items) => (0, Some(Self::sum(items.iter()))),
            DocumentValue::Object(members) => {
                let names = members.iter().map(|(name, _)| name.len()).sum();
                (names, Some(Self::sum(members.iter().map(|(_, node)| node))))
            }
            DocumentValue::Null
            | DocumentValue::Bool(_)
            | DocumentValue::Integer(_)
            | DocumentValue::Float(_) => (0, None),
        };
        let inner_bytes = inner.map_or(0, |inner| inner.bytes);
        let levels = inner.map_or(0, |inner| inner.levels + 1);
        Self { bytes: NODE_BYTES + bytes + inner_bytes, levels }
    }

    fn sum<'a>(nodes: impl Iterator<Item = &'a DocumentNode>) -> Self {
        nodes.map(Self::of).fold(Self { bytes: 0, levels: 0 }, |sum, one| Self {
            bytes: sum.bytes + one.bytes,
            levels: sum.levels.max(one.levels),
        })
    }
}

/// A list or object that is not complete yet.
#[derive(Debug)]
struct Open {
    line: Option<u32>,
    anchor: usize,
    content: Content,
}

#[derive(Debug)]
enum Content {
    List(Vec<DocumentNode>),
    Object(Vec<(String, DocumentNode)>, Option<String>),
}

impl Reader {
    fn take(&mut self, event: Event<'_>, span: Span) -> Result<(), DocumentFault> {
        let line = u32::try_from(span.start.line()).ok();
        match event {
            Event::DocumentStart(..) => {
                self.documents += 1;
                if self.documents > 1 {
                    return Err(fault(line, "must be one YAML document"));
                }
            }
            Event::Scalar(text, style, anchor, _) => {
                let text = text.into_owned();
                let value = if style == ScalarStyle::Plain {
                    DocumentValue::Plain(text)
                } else {
                    DocumentValue::Text(text)
                };
                return self.add(DocumentNode { line, value }, anchor);
            }
            Event::SequenceStart(_, anchor, _) => {
                return self.open(Open { line, anchor, content: Content::List(Vec::new()) });
            }
            Event::MappingStart(_, anchor, _) => {
                return self.open(Open { line, anchor, content: Content::Object(Vec::new(), None) });
            }
            Event::SequenceEnd | Event::MappingEnd => {
                let Some(Open { line, anchor, content }) = self.open.pop() else { return Ok(()) };
                let value = match content {
                    Content::List(items) => DocumentValue::List(items),
                    Content::Object(members, _) => DocumentValue::Object(merged(members)),
                };
                return self.add(DocumentNode { line, value }, anchor);
            }
            Event::Alias(anchor) => {
                let node = self.copy(anchor, line)?;
                return self.add(node, 0);
            }
            _ => {}
        }
        Ok(())
    }

    fn open(&mut self, open: Open) -> Result<(), DocumentFault> {
        if self.open.len() >= MAX_LEVELS {
            return Err(fault(open.line, TOO_DEEP));
        }
        self.open.push(open);
        Ok(())
    }

    /// Copies the node of an anchor to the current place.
    fn copy(&mut self, anchor: usize, line: Option<u32>) -> Result<DocumentNode, DocumentFault> {
        let Some(Anchored { node, extent }) = self.anchors.get(&anchor) else {
            return Err(fault(line, "must not contain an alias of itself"));
        };
        if self.open.len() + extent.levels > MAX_LEVELS {
            return Err(fault(line, TOO_DEEP));
        }
        count(&mut self.copied_bytes, *extent, line)?;
        Ok(node.clone())
    }

    fn add(&mut self, node: DocumentNode, anchor: usize) -> Result<(), DocumentFault> {
        if anchor != 0 {
            let extent = Extent::of(&node);
            count(&mut self.copied_bytes, extent, node.line)?;
            self.anchors.insert(anchor, Anchored { node: node.clone(), extent });
        }
        match self.open.last_mut().map(|open| &mut open.content) {
            None => self.root = Some(node),
            Some(Content::List(items)) => items.push(node),
            Some(Content::Object(members, key)) => match key.take() {
                Some(name) => members.push((name, node)),
                None => match node.value {
                    DocumentValue::Plain(name) | DocumentValue::Text(name) => *key = Some(name),
                    _ => {
                        return Err(fault(node.line, "must have strings as member names"));
                    }
                },
            },
        }
        Ok(())
    }
}

/// Counts a copy of a node before it is made.
fn count(copied_bytes: &mut usize, extent: Extent, line: Option<u32>) -> Result<(), DocumentFault> {
    *copied_bytes += extent.bytes;
    if *copied_bytes > MAX_COPIED_BYTES { Err(fault(line, COPIES_TOO_MUCH)) } else { Ok(()) }
}

/// Merges the members of `<<` keys. Explicit members take precedence.
fn merged(members: Vec<(String, DocumentNode)>) -> Vec<(String, DocumentNode)> {
    let (merges, mut members): (Vec<_>, Vec<_>) = members
        .into_iter()
        .partition(|(name, node)| name == "<<" && matches!(node.value, DocumentValue::Object(_)));
    if merges.is_empty() {
        return members;
    }
    let mut known: HashSet<String> = members.iter().map(|(name, _)| name.clone()).collect();
    for (_, node) in merges {
        let DocumentValue::Object(more) = node.value else { continue };
        members.extend(more.into_iter().filter(|(name, _)| known.insert(name.clone())));
    }
    members
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(text: &str) -> String {
        from_yaml(text).unwrap_err().error.detail
    }

    #[test]
    fn an_alias_repeats_its_anchor() {
        let node = from_yaml("a: &x [1, 2]\nb: *x\n").unwrap();
        let DocumentValue::Object(members) = node.value else { panic!("{node:?}") };
        assert_eq!(members[0].1.value, members[1].1.value);
        assert!(from_yaml("a: &x [*x]\n").is_err());
    }

    #[test]
    fn a_short_document_cannot_take_much_memory() {
        let mut nested = String::from("a0: &a0 [1, 1, 1, 1, 1, 1, 1, 1, 1, 1]\n");
        for n in 1..10 {
            let alias = format!("*a{}", n - 1);
            nested.push_str(&format!("a{n}: &a{n} [{}]\n", [alias.as_str(); 10].join(", ")));
        }
        let long = format!("a: &a {}\nb: [{}]\n", "x".repeat(12_000), ["*a"; 2_500].join(", "));
        let anchors = (0..100).map(|n| format!("&a{n} [")).collect::<String>();
        let anchors = format!("{anchors}{}{}", "x".repeat(100_000), "]".repeat(100));
        for text in [nested, long, anchors] {
            assert_eq!(refused(&text), COPIES_TOO_MUCH, "{text:.60}");
        }
    }

    #[test]
    fn a_thousand_objects_can_share_their_defaults() {
        let defaults = format!("defaults: &d {{rules: \"{}\", fee: 100, tags: [a, b]}}\n", "x".repeat(4_000));
        let items: String = (0..1_000).map(|n| format!("  - {{<<: *d, key: m{n}}}\n")).collect();
        assert!(from_yaml(&format!("{defaults}items:\n{items}")).is_ok());
    }

    #[test]
    fn deep_nesting_is_rejected_however_it_is_written() {
        let flow = format!("{}{}", "[".repeat(128), "]".repeat(128));
        let block: String = (0..128).map(|n| format!("{}a:\n", " ".repeat(n))).collect();
        let mut aliases = String::from("- &a0 [x]\n");
        for n in 1..128 {
            aliases.push_str(&format!("- &a{n} [*a{}]\n", n - 1));
        }
        for text in [flow, block, aliases] {
            assert_eq!(refused(&text), TOO_DEEP, "{text:.60}");
        }
        assert!(from_yaml(&format!("{}{}", "[".repeat(127), "]".repeat(127))).is_ok());
        assert!(from_yaml(&"[".repeat(100_000)).is_err());
    }

    #[test]
    fn own_members_override_merged_ones() {
        let node = from_yaml("- &m {a: 1, b: 2}\n- {<<: *m, b: 3}\n").unwrap();
        let DocumentValue::List(items) = node.value else { panic!("{node:?}") };
        let DocumentValue::Object(members) = &items[1].value else { panic!("{items:?}") };
        let texts: Vec<_> = members.iter().map(|(name, node)| format!("{name}={}", node.shown())).collect();
        assert_eq!(texts, ["b=\"3\"", "a=\"1\""]);
    }

    #[test]
    fn nodes_have_their_lines() {
        let node = from_yaml("a: 1\nb:\n  - c\n").unwrap();
        let DocumentValue::Object(members) = node.value else { panic!("{node:?}") };
        assert_eq!((members[0].1.line, members[1].1.line), (Some(1), Some(3)));
    }
}
