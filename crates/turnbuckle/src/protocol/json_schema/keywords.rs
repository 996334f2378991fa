//! Owns the list of keywords a schema may use, the order they are written in, and where schemas nest.
//! Does not own what any keyword means.

/// What stands behind a keyword.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Holds {
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
pub(crate) const KEYWORDS: &[(&str, Holds)] = &[
    ("$schema", Holds::Data),
    ("$id", Holds::Data),
    ("$anchor", Holds::Data),
    ("$dynamicAnchor", Holds::Data),
    ("$vocabulary", Holds::Data),
    ("$comment", Holds::Data),
    ("$ref", Holds::Data),
    ("$dynamicRef", Holds::Data),
    ("type", Holds::Data),
    ("title", Holds::Data),
    ("description", Holds::Data),
    ("deprecated", Holds::Data),
    ("readOnly", Holds::Data),
    ("writeOnly", Holds::Data),
    // 2026-07-28 server/tools §x-mcp-header: an annotation of a property.
    ("x-mcp-header", Holds::Data),
    ("enum", Holds::Data),
    ("const", Holds::Data),
    ("format", Holds::Data),
    ("minimum", Holds::Data),
    ("exclusiveMinimum", Holds::Data),
    ("maximum", Holds::Data),
    ("exclusiveMaximum", Holds::Data),
    ("multipleOf", Holds::Data),
    ("minLength", Holds::Data),
    ("maxLength", Holds::Data),
    ("pattern", Holds::Data),
    ("contentEncoding", Holds::Data),
    ("contentMediaType", Holds::Data),
    ("contentSchema", Holds::Schema),
    ("default", Holds::Data),
    ("examples", Holds::Data),
    ("properties", Holds::NamedSchemas),
    ("patternProperties", Holds::NamedSchemas),
    ("required", Holds::Data),
    ("additionalProperties", Holds::Schema),
    ("unevaluatedProperties", Holds::Schema),
    ("propertyNames", Holds::Schema),
    ("dependentRequired", Holds::Data),
    ("dependentSchemas", Holds::NamedSchemas),
    ("minProperties", Holds::Data),
    ("maxProperties", Holds::Data),
    ("prefixItems", Holds::Schemas),
    ("items", Holds::Schema),
    ("contains", Holds::Schema),
    ("minContains", Holds::Data),
    ("maxContains", Holds::Data),
    ("unevaluatedItems", Holds::Schema),
    ("minItems", Holds::Data),
    ("maxItems", Holds::Data),
    ("uniqueItems", Holds::Data),
    ("allOf", Holds::Schemas),
    ("anyOf", Holds::Schemas),
    ("oneOf", Holds::Schemas),
    ("not", Holds::Schema),
    ("if", Holds::Schema),
    ("then", Holds::Schema),
    ("else", Holds::Schema),
    ("$defs", Holds::NamedSchemas),
];

/// What stands behind this keyword, if it is one.
pub(crate) fn holds(keyword: &str) -> Option<Holds> {
    KEYWORDS.iter().find(|(name, _)| *name == keyword).map(|(_, holds)| *holds)
}
