//! Decoding of a query's pairs.

use domain::field_error::segment;
use domain::text::{OutsideText, decode_form_component};
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

/// Returns whether a parameter is sent with a value, however its name is encoded.
pub fn is_sent(query: &str, name: &str) -> bool {
    query
        .split('&')
        .filter_map(|pair| pair.split_once('='))
        .any(|(given, value)| !value.is_empty() && decode(given).is_some_and(|given| given == name))
}

fn decode(encoded: &str) -> Option<String> {
    decode_form_component(encoded).map(OutsideText::into_string)
}
