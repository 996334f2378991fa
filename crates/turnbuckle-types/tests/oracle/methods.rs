//! Owns the check that the method table is the schemas' list of methods.

use std::collections::BTreeSet;

use turnbuckle_types::{Method, MethodKind};

use crate::spec::Schema;

/// The methods of one of the schema's unions; empty where the revision lacks the union.
/// A union of one is that one.
fn union<'a>(schema: &'a Schema, name: &str) -> BTreeSet<&'a str> {
    let Some(union) = schema.definitions().get(name) else { return BTreeSet::new() };
    let branches = match union["anyOf"].as_array() {
        Some(branches) => branches.iter().collect(),
        None => vec![union],
    };
    let method = |branch: &'a serde_json::Value| {
        let definition = branch["$ref"].as_str().map_or(branch, |name| schema.resolve(name));
        definition["properties"]["method"]["const"].as_str().unwrap()
    };
    branches.into_iter().map(method).collect()
}

#[test]
fn the_method_table_is_total_and_exact() {
    for schema in Schema::all() {
        let revision = schema.revision;
        let table = |kind: MethodKind, sends: fn(Method, _) -> bool| {
            let rows = Method::ALL.iter().filter(|method| method.row().kind == kind);
            let sent = rows.filter(|method| sends(**method, revision));
            sent.map(|method| method.as_str()).collect::<BTreeSet<_>>()
        };
        let (request, note) = (MethodKind::Request, MethodKind::Notification);
        let (client, server) = (Method::sent_by_client, Method::sent_by_server);
        assert_eq!(union(&schema, "ClientRequest"), table(request, client), "{revision}");
        assert_eq!(union(&schema, "ServerRequest"), table(request, server), "{revision}");
        assert_eq!(union(&schema, "ClientNotification"), table(note, client), "{revision}");
        assert_eq!(union(&schema, "ServerNotification"), table(note, server), "{revision}");
        let input = |method: Method, _| method.row().input.is_some_and(|s| s.contains(revision));
        let inputs: BTreeSet<&str> = Method::ALL
            .iter()
            .filter(|method| input(**method, revision))
            .map(|method| method.as_str())
            .collect();
        assert_eq!(union(&schema, "InputRequest"), inputs, "{revision}");

        for (name, definition) in schema.definitions() {
            if let Some(method) = definition["properties"]["method"]["const"].as_str() {
                let known = Method::from_name(method);
                assert!(known.is_some_and(|m| m.as_str() == method), "{name}: {method}");
            }
        }
    }
}

#[test]
fn what_can_be_cached_and_what_may_ask_is_what_the_schema_says() {
    for schema in Schema::all() {
        for method in Method::ALL.iter().filter(|method| method.sent_by_client(schema.revision)) {
            let Some((definition, _)) = schema.definitions().iter().find(|(_, definition)| {
                definition["properties"]["method"]["const"] == method.as_str()
            }) else {
                continue;
            };
            let name = definition.trim_end_matches("Request");
            let result = &schema.definitions().get(&format!("{name}Result"));
            let modern = schema.has("CacheableResult");
            let cacheable = result.is_some_and(|r| r["properties"].get("ttlMs").is_some());
            assert_eq!(cacheable, modern && method.row().cacheable, "{method}");
            let response = schema.definitions().get(&format!("{name}ResultResponse"));
            let may_ask = response.is_some_and(|r| r.to_string().contains("InputRequiredResult"));
            assert_eq!(may_ask, modern && method.row().may_ask, "{method}");
        }
    }
}
