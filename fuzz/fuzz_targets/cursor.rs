//! Fuzzes cursors. Each position must have exactly one valid text.
#![no_main]

use domain::Timestamp;
use domain::page::PagePosition;
use protocol::CursorCodec;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: (&str, i64, &str)| {
    let (text, ms, id) = input;
    let codec = CursorCodec::new([7; 32]);
    let position = PagePosition { created_at: Timestamp::from_ms(ms), id: id.to_owned() };
    let given = codec.encode("route", "filters", &position);
    if given.len() <= 512 {
        assert_eq!(codec.decode("route", "filters", &given), Ok(position));
    }
    if let Ok(found) = codec.decode("route", "filters", text) {
        assert_eq!(codec.encode("route", "filters", &found), text);
    }
    assert!(codec.decode("another route", "filters", &given).is_err());
    assert!(codec.decode("route", "other filters", &given).is_err());
});
