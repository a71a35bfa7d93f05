//! `If-None-Match`: a tag is named where it stands among the tags, and no malformed header names anything.
#![no_main]

use domain::entity_tag::names;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|lines: Vec<&str>| {
    const TAG: &str = "0123456789abcdef";
    if names(&lines, TAG) {
        assert!(lines.iter().any(|line| line.contains('*') || line.contains(TAG)));
        let mut with_another = lines.clone();
        with_another.push("W/\"another\"");
        assert!(lines == ["*"] || names(&with_another, TAG) || lines[0].trim() == "*");
    }
    let mut malformed = lines;
    malformed.push("\"open");
    assert!(!names(&malformed, TAG));
});
