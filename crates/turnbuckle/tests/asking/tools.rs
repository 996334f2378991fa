//! Owns the server that the tests of this program share. Does not own any expectation.

use std::sync::{
    Arc,
    atomic::{AtomicU32, Ordering},
};

use serde::Deserialize;
use turnbuckle::{
    Ctx, RpcError, Server, State, ToolError,
    elicit::{Answered, Askable, Elicitation, Elicited, elicit, elicit_url, roots},
    prompt, resource,
    server::Invocation,
    template, tool,
};

#[derive(Deserialize, schemars::JsonSchema)]
pub(crate) struct Name {
    /// What people call you.
    #[schemars(length(max = 20))]
    pub(crate) name: String,
}

#[derive(Deserialize, schemars::JsonSchema)]
pub(crate) struct Age {
    #[schemars(range(min = 18))]
    pub(crate) age: u8,
}

impl Askable for Name {
    const KEY: &'static str = "name";
    type Question = Elicitation<Name>;
    fn question(_: &Invocation) -> Elicitation<Name> {
        elicit("Who are you?")
    }
}

impl Askable for Age {
    const KEY: &'static str = "age";
    type Question = Elicitation<Age>;
    fn question(_: &Invocation) -> Elicitation<Age> {
        elicit("How old are you?")
    }
}

/// How often something was done that should be done once.
#[derive(Clone, Default)]
pub(crate) struct Effects(Arc<AtomicU32>);

impl Effects {
    pub(crate) fn count(&self) -> u32 {
        self.0.load(Ordering::SeqCst)
    }

    fn one_more(&self) -> u32 {
        self.0.fetch_add(1, Ordering::SeqCst) + 1
    }
}

async fn greet(ctx: Ctx) -> Result<String, ToolError> {
    let Name { name } = ctx.ask("name", elicit("Who are you?")).await?;
    Ok(format!("Hello, {name}!"))
}

async fn greet_politely(ctx: Ctx) -> Result<String, ToolError> {
    Ok(match ctx.ask("name", elicit::<Name>("Who are you?").action()).await? {
        Elicited::Accept(Name { name }) => format!("Hello, {name}!"),
        Elicited::Decline => "as you like".to_owned(),
        Elicited::Cancel => "another time".to_owned(),
    })
}

async fn steps(ctx: Ctx) -> Result<String, ToolError> {
    let Name { name } = ctx.ask("name", elicit("Who are you?")).await?;
    let Age { age } = ctx.ask("age", elicit(format!("How old are you, {name}?"))).await?;
    Ok(format!("{name} is {age}"))
}

async fn together(ctx: Ctx) -> Result<String, ToolError> {
    let (name, roots) =
        tokio::join!(ctx.ask("name", elicit::<Name>("Who are you?")), ctx.ask("roots", roots()),);
    let (Name { name }, roots) = (name?, roots?);
    let roots: Vec<_> = roots.iter().map(|root| &*root.uri).collect();
    Ok(format!("{name} has {roots:?}"))
}

async fn arguments(Answered(name): Answered<Name>, Answered(age): Answered<Age>) -> String {
    format!("{} is {}", name.name, age.age)
}

async fn charge(ctx: Ctx, State(effects): State<Effects>) -> Result<String, ToolError> {
    let receipt = ctx.once("charge", async { Ok::<_, ToolError>(effects.one_more()) }).await?;
    let Name { name } = ctx.ask("name", elicit("Who are you?")).await?;
    let Age { age } = ctx.ask("age", elicit("How old are you?")).await?;
    Ok(format!("{name} ({age}) has receipt {receipt}"))
}

/// Any error while a question is open means that the handler waits.
async fn careless(ctx: Ctx) -> Result<String, std::io::Error> {
    let name = ctx.ask("name", elicit::<Name>("Who are you?")).await;
    let Name { name } = name.map_err(|_| std::io::Error::other("no name"))?;
    Ok(name)
}

/// Does not pass on why there is no answer.
async fn patient(ctx: Ctx) -> String {
    match ctx.ask("name", elicit::<Name>("Who are you?")).await {
        Ok(Name { name }) => name,
        Err(error) if error.is_declined() => "nobody: declined".to_owned(),
        Err(error) => format!("nobody: {}", error.missing_capability().unwrap_or("not yet")),
    }
}

async fn endless(ctx: Ctx) -> Result<String, ToolError> {
    for step in 0..100 {
        ctx.ask(&format!("step{step}"), elicit::<Name>("And now?")).await?;
    }
    Ok("the end".to_owned())
}

async fn pay(ctx: Ctx) -> Result<&'static str, ToolError> {
    let page = elicit_url("Please pay", "https://pay.example.com/7").with_id("page-7");
    ctx.ask("pay", page).await?;
    ctx.elicitation_complete("page-7").await;
    Ok("thank you")
}

async fn push(ctx: Ctx) -> Result<String, ToolError> {
    let asked = ctx.request("roots/list", serde_json::json!({})).await;
    asked.map(|roots| roots.to_string()).map_err(|error| ToolError::new(error.to_string()))
}

async fn review(ctx: Ctx) -> Result<String, RpcError> {
    let Name { name } = ctx.ask("name", elicit("Whose code?")).await?;
    Ok(format!("Review the code of {name}."))
}

async fn secret(ctx: Ctx) -> Result<String, RpcError> {
    let Name { name } = ctx.ask("name", elicit("Who wants to know?")).await?;
    Ok(format!("for {name} only"))
}

async fn deep(ctx: Ctx) -> Result<String, ToolError> {
    #[derive(Deserialize, schemars::JsonSchema)]
    struct Deep {
        inner: Name,
    }
    let Deep { inner } = ctx.ask("deep", elicit("?")).await?;
    Ok(inner.name)
}

pub(crate) fn server() -> Server {
    server_with(Effects::default())
}

pub(crate) fn server_with(effects: Effects) -> Server {
    Server::new("asking", "1.0")
        .state(effects)
        .tool(tool("greet", greet))
        .tool(tool("greet_politely", greet_politely))
        .tool(tool("steps", steps))
        .tool(tool("together", together))
        .tool(tool("arguments", arguments))
        .tool(tool("charge", charge))
        .tool(tool("careless", careless))
        .tool(tool("patient", patient))
        .tool(tool("endless", endless))
        .tool(tool("pay", pay))
        .tool(tool("push", push))
        .tool(tool("deep", deep))
        .prompt(prompt("review", review))
        .resource(resource("demo://secret", secret).name("secret"))
        .template(template("demo://secrets/{id}", secret).name("secrets"))
}
