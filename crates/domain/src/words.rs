//! Closed sets of words: the names that an enum has in the API and in the store.

macro_rules! words {
    ($(#[$doc:meta])* $enum:ident, $error:ident { $($(#[$vdoc:meta])* $name:ident = $word:literal,)* }) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        pub enum $enum { $($(#[$vdoc])* $name,)* }

        impl $enum {
            /// Every value.
            pub const ALL: &[Self] = &[$(Self::$name,)*];

            /// The word of the API and of the store.
            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$name => $word,)* }
            }
        }

        impl std::fmt::Display for $enum {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(self.as_str())
            }
        }

        impl serde::Serialize for $enum {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_str(self.as_str())
            }
        }

        /// The text is none of the words.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
        #[error("not one of the known words")]
        pub struct $error;

        impl std::str::FromStr for $enum {
            type Err = $error;

            fn from_str(text: &str) -> Result<Self, Self::Err> {
                Self::ALL.iter().copied().find(|value| value.as_str() == text).ok_or($error)
            }
        }
    };
}

pub(crate) use words;
