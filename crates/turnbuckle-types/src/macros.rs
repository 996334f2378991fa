//! The three macros that define the model.
//!
//! `model!` defines an object:
//!
//! ```text
//! model! {
//!     /// Docs.
//!     pub struct Name {
//!         tag("type") = "text";               // a member with one fixed value, written first
//!         required {                          // the arguments of `new`, in order
//!             /// Docs.
//!             field("wireName"): Type,
//!         }
//!         optional {                          // `Option<_>` or `Meta`; left out when absent
//!             /// Docs.
//!             other("otherName"): Option<Type>,
//!         }
//!     }
//! }
//! ```
//!
//! `tag` and `required` may be missing. Marks stand between a field's docs and its name,
//! in this order. Those of the optional fields are the list of what differs between
//! revisions:
//!
//! - `#[since(V2025_06_18)]`: the first revision that has the field.
//! - `#[until(V2025_11_25)]`: the last one.
//! - `#[when(function)]`: written only where `function(&value, at)` says so.
//! - `#[require(function)]`: where the field is absent, `function(&self, at)` may give
//!   the value that the revision insists on.
//!
//! A required field may be marked `#[by(value)]` (`new` takes the type itself, not
//! `impl Into` of it) and `#[write(function)]` (`function(&value, at, out)` writes it).
//!
//! `tagged!` defines an enum of such objects, told apart by the value of one member;
//! a kind that the model does not know is kept as text. A variant may be marked
//! `#[since(V2025_03_26, function)]`: for older revisions `function(&value)` gives what
//! is written instead.
//!
//! `keywords!` defines an enum of strings.

macro_rules! model {
    (
        $(#[doc = $doc:expr])*
        pub struct $name:ident {
            $( tag($tag:literal) = $kind:literal; )?
            optional { $($optional:tt)* }
        }
    ) => {
        model! {
            @define
            $(#[doc = $doc])*
            pub struct $name {
                $( tag($tag) = $kind; )?
                required {}
                optional { $($optional)* }
            }
        }

        impl Default for $name {
            fn default() -> Self {
                Self::new()
            }
        }
    };
    (
        $(#[doc = $doc:expr])*
        pub struct $name:ident {
            $( tag($tag:literal) = $kind:literal; )?
            required { $($required:tt)+ }
            optional { $($optional:tt)* }
        }
    ) => {
        model! {
            @define
            $(#[doc = $doc])*
            pub struct $name {
                $( tag($tag) = $kind; )?
                required { $($required)+ }
                optional { $($optional)* }
            }
        }
    };
    (
        @define
        $(#[doc = $doc:expr])*
        pub struct $name:ident {
            $( tag($tag:literal) = $kind:literal; )?
            required {
                $(
                    $(#[doc = $rdoc:expr])*
                    $(#[by($by:ident)])?
                    $(#[write($rwrite:path)])?
                    $rfield:ident($rwire:literal): $rtype:ty,
                )*
            }
            optional {
                $(
                    $(#[doc = $odoc:expr])*
                    $(#[since($since:ident)])?
                    $(#[until($until:ident)])?
                    $(#[when($when:path)])?
                    $(#[require($require:path)])?
                    $ofield:ident($owire:literal): $otype:ty,
                )*
            }
        }
    ) => {
        $(#[doc = $doc])*
        #[derive(Clone, Debug, PartialEq)]
        #[non_exhaustive]
        pub struct $name {
            $( $(#[doc = $rdoc])* pub $rfield: $rtype, )*
            $( $(#[doc = $odoc])* pub $ofield: $otype, )*
            /// Members that the model has no field for.
            pub extra: $crate::Extra,
        }

        impl $name {
            /// With what is required, and nothing else.
            pub fn new($($rfield: argument!($($by)? $rtype)),*) -> Self {
                Self {
                    $( $rfield: $rfield.into(), )*
                    $( $ofield: Default::default(), )*
                    extra: $crate::Extra::new(),
                }
            }
        }

        impl $crate::Encode for $name {
            fn write(&self, at: $crate::At, out: &mut Vec<u8>) {
                use $crate::wire::json;
                // Not every type has members that differ between revisions.
                let _ = at;
                out.push(b'{');
                $( json::write_member(concat!("\"", $tag, "\":"), $kind, at, out); )?
                $(
                    json::write_key(concat!("\"", $rwire, "\":"), out);
                    write_value!(&self.$rfield, at, out $(, $rwrite)?);
                )*
                $(
                    if true
                        $( && at.since($crate::Revision::$since) )?
                        $( && at.until($crate::Revision::$until) )?
                        $( && $when(&self.$ofield, at) )?
                    {
                        if !$crate::Encode::is_absent(&self.$ofield, at) {
                            json::write_member(concat!("\"", $owire, "\":"), &self.$ofield, at, out);
                        }
                        $(
                            else if let Some(value) = $require(self, at) {
                                json::write_member(concat!("\"", $owire, "\":"), &value, at, out);
                            }
                        )?
                    }
                )*
                self.extra.write_members(out);
                out.push(b'}');
            }
        }

        impl $crate::wire::read::Members for $name {
            const NAME: &'static str = stringify!($name);

            fn read<'de, A>(access: &mut A) -> Result<Self, A::Error>
            where
                A: serde::de::MapAccess<'de>,
            {
                use $crate::wire::read;
                $( let mut $rfield: Option<$rtype> = None; )*
                $( let mut $ofield: Option<$otype> = None; )*
                let mut extra = $crate::Extra::new();
                while let Some(name) = access.next_key::<read::Word<'de>>()? {
                    // One `?` for all, and no closure below: this is compiled for each type.
                    match name.as_str() {
                        $( $tag => read::fixed(access, $tag, $kind), )?
                        $( $rwire => read::member(&mut $rfield, access, $rwire), )*
                        $( $owire => read::member(&mut $ofield, access, $owire), )*
                        _ => extra.read(name, access),
                    }?;
                }
                $(
                    let Some($rfield) = $rfield else {
                        return Err(serde::de::Error::missing_field($rwire));
                    };
                )*
                Ok(Self {
                    $( $rfield, )*
                    $( $ofield: $ofield.unwrap_or_default(), )*
                    extra,
                })
            }
        }

        serialize!($name);
        deserialize!($name, $crate::wire::read::ObjectVisitor);
    };
}

macro_rules! tagged {
    (
        $(#[doc = $doc:expr])*
        pub enum $name:ident by $tag:literal {
            $(
                $(#[doc = $vdoc:expr])*
                $(#[since($since:ident, $instead:path)])?
                $variant:ident($inner:ty) = $kind:literal,
            )+
        }
    ) => {
        $(#[doc = $doc])*
        #[derive(Clone, Debug, PartialEq)]
        #[non_exhaustive]
        pub enum $name {
            $( $(#[doc = $vdoc])* $variant($inner), )+
            /// A kind that the model does not know, as it came.
            Other($crate::Raw),
        }

        impl $crate::Encode for $name {
            fn write(&self, at: $crate::At, out: &mut Vec<u8>) {
                match self {
                    $(
                        $(
                            Self::$variant(value) if !at.since($crate::Revision::$since) => {
                                $instead(value).write(at, out);
                            }
                        )?
                        Self::$variant(value) => value.write(at, out),
                    )+
                    Self::Other(value) => value.write(at, out),
                }
            }
        }

        impl $crate::wire::read::Tagged for $name {
            const TAG: &'static str = $tag;
            const NAME: &'static str = stringify!($name);

            fn read_kind<'de, A>(kind: &str, access: &mut A) -> Result<Option<Self>, A::Error>
            where
                A: serde::de::MapAccess<'de>,
            {
                use $crate::wire::read::Members;
                Ok(Some(match kind {
                    $( $kind => Self::$variant(Members::read(access)?), )+
                    _ => return Ok(None),
                }))
            }

            fn other(raw: $crate::Raw) -> Self {
                Self::Other(raw)
            }
        }

        serialize!($name);
        deserialize!($name, $crate::wire::read::TaggedVisitor);
    };
}

macro_rules! keywords {
    (
        $(#[doc = $doc:expr])*
        pub enum $name:ident {
            $( $(#[doc = $vdoc:expr])* $variant:ident = $word:literal, )+
        }
    ) => {
        $(#[doc = $doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[non_exhaustive]
        pub enum $name {
            $( $(#[doc = $vdoc])* $variant, )+
        }

        impl $name {
            /// The word on the wire.
            pub const fn as_str(self) -> &'static str {
                match self {
                    $( Self::$variant => $word, )+
                }
            }
        }

        impl $crate::Encode for $name {
            fn write(&self, at: $crate::At, out: &mut Vec<u8>) {
                self.as_str().write(at, out);
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(self.as_str())
            }
        }

        impl<'de> serde::Deserialize<'de> for $name {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let word = $crate::wire::read::Word::deserialize(deserializer)?;
                match word.as_str() {
                    $( $word => Ok(Self::$variant), )+
                    other => Err(serde::de::Error::unknown_variant(other, &[$($word),+])),
                }
            }
        }

        serialize!($name);
    };
}

/// The type of an argument of `new`.
macro_rules! argument {
    (value $type:ty) => { $type };
    ($type:ty) => { impl Into<$type> };
}

macro_rules! write_value {
    ($value:expr, $at:ident, $out:ident, $write:path) => {
        $write($value, $at, $out)
    };
    ($value:expr, $at:ident, $out:ident) => {
        $crate::Encode::write($value, $at, $out)
    };
}

macro_rules! serialize {
    ($name:ty) => {
        impl serde::Serialize for $name {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                $crate::Encode::encode(self, $crate::At::Everything, serializer)
            }
        }
    };
}

macro_rules! deserialize {
    ($name:ty, $visitor:path) => {
        impl<'de> serde::Deserialize<'de> for $name {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                deserializer.deserialize_map($visitor(std::marker::PhantomData))
            }
        }
    };
}
