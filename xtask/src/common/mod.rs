//! Code that several tasks share.

pub(crate) mod built;
pub(crate) mod files;
pub(crate) mod npm;
pub(crate) mod page;
pub(crate) mod process;

/// Declares an enum whose values have a name, in files and in print.
macro_rules! named {
    ($(#[$about:meta])* $type:ident { $($(#[$note:meta])* $value:ident = $name:literal,)+ }) => {
        $(#[$about])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Deserialize)]
        pub(crate) enum $type { $($(#[$note])* #[serde(rename = $name)] $value,)+ }

        impl std::fmt::Display for $type {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(match self { $($type::$value => $name,)+ })
            }
        }
    };
}

pub(crate) use named;
