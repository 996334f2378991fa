//! What a form makes of an answer.

use serde_json::json;

use super::*;

fn form() -> ElicitSchema {
    serde_json::from_value(json!({
        "type": "object",
        "properties": {
            "name": {"type": "string", "default": "John Doe", "maxLength": 10},
            "age": {"type": "integer", "default": 30, "minimum": 18},
            "score": {"type": "number", "default": 95.5},
            "status": {"type": "string", "enum": ["active", "inactive"], "default": "active"},
            "color": {"type": "string", "oneOf": [{"const": "#f00", "title": "Red"}]},
            "verified": {"type": "boolean", "default": true},
            "days": {"type": "array", "items": {"type": "string", "enum": ["mo", "tu"]},
                "maxItems": 1, "default": ["mo"]},
            "months": {"type": "array",
                "items": {"anyOf": [{"const": "1", "title": "January"}]}},
            "new": {"type": "duration"},
            "must": {"type": "string"},
        },
        "required": ["name", "must"],
    }))
    .unwrap()
}

fn sent(content: Value) -> Result<Value, String> {
    let mut answer = ElicitResult::new(ElicitAction::Accept);
    answer.content = Some(content.into());
    let sent = completed(Some(&form()), answer).map_err(|error| error.message.into_owned())?;
    Ok(sent.content.unwrap().decode().unwrap())
}

#[test]
fn fields_that_are_left_out_get_their_defaults_exactly() {
    assert_eq!(
        sent(json!({"must": "x"})).unwrap(),
        json!({"name": "John Doe", "age": 30, "score": 95.5, "status": "active",
            "verified": true, "days": ["mo"], "must": "x"})
    );
    let mut answer = ElicitResult::new(ElicitAction::Accept);
    answer.content = Some(json!({"must": "x"}).into());
    let text = completed(Some(&form()), answer).unwrap().content.unwrap();
    // As text: a whole number has no fraction.
    assert!(text.as_str().contains(r#""age":30,"#), "{text}");
}

#[test]
fn what_is_given_goes_before_what_the_form_starts_with() {
    let given = json!({"must": "x", "name": "Ada", "age": 36, "score": 1, "status": "inactive",
        "color": "#f00", "verified": false, "days": [], "months": ["1"], "new": "P1D"});
    assert_eq!(sent(given.clone()).unwrap(), given);
}

#[test]
fn what_does_not_fit_is_not_sent_and_the_sentence_names_the_field() {
    for (content, field) in [
        (json!({}), "must"),
        (json!({"must": null}), "must"),
        (json!({"must": {"deep": 1}}), "must"),
        (json!({"must": "x", "name": "a name of many letters"}), "name"),
        (json!({"must": "x", "age": 36.5}), "age"),
        (json!({"must": "x", "age": 17}), "age"),
        (json!({"must": "x", "score": "high"}), "score"),
        (json!({"must": "x", "status": "gone"}), "status"),
        (json!({"must": "x", "color": "Red"}), "color"),
        (json!({"must": "x", "verified": "yes"}), "verified"),
        (json!({"must": "x", "days": ["su"]}), "days"),
        (json!({"must": "x", "days": ["mo", "tu"]}), "days"),
        (json!({"must": "x", "months": "1"}), "months"),
        (json!({"must": "x", "new": {"deep": 1}}), "new"),
        (json!({"must": "x", "other": 1}), "other"),
    ] {
        let why = sent(content.clone()).unwrap_err();
        assert!(why.contains(&format!("`{field}`")), "{content}: {why}");
    }
    assert!(sent(json!([1])).unwrap_err().contains("an object"));
}

#[test]
fn only_an_accepted_form_has_values() {
    let with = |action| {
        let mut answer = ElicitResult::new(action);
        answer.content = Some(json!({"must": "x"}).into());
        answer
    };
    for action in [ElicitAction::Decline, ElicitAction::Cancel] {
        assert_eq!(completed(Some(&form()), with(action)).unwrap().content, None);
    }
    assert_eq!(completed(None, with(ElicitAction::Accept)).unwrap().content, None);
}

#[cfg(feature = "server")]
#[test]
fn what_came_back_may_have_more_than_was_asked_for_but_must_fit() {
    let got = |content: Value| received(&form(), content.into());
    let kept = got(json!({"must": "x", "other": {"deep": 1}})).unwrap();
    let kept: Value = kept.decode().unwrap();
    assert_eq!((&kept["must"], &kept["age"], kept.get("other")), (&json!("x"), &json!(30), None));
    let one = got(json!({"must": "x", "days": "tu", "months": "1"})).unwrap();
    let one: Value = one.decode().unwrap();
    assert_eq!((&one["days"], &one["months"]), (&json!(["tu"]), &json!(["1"])));
    for (content, field) in [
        (json!({"must": "x", "days": "su"}), "`days`"),
        (json!({"must": "x", "days": 5}), "`days`"),
        (json!({}), "`must`"),
        (json!({"must": 5}), "`must`"),
        (json!({"must": "x", "age": 17}), "`age`"),
        (json!([1]), "an object"),
        (json!("x"), "an object"),
    ] {
        let why = got(content.clone()).unwrap_err();
        assert!(why.contains(field), "{content}: {why}");
    }
}
