//! Field errors: a field of a request and the requirement that it violates.

use serde::Serialize;

use crate::text::shown;

/// The facts that a field error may state. Any other text is a requirement and begins with "must".
const FACTS: [&str; 6] =
    ["is required", "is already ", "is not supported", "is not available", "cannot change", "does not exist"];

/// A field that does not meet its requirement.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct FieldError {
    /// JSON pointer to the field.
    pub pointer: String,
    /// The requirement, such as `must be above zero, got "0"`.
    pub detail: String,
}

impl FieldError {
    /// Creates an error for the field at `pointer`, which does not meet the requirement `detail`.
    pub fn new(pointer: impl Into<String>, detail: impl Into<String>) -> Self {
        let (pointer, detail) = (pointer.into(), detail.into());
        debug_assert!(is_requirement(&detail), "{pointer} {detail}: a requirement begins with \"must\"");
        Self { pointer, detail }
    }

    /// Appends the rejected value, quoted and truncated.
    #[must_use]
    pub fn got(mut self, value: &str) -> Self {
        self.detail = format!("{}, got {}", self.detail, shown(value));
        self
    }
}

/// Returns true if the text is a requirement or one of the known facts. A requirement worded as a
/// fact ("is in the future" for a past instant) would say the opposite of the error.
pub fn is_requirement(detail: &str) -> bool {
    detail.starts_with("must ") || FACTS.iter().any(|fact| detail.starts_with(fact))
}

/// Escapes a member's name as a segment of a JSON pointer and truncates long names.
pub fn segment(name: &str) -> String {
    crate::text::cut(name).replace('~', "~0").replace('/', "~1")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rejected_value_is_quoted_and_truncated() {
        let error = |value: &str| FieldError::new("/a", "must be above zero").got(value).detail;
        assert_eq!(error("0"), "must be above zero, got \"0\"");
        assert_eq!(error("a\"\n"), r#"must be above zero, got "a\"\n""#);
        assert!(error(&"é".repeat(20_000)).len() < 200);
    }

    #[test]
    fn a_requirement_never_reads_as_a_fact() {
        assert!(is_requirement("must be in the future"));
        assert!(is_requirement("is already taken"));
        assert!(!is_requirement("is in the future"));
    }
}
