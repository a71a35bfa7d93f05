//! The generated tables of the guide in `docs/`. A test fails if its table differs from the code.
//! With `FORETELL_WRITE_GUIDE=1`, the tests write the tables instead.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use app::access::{Access, CallerKind, Effect, USE_CASES, UseCase};
use domain::key::{Scope, Scopes, Tier};
use domain::risk::RiskRefusal;
use domain::sandbox::Scenario;
use domain::trade::Status;
use domain::{ErrorCode, Usdc};
use http_kit::Limiter;
use protocol::Documented;
use protocol::guide::Retry;

fn docs() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs")
}

/// Locked while a page is read and written, because some pages have more than one table.
static PAGES: Mutex<()> = Mutex::new(());

/// Compares `table` with the text between the markers of `name` in `page`.
fn assert_table(page: &str, name: &str, table: &str) {
    let _alone = PAGES.lock().unwrap_or_else(PoisonError::into_inner);
    let path = docs().join(page);
    let text = fs::read_to_string(&path).unwrap();
    let (open, close) = (format!("<!-- {name} -->\n"), format!("<!-- /{name} -->"));
    let (before, rest) = text.split_once(&open).unwrap_or_else(|| panic!("{page} has no marker {open}"));
    let (found, after) = rest.split_once(&close).unwrap_or_else(|| panic!("{page} has no marker {close}"));
    if found != table && std::env::var_os("FORETELL_WRITE_GUIDE").is_some() {
        return fs::write(&path, format!("{before}{open}{table}{close}{after}")).unwrap();
    }
    assert_eq!(found, table, "{page}: run this test with FORETELL_WRITE_GUIDE=1 and read what it writes");
}

fn table(head: &[&str], rows: impl Iterator<Item = Vec<String>>) -> String {
    let mut text = format!("| {} |\n|{}\n", head.join(" | "), " --- |".repeat(head.len()));
    for row in rows {
        assert_eq!(row.len(), head.len(), "{row:?}");
        let _ = writeln!(text, "| {} |", row.join(" | "));
    }
    text
}

fn code(text: impl std::fmt::Display) -> String {
    format!("`{text}`")
}

/// Formats whole USDC.
fn whole(amount: Usdc) -> String {
    thousands(amount.atomic() / 1_000_000)
}

/// Formats a number with thousands separators.
fn thousands(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (at, digit) in digits.char_indices() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

fn joined(scopes: Scopes) -> String {
    scopes.iter().map(|scope| code(scope.as_str())).collect::<Vec<_>>().join(", ")
}

#[test]
fn the_table_of_tiers_equals_the_code() {
    let rows = Tier::ALL.into_iter().map(|tier| {
        let limits = tier.default_limits();
        vec![
            code(tier),
            thousands(limits.requests_per_minute.into()),
            whole(limits.per_trade),
            whole(limits.daily),
            limits.high_value.map_or("none".to_owned(), whole),
            if tier.takes_overrides() { "yes" } else { "no" }.to_owned(),
        ]
    });
    let head = [
        "Tier",
        "Requests a minute",
        "USDC of a trade",
        "USDC of buys in 24 hours",
        "Held from USDC",
        "Limits of its own",
    ];
    assert_table("api/limits.md", "tiers", &table(&head, rows));
}

#[test]
fn the_table_of_default_scopes_equals_the_code() {
    let rows = Tier::ALL.into_iter().map(|tier| vec![code(tier), joined(tier.default_scopes())]);
    assert_table("api/authentication.md", "default-scopes", &table(&["Tier", "Scopes"], rows));
}

#[test]
fn the_table_of_scopes_names_every_route_with_a_scope() {
    let rows = Scope::ALL.iter().map(|scope| {
        let routes = api::v1::router::routes().filter(|route| route.scope == Some(*scope));
        let routes: Vec<_> = routes.map(|route| code(route.name())).collect();
        vec![code(scope.as_str()), if routes.is_empty() { "none yet".to_owned() } else { routes.join(", ") }]
    });
    assert_table("api/authentication.md", "scopes", &table(&["Scope", "Routes"], rows));
}

/// Returns what a kind of caller gets, as a cell.
fn access_cell(case: &UseCase, kind: CallerKind) -> String {
    let is_key = matches!(kind, CallerKind::ApiKey | CallerKind::Agent);
    let scope = case.doors.iter().find_map(|door| door.scope()).filter(|_| is_key);
    match (case.access(kind), scope) {
        (Access::Allowed, Some(scope)) => code(scope.as_str()),
        (Access::Allowed, None) => "yes".to_owned(),
        (Access::Refused(refusal), _) => format!("no: {}", code(refusal)),
        (Access::Unreachable, _) => String::new(),
    }
}

fn access_table(is_read: bool) -> String {
    let cases = USE_CASES.iter().filter(|case| (case.effect == Effect::Reads) == is_read);
    let rows = cases.map(|case| {
        let cells = CallerKind::ALL.into_iter().map(|kind| access_cell(case, kind));
        std::iter::once(case.act.to_owned()).chain(cells).collect()
    });
    let head: Vec<&str> = std::iter::once("Can").chain(CallerKind::ALL.map(CallerKind::name)).collect();
    table(&head, rows)
}

#[test]
fn the_tables_of_who_may_do_what_equal_the_code() {
    assert_table("custody.md", "acts", &access_table(false));
    assert_table("custody.md", "reads", &access_table(true));
}

#[test]
fn the_list_of_what_a_stolen_session_can_do_equals_the_code() {
    let of_session = |case: &&UseCase| {
        let is_for_everybody = case.access(CallerKind::Anonymous) == Access::Allowed;
        case.access(CallerKind::Session) == Access::Allowed && !is_for_everybody
    };
    let acts = USE_CASES.iter().filter(|case| case.effect != Effect::Reads).filter(of_session);
    let list: String = acts.map(|case| format!("- {}\n", case.act)).collect();
    assert_table("custody.md", "session", &list);
}

/// Returns the page of the guide that describes a route. Every route must have one.
fn page_of(path: &str) -> &'static str {
    match path.split('/').nth(2).unwrap_or_default() {
        "health" | "ready" | "openapi.json" | "docs" => "api/conventions.md",
        "markets" => "api/markets.md",
        "trades" | "traces" => "api/trades.md",
        "events" => "api/events.md",
        "redemptions" => "api/redemptions.md",
        "portfolio" | "account" | "key" => "api/account.md",
        "webhooks" | "auth" => "api/webhooks.md",
        "sandbox" => "sandbox.md",
        "api-errors" | "api-errors.md" => "api/errors.md",
        other => panic!("which page of the guide describes {other}?"),
    }
}

#[test]
fn the_table_of_routes_equals_the_router() {
    let rows = api::v1::router::routes().map(|route| {
        let page = page_of(route.path);
        assert!(docs().join(page).exists(), "docs/{page} is to describe {}", route.path);
        let scope = match route.scope {
            Some(scope) => code(scope.as_str()),
            None if route.asks_for_key() => "any key".to_owned(),
            None => "no key".to_owned(),
        };
        let limiter = match route.limiter {
            Limiter::User(kind) => kind.as_str(),
            _ => "address",
        };
        let size = route.page.map_or(String::new(), |page| page.default.to_string());
        vec![route.method.to_string(), format!("[`{}`]({page})", route.path), scope, limiter.to_owned(), size]
    });
    let head = ["Method", "Path", "Scope", "Limiter", "Page size"];
    assert_table("trading-api.md", "routes", &table(&head, rows));
}

#[test]
fn the_table_of_codes_equals_the_catalog() {
    let rows = ErrorCode::ALL.iter().map(|each| {
        let again = match each.guide().retry {
            Retry::AfterChange => "after a change",
            Retry::SameRequest => "yes, later",
            Retry::LookUpFirst => "look it up first",
            Retry::Never => "no",
        };
        let link = format!("[`{each}`](http://127.0.0.1:8080/docs/api-errors/{each})");
        vec![link, each.status().to_string(), again.to_owned(), each.default_detail().to_owned()]
    });
    let head = ["Code", "Status", "The same request again?", "What it says"];
    assert_table("api/errors.md", "codes", &table(&head, rows));
}

#[test]
fn the_table_of_transitions_equals_the_code() {
    let rows = Status::ALL.iter().map(|from| {
        let next: Vec<_> =
            Status::ALL.iter().filter(|to| from.may_become(**to)).map(|to| code(*to)).collect();
        vec![code(*from), if next.is_empty() { "nothing: it is an end".to_owned() } else { next.join(", ") }]
    });
    assert_table("api/trades.md", "moves", &table(&["Status", "May become"], rows));
}

#[test]
fn the_table_of_risk_refusals_names_every_code() {
    let rows = RiskRefusal::ALL.iter().map(|word| vec![code(*word), word.message().to_owned()]);
    assert_table("api/trades.md", "refusals", &table(&["`errorCode`", "`errorMessage`"], rows));
}

#[test]
fn the_page_of_the_sandbox_has_a_row_for_every_code_of_a_scenario() {
    let page = fs::read_to_string(docs().join("sandbox.md")).unwrap();
    for (heading, codes) in
        [("## A rejected request\n", Scenario::REJECTIONS), ("## A trade that fails\n", Scenario::FAILURES)]
    {
        let (_, section) = page.split_once(heading).unwrap();
        let section = section.split("\n## ").next().unwrap();
        let rows = section.lines().filter_map(|line| line.strip_prefix("| `")?.split('`').next());
        let listed: BTreeSet<_> = rows.collect();
        assert_eq!(listed, codes.iter().map(|code| code.as_str()).collect(), "{heading}");
    }
}

#[test]
fn every_link_between_pages_resolves() {
    let root = docs().join("..");
    let api = fs::read_dir(docs().join("api")).unwrap().map(|entry| entry.unwrap().path());
    let top = [
        "README.md",
        "ARCHITECTURE.md",
        "docs/trading-api.md",
        "docs/public-api.md",
        "docs/webhooks.md",
        "docs/agents.md",
        "docs/sandbox.md",
        "docs/command-line.md",
        "docs/importing.md",
        "docs/operating.md",
        "docs/recovery.md",
        "docs/custody.md",
    ];
    for page in api.chain(top.iter().map(|page| root.join(page))) {
        let text = fs::read_to_string(&page).unwrap();
        for target in text.split("](").skip(1).filter_map(|rest| rest.split(')').next()) {
            let file = target.split('#').next().unwrap_or_default();
            let is_local = !file.is_empty() && !file.contains("://");
            let found = page.parent().unwrap().join(file).exists();
            assert!(!is_local || found, "{}: {target}", page.display());
        }
    }
}
