//! Parses a catalog file. Reports every unknown, missing or malformed member with its path and
//! line.

use domain::trade::FieldError;
use protocol::document::{self, DocumentFault, DocumentFaults, DocumentNode, DocumentValue, Members};

use super::ImportProblem;
use super::document::{Catalog, ChapterItem, Decimal, MarketItem, OrganizationItem, PartnerItem, ThreadItem};

const INSTANT: &str = "must be an ISO 8601 instant such as 2026-04-29T12:00:00Z";
const KEY: &str = "an identifier that never changes";

/// The file formats. Both have the same data model.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    Json,
    /// YAML 1.2, in which `yes` and `no` are texts, while `true` and `false` are not.
    Yaml,
}

/// Parses a catalog, or returns all format errors.
pub fn read(text: &str, format: Format) -> Result<Catalog, Vec<ImportProblem>> {
    let node = match format {
        Format::Json if text.trim().is_empty() => DocumentNode::new(DocumentValue::Null),
        Format::Json => document::from_json(text.as_bytes())
            .map_err(|FieldError { pointer, detail }| vec![ImportProblem::new(pointer, detail)])?,
        Format::Yaml => document::from_yaml(text).map_err(|fault| vec![problem(fault)])?,
    };
    // An empty YAML document is null, which the parser returns as `~`.
    let is_empty = match &node.value {
        DocumentValue::Null => true,
        DocumentValue::Plain(text) => text.is_empty() || text == "~",
        _ => false,
    };
    let mut faults = DocumentFaults::default();
    let catalog = match is_empty {
        true => Catalog::default(),
        false => catalog(node, &mut faults),
    };
    if faults.is_empty() && catalog.items() == 0 {
        faults.add(FieldError::new("", "must have at least one item"), None);
    }
    if faults.is_empty() {
        return Ok(catalog);
    }
    Err(faults.into_list().into_iter().map(problem).collect())
}

/// Adds the lines to the problems that the plan of a YAML file has.
pub(super) fn locate(text: &str, format: Format, problems: &mut [ImportProblem]) {
    if format != Format::Yaml {
        return;
    }
    // The text could be read before.
    let Ok(root) = document::from_yaml(text) else { return };
    for problem in problems.iter_mut().filter(|problem| !problem.path.is_empty()) {
        problem.line = problem.line.or_else(|| line_of(&root, &problem.path));
    }
}

/// Returns the line of the value at a pointer, or of the innermost value around it that is there.
fn line_of(root: &DocumentNode, pointer: &str) -> Option<u32> {
    let mut node = root;
    for part in pointer.split('/').skip(1) {
        let next = match &node.value {
            DocumentValue::List(items) => part.parse::<usize>().ok().and_then(|index| items.get(index)),
            DocumentValue::Object(members) => {
                members.iter().find(|(name, _)| name == part).map(|(_, member)| member)
            }
            _ => None,
        };
        let Some(next) = next else { break };
        node = next;
    }
    node.line
}

fn problem(DocumentFault { error, line }: DocumentFault) -> ImportProblem {
    ImportProblem { path: error.pointer, line, detail: error.detail }
}

fn catalog(node: DocumentNode, faults: &mut DocumentFaults) -> Catalog {
    let Some(mut members) = Members::new(node, "", faults) else { return Catalog::default() };
    let catalog = Catalog {
        organizations: members.objects("organizations", organization),
        partners: members.objects("partners", partner),
        threads: members.objects("threads", thread),
        chapters: members.objects("chapters", chapter),
        markets: members.objects("markets", market),
    };
    members.finish();
    catalog
}

/// Reads a required text. Records a fault and returns an empty text if it is missing.
fn required(members: &mut Members<'_>, name: &'static str, what: &str) -> String {
    let text = members.text(name);
    members.required(name, text, what).unwrap_or_default()
}

fn organization(members: &mut Members<'_>) -> OrganizationItem {
    OrganizationItem {
        key: required(members, "key", KEY),
        name: required(members, "name", "a text"),
        slug: required(members, "slug", "lower-case words joined by hyphens"),
        description: members.text("description"),
        logo: members.text("logo"),
        website: members.text("website"),
    }
}

fn partner(members: &mut Members<'_>) -> PartnerItem {
    PartnerItem {
        key: required(members, "key", KEY),
        organization: required(members, "organization", "the key of an organization"),
        name: required(members, "name", "a text"),
        slug: required(members, "slug", "lower-case words joined by hyphens"),
        description: members.text("description"),
        logo: members.text("logo"),
        website: members.text("website"),
        active: members.flag("active").unwrap_or(true),
    }
}

fn thread(members: &mut Members<'_>) -> ThreadItem {
    ThreadItem {
        key: required(members, "key", KEY),
        title: required(members, "title", "a text"),
        organization: members.text("organization"),
        partner: members.text("partner"),
        description: members.text("description"),
        image: members.text("image"),
        background_image: members.text("backgroundImage"),
        category: members.text("category"),
        tags: members.texts("tags").unwrap_or_default(),
        start_time: members.parsed("startTime", INSTANT),
        end_time: members.parsed("endTime", INSTANT),
    }
}

fn chapter(members: &mut Members<'_>) -> ChapterItem {
    ChapterItem {
        key: required(members, "key", KEY),
        thread: required(members, "thread", "the key of a thread"),
        title: required(members, "title", "a text"),
        position: members.number("position", u32::MAX),
    }
}

fn market(members: &mut Members<'_>) -> MarketItem {
    let key = required(members, "key", KEY);
    let question = required(members, "question", "a text");
    let outcomes = members.texts("outcomes");
    let outcomes = members.required("outcomes", outcomes, "a list of names").unwrap_or_default();
    let decimals = |texts: Vec<String>| texts.into_iter().map(Decimal).collect();
    let opening_odds = members.decimals("openingOdds").map(decimals).unwrap_or_default();
    let liquidity = members.decimal("liquidity");
    let liquidity =
        Decimal(members.required("liquidity", liquidity, "an amount of USDC").unwrap_or_default());
    let fee_bps = members.number("feeBps", 1_000);
    let fee_bps = members.required("feeBps", fee_bps, "an integer from 0 to 1000").unwrap_or_default();
    let end_time = members.parsed("endTime", INSTANT);
    MarketItem {
        key,
        question,
        outcomes,
        opening_odds,
        liquidity,
        fee_bps: u16::try_from(fee_bps).unwrap_or_default(),
        end_time: members
            .required("endTime", end_time, "an instant")
            .unwrap_or(domain::Timestamp::from_ms(0)),
        thread: members.text("thread"),
        chapter: members.text("chapter"),
        description: members.text("description"),
        category: members.text("category"),
        tags: members.texts("tags"),
        featured: members.number("featured", u32::MAX),
        source_url: members.text("sourceUrl"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reported(text: &str, format: Format) -> Vec<String> {
        read(text, format).map_or_else(
            |problems| problems.iter().map(ToString::to_string).collect(),
            |_| vec!["read".to_owned()],
        )
    }

    #[test]
    fn all_errors_are_reported_with_their_pointer_and_line() {
        let text =
            "threads:\n  - key: a\n    endTime: soon\n    titel: x\n  - key: [b]\n    title: y\nmarkets: 3\n";
        let known = "key, title, organization, partner, description, image, backgroundImage, category, tags, startTime, endTime";
        assert_eq!(
            reported(text, Format::Yaml),
            [
                "line 2: /threads/0/title: is required: a text".to_owned(),
                format!("line 3: /threads/0/endTime: {INSTANT}, got \"soon\""),
                format!(
                    "line 4: /threads/0/titel: must not be sent: it is not a known member (known: {known})"
                ),
                "line 5: /threads/1/key: must be a string, got a list".to_owned(),
                "line 7: /markets: must be a list, got \"3\"".to_owned(),
            ]
        );
    }

    #[test]
    fn problems_of_a_plan_have_the_lines_of_a_yaml_file() {
        let text = "threads:\n  - key: a\n    title: b\n  - {key: c, title: d}\n";
        let line = |path: &str, format: Format| {
            let mut problems = [ImportProblem::new(path, "must differ")];
            locate(text, format, &mut problems);
            problems[0].line
        };
        assert_eq!(line("/threads/0/title", Format::Yaml), Some(3));
        assert_eq!(line("/threads/0/endTime", Format::Yaml), Some(2), "the item's, for a missing member");
        assert_eq!(line("/threads/1/title", Format::Yaml), Some(4));
        assert_eq!(line("", Format::Yaml), None);
        assert_eq!(line("/threads/1/title", Format::Json), None);
    }

    #[test]
    fn syntax_errors_have_their_line() {
        for (text, message) in [
            (
                "threads:\n  - key: a\n    key: b\n    title: x\n",
                "line 3: /threads/0/key: must be sent only once",
            ),
            ("- 1\n", "line 1: the file: must be an object, got a list"),
            ("---\na: 1\n---\n", "line 3: the file: must be one YAML document"),
        ] {
            assert_eq!(reported(text, Format::Yaml), [message], "{text}");
        }
        let broken = reported("threads: [\n", Format::Yaml).swap_remove(0);
        assert!(broken.contains("the file: must be valid YAML: "), "{broken}");
    }

    #[test]
    fn json_is_read_like_yaml() {
        for (text, message) in [
            ("{\"threads\": [\n{\"key\": \"a\"}]}", "/threads/0/title: is required: a text"),
            ("{\"threads\": 3}", "/threads: must be a list, got 3"),
            (
                "{\"threads\": [{\"key\": \"a\", \"title\": \"b\"}], \"threads\": []}",
                "/threads: must be sent only once",
            ),
            ("{", "the file: must be valid JSON in UTF-8: the error is at line 1, column 1"),
            ("[]", "the file: must be an object, got a list"),
            ("{\"chapters\": [[\"a\"]]}", "/chapters/0: must be an object, got a list"),
        ] {
            assert_eq!(reported(text, Format::Json), [message], "{text}");
        }
    }

    #[test]
    fn an_empty_file_is_an_error() {
        for text in ["", "\n", "# nothing\n", "threads: []\n", "{}", "---\n"] {
            assert_eq!(reported(text, Format::Yaml), ["the file: must have at least one item"], "{text:?}");
        }
        for text in ["", "{}", "{\"markets\": []}"] {
            assert_eq!(reported(text, Format::Json), ["the file: must have at least one item"], "{text:?}");
        }
    }

    #[test]
    fn unquoted_words_are_strings() {
        let text = "threads:\n  - {key: 2030, title: yes, tags: [no, 1.50, 2030-01-01]}\n";
        let thread = read(text, Format::Yaml).unwrap().threads.remove(0);
        assert_eq!((thread.key.as_str(), thread.title.as_str()), ("2030", "yes"));
        assert_eq!(thread.tags, ["no", "1.50", "2030-01-01"]);
        let active = "partners:\n  - {key: a, organization: b, name: c, slug: d, active: yes}\n";
        let expected = "line 2: /partners/0/active: must be true or false, got \"yes\"";
        assert_eq!(reported(active, Format::Yaml), [expected]);
    }

    #[test]
    fn ten_thousand_markets_can_be_read_from_yaml() {
        let market = |n: usize| {
            format!(
                "  - key: m{n}\n    question: Question {n}?\n    outcomes: [Yes, No]\n    openingOdds: [0.5, 0.5]\n    \
                 liquidity: 100\n    feeBps: 100\n    endTime: 2030-01-01T00:00:00Z\n    tags: [a, b, c]\n"
            )
        };
        let text = format!("markets:\n{}", (0..10_000).map(market).collect::<String>());
        assert_eq!(read(&text, Format::Yaml).unwrap().markets.len(), 10_000);
    }
}
