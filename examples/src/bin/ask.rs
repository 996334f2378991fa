//! A server that asks while it works, and a client that answers: for its user, and for its model.

use turnbuckle::{
    Client, Ctx, Revision, Server, tool,
    types::{
        BooleanSchema, CreateMessage, CreateMessageResult, Elicit, ElicitAction, ElicitForm,
        ElicitResult, ElicitSchema, PrimitiveSchema, Role, Root, SamplingMessage, StringSchema,
        TextContent,
    },
};

type Anything = Box<dyn std::error::Error + Send + Sync>;

/// Write a note, once the user agrees and with a title from the client's model.
#[tool]
async fn write_note(ctx: Ctx, text: String) -> Result<String, Anything> {
    let mut folder = StringSchema::new();
    folder.default = Some("notes".to_owned());
    let sure = PrimitiveSchema::from(BooleanSchema::new());
    let fields = ElicitSchema::new([("sure", sure), ("folder", folder.into())]);
    let form = ElicitForm::new(format!("Write down {text:?}?"), fields);
    let answer: ElicitResult = ctx.request("elicitation/create", form).await?.decode()?;
    let Some(values) = answer.content.filter(|_| answer.action == ElicitAction::Accept) else {
        return Ok("nothing was written".to_owned());
    };

    let ask = SamplingMessage::new(Role::User, TextContent::new(format!("A title for: {text}")));
    let title = ctx.request("sampling/createMessage", CreateMessage::new([ask], 20)).await?;
    let title: CreateMessageResult = title.decode()?;
    Ok(format!("written with {values}, titled by {}", title.model))
}

#[tokio::main]
async fn main() -> turnbuckle::Result<()> {
    let server = Server::new("notes", "1.0").tool(write_note);

    // Each callback declares its capability. A server that asks for more is refused at once.
    let client = Client::builder()
        // In the newest revision a question is part of a result instead.
        .revision(Revision::V2025_11_25)
        .on_elicitation(async |question| {
            println!("asked: {}", question.message());
            let mut answer = ElicitResult::new(ElicitAction::Accept);
            if let Elicit::Form(_) = question {
                // What is left out, here the folder, gets the form's default.
                answer.content = Some(serde_json::json!({"sure": true}).into());
            }
            Ok(answer)
        })
        .on_sampling(async |question| {
            println!("asked: for {} tokens at most", question.max_tokens);
            let said = TextContent::new("On turnbuckles");
            Ok(CreateMessageResult::new(Role::Assistant, said, "small-model"))
        })
        .roots([Root::new("file:///home/ada/notes")])
        .in_process(&server)
        .await?;

    let done = client.call_tool("write_note", serde_json::json!({"text": "It holds."})).await?;
    println!("{}", done.to_text());
    Ok(())
}
