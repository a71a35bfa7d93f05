//! The error pages as Markdown.

use domain::ErrorCode;

use super::entry::{CodePage, only_public};

/// Returns the list of all codes.
pub fn index() -> String {
    let row = |status: u16, code: &str, title: &str| {
        format!("| {status} | [`{code}`](/docs/api-errors/{code}.md) | {title} |\n")
    };
    let rows: String =
        ErrorCode::ALL.iter().map(|code| row(code.status(), code.as_str(), code.title())).collect();
    let public: String = only_public().map(|code| row(code.status(), code.as_str(), code.title())).collect();
    format!(
        "# Error codes\n\nEvery error is a problem document (RFC 7807). Branch on its `code`, which the `X-Service-Error-Code` \
         header repeats, and show its `detail` to people. Include `requestId` when you report a problem.\n\n\
         | Status | Code | Meaning |\n| --- | --- | --- |\n{rows}\n\
         ## Only in the public read API\n\nIts errors are `{{\"error\", \"message\", \"code\", \"retryAfter\"}}`. It also uses codes of the \
         table above.\n\n| Status | Code | Meaning |\n| --- | --- | --- |\n{public}"
    )
}

/// Returns the page of a code.
pub fn page(entry: &CodePage) -> String {
    let CodePage { code, status, title, detail, when, retry, fix, examples } = entry;
    let example = |(heading, body): &(&str, String)| format!("## {heading}\n\n```json\n{body}\n```\n\n");
    let examples: String = examples.iter().map(example).collect();
    format!(
        "# `{code}`\n\n**HTTP {status}: {title}**\n\n{detail}\n\n## When it is sent\n\n{when}\n\n\
         ## Can the request be repeated?\n\n{retry}\n\n## How to fix it\n\n{fix}\n\n{examples}\
         [All error codes](/docs/api-errors.md)\n"
    )
}
