//! Parses `If-None-Match`, the header of conditional requests.

/// Returns true if the header lines of `If-None-Match` contain `tag` or `*`. Uses the weak
/// comparison of RFC 9110. A malformed header matches nothing.
pub fn names(lines: &[&str], tag: &str) -> bool {
    let mut found = false;
    for line in lines {
        if line.trim_matches(BLANK) == "*" {
            // `*` must be the whole header.
            return lines.len() == 1;
        }
        let Some(tags) = entity_tags(line) else { return false };
        found |= tags.contains(&tag);
    }
    found
}

const BLANK: [char; 2] = [' ', '\t'];

/// Returns the tags of one line without quotes and `W/`. Quoted tags may contain commas. `None` if
/// the line is malformed.
fn entity_tags(line: &str) -> Option<Vec<&str>> {
    let mut tags = Vec::new();
    let mut rest = line.trim_start_matches([' ', '\t', ',']);
    while !rest.is_empty() {
        let quoted = rest.strip_prefix("W/").unwrap_or(rest).strip_prefix('"')?;
        let (tag, behind) = quoted.split_once('"')?;
        if tag.contains(char::is_whitespace) {
            return None;
        }
        tags.push(tag);
        let behind = behind.trim_start_matches(BLANK);
        if !behind.is_empty() && !behind.starts_with(',') {
            return None;
        }
        rest = behind.trim_start_matches([' ', '\t', ',']);
    }
    Some(tags)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named(lines: &[&str]) -> bool {
        names(lines, "abc")
    }

    #[test]
    fn a_condition_is_a_list_of_tags_or_an_asterisk_and_is_compared_weakly() {
        for lines in [
            &["W/\"abc\""][..],
            &["\"abc\""],
            &["*"],
            &[" * "],
            &["W/\"x\", W/\"abc\""],
            &["\"a,b\",\"abc\""],
            &["W/\"x\"", "W/\"abc\""],
            &[", \"abc\" ,,"],
        ] {
            assert!(named(lines), "{lines:?}");
        }
        for lines in [&[][..], &[""], &["W/\"ABC\""], &["\"abcd\""], &["\"\""], &["\"W/abc\""]] {
            assert!(!named(lines), "{lines:?}");
        }
    }

    #[test]
    fn a_malformed_condition_is_ignored() {
        for lines in [
            &["abc"][..],
            &["w/\"abc\""],
            &["W/abc"],
            &["\"abc"],
            &["\"abc\" \"x\""],
            &["\"abc\", x"],
            &["\"abc\", *"],
            &["\"abc\"", "*"],
            &["\"abc\"", "x"],
        ] {
            assert!(!named(lines), "{lines:?}");
        }
    }
}
