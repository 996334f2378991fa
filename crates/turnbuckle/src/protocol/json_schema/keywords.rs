//! Owns the list of keywords a schema may use, the order they are written in, and where schemas nest.
//! Does not own what any keyword means.

/// What stands behind a keyword.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum KeywordValue {
    /// Plain data.
    Data,
    /// One schema.
    Schema,
    /// An array of schemas.
    Schemas,
    /// An object whose members are schemas.
    NamedSchemas,
}

/// Every keyword of JSON Schema 2020-12 and MCP's own `x-mcp-header`, in the order they are written.
pub(crate) const KEYWORDS: &[(&str, KeywordValue)] = &[
    ("$schema", KeywordValue::Data),
    ("$id", KeywordValue::Data),
    ("$anchor", KeywordValue::Data),
    ("$dynamicAnchor", KeywordValue::Data),
    ("$vocabulary", KeywordValue::Data),
    ("$comment", KeywordValue::Data),
    ("$ref", KeywordValue::Data),
    ("$dynamicRef", KeywordValue::Data),
    ("type", KeywordValue::Data),
    ("title", KeywordValue::Data),
    ("description", KeywordValue::Data),
    ("deprecated", KeywordValue::Data),
    ("readOnly", KeywordValue::Data),
    ("writeOnly", KeywordValue::Data),
    // 2026-07-28 server/tools §x-mcp-header: an annotation of a property.
    ("x-mcp-header", KeywordValue::Data),
    ("enum", KeywordValue::Data),
    ("const", KeywordValue::Data),
    ("format", KeywordValue::Data),
    ("minimum", KeywordValue::Data),
    ("exclusiveMinimum", KeywordValue::Data),
    ("maximum", KeywordValue::Data),
    ("exclusiveMaximum", KeywordValue::Data),
    ("multipleOf", KeywordValue::Data),
    ("minLength", KeywordValue::Data),
    ("maxLength", KeywordValue::Data),
    ("pattern", KeywordValue::Data),
    ("contentEncoding", KeywordValue::Data),
    ("contentMediaType", KeywordValue::Data),
    ("contentSchema", KeywordValue::Schema),
    ("default", KeywordValue::Data),
    ("examples", KeywordValue::Data),
    ("properties", KeywordValue::NamedSchemas),
    ("patternProperties", KeywordValue::NamedSchemas),
    ("required", KeywordValue::Data),
    ("additionalProperties", KeywordValue::Schema),
    ("unevaluatedProperties", KeywordValue::Schema),
    ("propertyNames", KeywordValue::Schema),
    ("dependentRequired", KeywordValue::Data),
    ("dependentSchemas", KeywordValue::NamedSchemas),
    ("minProperties", KeywordValue::Data),
    ("maxProperties", KeywordValue::Data),
    ("prefixItems", KeywordValue::Schemas),
    ("items", KeywordValue::Schema),
    ("contains", KeywordValue::Schema),
    ("minContains", KeywordValue::Data),
    ("maxContains", KeywordValue::Data),
    ("unevaluatedItems", KeywordValue::Schema),
    ("minItems", KeywordValue::Data),
    ("maxItems", KeywordValue::Data),
    ("uniqueItems", KeywordValue::Data),
    ("allOf", KeywordValue::Schemas),
    ("anyOf", KeywordValue::Schemas),
    ("oneOf", KeywordValue::Schemas),
    ("not", KeywordValue::Schema),
    ("if", KeywordValue::Schema),
    ("then", KeywordValue::Schema),
    ("else", KeywordValue::Schema),
    ("$defs", KeywordValue::NamedSchemas),
];

/// What stands behind this keyword, if it is one.
pub(crate) fn holds(keyword: &str) -> Option<KeywordValue> {
    KEYWORDS.iter().find(|(name, _)| *name == keyword).map(|(_, holds)| *holds)
}
