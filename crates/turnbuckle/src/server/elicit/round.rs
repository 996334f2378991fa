//! Owns what one request has asked and been told so far, and which of that stays.
//! Does not own how it reaches the client.

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

use turnbuckle_types::{
    InputKind, InputRequest, InputRequiredResult, Method, Named, Raw, RpcError,
};

use super::{error::AskError, state::SealedState};

/// The questions and answers of one request.
#[derive(Debug, Default)]
pub(crate) struct ElicitRound {
    /// What came with the request from rounds before, and what was added to it.
    kept: SealedState,
    /// What the client answers now, unchecked.
    given: Named<Raw>,
    /// What has to be asked, in the order in which it was.
    open: Vec<OpenQuestion>,
    /// What the client lacks: it is told if the handler fails without having looked.
    lacks: Vec<(RpcError, Arc<AtomicBool>)>,
    /// What the client got wrong: it is told if the handler fails.
    unfit: Option<RpcError>,
    /// How often anything came to be asked, or could not be.
    asked: u64,
    /// The handler has ended: what is said from here on is not part of its request.
    pub(super) is_over: bool,
}

/// A question that waits for its answer.
#[derive(Debug)]
struct OpenQuestion {
    key: String,
    method: Method,
    params: Raw,
}

impl ElicitRound {
    /// The request comes back with answers.
    pub(super) fn retried(kept: SealedState, given: Named<Raw>) -> ElicitRound {
        ElicitRound { kept, given, ..ElicitRound::default() }
    }

    /// What the client answers now. What was taken before goes before it: an answer can't be
    /// changed.
    pub(super) fn given(&self, key: &str) -> Option<Raw> {
        self.given.value(key).cloned()
    }

    /// Keeps an answer that was found to be one.
    pub(super) fn keep_answer(&mut self, key: &str, answer: &Raw) {
        let given = self.given.remove_entry(key);
        if self.kept.answers.value(key).is_none() {
            // Its name need not be written anew.
            let name = given.map_or_else(|| key.to_owned(), |(name, _)| name);
            self.kept.answers.insert(name, answer.clone());
        }
    }

    /// Has something asked. Of two questions with one key the first is asked.
    pub(super) fn open(&mut self, key: &str, method: Method, params: Raw) {
        self.asked += 1;
        match self.open.iter().find(|open| open.key == key) {
            None => self.open.push(OpenQuestion { key: key.to_owned(), method, params }),
            Some(open) if open.method == method && open.params == params => {}
            Some(_) => tracing::warn!(key, "two questions have one key: the first is asked"),
        }
    }

    /// The answer that was taken in a round before.
    pub(super) fn kept_answer(&self, key: &str) -> Option<Raw> {
        self.kept.answers.value(key).cloned()
    }

    /// Forgets what was answered in rounds before: it is asked anew.
    pub(super) fn forget(&mut self, key: &str) {
        self.kept.answers.remove(key);
    }

    /// How often anything came to be asked, or could not be.
    pub(crate) fn asked(&self) -> u64 {
        self.asked
    }

    /// The request is wrong whatever the client would answer: nothing is asked.
    pub(crate) fn reject(&mut self) {
        self.open.clear();
        self.lacks.clear();
        self.unfit = None;
    }

    /// Remembers what the client is told if the handler fails because of this. What it lacks goes
    /// before what it got wrong.
    pub(super) fn note(&mut self, error: &AskError) {
        let Some(refusal) = error.refusal() else { return };
        self.asked += 1;
        match error.lack() {
            Some(lack) => self.lacks.push(lack),
            None => self.unfit = self.unfit.take().or(Some(refusal)),
        }
    }

    /// What was kept from being done twice.
    pub(super) fn done(&self, key: &str) -> Option<Raw> {
        self.kept.once.value(key).cloned()
    }

    pub(super) fn keep_done(&mut self, key: &str, value: Raw) {
        self.kept.once.insert(key, value);
    }

    pub(super) fn by_hand(&self) -> Option<Raw> {
        self.kept.by_hand.clone()
    }

    pub(super) fn set_by_hand(&mut self, state: Option<Raw>) {
        self.kept.by_hand = state;
    }

    /// Takes the answers of a client that was asked outside the handler, for the next run of it.
    pub(super) fn again(&mut self, answers: Named<Raw>, by_hand: Option<Raw>) {
        self.kept.round += 1;
        self.kept.by_hand = by_hand;
        for (key, answer) in answers {
            self.kept.answers.insert(key, answer);
        }
    }

    /// How often the request has asked.
    pub(super) fn rounds(&self) -> u32 {
        self.kept.round
    }

    /// What the client is told instead of whatever the handler failed with.
    pub(super) fn refusal(&self) -> Option<RpcError> {
        let unseen = self.lacks.iter().find(|(_, seen)| !seen.load(Ordering::Relaxed));
        unseen.map(|(lack, _)| lack).or(self.unfit.as_ref()).cloned()
    }

    pub(super) fn is_open(&self) -> bool {
        !self.open.is_empty()
    }

    /// About how long what is open is as text.
    pub(super) fn open_size(&self) -> usize {
        self.open.iter().map(|open| open.key.len() + open.params.as_str().len() + 64).sum()
    }

    /// What the client is asked, and what it keeps until it answers.
    pub(super) fn suspend(&mut self) -> (InputRequiredResult, SealedState) {
        let request = |open: OpenQuestion| {
            let params = Some(open.params).filter(|params| params.as_str() != "{}");
            let method = open.method.as_str().to_owned();
            (open.key, InputRequest::from(InputKind::Other { method, params }))
        };
        let open = std::mem::take(&mut self.open);
        let mut result = InputRequiredResult::new();
        if !open.is_empty() {
            result.input_requests = Some(open.into_iter().map(request).collect());
        }
        let mut kept = std::mem::take(&mut self.kept);
        kept.round += 1;
        (result, kept)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use turnbuckle_types::Revision;

    use super::*;
    use crate::server::elicit::question::AnswerMismatch;

    fn raw(value: serde_json::Value) -> Raw {
        value.into()
    }

    #[test]
    fn an_answer_that_was_taken_stays_what_it_was() {
        let mut kept = SealedState::default();
        kept.answers.insert("a", raw(json!(1)));
        let given = Named::from([("a", raw(json!(2))), ("b", raw(json!(3)))]);
        let mut round = ElicitRound::retried(kept, given);
        assert_eq!(round.kept_answer("a"), Some(raw(json!(1))));
        assert_eq!((round.kept_answer("b"), round.given("b")), (None, Some(raw(json!(3)))));
        assert_eq!((round.kept_answer("c"), round.given("c")), (None, None));
        for key in ["a", "b"] {
            let answer = round.given(key).unwrap();
            round.keep_answer(key, &answer);
        }
        let (_, kept) = round.suspend();
        assert_eq!(kept.answers, Named::from([("a", raw(json!(1))), ("b", raw(json!(3)))]));
    }

    #[test]
    fn only_answers_that_were_taken_are_kept() {
        let given = Named::from([("a", raw(json!(1))), ("unknown", raw(json!(2)))]);
        let mut round = ElicitRound::retried(SealedState::default(), given);
        round.keep_answer("a", &raw(json!(1)));
        round.open("b", Method::ListRoots, Raw::empty_object());
        let (asked, kept) = round.suspend();
        assert_eq!(kept.answers, Named::from([("a", raw(json!(1)))]));
        assert_eq!(kept.round, 1);
        let asked = serde_json::to_value(&asked).unwrap();
        assert_eq!(asked["inputRequests"], json!({"b": {"method": "roots/list"}}));
    }

    #[test]
    fn one_key_is_asked_once() {
        let mut round = ElicitRound::default();
        for size in [1, 2] {
            round.open("a", Method::Elicit, raw(json!({"message": size})));
        }
        let (asked, _) = round.suspend();
        let asked = serde_json::to_value(&asked).unwrap();
        let first = json!({"method": "elicitation/create", "params": {"message": 1}});
        assert_eq!(asked["inputRequests"], json!({"a": first}));
    }

    #[test]
    fn what_a_client_lacks_is_said_before_what_it_got_wrong() {
        let revision = Revision::LATEST;
        let unfit = AskError::unanswered("a", AnswerMismatch::Unfit("no".to_owned()), revision);
        let lacks = AskError::unsupported("b", "sampling.tools", revision);
        let mut round = ElicitRound::default();
        for error in [&unfit, &lacks, &unfit] {
            round.note(error);
        }
        let refusal = round.refusal().unwrap();
        assert_eq!(refusal.code, -32021);
        let data: serde_json::Value = refusal.data.unwrap().decode().unwrap();
        assert_eq!(data, json!({"requiredCapabilities": {"sampling": {"tools": {}}}}));
        assert_eq!(lacks.missing_capability(), Some("sampling.tools"));
        assert_eq!(round.refusal().unwrap().code, -32602, "the handler knows what it lacks");
        let mut round = ElicitRound::default();
        round.note(&AskError::suspended("c"));
        round.note(&AskError::unanswered("c", AnswerMismatch::Declined, revision));
        assert_eq!(round.refusal(), None);
    }
}
