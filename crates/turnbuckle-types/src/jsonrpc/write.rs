//! Owns how a frame is written: one line of text, never a line break inside (`Raw` keeps
//! its own out). Does not own the framing around it: the transport adds that.

use std::io::Write as _;

use crate::{RequestId, RpcError};

/// Appends a request. `params` is JSON text, or empty for none.
pub fn write_request(out: &mut Vec<u8>, id: &RequestId, method: &str, params: &str) {
    out.extend_from_slice(br#"{"jsonrpc":"2.0","id":"#);
    id.write_to(out);
    out.extend_from_slice(br#","method":"#);
    write_string(out, method);
    write_params(out, params);
}

/// Appends a notification. `params` is JSON text, or empty for none.
pub fn write_notification(out: &mut Vec<u8>, method: &str, params: &str) {
    out.extend_from_slice(br#"{"jsonrpc":"2.0","method":"#);
    write_string(out, method);
    write_params(out, params);
}

/// Appends a response with this result, which is JSON text.
pub fn write_result(out: &mut Vec<u8>, id: &RequestId, result: &[u8]) {
    write_result_head(out, id);
    out.extend_from_slice(result);
    out.push(b'}');
}

/// Appends a response up to its result, for a writer that has the rest elsewhere: the
/// result's JSON text and a closing brace must follow.
pub fn write_result_head(out: &mut Vec<u8>, id: &RequestId) {
    out.extend_from_slice(br#"{"jsonrpc":"2.0","id":"#);
    id.write_to(out);
    out.extend_from_slice(br#","result":"#);
}

/// Appends a response with this error. An unknown id is left out, never null.
pub fn write_error(out: &mut Vec<u8>, id: Option<&RequestId>, error: &RpcError) {
    out.extend_from_slice(br#"{"jsonrpc":"2.0","#);
    if let Some(id) = id {
        out.extend_from_slice(br#""id":"#);
        id.write_to(out);
        out.push(b',');
    }
    // Writing to a Vec can't fail.
    let _ = write!(out, r#""error":{{"code":{},"message":"#, error.code);
    write_string(out, &error.message);
    if let Some(data) = &error.data {
        out.extend_from_slice(br#","data":"#);
        out.extend_from_slice(data.as_str().as_bytes());
    }
    out.extend_from_slice(b"}}");
}

fn write_params(out: &mut Vec<u8>, params: &str) {
    if !params.is_empty() {
        out.extend_from_slice(br#","params":"#);
        out.extend_from_slice(params.as_bytes());
    }
    out.push(b'}');
}

fn write_string(out: &mut Vec<u8>, text: &str) {
    // Writing a string to a Vec can't fail.
    let _ = serde_json::to_writer(out, text);
}
