//! Guides: documents of the project as pages. Their Markdown is our own, so it is not sanitized; HTML in
//! it is shown as text.

use std::collections::HashMap;

use pulldown_cmark::{CowStr, Event, HeadingLevel, Options, Parser, Tag, TagEnd, html};

/// A rendered guide.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Guide {
    /// The text of the first heading.
    pub title: String,
    pub html: String,
    /// The headings of the second level.
    pub sections: Vec<GuideSection>,
}

/// A section of a guide.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GuideSection {
    pub id: String,
    pub title: String,
}

/// Renders a guide. `resolve` returns the URL for the target of a link; a link without one becomes text.
pub fn guide(markdown: &str, resolve: impl Fn(&str) -> Option<String>) -> Guide {
    let mut guide = Guide { title: String::new(), html: String::new(), sections: Vec::new() };
    let mut ids = HashMap::new();
    let mut events = Parser::new_ext(markdown, Options::ENABLE_TABLES);
    let mut written = Vec::new();
    // The links that are open: whether each has a URL.
    let mut links = Vec::new();
    while let Some(event) = events.next() {
        match event {
            Event::Start(Tag::Heading { level, .. }) => {
                let inside: Vec<Event<'_>> = events
                    .by_ref()
                    .take_while(|event| !matches!(event, Event::End(TagEnd::Heading(_))))
                    .collect();
                let title: String = inside.iter().filter_map(text_of).collect();
                let id = unique(&mut ids, &title);
                written.push(Event::Html(format!("<{level} id=\"{id}\">").into()));
                written.extend(inside);
                written.push(Event::Html(format!("</{level}>\n").into()));
                match level {
                    HeadingLevel::H1 if guide.title.is_empty() => guide.title = title,
                    HeadingLevel::H2 => guide.sections.push(GuideSection { id, title }),
                    _ => {}
                }
            }
            // Keyboards must be able to scroll what is wider than the page.
            Event::Start(Tag::CodeBlock(_)) => written.push(Event::Html("<pre tabindex=\"0\"><code>".into())),
            Event::End(TagEnd::CodeBlock) => written.push(Event::Html("</code></pre>\n".into())),
            Event::Start(Tag::Link { link_type, dest_url, title, id }) => {
                let url = resolve(&dest_url);
                links.push(url.is_some());
                if let Some(url) = url {
                    let dest_url = CowStr::from(url);
                    written.push(Event::Start(Tag::Link { link_type, dest_url, title, id }));
                }
            }
            Event::End(TagEnd::Link) => {
                if links.pop() == Some(true) {
                    written.push(event);
                }
            }
            Event::Html(html) | Event::InlineHtml(html) => written.push(Event::Text(html)),
            event => written.push(event),
        }
    }
    html::push_html(&mut guide.html, written.into_iter());
    // A header without text is no header: tables of pairs have none.
    guide.html = guide.html.replace("<table>", "<table tabindex=\"0\">").replace("<th></th>", "<td></td>");
    guide
}

fn text_of<'a>(event: &'a Event<'_>) -> Option<&'a str> {
    match event {
        Event::Text(text) | Event::Code(text) => Some(text),
        _ => None,
    }
}

/// Returns the id of a heading: lower case, with hyphens between the words, as code hosts form it.
fn unique(taken: &mut HashMap<String, usize>, title: &str) -> String {
    let words = title.to_lowercase().replace(' ', "-");
    let id: String =
        words.chars().filter(|letter| letter.is_alphanumeric() || matches!(letter, '-' | '_')).collect();
    let count = taken.entry(id.clone()).or_default();
    *count += 1;
    if *count == 1 { id } else { format!("{id}-{}", *count - 1) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headings_have_ids_and_sections() {
        let guide = guide("# A `b` & c\n\n## Do it\n\n### x\n\n## Do it\n", |_| None);
        assert_eq!(guide.title, "A b & c");
        let ids: Vec<&str> = guide.sections.iter().map(|section| section.id.as_str()).collect();
        assert_eq!(ids, ["do-it", "do-it-1"]);
        assert!(guide.html.contains("<h1 id=\"a-b--c\">A <code>b</code> &amp; c</h1>"), "{}", guide.html);
    }

    #[test]
    fn links_are_resolved_or_become_text() {
        let resolve = |target: &str| (target == "a.md").then(|| "/docs/a".to_owned());
        let html = guide("[x](a.md) and [y](b.md) <b>z</b>", resolve).html;
        assert_eq!(html.trim(), "<p><a href=\"/docs/a\">x</a> and y &lt;b&gt;z&lt;/b&gt;</p>");
    }

    #[test]
    fn wide_content_can_be_reached_by_keyboard() {
        let html = guide("```sh\na < b\n```\n\n| a |\n|---|\n| b |\n", |_| None).html;
        assert!(html.contains("<pre tabindex=\"0\"><code>a &lt; b\n</code></pre>"), "{html}");
        assert!(html.contains("<table tabindex=\"0\">"), "{html}");
        assert!(
            guide("| | |\n|---|---|\n| a | b |\n", |_| None).html.contains("<tr><td></td><td></td></tr>")
        );
    }
}
