//! The course of one question: what is shown, what is made of what is typed, the answer.

use turnbuckle::types::{Elicit, ElicitAction, ElicitForm, ElicitResult, ElicitUrl, Named, Raw};

use super::{
    Step,
    field::{Field, FieldNeed, yes_or_no},
    indented,
};
use crate::output::one_line;

/// What is typed to decline, and to leave a question without an answer.
const DECLINE: &str = "!decline";
const CANCEL: &str = "!cancel";
const HELP: &str = "!decline or Ctrl-D declines, !cancel leaves it open, Ctrl-C cancels the call.";
/// Before what is typed.
const PROMPT: &str = "> ";

/// One question.
#[derive(Debug)]
pub(super) struct Interview {
    /// What has to be filled in; nothing for what is only agreed to.
    fields: Vec<Field>,
    given: Vec<(String, Raw)>,
    /// Which field is being asked for.
    at: usize,
}

impl Interview {
    /// The question of a server, and what is shown first.
    pub(super) fn new(server: &str, question: Elicit) -> (Interview, String) {
        let server = one_line(server);
        let (fields, opening) = match question {
            Elicit::Form(form) => (fields(&form), form_opening(&server, &form)),
            Elicit::Url(page) => (Vec::new(), page_opening(&server, &page)),
            // No other kind is declared, so that none is asked.
            other => (Vec::new(), format!("`{server}` asks:\n{}", indented(other.message()))),
        };
        let interview = Interview { fields, given: Vec::new(), at: 0 };
        let opening = format!("{opening}{HELP}\n{}", interview.prompt());
        (interview, opening)
    }

    /// What a line is answered with; `None` is the end of all lines.
    pub(super) fn hear(&mut self, typed: Option<&str>) -> Step<ElicitResult> {
        let typed = match typed {
            None => return Step::Done(ElicitResult::new(ElicitAction::Decline)),
            Some(typed) if typed.trim() == DECLINE => {
                return Step::Done(ElicitResult::new(ElicitAction::Decline));
            }
            Some(typed) if typed.trim() == CANCEL => {
                return Step::Done(ElicitResult::new(ElicitAction::Cancel));
            }
            Some(typed) => typed,
        };
        let Some(field) = self.fields.get(self.at) else { return agreed(typed) };
        match field.read(typed) {
            Ok(value) => {
                self.given.extend(value.map(|value| (field.name().to_owned(), value)));
                self.at += 1;
                if self.at < self.fields.len() { Step::Ask(self.prompt()) } else { self.done() }
            }
            Err(why) => Step::Ask(format!("  {}.\n{}", one_line(&why), field.entry())),
        }
    }

    fn prompt(&self) -> String {
        match self.fields.get(self.at) {
            Some(field) => format!("\n{}{}", field.heading(), field.entry()),
            None => format!("Continue? (yes or no) {PROMPT}"),
        }
    }

    fn done(&mut self) -> Step<ElicitResult> {
        let mut answer = ElicitResult::new(ElicitAction::Accept);
        let given: Named<Raw> = std::mem::take(&mut self.given).into_iter().collect();
        // What is left out has its default from the client, or none.
        answer.content = Raw::new(&given).ok();
        Step::Done(answer)
    }
}

fn agreed(typed: &str) -> Step<ElicitResult> {
    match yes_or_no(typed) {
        Some(true) => Step::Done(ElicitResult::new(ElicitAction::Accept)),
        Some(false) => Step::Done(ElicitResult::new(ElicitAction::Decline)),
        None => Step::Ask(format!("Continue? (yes or no) {PROMPT}")),
    }
}

fn fields(form: &ElicitForm) -> Vec<Field> {
    let schema = &form.requested_schema;
    let is_required = |name: &str| schema.required.iter().flatten().any(|one| one == name);
    let field = |(name, field): (&str, &_)| {
        let need = if is_required(name) { FieldNeed::Required } else { FieldNeed::Optional };
        Field::new(name, field, need)
    };
    schema.properties.iter().map(field).collect()
}

fn form_opening(server: &str, form: &ElicitForm) -> String {
    let message = indented(&form.message);
    let enter = if form.requested_schema.properties.is_empty() {
        ""
    } else {
        "Enter takes what is in [brackets], or leaves out what is optional; "
    };
    format!("`{server}` asks:\n{message}{enter}")
}

fn page_opening(server: &str, page: &ElicitUrl) -> String {
    format!(
        "`{server}` asks you to visit a page:\n{}  {}\n\
         Nothing is opened from here: if you trust the address, open it in a browser, and say yes. ",
        indented(&page.message),
        one_line(&page.url),
    )
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn asked(question: Value) -> (Interview, String) {
        Interview::new("notes", serde_json::from_value(question).unwrap())
    }

    fn form(properties: Value, required: &[&str]) -> (Interview, String) {
        let schema = json!({"type": "object", "properties": properties, "required": required});
        asked(json!({"message": "Tell me", "requestedSchema": schema}))
    }

    /// The answer to a form in which these lines are typed, and how often was asked again.
    fn answer(interview: &mut Interview, lines: &[&str]) -> (Value, usize) {
        let mut complaints = 0;
        for line in lines {
            match interview.hear(Some(line)) {
                Step::Ask(text) => complaints += usize::from(!text.starts_with('\n')),
                Step::Done(answer) => {
                    assert_eq!(answer.action, ElicitAction::Accept);
                    return (answer.content.unwrap().decode().unwrap(), complaints);
                }
            }
        }
        panic!("more is asked")
    }

    #[test]
    fn a_form_is_filled_in_field_by_field() {
        // As text: the order of the fields counts.
        let question = r##"{"message": "Tell me", "requestedSchema": {
            "type": "object",
            "properties": {
                "name": {"type": "string", "title": "Your name", "minLength": 2},
                "age": {"type": "integer", "minimum": 0},
                "news": {"type": "boolean", "default": true},
                "color": {"type": "string", "oneOf": [
                    {"const": "#f00", "title": "Red"}, {"const": "#0f0", "title": "Green"}
                ]},
                "days": {"type": "array", "items": {"type": "string", "enum": ["mo", "tu", "we"]}}
            },
            "required": ["name", "color"]
        }}"##;
        let question = serde_json::from_str(question).unwrap();
        let (mut interview, opening) = Interview::new("notes", question);
        assert!(opening.starts_with("`notes` asks:\n  Tell me\n"), "{opening}");
        assert!(opening.contains("\nYour name (text"), "{opening}");
        assert!(opening.ends_with("\n> "), "{opening}");
        let lines = ["A", "Ada", "old", "36", "", "", "2", "1, we"];
        let (content, complaints) = answer(&mut interview, &lines);
        let expected = json!({"name": "Ada", "age": 36, "color": "#0f0", "days": ["mo", "we"]});
        assert_eq!((content, complaints), (expected, 3));
    }

    #[test]
    fn a_question_can_be_declined_at_any_field_and_left_open() {
        let action = |lines: &[Option<&str>]| {
            let text = || json!({"type": "string"});
            let (mut interview, _) = form(json!({"a": text(), "b": text()}), &["a"]);
            match lines.iter().map(|line| interview.hear(*line)).last() {
                Some(Step::Done(answer)) => (answer.action, answer.content),
                other => panic!("{other:?}"),
            }
        };
        assert_eq!(action(&[None]), (ElicitAction::Decline, None));
        assert_eq!(action(&[Some("x"), Some(" !decline")]), (ElicitAction::Decline, None));
        assert_eq!(action(&[Some("x"), None]), (ElicitAction::Decline, None));
        assert_eq!(action(&[Some("!cancel")]), (ElicitAction::Cancel, None));
    }

    #[test]
    fn a_page_is_shown_and_agreed_to() {
        let page =
            || json!({"mode": "url", "message": "Log in", "url": "https://a.example/\u{1b}x"});
        let (mut interview, opening) = asked(page());
        assert!(opening.contains("  Log in\n  https://a.example/\\u{1b}x\n"), "{opening}");
        assert!(matches!(interview.hear(Some("hm")), Step::Ask(_)));
        assert_eq!(
            interview.hear(Some("yes")),
            Step::Done(ElicitResult::new(ElicitAction::Accept))
        );
        let (mut interview, _) = asked(page());
        assert_eq!(interview.hear(Some("n")), Step::Done(ElicitResult::new(ElicitAction::Decline)));
    }

    #[test]
    fn a_form_without_fields_is_agreed_to() {
        let (mut interview, opening) = form(json!({}), &[]);
        assert!(opening.ends_with("Continue? (yes or no) > "), "{opening}");
        assert_eq!(interview.hear(Some("y")), Step::Done(ElicitResult::new(ElicitAction::Accept)));
    }

    #[test]
    fn what_a_server_says_can_not_pass_for_what_this_program_says() {
        let schema = json!({"type": "object", "properties": {"a\nb": {"type": "string",
            "title": "x\u{1b}[2J\ny", "description": "one\ntwo"}}});
        let message = "first\n`other` asks:\u{7}";
        let (_, opening) = asked(json!({"message": message, "requestedSchema": schema}));
        assert!(opening.contains("  first\n  `other` asks:\\u{7}\n"), "{opening}");
        assert!(opening.contains("\nx\\u{1b}[2J y (text, optional)\n  one\n  two\n"), "{opening}");
    }
}
