//! Owns what a server's question needs of the client that it is put to.
//! Does not own the asking, nor the answers.

use std::borrow::Cow;

use serde::{Deserialize, de::IgnoredAny};
use serde_json::value::RawValue;
use turnbuckle_types::{ClientCapabilities, Method, Revision};
#[cfg(feature = "server")]
use turnbuckle_types::{CreateMessage, Decode, Elicit, Encode, ListRoots, Raw};

/// A capability that some questions need.
struct RequiredClientCapability {
    method: Method,
    /// Whether this very question needs it.
    applies: fn(&QuestionParams) -> bool,
    is_declared: fn(&ClientCapabilities) -> bool,
    capability: &'static str,
    /// The first revision in which it can be declared, and so must be.
    since: Revision,
}

/// 2025-11-25 basic/lifecycle §Capability Negotiation: both sides keep to what was declared. A
/// method without a row needs nothing.
const NEEDS: &[RequiredClientCapability] = &[
    RequiredClientCapability {
        method: Method::ListRoots,
        applies: |_| true,
        is_declared: |client| client.roots.is_some(),
        capability: "roots",
        since: Revision::V2024_11_05,
    },
    RequiredClientCapability {
        method: Method::CreateMessage,
        applies: |_| true,
        is_declared: |client| client.sampling.is_some(),
        capability: "sampling",
        since: Revision::V2024_11_05,
    },
    RequiredClientCapability {
        method: Method::CreateMessage,
        applies: |question| question.has_tools,
        is_declared: |client| client.sampling.as_ref().is_some_and(|known| known.tools.is_some()),
        capability: "sampling.tools",
        since: Revision::V2024_11_05,
    },
    // 2025-11-25 client/sampling §Capabilities: no other context unless that was declared.
    RequiredClientCapability {
        method: Method::CreateMessage,
        applies: |question| question.has_context,
        is_declared: |client| client.sampling.as_ref().is_some_and(|known| known.context.is_some()),
        capability: "sampling.context",
        since: Revision::V2025_11_25,
    },
    RequiredClientCapability {
        method: Method::Elicit,
        applies: |question| !question.is_page,
        // Neither member means forms.
        is_declared: |client| {
            let known = client.elicitation.as_ref();
            known.is_some_and(|known| known.form.is_some() || known.url.is_none())
        },
        capability: "elicitation.form",
        since: Revision::V2024_11_05,
    },
    RequiredClientCapability {
        method: Method::Elicit,
        applies: |question| question.is_page,
        is_declared: |client| client.elicitation.as_ref().is_some_and(|known| known.url.is_some()),
        capability: "elicitation.url",
        since: Revision::V2024_11_05,
    },
];

/// The parts of params on which it depends what a question needs.
#[derive(Clone, Copy)]
struct QuestionParams {
    has_tools: bool,
    has_context: bool,
    is_page: bool,
}

impl QuestionParams {
    fn of(params: &str) -> QuestionParams {
        #[derive(Deserialize)]
        struct QuestionMembers<'a> {
            #[serde(borrow)]
            mode: Option<&'a RawValue>,
            tools: Option<IgnoredAny>,
            #[serde(rename = "toolChoice")]
            tool_choice: Option<IgnoredAny>,
            #[serde(rename = "includeContext", borrow)]
            context: Option<&'a RawValue>,
        }
        #[derive(Deserialize)]
        struct CapabilityWord<'a>(#[serde(borrow)] Cow<'a, str>);
        fn is(member: Option<&RawValue>, word: &str) -> bool {
            let read = member.and_then(|member| serde_json::from_str(member.get()).ok());
            read.is_some_and(|CapabilityWord(read)| read == word)
        }

        match serde_json::from_str::<Option<QuestionMembers<'_>>>(params) {
            Ok(None) => QuestionParams { has_tools: false, has_context: false, is_page: false },
            Ok(Some(members)) => QuestionParams {
                has_tools: members.tools.is_some() || members.tool_choice.is_some(),
                has_context: members.context.is_some() && !is(members.context, "none"),
                is_page: is(members.mode, "url"),
            },
            // Whoever gives a member twice does not get past this by it.
            Err(_) => QuestionParams { has_tools: true, has_context: true, is_page: true },
        }
    }
}

/// The first capability that this question needs and the client did not declare.
pub fn lacking(
    method: Method,
    params: &str,
    client: &ClientCapabilities,
    revision: Revision,
) -> Option<&'static str> {
    lacking_for(method, QuestionParams::of(params), client, revision)
}

/// [`lacking`] of a form that the program itself wrote, whose params need not be read for it.
#[cfg(feature = "server")]
#[cfg(feature = "server")]
pub(crate) fn lacking_for_form(
    client: &ClientCapabilities,
    revision: Revision,
) -> Option<&'static str> {
    let form = QuestionParams { has_tools: false, has_context: false, is_page: false };
    lacking_for(Method::Elicit, form, client, revision)
}

fn lacking_for(
    method: Method,
    question: QuestionParams,
    client: &ClientCapabilities,
    revision: Revision,
) -> Option<&'static str> {
    let mut needs = NEEDS.iter().filter(|need| {
        need.method == method && revision >= need.since && (need.applies)(&question)
    });
    needs.find(|need| !(need.is_declared)(client)).map(|need| need.capability)
}

/// A question's params in the shape that the revision gives them. What can't be read as the
/// method's params stays as it is.
#[cfg(feature = "server")]
pub fn written_at(method: Method, params: Raw, revision: Revision) -> Raw {
    fn again<T: Decode + Encode>(params: &Raw, revision: Revision) -> Option<Raw> {
        T::decode(params).ok().map(|known| Raw::at(&known, revision))
    }
    let written = match method {
        Method::CreateMessage => again::<CreateMessage>(&params, revision),
        Method::Elicit => again::<Elicit>(&params, revision),
        Method::ListRoots => again::<ListRoots>(&params, revision),
        _ => None,
    };
    written.unwrap_or(params)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn lacks(method: Method, params: Value, client: Value) -> Option<&'static str> {
        let client = serde_json::from_value(client).unwrap();
        lacking(method, &params.to_string(), &client, Revision::LATEST)
    }

    #[test]
    fn a_question_needs_what_its_method_is_about() {
        let everything =
            json!({"roots": {}, "sampling": {"tools": {}}, "elicitation": {"form": {}, "url": {}}});
        for (method, params, needed) in [
            (Method::ListRoots, json!({}), Some("roots")),
            (Method::CreateMessage, json!({"messages": []}), Some("sampling")),
            (Method::Elicit, json!({"message": "?"}), Some("elicitation.form")),
            (Method::Elicit, json!({"mode": "form"}), Some("elicitation.form")),
            (Method::Elicit, json!({"mode": "url"}), Some("elicitation.url")),
            (Method::Ping, json!({}), None),
            (Method::GetTask, json!({}), None),
        ] {
            assert_eq!(lacks(method, params.clone(), json!({})), needed, "{method} {params}");
            assert_eq!(lacks(method, params, everything.clone()), None, "{method}");
        }
    }

    #[test]
    fn tools_are_a_capability_of_their_own() {
        let bare = json!({"sampling": {}});
        assert_eq!(lacks(Method::CreateMessage, json!({}), bare.clone()), None);
        for params in [json!({"tools": []}), json!({"toolChoice": {}})] {
            let lacking = lacks(Method::CreateMessage, params, bare.clone());
            assert_eq!(lacking, Some("sampling.tools"));
        }
    }

    // req: sampling:context:server-gated-by-capability
    #[test]
    fn context_is_a_capability_of_its_own_where_there_is_one() {
        for (context, with_sampling) in [
            (json!("thisServer"), Some("sampling.context")),
            (json!("allServers"), Some("sampling.context")),
            (json!(5), Some("sampling.context")),
            (json!("none"), None),
            (json!(null), None),
        ] {
            let params = json!({"includeContext": context});
            let lacks = |client| lacks(Method::CreateMessage, params.clone(), client);
            assert_eq!(lacks(json!({"sampling": {}})), with_sampling, "{params}");
            assert_eq!(lacks(json!({"sampling": {"context": {}}})), None, "{params}");
            let old = serde_json::from_value(json!({"sampling": {}})).unwrap();
            let asked = params.to_string();
            let lacking = lacking(Method::CreateMessage, &asked, &old, Revision::V2025_06_18);
            assert_eq!(lacking, None, "{params}");
        }
    }

    #[test]
    fn odd_spelling_gets_nobody_past_a_need() {
        let client = serde_json::from_value(json!({"sampling": {}, "elicitation": {}})).unwrap();
        for (method, params, needed) in [
            (Method::Elicit, r#"{"mode":"\u0075rl"}"#, Some("elicitation.url")),
            (Method::Elicit, r#"{"mode":"url","mode":"form"}"#, Some("elicitation.url")),
            (Method::CreateMessage, r#"{"mode":5,"tools":[]}"#, Some("sampling.tools")),
            (Method::CreateMessage, r#"{"x":1,"x":2,"tools":[]}"#, Some("sampling.tools")),
            (Method::CreateMessage, r#"{"tools":[],"tools":null}"#, Some("sampling.tools")),
            (Method::CreateMessage, r#"{"tools":null}"#, None),
            // No params at all.
            (Method::CreateMessage, "null", None),
        ] {
            assert_eq!(lacking(method, params, &client, Revision::LATEST), needed, "{params}");
        }
    }

    #[test]
    fn an_empty_elicitation_capability_means_forms() {
        let url = || json!({"mode": "url"});
        for (client, form_is_fine, url_is_fine) in [
            (json!({}), true, false),
            (json!({"form": {}}), true, false),
            (json!({"url": {}}), false, true),
            (json!({"form": {}, "url": {}}), true, true),
        ] {
            let client = json!({"elicitation": client});
            let fine = |params| lacks(Method::Elicit, params, client.clone()).is_none();
            assert_eq!((fine(json!({})), fine(url())), (form_is_fine, url_is_fine), "{client}");
        }
    }

    #[cfg(feature = "server")]
    #[test]
    fn params_lose_what_the_revision_lacks_and_nothing_else() {
        let form = json!({"mode": "form", "message": "?", "x": 1,
            "requestedSchema": {"type": "object", "properties": {}}});
        let old = written_at(Method::Elicit, form.into(), Revision::V2025_06_18);
        let expected = json!({"message": "?", "x": 1,
            "requestedSchema": {"type": "object", "properties": {}}});
        assert_eq!(old.decode::<Value>().unwrap(), expected);
        let unreadable = Raw::from(json!({"message": 5}));
        let kept = written_at(Method::Elicit, unreadable.clone(), Revision::V2025_06_18);
        assert_eq!(kept, unreadable);
    }
}
