//! The generated tables of `docs/public-api.md`. With `FORETELL_WRITE_GUIDE=1`, the test writes
//! them.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use api::public::routes;
use http_kit::{Limiter, PublicCode};

fn routes_table() -> String {
    let mut text = String::from("| Route | Limit | Page |\n| --- | --- | --- |\n");
    for route in routes() {
        let limit = match route.limiter {
            Limiter::PerMinute(limit) => limit.to_string(),
            _ => "shared".to_owned(),
        };
        let page = route.page.map_or(String::new(), |page| format!("{} to {}", page.default, page.most));
        let _ = writeln!(text, "| `GET {}` | {limit} | {page} |", route.path);
    }
    text
}

fn codes_table() -> String {
    let mut text = String::from("| Code | Status | When |\n| --- | --- | --- |\n");
    for code in PublicCode::ALL {
        let _ = writeln!(text, "| `{}` | {} | {} |", code.as_str(), code.status(), code.default_detail());
    }
    text
}

#[test]
fn the_tables_of_the_guide_equal_the_code() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/public-api.md");
    let mut text = fs::read_to_string(&path).unwrap();
    for (name, table) in [("public-routes", routes_table()), ("public-codes", codes_table())] {
        let (open, close) = (format!("<!-- {name} -->\n"), format!("<!-- /{name} -->"));
        let (before, rest) = text.split_once(&open).unwrap();
        let (found, after) = rest.split_once(&close).unwrap();
        if found != table && std::env::var_os("FORETELL_WRITE_GUIDE").is_some() {
            text = format!("{before}{open}{table}{close}{after}");
            fs::write(&path, &text).unwrap();
            continue;
        }
        assert_eq!(found, table, "{name}: run this test with FORETELL_WRITE_GUIDE=1 and read what it writes");
    }
}
