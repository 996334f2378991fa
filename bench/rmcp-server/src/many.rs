//! A server of `echo` and as many tools as wanted, once for each way to set up the router.

use std::borrow::Cow;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, LazyLock, OnceLock};

use rmcp::handler::server::router::tool::{ToolRoute, ToolRouter};
use rmcp::handler::server::wrapper::Parameters;
use rmcp::model::{
    CallToolResult, ContentBlock, Implementation, JsonObject, ProtocolVersion, ServerCapabilities,
    ServerConfig, SubscriptionFilter, Tool,
};
use rmcp::service::SubscriptionContext;
use rmcp::{ErrorData, ServerHandler, tool, tool_handler, tool_router};

use crate::contract::{EVENTS, Echo, LISTENERS, Listener, handler};

/// How many tools there are, `echo` included.
static COUNT: OnceLock<usize> = OnceLock::new();

macro_rules! tools {
    ($server:ident) => {
        #[tool_router(vis = "pub")]
        impl $server {
            #[tool(description = "Echo the text back")]
            async fn echo(&self, Parameters(echo): Parameters<Echo>) -> String {
                echo.text
            }
        }

        impl $server {
            pub(crate) fn new(count: usize) -> Self {
                COUNT.get_or_init(|| count);
                Self
            }

            /// All tools: what the macro would have made, had they been written out.
            fn all() -> ToolRouter<Self> {
                let mut router = Self::tool_router();
                for number in 1..*COUNT.get().expect("`new` has set it") {
                    router.add_route(dummy(number));
                }
                router
            }
        }
    };
}

/// As the README has it: the macro builds the router anew for each request.
#[derive(Clone)]
pub(crate) struct ManyReadme;
tools!(ManyReadme);
handler!(ManyReadme, #[tool_handler(router = Self::all())]);

/// Tuned: one router for all requests.
#[derive(Clone)]
pub(crate) struct ManyShared;
static ROUTER: LazyLock<ToolRouter<ManyShared>> = LazyLock::new(ManyShared::all);
tools!(ManyShared);
handler!(ManyShared, #[tool_handler(router = ROUTER)]);

/// A tool that only fills the list.
fn dummy<S: Send + Sync + 'static>(number: usize) -> ToolRoute<S> {
    // As with the macro, whose schemas are made once for each type.
    static SCHEMA: LazyLock<Arc<JsonObject>> = LazyLock::new(|| Arc::new(schema()));
    let tool = Tool::new(
        format!("dummy_{number:04}"),
        "A dummy tool used to fill the tool list",
        SCHEMA.clone(),
    );
    ToolRoute::new_dyn(tool, |_| {
        Box::pin(async { Ok(CallToolResult::success(vec![ContentBlock::text("x")]).into()) })
    })
}

fn schema() -> JsonObject {
    let schema = serde_json::json!({
        "type": "object",
        "properties": {
            "text": { "type": "string", "description": "Some text" },
            "count": { "type": "integer", "description": "A count" }
        },
        "required": ["text"]
    });
    serde_json::from_value(schema).expect("an object")
}
