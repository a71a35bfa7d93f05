//! Scans chunked bodies.

use super::HeadFault;

/// The maximum total length of the chunk extensions and trailers of one body, in bytes.
const MAX_EXTRA_BYTES: usize = 16 * 1024;
/// The hexadecimal digits of a 64-bit size.
const MAX_DIGITS: u8 = 16;
/// The maximum size of a chunk. No route reads a body that long, so waiting for it would only end
/// in a timeout.
const MAX_CHUNK_BYTES: u64 = u32::MAX as u64;

/// The state of the scanner within a body.
#[derive(Debug, Default)]
pub(super) struct Chunks {
    place: Place,
    /// The current chunk's size, or the missing part of its data.
    size: u64,
    extra: usize,
}

#[derive(Debug, Clone, Copy)]
enum Place {
    /// In the size, after this many digits.
    Size(u8),
    Extension,
    SizeEnd,
    Data,
    DataCr,
    DataLf,
    TrailerStart,
    Trailer,
    TrailerEnd,
    BodyEnd,
}

impl Default for Place {
    fn default() -> Self {
        Self::Size(0)
    }
}

impl Chunks {
    /// Returns how many of `bytes` belong to the body, and whether the body ends with them.
    pub fn advance(&mut self, bytes: &[u8]) -> Result<(usize, bool), HeadFault> {
        let mut at = 0;
        while at < bytes.len() {
            // Skip chunk data as a block: only its length matters.
            if matches!(self.place, Place::Data) {
                let count = usize::try_from(self.size).unwrap_or(usize::MAX).min(bytes.len() - at);
                self.size -= count as u64;
                at += count;
                if self.size == 0 {
                    self.place = Place::DataCr;
                }
                continue;
            }
            let ended = matches!(self.place, Place::BodyEnd);
            self.place = self.next(bytes[at])?;
            at += 1;
            if ended {
                return Ok((at, true));
            }
        }
        Ok((at, false))
    }

    /// Returns the state after `byte`, which is not part of a chunk's data.
    fn next(&mut self, byte: u8) -> Result<Place, HeadFault> {
        Ok(match (self.place, byte) {
            (Place::Size(digits), _) if byte.is_ascii_hexdigit() && digits < MAX_DIGITS => {
                let digit = char::from(byte).to_digit(16).unwrap_or_default();
                self.size = self.size << 4 | u64::from(digit);
                if self.size > MAX_CHUNK_BYTES {
                    return Err(HeadFault::Chunk);
                }
                Place::Size(digits + 1)
            }
            (Place::Size(1..) | Place::Extension, b'\r') => Place::SizeEnd,
            (Place::Size(1..), b';' | b' ' | b'\t') => self.extra(Place::Extension)?,
            (Place::Extension, 0x20..=0x7e | b'\t' | 0x80..) => self.extra(Place::Extension)?,
            (Place::SizeEnd, b'\n') if self.size == 0 => Place::TrailerStart,
            (Place::SizeEnd, b'\n') => Place::Data,
            (Place::DataCr, b'\r') => Place::DataLf,
            (Place::DataLf, b'\n') => Place::Size(0),
            (Place::TrailerStart, b'\r') => Place::BodyEnd,
            (Place::Trailer, b'\r') => Place::TrailerEnd,
            (Place::TrailerStart | Place::Trailer, 0x20..=0x7e | b'\t' | 0x80..) => {
                self.extra(Place::Trailer)?
            }
            (Place::TrailerEnd, b'\n') => Place::TrailerStart,
            (Place::BodyEnd, b'\n') => Place::BodyEnd,
            _ => return Err(HeadFault::Chunk),
        })
    }

    fn extra(&mut self, place: Place) -> Result<Place, HeadFault> {
        self.extra += 1;
        if self.extra > MAX_EXTRA_BYTES { Err(HeadFault::Chunk) } else { Ok(place) }
    }
}
