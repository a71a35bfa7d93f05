//! Guides as Markdown, for programs.

use pulldown_cmark::{Event, Options, Parser, Tag, TagEnd};

/// Returns a guide's own Markdown with the URLs that `resolve` returns for its links. A link without
/// a URL becomes its text.
pub fn guide_markdown(markdown: &str, resolve: impl Fn(&str) -> Option<String>) -> String {
    let mut written = String::with_capacity(markdown.len() + 1_024);
    let mut end = 0;
    for (event, range) in Parser::new_ext(markdown, Options::ENABLE_TABLES).into_offset_iter() {
        let Event::Start(Tag::Link { dest_url, .. }) = event else { continue };
        // Other forms of a link, such as `<https://…>`, have no target of their own.
        let Some(text) = markdown.get(range.clone()).and_then(inline_text) else { continue };
        written.push_str(markdown.get(end..range.start).unwrap_or_default());
        match resolve(&dest_url) {
            Some(url) => written.extend(["[", text, "](", &url, ")"]),
            None => written.push_str(text),
        }
        end = range.end;
    }
    written.push_str(markdown.get(end..).unwrap_or_default());
    written
}

/// Returns the text of a link of the form `[text](target)`.
fn inline_text(link: &str) -> Option<&str> {
    link.strip_prefix('[')?.rsplit_once("](").map(|(text, _)| text)
}

/// Returns the first sentence of a guide, as plain text in one line.
pub fn guide_summary(markdown: &str) -> String {
    let mut events = Parser::new(markdown).skip_while(|event| !matches!(event, Event::Start(Tag::Paragraph)));
    let mut text = String::new();
    for event in events.by_ref().take_while(|event| !matches!(event, Event::End(TagEnd::Paragraph))) {
        match event {
            Event::Text(part) | Event::Code(part) => text.push_str(&part),
            Event::SoftBreak | Event::HardBreak => text.push(' '),
            _ => {}
        }
    }
    match text.find(". ") {
        Some(stop) => text.truncate(stop + 1),
        // A paragraph that introduces an example ends in a colon.
        None if text.ends_with(':') => {
            text.pop();
            text.push('.');
        }
        None => {}
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_are_resolved_or_become_text_and_the_rest_stays() {
        let resolve = |target: &str| (target == "a.md").then(|| "/docs/a.md".to_owned());
        let source = "# T\n\nSee [`x` y](a.md), [z](b.md)\nand <https://c.test>.\n\n```sh\n[x](a.md)\n```\n";
        let expected = "# T\n\nSee [`x` y](/docs/a.md), z\nand <https://c.test>.\n\n```sh\n[x](a.md)\n```\n";
        assert_eq!(guide_markdown(source, resolve), expected);
    }

    #[test]
    fn a_link_in_a_table_is_resolved() {
        let source = "| a |\n|---|\n| [b](c.md#d) |\n";
        let resolve = |target: &str| Some(format!("/{target}"));
        assert_eq!(guide_markdown(source, resolve), "| a |\n|---|\n| [b](/c.md#d) |\n");
    }

    #[test]
    fn a_summary_is_the_first_sentence() {
        assert_eq!(guide_summary("# T\n\nRead `a`\nand [b](c). More.\n\nAgain.\n"), "Read a and b.");
        assert_eq!(guide_summary("# T\n\nRun it:\n\n```sh\nx. y\n```\n"), "Run it.");
        assert_eq!(guide_summary("# T\n"), "");
    }
}
