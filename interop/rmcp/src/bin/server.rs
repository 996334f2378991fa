//! rmcp as a server of the interop checks.
//!
//! Owns: what every other server has. Does not own: anything about rmcp itself.

#![expect(deprecated, reason = "what is deprecated is still spoken")]

use std::collections::VecDeque;
use std::fs::OpenOptions;
use std::io::Write;
use std::sync::{Arc, Mutex, PoisonError};

use rmcp::handler::server::tool::InputResponses;
use rmcp::handler::server::wrapper::Parameters;
use rmcp::model::{
    CallToolResponse, CallToolResult, CompleteRequestParams, CompleteResult, CompletionInfo,
    ContentBlock, CreateMessageRequest, CreateMessageRequestParams, ElicitRequest,
    ElicitRequestParams, ElicitationSchema, GetPromptRequestParams, GetPromptResponse,
    GetPromptResult, Implementation, InputRequest, InputRequiredResult, ListPromptsResult,
    ListResourceTemplatesResult, ListRootsRequest, PaginatedRequestParams,
    ProgressNotificationParam, Prompt, PromptArgument, PromptMessage, ProtocolVersion,
    ReadResourceRequestParams, ReadResourceResponse, ReadResourceResult, Reference,
    ResourceContents, ResourceTemplate, ResourceUpdatedNotificationParam, Role, SamplingMessage,
    ServerCapabilities, ServerConfig, SubscribeRequestParams, SubscriptionFilter,
    UnsubscribeRequestParams,
};
use rmcp::service::{RequestContext, SubscriptionContext};
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use rmcp::transport::streamable_http_server::{StreamableHttpServerConfig, StreamableHttpService};
use rmcp::{
    ErrorData, Json, RoleServer, ServerHandler, ServiceExt, tool, tool_handler, tool_router,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tokio::sync::broadcast;

const USAGE: &str = "usage: server --stdio LOG | --http";
const QUESTION: &str = "What is your name?";

type Failure = Box<dyn std::error::Error>;

#[derive(Deserialize, JsonSchema)]
struct Echo {
    text: String,
}

#[derive(Deserialize, JsonSchema)]
struct Add {
    a: i64,
    b: i64,
}

#[derive(Serialize, JsonSchema)]
struct Sum {
    sum: i64,
}

#[derive(Serialize, Deserialize, JsonSchema)]
struct Name {
    name: String,
}
rmcp::elicit_safe!(Name);

#[derive(Clone)]
struct Interop {
    held: Arc<Mutex<&'static str>>,
    /// For those who listen.
    touched: broadcast::Sender<()>,
    /// Those who have been accepted and do not listen yet: `listen` runs after the acknowledgment,
    /// which may be followed by a touch at once.
    accepted: Arc<Mutex<VecDeque<broadcast::Receiver<()>>>>,
}

impl Interop {
    fn new() -> Interop {
        Interop {
            held: Arc::new(Mutex::new("idle")),
            touched: broadcast::Sender::new(16),
            accepted: Arc::default(),
        }
    }

    fn set(&self, state: &'static str) {
        *self.held.lock().unwrap_or_else(PoisonError::into_inner) = state;
    }
}

#[tool_router]
impl Interop {
    #[tool(description = "Repeat a text")]
    async fn echo(&self, Parameters(echo): Parameters<Echo>) -> String {
        echo.text
    }

    #[tool(description = "Add two integers")]
    async fn add(&self, Parameters(add): Parameters<Add>) -> Json<Sum> {
        Json(Sum { sum: add.a + add.b })
    }

    #[tool(description = "Report progress three times")]
    async fn count(&self, context: RequestContext<RoleServer>) -> Result<String, ErrorData> {
        if let Some(token) = context.meta.get_progress_token() {
            for step in [1.0, 2.0, 3.0] {
                let note = ProgressNotificationParam::new(token.clone(), step).with_total(3.0);
                context.peer.notify_progress(note).await.map_err(internal)?;
            }
        }
        Ok("counted".to_owned())
    }

    #[tool(description = "Fail")]
    async fn fail(&self) -> CallToolResult {
        CallToolResult::error(vec![ContentBlock::text("failed on purpose")])
    }

    #[tool(description = "Wait until the call is given up")]
    async fn hold(&self, context: RequestContext<RoleServer>) -> Result<String, ErrorData> {
        self.set("holding");
        context.ct.cancelled().await;
        self.set("stopped");
        Err(ErrorData::internal_error("cancelled", None))
    }

    #[tool(description = "Say whether hold was stopped")]
    async fn was_cancelled(&self) -> String {
        self.held.lock().unwrap_or_else(PoisonError::into_inner).to_string()
    }

    #[tool(description = "Ask the user for a name")]
    async fn ask(
        &self,
        InputResponses(responses): InputResponses,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        if is_legacy(&context) {
            let name = context.peer.elicit::<Name>(QUESTION).await.map_err(internal)?;
            return Ok(hello(&name.map(|name| name.name).unwrap_or_default()));
        }
        let answer = responses.as_ref().and_then(|responses| responses.get("user"));
        if let Some(answer) = answer {
            return Ok(hello(answer["content"]["name"].as_str().unwrap_or_default()));
        }
        let requested_schema = ElicitationSchema::from_type::<Name>().map_err(internal)?;
        let params = ElicitRequestParams::FormElicitationParams {
            meta: None,
            message: QUESTION.to_owned(),
            requested_schema,
        };
        Ok(asking("user", InputRequest::Elicitation(ElicitRequest::new(params))))
    }

    #[tool(description = "Ask the user's model")]
    async fn ask_model(
        &self,
        InputResponses(responses): InputResponses,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let question = SamplingMessage::user_text("What is six times seven?");
        let params = CreateMessageRequestParams::new(vec![question], 20);
        if is_legacy(&context) {
            let answer = context.peer.create_message(params).await.map_err(internal)?;
            let answer = serde_json::to_value(&answer).map_err(internal)?;
            return Ok(said(&answer));
        }
        match responses.as_ref().and_then(|responses| responses.get("model")) {
            Some(answer) => Ok(said(answer)),
            None => {
                let request = CreateMessageRequest::new(params);
                Ok(asking("model", InputRequest::CreateMessage(request)))
            }
        }
    }

    #[tool(description = "Ask where to work")]
    async fn ask_roots(
        &self,
        InputResponses(responses): InputResponses,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        if is_legacy(&context) {
            let places = context.peer.list_roots().await.map_err(internal)?;
            return Ok(text(places.roots.iter().map(|root| root.uri.as_str()).collect()));
        }
        match responses.as_ref().and_then(|responses| responses.get("roots")) {
            Some(answer) => Ok(text(answer["roots"][0]["uri"].as_str().into_iter().collect())),
            None => Ok(asking("roots", InputRequest::ListRoots(ListRootsRequest::default()))),
        }
    }

    #[tool(description = "Tell that the first note and the list of tools have changed")]
    async fn touch(&self, context: RequestContext<RoleServer>) -> Result<String, ErrorData> {
        if is_legacy(&context) {
            let updated = ResourceUpdatedNotificationParam::new("note://one");
            context.peer.notify_resource_updated(updated).await.map_err(internal)?;
            context.peer.notify_tool_list_changed().await.map_err(internal)?;
        }
        // There may be nobody.
        let _ = self.touched.send(());
        Ok("touched".to_owned())
    }
}

fn is_legacy(context: &RequestContext<RoleServer>) -> bool {
    context.protocol_version().is_some_and(|version| version.has_initialize())
}

fn asking(key: &str, question: InputRequest) -> CallToolResponse {
    let questions = [(key.to_owned(), question)].into_iter().collect();
    InputRequiredResult::from_input_requests(questions).into()
}

fn hello(name: &str) -> CallToolResponse {
    text(format!("hello {name}"))
}

fn said(answer: &serde_json::Value) -> CallToolResponse {
    text(format!("said {}", answer["content"]["text"].as_str().unwrap_or_default()))
}

fn text(text: String) -> CallToolResponse {
    CallToolResult::success(vec![ContentBlock::text(text)]).into()
}

fn internal(error: impl std::fmt::Display) -> ErrorData {
    ErrorData::internal_error(error.to_string(), None)
}

#[tool_handler]
impl ServerHandler for Interop {
    fn supported_protocol_versions(&self) -> std::borrow::Cow<'static, [ProtocolVersion]> {
        (&[ProtocolVersion::V_2026_07_28, ProtocolVersion::V_2025_11_25]).into()
    }

    fn get_info(&self) -> ServerConfig {
        let capabilities = ServerCapabilities::builder()
            .enable_tools()
            .enable_tool_list_changed()
            .enable_resources()
            .enable_resources_subscribe()
            .enable_prompts()
            .enable_completions()
            .build();
        ServerConfig::new(capabilities)
            .with_server_info(Implementation::new("interop-rmcp", "1.0.0"))
    }

    async fn read_resource(
        &self,
        request: ReadResourceRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<ReadResourceResponse, ErrorData> {
        let note = match request.uri.strip_prefix("note://") {
            Some("one") => "the first note".to_owned(),
            Some(uri) if uri.starts_with("about/") => format!("a note {}", uri.replace('/', " ")),
            _ => return Err(ErrorData::resource_not_found("no such note", None)),
        };
        Ok(ReadResourceResult::new(vec![ResourceContents::text(note, request.uri)]).into())
    }

    async fn list_resource_templates(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListResourceTemplatesResult, ErrorData> {
        let about = ResourceTemplate::new("note://about/{name}", "about");
        Ok(ListResourceTemplatesResult::with_all_items(vec![about]))
    }

    async fn list_prompts(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListPromptsResult, ErrorData> {
        let name = PromptArgument::new("name").with_required(true);
        let greet = Prompt::new("greet", Some("Greet someone"), Some(vec![name]));
        Ok(ListPromptsResult::with_all_items(vec![greet]))
    }

    async fn get_prompt(
        &self,
        request: GetPromptRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<GetPromptResponse, ErrorData> {
        let arguments = request.arguments.unwrap_or_default();
        let name = arguments.get("name").and_then(|name| name.as_str()).unwrap_or_default();
        let message = PromptMessage::new_text(Role::User, format!("Greet {name}"));
        Ok(GetPromptResult::new(vec![message]).into())
    }

    async fn complete(
        &self,
        request: CompleteRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<CompleteResult, ErrorData> {
        let typed = match &request.r#ref {
            Reference::Prompt(prompt) if prompt.name == "greet" => &request.argument.value,
            _ => return Ok(CompleteResult::default()),
        };
        let names = ["Ada", "Alan", "Grace"].into_iter().filter(|name| name.starts_with(typed));
        let found = CompletionInfo::new(names.map(str::to_owned).collect()).map_err(internal)?;
        Ok(CompleteResult::new(found))
    }

    fn accepted_subscription_filter(
        &self,
        asked: &SubscriptionFilter,
    ) -> Option<SubscriptionFilter> {
        let mut accepted = self.accepted.lock().unwrap_or_else(PoisonError::into_inner);
        accepted.push_back(self.touched.subscribe());
        Some(asked.clone())
    }

    async fn listen(&self, context: SubscriptionContext) -> Result<(), ErrorData> {
        let accepted = self.accepted.lock().unwrap_or_else(PoisonError::into_inner).pop_front();
        let mut touched = accepted.unwrap_or_else(|| self.touched.subscribe());
        loop {
            tokio::select! {
                () = context.cancelled() => return Ok(()),
                _ = touched.recv() => {
                    // Each is refused if it was not asked for.
                    let _ = context.sink().notify_resource_updated("note://one").await;
                    let _ = context.sink().notify_tool_list_changed().await;
                }
            }
        }
    }

    async fn subscribe(
        &self,
        _: SubscribeRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        Ok(())
    }

    async fn unsubscribe(
        &self,
        _: UnsubscribeRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        Ok(())
    }
}

fn note(log: &str, line: &str) -> std::io::Result<()> {
    writeln!(OpenOptions::new().create(true).append(true).open(log)?, "{line}")
}

async fn serve_http(server: Interop) -> Result<(), Failure> {
    let service = StreamableHttpService::new(
        move || Ok(server.clone()),
        Arc::new(LocalSessionManager::default()),
        StreamableHttpServerConfig::default(),
    );
    let router = axum::Router::new().nest_service("/mcp", service);
    let listener = tokio::net::TcpListener::bind(("127.0.0.1", 0)).await?;
    println!("http://{}/mcp", listener.local_addr()?);
    axum::serve(listener, router).await?;
    Ok(())
}

#[tokio::main]
async fn main() -> Result<(), Failure> {
    let server = Interop::new();
    let words: Vec<String> = std::env::args().skip(1).collect();
    match words.iter().map(String::as_str).collect::<Vec<_>>().as_slice() {
        ["--stdio", log] => {
            note(log, "started")?;
            server.serve(rmcp::transport::stdio()).await?.waiting().await?;
            note(log, "ended")?;
            Ok(())
        }
        ["--http"] => serve_http(server).await,
        _ => Err(USAGE.into()),
    }
}
