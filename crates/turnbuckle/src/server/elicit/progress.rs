//! Owns how a handler hears how far its client is with a question: the token that asks for it, and
//! what is heard. Does not own the question.

use crate::{
    error::Result,
    protocol::params::decode,
    rpc::{Exchange, ExchangeEvent, Note, Outgoing},
};
use turnbuckle_types::{Method, Progress, Raw, jsonrpc::Params};

/// Who is told.
pub(crate) type ProgressListener = Box<dyn FnMut(Progress) + Send>;

/// A question that asks for progress, in params that are an object or null.
pub(crate) fn asking(method: String, params: &Raw) -> Outgoing {
    match place(params) {
        Some((params, at)) => Outgoing { token_at: Some(at), ..Outgoing::new(method, params) },
        None => Outgoing::new(method, params.as_str().to_owned()),
    }
}

/// The params with a `_meta`, and where in it the token goes. `None` if there is no place for one.
fn place(params: &Raw) -> Option<(String, usize)> {
    const META: &str = r#"{"_meta":{"#;
    let text = if *params == Raw::null() { "{}" } else { params.as_str() };
    let Params { meta, .. } = Params::of(params.clone()).unwrap_or_default();
    let Some(meta) = meta else {
        let rest = text.strip_prefix('{')?.trim_start();
        let comma = if rest == "}" { "" } else { "," };
        return Some((format!("{META}}}{comma}{rest}"), META.len()));
    };
    // It is a part of the params' own text.
    let start = meta.as_str().as_ptr().addr().checked_sub(params.as_str().as_ptr().addr())?;
    let after = text.get(start..)?.strip_prefix('{')?;
    // A token that a handler wrote by hand would be there twice.
    let free = !meta.as_str().contains(r#""progressToken""#);
    free.then(|| (format!("{}{{{}", &text[..start], after.trim_start()), start + 1))
}

/// Waits for the answer, and tells what is said before it.
pub(crate) async fn answer(
    mut exchange: Exchange,
    mut on_progress: ProgressListener,
) -> Result<Raw> {
    loop {
        match exchange.next().await {
            ExchangeEvent::Done(end) => return end,
            ExchangeEvent::Note(note) => {
                if let Some(progress) = progress(&note) {
                    on_progress(progress);
                }
            }
        }
    }
}

fn progress(note: &Note) -> Option<Progress> {
    if &*note.method != Method::Progress.as_str() {
        return None;
    }
    let read = decode(&note.params);
    read.inspect_err(|error| tracing::debug!(%error, "progress that can't be read is dropped")).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_token_goes_into_the_meta_that_there_is() {
        for (params, expected) in [
            ("null", r#"{"_meta":{"progressToken":7}}"#),
            ("{}", r#"{"_meta":{"progressToken":7}}"#),
            (r#"{"a":1}"#, r#"{"_meta":{"progressToken":7},"a":1}"#),
            (r#"{"a":1,"_meta":{}}"#, r#"{"a":1,"_meta":{"progressToken":7}}"#),
            (r#"{"_meta": { "x":{}} ,"b":2}"#, r#"{"_meta": {"progressToken":7,"x":{}} ,"b":2}"#),
            // What is there by hand stays.
            (r#"{"_meta":{"progressToken":1}}"#, r#"{"_meta":{"progressToken":1}}"#),
        ] {
            let asking = asking("m".to_owned(), &Raw::from_json(params.to_owned()).unwrap());
            let mut text = Vec::new();
            asking.write_params(&7.into(), &mut text);
            assert_eq!(String::from_utf8(text).unwrap(), expected, "{params}");
        }
    }
}
