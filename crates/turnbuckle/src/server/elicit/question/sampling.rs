//! Owns the question that the client's model answers. Does not own what must hold of the conversation
//! that it is shown, nor the loop that runs the model's tools: that is the handler.

use crate::{
    protocol::sampling::balanced,
    server::elicit::question::{AnswerMismatch, Question, decoded, sealed},
};
use turnbuckle_types::{
    CreateMessage, CreateMessageResult, IncludeContext, Method, ModelPreferences, Raw, Revision,
    Role, SamplingBlock, SamplingContent, SamplingMessage, TextContent, Tool, ToolChoice,
    ToolChoiceMode,
};

/// How much may be generated unless a handler says so itself.
const MAX_TOKENS: i64 = 1_000;

/// Asks the client's model: text, messages, or a whole [`CreateMessage`].
///
/// ```
/// use turnbuckle::{Ctx, Server, ToolError, elicit::sample, tool};
/// use turnbuckle::types::SamplingBlock;
/// async fn capital(ctx: Ctx) -> Result<String, ToolError> {
///     let question = sample("Capital of France?").system_prompt("Be brief.").max_tokens(20);
///     let answer = ctx.ask("capital", question).await?;
///     match &answer.content.blocks()[0] {
///         SamplingBlock::Text(text) => Ok(text.text.clone()),
///         _ => Err(ToolError::new("the model did not answer with text")),
///     }
/// }
/// let server = Server::new("demo", "1.0").tool(tool("capital", capital));
/// # let _ = server;
/// ```
#[doc(alias = "sampling/createMessage")]
#[doc(alias = "create_message")]
pub fn sample(question: impl Into<Sampling>) -> Sampling {
    question.into()
}

/// A question for the client's model: see [`sample`].
#[derive(Clone, Debug)]
#[must_use = "a question is asked with `Ctx::ask`"]
#[doc(alias = "CreateMessageRequest")]
#[doc(alias = "sampling/createMessage")]
pub struct Sampling(CreateMessage);

impl Sampling {
    /// Adds a message to the conversation.
    pub fn message(mut self, message: SamplingMessage) -> Sampling {
        self.0.messages.push(message);
        self
    }

    /// How much may be generated: 1,000 tokens unless told otherwise.
    pub fn max_tokens(mut self, most: i64) -> Sampling {
        self.0.max_tokens = most;
        self
    }

    /// A system prompt, which the client may change or leave out.
    pub fn system_prompt(mut self, prompt: impl Into<String>) -> Sampling {
        self.0.system_prompt = Some(prompt.into());
        self
    }

    /// How free the model is.
    pub fn temperature(mut self, temperature: f64) -> Sampling {
        self.0.temperature = Some(temperature);
        self
    }

    /// What ends the generation.
    pub fn stop_sequences<S: Into<String>>(
        mut self,
        sequences: impl IntoIterator<Item = S>,
    ) -> Sampling {
        self.0.stop_sequences = Some(sequences.into_iter().map(Into::into).collect());
        self
    }

    /// Which model is wanted.
    pub fn model_preferences(mut self, preferences: ModelPreferences) -> Sampling {
        self.0.model_preferences = Some(preferences);
        self
    }

    /// Tools that the model may use. The client must have declared that its model can.
    pub fn tools(mut self, tools: impl IntoIterator<Item = Tool>) -> Sampling {
        self.0.tools = Some(tools.into_iter().collect());
        self
    }

    /// Whether the model may, must or must not use them.
    pub fn tool_choice(mut self, mode: ToolChoiceMode) -> Sampling {
        let mut choice = ToolChoice::new();
        choice.mode = Some(mode);
        self.0.tool_choice = Some(choice);
        self
    }

    /// What else the model should see. The client must have declared that it has that.
    pub fn include_context(mut self, context: IncludeContext) -> Sampling {
        self.0.include_context = Some(context);
        self
    }

    fn has_tools(&self) -> bool {
        self.0.tools.is_some()
    }
}

impl From<CreateMessage> for Sampling {
    fn from(params: CreateMessage) -> Sampling {
        Sampling(params)
    }
}

impl From<Vec<SamplingMessage>> for Sampling {
    fn from(messages: Vec<SamplingMessage>) -> Sampling {
        Sampling(CreateMessage::new(messages, MAX_TOKENS))
    }
}

impl From<SamplingMessage> for Sampling {
    fn from(message: SamplingMessage) -> Sampling {
        Sampling::from(vec![message])
    }
}

impl From<String> for Sampling {
    fn from(text: String) -> Sampling {
        Sampling::from(SamplingMessage::new(Role::User, TextContent::new(text)))
    }
}

impl From<&str> for Sampling {
    fn from(text: &str) -> Sampling {
        Sampling::from(text.to_owned())
    }
}

impl sealed::QuestionParts for Sampling {
    fn method(&self) -> Method {
        Method::CreateMessage
    }

    fn params(&self, revision: Revision) -> Result<Raw, String> {
        balanced(&self.0.messages)?;
        Ok(Raw::at(&self.0, revision))
    }
}

impl Question for Sampling {
    type Answer = CreateMessageResult;

    fn check(&self, answer: &Raw) -> Result<CreateMessageResult, AnswerMismatch> {
        let mut said: CreateMessageResult = decoded(answer)?;
        if self.has_tools() {
            return Ok(said);
        }
        // Without tools a message is one block. A list of one says the same.
        if let SamplingContent::Many(blocks) = &mut said.content
            && blocks.len() == 1
            && let Some(only) = blocks.pop()
        {
            said.content = SamplingContent::from(only);
        }
        match &said.content {
            SamplingContent::One(block) if !matches!(**block, SamplingBlock::ToolUse(_)) => {
                Ok(said)
            }
            _ => Err(AnswerMismatch::Unfit(
                "without tools the model's answer is one block, and calls none".to_owned(),
            )),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::{sealed::QuestionParts, *};

    fn text() -> Value {
        json!({"type": "text", "text": "x"})
    }

    fn call(id: &str) -> Value {
        json!({"type": "tool_use", "id": id, "name": "t", "input": {}})
    }

    fn result(id: &str) -> Value {
        json!({"type": "tool_result", "toolUseId": id, "content": []})
    }

    fn asked(messages: &Value) -> Result<Raw, String> {
        let messages: Vec<SamplingMessage> = serde_json::from_value(messages.clone()).unwrap();
        sample(messages).params(Revision::LATEST)
    }

    fn user(content: Value) -> Value {
        json!({"role": "user", "content": content})
    }

    fn assistant(content: Value) -> Value {
        json!({"role": "assistant", "content": content})
    }

    // req: sampling:tool-result:no-mixed-content, sampling:tool-use:result-balance, sampling:tool-use:server-preflight, sampling:message:content-cardinality
    #[test]
    fn calls_and_results_are_in_balance_before_anything_is_sent() {
        let balanced = [
            json!([]),
            json!([user(text())]),
            json!([user(json!([text(), text()])), assistant(text())]),
            json!([user(text()), assistant(call("1")), user(result("1"))]),
            json!([
                user(text()),
                assistant(json!([text(), call("1"), call("2")])),
                user(json!([result("2"), result("1")])),
                assistant(json!([call("1")])),
                user(json!([result("1")])),
                assistant(text()),
            ]),
        ];
        for messages in balanced {
            assert!(asked(&messages).is_ok(), "{messages}");
        }
        let unbalanced = [
            (json!([user(text()), assistant(call("1"))]), "nothing answers the call `1`"),
            (
                json!([assistant(call("1")), user(text())]),
                "number 2 has no result for the call `1`",
            ),
            (json!([assistant(call("1")), assistant(text())]), "no result for the call `1`"),
            (json!([assistant(call("1")), user(result("2"))]), "no result for the call `1`"),
            (json!([assistant(json!([call("1"), call("2")])), user(result("1"))]), "call `2`"),
            (json!([assistant(json!([call("1"), call("1")])), user(result("1"))]), "call `1`"),
            (
                json!([assistant(call("1")), user(json!([result("1"), result("1")]))]),
                "`1`, which is",
            ),
            (json!([assistant(call("1")), user(json!([result("1"), text()]))]), "stand alone"),
            (json!([assistant(call("1")), user(text()), user(result("1"))]), "number 2"),
            (json!([user(result("1"))]), "a result for `1`"),
            (json!([user(call("1")), user(result("1"))]), "only an assistant's message"),
            (json!([assistant(call("1")), assistant(result("1"))]), "only a user's message"),
        ];
        for (messages, part) in unbalanced {
            let why = asked(&messages).unwrap_err();
            assert!(why.contains(part), "{messages}: {why}");
        }
    }

    // req: sampling:result:no-tools-single-content, sampling:result:with-tools-array-content
    #[test]
    fn only_a_model_that_was_given_tools_says_several_things_at_once() {
        let check = |question: &Sampling, content: Value| {
            let answer = json!({"role": "assistant", "content": content, "model": "m"});
            question.check(&answer.into()).map(|said| said.content.blocks().len())
        };
        let (bare, with) = (sample("?"), sample("?").tools([]));
        assert_eq!(check(&bare, text()), Ok(1));
        assert_eq!(check(&bare, json!([text()])), Ok(1));
        assert_eq!(check(&with, json!([text(), call("1")])), Ok(2));
        assert_eq!(check(&with, call("1")), Ok(1));
        for content in [json!([text(), text()]), json!([]), call("1"), json!([call("1")])] {
            let refused = check(&bare, content.clone());
            assert!(matches!(refused, Err(AnswerMismatch::Unfit(_))), "{content}");
        }
        assert!(bare.check(&json!({"roots": []}).into()).is_err());
    }

    // req: sampling:create:basic, sampling:create:system-prompt, sampling:create:model-preferences, sampling:create:include-context, sampling:create:tools
    #[test]
    fn the_question_says_all_that_it_was_given() {
        let mut preferences = ModelPreferences::new();
        preferences.speed_priority = Some(0.5);
        let question = sample("Capital of France?")
            .max_tokens(20)
            .system_prompt("Be brief.")
            .temperature(0.5)
            .stop_sequences(["."])
            .model_preferences(preferences)
            .include_context(IncludeContext::ThisServer)
            .tools([])
            .tool_choice(ToolChoiceMode::None);
        let asked: Value = question.params(Revision::LATEST).unwrap().decode().unwrap();
        assert_eq!(
            asked,
            json!({
                "messages": [{"role": "user",
                    "content": {"type": "text", "text": "Capital of France?"}}],
                "maxTokens": 20, "systemPrompt": "Be brief.", "temperature": 0.5,
                "stopSequences": ["."], "modelPreferences": {"speedPriority": 0.5},
                "includeContext": "thisServer", "tools": [], "toolChoice": {"mode": "none"},
            })
        );
        let plain: Value = sample("?").params(Revision::LATEST).unwrap().decode().unwrap();
        assert_eq!(plain["maxTokens"], 1_000);
    }
}
