//! Decoding of a query's pairs.

use domain::field_error::segment;
use domain::trade::FieldError;

use crate::Surface;

/// Decodes the pairs of `query`, and returns them with the syntax errors.
pub(super) fn decode_pairs(
    query: &str,
    known: &[&str],
    surface: Surface,
) -> (Vec<(String, String)>, Vec<FieldError>) {
    let mut pairs: Vec<(String, String)> = Vec::new();
    let mut errors = Vec::new();
    for pair in query.split('&').filter(|pair| !pair.is_empty()) {
        let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
        let decoded = decode(name);
        let is_known = decoded.as_deref().is_some_and(|name| known.contains(&name));
        // Checked before decoding errors, so that a malformed unknown parameter is ignored too.
        if surface != Surface::Trading && !is_known {
            continue;
        }
        let Some(name) = decoded else {
            errors.push(FieldError::new("", "must have names and values in percent-encoded UTF-8"));
            continue;
        };
        // HTML forms send their empty fields too.
        if surface == Surface::Web && value.is_empty() {
            continue;
        }
        let pointer = format!("/{}", segment(&name));
        if !is_known {
            errors
                .push(FieldError::new(pointer, "must not be sent: this route does not have this parameter"));
            continue;
        }
        if pairs.iter().any(|(earlier, _)| *earlier == name) {
            errors.push(FieldError::new(pointer, "must be sent only once"));
            continue;
        }
        match decode(value) {
            None => {
                errors.push(FieldError::new(pointer, "must be percent-encoded UTF-8 without NUL characters"))
            }
            Some(value) if value.is_empty() => errors.push(FieldError::new(pointer, "must not be empty")),
            Some(value) => pairs.push((name, value)),
        }
    }
    (pairs, errors)
}

/// Decodes a percent-encoded name or value. Returns `None` if it is malformed or contains NUL,
/// which PostgreSQL cannot store.
fn decode(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        bytes.push(match byte {
            // HTML forms encode spaces as plus signs.
            b'+' => b' ',
            b'%' => {
                let digit = |byte: u8| char::from(byte).to_digit(16);
                let (high, low) = (digit(rest.next()?)?, digit(rest.next()?)?);
                u8::try_from(high * 16 + low).ok()?
            }
            byte => byte,
        });
    }
    String::from_utf8(bytes).ok().filter(|text| !text.contains('\0'))
}
