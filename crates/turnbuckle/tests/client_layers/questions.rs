//! Layers around what a server asks.

use serde_json::json;
use tower::ServiceExt as _;
use turnbuckle::{
    Client, Ctx, RpcError, Server, ToolError,
    client_layer::{NextQuestion, Question},
    roots, tool,
    types::{Raw, Root},
};

use crate::ways::{Log, WAYS, connect};

async fn asks(ctx: Ctx) -> Result<String, ToolError> {
    let roots = ctx.ask("roots", roots()).await?;
    Ok(format!("{} roots", roots.len()))
}

fn server() -> Server {
    Server::new("test", "1").tool(tool("asks", asks))
}

#[tokio::test]
async fn questions_of_both_eras_pass_layers_in_order() {
    for way in WAYS {
        let log = Log::default();
        let telling = |name: &'static str| {
            let log = log.clone();
            tower_layer::layer_fn(move |next: NextQuestion| {
                let log = log.clone();
                next.map_request(move |question: Question| {
                    log.add(format!("{name}: {} {}", question.method(), question.revision()));
                    question
                })
            })
        };
        let builder = Client::builder()
            .question_layer(telling("first"))
            .question_layer(telling("second"))
            .roots([Root::new("file:///srv")]);
        let client = connect(builder, &server(), way).await;
        assert_eq!(client.call_tool("asks", ()).await.unwrap().to_text(), "1 roots", "{way:?}");
        let expected = ["first", "second"].map(|name| format!("{name}: roots/list {}", way.1));
        assert_eq!(log.take(), expected, "{way:?}");
    }
}

#[tokio::test]
async fn a_question_that_is_not_passed_on_no_callback_hears() {
    for way in WAYS {
        let log = Log::default();
        let heard = log.clone();
        let refuse = tower_layer::layer_fn(|_: NextQuestion| {
            tower::service_fn(async |question: Question| {
                assert!(question.params().is_object());
                Err::<Raw, _>(RpcError::new(77, format!("no {}", question.method())))
            })
        });
        let builder = Client::builder().question_layer(refuse).on_roots(move || {
            heard.add("asked");
            async { Ok(vec![]) }
        });
        let client = connect(builder, &server(), way).await;
        let told = client.call_tool("asks", json!({})).await;
        let refused = match &told {
            Ok(result) => result.is_error == Some(true),
            Err(error) => error.as_rpc().is_some(),
        };
        assert!(refused, "{way:?}: {told:?}");
        assert_eq!(log.take(), [""; 0], "{way:?}");
    }
}
