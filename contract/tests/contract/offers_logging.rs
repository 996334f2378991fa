//! What handlers log, as it arrives.

use std::sync::{Arc, Mutex};

use serde_json::{Value, json};
use turnbuckle::{Client, ClientBuilder, types::Era};

use crate::{
    offered::Offered,
    rig::{Wire, contract, eventually},
};

contract! { everywhere unconnected on [memory stdio unix direct http sse] in [legacy modern]:
    // req: logging:capability:declared
    logging_is_declared,
    // req: logging:message:fields, logging:message:all-levels, mcpserver:context:logging
    every_level_arrives_with_who_speaks_and_what_is_said,
}

contract! { asked unconnected on [memory stdio unix direct http] in [modern]:
    // req: logging:per-request:invalid-level
    a_level_that_there_is_not_is_a_wrong_parameter,
}

const LEVEL: &str = "io.modelcontextprotocol/logLevel";
const LEVELS: [&str; 8] =
    ["debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"];

type Heard = Arc<Mutex<Vec<Value>>>;

/// A client that keeps what is logged.
fn listener() -> (ClientBuilder, Heard) {
    let heard = Heard::default();
    let ours = heard.clone();
    let builder = Client::builder().on_notification(move |method, params| {
        if method == "notifications/message" {
            ours.lock().unwrap().push(params.unwrap().decode().unwrap());
        }
    });
    (builder, heard)
}

async fn logging_is_declared(wire: Wire, era: Era) {
    let offered = Offered::new(wire, era).await;
    assert_eq!(offered.capabilities().await["logging"], json!({}));
}

async fn every_level_arrives_with_who_speaks_and_what_is_said(wire: Wire, era: Era) {
    let (builder, heard) = listener();
    let offered = Offered::with(wire, era, builder).await;
    let mut call = offered.client.call_tool("speak", json!({}));
    if era == Era::Legacy {
        offered.ask("logging/setLevel", json!({"level": "debug"})).await;
    } else {
        call = call.meta(LEVEL, json!("debug"));
    }
    call.await.unwrap();
    eventually(|| heard.lock().unwrap().len() >= 9).await;
    let mut heard = std::mem::take(&mut *heard.lock().unwrap());
    // What else a notification carries is its envelope's business.
    heard.iter_mut().for_each(|message| drop(message.as_object_mut().unwrap().remove("_meta")));
    let from_speaker = |level: &str| json!({"level": level, "logger": "speaker", "data": {"level": level, "parts": [1, null]}});
    let mut expected = LEVELS.map(from_speaker).to_vec();
    expected.push(json!({"level": "emergency", "data": "in words"}));
    assert_eq!(heard, expected);
}

async fn a_level_that_there_is_not_is_a_wrong_parameter(wire: Wire, era: Era) {
    let (builder, heard) = listener();
    let offered = Offered::with(wire, era, builder).await;
    for level in [json!("loud"), json!("DEBUG"), json!(3), json!({})] {
        let call = offered.client.call_tool("speak", json!({})).meta(LEVEL, level.clone());
        let error = call.await.unwrap_err();
        assert_eq!(error.as_rpc().unwrap().code, -32602, "{level}: {error}");
    }
    assert_eq!(offered.text("numbers", json!({})).await, "[1,2,3]");
    assert_eq!(*heard.lock().unwrap(), Vec::<Value>::new());
}
