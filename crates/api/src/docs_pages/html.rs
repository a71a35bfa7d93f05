//! The error pages as HTML: for small screens, light and dark mode, without scripts.

use domain::ErrorCode;
use pulldown_cmark_escape::escape_html;

use super::entry::{CodePage, only_public};

const STYLE: &str = "\
:root{color-scheme:light dark}\
body{margin:0 auto;max-width:44rem;padding:1.5rem 1rem 4rem;font:1rem/1.6 system-ui,sans-serif;background:Canvas;color:CanvasText}\
h1{font-size:1.5rem;line-height:1.3;overflow-wrap:anywhere;margin:.5rem 0}\
h2{font-size:1.1rem;margin:2rem 0 .5rem}\
code,pre{font-family:ui-monospace,monospace;font-size:.9em}\
pre{overflow-x:auto;padding:1rem;border:1px solid GrayText;border-radius:.5rem}\
table{border-collapse:collapse;width:100%}\
th,td{text-align:left;vertical-align:top;padding:.4rem .75rem .4rem 0;border-bottom:1px solid color-mix(in srgb,CanvasText 20%,Canvas)}\
td code{overflow-wrap:anywhere}\
a{color:LinkText}\
.status{font-weight:600}";

/// Returns the list of all codes.
pub fn index() -> String {
    let row = |status: u16, code: &str, title: &str| {
        format!(
            "<tr><td>{status}</td><td><a href=\"/docs/api-errors/{code}\"><code>{code}</code></a></td><td>{}</td></tr>\n",
            escaped(title)
        )
    };
    let rows: String =
        ErrorCode::ALL.iter().map(|code| row(code.status(), code.as_str(), code.title())).collect();
    let public: String = only_public().map(|code| row(code.status(), code.as_str(), code.title())).collect();
    let content = format!(
        "<h1>Error codes</h1>\n<p>Every error is a problem document (RFC 7807). Branch on its <code>code</code>, which the \
         <code>X-Service-Error-Code</code> header repeats, and show its <code>detail</code> to people. Include \
         <code>requestId</code> when you report a problem.</p>\n\
         <table>\n<thead><tr><th scope=\"col\">Status</th><th scope=\"col\">Code</th><th scope=\"col\">Meaning</th></tr></thead>\n\
         <tbody>\n{rows}</tbody>\n</table>\n\
         <h2>Only in the public read API</h2>\n<p>Its errors are <code>{{\"error\", \"message\", \"code\", \"retryAfter\"}}</code>. It \
         also uses codes of the table above.</p>\n\
         <table>\n<thead><tr><th scope=\"col\">Status</th><th scope=\"col\">Code</th><th scope=\"col\">Meaning</th></tr></thead>\n\
         <tbody>\n{public}</tbody>\n</table>\n"
    );
    document("Error codes", &content)
}

/// Returns the page of a code.
pub fn page(entry: &CodePage) -> String {
    let CodePage { code, status, title, detail, when, retry, fix, examples } = entry;
    let example = |(heading, body): &(&str, String)| {
        format!("<section>\n<h2>{heading}</h2>\n<pre><code>{}</code></pre>\n</section>\n", escaped(body))
    };
    let section = |title: &str, text: &str| {
        format!("<section>\n<h2>{title}</h2>\n<p>{}</p>\n</section>\n", escaped(text))
    };
    let content = format!(
        "<nav><a href=\"/docs/api-errors\">All error codes</a></nav>\n<h1><code>{code}</code></h1>\n\
         <p class=\"status\">HTTP {status}: {}</p>\n<p>{}</p>\n{}{}{}{}\
         <p><a href=\"/docs/api-errors/{code}.md\">This page as Markdown</a></p>\n",
        escaped(title),
        escaped(detail),
        section("When it is sent", when),
        section("Can the request be repeated?", retry),
        section("How to fix it", fix),
        examples.iter().map(example).collect::<String>(),
    );
    document(code, &content)
}

/// Returns the page for a code that does not exist.
pub fn not_found(detail: &str) -> String {
    let content = format!(
        "<h1>Page not found</h1>\n<p>{}</p>\n<p><a href=\"/docs/api-errors\">All error codes</a></p>\n",
        escaped(detail)
    );
    document("Page not found", &content)
}

fn document(title: &str, content: &str) -> String {
    format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <title>{} - Foretell API</title>\n<style>{STYLE}</style>\n</head>\n<body>\n<main>\n{content}</main>\n</body>\n</html>\n",
        escaped(title)
    )
}

/// Escapes a text for an element or an attribute.
pub fn escaped(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    // A `String` accepts every write.
    let _ = escape_html(&mut escaped, text);
    escaped
}
