//! The `X-API-Key` header: only the documented form is a key, and a key is kept as it is.
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
