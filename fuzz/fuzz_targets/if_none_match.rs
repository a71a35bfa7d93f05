//! Fuzzes `If-None-Match`. A tag must match only if it is in the list, and a malformed header must
//! match nothing.
#![no_main]

use protocol::entity_tag::names;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|lines: Vec<&str>| {
    const TAG: &str = "0123456789abcdef";
    if names(&lines, TAG) {
        assert!(lines.iter().any(|line| line.contains('*') || line.contains(TAG)));
        let mut with_another = lines.clone();
        with_another.push("W/\"another\"");
        // A `*` next to other tags makes the header malformed.
        assert!(lines == ["*"] || names(&with_another, TAG) || lines[0].trim() == "*");
    }
    let mut malformed = lines;
    malformed.push("\"open");
    assert!(!names(&malformed, TAG));
});
