//! A server that asks while it works, and a client that answers: the same handler in both eras.

use serde_json::json;
use turnbuckle::{
    Client, Ctx, Revision, Server, ToolError,
    elicit::{elicit, sample},
    tool,
    types::{CreateMessageResult, ElicitAction, ElicitResult, Role, TextContent},
};

/// What the user is shown: a form with two fields.
#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Consent {
    /// Whether to write it down.
    sure: bool,
    /// Where to put it.
    #[serde(default = "notes")]
    folder: String,
}

fn notes() -> String {
    "notes".to_owned()
}

/// Write a note, once the user agrees and with a title from the client's model.
#[tool]
async fn write_note(ctx: Ctx, text: String) -> Result<String, ToolError> {
    // In the newest revision each `?` may end this run; the next one gets the answer at once.
    let consent: Consent = ctx.ask("consent", elicit(format!("Write down {text:?}?"))).await?;
    if !consent.sure {
        return Ok("nothing was written".to_owned());
    }
    // A number is drawn once, however often this function runs.
    let number = ctx.once("number", async { Ok::<_, ToolError>(7) }).await?;
    let title = ctx.ask("title", sample(format!("A title for: {text}")).max_tokens(20)).await?;
    Ok(format!("note {number} is in {}, titled {}", consent.folder, title.to_text()))
}

#[tokio::main]
async fn main() -> turnbuckle::Result<()> {
    let server = Server::new("notes", "1.0").tool(write_note);
    for revision in [Revision::V2025_11_25, Revision::V2026_07_28] {
        // Each callback declares its capability. A server that asks for more is refused at once.
        let client = Client::builder()
            .revision(revision)
            .on_elicitation(async |question| {
                println!("asked: {}", question.message());
                let mut answer = ElicitResult::new(ElicitAction::Accept);
                // What is left out, here the folder, gets the form's default.
                answer.content = Some(json!({"sure": true}).into());
                Ok(answer)
            })
            .on_sampling(async |question| {
                println!("asked: for {} tokens at most", question.max_tokens);
                let said = TextContent::new("On turnbuckles");
                Ok(CreateMessageResult::new(Role::Assistant, said, "small-model"))
            })
            .in_process(&server)
            .await?;
        let done = client.call_tool("write_note", json!({"text": "It holds."})).await?;
        println!("{revision}: {}", done.to_text());
    }
    Ok(())
}
