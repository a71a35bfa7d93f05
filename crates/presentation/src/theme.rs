//! The color theme of a page.

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Theme {
    /// Follows the reader's system setting.
    Auto,
    Light,
    Dark,
}

impl Theme {
    /// All themes with their parameter values. The first one is the default.
    pub const WORDS: &'static [(&'static str, Self)] =
        &[("auto", Self::Auto), ("light", Self::Light), ("dark", Self::Dark)];

    /// Returns the theme's name, or `None` if the reader's system decides.
    pub const fn fixed(self) -> Option<&'static str> {
        match self {
            Self::Auto => None,
            Self::Light => Some("light"),
            Self::Dark => Some("dark"),
        }
    }
}
