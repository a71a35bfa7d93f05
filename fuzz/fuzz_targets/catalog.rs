//! Fuzzes the readers of catalogs.
#![no_main]

use libfuzzer_sys::fuzz_target;
use protocol::document::{from_json, from_yaml};

// Neither format of a catalog may abort the process, whatever it nests, repeats or names.
fuzz_target!(|bytes: &[u8]| {
    let _ = from_json(bytes);
    if let Ok(text) = std::str::from_utf8(bytes) {
        let _ = from_yaml(text);
    }
});
