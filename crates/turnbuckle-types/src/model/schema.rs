//! The small part of JSON Schema that an elicitation's form is made of.

use serde::{
    Deserialize, Deserializer,
    de::{Error, IgnoredAny},
};

use crate::{
    At, Encode, Named, Raw,
    wire::{legacy, read::Word},
};

model! {
    /// The fields of a form.
    ///
    /// ```
    /// use turnbuckle_types::{BooleanSchema, ElicitSchema};
    /// let mut schema = ElicitSchema::new([("sure", BooleanSchema::new())]);
    /// schema.required = Some(vec!["sure".into()]);
    /// ```
    pub struct ElicitSchema {
        tag("type") = "object";
        required {
            /// The fields in the order they are shown in.
            properties("properties"): Named<PrimitiveSchema>,
        }
        optional {
            /// The dialect.
            #[since(V2025_11_25)]
            schema("$schema"): Option<String>,
            /// The fields that must be filled in.
            required("required"): Option<Vec<String>>,
        }
    }
}

/// One field of a form.
///
/// 2025-06-18 knows one kind of choice; for it every other kind is written as that one,
/// and a choice of several as a choice of one.
///
/// ```
/// use turnbuckle_types::{Choice, PrimitiveSchema, Raw, Revision, TitledSelect};
/// let color = PrimitiveSchema::from(TitledSelect::new([Choice::new("#f00", "Red")]));
/// let old = Raw::at(&color, Revision::V2025_06_18);
/// assert_eq!(old.as_str(), r##"{"type":"string","enum":["#f00"],"enumNames":["Red"]}"##);
/// ```
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum PrimitiveSchema {
    /// Text.
    String(StringSchema),
    /// A number.
    Number(NumberSchema),
    /// Yes or no.
    Boolean(BooleanSchema),
    /// One of some values.
    Select(SelectSchema),
    /// One of some values, each with a title.
    TitledSelect(TitledSelect),
    /// Some of some values.
    MultiSelect(MultiSelect),
    /// Some of some values, each with a title.
    TitledMultiSelect(TitledMultiSelect),
    /// A kind that the model does not know, as it came.
    Other(Raw),
}

macro_rules! kinds {
    ($($variant:ident($inner:ident)),+) => {
        $(
            impl From<$inner> for PrimitiveSchema {
                fn from(schema: $inner) -> PrimitiveSchema {
                    PrimitiveSchema::$variant(schema)
                }
            }
        )+
    };
}

kinds! {
    String(StringSchema), Number(NumberSchema), Boolean(BooleanSchema), Select(SelectSchema),
    TitledSelect(TitledSelect), MultiSelect(MultiSelect), TitledMultiSelect(TitledMultiSelect)
}

impl Encode for PrimitiveSchema {
    fn write(&self, at: At, out: &mut Vec<u8>) {
        if let Some(plain) = legacy::plain_select(self, at) {
            return plain.write(at, out);
        }
        match self {
            PrimitiveSchema::String(schema) => schema.write(at, out),
            PrimitiveSchema::Number(schema) => schema.write(at, out),
            PrimitiveSchema::Boolean(schema) => schema.write(at, out),
            PrimitiveSchema::Select(schema) => schema.write(at, out),
            PrimitiveSchema::TitledSelect(schema) => schema.write(at, out),
            PrimitiveSchema::MultiSelect(schema) => schema.write(at, out),
            PrimitiveSchema::TitledMultiSelect(schema) => schema.write(at, out),
            PrimitiveSchema::Other(schema) => schema.write(at, out),
        }
    }
}

serialize!(PrimitiveSchema);

impl<'de> Deserialize<'de> for PrimitiveSchema {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let raw = Raw::deserialize(deserializer)?;
        PrimitiveSchema::from_raw(raw).map_err(D::Error::custom)
    }
}

/// What tells the kinds apart.
#[derive(Deserialize)]
struct SchemaProbe<'a> {
    #[serde(rename = "type", borrow)]
    kind: Option<Word<'a>>,
    #[serde(rename = "enum")]
    values: Option<IgnoredAny>,
    #[serde(rename = "oneOf")]
    one_of: Option<IgnoredAny>,
    items: Option<ProbeItems>,
}

#[derive(Deserialize)]
struct ProbeItems {
    #[serde(rename = "enum")]
    values: Option<IgnoredAny>,
    #[serde(rename = "anyOf")]
    any_of: Option<IgnoredAny>,
}

impl PrimitiveSchema {
    fn from_raw(raw: Raw) -> serde_json::Result<PrimitiveSchema> {
        let probe: SchemaProbe<'_> = raw.decode_borrowed()?;
        let kind = probe.kind.as_ref().map_or("", Word::as_str);
        match (kind, &probe.items) {
            ("string", _) if probe.values.is_some() => raw.decode().map(Self::Select),
            ("string", _) if probe.one_of.is_some() => raw.decode().map(Self::TitledSelect),
            ("string", _) => raw.decode().map(Self::String),
            ("number" | "integer", _) => raw.decode().map(Self::Number),
            ("boolean", _) => raw.decode().map(Self::Boolean),
            ("array", Some(items)) if items.values.is_some() => raw.decode().map(Self::MultiSelect),
            ("array", Some(items)) if items.any_of.is_some() => {
                raw.decode().map(Self::TitledMultiSelect)
            }
            _ => Ok(Self::Other(raw)),
        }
    }
}

model! {
    /// A field of text.
    pub struct StringSchema {
        tag("type") = "string";
        optional {
            /// What the field is called.
            title("title"): Option<String>,
            /// What it is for.
            description("description"): Option<String>,
            /// The fewest characters.
            min_length("minLength"): Option<u64>,
            /// The most characters.
            max_length("maxLength"): Option<u64>,
            /// What the text is.
            format("format"): Option<StringFormat>,
            /// What the field starts with.
            #[since(V2025_11_25)]
            default("default"): Option<String>,
        }
    }
}

keywords! {
    /// What a field's text is.
    pub enum StringFormat {
        /// An e-mail address.
        Email = "email",
        /// A URI.
        Uri = "uri",
        /// A day.
        Date = "date",
        /// A moment.
        DateTime = "date-time",
    }
}

model! {
    /// A field with a number.
    pub struct NumberSchema {
        required {
            /// Whether a fraction is allowed.
            kind("type"): NumberKind,
        }
        optional {
            /// What the field is called.
            title("title"): Option<String>,
            /// What it is for.
            description("description"): Option<String>,
            /// The smallest value.
            minimum("minimum"): Option<f64>,
            /// The greatest value.
            maximum("maximum"): Option<f64>,
            /// What the field starts with.
            #[since(V2025_11_25)]
            default("default"): Option<f64>,
        }
    }
}

keywords! {
    /// Whether a number may have a fraction.
    pub enum NumberKind {
        /// It may.
        Number = "number",
        /// It may not.
        Integer = "integer",
    }
}

model! {
    /// A field with a yes or a no.
    pub struct BooleanSchema {
        tag("type") = "boolean";
        optional {
            /// What the field is called.
            title("title"): Option<String>,
            /// What it is for.
            description("description"): Option<String>,
            /// What the field starts with.
            default("default"): Option<bool>,
        }
    }
}

model! {
    /// A field with one of some values.
    pub struct SelectSchema {
        tag("type") = "string";
        required {
            /// The values.
            values("enum"): Vec<String>,
        }
        optional {
            /// What the field is called.
            title("title"): Option<String>,
            /// What it is for.
            description("description"): Option<String>,
            /// What the values are called. Since 2025-11-25, [`TitledSelect`] says it better.
            enum_names("enumNames"): Option<Vec<String>>,
            /// What the field starts with.
            #[since(V2025_11_25)]
            default("default"): Option<String>,
        }
    }
}

model! {
    /// A field with one of some values, each with a title. Since 2025-11-25.
    pub struct TitledSelect {
        tag("type") = "string";
        required {
            /// The values.
            one_of("oneOf"): Vec<Choice>,
        }
        optional {
            /// What the field is called.
            title("title"): Option<String>,
            /// What it is for.
            description("description"): Option<String>,
            /// What the field starts with.
            default("default"): Option<String>,
        }
    }
}

model! {
    /// A value and its title.
    pub struct Choice {
        required {
            /// The value.
            value("const"): String,
            /// What people read.
            title("title"): String,
        }
        optional {}
    }
}

model! {
    /// A field with some of some values. Since 2025-11-25.
    pub struct MultiSelect {
        tag("type") = "array";
        required {
            /// The values.
            items("items"): SelectItems,
        }
        optional {
            /// What the field is called.
            title("title"): Option<String>,
            /// What it is for.
            description("description"): Option<String>,
            /// The fewest.
            min_items("minItems"): Option<u64>,
            /// The most.
            max_items("maxItems"): Option<u64>,
            /// What the field starts with.
            default("default"): Option<Vec<String>>,
        }
    }
}

model! {
    /// The values of a [`MultiSelect`].
    pub struct SelectItems {
        tag("type") = "string";
        required {
            /// The values.
            values("enum"): Vec<String>,
        }
        optional {}
    }
}

model! {
    /// A field with some of some values, each with a title. Since 2025-11-25.
    pub struct TitledMultiSelect {
        tag("type") = "array";
        required {
            /// The values.
            items("items"): TitledItems,
        }
        optional {
            /// What the field is called.
            title("title"): Option<String>,
            /// What it is for.
            description("description"): Option<String>,
            /// The fewest.
            min_items("minItems"): Option<u64>,
            /// The most.
            max_items("maxItems"): Option<u64>,
            /// What the field starts with.
            default("default"): Option<Vec<String>>,
        }
    }
}

model! {
    /// The values of a [`TitledMultiSelect`].
    pub struct TitledItems {
        required {
            /// The values.
            any_of("anyOf"): Vec<Choice>,
        }
        optional {}
    }
}
