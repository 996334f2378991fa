//! The tools of the bench contract on rmcp, once for each way to set up its router.

use std::borrow::Cow;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{LazyLock, OnceLock};

use rmcp::handler::server::router::tool::ToolRouter;
use rmcp::handler::server::wrapper::Parameters;
use rmcp::model::{
    CallToolResult, ContentBlock, Implementation, ProgressNotificationParam, ProtocolVersion,
    ServerCapabilities, ServerConfig, SubscriptionFilter,
};
use rmcp::schemars::JsonSchema;
use rmcp::service::{RequestContext, SubscriptionContext};
use rmcp::{ErrorData, Json, RoleServer, ServerHandler, tool, tool_handler, tool_router};
use serde::{Deserialize, Serialize};
use tokio::sync::broadcast;

static STARTED: AtomicU64 = AtomicU64::new(0);
static RELEASED: AtomicU64 = AtomicU64::new(0);
pub(crate) static LISTENERS: AtomicU64 = AtomicU64::new(0);
pub(crate) static EVENTS: LazyLock<broadcast::Sender<()>> =
    LazyLock::new(|| broadcast::channel(1024).0);

/// Counts a slow call as released when its handler ends.
struct Slow;

impl Drop for Slow {
    fn drop(&mut self) {
        RELEASED.fetch_add(1, Relaxed);
    }
}

/// Counts its listener out when it ends.
pub(crate) struct Listener;

impl Drop for Listener {
    fn drop(&mut self) {
        LISTENERS.fetch_sub(1, Relaxed);
    }
}

#[derive(Deserialize, JsonSchema)]
pub(crate) struct Echo {
    pub(crate) text: String,
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

#[derive(Deserialize, JsonSchema)]
struct Progress {
    n: u64,
}

macro_rules! tools {
    ($server:ident) => {
        #[tool_router(vis = "pub")]
        impl $server {
            #[tool(description = "Echo the text back")]
            async fn echo(&self, Parameters(echo): Parameters<Echo>) -> String {
                echo.text
            }

            #[tool(description = "Add two integers")]
            async fn add(&self, Parameters(add): Parameters<Add>) -> Json<Sum> {
                Json(Sum { sum: add.a + add.b })
            }

            #[tool(description = "Wait until cancelled")]
            async fn slow(
                &self,
                context: RequestContext<RoleServer>,
            ) -> Result<CallToolResult, ErrorData> {
                STARTED.fetch_add(1, Relaxed);
                let _released = Slow;
                context.ct.cancelled().await;
                Err(ErrorData::internal_error("cancelled", None))
            }

            #[tool(description = "Emit n progress notifications")]
            async fn progress(
                &self,
                Parameters(progress): Parameters<Progress>,
                context: RequestContext<RoleServer>,
            ) -> Result<CallToolResult, ErrorData> {
                let token = context
                    .meta
                    .get_progress_token()
                    .ok_or_else(|| ErrorData::invalid_params("no token", None))?;
                for done in 1..=progress.n {
                    let note = ProgressNotificationParam::new(token.clone(), done as f64)
                        .with_total(progress.n as f64);
                    context
                        .peer
                        .notify_progress(note)
                        .await
                        .map_err(|error| ErrorData::internal_error(error.to_string(), None))?;
                }
                Ok(CallToolResult::success(vec![ContentBlock::text("done")]))
            }

            #[tool(description = "Bench counters")]
            async fn stats(&self) -> String {
                serde_json::json!({
                    "started": STARTED.load(Relaxed),
                    "released": RELEASED.load(Relaxed),
                    "listeners": LISTENERS.load(Relaxed),
                })
                .to_string()
            }

            #[tool(description = "Emit tools/list_changed to every listener")]
            async fn emit(&self) -> String {
                let _ = EVENTS.send(());
                "ok".into()
            }
        }
    };
}

// One macro that expands the whole impl: `#[tool_handler]` must see `get_info` to not add its own.
macro_rules! handler {
    ($server:ident, $(#[$attribute:meta])*) => {
        $(#[$attribute])*
        impl ServerHandler for $server {
            fn supported_protocol_versions(&self) -> Cow<'static, [ProtocolVersion]> {
                Cow::Borrowed(&[ProtocolVersion::V_2026_07_28, ProtocolVersion::V_2025_11_25])
            }

            fn get_info(&self) -> ServerConfig {
                let capabilities =
                    ServerCapabilities::builder().enable_tools().enable_tool_list_changed().build();
                ServerConfig::new(capabilities)
                    .with_server_info(Implementation::new("rmcp-bench", "1.0.0"))
            }

            fn accepted_subscription_filter(
                &self,
                requested: &SubscriptionFilter,
            ) -> Option<SubscriptionFilter> {
                Some(requested.supported_by(&self.get_info().capabilities))
            }

            async fn listen(&self, context: SubscriptionContext) -> Result<(), ErrorData> {
                let mut events = EVENTS.subscribe();
                LISTENERS.fetch_add(1, Relaxed);
                let _counted = Listener;
                loop {
                    tokio::select! {
                        () = context.cancelled() => return Ok(()),
                        _ = events.recv() => {
                            if context.sink().notify_tool_list_changed().await.is_err() {
                                return Ok(());
                            }
                        }
                    }
                }
            }
        }
    };
}

pub(crate) use handler;

/// As the README has it: the macro builds the router anew for each call.
#[derive(Clone)]
pub(crate) struct Readme;
tools!(Readme);
handler!(Readme, #[tool_handler]);

/// Tuned: one router for all calls.
#[derive(Clone)]
pub(crate) struct Shared;
static ROUTER: OnceLock<ToolRouter<Shared>> = OnceLock::new();
fn router() -> &'static ToolRouter<Shared> {
    ROUTER.get().expect("`Shared::new` has set it")
}
tools!(Shared);
handler!(Shared, #[tool_handler(router = router())]);

impl Shared {
    pub(crate) fn new() -> Self {
        ROUTER.get_or_init(Self::tool_router);
        Self
    }
}
