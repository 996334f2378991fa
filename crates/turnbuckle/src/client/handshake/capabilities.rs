//! Owns what a server must have declared before a method is called. Pure. Does not own whether
//! anybody asks, nor what a client declares.

use turnbuckle_types::{Method, Revision, ServerCapabilities};

use crate::error::{Error, Result};

/// A capability, and whether it is there.
struct RequiredServerCapability {
    name: &'static str,
    is_met: fn(&ServerCapabilities) -> bool,
    /// The first revision that has a word for it.
    since: Revision,
    methods: &'static [Method],
}

const NEEDS: &[RequiredServerCapability] = &[
    RequiredServerCapability {
        name: "tools",
        is_met: |declared| declared.tools.is_some(),
        since: Revision::V2024_11_05,
        methods: &[Method::ListTools, Method::CallTool],
    },
    RequiredServerCapability {
        name: "resources",
        is_met: |declared| declared.resources.is_some(),
        since: Revision::V2024_11_05,
        methods: &[Method::ListResources, Method::ListResourceTemplates, Method::ReadResource],
    },
    RequiredServerCapability {
        name: "resources.subscribe",
        is_met: |declared| {
            declared.resources.as_ref().is_some_and(|resources| resources.subscribe == Some(true))
        },
        since: Revision::V2024_11_05,
        methods: &[Method::Subscribe, Method::Unsubscribe],
    },
    RequiredServerCapability {
        name: "prompts",
        is_met: |declared| declared.prompts.is_some(),
        since: Revision::V2024_11_05,
        methods: &[Method::ListPrompts, Method::GetPrompt],
    },
    RequiredServerCapability {
        name: "completions",
        is_met: |declared| declared.completions.is_some(),
        since: Revision::V2025_03_26,
        methods: &[Method::Complete],
    },
    RequiredServerCapability {
        name: "logging",
        is_met: |declared| declared.logging.is_some(),
        since: Revision::V2024_11_05,
        methods: &[Method::SetLevel],
    },
];

/// Refuses a method whose capability the server did not declare.
pub(crate) fn check(
    method: Method,
    declared: &ServerCapabilities,
    revision: Revision,
) -> Result<()> {
    let need = NEEDS.iter().find(|need| need.methods.contains(&method));
    match need.filter(|need| need.since <= revision && !(need.is_met)(declared)) {
        None => Ok(()),
        Some(RequiredServerCapability { name, .. }) => Err(Error::refused(format!(
            "the server did not declare the capability `{name}`, which `{method}` needs; \
             nothing was sent (ClientBuilder::ignore_capabilities sends it all the same)"
        ))),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::error::ErrorKind;

    #[test]
    fn each_method_needs_what_its_kind_is_declared_by() {
        let table = [
            (Method::ListTools, json!({"tools": {}})),
            (Method::CallTool, json!({"tools": {}})),
            (Method::ReadResource, json!({"resources": {}})),
            (Method::Subscribe, json!({"resources": {"subscribe": true}})),
            (Method::GetPrompt, json!({"prompts": {}})),
            (Method::Complete, json!({"completions": {}})),
            (Method::SetLevel, json!({"logging": {}})),
        ];
        let (nothing, latest) = (ServerCapabilities::default(), Revision::V2025_11_25);
        for (method, enough) in table {
            let error = check(method, &nothing, latest).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Refused);
            assert!(!error.maybe_executed() && error.to_string().contains(method.as_str()));
            let enough = serde_json::from_value(enough).unwrap();
            check(method, &enough, latest).unwrap();
        }
        let resources = serde_json::from_value(json!({"resources": {"subscribe": false}})).unwrap();
        assert!(check(Method::Subscribe, &resources, latest).is_err());
    }

    #[test]
    fn what_has_no_capability_is_always_allowed() {
        let nothing = ServerCapabilities::default();
        for method in [Method::Ping, Method::Discover, Method::Listen] {
            check(method, &nothing, Revision::LATEST).unwrap();
        }
        check(Method::Complete, &nothing, Revision::V2024_11_05).unwrap();
        assert!(check(Method::Complete, &nothing, Revision::V2025_03_26).is_err());
    }
}
