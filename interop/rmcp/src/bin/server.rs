//! rmcp as a server of the interop checks.
//!
//! Owns: the same tools that every other server has. Does not own: anything about rmcp itself.

use std::fs::OpenOptions;
use std::io::Write;
use std::sync::{Arc, Mutex, PoisonError};

use rmcp::handler::server::tool::InputResponses;
use rmcp::handler::server::wrapper::Parameters;
use rmcp::model::{
    CallToolResponse, CallToolResult, ContentBlock, ElicitRequest, ElicitRequestParams,
    ElicitationSchema, Implementation, InputRequest, InputRequiredResult,
    ProgressNotificationParam, ProtocolVersion, ReadResourceRequestParams, ReadResourceResponse,
    ReadResourceResult, ResourceContents, ServerCapabilities, ServerConfig,
};
use rmcp::service::RequestContext;
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use rmcp::transport::streamable_http_server::{StreamableHttpServerConfig, StreamableHttpService};
use rmcp::{
    ErrorData, Json, RoleServer, ServerHandler, ServiceExt, tool, tool_handler, tool_router,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

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
struct Interop(Arc<Mutex<&'static str>>);

impl Interop {
    fn set(&self, state: &'static str) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = state;
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
        self.0.lock().unwrap_or_else(PoisonError::into_inner).to_string()
    }

    #[tool(description = "Ask the user for a name")]
    async fn ask(
        &self,
        InputResponses(responses): InputResponses,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let legacy = context.protocol_version().is_some_and(|version| version.has_initialize());
        if legacy {
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
        let question = InputRequest::Elicitation(ElicitRequest::new(params));
        let questions = [("user".to_owned(), question)].into_iter().collect();
        Ok(InputRequiredResult::from_input_requests(questions).into())
    }
}

fn hello(name: &str) -> CallToolResponse {
    CallToolResult::success(vec![ContentBlock::text(format!("hello {name}"))]).into()
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
        let capabilities = ServerCapabilities::builder().enable_tools().enable_resources().build();
        ServerConfig::new(capabilities)
            .with_server_info(Implementation::new("interop-rmcp", "1.0.0"))
    }

    async fn read_resource(
        &self,
        request: ReadResourceRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<ReadResourceResponse, ErrorData> {
        if request.uri != "note://one" {
            return Err(ErrorData::resource_not_found("no such note", None));
        }
        let contents = vec![ResourceContents::text("the first note", request.uri)];
        Ok(ReadResourceResult::new(contents).into())
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
    let server = Interop(Arc::new(Mutex::new("idle")));
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
