//! Owns the joint answer to a JSON-RPC batch, which only 2025-03-26 has.
//! Does not own whether batches are allowed: the side that serves says so.

use std::sync::{Arc, Mutex, PoisonError};

use turnbuckle_types::{RequestId, RpcError, jsonrpc};

use super::{NOBODY, State};
use crate::rpc::Outcome;

/// The answers of one batch, until the last of its requests has ended.
pub(super) struct BatchGroup(Mutex<BatchAnswers>);

struct BatchAnswers {
    open: usize,
    text: Vec<u8>,
}

impl BatchGroup {
    /// A group that stays open until [`close`](BatchGroup::close), however fast its requests are.
    pub(super) fn new() -> Arc<BatchGroup> {
        Arc::new(BatchGroup(Mutex::new(BatchAnswers { open: 1, text: vec![b'['] })))
    }

    /// One more request belongs to this batch.
    pub(super) fn join(self: &Arc<Self>) -> Arc<BatchGroup> {
        self.with(|answers| answers.open += 1);
        self.clone()
    }

    /// How long its answers are so far.
    pub(super) fn bytes(&self) -> usize {
        self.with(|answers| answers.text.len())
    }

    pub(super) fn answer(&self, state: &mut State, id: &RequestId, outcome: Outcome) {
        self.with(|answers| {
            answers.separate();
            match outcome {
                Ok(result) => {
                    jsonrpc::write_result(&mut answers.text, id, result.as_str().as_bytes())
                }
                Err(error) => jsonrpc::write_error(&mut answers.text, Some(id), &error),
            }
        });
        self.close(state);
    }

    /// An element that could not be read.
    pub(super) fn fault(&self, id: Option<&RequestId>, error: &RpcError) {
        self.with(|answers| {
            answers.separate();
            jsonrpc::write_error(&mut answers.text, id, error);
        });
    }

    /// One member has ended, or has been cancelled and says nothing.
    pub(super) fn close(&self, state: &mut State) {
        let text = self.with(|answers| {
            answers.open -= 1;
            (answers.open == 0 && answers.text.len() > 1).then(|| std::mem::take(&mut answers.text))
        });
        if let Some(text) = text {
            state.outbox.push(NOBODY, |out| {
                out.extend_from_slice(&text);
                out.push(b']');
            });
        }
    }

    fn with<T>(&self, change: impl FnOnce(&mut BatchAnswers) -> T) -> T {
        change(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl BatchAnswers {
    fn separate(&mut self) {
        if self.text.len() > 1 {
            self.text.push(b',');
        }
    }
}
