//! Fuzzes amounts of money. Exactly the documented form must parse, without any rounding.
#![no_main]

use domain::{Usdc, Wad};
use libfuzzer_sys::fuzz_target;

/// A second implementation of the documented form.
fn is_amount(text: &str) -> bool {
    let (whole, decimals) = text.split_once('.').unwrap_or((text, "0"));
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    digits(whole)
        && digits(decimals)
        && whole.len() <= 12
        && decimals.len() <= 6
        && (whole == "0" || !whole.starts_with('0'))
}

fuzz_target!(|text: &str| {
    let amount = text.parse::<Usdc>();
    assert_eq!(amount.is_ok(), is_amount(text));
    if let Ok(amount) = amount {
        let (whole, decimals) = text.split_once('.').unwrap_or((text, ""));
        let micro: u64 = format!("{whole}{decimals:0<6}").parse().unwrap();
        assert_eq!(amount.atomic(), micro);
    }
    if let Ok(wad) = text.parse::<Wad>() {
        assert_eq!(wad.to_string().parse::<Wad>().unwrap(), wad);
    }
});
