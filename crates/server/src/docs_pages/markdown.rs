//! The pages as Markdown.

use domain::ErrorCode;

/// The list of all codes.
pub fn index() -> String {
    let row = |code: &ErrorCode| {
        format!("| {} | [`{code}`](/docs/api-errors/{code}.md) | {} |\n", code.status(), code.title())
    };
    let rows: String = ErrorCode::ALL.iter().map(row).collect();
    format!(
        "# Error codes\n\nEvery refusal is a problem document (RFC 7807). Branch on its `code`, which also stands in the \
         `X-Service-Error-Code` header, and show its `detail` to people. `requestId` names the request when you report it.\n\n\
         | Status | Code | Meaning |\n| --- | --- | --- |\n{rows}"
    )
}

/// The page of `code`.
pub fn page(code: ErrorCode, example: &str) -> String {
    let guide = code.guide();
    format!(
        "# `{code}`\n\n**HTTP {}: {}**\n\n{}\n\n## When it is sent\n\n{}\n\n## May I send the request again?\n\n{}\n\n\
         ## How to mend it\n\n{}\n\n## Example\n\n```json\n{example}\n```\n\n[All error codes](/docs/api-errors)\n",
        code.status(),
        code.title(),
        code.default_detail(),
        guide.when,
        guide.retry.advice(),
        guide.mend,
    )
}
