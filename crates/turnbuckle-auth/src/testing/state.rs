//! Owns what the server remembers. It is for tests, and forgets nothing. Does not own the rules.

use std::collections::{HashMap, HashSet};

use serde_json::{Map, Value};

use super::{Endpoint, Fault, InsecureClient};
use crate::{
    Scopes, Secret, SigningKey,
    jose::{dpop::Replays, jwt},
};

pub(super) struct State {
    pub(super) key: SigningKey,
    pub(super) clients: HashMap<String, InsecureClient>,
    pub(super) codes: HashMap<String, Code>,
    pub(super) refreshes: HashMap<String, Refresh>,
    /// What each access token says, and which family it is of.
    pub(super) accesses: HashMap<String, (Map<String, Value>, u64)>,
    /// What each access token says that was issued by hand. Nobody but an exchange knows of them.
    pub(super) issued: HashMap<String, Map<String, Value>>,
    /// Families whose tokens are no good any more.
    pub(super) revoked: HashSet<u64>,
    /// Assertions that were used.
    pub(super) assertions: HashSet<String>,
    pub(super) requests: HashMap<Endpoint, usize>,
    pub(super) faults: HashMap<Endpoint, Fault>,
    /// What clients made up and only showed here: states and verifiers.
    pub(super) shown: Vec<Secret>,
    pub(super) replays: std::sync::Arc<Replays>,
    counter: u64,
}

/// What a code was given for.
#[derive(Clone)]
pub(super) struct Code {
    pub(super) client_id: String,
    pub(super) redirect_uri: String,
    pub(super) challenge: String,
    pub(super) lasting: Lasting,
    pub(super) expires: u64,
    pub(super) used: bool,
}

/// What a refresh token is good for.
#[derive(Clone)]
pub(super) struct Refresh {
    pub(super) client_id: String,
    pub(super) lasting: Lasting,
    /// The key that it is bound to.
    pub(super) thumbprint: Option<String>,
    pub(super) used: bool,
}

/// What stays the same from a login to its last token.
#[derive(Clone)]
pub(super) struct Lasting {
    pub(super) family: u64,
    pub(super) resource: Option<String>,
    pub(super) scopes: Scopes,
}

impl State {
    pub(super) fn new() -> State {
        State {
            key: new_key(1),
            clients: HashMap::new(),
            codes: HashMap::new(),
            refreshes: HashMap::new(),
            accesses: HashMap::new(),
            issued: HashMap::new(),
            revoked: HashSet::new(),
            assertions: HashSet::new(),
            requests: HashMap::new(),
            faults: HashMap::new(),
            shown: Vec::new(),
            replays: std::sync::Arc::new(Replays::new(1 << 16)),
            counter: 1,
        }
    }

    /// A number that was not there before, the same in each run.
    pub(super) fn next(&mut self) -> u64 {
        self.counter += 1;
        self.counter
    }

    pub(super) fn rotate_keys(&mut self) {
        let number = self.next();
        self.key = new_key(number);
    }

    /// All that nobody but a client and the server should see.
    pub(super) fn secrets(&self) -> Vec<Secret> {
        let given = self.codes.keys().chain(self.refreshes.keys()).chain(self.accesses.keys());
        let of_clients = self.clients.values().filter_map(InsecureClient::secret);
        let given = given.map(Secret::new).chain(of_clients.map(Secret::new));
        given.chain(self.shown.iter().cloned()).collect()
    }

    pub(super) fn sign(&self, kind: &str, claims: &Map<String, Value>) -> Secret {
        let mut header = Map::new();
        header.insert("typ".into(), kind.into());
        jwt::sign(&self.key, header, claims).expect("a key that was generated signs")
    }
}

fn new_key(number: u64) -> SigningKey {
    let key = SigningKey::generate().expect("tests run where there are random numbers");
    key.with_key_id(format!("key-{number}"))
}
