//! Parses YAML 1.2 into nodes. Plain scalars stay texts, so that a number is read exactly as
//! written.

use std::collections::HashMap;

use granit_parser::{Event, Parser, ScalarStyle, Span};
use protocol::document::{DocumentNode, DocumentValue};

use super::ImportProblem;

/// The maximum number of nodes that aliases may add. A few lines of nested aliases could otherwise
/// exhaust the memory.
const MAX_ALIASED: usize = 1_000_000;

/// Parses the single document of `text`. An empty text is null.
pub(super) fn read(text: &str) -> Result<DocumentNode, ImportProblem> {
    let mut reader = Reader::default();
    for event in Parser::new_from_str(text) {
        let (event, span) = event.map_err(|error| {
            let detail = format!("must be valid YAML: {}", error.info().lines().next().unwrap_or_default());
            ImportProblem::at_line("", u32::try_from(error.marker().line()).ok(), detail)
        })?;
        reader.take(event, span)?;
    }
    Ok(reader.root.unwrap_or(DocumentNode::new(DocumentValue::Null)))
}

#[derive(Debug, Default)]
struct Reader {
    root: Option<DocumentNode>,
    documents: u32,
    open: Vec<Open>,
    anchors: HashMap<usize, DocumentNode>,
    aliased: usize,
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
    fn take(&mut self, event: Event<'_>, span: Span) -> Result<(), ImportProblem> {
        let line = u32::try_from(span.start.line()).ok();
        match event {
            Event::DocumentStart(..) => {
                self.documents += 1;
                if self.documents > 1 {
                    return Err(ImportProblem::at_line("", line, "must be one YAML document"));
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
                self.open.push(Open { line, anchor, content: Content::List(Vec::new()) });
            }
            Event::MappingStart(_, anchor, _) => {
                self.open.push(Open { line, anchor, content: Content::Object(Vec::new(), None) });
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
                let node = self.anchors.get(&anchor).cloned();
                let node = node
                    .ok_or_else(|| ImportProblem::at_line("", line, "must not contain an alias of itself"))?;
                self.aliased += size(&node);
                if self.aliased > MAX_ALIASED {
                    return Err(ImportProblem::at_line(
                        "",
                        line,
                        "must not expand to more than 1,000,000 values through aliases",
                    ));
                }
                return self.add(node, 0);
            }
            _ => {}
        }
        Ok(())
    }

    fn add(&mut self, node: DocumentNode, anchor: usize) -> Result<(), ImportProblem> {
        if anchor != 0 {
            self.anchors.insert(anchor, node.clone());
        }
        match self.open.last_mut().map(|open| &mut open.content) {
            None => self.root = Some(node),
            Some(Content::List(items)) => items.push(node),
            Some(Content::Object(members, key)) => match key.take() {
                Some(name) => members.push((name, node)),
                None => match node.value {
                    DocumentValue::Plain(name) | DocumentValue::Text(name) => *key = Some(name),
                    _ => {
                        return Err(ImportProblem::at_line(
                            "",
                            node.line,
                            "must have strings as member names",
                        ));
                    }
                },
            },
        }
        Ok(())
    }
}

/// Merges the members of `<<` keys. Explicit members take precedence.
fn merged(members: Vec<(String, DocumentNode)>) -> Vec<(String, DocumentNode)> {
    let (merges, mut members): (Vec<_>, Vec<_>) = members
        .into_iter()
        .partition(|(name, node)| name == "<<" && matches!(node.value, DocumentValue::Object(_)));
    for (_, node) in merges {
        let DocumentValue::Object(more) = node.value else { continue };
        for (name, node) in more {
            if members.iter().all(|(known, _)| *known != name) {
                members.push((name, node));
            }
        }
    }
    members
}

fn size(node: &DocumentNode) -> usize {
    1 + match &node.value {
        DocumentValue::List(items) => items.iter().map(size).sum(),
        DocumentValue::Object(members) => members.iter().map(|(_, node)| size(node)).sum::<usize>(),
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn aliases_are_expanded_within_limits() {
        let node = read("a: &x [1, 2]\nb: *x\n").unwrap();
        let DocumentValue::Object(members) = node.value else { panic!("{node:?}") };
        assert_eq!(members[0].1.value, members[1].1.value);
        let mut bomb = String::from("a0: &a0 [1, 1, 1, 1, 1, 1, 1, 1, 1, 1]\n");
        for n in 1..10 {
            let alias = format!("*a{}", n - 1);
            bomb.push_str(&format!("a{n}: &a{n} [{}]\n", [alias.as_str(); 10].join(", ")));
        }
        assert_eq!(
            read(&bomb).unwrap_err().detail,
            "must not expand to more than 1,000,000 values through aliases"
        );
        assert!(read("a: &x [*x]\n").is_err());
    }

    #[test]
    fn own_members_override_merged_ones() {
        let node = read("- &m {a: 1, b: 2}\n- {<<: *m, b: 3}\n").unwrap();
        let DocumentValue::List(items) = node.value else { panic!("{node:?}") };
        let DocumentValue::Object(members) = &items[1].value else { panic!("{items:?}") };
        let texts: Vec<_> = members.iter().map(|(name, node)| format!("{name}={}", node.shown())).collect();
        assert_eq!(texts, ["b=\"3\"", "a=\"1\""]);
    }

    #[test]
    fn nodes_have_their_lines() {
        let node = read("a: 1\nb:\n  - c\n").unwrap();
        let DocumentValue::Object(members) = node.value else { panic!("{node:?}") };
        assert_eq!((members[0].1.line, members[1].1.line), (Some(1), Some(3)));
    }
}
