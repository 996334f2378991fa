//! Roots: the places that a client lets a server work in.

use crate::Meta;

model! {
    /// A place that a server may work in.
    ///
    /// ```
    /// use turnbuckle_types::{ListRootsResult, Root};
    /// let roots = ListRootsResult::new([Root::new("file:///home/ada")]);
    /// assert_eq!(roots.roots[0].uri, "file:///home/ada");
    /// ```
    pub struct Root {
        required {
            /// A `file:` URI.
            uri("uri"): String,
        }
        optional {
            /// The name that people read.
            name("name"): Option<String>,
            /// Metadata.
            #[since(V2025_06_18)]
            meta("_meta"): Meta,
        }
    }
}

model! {
    /// The params of `roots/list`.
    pub struct ListRoots {
        optional {
            /// Metadata.
            meta("_meta"): Meta,
        }
    }
}

model! {
    /// The result of `roots/list`.
    pub struct ListRootsResult {
        required {
            /// The places.
            roots("roots"): Vec<Root>,
        }
        optional {
            /// Metadata.
            #[until(V2025_11_25)]
            meta("_meta"): Meta,
        }
    }
}
