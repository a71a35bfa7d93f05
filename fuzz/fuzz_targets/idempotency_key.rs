//! Fuzzes the `Idempotency-Key` header. A key must have only the documented characters, and
//! surrounding quotes must not change it.
#![no_main]

use protocol::IdempotencyKey;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    if let Ok(key) = text.parse::<IdempotencyKey>() {
        let quoted = format!("\"{}\"", key.clone().into_string());
        assert_eq!(quoted.parse::<IdempotencyKey>(), Ok(key.clone()));
        let key = key.into_string();
        assert!((1..=255).contains(&key.len()));
        assert!(key.bytes().all(|b| b.is_ascii_alphanumeric() || b"_-:.".contains(&b)));
        assert!(text.contains(&key));
    }
});
