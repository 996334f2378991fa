//! Layers around what a server asks.

use serde_json::json;
use tower::ServiceExt as _;
use turnbuckle::{
    Client, Ctx, RpcError, Server, ToolError,
    elicit::{elicit_url, roots},
    middleware::{
        Response,
        client::{InputNext, InputRequest},
    },
    tool,
    types::{ElicitAction, ElicitResult, Raw, Root},
};

use crate::ways::{LEGACY, Log, WAYS, connect};

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
            tower_layer::layer_fn(move |next: InputNext| {
                let log = log.clone();
                next.map_request(move |question: InputRequest| {
                    log.add(format!("{name}: {} {}", question.method(), question.revision()));
                    question
                })
            })
        };
        let builder = Client::builder()
            .input_request_layer(telling("first"))
            .input_request_layer(telling("second"))
            .roots([Root::new("file:///srv")]);
        let client = connect(builder, &server(), way).await;
        assert_eq!(client.call_tool("asks", ()).await.unwrap().to_text(), "1 roots", "{way:?}");
        let expected = ["first", "second"].map(|name| format!("{name}: roots/list {}", way.1));
        assert_eq!(log.take(), expected, "{way:?}");
    }
}

// req: protocol:handler:re-register-replaces
#[tokio::test]
async fn a_callback_that_is_set_again_replaces_the_one_before_and_layers_add_up() {
    async fn pays(ctx: Ctx) -> Result<&'static str, ToolError> {
        ctx.ask("page", elicit_url("Please pay", "https://pay.example.com")).await?;
        Ok("paid")
    }
    for way in WAYS {
        let log = Log::default();
        let counting = || {
            let log = log.clone();
            tower_layer::layer_fn(move |next: InputNext| {
                let log = log.clone();
                next.map_request(move |question: InputRequest| {
                    log.add(question.method());
                    question
                })
            })
        };
        let builder = Client::builder()
            .on_roots(async || Err(RpcError::new(77, "replaced")))
            .on_elicitation(async |_| Ok(ElicitResult::new(ElicitAction::Accept)))
            .input_request_layer(counting())
            .on_roots(async || Ok(vec![Root::new("file:///a"), Root::new("file:///b")]))
            .on_elicitation(async |_| Ok(ElicitResult::new(ElicitAction::Decline)))
            .input_request_layer(counting());
        let client = connect(builder, &server().tool(tool("pays", pays)), way).await;
        assert_eq!(client.call_tool("asks", ()).await.unwrap().to_text(), "2 roots", "{way:?}");
        let declined = client.call_tool("pays", ()).await.unwrap().to_text();
        assert_eq!(declined, "the user declined to answer `page`", "{way:?}");
        let twice = ["roots/list", "roots/list", "elicitation/create", "elicitation/create"];
        assert_eq!(log.take(), twice, "{way:?}");
    }
}

// req: elicitation:url:decline, elicitation:url:cancel
#[tokio::test]
async fn a_user_may_decline_a_page_or_leave_it() {
    async fn pays(ctx: Ctx) -> Result<&'static str, ToolError> {
        ctx.ask("page", elicit_url("Please pay", "https://pay.example.com")).await?;
        Ok("paid")
    }
    for (action, said) in [
        (ElicitAction::Accept, "paid"),
        (ElicitAction::Decline, "the user declined to answer `page`"),
        (ElicitAction::Cancel, "the user did not answer `page`"),
    ] {
        for way in WAYS {
            let builder = Client::builder()
                .on_elicitation(move |_| std::future::ready(Ok(ElicitResult::new(action))));
            let server = Server::new("test", "1").tool(tool("pays", pays));
            let client = connect(builder, &server, way).await;
            assert_eq!(client.call_tool("pays", ()).await.unwrap().to_text(), said, "{way:?}");
        }
    }
}

// req: protocol:request-handler:override-builtin
#[tokio::test]
async fn pings_are_answered_by_nobody_else_and_every_other_question_can_be() {
    async fn pings(ctx: Ctx) -> Result<String, turnbuckle::Error> {
        let pong = ctx.request("ping", json!({})).await?;
        let other = ctx.request("vendor/own", json!({})).await?;
        let roots = ctx.request("roots/list", json!({})).await?;
        Ok(format!("{pong} {other} {roots}"))
    }
    let server = Server::new("test", "1").tool(tool("pings", pings));
    for way in WAYS.into_iter().filter(|(_, revision)| *revision == LEGACY) {
        let log = Log::default();
        let (asked, handled) = (log.clone(), log.clone());
        let answer = tower_layer::layer_fn(move |next: InputNext| {
            let asked = asked.clone();
            tower::service_fn(move |question: InputRequest| {
                asked.add(format!("layer: {}", question.method()));
                let next = next.clone();
                async move {
                    if question.method() == "roots/list" {
                        return Ok(Response::new(json!({"roots": []})));
                    }
                    next.oneshot(question).await
                }
            })
        });
        let builder = Client::builder()
            .input_request_layer(answer)
            .roots([Root::new("file:///srv")])
            .on_request(move |request| {
                handled.add(format!("handler: {}", request.method));
                std::future::ready(Ok(Raw::from(json!({"own": true}))))
            });
        let client = connect(builder, &server, way).await;
        let said = client.call_tool("pings", ()).await.unwrap().to_text();
        assert_eq!(said, r#"{} {"own":true} {"roots":[]}"#, "{way:?}");
        let expected = ["layer: vendor/own", "handler: vendor/own", "layer: roots/list"];
        assert_eq!(log.take(), expected, "{way:?}");
    }
}

#[tokio::test]
async fn a_question_that_is_not_passed_on_no_callback_hears() {
    for way in WAYS {
        let log = Log::default();
        let heard = log.clone();
        let refuse = tower_layer::layer_fn(|_: InputNext| {
            tower::service_fn(async |question: InputRequest| {
                assert!(question.params().is_object());
                Err::<Response, _>(RpcError::new(77, format!("no {}", question.method())))
            })
        });
        let builder = Client::builder().input_request_layer(refuse).on_roots(move || {
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
