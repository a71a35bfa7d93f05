//! Fuzzes the `X-API-Key` header. Only the documented form must parse, and the key must be
//! preserved unchanged.
#![no_main]

use domain::key::PlaintextKey;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    if let Ok(key) = text.parse::<PlaintextKey>() {
        assert_eq!(key.expose(), text);
        assert_eq!(text.len(), key.environment().prefix().len() + 32);
        assert!(!format!("{key:?}").contains(&text[text.len() - 32..]));
    }
});
