//! Renders market descriptions as HTML. Operators write them, but they may still do nothing except
//! format text: embedded HTML is shown as text, and an allowlist sanitizes the output as a second
//! defence.

use std::collections::HashSet;
use std::sync::LazyLock;

use ammonia::{Builder, UrlRelative};
use pulldown_cmark::{Event, Options, Parser, Tag, TagEnd, html};

/// Allowed HTML tags. Images are excluded because loading them would reveal the reader to the image
/// host.
const TAGS: [&str; 27] = [
    "a",
    "blockquote",
    "br",
    "code",
    "del",
    "em",
    "h1",
    "h2",
    "h3",
    "h4",
    "h5",
    "h6",
    "hr",
    "li",
    "ol",
    "p",
    "pre",
    "strong",
    "table",
    "tbody",
    "td",
    "th",
    "thead",
    "tr",
    "ul",
    "sub",
    "sup",
];

static CLEANER: LazyLock<Builder<'static>> = LazyLock::new(|| {
    let mut cleaner = Builder::empty();
    cleaner
        .tags(HashSet::from(TAGS))
        .add_tag_attributes("a", ["href", "title"])
        .add_tag_attributes("ol", ["start"])
        .url_schemes(HashSet::from(["http", "https", "mailto"]))
        .url_relative(UrlRelative::Deny)
        // Descriptions also appear in iframes, which a link must not navigate away.
        .set_tag_attribute_value("a", "target", "_blank")
        .link_rel(Some("nofollow noopener"));
    cleaner
});

/// Maximum nesting of quotes and lists. Deeper content is shown without its nesting, because the
/// time to sanitize grows with each level.
const MAX_DEPTH: u32 = 20;

/// Renders a description as HTML. `None` if nothing would be visible.
pub fn about(description: Option<&str>) -> Option<String> {
    description.map(to_html).filter(|html| !html.trim().is_empty())
}

/// Renders Markdown as HTML that is safe to embed in a page.
pub fn to_html(text: &str) -> String {
    let options = Options::ENABLE_TABLES | Options::ENABLE_STRIKETHROUGH;
    let mut depth = 0;
    let events = Parser::new_ext(text, options).filter_map(|event| match event {
        // As text, HTML is escaped by the renderer.
        Event::Html(html) | Event::InlineHtml(html) => Some(Event::Text(html)),
        Event::Start(Tag::BlockQuote(_) | Tag::List(_) | Tag::Item) => {
            depth += 1;
            (depth <= MAX_DEPTH).then_some(event)
        }
        // `depth` is compared after the decrement, so each end tag gets the same decision as its
        // start.
        Event::End(TagEnd::BlockQuote(_) | TagEnd::List(_) | TagEnd::Item) => {
            depth -= 1;
            (depth < MAX_DEPTH).then_some(event)
        }
        other => Some(other),
    });
    let mut unclean = String::with_capacity(text.len() * 3 / 2);
    html::push_html(&mut unclean, events);
    CLEANER.clean(&unclean).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn formatting_markup_is_preserved() {
        for (text, html) in [
            ("a **b** *c* ~~d~~ `e`", "<p>a <strong>b</strong> <em>c</em> <del>d</del> <code>e</code></p>\n"),
            ("# A\n\n- b\n- c", "<h1>A</h1>\n<ul>\n<li>b</li>\n<li>c</li>\n</ul>\n"),
            ("3. a", "<ol start=\"3\">\n<li>a</li>\n</ol>\n"),
            ("> a", "<blockquote>\n<p>a</p>\n</blockquote>\n"),
            ("1 < 2 && \"x\"", "<p>1 &lt; 2 &amp;&amp; \"x\"</p>\n"),
        ] {
            assert_eq!(to_html(text), html, "{text}");
        }
    }

    #[test]
    fn a_link_has_nofollow_and_noopener() {
        let link = r#"<p><a href="https://example.org/?a=1&amp;b=2" title="t" target="_blank" rel="nofollow noopener">x</a></p>"#;
        assert_eq!(to_html("[x](https://example.org/?a=1&b=2 \"t\")").trim_end(), link);
        let mail = r#"<p><a href="mailto:a@example.org" target="_blank" rel="nofollow noopener">a@example.org</a></p>"#;
        assert_eq!(to_html("<a@example.org>").trim_end(), mail);
    }

    #[test]
    fn a_link_has_an_http_or_mail_address() {
        for target in [
            "javascript:alert(1)",
            "JaVaScRiPt:alert(1)",
            "java&#115;cript:alert(1)",
            "\u{1}javascript:alert(1)",
            "vbscript:x",
            "data:text/html;base64,PHNjcmlwdD4=",
            "file:///etc/passwd",
            "//example.org",
            "/logout",
            "#top",
        ] {
            for text in
                [format!("[x](<{target}>)"), format!("[x][y]\n\n[y]: <{target}>"), format!("<{target}>")]
            {
                let html = to_html(&text);
                assert!(!html.contains("href"), "{text}: {html}");
            }
        }
    }

    #[test]
    fn html_is_escaped() {
        for text in [
            "<script>alert(1)</script>",
            "a <img src=x onerror=alert(1)> b",
            "<svg/onload=alert(1)>",
            "<iframe src=\"https://example.org\"></iframe>",
            "<a href=\"javascript:alert(1)\" onclick=\"x()\">x</a>",
            "<style>*{display:none}</style>",
            "<div style=\"position:fixed\">x</div>",
            "<!-- --><script>alert(1)</script><!-- -->",
            "<form action=\"https://example.org\"><input name=p></form>",
            "<math><mi//xlink:href=\"data:x,<script>alert(1)</script>\">",
            "```html\n<script>alert(1)</script>\n```",
            "`<script>`",
            "<scr\n\nipt>alert(1)</scr<b>ipt>",
            "![x](https://example.org/x.png \"onerror=alert(1)\")",
            "[<img src=x onerror=alert(1)>](https://example.org)",
            "<base href=\"https://example.org\">",
            "<noscript><p title=\"</noscript><img src=x onerror=alert(1)>\">",
        ] {
            let html = to_html(text);
            let tags = html.split('<').skip(1).map(|tag| tag.trim_start_matches('/'));
            for tag in tags {
                let name: String = tag.chars().take_while(char::is_ascii_alphanumeric).collect();
                assert!(TAGS.contains(&name.as_str()), "{text}: {html}");
                assert!(
                    !tag.contains("onerror=alert(1)>") && !tag.starts_with("a onclick"),
                    "{text}: {html}"
                );
            }
        }
        assert_eq!(to_html("<b>x</b>").trim_end(), "<p>&lt;b&gt;x&lt;/b&gt;</p>");
    }

    #[test]
    fn nesting_is_limited() {
        assert_eq!(to_html(&format!("{}a", "> ".repeat(9_000))).matches("<blockquote>").count(), 20);

        for text in ["[".repeat(20_000), "> ".repeat(10_000), "*a ".repeat(6_000), "`".repeat(20_000)] {
            to_html(&text);
        }
    }
}
