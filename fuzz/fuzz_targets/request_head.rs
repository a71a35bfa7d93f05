//! Fuzzes the scanner of request boundaries. The released bytes and the fault must not depend on
//! how the bytes are split.
#![no_main]

use protocol::request_head::{HeadFault, RequestScanner};
use libfuzzer_sys::fuzz_target;

fn scan<'a>(pieces: impl Iterator<Item = &'a [u8]>) -> (usize, Option<HeadFault>) {
    let (mut scanner, mut held, mut released) = (RequestScanner::default(), Vec::new(), 0);
    for piece in pieces {
        held.extend_from_slice(piece);
        let count = scanner.advance(&held);
        held.drain(..count);
        released += count;
    }
    (released, scanner.fault())
}

fuzz_target!(|input: (u8, &[u8])| {
    let (size, bytes) = (usize::from(input.0) + 1, input.1);
    let (released, fault) = scan(std::iter::once(bytes));
    assert!(released <= bytes.len());
    let (in_pieces, fault_in_pieces) = scan(bytes.chunks(size));
    assert_eq!(fault, fault_in_pieces);
    // With a fault, the split input may release body bytes that the whole input holds back.
    assert!(fault.is_some() || released == in_pieces);
});
