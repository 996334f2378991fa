//! Owns the questions that the user answers: a form, or a page to visit.
//! Does not own how a struct becomes a form, nor whether single values fit its fields.

use std::{
    any::{Any, TypeId},
    collections::HashMap,
    fmt,
    marker::PhantomData,
    sync::{Arc, LazyLock, OnceLock, PoisonError, RwLock},
};

use super::fields::form_of;
use crate::{
    protocol::{elicitation, sealed::random},
    server::{
        elicit::question::{AnswerMismatch, Question, sealed},
        schema::{Checks, SchemaError, decode_arguments, input_schema_of},
    },
};
use schemars::JsonSchema;
use serde::{Deserialize, de::DeserializeOwned};
use serde_json::value::RawValue;
use turnbuckle_types::{
    ElicitAction, ElicitForm, ElicitSchema, ElicitUrl, FormMode, Method, Raw, Revision, write_at,
};

/// Asks the user to fill in a form: the fields of a flat struct, as [`form_of`](crate::elicit::form_of) makes
/// them. An answer is checked against the form before it is decoded.
///
/// A user who says no is an error that says so; [`action`](Elicitation::action) makes it an answer. Never
/// ask for secrets in this way: what is typed into a form passes through the client. Use
/// [`elicit_url`] for those.
///
/// ```
/// use turnbuckle::{Ctx, Server, ToolError, elicit::elicit, tool};
/// #[derive(serde::Deserialize, schemars::JsonSchema)]
/// struct Name {
///     /// What people call you.
///     name: String,
/// }
/// async fn greet(ctx: Ctx) -> Result<String, ToolError> {
///     let Name { name } = ctx.ask("name", elicit("Who are you?")).await?;
///     Ok(format!("Hello, {name}!"))
/// }
/// let server = Server::new("demo", "1.0").tool(tool("greet", greet));
/// # let _ = server;
/// ```
#[doc(alias = "elicitation/create")]
#[doc(alias = "elicitInput")]
pub fn elicit<T>(message: impl Into<String>) -> Elicitation<T>
where
    T: DeserializeOwned + JsonSchema + Send + 'static,
{
    Elicitation { message: message.into(), form: Form::of::<T>(), answer: PhantomData }
}

/// A form for the user: see [`elicit`].
#[must_use = "a question is asked with `Ctx::ask`"]
#[doc(alias = "ElicitRequest")]
#[doc(alias = "elicitation/create")]
#[doc(alias = "create_elicitation")]
#[doc(alias = "elicitInput")]
pub struct Elicitation<T> {
    message: String,
    form: Arc<Result<Form, SchemaError>>,
    answer: PhantomData<fn() -> T>,
}

impl<T> Elicitation<T> {
    /// Makes a decline and a cancel answers instead of errors.
    pub fn action(self) -> Action<Elicitation<T>> {
        Action(self)
    }
}

impl<T> Clone for Elicitation<T> {
    fn clone(&self) -> Elicitation<T> {
        Elicitation { message: self.message.clone(), form: self.form.clone(), answer: PhantomData }
    }
}

impl<T> fmt::Debug for Elicitation<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Elicitation").field("message", &self.message).finish_non_exhaustive()
    }
}

impl<T: DeserializeOwned + JsonSchema + 'static> sealed::QuestionParts for Elicitation<T> {
    fn method(&self) -> Method {
        Method::Elicit
    }

    fn params(&self, revision: Revision) -> Result<Raw, String> {
        let form = Result::as_ref(&self.form).map_err(|error| error.to_string())?;
        Ok(form.params(&self.message, revision))
    }

    fn is_form(&self) -> bool {
        true
    }

    fn problem() -> Option<String> {
        Form::of::<T>().as_ref().as_ref().err().map(SchemaError::to_string)
    }
}

impl<T: DeserializeOwned + JsonSchema + Send + 'static> Question for Elicitation<T> {
    type Answer = T;

    fn check(&self, answer: &Raw) -> Result<T, AnswerMismatch> {
        let form = Result::as_ref(&self.form);
        let form = form.map_err(|error| AnswerMismatch::Unfit(error.to_string()))?;
        let content = filled_in(&form.schema, answer)?;
        decode_arguments(content.as_str(), Some(&form.checks))
            .map_err(|error| AnswerMismatch::Unfit(error.to_string()))
    }
}

/// Asks the user to fill in a form that was made by hand. The answer is the form's values, with its
/// defaults, once they fit it.
///
/// ```
/// use turnbuckle::{Ctx, Server, ToolError, elicit::elicit_form, tool};
/// use turnbuckle::types::{ElicitSchema, SelectSchema};
/// async fn pick(ctx: Ctx) -> Result<String, ToolError> {
///     // Known only at run time.
///     let names = vec!["blue".to_owned(), "green".to_owned()];
///     let form = ElicitSchema::new([("color", SelectSchema::new(names))]);
///     let values = ctx.ask("color", elicit_form("Which one?", form)).await?;
///     Ok(values.to_string())
/// }
/// let server = Server::new("demo", "1.0").tool(tool("pick", pick));
/// # let _ = server;
/// ```
pub fn elicit_form(message: impl Into<String>, form: ElicitSchema) -> ElicitFields {
    ElicitFields { message: message.into(), form }
}

/// A form made by hand: see [`elicit_form`].
#[derive(Clone, Debug)]
#[must_use = "a question is asked with `Ctx::ask`"]
pub struct ElicitFields {
    message: String,
    form: ElicitSchema,
}

impl ElicitFields {
    /// Makes a decline and a cancel answers instead of errors.
    pub fn action(self) -> Action<ElicitFields> {
        Action(self)
    }
}

impl sealed::QuestionParts for ElicitFields {
    fn method(&self) -> Method {
        Method::Elicit
    }

    fn params(&self, revision: Revision) -> Result<Raw, String> {
        Ok(form_params(&self.message, &self.form, revision))
    }

    fn is_form(&self) -> bool {
        true
    }
}

impl Question for ElicitFields {
    type Answer = Raw;

    fn check(&self, answer: &Raw) -> Result<Raw, AnswerMismatch> {
        filled_in(&self.form, answer)
    }
}

/// Asks the user to visit a page: for what must not pass through the client, such as a login, a
/// payment or a key. The answer says that the user agreed to go there, not that it is done.
///
/// ```
/// use turnbuckle::{Ctx, Server, ToolError, elicit::elicit_url, tool};
/// async fn pay(ctx: Ctx) -> Result<&'static str, ToolError> {
///     ctx.ask("pay", elicit_url("Please pay first", "https://pay.example.com/7")).await?;
///     Ok("thank you")
/// }
/// let server = Server::new("shop", "1.0").tool(tool("pay", pay));
/// # let _ = server;
/// ```
pub fn elicit_url(message: impl Into<String>, url: impl Into<String>) -> ElicitPage {
    let id = random::<16>().iter().map(|byte| format!("{byte:02x}")).collect();
    ElicitPage { message: message.into(), url: url.into(), id }
}

/// A page to visit: see [`elicit_url`].
#[derive(Clone, Debug)]
#[must_use = "a question is asked with `Ctx::ask`"]
pub struct ElicitPage {
    message: String,
    url: String,
    id: String,
}

impl ElicitPage {
    /// What names this elicitation where 2025-11-25 wants a name, as
    /// [`Ctx::elicitation_complete`](crate::Ctx::elicitation_complete) does: random unless given.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// Names this elicitation. No two of a server may have the same name.
    pub fn with_id(mut self, id: impl Into<String>) -> ElicitPage {
        self.id = id.into();
        self
    }

    /// Makes a decline and a cancel answers instead of errors.
    pub fn action(self) -> Action<ElicitPage> {
        Action(self)
    }

    fn page(&self) -> ElicitUrl {
        let mut page = ElicitUrl::new(&*self.message, &*self.url);
        page.elicitation_id = Some(self.id.clone());
        page
    }
}

impl sealed::QuestionParts for ElicitPage {
    fn method(&self) -> Method {
        Method::Elicit
    }

    fn params(&self, revision: Revision) -> Result<Raw, String> {
        // 2026-07-28 client/elicitation §URL Mode: this MUST contain a valid URL.
        if !elicitation::is_uri(&self.url) {
            return Err(format!("`{}` is not a URL", self.url));
        }
        Ok(Raw::at(&self.page(), revision))
    }
}

impl Question for ElicitPage {
    type Answer = ();

    fn check(&self, answer: &Raw) -> Result<(), AnswerMismatch> {
        accepted(answer).map(drop)
    }
}

/// What a user did about a question.
///
/// ```
/// use turnbuckle::{
///     Ctx, ToolError,
///     elicit::{Elicited, elicit},
/// };
/// #[derive(serde::Deserialize, schemars::JsonSchema)]
/// struct Name { name: String }
/// async fn greet(ctx: Ctx) -> Result<String, ToolError> {
///     Ok(match ctx.ask("name", elicit::<Name>("Who are you?").action()).await? {
///         Elicited::Accept(Name { name }) => format!("Hello, {name}!"),
///         Elicited::Decline => "Hello, whoever you are!".to_owned(),
///         Elicited::Cancel => "Another time.".to_owned(),
///     })
/// }
/// # let _ = greet;
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Elicited<T> {
    /// Answered.
    Accept(T),
    /// Said no.
    Decline,
    /// Said nothing.
    Cancel,
}

/// A question whose answer says what the user did: see [`Elicitation::action`].
#[derive(Clone, Debug)]
#[must_use = "a question is asked with `Ctx::ask`"]
pub struct Action<Q>(Q);

impl<Q: sealed::QuestionParts> sealed::QuestionParts for Action<Q> {
    fn method(&self) -> Method {
        self.0.method()
    }

    fn params(&self, revision: Revision) -> Result<Raw, String> {
        self.0.params(revision)
    }

    fn is_form(&self) -> bool {
        self.0.is_form()
    }

    fn problem() -> Option<String> {
        Q::problem()
    }
}

impl<Q: Question> Question for Action<Q> {
    type Answer = Elicited<Q::Answer>;

    fn check(&self, answer: &Raw) -> Result<Elicited<Q::Answer>, AnswerMismatch> {
        match self.0.check(answer) {
            Ok(content) => Ok(Elicited::Accept(content)),
            Err(AnswerMismatch::Declined) => Ok(Elicited::Decline),
            Err(AnswerMismatch::Cancelled) => Ok(Elicited::Cancel),
            Err(unfit) => Err(unfit),
        }
    }
}

/// A type's form, made once.
struct Form {
    schema: ElicitSchema,
    /// What a form can't say, and decoding does not enforce.
    checks: Checks,
    /// What follows the message in the params, in each revision, once it was asked for.
    rests: [OnceLock<Option<Box<str>>>; Revision::ALL.len()],
}

/// As many as there are types in the program.
type Forms = RwLock<HashMap<TypeId, Arc<Result<Form, SchemaError>>>>;

impl Form {
    fn of<T: DeserializeOwned + JsonSchema + Any>() -> Arc<Result<Form, SchemaError>> {
        static FORMS: LazyLock<Forms> = LazyLock::new(Forms::default);
        let type_id = TypeId::of::<T>();
        let known = FORMS.read().unwrap_or_else(PoisonError::into_inner).get(&type_id).cloned();
        known.unwrap_or_else(|| {
            let made = Arc::new(Form::make::<T>());
            let mut forms = FORMS.write().unwrap_or_else(PoisonError::into_inner);
            forms.entry(type_id).or_insert(made).clone()
        })
    }

    fn make<T: DeserializeOwned + JsonSchema>() -> Result<Form, SchemaError> {
        let (schema, checks) = (form_of::<T>()?, input_schema_of::<T>()?.checks);
        Ok(Form { schema, checks, rests: Default::default() })
    }

    /// The same as [`form_params`], of which only the message is encoded each time.
    fn params(&self, message: &str, revision: Revision) -> Raw {
        self.with_rest(message, revision)
            .unwrap_or_else(|| form_params(message, &self.schema, revision))
    }

    fn with_rest(&self, message: &str, revision: Revision) -> Option<Raw> {
        const MESSAGE: &str = r#"{"message":"#;
        let index = Revision::ALL.iter().position(|one| *one == revision)?;
        let rest = self.rests[index].get_or_init(|| {
            let params = form_params("", &self.schema, revision);
            Some(params.as_str().strip_prefix(MESSAGE)?.strip_prefix(r#""""#)?.into())
        });
        let rest = rest.as_ref()?;
        let mut text = Vec::with_capacity(MESSAGE.len() + message.len() + rest.len() + 16);
        text.extend_from_slice(MESSAGE.as_bytes());
        write_at(message, revision, &mut text);
        text.extend_from_slice(rest.as_bytes());
        Raw::from_encoded(text)
    }
}

fn form_params(message: &str, schema: &ElicitSchema, revision: Revision) -> Raw {
    let mut form = ElicitForm::new(message, schema.clone());
    form.mode = Some(FormMode::Form);
    Raw::at(&form, revision)
}

/// The values of a form that was filled in.
fn filled_in(form: &ElicitSchema, answer: &Raw) -> Result<Raw, AnswerMismatch> {
    let content = accepted(answer)?.unwrap_or_else(Raw::empty_object);
    elicitation::received(form, content).map_err(AnswerMismatch::Unfit)
}

/// What came along with a yes.
fn accepted(answer: &Raw) -> Result<Option<Raw>, AnswerMismatch> {
    /// The members of [`ElicitResult`](turnbuckle_types::ElicitResult) that matter here.
    #[derive(Deserialize)]
    struct ElicitResultMembers<'a> {
        action: ElicitAction,
        #[serde(borrow)]
        content: Option<&'a RawValue>,
    }
    // Else a list of the members' values would do as well.
    if !answer.is_object() {
        return Err(AnswerMismatch::Unfit("it must be an object".to_owned()));
    }
    let members = answer.decode_borrowed::<ElicitResultMembers<'_>>();
    let members = members.map_err(|error| AnswerMismatch::Unfit(error.to_string()))?;
    match members.action {
        ElicitAction::Accept => Ok(members.content.map(|content| answer.part(content))),
        ElicitAction::Decline => Err(AnswerMismatch::Declined),
        _ => Err(AnswerMismatch::Cancelled),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::{sealed::QuestionParts, *};

    #[derive(Debug, PartialEq, Deserialize, JsonSchema)]
    struct Order {
        #[schemars(range(min = 1))]
        count: u8,
        #[schemars(regex(pattern = "^[A-Z]+$"))]
        code: Option<String>,
        #[serde(default)]
        gift: bool,
    }

    fn check<Q: Question>(question: &Q, answer: Value) -> Result<Q::Answer, AnswerMismatch> {
        question.check(&answer.into())
    }

    // req: elicitation:form:response-validation, elicitation:form:action:accept, elicitation:form:action:decline, elicitation:form:action:cancel
    #[test]
    fn an_answer_fits_the_form_or_is_none() {
        let ask = elicit::<Order>("?");
        let accept = |content| check(&ask, json!({"action": "accept", "content": content}));
        let order = Order { count: 2, code: None, gift: false };
        assert_eq!(accept(json!({"count": 2, "more": [1]})), Ok(order));
        for (content, part) in [
            (json!({}), "`count` is missing"),
            (json!({"count": "2"}), "`count` must be a number"),
            (json!({"count": 0}), "`count` is out of the form's range"),
            (json!({"count": 256}), "`count`"),
            (json!({"count": 2, "code": "a"}), "`code`"),
            (json!({"count": 2, "gift": "yes"}), "`gift`"),
            (json!([2]), "an object"),
        ] {
            let Err(AnswerMismatch::Unfit(why)) = accept(content.clone()) else {
                panic!("{content}")
            };
            assert!(why.contains(part), "{content}: {why}");
        }
        assert_eq!(check(&ask, json!({"action": "decline"})), Err(AnswerMismatch::Declined));
        let cancel = json!({"action": "cancel", "content": {"count": 2}});
        assert_eq!(check(&ask, cancel), Err(AnswerMismatch::Cancelled));
        let list = json!(["accept", {"count": 2}]);
        for odd in [json!(12345), json!(null), json!({}), json!({"action": "perhaps"}), list] {
            assert!(matches!(check(&ask, odd.clone()), Err(AnswerMismatch::Unfit(_))), "{odd}");
        }
    }

    #[test]
    fn an_action_makes_answers_of_a_no_and_of_silence() {
        let ask = elicit_url("?", "https://a.org").action();
        assert_eq!(check(&ask, json!({"action": "accept"})), Ok(Elicited::Accept(())));
        assert_eq!(check(&ask, json!({"action": "decline"})), Ok(Elicited::Decline));
        assert_eq!(check(&ask, json!({"action": "cancel"})), Ok(Elicited::Cancel));
        assert!(matches!(check(&ask, json!({})), Err(AnswerMismatch::Unfit(_))));
    }

    // req: elicitation:url:basic
    #[test]
    fn a_page_has_a_url_and_where_the_revision_wants_it_a_name() {
        let params = |revision| {
            let asked =
                elicit_url("Pay", "https://a.org/?x").with_id("7").params(revision).unwrap();
            asked.decode::<Value>().unwrap()
        };
        let page = json!({"mode": "url", "message": "Pay", "url": "https://a.org/?x"});
        assert_eq!(params(Revision::V2026_07_28), page);
        assert_eq!(params(Revision::V2025_11_25)["elicitationId"], "7");
        assert_ne!(elicit_url("", "a:b").id(), elicit_url("", "a:b").id());
        assert!(elicit_url("Pay", "nowhere").params(Revision::LATEST).is_err());
    }

    #[test]
    fn a_form_is_written_the_same_whether_or_not_it_was_before() {
        let form = Form::make::<Order>().unwrap();
        for revision in Revision::ALL {
            for message in ["", "Who?", "\"a\\b\"\n\u{1F600}"] {
                let params = form_params(message, &form.schema, revision);
                assert_eq!(form.with_rest(message, revision), Some(params), "{revision}");
            }
        }
    }

    #[test]
    fn what_has_no_form_can_not_be_asked() {
        let why = elicit::<Vec<String>>("?").params(Revision::LATEST).unwrap_err();
        assert!(why.contains("must be a struct"), "{why}");
    }
}
