//! What the attribute macros make, seen by a client.
//!
//! Owns: that functions and methods with plain arguments are listed and answer as they were
//! written. Does not own: what the compiler says of wrong ones.

#![cfg(all(feature = "macros", feature = "client", feature = "http"))]

use std::sync::{Arc, Mutex};

use serde_json::{Value, json};
use turnbuckle::{
    Args, Client, Ctx, NotFound, Principal, RpcError, Server, State,
    middleware::{
        Response,
        server::{Next, Request},
    },
    prompt, resource,
    server::{
        Extension, Failure, FromCall, Header, HttpHeader, IntoGroup as _, Invocation, RawArgs,
        Typed,
    },
    tool, tools,
    types::{PromptMessage, Resource},
};

async fn ask(server: &Server, method: &str, params: Value) -> turnbuckle::Result<Value> {
    let client = Client::in_process(server).await?;
    let raw = client.request(method, params).await?;
    Ok(serde_json::from_str(raw.as_str()).expect("a result is JSON"))
}

#[track_caller]
fn code(result: turnbuckle::Result<Value>) -> i64 {
    let error = result.expect_err("a refusal");
    error.as_rpc().unwrap_or_else(|| panic!("{error}")).code
}

async fn called(server: &Server, name: &str, arguments: Value) -> Value {
    let params = json!({"name": name, "arguments": arguments});
    let mut result = ask(server, "tools/call", params).await.expect("a result");
    match result["isError"].as_bool() {
        Some(true) => json!({"error": result["content"][0]["text"].take()}),
        _ => result["content"][0]["text"].take(),
    }
}

/// The tenant that a request is for.
struct Tenant(String);

impl FromCall for Tenant {
    async fn from_call(call: &Invocation) -> Result<Tenant, Failure> {
        Ok(Tenant(call.state::<&'static str>().unwrap_or("nobody").to_owned()))
    }
}

struct Language;

impl HttpHeader for Language {
    const NAME: &'static str = "accept-language";

    fn from_value(_: &str) -> Result<Language, String> {
        Ok(Language)
    }
}

#[derive(serde::Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "lowercase")]
enum Region {
    Eu,
    Us,
}

const MOST: u32 = 10;

/// Order something.
///
/// It arrives by itself.
#[tool(title = "Order", icon = "https://example.com/order.png", destructive, idempotent = false)]
#[expect(clippy::too_many_arguments, reason = "all kinds of arguments at once")]
async fn order(
    /// What to order.
    #[arg(min_length = 2, max_length = 8, pattern = "^[a-z]+$", title = "The item")]
    item: String,
    /// How many,
    /// at most ten.
    #[arg(min = 1, max = MOST)]
    count: Option<u32>,
    #[arg(max_length = 2)]
    #[serde(default)]
    tags: Vec<String>,
    /// Where to.
    #[arg(header = "Region")]
    region: Region,
    #[extract] Tenant(tenant): Tenant,
    principal: Option<Principal>,
    language: Option<Header<Language>>,
    extension: Option<Extension<u8>>,
    ctx: Ctx,
    State(name): State<&'static str>,
) -> String {
    assert!(!ctx.is_cancelled() && name == tenant);
    assert!(principal == Some(Principal::local()) && language.is_none() && extension.is_none());
    let region = match region {
        Region::Eu => "eu",
        Region::Us => "us",
    };
    format!("{} {item} {tags:?} to {region} for {tenant}", count.unwrap_or(1))
}

fn shop() -> Server {
    Server::new("shop", "1.0").tool(order).state("alice")
}

// req: tools:list:metadata
#[tokio::test]
async fn a_tool_is_listed_as_its_function_says() {
    let listed = ask(&shop(), "tools/list", json!({})).await.unwrap();
    let tool = &listed["tools"][0];
    assert_eq!(tool["name"], "order");
    assert_eq!(tool["title"], "Order");
    assert_eq!(tool["description"], "Order something.\n\nIt arrives by itself.");
    assert_eq!(tool["icons"], json!([{"src": "https://example.com/order.png"}]));
    assert_eq!(tool["annotations"], json!({"destructiveHint": true, "idempotentHint": false}));
    let schema = &tool["inputSchema"];
    let properties = schema["properties"].as_object().unwrap();
    assert_eq!(properties.len(), 4, "extractors are no part of it: {schema}");
    assert_eq!(schema["required"], json!(["item", "region"]));
    let item = &properties["item"];
    assert_eq!(item["title"], "The item");
    assert_eq!(item["description"], "What to order.");
    assert_eq!((&item["minLength"], &item["maxLength"]), (&json!(2), &json!(8)));
    assert_eq!(item["pattern"], "^[a-z]+$");
    let count = &properties["count"];
    assert_eq!(count["description"], "How many,\nat most ten.");
    assert_eq!((&count["minimum"], &count["maximum"]), (&json!(1), &json!(10)));
    assert_eq!(properties["tags"]["maxItems"], 2);
    assert_eq!(properties["region"]["x-mcp-header"], "Region");
    assert_eq!(properties["region"]["description"], "Where to.");
}

// req: mcpserver:tool:input-validation
#[tokio::test]
async fn constraints_of_arguments_are_checked() {
    let shop = shop();
    assert_eq!(
        called(&shop, "order", json!({"item": "tea", "count": 2, "region": "us"})).await,
        "2 tea [] to us for alice"
    );
    for (arguments, part) in [
        (json!({"item": "a", "region": "eu"}), "`item`"),
        (json!({"item": "Tea", "region": "eu"}), "`item`"),
        (json!({"item": "tea", "count": 11, "region": "eu"}), "`count`"),
        (json!({"item": "tea", "count": 0, "region": "eu"}), "`count`"),
        (json!({"item": "tea", "tags": ["a", "b", "c"], "region": "eu"}), "`tags`"),
        (json!({"item": "tea", "region": "mars"}), "`region`"),
    ] {
        let told = called(&shop, "order", arguments.clone()).await;
        let text = told["error"].as_str().unwrap_or_else(|| panic!("{arguments}: {told}"));
        assert!(text.contains(part), "{arguments}: {text}");
    }
}

#[derive(serde::Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "lowercase")]
enum Depth {
    Brief,
    Thorough,
}

/// Ask for a review.
#[prompt(title = "Review", icons("https://example.com/1.png", "https://example.com/2.png"))]
async fn review(
    /// What is to be reviewed.
    #[arg(title = "Code")]
    code: String,
    #[arg(complete = languages)] language: Option<String>,
    #[arg(complete = ["Clear", "Terse"])]
    #[serde(rename = "style-of-answer")]
    style: Option<String>,
    depth: Option<Depth>,
    #[arg(min = 1, max = MOST)] remarks: Option<u32>,
) -> Vec<PromptMessage> {
    let depth = match depth {
        Some(Depth::Thorough) => "thorough",
        Some(Depth::Brief) | None => "brief",
    };
    assert_ne!(remarks, Some(0));
    let language = language.unwrap_or_default();
    let style = style.unwrap_or_default();
    vec![
        PromptMessage::user(format!("{depth} {style} review of {language}")),
        PromptMessage::assistant(code),
    ]
}

async fn languages(Typed(typed): Typed, RawArgs(known): RawArgs) -> Vec<String> {
    let known: Value = serde_json::from_str(known.as_str()).unwrap();
    let code = known["code"].as_str().unwrap_or("nothing");
    vec![format!("{typed} for {code}")]
}

/// Say hello.
#[prompt(name = "hello", description = "Greet.")]
fn greet() -> &'static str {
    "Hello!"
}

async fn completed(server: &Server, reference: Value, argument: [&str; 2]) -> Value {
    let [name, value] = argument;
    let params = json!({
        "ref": reference,
        "argument": {"name": name, "value": value},
        "context": {"arguments": {"code": "x"}},
    });
    let mut result = ask(server, "completion/complete", params).await.expect("a completion");
    result["completion"]["values"].take()
}

// req: mcpserver:prompt:decorated, mcpserver:prompt:optional-args, mcpserver:prompt:args-validation, prompts:get:with-args, prompts:get:no-args, prompts:get:multi-message, prompts:get:missing-required-args
#[tokio::test]
async fn a_prompt_has_the_arguments_of_its_function() {
    let server = Server::new("demo", "1.0").prompt(review).prompt(greet);
    let listed = ask(&server, "prompts/list", json!({})).await.unwrap();
    let prompt = &listed["prompts"][0];
    assert_eq!(prompt["name"], "review");
    assert_eq!(prompt["title"], "Review");
    assert_eq!(prompt["description"], "Ask for a review.");
    assert_eq!(prompt["icons"][1]["src"], "https://example.com/2.png");
    let code_argument = json!({
        "name": "code", "title": "Code", "description": "What is to be reviewed.", "required": true,
    });
    assert_eq!(prompt["arguments"][0], code_argument);
    let names = ["code", "language", "style-of-answer", "depth", "remarks"];
    for (index, name) in names.into_iter().enumerate() {
        assert_eq!(prompt["arguments"][index]["name"], name);
        assert_eq!(prompt["arguments"][index]["required"], index == 0);
    }
    assert_eq!(listed["prompts"][1]["name"], "hello");
    assert_eq!(listed["prompts"][1]["description"], "Greet.");

    let arguments = json!({"code": "fn", "language": "rust", "depth": "thorough"});
    let params = json!({"name": "review", "arguments": arguments});
    let got = ask(&server, "prompts/get", params).await.unwrap();
    assert_eq!(got["messages"][0]["content"]["text"], "thorough  review of rust");
    assert_eq!(got["messages"][1]["content"]["text"], "fn");
    assert_eq!(
        (&got["messages"][0]["role"], &got["messages"][1]["role"]),
        (&json!("user"), &json!("assistant"))
    );
    let got = ask(&server, "prompts/get", json!({"name": "hello"})).await.unwrap();
    assert_eq!(got["messages"][0]["content"]["text"], "Hello!");
    for (arguments, said) in [
        (json!({}), "`code` is missing"),
        (json!({"code": "fn", "depth": "endless"}), "`depth`"),
        (json!({"code": "fn", "remarks": "0"}), "`remarks` must be at least 1, is 0"),
        (json!({"code": "fn", "remarks": "11"}), "`remarks` must be at most 10, is 11"),
    ] {
        let params = json!({"name": "review", "arguments": arguments});
        let error = ask(&server, "prompts/get", params).await.unwrap_err();
        let error = error.as_rpc().unwrap();
        assert_eq!(error.code, -32602, "{arguments}");
        assert!(error.message.contains(said), "{arguments}: {error:?}");
    }
}

// req: completion:prompt-arg, completion:context-arguments
#[tokio::test]
async fn arguments_are_completed_as_they_say() {
    let server = Server::new("demo", "1.0").prompt(review);
    let reference = json!({"type": "ref/prompt", "name": "review"});
    let complete = |argument| completed(&server, reference.clone(), argument);
    assert_eq!(complete(["language", "ru"]).await, json!(["ru for x"]));
    assert_eq!(complete(["style-of-answer", "t"]).await, json!(["Terse"]));
    assert_eq!(complete(["code", ""]).await, json!([]));
}

/// How to begin.
#[resource(
    "demo://readme",
    mime_type = "text/markdown",
    title = "Read me",
    audience = ["user", "assistant"],
    priority = 1,
    last_modified = "2026-01-02T03:04:05Z"
)]
fn readme() -> &'static str {
    "# Read me"
}

/// One item.
#[resource("demo://items/{id}", name = "an item", list = items, audience = ["user"], priority = 0.25)]
async fn numbered(
    #[arg(complete = ["1", "2", "12"], pattern = "^[0-9]*$")] id: String,
) -> Result<String, NotFound> {
    if id.len() < 3 { Ok(format!("item {id}")) } else { Err(NotFound) }
}

async fn items() -> Vec<Resource> {
    vec![Resource::new("demo://items/1", "the first")]
}

// req: mcpserver:resource:static, mcpserver:resource:template, resources:read:text, completion:resource-template-arg
#[tokio::test]
async fn a_resource_is_found_by_the_uri_of_its_function() {
    let server = Server::new("demo", "1.0").resource(readme).template(numbered);
    let listed = ask(&server, "resources/list", json!({})).await.unwrap();
    let listed_readme = &listed["resources"][0];
    assert_eq!(listed_readme["uri"], "demo://readme");
    assert_eq!(listed_readme["name"], "readme");
    assert_eq!(listed_readme["title"], "Read me");
    assert_eq!(listed_readme["description"], "How to begin.");
    assert_eq!(listed_readme["mimeType"], "text/markdown");
    let said = json!({
        "audience": ["user", "assistant"], "priority": 1, "lastModified": "2026-01-02T03:04:05Z",
    });
    assert_eq!(listed_readme["annotations"], said);
    // What the family's lister knows is listed beside it, and nothing else is.
    assert_eq!(listed["resources"][1]["uri"], "demo://items/1");
    assert_eq!(listed["resources"][1]["name"], "the first");
    assert_eq!(listed["resources"].as_array().unwrap().len(), 2);
    let listed = ask(&server, "resources/templates/list", json!({})).await.unwrap();
    let template = &listed["resourceTemplates"][0];
    assert_eq!(template["uriTemplate"], "demo://items/{id}");
    assert_eq!(template["name"], "an item");
    assert_eq!(template["description"], "One item.");
    assert_eq!(template["annotations"], json!({"audience": ["user"], "priority": 0.25}));

    let read = async |uri: &str| ask(&server, "resources/read", json!({"uri": uri})).await;
    let got = read("demo://readme").await.unwrap();
    assert_eq!(got["contents"][0]["text"], "# Read me");
    assert_eq!(got["contents"][0]["mimeType"], "text/markdown");
    assert_eq!(read("demo://items/12").await.unwrap()["contents"][0]["text"], "item 12");
    assert_eq!(code(read("demo://items/123").await), -32602);
    let refused = read("demo://items/a").await.unwrap_err();
    let said = "`id` must match the pattern `^[0-9]*$`";
    assert_eq!(refused.as_rpc().unwrap().message, said);
    let reference = json!({"type": "ref/resource", "uri": "demo://items/{id}"});
    assert_eq!(completed(&server, reference, ["id", "1"]).await, json!(["1", "12"]));
}

#[derive(Default)]
struct Notes {
    all: Mutex<Vec<String>>,
}

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Search {
    /// A part of the text.
    part: String,
}

#[tools]
impl Notes {
    /// Write a note.
    #[tool(title = "Write", idempotent = false)]
    async fn add(
        &self,
        /// What to write.
        #[arg(min_length = 1)]
        text: String,
        State(owner): State<&'static str>,
    ) -> usize {
        self.push(format!("{text} ({owner})"))
    }

    /// Runs on a thread of its own.
    #[turnbuckle::tool(name = "notes/search", read_only)]
    fn search(&self, Args(search): Args<Search>) -> Result<String, NotFound> {
        let all = self.all.lock().unwrap();
        all.iter().find(|note| note.contains(&search.part)).cloned().ok_or(NotFound)
    }

    #[tool]
    async fn clone(&self) -> String {
        "not that of `Arc`".to_owned()
    }

    /// Look at a note.
    #[prompt]
    async fn look(&self, #[arg(complete = Self::texts)] text: String) -> String {
        format!("Look at {text} of {}", self.all.lock().unwrap().len())
    }

    /// All notes.
    #[resource("note://all", mime_type = "text/plain")]
    async fn everything(&self) -> String {
        self.all.lock().unwrap().join("\n")
    }

    /// One note.
    #[resource("note://at/{number}", list = Self::numbers)]
    async fn note(&self, number: String) -> Result<String, NotFound> {
        let number: usize = number.parse().map_err(|_| NotFound)?;
        self.all.lock().unwrap().get(number).cloned().ok_or(NotFound)
    }

    #[cfg(any())]
    #[tool]
    async fn absent(&self) -> NoSuchType {}

    async fn texts(&self, Typed(typed): Typed, _ctx: Ctx) -> Vec<String> {
        let all = self.all.lock().unwrap();
        all.iter().filter(|text| text.starts_with(&typed)).cloned().collect()
    }

    async fn numbers(&self) -> Vec<Resource> {
        let count = self.all.lock().unwrap().len();
        (0..count).map(|at| Resource::new(format!("note://at/{at}"), at.to_string())).collect()
    }

    fn push(&self, text: String) -> usize {
        let mut all = self.all.lock().unwrap();
        all.push(text);
        all.len()
    }
}

#[tokio::test]
async fn methods_share_one_value_with_the_program() {
    let notes = Arc::new(Notes::default());
    notes.push("milk".to_owned());
    let server = Server::new("notes", "1.0").group(notes.clone()).state("alice");
    let listed = ask(&server, "tools/list", json!({})).await.unwrap();
    let names: Vec<_> = listed["tools"].as_array().unwrap().iter().map(|t| &t["name"]).collect();
    assert_eq!(names, ["add", "notes/search", "clone"]);
    let add = &listed["tools"][0];
    assert_eq!(add["title"], "Write");
    assert_eq!(add["description"], "Write a note.");
    assert_eq!(add["inputSchema"]["properties"]["text"]["description"], "What to write.");
    let clone = &listed["tools"][2];
    assert_eq!(clone["inputSchema"], json!({"type": "object", "properties": {}}));
    assert_eq!(listed["tools"][1]["annotations"]["readOnlyHint"], true);

    assert_eq!(called(&server, "add", json!({"text": "tea"})).await, "2");
    assert!(called(&server, "add", json!({"text": ""})).await["error"].is_string());
    assert_eq!(called(&server, "notes/search", json!({"part": "te"})).await, "tea (alice)");
    assert_eq!(called(&server, "clone", json!({})).await, "not that of `Arc`");
    assert_eq!(*notes.all.lock().unwrap(), ["milk", "tea (alice)"]);

    let read = async |uri: &str| {
        let mut got = ask(&server, "resources/read", json!({"uri": uri})).await.unwrap();
        got["contents"][0]["text"].take()
    };
    assert_eq!(read("note://all").await, "milk\ntea (alice)");
    assert_eq!(read("note://at/0").await, "milk");
    let params = json!({"name": "look", "arguments": {"text": "milk"}});
    let got = ask(&server, "prompts/get", params).await.unwrap();
    assert_eq!(got["messages"][0]["content"]["text"], "Look at milk of 2");
    let reference = json!({"type": "ref/prompt", "name": "look"});
    assert_eq!(completed(&server, reference, ["text", "te"]).await, json!(["tea (alice)"]));
}

// req: mcpserver:tool:duplicate-name
#[test]
fn a_value_is_a_group_and_a_name_given_twice_is_told_with_its_place() {
    let server = Server::new("notes", "1.0").group(Notes::default()).state("alice");
    server.check().expect("a value alone is a group");
    let error = server.group(Notes::default()).check().unwrap_err().to_string();
    assert!(error.contains("`add`"), "{error}");
    let line = include_str!("macros.rs").lines().position(|line| line.contains("async fn add("));
    let place = format!("macros.rs:{}", line.unwrap() + 1);
    assert!(error.contains(&place), "no {place} in {error}");
}

#[tokio::test]
async fn one_method_among_others_can_have_a_layer_and_a_rule_of_its_own() {
    let refuse = || {
        tower_layer::layer_fn(|_: Next| {
            tower::service_fn(async |_: Request| Err::<Response, _>(RpcError::new(-32050, "no")))
        })
    };
    let notes = Notes::default()
        .into_group()
        .change_tool("add", |tool| tool.layer(refuse()))
        .change_tool("clone", |tool| tool.visible_to(|_| false))
        .change_prompt("look", |prompt| prompt.layer(refuse()))
        .change_resource("note://all", |resource| resource.layer(refuse()))
        .change_template("note://at/{number}", |template| template.layer(refuse()));
    let server = Server::new("notes", "1.0").group(notes).state("alice");
    for (method, params) in [
        ("tools/call", json!({"name": "add", "arguments": {"text": "tea"}})),
        ("prompts/get", json!({"name": "look", "arguments": {"text": "tea"}})),
        ("resources/read", json!({"uri": "note://all"})),
        ("resources/read", json!({"uri": "note://at/0"})),
    ] {
        assert_eq!(code(ask(&server, method, params).await), -32050, "{method}");
    }
    assert_eq!(code(ask(&server, "tools/call", json!({"name": "clone"})).await), -32602);
    let none = called(&server, "notes/search", json!({"part": "tea"})).await;
    assert_eq!(none["error"], "there is no such resource", "nothing was added, nothing refused");
}

#[test]
fn what_is_changed_and_is_not_there_is_told_with_its_place() {
    let (notes, line) = (Notes::default().into_group().change_tool("sub", |tool| tool), line!());
    let notes = notes
        .change_prompt("sub", |prompt| prompt)
        .change_resource("note://none", |resource| resource)
        .change_template("note://all", |template| template);
    let server = Server::new("notes", "1.0").group(notes).state("alice");
    let error = server.check().unwrap_err().to_string();
    for kind in ["tool `sub`", "prompt `sub`", "resource `note://none`", "template `note://all`"] {
        assert!(error.contains(&format!("the group has no {kind}")), "{error}");
    }
    assert!(error.contains(&format!("macros.rs:{line}")), "{error}");
}
