//! The wire names of domain variants, independent of the ledger's names.

/// Declares an enum of wire words with its way to a domain enum and back.
macro_rules! words {
    ($($(#[$doc:meta])* $name:ident for $model:ty { $($variant:ident = $word:literal,)* })*) => {$(
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
        #[cfg_attr(test, derive(ts_rs::TS))]
        pub enum $name {
            $(
                #[doc = concat!("`", $word, "`")]
                #[serde(rename = $word)]
                $variant,
            )*
        }

        impl $name {
            /// The word as it is written.
            pub fn as_str(self) -> &'static str {
                match self {
                    $(Self::$variant => $word,)*
                }
            }
        }

        impl From<$model> for $name {
            fn from(model: $model) -> Self {
                match model {
                    $(<$model>::$variant => Self::$variant,)*
                }
            }
        }

        impl From<$name> for $model {
            fn from(word: $name) -> Self {
                match word {
                    $($name::$variant => Self::$variant,)*
                }
            }
        }
    )*};
}

pub(crate) use words;
