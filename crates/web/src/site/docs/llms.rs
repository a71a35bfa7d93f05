//! The documentation for language models: `llms.txt`, and all guides in one file.

use std::fmt::Write as _;

use axum::extract::State;
use axum::response::Response;
use http_kit::Shared;

use super::pages::{self, GROUPS};
use super::text;

const TEXT: &str = "text/plain; charset=utf-8";

/// The documents that are no guides: path, title and summary.
const REFERENCE: [(&str, &str, &str); 4] = [
    ("/v1/openapi.json", "Trading API, OpenAPI 3.1", "Every route, schema and error of the trading API."),
    ("/api/openapi.json", "Public API, OpenAPI 3.1", "Every route, schema and error of the public read API."),
    ("/docs/api-errors.md", "Error codes", "Every error code of both APIs, each with a page."),
    ("/docs.md", "Documentation", "The list of all pages."),
];

/// `GET /llms.txt`: what the service is, and a list of its documents.
pub async fn index(State(app): State<Shared>) -> Response {
    let base = &app.app_url;
    let mut out = String::from(
        "# Foretell\n\n\
         > A prediction-market service. Read markets, get quotes, buy and sell outcome tokens for USDC over HTTP, and \
         follow each trade until the chain has settled it.\n\n\
         Every page of the documentation is also Markdown: append `.md` to its path, or send `Accept: text/markdown`. \
         Errors are problem documents; branch on their `code`. Give a request that creates a trade an idempotency \
         key, so that it can be repeated.\n",
    );
    // Writing to a string cannot fail.
    if app.mcp.is_some() {
        let _ = writeln!(
            out,
            "\nAgents with an API key can use the tools at `{base}/mcp` (Model Context Protocol, streamable HTTP)."
        );
    }
    out.push_str(&list(base));
    let _ = write!(
        out,
        "\n## Optional\n\n- [All guides in one file]({base}/llms-full.txt): The Markdown of every guide, one after \
         the other.\n"
    );
    text(TEXT, out)
}

/// `GET /llms-full.txt`: all guides.
pub async fn full(State(app): State<Shared>) -> Response {
    let mut out = String::with_capacity(pages::all().map(|page| page.markdown.len() + 100).sum());
    for page in pages::all() {
        let _ = writeln!(out, "<!-- {}{}.md -->\n", app.app_url, page.url());
        out.push_str(std::str::from_utf8(&page.markdown).unwrap_or_default());
        out.push('\n');
    }
    text(TEXT, out)
}

/// Returns the list of all documents, with links below `base`.
pub fn list(base: &str) -> String {
    let mut out = String::new();
    for group in GROUPS.iter() {
        let _ = writeln!(out, "\n## {}\n", group.name);
        for page in &group.pages {
            let _ = writeln!(out, "- [{}]({base}{}.md): {}", page.guide.title, page.url(), page.summary);
        }
    }
    out.push_str("\n## Reference\n\n");
    for (path, title, summary) in REFERENCE {
        let _ = writeln!(out, "- [{title}]({base}{path}): {summary}");
    }
    out
}
